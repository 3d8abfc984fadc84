/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Direct access: peers in other processes of this host copy from and to the memory of keys
 * themselves, with process_vm_readv() and process_vm_writev(). This is the part of the process that
 * owns the keys, which alone decides; the requester's part is wire/port/rwire_copy.h.
 *
 * The owner grants a peer of one of its QPs what rsoft_access() would permit with an rkey, as a
 * struct rsoft_grant in memory that both map. Only contiguous memory of a key without RSOFT_SLOW is
 * granted. All other requests, and all that fail, are sent as packets, which the owner executes.
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
 * - A copy only accesses the address space of the owner. After exec(), and in another process that
 *   has got its pid, the address of the sentinel is not mapped, except with a probability of one in
 *   2^33 for each page between 2^45 and 2^46, where the kernel itself places none.
 * - No copy begins while a peer has no sentinel. The owner unmaps the sentinel of a peer whose
 *   thread is stopped inside (SIGSTOP, ptrace). If the thread is stopped after that, it is not
 *   within a system call, and no later call of it passes the sentinel, so it is not waited for. The
 *   peer gets another sentinel when none of its threads is inside.
 * - A valid grant has a key whose word has not changed since, and a QP that accepts requests with
 *   its rights: each grace period revokes the other grants, after the last lcore has left that may
 *   grant with the old word, and waits for requesters inside with an earlier token.
 * - The owner only reads inside[] of the shared memory: a peer that writes wrong values there
 *   delays grace periods. Grants are given only to processes of the same user, to which the kernel
 *   permits the same accesses anyway.
 * - A requester that has ended is not waited for: its connection ends after its last access.
 */

#ifndef RSOFT_GRANT_H
#define RSOFT_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "../base/rsoft.h"

#define RSOFT_GRANT_WAYS  4u
#define RSOFT_GRANT_SETS  64u
#define RSOFT_GRANT_FILES 16u
/* Size of the file with the word that the kernel changes. */
#define RSOFT_GRANT_ALIVE_SIZE 4096u
/* Maximum number of threads of a requester that copy at the same time. */
#define RSOFT_GRANT_THREADS 8u

/* A grant: the bytes [iova, iova + length) of an rkey are at base in the owner's process. */
struct rsoft_grant {
	uint32_t version; /* odd while it changes; atomic, and so are all fields */
	uint32_t rights;  /* RMEM_ACCESS_REMOTE_READ and _WRITE; 0: no grant */
	uint32_t qp_num;  /* number of the owner's QP */
	uint32_t rkey;
	uint64_t iova;
	uint64_t length;
	uint64_t base;
	uint64_t file_id; /* file that has the memory, and may be mapped; 0: none */
	uint64_t file_offset;
} __rte_aligned(64);

/* A file of granted memory; its index is id modulo RSOFT_GRANT_FILES. All fields are atomic. */
struct rsoft_grant_file {
	uint64_t id; /* 0: none; not used again */
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	uint32_t fd; /* of the owner */
} __rte_aligned(64);

struct rsoft_grant_inside {
	uint64_t token; /* 0: outside; atomic */
	uint32_t tid;   /* thread inside; set before token, atomic */
} __rte_aligned(64);

/* Shared memory; all bytes are initially zero. */
struct rsoft_grants {
	/* Written by the owner; atomic. */
	uint64_t token;                /* token of the last grace period; 0: nothing was granted */
	uint64_t sentinel;             /* address of the sentinel; 0: none. Loaded before grants */
	uint64_t files_ended;          /* number of files that have no grant any more */
	struct rsoft_grant_file alive; /* the word that the kernel changes when the owner ends */
	struct rsoft_grant_file file[RSOFT_GRANT_FILES];
	struct rsoft_grant grant[RSOFT_GRANT_SETS * RSOFT_GRANT_WAYS];
	/* Written by the requester. */
	struct rsoft_grant_inside inside[RSOFT_GRANT_THREADS];
} __rte_aligned(64);

/* A peer that may access memory directly; for the owner. */
struct rsoft_grant_peer;

/*
 * Start granting to the peer of a connection. shared is kept mapped by the caller; fd is the
 * connection, which ends with the peer. NULL: no memory.
 */
struct rsoft_grant_peer *rsoft_grant_open(
		const struct rsoft_dev *dev, struct rsoft_grants *shared, int fd);

/* Revoke all grants of a peer that has ended. */
void rsoft_grant_close(struct rsoft_grant_peer *peer);

/* Close all peers of a device. */
void rsoft_grant_close_all(const struct rsoft_dev *dev);

/*
 * Grant the peer of a QP of this process the access that a key permits, if it permits any and can
 * be granted. From inside of rsoft_grace_enter().
 */
void rsoft_grant_add(struct rsoft_grant_peer *peer, struct rsoft_qp *qp, uint32_t rkey);

/* First of the entries that may hold the grant for an rkey. */
static inline struct rsoft_grant *
rsoft_grant_set(struct rsoft_grants *grants, uint32_t qp_num, uint32_t rkey)
{
	/* Hash the bits of the rkey that are the slot, and the bits of QP numbers that differ in a
	 * process. */
	uint32_t hash = (rkey >> 8) * UINT32_C(0x9e3779b1) + qp_num * UINT32_C(0x85ebca6b);

	return &grants->grant[(size_t)(hash >> 26) % RSOFT_GRANT_SETS * RSOFT_GRANT_WAYS];
}

#endif /* RSOFT_GRANT_H */
