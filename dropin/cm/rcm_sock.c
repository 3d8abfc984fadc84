/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Sockets of the abstract namespace. The program may close them without calling this library.
 *
 * Invariant: a socket is used by its descriptor only after its cookie was compared, because the
 * number may refer to another file.
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "rcm.h"

/* A cookie distinguishes a socket from others that get the same number; 0: not a socket. */
uint64_t
rcm_sock_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

int
rcm_sock_open(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

void
rcm_sock_close(int fd, uint64_t cookie)
{
	if (fd < 0 || rcm_sock_cookie(fd) != cookie)
		return;
	rcm_agent_unwatch(fd);
	/* A child of clone() may still have the socket open. */
	shutdown(fd, SHUT_RDWR);
	rcm_close(fd);
}

void
rcm_sock_leave(int fd, uint64_t cookie)
{
	if (fd >= 0 && rcm_sock_cookie(fd) == cookie)
		rcm_close(fd);
}

void
rcm_sock_take(struct rcm_id *id, int fd)
{
	id->fd = fd;
	id->cookie = fd >= 0 ? rcm_sock_cookie(fd) : 0; /* leaves errno if fd is -1 */
}

void
rcm_sock_drop(struct rcm_id *id)
{
	rcm_sock_close(id->fd, id->cookie);
	id->fd = -1;
}

void
rcm_sock_check(struct rcm_id *id)
{
	if (id->fd >= 0 && rcm_sock_cookie(id->fd) != id->cookie)
		id->fd = -1;
}

static socklen_t
name_of(const char *text, struct sockaddr_un *name)
{
	size_t len = strlen(text);

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* An abstract name starts with a zero byte, and its length ends it. */
	memcpy(name->sun_path + 1, text, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

int
rcm_name_bind(int fd, const char *text)
{
	struct sockaddr_un name;
	socklen_t len = name_of(text, &name);

	return bind(fd, (struct sockaddr *)&name, len);
}

int
rcm_name_connect(int fd, const char *text)
{
	struct sockaddr_un name;
	socklen_t len = name_of(text, &name);

	return connect(fd, (struct sockaddr *)&name, len) == 0 ? 0 : -errno;
}

int
rcm_sock_user(int fd, uid_t *user)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -errno;
	*user = cred.uid;
	return 0;
}

int
rcm_name_user(const char *text, uid_t *user)
{
	int fd = rcm_sock_open(), ret;

	if (fd < 0)
		return -errno;
	ret = rcm_name_connect(fd, text);
	if (ret == 0)
		ret = rcm_sock_user(fd, user);
	rcm_close(fd);
	return ret;
}

void
rcm_name_keep(struct rcm_name *name, int fd)
{
	name->fd = fd;
	name->cookie = rcm_sock_cookie(fd);
}

void
rcm_name_close(struct rcm_name *name)
{
	if (name->cookie != 0)
		rcm_sock_leave(name->fd, name->cookie);
	name->cookie = 0;
}
