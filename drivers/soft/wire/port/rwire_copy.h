/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The requester's part of direct access (rsoft_grant.h): an RC WRITE or READ is executed with
 * process_vm_writev() or process_vm_readv(), without packets and without the CPU of the target.
 *
 * Requests that the target's grants do not permit, and copies that fail, are sent as packets: only
 * the target decides whether a request fails.
 *
 * Invariant: only the process at the other end of the channel is accessed: each copy accesses its
 * sentinel first. All requests of the channel are sent as packets if the kernel permits no access,
 * or if the process has another user, which could name any process and memory of this user as its
 * own.
 */

#ifndef RWIRE_COPY_H
#define RWIRE_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "../../mem/rsoft_grant.h"
#include "rwire_map.h"

/* The process at the other end of a channel. */
struct rwire_copy_peer {
	pid_t pid;       /* 0: in another PID namespace, or of another user */
	uint32_t used;   /* bit n: inside[n] is in use, so the channel stays open; atomic */
	bool is_refused; /* the kernel refused access, or the process has changed; atomic */
	struct rwire_maps maps;
};

/* A channel used for one direct access; see rwire_port_ops::tx_direct. */
struct rwire_copy_link {
	struct rwire_copy_peer *peer;
	struct rsoft_grants *shared;
	uint32_t i; /* index in inside[] */
};

enum rwire_copy_result {
	RWIRE_COPY_DONE = 0,
	RWIRE_COPY_ASK,   /* no grant yet */
	RWIRE_COPY_RETRY, /* all entries of inside[] are in use */
	RWIRE_COPY_NO,
};

/* Maximum number of requests and SGEs per system call. */
#define RWIRE_COPY_WRS  16
#define RWIRE_COPY_SGES 32

/* A range that a request accesses. */
struct rwire_range {
	uint32_t rkey;
	uint64_t addr;
	uint64_t length;
};

/* A copy between ranges of a target, in order, and local memory. */
struct rwire_copy {
	uint32_t qp_num; /* QP of the target */
	uint32_t right;  /* RMEM_ACCESS_REMOTE_READ or _WRITE */
	uint32_t nb;
	uint32_t nb_local; /* including the first one, for the sentinel */
	uint64_t copied;   /* result: bytes copied */
	bool is_mapped;    /* result: without a system call */
	struct rwire_range range[RWIRE_COPY_WRS];
	struct iovec local[1 + RWIRE_COPY_SGES];
};

/* Initialize for a channel to a process and its user, as reported by the kernel. */
void rwire_copy_connect(struct rwire_copy_peer *peer, pid_t pid, uint32_t uid);

/* Start a direct access on a connected channel; under tx_lock. After DONE, call
 * rwire_copy_end(). */
enum rwire_copy_result rwire_copy_begin(struct rwire_copy_peer *peer, struct rsoft_grants *shared,
		struct rwire_copy_link *link);
void rwire_copy_end(const struct rwire_copy_link *link);

/* Copy; return DONE, or the reason why a part was not copied: ASK (no grant) or NO. */
enum rwire_copy_result rwire_copy_run(const struct rwire_copy_link *link, struct rwire_copy *copy);

/* Unmap memory of the target that it does not grant any more. Under tx_lock. */
void rwire_copy_check(struct rwire_copy_peer *peer, const struct rsoft_grants *shared);

/* Wait until no thread uses the channel, before it is closed. Under tx_lock. */
void rwire_copy_wait(struct rwire_copy_peer *peer);

#endif /* RWIRE_COPY_H */
