/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Direct access: peers of other processes of this host that copy from and to the memory of keys
 * themselves, with process_vm_readv() and process_vm_writev(). The requester's half is in
 * wire/port/rwire_copy.h. This is the owner's half, the only one that decides.
 *
 * The owner of keys grants one of its QPs' peers what rsoft_access() would permit with an rkey, as
 * a struct rsoft_grant in memory that both map. Only contiguous memory of a key without RSOFT_SLOW
 * is granted. All other requests, and all that fail, are packets, which the owner executes.
 *
 * A requester that copies counts as an lcore inside of a grace section (rsoft_grace.h):
 *
 *   the requester: store the token that it loaded in inside[]; fence; load the grant
 *   the owner:     revoke the grant; store the token; fence; load inside[]
 *
 * A copy first accesses the sentinel: a byte at a random address of the owner, which the kernel
 * accesses in the same call, in the same address space, and before the rest.
 *
 * Invariants:
 * - A copy affects the address space of the owner alone. After exec(), and in another process that
 *   has its pid, the address of the sentinel is not mapped, but by a chance of one in 2^33 for each
 *   page between 2^45 and 2^46, where the kernel itself places none.
 * - No copy begins while a peer has no sentinel. The owner unmaps that of a peer whose thread is
 *   stopped (SIGSTOP, ptrace) inside. If the thread is stopped afterwards, it is not within a
 *   call of the kernel, and no later one of it passes the sentinel: it is not waited for. The peer
 *   gets another sentinel when none of its threads is inside.
 * - A grant that is valid has a key whose word has not changed since, and a QP that responds with
 *   its rights: each grace period revokes the others, after the last lcore left that may grant
 *   with the old word, and waits for the requesters inside with an earlier token.
 * - Of the shared memory only inside[] affects the owner: a peer that writes anything there delays
 *   grace periods. Grants are given to processes of the same user only, which the kernel permits as
 *   much.
 * - A requester that has ended is not waited for: its connection has ended too, after its last
 *   access.
 */

#ifndef RSOFT_GRANT_H
#define RSOFT_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "../base/rsoft.h"

#define RSOFT_GRANT_WAYS 4u
#define RSOFT_GRANT_SETS 64u
/* Threads of a requester that copy at a time. */
#define RSOFT_GRANT_THREADS 8u

/* Bytes [iova, iova + length) of an rkey, which are at base in the process of the owner. */
struct rsoft_grant {
	uint32_t version; /* odd while it changes; atomic, and so are all fields */
	uint32_t rights;  /* RMEM_ACCESS_REMOTE_READ and _WRITE; 0: none */
	uint32_t qp_num;  /* of the owner's QP */
	uint32_t rkey;
	uint64_t iova;
	uint64_t length;
	uint64_t base;
} __rte_aligned(64);

struct rsoft_grant_inside {
	uint64_t token; /* 0: outside; atomic */
	uint32_t tid;   /* of the thread; set before token, atomic */
} __rte_aligned(64);

/* Shared memory, all zero at the start. */
struct rsoft_grants {
	/* Written by the owner; atomic. */
	uint64_t token;    /* of the last grace period; 0: nothing was granted */
	uint64_t sentinel; /* its address; 0: none. Loaded before grants */
	struct rsoft_grant grant[RSOFT_GRANT_SETS * RSOFT_GRANT_WAYS];
	/* Written by the requester. */
	struct rsoft_grant_inside inside[RSOFT_GRANT_THREADS];
} __rte_aligned(64);

/* A peer that may access memory, as its owner sees it. */
struct rsoft_grant_peer;

/*
 * Begin to grant to the peer of a connection, with shared memory that the caller keeps mapped, and
 * whose end is that of the peer: NULL: no memory.
 */
struct rsoft_grant_peer *rsoft_grant_open(
		const struct rsoft_dev *dev, struct rsoft_grants *shared, int fd);

/* Revoke all grants of a peer that has ended. */
void rsoft_grant_close(struct rsoft_grant_peer *peer);

/* Close all peers of a device. */
void rsoft_grant_close_all(const struct rsoft_dev *dev);

/*
 * Grant the peer of a QP of this process the access that a key permits, unless there is none, or it
 * is not one that can be granted. From inside of rsoft_grace_enter().
 */
void rsoft_grant_add(struct rsoft_grant_peer *peer, struct rsoft_qp *qp, uint32_t rkey);

/* The first of the entries that may have the grant for an rkey. */
static inline struct rsoft_grant *
rsoft_grant_set(struct rsoft_grants *grants, uint32_t qp_num, uint32_t rkey)
{
	/* The bits of an rkey that are the slot, and those of a number that differ in a process. */
	uint32_t hash = (rkey >> 8) * UINT32_C(0x9e3779b1) + qp_num * UINT32_C(0x85ebca6b);

	return &grants->grant[(size_t)(hash >> 26) % RSOFT_GRANT_SETS * RSOFT_GRANT_WAYS];
}

#endif /* RSOFT_GRANT_H */
