/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Events of the objects that are bound to a channel: a list of the objects with events, which are
 * served in turn, and an eventfd for threads that wait.
 *
 * Invariants, under the lock:
 * - the eventfd is readable while the list is not empty, or the channel is being destroyed, and no
 *   waiter is between its read and end_wait();
 * - an object is in the list while it has events. While it is being destroyed, a reader may remove
 *   it; if the destruction is refused, it is listed again.
 * So an event needs no memory and is not lost. No other lock is taken with the lock held: drivers
 * generate events under locks of their queues.
 *
 * A waiter reads the eventfd without the lock, so its value may already be 0 when unlist() clears
 * it. The read that clears it must not wait, even if the program has not set O_NONBLOCK. This needs
 * RWF_NOWAIT (Linux 5.8); on older kernels waiters poll instead of reading.
 */

#define _GNU_SOURCE /* preadv2() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rmem_priv.h"

static bool has_nowait; /* atomic */

/* Read the value if there is one; -1 otherwise, with errno. */
static ssize_t
try_read(int fd)
{
	uint64_t value;
	const struct iovec iov = {&value, sizeof(value)};

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
}

void
rmem_eventfd_init(struct rmem_eventfd *efd)
{
	efd->fd = -1;
	pthread_mutex_init(&efd->lock, NULL);
	pthread_cond_init(&efd->has_left, NULL);
	TAILQ_INIT(&efd->list);
}

int
rmem_eventfd_open(struct rmem_eventfd *efd, const struct rmem_obj *obj)
{
	efd->fd = eventfd(0, EFD_CLOEXEC);
	if (efd->fd < 0)
		return RMEM_FAIL(ENOMEM, "%s: eventfd(): %s", rmem_obj_dev(obj)->name,
				strerror(errno));
	__atomic_store_n(&has_nowait, try_read(efd->fd) < 0 && errno == EAGAIN, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Set or clear the value of the eventfd. Not a cancellation point, because the callers hold locks.
 * Without waiters the value that is cleared is not 0, so a plain read, which is faster, does not
 * wait.
 */
static void
set_readable(struct rmem_eventfd *efd, bool is_readable)
{
	uint64_t value = 1;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (is_readable)
		(void)!write(efd->fd, &value, sizeof(value));
	else if (efd->nb_waiters != 0 && __atomic_load_n(&has_nowait, __ATOMIC_RELAXED))
		(void)!try_read(efd->fd);
	else
		(void)!read(efd->fd, &value, sizeof(value));
	pthread_setcancelstate(state, NULL);
}

void
rmem_eventfd_list(struct rmem_eventfd *efd, struct rmem_eventfd_obj *events)
{
	if (events->pending == 0 || events->is_listed)
		return;
	if (TAILQ_EMPTY(&efd->list))
		set_readable(efd, true);
	TAILQ_INSERT_TAIL(&efd->list, events, entry);
	events->is_listed = true;
}

static void
unlist(struct rmem_eventfd *efd, struct rmem_eventfd_obj *events)
{
	TAILQ_REMOVE(&efd->list, events, entry);
	events->is_listed = false;
	if (TAILQ_EMPTY(&efd->list) && !efd->is_closing)
		set_readable(efd, false);
}

void
rmem_eventfd_remove(struct rmem_eventfd *efd, struct rmem_eventfd_obj *events)
{
	pthread_mutex_lock(&efd->lock);
	if (events->is_listed)
		unlist(efd, events);
	pthread_mutex_unlock(&efd->lock);
}

/* Take the oldest event, with a reference to its object; false if there is none. */
static bool
next(struct rmem_eventfd *efd, rmem_eventfd_take_t take, void *arg)
{
	struct rmem_eventfd_obj *events;
	bool is_found = false;

	while (!is_found && (events = TAILQ_FIRST(&efd->list)) != NULL) {
		is_found = events->obj == NULL || rmem_obj_hold(events->obj);
		if (is_found)
			take(events, arg);
		if (!is_found || events->pending == 0) {
			unlist(efd, events);
		} else {
			TAILQ_REMOVE(&efd->list, events, entry);
			TAILQ_INSERT_TAIL(&efd->list, events, entry);
		}
	}
	return is_found;
}

static int
wait_by_poll(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0)
		return -EAGAIN;
	if (poll(&pollfd, 1, -1) < 0)
		return errno == EINTR ? -EINTR : -EIO;
	return 0;
}

static void
end_wait(void *arg)
{
	struct rmem_eventfd *efd = arg;

	pthread_mutex_lock(&efd->lock);
	if (--efd->nb_waiters == 0 && efd->is_closing)
		pthread_cond_signal(&efd->has_left);
	if (!TAILQ_EMPTY(&efd->list) || efd->is_closing)
		set_readable(efd, true);
}

/*
 * Release the lock, wait until the descriptor is readable, and take the lock again, also if the
 * thread is cancelled. As in libibverbs, the wait is a read, which the kernel restarts after a
 * handler with SA_RESTART.
 */
static int
wait_readable(struct rmem_eventfd *efd)
{
	uint64_t value;
	int ret;

	efd->nb_waiters++;
	pthread_mutex_unlock(&efd->lock);
	pthread_cleanup_push(end_wait, efd);
	if (!__atomic_load_n(&has_nowait, __ATOMIC_RELAXED))
		ret = wait_by_poll(efd->fd);
	else
		ret = read(efd->fd, &value, sizeof(value)) >= 0 ? 0 : -errno;
	pthread_cleanup_pop(1);
	return ret == 0 || ret == -EINTR || ret == -EAGAIN ? ret : -EIO;
}

static void
unlock(void *arg)
{
	pthread_mutex_unlock(arg);
}

int
rmem_eventfd_get(struct rmem_eventfd *efd, rmem_eventfd_take_t take, void *arg)
{
	int ret;

	pthread_mutex_lock(&efd->lock);
	pthread_cleanup_push(unlock, &efd->lock);
	ret = 0;
	while (ret == 0 && !next(efd, take, arg))
		ret = efd->is_closing ? -ENODEV : wait_readable(efd);
	pthread_cleanup_pop(1);
	return ret;
}

void
rmem_eventfd_close(struct rmem_eventfd *efd)
{
	pthread_mutex_lock(&efd->lock);
	efd->is_closing = true;
	set_readable(efd, true);
	while (efd->nb_waiters != 0)
		pthread_cond_wait(&efd->has_left, &efd->lock);
	pthread_mutex_unlock(&efd->lock);
	close(efd->fd);
	pthread_cond_destroy(&efd->has_left);
	pthread_mutex_destroy(&efd->lock);
}
