/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Channels of port=shm; see rwire_shm.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create(), struct ucred */
#endif
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rmem_pages.h>

#include "../../base/rsoft.h"
#include "rwire_shm.h"

#define SHM_BACKLOG 256
#define SHM_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const char shm_magic[8] = "rmemshm";

union shm_control {
	struct cmsghdr align;
	char buffer[CMSG_SPACE(sizeof(int))];
};

const char *
rwire_shm_reason_text(int reason)
{
	static const char *const texts[SHM_REASON_NB] = {
			[SHM_BAD_VERSION] = "it has another version of port=shm",
			[SHM_BAD_USER] = "an address is of another user",
			[SHM_BAD_MEMORY] = "its memory is not a sealed ring",
			[SHM_NO_SPACE] =
					"all channels are in use, or one user has its share of them",
			[SHM_NO_FILES] = "its process or host has no file descriptor left",
	};

	return reason > 0 && reason < SHM_REASON_NB ? texts[reason] : "it sent no valid reason";
}

bool
rwire_shm_name_is_valid(const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && strchr("._-", name[i]) == NULL)
			return false;
	}
	return len != 0 && len <= SHM_MAX_NAME;
}

void
rwire_shm_users_open(struct shm_users *users)
{
	struct rlimit limit = {.rlim_cur = 0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	*users = (struct shm_users){
			.nb_free = (uint32_t)RTE_MIN(RTE_MAX(limit.rlim_cur / 4, SHM_MIN_PEERS),
					(rlim_t)SHM_MAX_PEERS)};
}

void
rwire_shm_users_close(struct shm_users *users)
{
	free(users->user);
	users->user = NULL;
}

static struct shm_user *
users_find(const struct shm_users *users, uint32_t uid)
{
	uint32_t i;

	for (i = 0; i < users->nb; i++) {
		if (users->user[i].uid == uid)
			return &users->user[i];
	}
	return NULL;
}

bool
rwire_shm_users_add(struct shm_users *users, uint32_t uid)
{
	struct shm_user *user = users_find(users, uid);
	uint32_t nb_used = user == NULL ? 0 : user->nb_channels;

	if (users->nb_free <= (uid == geteuid() ? 0 : nb_used))
		return false;
	if (user == NULL) {
		user = reallocarray(users->user, users->nb + 1, sizeof(*user));
		if (user == NULL)
			return false;
		users->user = user;
		user += users->nb++;
		*user = (struct shm_user){.uid = uid};
	}
	user->nb_channels++;
	users->nb_free--;
	return true;
}

void
rwire_shm_users_remove(struct shm_users *users, uint32_t uid)
{
	struct shm_user *user = users_find(users, uid);

	users->nb_free++;
	if (--user->nb_channels == 0)
		*user = users->user[--users->nb];
}

static socklen_t
shm_sockaddr(const char *name, const struct rwire_addr *addr, struct sockaddr_un *un)
{
	char text[RWIRE_ADDR_TEXT];
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	/* Starts with a zero byte: an abstract name, which is not a file and ends with its
	 * socket. */
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "rmem-shm/%s/%s", name,
			rwire_addr_text(addr, text));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int
shm_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Connect to a name; return 0 with the credentials of its process, or an errno. */
static int
shm_reach(int fd, const char *name, const struct rwire_addr *addr, struct ucred *owner)
{
	socklen_t size = sizeof(*owner), len;
	struct sockaddr_un un;

	len = shm_sockaddr(name, addr, &un);
	if (connect(fd, (const struct sockaddr *)&un, len) != 0 ||
			getsockopt(fd, SOL_SOCKET, SO_PEERCRED, owner, &size) != 0)
		return -errno;
	return 0;
}

/* Whether processes of that user may be peers. */
static bool
shm_is_permitted(const char *name, const struct ucred *owner)
{
	return owner->uid == geteuid() || strcmp(name, SHM_HOST) == 0;
}

/* Log the process that holds a name. */
static void
shm_log_owner(const char *name, const struct rwire_addr *addr)
{
	char text[RWIRE_ADDR_TEXT];
	struct ucred owner = {0};
	int fd = shm_socket();

	rwire_addr_text(addr, text);
	if (fd >= 0 && shm_reach(fd, name, addr, &owner) == 0)
		RSOFT_LOG(ERR, "port=shm:%s: ip=%s is in use by process %d of user %u", name, text,
				(int)owner.pid, (unsigned int)owner.uid);
	else
		RSOFT_LOG(ERR, "port=shm:%s: ip=%s is in use", name, text);
	if (fd >= 0)
		close(fd);
}

/* Doesn't log -EEXIST. */
static int
shm_try_listen(const char *name, const struct rwire_addr *addr)
{
	struct sockaddr_un un;
	socklen_t len = shm_sockaddr(name, addr, &un);
	int err, fd = shm_socket();

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&un, len) == 0 &&
			listen(fd, SHM_BACKLOG) == 0)
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	if (err == EADDRINUSE)
		return -EEXIST;
	RSOFT_LOG(ERR, "port=shm:%s: no socket: %s", name, strerror(err));
	return err == EACCES || err == EPERM ? -EPERM : -ENOMEM;
}

/* Format the name of a group's members, without their address. */
static size_t
shm_group_name(const char *name, const struct rwire_addr *group, char *text, size_t size)
{
	size_t i;
	int len = snprintf(text, size, "rmem-mc/%s/", name);

	for (i = 0; i < sizeof(group->gid); i++)
		len += snprintf(text + len, size - (size_t)len, "%02x", group->gid[i]);
	len += snprintf(text + len, size - (size_t)len, "/");
	return (size_t)len;
}

int
rwire_shm_join(const char *name, const struct rwire_addr *addr, const struct rwire_addr *group)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char *text = un.sun_path + 1;
	size_t i, size = sizeof(un.sun_path) - 1, len = shm_group_name(name, group, text, size);
	int err, fd = shm_socket();

	for (i = 0; i < sizeof(addr->gid); i++)
		len += (size_t)snprintf(text + len, size - len, "%02x", addr->gid[i]);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&un, (socklen_t)len) == 0)
		return fd;
	err = errno;
	RSOFT_LOG(ERR, "port=shm:%s: multicast group not joined: %s", name, strerror(err));
	if (fd >= 0)
		close(fd);
	return err == EADDRINUSE || err == EACCES ? -EIO : -ENOMEM;
}

/* Parse an address of 32 hexadecimal digits at the end of a line. */
static bool
shm_parse_member(const char *text, struct rwire_addr *addr)
{
	char digits[3] = "", *end;
	size_t i;

	if (strlen(text) != 2 * sizeof(addr->gid) + 1)
		return false;
	for (i = 0; i < sizeof(addr->gid); i++) {
		memcpy(digits, text + 2 * i, 2);
		addr->gid[i] = (uint8_t)strtoul(digits, &end, 16);
		if (end != digits + 2)
			return false;
	}
	return rwire_addr_is_unicast(addr);
}

uint32_t
rwire_shm_members(const char *name, const struct rwire_addr *group, struct rwire_addr *members,
		uint32_t max)
{
	char prefix[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1] = "@", line[512];
	size_t len = 1 + shm_group_name(name, group, prefix + 1, sizeof(prefix) - 1);
	const char *at;
	uint32_t nb = 0;
	FILE *file;

	/* Lists all Unix sockets of the network namespace. */
	file = fopen("/proc/net/unix", "re");
	if (file == NULL)
		return 0;
	while (nb < max && fgets(line, sizeof(line), file) != NULL) {
		at = strchr(line, '@');
		if (at != NULL && strncmp(at, prefix, len) == 0 &&
				shm_parse_member(at + len, &members[nb]))
			nb++;
	}
	fclose(file);
	return nb;
}

int
rwire_shm_listen(const char *name, const struct rwire_addr *addr)
{
	int fd = shm_try_listen(name, addr);

	if (fd == -EEXIST)
		shm_log_owner(name, addr);
	return fd;
}

void
rwire_shm_listen_as(int listener)
{
	/* The kernel reports the user of the last listen() call. */
	(void)listen(listener, SHM_BACKLOG);
}

int
rwire_shm_listen_host(struct rwire_addr *addr)
{
	uint32_t first = (uint32_t)getpid(), i;
	int fd = -EEXIST;

	/* Processes of other PID namespaces may have the same pid. */
	for (i = 0; i < RWIRE_MAX_LID && fd == -EEXIST; i++) {
		rwire_addr_of_lid((uint16_t)((first + i) % RWIRE_MAX_LID + 1), addr);
		fd = shm_try_listen(SHM_HOST, addr);
	}
	if (fd == -EEXIST)
		RSOFT_LOG(ERR, "ip=host: all %u LIDs of this host are in use", RWIRE_MAX_LID);
	return fd;
}

static struct rwire_ring *
shm_map(int fd)
{
	void *map = mmap(
			NULL, sizeof(struct rwire_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return NULL;
	return map;
}

void
rwire_shm_unmap(struct rwire_ring *ring)
{
	if (ring != NULL)
		munmap(ring, sizeof(*ring));
}

/* Whether the kernel may promise more memory than it has. */
static bool
shm_is_overcommitted(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
	int mode = file == NULL ? EOF : fgetc(file);

	if (file != NULL)
		fclose(file);
	return mode == '0' || mode == '1';
}

bool
rwire_shm_is_lazy(void)
{
	static int is_lazy; /* 0: not known yet; atomic */
	int known = __atomic_load_n(&is_lazy, __ATOMIC_RELAXED);

	if (known == 0) {
		known = rmem_pages_can_populate() && shm_is_overcommitted() ? 1 : -1;
		__atomic_store_n(&is_lazy, known, __ATOMIC_RELAXED);
	}
	return known > 0;
}

bool
rwire_shm_populate(struct rwire_ring *ring, uint32_t slot, uint32_t nb)
{
	const struct iovec slots = {&ring->slot[slot], nb * sizeof(ring->slot[0])};
	uintptr_t first, end;

	rmem_pages_of(&slots, &first, &end);
	return !rwire_shm_is_lazy() || rmem_pages_populate(first, end, true) == 0;
}

bool
rwire_shm_trim(struct rwire_ring *ring)
{
	const uintptr_t page = (uintptr_t)getpagesize();
	uintptr_t first = RTE_ALIGN_CEIL((uintptr_t)ring->slot, page);
	uintptr_t end = RTE_ALIGN_FLOOR((uintptr_t)(ring->slot + RWIRE_RING_SLOTS), page);

	return rwire_shm_is_lazy() && madvise((void *)first, end - first, MADV_REMOVE) == 0;
}

/* Create a ring; return its descriptor and mapping, or -ENOMEM. */
static int
shm_create(struct rwire_ring **ring)
{
	int fd = memfd_create("rmem-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -ENOMEM;
	if (ftruncate(fd, sizeof(**ring)) == 0 &&
			(rwire_shm_is_lazy() || posix_fallocate(fd, 0, sizeof(**ring)) == 0) &&
			fcntl(fd, F_ADD_SEALS, SHM_SEALS) == 0) {
		*ring = shm_map(fd);
		if (*ring != NULL)
			return fd;
	}
	close(fd);
	return -ENOMEM;
}

bool
rwire_shm_send(int fd, const void *message, size_t len, int passed)
{
	union shm_control control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (passed >= 0) {
		msg.msg_control = control.buffer;
		msg.msg_controllen = sizeof(control.buffer);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(passed));
		memcpy(CMSG_DATA(cmsg), &passed, sizeof(passed));
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

static struct shm_hello
shm_make_hello(const struct rwire_addr *from, int reason)
{
	struct shm_hello hello = {.version = SHM_VERSION, .reason = (uint32_t)reason};

	memcpy(hello.magic, shm_magic, sizeof(hello.magic));
	memcpy(hello.gid, from->gid, sizeof(hello.gid));
	return hello;
}

/* Create the ring of a connection and pass it. */
static int
shm_pass(int fd, const struct rwire_addr *from, struct rwire_ring **ring)
{
	struct shm_hello hello = shm_make_hello(from, SHM_OK);
	int memory = shm_create(ring);
	bool is_sent;

	if (memory < 0)
		return memory;
	is_sent = rwire_shm_send(fd, &hello, sizeof(hello), memory);
	close(memory);
	if (is_sent)
		return 0;
	rwire_shm_unmap(*ring);
	return -EAGAIN;
}

int
rwire_shm_connect(const char *name, const struct rwire_addr *from, const struct rwire_addr *to,
		int *fd, struct rwire_ring **ring, uint32_t *uid, struct rwire_owners *owners)
{
	struct ucred owner = {0};
	int rc;

	*fd = shm_socket();
	if (*fd < 0)
		return -ENOMEM;
	rc = shm_reach(*fd, name, to, &owner);
	*uid = owner.uid;
	if (rc == 0 &&
			(!shm_is_permitted(name, &owner) ||
					!rwire_owners_admit(owners, to, owner.uid)))
		rc = -EPERM;
	if (rc != 0)
		goto close;
	rc = shm_pass(*fd, from, ring);
	if (rc == 0)
		return 0;
	rwire_owners_put(owners, to);
close:
	close(*fd);
	return rc;
}

pid_t
rwire_shm_pid(int fd)
{
	struct ucred owner = {0};
	socklen_t size = sizeof(owner);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 ? owner.pid : 0;
}

int
rwire_shm_accept(const char *name, int listener, uint32_t *uid)
{
	struct sockaddr_un un;
	socklen_t size = sizeof(struct ucred), len = sizeof(un);
	struct ucred owner;
	int fd = accept4(listener, (struct sockaddr *)&un, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -ENFILE : -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 &&
			shm_is_permitted(name, &owner)) {
		*uid = owner.uid;
		return fd;
	}
	close(fd);
	return -EPERM;
}

bool
rwire_shm_may_claim(const char *name, int fd, const struct rwire_addr *addr,
		struct rwire_owners *owners)
{
	struct ucred peer = {0}, owner = {0};
	socklen_t size = sizeof(peer);
	bool is_owner = false;
	int probe;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	if (peer.uid == geteuid())
		return rwire_owners_admit(owners, addr, peer.uid);
	probe = shm_socket();
	if (probe < 0)
		return false;
	/* A pid of another namespace is reported as 0. */
	if (shm_reach(probe, name, addr, &owner) == 0)
		is_owner = owner.uid == peer.uid && owner.pid == peer.pid;
	close(probe);
	return is_owner && rwire_owners_admit(owners, addr, peer.uid);
}

/* Descriptor passed with a message; -1 if there is not exactly one, or SHM_LOST. */
static int
shm_passed(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	int fd = -1;

	/* The length admits one descriptor; the kernel closes all others and sets MSG_CTRUNC. */
	if (cmsg == NULL || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS ||
			cmsg->cmsg_len != CMSG_LEN(sizeof(fd)))
		return (msg->msg_flags & MSG_CTRUNC) != 0 ? SHM_LOST : -1;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	if ((msg->msg_flags & MSG_CTRUNC) == 0)
		return fd;
	close(fd);
	return -1;
}

ssize_t
rwire_shm_recv(int fd, void *message, size_t size, int *memory, bool *is_truncated)
{
	union shm_control control = {0};
	struct iovec iov = {.iov_base = message, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.buffer,
			/* CMSG_SPACE() has padding, where a second descriptor would fit. */
			.msg_controllen = CMSG_LEN(sizeof(*memory))};
	ssize_t len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	/* The other end closed with unread messages; this is reported once, before its own ones. */
	if (len < 0 && errno == ECONNRESET)
		len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*memory = -1;
	if (len < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	*memory = shm_passed(&msg);
	*is_truncated = (msg.msg_flags & MSG_TRUNC) != 0;
	return len;
}

bool
rwire_shm_pass_region(int fd, const struct shm_region *region, int memory)
{
	return rwire_shm_send(fd, region, sizeof(*region), memory);
}

ssize_t
rwire_shm_next(int fd, struct shm_region *region, int *memory)
{
	bool is_truncated = false;
	ssize_t len = rwire_shm_recv(fd, region, sizeof(*region), memory, &is_truncated);

	if (*memory >= 0 && (len != (ssize_t)sizeof(*region) || is_truncated)) {
		close(*memory);
		*memory = -1;
	}
	return len;
}

/* Map the memory of a peer, if it has the size of a ring and can't shrink. */
static struct rwire_ring *
shm_open_ring(int memory)
{
	struct stat st;
	int seals;

	if (memory < 0 || fstat(memory, &st) != 0 || st.st_size != sizeof(struct rwire_ring))
		return NULL;
	seals = fcntl(memory, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		return NULL;
	return shm_map(memory);
}

static int
shm_check(const struct shm_hello *hello, ssize_t len, bool is_truncated, struct rwire_addr *from)
{
	if (len != (ssize_t)sizeof(*hello) || is_truncated ||
			memcmp(hello->magic, shm_magic, sizeof(shm_magic)) != 0 ||
			hello->version != SHM_VERSION)
		return SHM_BAD_VERSION;
	memcpy(from->gid, hello->gid, sizeof(from->gid));
	return rwire_addr_is_unicast(from) ? SHM_OK : SHM_BAD_VERSION;
}

int
rwire_shm_receive(int fd, struct rwire_addr *from, struct rwire_ring **ring, uint32_t *version)
{
	struct shm_hello hello = {0};
	bool is_truncated = false;
	int memory, rc;
	ssize_t len = rwire_shm_recv(fd, &hello, sizeof(hello), &memory, &is_truncated);

	if (len == -EAGAIN)
		return -EAGAIN;
	*version = hello.version;
	/* An empty message may have a descriptor, too. */
	rc = len <= 0 ? -EPIPE : shm_check(&hello, len, is_truncated, from);
	if (rc == SHM_OK) {
		*ring = shm_open_ring(memory);
		if (*ring == NULL)
			rc = memory == SHM_LOST ? SHM_NO_FILES : SHM_BAD_MEMORY;
	}
	if (memory >= 0)
		close(memory);
	return rc;
}

void
rwire_shm_refuse(int fd, int reason, const struct rwire_addr *from)
{
	struct shm_hello hello = shm_make_hello(from, reason);

	/* The peer may have ended already. */
	(void)rwire_shm_send(fd, &hello, sizeof(hello), -1);
}
