/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The requester's half of direct access (rsoft_direct.h): a WRITE or READ of RC is executed with
 * process_vm_writev() or process_vm_readv(), without a packet and without the CPU of the target.
 *
 * - It is the oldest request, and no packet of the QP is in flight, so that requests are executed
 *   in the order posted. It has no PSN.
 * - All that the grants of the target do not permit, and each copy that fails, is a packet: the
 *   target alone decides whether a request fails.
 * - A packet whose request could have been executed directly, with a grant, requests that.
 *
 * The process is that of the connection of the channel: it proves itself by a value at an address,
 * and the connection is found alive at most RWIRE_DIRECT_CHECK_US earlier. If the kernel permits
 * no access, all requests of the channel are packets. They are too if the process has another user,
 * which could name any process and memory of this user for its own.
 */

#ifndef RWIRE_DIRECT_H
#define RWIRE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "../rsoft_direct.h"

#define RWIRE_DIRECT_CHECK_US 20

/* The process at the other end of a channel. */
struct rwire_link {
	pid_t pid;       /* 0: of another namespace or user */
	uint32_t used;   /* bit n: inside[n] is in use; the channel is not closed then; atomic */
	bool is_proven;  /* atomic */
	bool is_refused; /* by the kernel, or the process is another one; atomic */
};

/* A channel during one direct access; see rwire_port_ops::tx_direct. */
struct rwire_direct {
	struct rwire_link *link;
	struct rsoft_direct *shared;
	uint32_t i; /* of inside[] */
};

enum rwire_direct_result {
	RWIRE_DIRECT_DONE = 0,
	RWIRE_DIRECT_ASK,   /* there is no grant */
	RWIRE_DIRECT_RETRY, /* all of inside[] are in use */
	RWIRE_DIRECT_NO,
};

/* How the next request of a QP is expected to be executed. */
enum rwire_direct_state {
	RWIRE_DIRECT_UNKNOWN = 0,
	RWIRE_DIRECT_ASKED,  /* a packet requested a grant */
	RWIRE_DIRECT_WORKS,  /* the last one was executed directly */
	RWIRE_DIRECT_FAILED, /* the request for a grant had no effect */
};

/* The range that a request accesses. */
struct rwire_range {
	uint32_t qp_num; /* of the target */
	uint32_t rkey;
	uint64_t addr;
	uint32_t right; /* RMEM_ACCESS_REMOTE_READ or _WRITE */
};

/* A channel to a process, of a user, that the kernel names. */
void rwire_direct_connect(struct rwire_link *link, pid_t pid, uint32_t uid);

/* Begin, on a channel that is connected; under tx_lock. DONE: end it by rwire_direct_end(). */
enum rwire_direct_result rwire_direct_begin(
		struct rwire_link *link, struct rsoft_direct *shared, struct rwire_direct *direct);
void rwire_direct_end(const struct rwire_direct *direct);

/* Copy length bytes between the range and iov. */
enum rwire_direct_result rwire_direct_copy(const struct rwire_direct *direct,
		const struct rwire_range *range, const struct iovec *iov, uint32_t nb_iov,
		uint64_t length);

/* Wait until no thread uses the channel, before it is closed. Under tx_lock. */
void rwire_direct_wait(struct rwire_link *link);

#endif /* RWIRE_DIRECT_H */
