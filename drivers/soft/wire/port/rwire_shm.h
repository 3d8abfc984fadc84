/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Channels of port=shm: a ring in a memfd from one device to another, and the socket that passed
 * it.
 *
 * The sender of packets creates the memfd and passes it, in a struct shm_hello, over a connection
 * to the socket of the receiver. The abstract name of that socket contains the name of the port and
 * the receiver's address, and ends with its process. The connection stays open: a byte on it is a
 * doorbell, a struct shm_region passes memory that the receiver may map (rwire_region.h), a struct
 * shm_hello from the receiver is a refusal, and its end is the end of either process.
 *
 * Invariant: a mapped memfd has the size of a ring and can't shrink, so no access to it raises
 * SIGBUS. Both processes belong to one user, as the kernel reports it or, with ip=host (name
 * SHM_HOST), the sender of packets holds the name of the address that it claims.
 */

#ifndef RWIRE_SHM_H
#define RWIRE_SHM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../codec/rwire_addr.h"
#include "rwire_owner.h"
#include "rwire_ring.h"

/* Version of the ring and the messages; a change of either needs another number. */
#define SHM_VERSION  8
#define SHM_MAX_NAME 31
/* Minimum and maximum number of channels of a device in each direction (rwire_shm_users_open()). */
#define SHM_MIN_PEERS 64
#define SHM_MAX_PEERS 4096
#define SHM_LOST      (-2) /* a descriptor was passed, but the process has no free number */
/* Name for ip=host; not a valid name in port=. */
#define SHM_HOST "*"

/* Reasons of a refusal. */
enum shm_reason {
	SHM_OK = 0,
	SHM_BAD_VERSION,
	SHM_BAD_USER,
	SHM_BAD_MEMORY,
	SHM_NO_SPACE,
	SHM_NO_FILES,
	SHM_REASON_NB,
};

/* First message of a connection, or a refusal. The first three fields are the same in all
 * versions. */
struct shm_hello {
	char magic[8];
	uint32_t version;
	uint32_t reason; /* enum shm_reason; SHM_OK from the sender of packets */
	uint8_t gid[16]; /* GID of the sender of this message */
};

/* A region of the sender of packets; sent with the descriptor of its file. */
struct shm_region {
	uint32_t id;
	uint32_t reserved;
	uint64_t size;
};

/* A user, with the number of its channels in one direction. */
struct shm_user {
	uint32_t uid;
	uint32_t nb_channels;
};

/*
 * Users of a device's channels in one direction. A user other than the device's own can't have more
 * channels than remain free, so no user can take all.
 */
struct shm_users {
	struct shm_user *user;
	uint32_t nb;
	uint32_t nb_free; /* free channels */
};

/* Send a message with a descriptor, or none (-1); false: try later, or the peer has ended. */
bool rwire_shm_send(int fd, const void *message, size_t len, int passed);

/*
 * Receive a message. Return its length, 0 at the end, or a negative errno; and its descriptor, -1
 * if there is none, or SHM_LOST.
 */
ssize_t rwire_shm_recv(int fd, void *message, size_t size, int *memory, bool *is_truncated);

/* Text of a reason from a peer; any value is allowed. */
const char *rwire_shm_reason_text(int reason);

/* Whether a name is 1 to SHM_MAX_NAME letters, digits, '.', '_' or '-'. */
bool rwire_shm_name_is_valid(const char *name);

/*
 * Set the number of free channels to a quarter of the descriptors that this process may open, at
 * least SHM_MIN_PEERS and at most SHM_MAX_PEERS.
 */
void rwire_shm_users_open(struct shm_users *users);
void rwire_shm_users_close(struct shm_users *users);

/* Count a channel of a user. False: the user has its share, or no memory. */
bool rwire_shm_users_add(struct shm_users *users, uint32_t uid);
void rwire_shm_users_remove(struct shm_users *users, uint32_t uid);

/* Listen at name and address; return a descriptor, or an errno as of rwire_port_shm_open();
 * logged. */
int rwire_shm_listen(const char *name, const struct rwire_addr *addr);

/* The user of this process has changed: report the new one to connecting peers. */
void rwire_shm_listen_as(int listener);

/* Listen as SHM_HOST at addr, whose LID is free on this host; like rwire_shm_listen(). */
int rwire_shm_listen_host(struct rwire_addr *addr);

/*
 * Create a channel to the device at an address, of the user uid. Return 0, with a reference in
 * owners; or an errno that is not logged: -ECONNREFUSED (no such device), -EPERM (a user that is
 * not admitted has the address), -EAGAIN, -ENOMEM.
 */
int rwire_shm_connect(const char *name, const struct rwire_addr *from, const struct rwire_addr *to,
		int *fd, struct rwire_ring **ring, uint32_t *uid, struct rwire_owners *owners);

/* Process at the other end of a connection; 0: in another PID namespace. */
pid_t rwire_shm_pid(int fd);

/*
 * Accept a connection and get its user. Return a descriptor, -EAGAIN (none waits), -EPERM (user not
 * permitted), or -ENFILE (no descriptor is free).
 */
int rwire_shm_accept(const char *name, int listener, uint32_t *uid);

/*
 * Whether the peer of a connection may send from the address that it claims; if so, owners has a
 * reference to the address.
 */
bool rwire_shm_may_claim(const char *name, int fd, const struct rwire_addr *addr,
		struct rwire_owners *owners);

/*
 * Receive the ring of an accepted connection. Return SHM_OK, the reason of a refusal, -EAGAIN (try
 * later), or -EPIPE (the peer has ended).
 */
int rwire_shm_receive(int fd, struct rwire_addr *from, struct rwire_ring **ring, uint32_t *version);

/* Pass a region of the sender of packets; false: try later. */
bool rwire_shm_pass_region(int fd, const struct shm_region *region, int memory);

/*
 * Receive a message of the sender of packets. Return its length, 0 at the end, or a negative errno.
 * *memory is the descriptor of a struct shm_region, or -1.
 */
ssize_t rwire_shm_next(int fd, struct shm_region *region, int *memory);

/* Send a refusal to the sender of packets. */
void rwire_shm_refuse(int fd, int reason, const struct rwire_addr *from);

/*
 * Join a multicast group until the descriptor is closed: its name contains group and address.
 * Return the descriptor, -ENOMEM or -EIO.
 */
int rwire_shm_join(const char *name, const struct rwire_addr *addr, const struct rwire_addr *group);

/*
 * Get the members of a group, as their names claim; return their number, up to max. Any process can
 * claim to be a member.
 */
uint32_t rwire_shm_members(const char *name, const struct rwire_addr *group,
		struct rwire_addr *members, uint32_t max);

/*
 * Whether pages of rings are allocated on use. That needs MADV_POPULATE_WRITE, which reports
 * missing memory, and not vm.overcommit_memory=2, with which the reader's first access to a page
 * could raise SIGBUS.
 */
bool rwire_shm_is_lazy(void);

/* Allocate the pages of nb slots that the writer will use; false: no memory. */
bool rwire_shm_populate(struct rwire_ring *ring, uint32_t slot, uint32_t nb);

/* Free the pages of an empty ring; false if that failed. */
bool rwire_shm_trim(struct rwire_ring *ring);

void rwire_shm_unmap(struct rwire_ring *ring);

#endif /* RWIRE_SHM_H */
