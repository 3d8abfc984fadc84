/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Ports of rdma_cm, with the rules of the kernel (cma_check_port() in
 * drivers/infiniband/core/cma.c).
 *
 * Among the processes of one host, a port is held by names of the abstract namespace. The kernel
 * keeps these per network namespace and removes them with their process:
 *
 *   rmem_rdma_cm/PS/PORT                   held by the first ID of a port
 *   rmem_rdma_cm/PS/PORT/b/FLAGS/IP/...    an ID that the program has bound
 *   rmem_rdma_cm/PS/PORT/l/ADDRESS         an ID that listens
 *   rmem_rdma_cm/PS/PORT/lock              held while an ID is bound to a chosen port
 *
 * The IDs of a port are found in /proc/net/unix. An ID that is bound by a connection holds only the
 * first name. With --ip the process alone has the address of its device, so only its own IDs are
 * checked.
 *
 * Invariant: bind() to a name is atomic, and fails if a process holds it. So the holder of the
 * first name owns a free port; IDs that share a port or choose one are added under its lock name.
 * Invariant: an ID holds its names from rcm_port_claim() to rcm_port_close(). port_name is the name
 * of names[RCM_NAME_ID], or empty. A claim that fails leaves no name.
 */

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define IS_IPV6   1u /* flags in the name of a bound ID */
#define IS_AFONLY 2u
#define IS_REUSE  4u

#define LOCK_NS (UINT64_C(1) << 30) /* the holder of the lock may be a stopped process */

/* Result of a search for the IDs of a port. */
struct found {
	uint32_t nb;   /* IDs that a program has bound */
	bool is_first; /* the first name is held */
	int conflict;  /* 0, or a negative errno: one of them conflicts */
};

static uint32_t
flags_of(const struct rcm_id *id)
{
	return (id->src.family == AF_INET6 ? IS_IPV6 : 0) | (id->is_afonly ? IS_AFONLY : 0) |
			(id->is_reuse ? IS_REUSE : 0);
}

static bool
is_any(uint32_t flags, const uint8_t *ip)
{
	const struct rcm_addr addr = {.family = flags & IS_IPV6 ? AF_INET6 : AF_INET};
	struct rcm_addr copy = addr;

	memcpy(copy.ip, ip, sizeof(copy.ip));
	return rcm_is_any(&copy);
}

/* Check two IDs of a port for a conflict: 0 or a negative errno. */
static int
conflict(uint32_t flags, const uint8_t *ip, uint32_t other_flags, const uint8_t *other_ip)
{
	bool is_other_family = ((flags ^ other_flags) & IS_IPV6) != 0;

	if ((flags & other_flags & IS_REUSE) != 0)
		return 0;
	if ((flags & other_flags & IS_AFONLY) != 0 && is_other_family)
		return 0;
	if (is_any(flags, ip) || is_any(other_flags, other_ip))
		return -EADDRNOTAVAIL;
	return !is_other_family && memcmp(ip, other_ip, 16) == 0 ? -EADDRINUSE : 0;
}

/* Read an unsigned number from a file in /proc/sys. */
static unsigned int
sysctl_get(const char *path, unsigned int *second, unsigned int otherwise)
{
	FILE *f = fopen(path, "re");
	unsigned int first = otherwise;
	char line[64], *end;

	if (f == NULL)
		return otherwise;
	if (fgets(line, sizeof(line), f) != NULL) {
		first = (unsigned int)strtoul(line, &end, 10);
		if (second != NULL)
			*second = (unsigned int)strtoul(end, NULL, 10);
	}
	fclose(f);
	return first;
}

static bool
may_use(uint16_t port)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (port >= sysctl_get("/proc/sys/net/ipv4/ip_unprivileged_port_start", NULL, 1024))
		return true;
	return syscall(SYS_capget, &head, data) == 0 &&
			(data[0].effective & (1u << CAP_NET_BIND_SERVICE)) != 0;
}

static int
format(const struct rcm_id *id, uint16_t port, char *name, const char *rest)
{
	return snprintf(name, RCM_MAX_NAME, "rmem_rdma_cm/%04x/%u%s", id->ps, port, rest);
}

/* Hold a name; return the socket, or a negative errno. */
static int
hold(const char *name)
{
	int fd = rcm_sock_open(), ret;

	if (fd < 0)
		return -errno;
	if (rcm_name_bind(fd, name) == 0)
		return fd;
	ret = -errno;
	rcm_close(fd);
	return ret;
}

static void
format_ip(const uint8_t *ip, char *text)
{
	size_t i;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", ip[i]);
}

/* Parse 32 hex digits. Any process can create such a name, so check it. */
static bool
parse_ip(const char *text, uint8_t *ip)
{
	char digits[3] = "";
	size_t i;

	if (strspn(text, "0123456789abcdef") != 32)
		return false;
	for (i = 0; i < 16; i++) {
		memcpy(digits, text + 2 * i, 2);
		ip[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return true;
}

/* Check a line of /proc/net/unix for an ID of the port, other than the one with the name own. */
static void
find_in(const char *line, const char *port_name, const char *own, uint32_t flags, const uint8_t *ip,
		struct found *found)
{
	const char *at = strchr(line, '@');
	size_t len = strlen(port_name);
	uint32_t other_flags;
	uint8_t other_ip[16];
	char *end;

	if (at == NULL || strncmp(at + 1, port_name, len) != 0)
		return;
	if (at[1 + len] == '\n') {
		found->is_first = true;
		return;
	}
	if (strncmp(at + 1 + len, "/b/", 3) != 0)
		return;
	other_flags = (uint32_t)strtoul(at + 1 + len + 3, &end, 16);
	if (*end != '/' || !parse_ip(end + 1, other_ip) || end[1 + 32] != '/')
		return;
	if (own[0] != '\0' && strncmp(at + 1, own, strlen(own)) == 0)
		return;
	found->nb++;
	if (found->conflict == 0)
		found->conflict = conflict(flags, ip, other_flags, other_ip);
}

static void
find(const struct rcm_id *id, uint16_t port, uint32_t flags, struct found *found)
{
	char name[RCM_MAX_NAME], *line = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/net/unix", "re");

	memset(found, 0, sizeof(*found));
	if (f == NULL)
		return;
	format(id, port, name, "");
	while (getline(&line, &size, f) > 0)
		find_in(line, name, id->port_name, flags, id->src.ip, found);
	free(line);
	fclose(f);
}

/* Check the IDs of this process. */
static void
find_own(const struct rcm_id *id, uint16_t port, uint32_t flags, struct found *found)
{
	const struct rcm_id *other;

	memset(found, 0, sizeof(*found));
	for (other = rcm_id_by_port(port); other != NULL; other = LIST_NEXT(other, of_port)) {
		if (other == id || other->ps != id->ps || other->src.port != port)
			continue;
		found->nb++;
		if (found->conflict == 0)
			found->conflict =
					conflict(flags, id->src.ip, flags_of(other), other->src.ip);
	}
}

/* Hold the name of an ID that the program binds. */
static int
hold_id(struct rcm_id *id, uint16_t port)
{
	char rest[64], ip[33];
	uint64_t number = 0;
	int fd;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = rcm_now() ^ (uint64_t)getpid() << 32;
	format_ip(id->src.ip, ip);
	snprintf(rest, sizeof(rest), "/b/%x/%s/%016" PRIx64, flags_of(id), ip, number);
	format(id, port, id->port_name, rest);
	fd = hold(id->port_name);
	if (fd < 0) {
		id->port_name[0] = '\0';
		return fd;
	}
	rcm_name_keep(&id->names[RCM_NAME_ID], fd);
	return 0;
}

/* Hold the first name of a port, so that no connection chooses the port. Others connect to it to
 * learn the user of the port; connections are never accepted. */
static int
hold_first(struct rcm_id *id, uint16_t port)
{
	char name[RCM_MAX_NAME];
	int fd;

	format(id, port, name, "");
	fd = hold(name);
	if (fd >= 0) {
		(void)listen(fd, SOMAXCONN);
		rcm_name_keep(&id->names[RCM_NAME_PORT], fd);
	}
	return fd >= 0 ? 0 : fd;
}

/* Lock a port among the processes of the host. Return a descriptor that unlocks the port when
 * closed; -ERESTART to run the command again later; or another negative errno without the lock. */
static int
lock_port(struct rcm_id *id, uint16_t port)
{
	uint64_t now = rcm_now();
	char name[RCM_MAX_NAME];
	int fd;

	format(id, port, name, "/lock");
	fd = hold(name);
	if (fd == -EADDRINUSE && id->lock_limit_ns == 0)
		id->lock_limit_ns = now + LOCK_NS;
	if (fd == -EADDRINUSE && now < id->lock_limit_ns)
		return -ERESTART;
	id->lock_limit_ns = 0;
	return fd;
}

/* Whether this user holds the first name. If not, another user could listen at an address of the
 * port, which check_owner() in rcm_link.c could not distinguish. */
static bool
is_owner(const struct rcm_id *id, uint16_t port)
{
	char name[RCM_MAX_NAME];
	uid_t user = 0;

	format(id, port, name, "");
	return rcm_name_user(name, &user) == 0 && user == geteuid();
}

/* Bind to a port chosen by the program, possibly with other flags if the ID is bound already. */
static int
claim(struct rcm_id *id, uint16_t port, uint32_t flags)
{
	struct found found;
	int lock, ret;

	lock = lock_port(id, port);
	if (lock == -ERESTART)
		return lock;
	find(id, port, flags, &found);
	ret = found.conflict;
	/* A connection holds the port without an address of its own. */
	if (ret == 0 && found.nb == 0 && found.is_first && id->port_name[0] == '\0')
		ret = -EADDRNOTAVAIL;
	if (ret == 0 && found.is_first && (flags & IS_REUSE) == 0 && rcm_is_any(&id->src) &&
			!is_owner(id, port))
		ret = -EADDRNOTAVAIL;
	if (ret == 0)
		ret = hold_id(id, port);
	if (ret == 0 && !found.is_first)
		(void)hold_first(id, port);
	if (lock >= 0)
		rcm_close(lock);
	return ret;
}

static int
claim_any(struct rcm_id *id, uint16_t port, bool is_implicit)
{
	char name[RCM_MAX_NAME];
	int ret;

	if (is_implicit) {
		format(id, port, name, "");
		ret = hold(name);
		if (ret >= 0)
			rcm_sock_take(id, ret);
		return ret >= 0 ? 0 : ret;
	}
	ret = hold_first(id, port);
	return ret == 0 ? hold_id(id, port) : ret;
}

/* Bind to a free port in the range of ephemeral ports. */
static int
claim_free(struct rcm_id *id, bool is_host, bool is_implicit, uint16_t *port)
{
	unsigned int last = 60999, first, nb, i, start;
	struct found found;
	int ret = -EADDRINUSE;

	first = sysctl_get("/proc/sys/net/ipv4/ip_local_port_range", &last, 32768);
	if (first < 1 || last > UINT16_MAX || first > last)
		return -EADDRNOTAVAIL;
	nb = last - first + 1;
	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) != sizeof(start))
		start = (unsigned int)getpid();
	for (i = 0; i < nb && ret == -EADDRINUSE; i++) {
		*port = (uint16_t)(first + (start % nb + i) % nb);
		if (is_host) {
			ret = claim_any(id, *port, is_implicit);
			continue;
		}
		find_own(id, *port, flags_of(id), &found);
		ret = found.nb == 0 ? 0 : -EADDRINUSE;
	}
	return ret == -EADDRINUSE ? -EADDRNOTAVAIL : ret;
}

void
rcm_port_close(struct rcm_id *id)
{
	unsigned int i;

	rcm_sock_drop(id);
	for (i = 0; i < RCM_NB_NAMES; i++)
		rcm_name_close(&id->names[i]);
	id->port_name[0] = '\0';
}

int
rcm_port_claim(struct rcm_id *id, bool is_implicit)
{
	uint16_t port = id->src.port;
	struct found found;
	int ret;

	if (port != 0 && !may_use(port))
		return -EACCES;
	/* Default for the address family, as for sockets. */
	if (!id->has_afonly)
		id->is_afonly = id->src.family == AF_INET ||
				sysctl_get("/proc/sys/net/ipv6/bindv6only", NULL, 0) != 0;
	if (port == 0) {
		ret = claim_free(id, rcm_has_links(id), is_implicit, &port);
	} else if (rcm_has_links(id)) {
		ret = claim(id, port, flags_of(id));
	} else {
		find_own(id, port, flags_of(id), &found);
		ret = found.conflict;
	}
	if (ret != 0) {
		rcm_port_close(id);
		return ret;
	}
	id->src.port = port;
	rcm_id_add_port(id);
	return 0;
}

int
rcm_port_unshare(struct rcm_id *id)
{
	uint32_t flags = flags_of(id) & ~IS_REUSE;
	struct rcm_name before = id->names[RCM_NAME_ID];
	struct found found;
	int ret;

	if (!id->is_reuse)
		return 0;
	if (!rcm_has_links(id)) {
		find_own(id, id->src.port, flags, &found);
		ret = found.conflict;
		id->is_reuse = ret != 0;
		return ret;
	}
	id->is_reuse = false;
	ret = claim(id, id->src.port, flags);
	id->is_reuse = ret != 0;
	if (ret == 0)
		rcm_name_close(&before);
	return ret;
}

int
rcm_port_reopen(struct rcm_id *id)
{
	rcm_sock_drop(id);
	if (rcm_has_links(id) && id->port_name[0] == '\0')
		return claim_any(id, id->src.port, true);
	return 0;
}

void
rcm_port_owner_name(const struct rcm_id *id, uint16_t port, char *name)
{
	format(id, port, name, "");
}

void
rcm_listener_name(const struct rcm_id *id, const struct rcm_addr *addr, enum rcm_scope scope,
		char *name)
{
	char rest[64], ip[33] = "any";

	if (scope == RCM_SCOPE_ADDR)
		format_ip(addr->ip, ip);
	snprintf(rest, sizeof(rest), "/l/%s%s",
			scope == RCM_SCOPE_DUAL                   ? ""
					: addr->family == AF_INET ? "4"
								  : "6",
			ip);
	format(id, addr->port, name, rest);
}
