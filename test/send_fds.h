/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A message on a Unix socket with descriptors (SCM_RIGHTS). */

#ifndef SEND_FDS_H
#define SEND_FDS_H

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_FDS 2

/* As send(), with nb copies of the descriptor, at most MAX_FDS. */
static inline ssize_t
send_fds(int fd, const void *data, size_t len, int flags, int passed, size_t nb)
{
	union {
		struct cmsghdr align;
		char buffer[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control = {0};
	const int fds[MAX_FDS] = {passed, passed};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (nb != 0) {
		msg.msg_control = control.buffer;
		msg.msg_controllen = CMSG_SPACE(nb * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(nb * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, nb * sizeof(int));
	}
	return sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
}

#endif /* SEND_FDS_H */
