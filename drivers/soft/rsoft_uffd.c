/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Events of userfaultfd; see rsoft_uffd.h. */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_pause.h>

#include "rsoft_uffd.h"

#define NB_SLOTS 1024u

static struct {
	pthread_mutex_t lock; /* protects all but pass; never taken by the thread */
	int fd;
	int stop; /* eventfd */
	unsigned int nb_tables;
	bool is_refused; /* the kernel does not permit it */
	struct rmem_thread thread;
	uint32_t pass; /* odd while the thread reads an event and uses tables; atomic */
	struct rsoft_odp *slot[NB_SLOTS]; /* atomic */
} uffd = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .stop = -1};

/* Clear what a table has of [start, end). */
static void
uffd_invalidate(struct rsoft_odp *odp, uint64_t start, uint64_t end, bool is_unmapped)
{
	uint64_t first = odp->first_word * RSOFT_ODP_WORD;
	uint64_t last = first + odp->nb_words * RSOFT_ODP_WORD;

	start = RTE_MAX(start >> odp->log2_page, first);
	end = RTE_MIN(end >> odp->log2_page, last);
	if (start >= end)
		return;
	/* Before the bits: a thread that finds them clear then checks has_holes. */
	if (is_unmapped)
		__atomic_store_n(&odp->has_holes, 1, __ATOMIC_SEQ_CST);
	rsoft_odp_invalidate(odp, start - first, end - start);
}

static void
uffd_event(uint64_t start, uint64_t end, bool is_unmapped)
{
	struct rsoft_odp *odp;
	uint32_t i;

	for (i = 0; i < NB_SLOTS; i++) {
		odp = __atomic_load_n(&uffd.slot[i], __ATOMIC_SEQ_CST);
		if (odp != NULL)
			uffd_invalidate(odp, start, end, is_unmapped);
	}
}

/* Process the next event; false: there is none. */
static bool
uffd_next(void)
{
	struct uffd_msg msg;
	bool is_read;

	/* Before it is read: then the thread that caused it continues. */
	__atomic_fetch_add(&uffd.pass, 1, __ATOMIC_SEQ_CST);
	is_read = read(uffd.fd, &msg, sizeof(msg)) == (ssize_t)sizeof(msg);
	if (is_read && (msg.event == UFFD_EVENT_REMOVE || msg.event == UFFD_EVENT_UNMAP))
		uffd_event(msg.arg.remove.start, msg.arg.remove.end, msg.event == UFFD_EVENT_UNMAP);
	else if (is_read && msg.event == UFFD_EVENT_REMAP)
		uffd_event(msg.arg.remap.from, msg.arg.remap.from + msg.arg.remap.len, true);
	__atomic_fetch_add(&uffd.pass, 1, __ATOMIC_SEQ_CST);
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

/* Open the descriptor and start the thread; false: not possible. Call with the lock held. */
static bool
uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API,
			.features = UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP |
					UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_PAGEFAULT_FLAG_WP};

	uffd.thread.run = uffd_run;
	uffd.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	uffd.stop = eventfd(0, EFD_CLOEXEC);
	if (uffd.fd >= 0 && uffd.stop >= 0 && ioctl(uffd.fd, UFFDIO_API, &api) == 0 &&
			rmem_thread_start(&uffd.thread, "rmem-uffd") == 0)
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

/* The pages of the MR. */
static bool
uffd_register(const struct rsoft_odp *odp)
{
	struct uffdio_register reg = {
			.range = {odp->start, odp->end - odp->start},
			.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(uffd.fd, UFFDIO_REGISTER, &reg) == 0;
}

void
rsoft_uffd_renew(struct rsoft_odp *odp)
{
	/* Cleared first: a concurrent event sets it again. */
	__atomic_store_n(&odp->has_holes, 0, __ATOMIC_SEQ_CST);
	uffd_register(odp);
	/* Only checks whether all of it is mapped. */
	if (msync((void *)(uintptr_t)odp->start, odp->end - odp->start, MS_ASYNC) != 0)
		__atomic_store_n(&odp->has_holes, 1, __ATOMIC_SEQ_CST);
}

void
rsoft_uffd_watch(struct rsoft_odp *odp)
{
	uint32_t i;

	pthread_mutex_lock(&uffd.lock);
	if (uffd.nb_tables == 0 && !uffd.is_refused)
		uffd.is_refused = !uffd_open();
	for (i = 0; i < NB_SLOTS && uffd.slot[i] != NULL; i++)
		;
	if (!uffd.is_refused && i < NB_SLOTS) {
		__atomic_store_n(&uffd.slot[i], odp, __ATOMIC_SEQ_CST);
		uffd.nb_tables++;
		odp->is_watched = 1;
		rsoft_uffd_renew(odp);
	}
	pthread_mutex_unlock(&uffd.lock);
}

void
rsoft_uffd_settle(void)
{
	uint32_t pass = __atomic_load_n(&uffd.pass, __ATOMIC_SEQ_CST);

	while ((pass & 1) && __atomic_load_n(&uffd.pass, __ATOMIC_SEQ_CST) == pass)
		rte_pause();
}

void
rsoft_uffd_unwatch(struct rsoft_odp *odp)
{
	struct uffdio_range range = {odp->start, odp->end - odp->start};
	uint32_t i;

	pthread_mutex_lock(&uffd.lock);
	for (i = 0; i < NB_SLOTS; i++) {
		if (uffd.slot[i] == odp)
			__atomic_store_n(&uffd.slot[i], NULL, __ATOMIC_SEQ_CST);
	}
	rsoft_uffd_settle();
	if (--uffd.nb_tables == 0) {
		uffd_stop();
	} else {
		/* Other tables may cover the same pages. */
		ioctl(uffd.fd, UFFDIO_UNREGISTER, &range);
		for (i = 0; i < NB_SLOTS; i++) {
			if (uffd.slot[i] != NULL)
				uffd_register(uffd.slot[i]);
		}
	}
	pthread_mutex_unlock(&uffd.lock);
}
