/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Sockets of XRC domains; see rwire_xrc_socket.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred, O_PATH */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rmem_dev.h>
#include <rmem_driver.h>

#include "../../base/rsoft.h"
#include "../../base/rsoft_fork.h"
#include "rwire_xrc_socket.h"

#define BACKLOG 64

static socklen_t
get_name(const struct rmem_xrcd *xrcd, char kind, uint32_t number, struct sockaddr_un *un)
{
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	/* Starts with a zero byte: an abstract name. Fits, because names of devices are short. */
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
			"rmem-xrc/%s/%" PRIx64 ":%" PRIx64 "/%c%x",
			kind != RWIRE_XRC_SRQ ? rmem_obj_dev(&xrcd->obj)->name : "", xrcd->file[0],
			xrcd->file[1], kind, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int
make_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Whether the other end of a connection is of this user. */
static bool
is_own_user(int fd)
{
	struct ucred owner;
	socklen_t size = sizeof(owner);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 &&
			owner.uid == geteuid();
}

int
rwire_xrc_socket_listen(const struct rmem_xrcd *xrcd, char kind, uint32_t number)
{
	struct sockaddr_un un;
	socklen_t len = get_name(xrcd, kind, number, &un);
	int err, fd = make_socket();

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&un, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	if (err == EADDRINUSE)
		return -EADDRINUSE;
	RSOFT_LOG(ERR, "XRC domain: socket @%s: %s", un.sun_path + 1, strerror(err));
	return -ENOMEM;
}

int
rwire_xrc_socket_connect(const struct rmem_xrcd *xrcd, char kind, uint32_t number)
{
	struct sockaddr_un un;
	socklen_t len = get_name(xrcd, kind, number, &un);
	int err, fd = make_socket();

	if (fd < 0)
		return -ENFILE;
	if (connect(fd, (const struct sockaddr *)&un, len) == 0) {
		if (is_own_user(fd))
			return fd;
		err = ECONNREFUSED;
	} else {
		err = errno == EAGAIN ? EAGAIN : ECONNREFUSED;
	}
	close(fd);
	return -err;
}

int
rwire_xrc_socket_accept(int listener)
{
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	int fd = accept4(listener, (struct sockaddr *)&un, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -ENFILE : -EAGAIN;
	if (is_own_user(fd))
		return fd;
	close(fd);
	return -EPERM;
}

void
rwire_xrc_socket_unwatch(int epoll, int *fd)
{
	int state;

	if (*fd < 0)
		return;
	state = rsoft_fork_begin();
	/* Children of programs of DPDK keep a copy: it would stay watched, and connected. */
	(void)epoll_ctl(epoll, EPOLL_CTL_DEL, *fd, NULL);
	(void)shutdown(*fd, SHUT_RDWR);
	close(*fd);
	*fd = -1;
	rsoft_fork_end(state);
}

bool
rwire_xrc_socket_exists(const struct rmem_xrcd *xrcd, uint32_t nb)
{
	uint32_t slot;
	int fd, state;

	for (slot = 0; slot < nb; slot++) {
		state = rsoft_fork_begin();
		fd = rwire_xrc_socket_connect(xrcd, RWIRE_XRC_HANDLE, slot);
		if (fd >= 0)
			close(fd);
		rsoft_fork_end(state);
		/* Nothing accepts these connections: with -EAGAIN the backlog is full. */
		if (fd >= 0 || fd == -EAGAIN)
			return true;
	}
	return false;
}

bool
rwire_xrc_socket_is_file(const struct rmem_xrcd *xrcd, int passed)
{
	struct stat st;
	int flags;

	if (passed < 0 || fstat(passed, &st) != 0 || st.st_dev != xrcd->file[0] ||
			st.st_ino != xrcd->file[1])
		return false;
	flags = fcntl(passed, F_GETFL);
	return flags >= 0 && (flags & O_PATH) == 0;
}
