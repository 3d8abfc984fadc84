/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * File descriptors of channels: an eventfd whose value is 0 while the channel has no event.
 *
 * A channel changes it under its lock. A waiter reads it without the lock, and then restores it. So
 * the value may be 0 already when a channel sets it to 0: that read must not wait, with or without
 * O_NONBLOCK, which the program sets. This needs RWF_NOWAIT (Linux 5.8); on older kernels waiters
 * poll.
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

int
rmem_eventfd_open(const struct rmem_obj *obj, int *fd)
{
	*fd = eventfd(0, EFD_CLOEXEC);
	if (*fd < 0)
		return RMEM_FAIL(ENOMEM, "%s: eventfd(): %s", rmem_obj_dev(obj)->name,
				strerror(errno));
	__atomic_store_n(&has_nowait, try_read(*fd) < 0 && errno == EAGAIN, __ATOMIC_RELAXED);
	return 0;
}

/* The callers hold locks, so it is no cancellation point. */
void
rmem_eventfd_set(int fd, bool is_readable, bool has_waiters)
{
	uint64_t value = 1;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (is_readable)
		(void)!write(fd, &value, sizeof(value));
	else if (has_waiters && __atomic_load_n(&has_nowait, __ATOMIC_RELAXED))
		(void)!try_read(fd);
	else
		(void)!read(fd, &value, sizeof(value));
	pthread_setcancelstate(state, NULL);
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

/* As libibverbs does: the kernel restarts a read after a handler with SA_RESTART. */
int
rmem_eventfd_wait(int fd, void (*restore)(void *arg), void *arg)
{
	uint64_t value;
	int ret;

	pthread_cleanup_push(restore, arg);
	if (!__atomic_load_n(&has_nowait, __ATOMIC_RELAXED))
		ret = wait_by_poll(fd);
	else
		ret = read(fd, &value, sizeof(value)) >= 0 ? 0 : -errno;
	pthread_cleanup_pop(1);
	return ret == 0 || ret == -EINTR || ret == -EAGAIN ? ret : -EIO;
}
