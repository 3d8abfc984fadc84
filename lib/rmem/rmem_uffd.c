/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Events of userfaultfd; see rmem_uffd.h.
 *
 * Invariant: the slots of watchers are written under uffd.lock; the thread reads an event and then
 * the slots between two steps of rmem_uffd_pass, which is odd during that time. A thread that
 * removes a watcher from its slot waits until rmem_uffd_pass was even or has advanced; then the
 * watcher is not in use.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_pause.h>

#include <rmem_thread.h>
#include <rmem_uffd.h>

#define NB_SLOTS 1024u
/* Not defined by older kernel headers. */
#define USER_MODE_ONLY   1
#define FEATURE_WP_ASYNC (UINT64_C(1) << 15) /* Linux 6.7: mappings of files too */
#define FEATURES                                                                                   \
	(UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |         \
			UFFD_FEATURE_PAGEFAULT_FLAG_WP)

uint32_t rmem_uffd_pass; /* odd while the thread reads an event and uses watchers; atomic */

static struct {
	pthread_mutex_t lock; /* protects all other members; never taken by the thread */
	int fd;
	int stop; /* eventfd */
	unsigned int nb_watches;
	bool is_refused; /* the kernel does not permit it */
	struct rmem_thread thread;
	struct rmem_uffd_watch *slot[NB_SLOTS]; /* atomic */
} uffd = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .stop = -1};

static void
uffd_event(uint64_t start, uint64_t end, bool is_unmapped)
{
	struct rmem_uffd_watch *watch;
	uint32_t i;

	for (i = 0; i < NB_SLOTS; i++) {
		watch = __atomic_load_n(&uffd.slot[i], __ATOMIC_SEQ_CST);
		if (watch != NULL)
			watch->event(watch, start, end, is_unmapped);
	}
}

/* Process the next event; false if there is none. */
static bool
uffd_next(void)
{
	struct uffd_msg msg;
	bool is_read;

	/* Before the read, which lets the thread that caused the event continue. */
	__atomic_fetch_add(&rmem_uffd_pass, 1, __ATOMIC_SEQ_CST);
	is_read = read(uffd.fd, &msg, sizeof(msg)) == (ssize_t)sizeof(msg);
	if (is_read && (msg.event == UFFD_EVENT_REMOVE || msg.event == UFFD_EVENT_UNMAP))
		uffd_event(msg.arg.remove.start, msg.arg.remove.end, msg.event == UFFD_EVENT_UNMAP);
	else if (is_read && msg.event == UFFD_EVENT_REMAP)
		uffd_event(msg.arg.remap.from, msg.arg.remap.from + msg.arg.remap.len, true);
	__atomic_fetch_add(&rmem_uffd_pass, 1, __ATOMIC_SEQ_CST);
	return is_read;
}

static void
uffd_run(void *arg)
{
	struct pollfd fds[2] = {
			{.fd = uffd.fd, .events = POLLIN}, {.fd = uffd.stop, .events = POLLIN}};

	RTE_SET_USED(arg);
	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		while (uffd_next())
			;
		if (fds[1].revents != 0)
			return;
	}
}

static void
uffd_close(void)
{
	close(uffd.fd);
	close(uffd.stop);
	uffd.fd = -1;
	uffd.stop = -1;
}

/* fork() with the lock: no thread that the child does not have holds it. */
static void
uffd_prepare(void)
{
	pthread_mutex_lock(&uffd.lock);
}

static void
uffd_parent(void)
{
	pthread_mutex_unlock(&uffd.lock);
}

/*
 * A child of fork() does not have the thread, and its memory is not watched (userfaultfd(2)). It
 * begins without watchers, and closes its copy of the descriptor: otherwise the parent's memory
 * would stay watched after the parent has closed its own descriptor, and munmap() would wait
 * forever.
 */
static void
uffd_child(void)
{
	if (uffd.fd >= 0)
		uffd_close();
	uffd.nb_watches = 0;
	memset(uffd.slot, 0, sizeof(uffd.slot));
	__atomic_store_n(&rmem_uffd_pass, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&uffd.lock);
}

/*
 * At the start, so before handlers that reset this data in a child (dropin/verbs/ribv_env.c): they
 * run after uffd_child(), and a child does not register these again.
 */
RTE_INIT(rmem_uffd_init)
{
	pthread_atfork(uffd_prepare, uffd_parent, uffd_child);
}

/* Open a userfaultfd and set its features; -1: not possible. */
static int
open_fd(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES | FEATURE_WP_ASYNC};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	/*
	 * Permitted to any user: faults in the kernel, which do not occur here, are not reported.
	 */
	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	api = (struct uffdio_api){.api = UFFD_API, .features = FEATURES};
	if (ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Open the descriptor and start the thread; false: not possible. Call with the lock held. */
static bool
uffd_open(void)
{
	uffd.thread.run = uffd_run;
	uffd.fd = open_fd();
	uffd.stop = eventfd(0, EFD_CLOEXEC);
	if (uffd.fd >= 0 && uffd.stop >= 0 && rmem_thread_start(&uffd.thread, "rmem-uffd") == 0)
		return true;
	uffd_close();
	return false;
}

static void
uffd_stop(void)
{
	uint64_t one = 1;

	if (write(uffd.stop, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(uffd.thread.id, NULL);
	uffd_close();
}

int
rmem_uffd_add(uint64_t start, uint64_t end)
{
	struct uffdio_register reg = {
			.range = {start, end - start},
			.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int ret;

	pthread_mutex_lock(&uffd.lock);
	if (uffd.fd < 0)
		ret = -EOPNOTSUPP;
	else
		ret = ioctl(uffd.fd, UFFDIO_REGISTER, &reg) == 0 ? 0 : -errno;
	pthread_mutex_unlock(&uffd.lock);
	return ret;
}

/*
 * Stop watching memory that no watcher needs. Call with the lock held: a watcher that needs the
 * memory later adds it again.
 */
static void
uffd_del(uint64_t start, uint64_t end)
{
	struct uffdio_range range = {start, end - start};
	uint32_t i;

	for (i = 0; i < NB_SLOTS; i++) {
		if (uffd.slot[i] != NULL && uffd.slot[i]->needs(uffd.slot[i], start, end))
			return;
	}
	if (start != end)
		ioctl(uffd.fd, UFFDIO_UNREGISTER, &range);
}

void
rmem_uffd_del(uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&uffd.lock);
	uffd_del(start, end);
	pthread_mutex_unlock(&uffd.lock);
}

int
rmem_uffd_watch(struct rmem_uffd_watch *watch)
{
	int ret = -EOPNOTSUPP;
	uint32_t i;

	pthread_mutex_lock(&uffd.lock);
	if (uffd.nb_watches == 0 && !uffd.is_refused)
		uffd.is_refused = !uffd_open();
	for (i = 0; i < NB_SLOTS && uffd.slot[i] != NULL; i++)
		;
	if (!uffd.is_refused && i == NB_SLOTS) {
		ret = -ENOSPC;
	} else if (!uffd.is_refused) {
		__atomic_store_n(&uffd.slot[i], watch, __ATOMIC_SEQ_CST);
		uffd.nb_watches++;
		ret = 0;
	}
	pthread_mutex_unlock(&uffd.lock);
	return ret;
}

void
rmem_uffd_wait(void)
{
	uint32_t pass = __atomic_load_n(&rmem_uffd_pass, __ATOMIC_SEQ_CST);

	while ((pass & 1) && __atomic_load_n(&rmem_uffd_pass, __ATOMIC_SEQ_CST) == pass)
		rte_pause();
}

void
rmem_uffd_unwatch(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end)
{
	uint32_t i;

	pthread_mutex_lock(&uffd.lock);
	for (i = 0; i < NB_SLOTS && uffd.slot[i] != watch; i++)
		;
	if (i < NB_SLOTS) { /* not of the parent of fork() */
		__atomic_store_n(&uffd.slot[i], NULL, __ATOMIC_SEQ_CST);
		rmem_uffd_wait();
		uffd_del(start, end);
		if (--uffd.nb_watches == 0)
			uffd_stop();
	}
	pthread_mutex_unlock(&uffd.lock);
}
