/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * File descriptors of channels: an eventfd whose value is 1 while the channel has events, else 0.
 * A channel changes it under its lock.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rmem_priv.h"

int
rmem_eventfd_open(const struct rmem_obj *obj, int *fd)
{
	*fd = eventfd(0, EFD_CLOEXEC);
	if (*fd < 0)
		return RMEM_FAIL(ENOMEM, "%s: eventfd(): %s", rmem_obj_dev(obj)->name,
				strerror(errno));
	return 0;
}

/* The callers hold locks, so it is no cancellation point. */
void
rmem_eventfd_set(int fd, bool is_readable)
{
	uint64_t value = 1;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (is_readable)
		(void)!write(fd, &value, sizeof(value));
	else
		(void)!read(fd, &value, sizeof(value));
	pthread_setcancelstate(state, NULL);
}

int
rmem_eventfd_wait(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0)
		return -EAGAIN;
	if (poll(&pollfd, 1, -1) < 0)
		return errno == EINTR ? -EINTR : -EIO;
	return 0;
}
