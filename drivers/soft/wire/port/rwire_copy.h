/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The requester's half of direct access (rsoft_grant.h): a WRITE or READ of RC is executed with
 * process_vm_writev() or process_vm_readv(), without a packet and without the CPU of the target.
 *
 * All that the grants of the target do not permit, and each copy that fails, is a packet: the
 * target alone decides whether a request fails.
 *
 * The process is that of the connection of the channel: each copy accesses its sentinel first. If
 * the kernel permits no access, all requests of the channel are packets. They are too if the
 * process has another user, which could name any process and memory of this user for its own.
 */

#ifndef RWIRE_COPY_H
#define RWIRE_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "../../mem/rsoft_grant.h"

/* The process at the other end of a channel. */
struct rwire_copy_peer {
	pid_t pid;       /* 0: of another namespace or user */
	uint32_t used;   /* bit n: inside[n] is in use; the channel is not closed then; atomic */
	bool is_refused; /* by the kernel, or the process is another one; atomic */
};

/* A channel during one direct access; see rwire_port_ops::tx_direct. */
struct rwire_copy_link {
	struct rwire_copy_peer *peer;
	struct rsoft_grants *shared;
	uint32_t i; /* of inside[] */
};

enum rwire_copy_result {
	RWIRE_COPY_DONE = 0,
	RWIRE_COPY_ASK,   /* there is no grant */
	RWIRE_COPY_RETRY, /* all of inside[] are in use */
	RWIRE_COPY_NO,
};

/* Requests, and their SGEs, that one call of the kernel copies. */
#define RWIRE_COPY_WRS  16
#define RWIRE_COPY_SGES 32

/* Bytes that a request accesses. */
struct rwire_range {
	uint32_t rkey;
	uint64_t addr;
	uint64_t length;
};

/* A copy between ranges of a target, in their order, and local memory. */
struct rwire_copy {
	uint32_t qp_num; /* of the target */
	uint32_t right;  /* RMEM_ACCESS_REMOTE_READ or _WRITE */
	uint32_t nb;
	uint32_t nb_local; /* with the first one, which is for the sentinel */
	uint64_t copied;   /* bytes, as a result */
	struct rwire_range range[RWIRE_COPY_WRS];
	struct iovec local[1 + RWIRE_COPY_SGES];
};

/* A channel to a process, of a user, that the kernel names. */
void rwire_copy_connect(struct rwire_copy_peer *peer, pid_t pid, uint32_t uid);

/* Begin, on a channel that is connected; under tx_lock. DONE: end it by rwire_copy_end(). */
enum rwire_copy_result rwire_copy_begin(struct rwire_copy_peer *peer, struct rsoft_grants *shared,
		struct rwire_copy_link *link);
void rwire_copy_end(const struct rwire_copy_link *link);

/* Copy: DONE, or why the rest was not: ASK (no grant), NO. */
enum rwire_copy_result rwire_copy_run(const struct rwire_copy_link *link, struct rwire_copy *copy);

/* Wait until no thread uses the channel, before it is closed. Under tx_lock. */
void rwire_copy_wait(struct rwire_copy_peer *peer);

#endif /* RWIRE_COPY_H */
