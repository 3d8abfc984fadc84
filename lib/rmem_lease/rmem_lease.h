/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Leases: temporary access of a peer to one buffer.
 *
 * A grant creates an rkey that is valid for exactly one buffer and the requested rights. A
 * revocation invalidates the rkey, and returns the buffer only when no access through the rkey
 * is possible any more. Both use the send queue in bursts, without a system call.
 *
 * A context is created on a QP and is used by the thread that uses the QP. Its requests share the
 * send queue with the application, and their completions are in the send CQ of the QP:
 * rmem_lease_poll() polls the CQ without returning them. The upper 16 bits of their wr_id are
 * RMEM_LEASE_WR_ID; requests of the application on that QP must not use this value.
 *
 * Life of a lease: rmem_lease_grant() creates it. rmem_lease_revoke(), its deadline, the peer's
 * RMEM_WR_SEND_WITH_INV or a failure ends it. rmem_lease_reclaim() returns each ended lease once.
 * Then its buffer can be reused, and the lease belongs to the context.
 */

#ifndef RMEM_LEASE_H
#define RMEM_LEASE_H

#include <stdint.h>
#include <stdio.h>

#include <rte_memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_lease_ctx;
struct rmem_mr;
struct rmem_qp;
struct rmem_send_wr;
struct rmem_wc;

/** Upper 16 bits of the wr_id of a context's requests. No user-space pointer has this value. */
#define RMEM_LEASE_WR_ID UINT64_C(0x6c73)
/** Maximum number of leases per rmem_lease_prepare(). */
#define RMEM_LEASE_MAX_PREPARED 64
/** Default of rmem_lease_conf::max_leases. */
#define RMEM_LEASE_DEFAULT_MAX 1024
/** Maximum of rmem_lease_conf::max_leases. */
#define RMEM_LEASE_MAX (UINT32_C(1) << 20)
/** Default of rmem_lease_conf::quarantine_us. */
#define RMEM_LEASE_DEFAULT_QUARANTINE_US 10000

/** Backends of leases. */
enum rmem_lease_backend {
	RMEM_LEASE_AUTO = 0,     /**< The first of the following that the device supports. */
	RMEM_LEASE_FAST_REG = 1, /**< Fast-register MRs: RMEM_WR_REG_MR. */
	RMEM_LEASE_MW = 2,       /**< Memory windows of type 2B: RMEM_WR_BIND_MW. */
	RMEM_LEASE_UMR = 3,      /**< Indirect keys: RMEM_WR_UMR. */
};

/** States of a lease. */
enum rmem_lease_state {
	RMEM_LEASE_FREE = 0,     /**< Not in use: it belongs to the context. */
	RMEM_LEASE_PREPARED = 1, /**< Has an rkey; waits for rmem_lease_post(). */
	RMEM_LEASE_GRANTING = 2, /**< Posted: usable by the peer after requests posted later. */
	RMEM_LEASE_GRANTED = 3,  /**< Completed: valid for any request. */
	RMEM_LEASE_REVOKING = 4, /**< Being revoked: the peer may still access the buffer. */
	RMEM_LEASE_LOST = 5,     /**< A request failed; rmem_lease_recover() ends the lease. */
	RMEM_LEASE_ENDED = 6,    /**< The peer has no access; not reclaimed yet. */
};

/** Reasons of the end of a lease. */
enum rmem_lease_end {
	RMEM_LEASE_END_NONE = 0,     /**< Not ended. */
	RMEM_LEASE_END_REVOKED = 1,  /**< By rmem_lease_revoke(). */
	RMEM_LEASE_END_EXPIRED = 2,  /**< Its deadline passed. */
	RMEM_LEASE_END_PEER_INV = 3, /**< The peer invalidated its rkey. */
	RMEM_LEASE_END_FAILED = 4,   /**< By rmem_lease_recover(), for another reason. */
};

/** Reasons to refuse a buffer, in the order of the checks. */
enum rmem_lease_refusal {
	RMEM_LEASE_REFUSAL_NONE = 0,      /**< Not refused. */
	RMEM_LEASE_REFUSAL_NO_MR = 1,     /**< EINVAL: mr is not an MR. */
	RMEM_LEASE_REFUSAL_MR_TYPE = 2,   /**< EINVAL: not of rmem_mr_reg() or a similar call. */
	RMEM_LEASE_REFUSAL_MR_STATE = 3,  /**< EINVAL: the MR is disabled or has failed. */
	RMEM_LEASE_REFUSAL_PD = 4,        /**< EINVAL: an MR of another PD than the QP. */
	RMEM_LEASE_REFUSAL_RANGES = 5,    /**< EINVAL: an MR over several ranges, or implicit. */
	RMEM_LEASE_REFUSAL_LENGTH = 6,    /**< EINVAL: 0, or over max_length. */
	RMEM_LEASE_REFUSAL_OUTSIDE = 7,   /**< EINVAL: outside of the MR. */
	RMEM_LEASE_REFUSAL_PAGE = 8,      /**< EINVAL: in the page at address 0, in a page list. */
	RMEM_LEASE_REFUSAL_ACCESS = 9,    /**< EINVAL: no right, or a right that is not remote. */
	RMEM_LEASE_REFUSAL_RESERVED = 10, /**< EINVAL: a reserved field is not zero. */
	RMEM_LEASE_REFUSAL_FD = 11,       /**< EOPNOTSUPP: a window over an MR of RMEM_MR_FD. */
	RMEM_LEASE_REFUSAL_QP_RIGHT = 12, /**< EPERM: the QP lacks a right. */
	RMEM_LEASE_REFUSAL_MW_BIND = 13,  /**< EPERM: the MR of a window lacks MW_BIND. */
	RMEM_LEASE_REFUSAL_LOCAL_WRITE = 14, /**< EPERM: the MR lacks LOCAL_WRITE. */
	RMEM_LEASE_REFUSAL_RELEASED = 15,    /**< EINVAL: the MR is being deregistered. */
	RMEM_LEASE_REFUSAL_NB,               /**< Number of values; grows. */
};

/**
 * Lease.
 *
 * Read-only for applications. It is valid from the grant until the first grant after
 * rmem_lease_reclaim() has returned it.
 */
struct rmem_lease {
	uint64_t id;              /**< Number, unique in the context. */
	void *addr;               /**< First byte of the buffer. */
	uint64_t remote_addr;     /**< Address of the first byte in requests of peers. */
	void *user;               /**< rmem_lease_req::user. */
	uint64_t deadline;        /**< TSC at which it expires, or 0. */
	const struct rmem_mr *mr; /**< rmem_lease_req::mr. */
	uint32_t length;          /**< Bytes of the buffer. */
	uint32_t rkey;            /**< Key for the requests of peers. */
	uint32_t access;          /**< Rights of the peer, of RMEM_ACCESS_REMOTE. */
	uint8_t state;            /**< One of enum rmem_lease_state. */
	uint8_t end;              /**< One of enum rmem_lease_end. */
	uint16_t pad;             /**< Zero. */
};

/** A buffer to lease. The caller zeroes it first. */
struct rmem_lease_req {
	/**
	 * MR of the buffer, of rmem_mr_reg() or a similar call in the PD of the QP.
	 *
	 * The lease holds a reference: the MR cannot be deregistered or re-registered before the
	 * lease is reclaimed. Windows need an MR with RMEM_ACCESS_MW_BIND and without RMEM_MR_FD;
	 * rights to modify need RMEM_ACCESS_LOCAL_WRITE.
	 */
	const struct rmem_mr *mr;
	void *addr;        /**< First byte of the buffer. No alignment needed. */
	uint32_t length;   /**< Bytes, 1 to rmem_lease_conf::max_length. */
	uint32_t access;   /**< Bitwise OR of rights in RMEM_ACCESS_REMOTE, at least one. */
	uint64_t deadline; /**< TSC (rte_rdtsc()) at which the lease expires; 0 for never. */
	void *user;        /**< Value of the application, returned in rmem_lease::user. */
	uint64_t reserved; /**< Zero. */
};

/** Configuration of a context. The caller zeroes it first. */
struct rmem_lease_conf {
	uint32_t backend;       /**< One of enum rmem_lease_backend. */
	uint32_t max_leases;    /**< Leases and quarantined keys, up to RMEM_LEASE_MAX; 0 for
			      *  RMEM_LEASE_DEFAULT_MAX. */
	uint32_t min_leases;    /**< Keys allocated at creation and kept, 0 to max_leases. */
	uint32_t max_length;    /**< Bytes of the largest buffer, at least 1. */
	uint32_t quarantine_us; /**< Quarantine of a key with all tags used, up to 1 hour; 0 for
				 *   RMEM_LEASE_DEFAULT_QUARANTINE_US. */
	int socket_id;          /**< NUMA socket of its memory, SOCKET_ID_ANY for any. */
	uint32_t flags;         /**< No flag is defined: 0. */
	uint32_t pad;           /**< Zero. */
	const char *name;       /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	uint64_t reserved[1];   /**< Zero. */
};

/** Statistics of a context since its creation. */
struct rmem_lease_stats {
	uint64_t granted;            /**< Leases granted. */
	uint64_t revoked;            /**< Leases ended by rmem_lease_revoke(). */
	uint64_t expired;            /**< Leases ended by their deadline. */
	uint64_t peer_invs;          /**< Leases ended by the peer: LOCAL_INVs saved. */
	uint64_t failed;             /**< Leases ended only by a failure. */
	uint64_t local_invs;         /**< LOCAL_INVs posted. */
	uint64_t quarantines;        /**< Quarantines of keys. */
	uint64_t quarantine_refused; /**< Grants cut short: remaining keys quarantined. */
	uint64_t queue_full;         /**< Posts cut short by a full send queue. */
	uint64_t keys_allocated;     /**< Keys allocated. */
	uint64_t keys_trimmed;       /**< Keys released by rmem_lease_trim(). */
	uint64_t keys_replaced;      /**< Keys released by rmem_lease_recover(). */
	uint64_t refused;        /**< Buffers refused: -EINVAL, -EPERM and -EOPNOTSUPP of grants. */
	uint32_t backend;        /**< One of enum rmem_lease_backend, never AUTO. */
	uint32_t nb_keys;        /**< Current number of keys. */
	uint32_t nb_leases;      /**< Leases granted and not yet reclaimed. */
	uint32_t nb_free;        /**< Keys available for grants. */
	uint32_t nb_quarantined; /**< Quarantined keys. */
	uint32_t peak_keys;      /**< Maximum number of keys. */
	uint32_t peak_leases;    /**< Maximum number of leases. */
	uint32_t min_keys;       /**< rmem_lease_conf::min_leases. */
	uint32_t last_refusal;   /**< Enum rmem_lease_refusal of the last buffer refused. */
	uint32_t pad;            /**< Zero. */
	uint64_t reserved[3];    /**< Zero. */
};

/**
 * Create a context for leases on a QP.
 *
 * The QP cannot be destroyed before the context. Its send queue should have entries for all
 * grants and revocations between two polls, in addition to requests of the application.
 *
 * Control path: allocates memory and keys. Safe to call from any thread.
 *
 * @param qp
 *   QP in any state. Its rmem_qp_conf::access limits what can be granted.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] ctx
 *   The new context. Written only on success. Release it with rmem_lease_ctx_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, NULL conf or ctx, an unknown backend or flag, a number out of
 *     range, a max_length beyond the page lists of the device, a reserved field that is not
 *     zero, an XRC_RECV QP, or a QP that is being destroyed.
 *   - -EOPNOTSUPP: the device lacks the capability for the backend, or for all of them.
 *   - -ENOSPC: the device has too few MRs or windows left for min_leases.
 *   - -ENOMEM: no memory for the context or its keys.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_lease_ctx_create(struct rmem_qp *qp, const struct rmem_lease_conf *conf,
		struct rmem_lease_ctx **ctx);

/**
 * Destroy a context and release its keys.
 *
 * Control path. Once for each context; no other thread may use the QP.
 *
 * @param ctx
 *   Context to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a context.
 *   - -EBUSY: leases were not reclaimed; the log has their number. Or the peer ended a lease, and
 *     the completion of its grant was not polled yet; not if the QP is in RESET.
 *   - -EIO: the device failed to release a key. Other keys may have been released; the context
 *     remains usable with the remaining keys, and can be destroyed again.
 */
int rmem_lease_ctx_destroy(struct rmem_lease_ctx *ctx);

/**
 * Grant leases: post the requests that make their rkeys valid.
 *
 * The last request is signaled, and as many before it as needed to keep unsignaled requests from
 * filling the send queue.
 *
 * The peer may use the rkey in answer to requests posted to the QP later, such as a SEND with the
 * rkey. An application that sends the rkey in another way must wait for RMEM_LEASE_GRANTED.
 *
 * Allocates keys, which is slow, if more leases are in use than ever before and more than
 * rmem_lease_conf::min_leases.
 *
 * Refused buffers are counted in rmem_lease_stats::refused, and the reason of the last one is
 * rmem_lease_stats::last_refusal; the first for each reason is logged.
 *
 * If the send queue accepts only some of the requests, the last leases may stay GRANTING until the
 * next grant or revocation completes. The peer may use them like any lease, after requests posted
 * later.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param ctx
 *   Context to grant from.
 * @param req
 *   nb buffers; not needed after the call.
 * @param nb
 *   Number of buffers; 0 is allowed.
 * @param[out] lease
 *   Array of nb leases; undefined beyond the number returned.
 *
 * @return
 *   Number of leases granted, up to the first buffer refused. If the first buffer is refused:
 *   - -EINVAL: NULL ctx or not a context, a reserved field that is not zero, an MR that is NULL,
 *     not of rmem_mr_reg() or a similar call, not valid, over several ranges, of another PD or
 *     being deregistered, a buffer outside of it, or in the page at address 0 of a page list, a
 *     length out of range, no right, or an unknown one.
 *   - -EPERM: the QP lacks the right for its peer, the MR lacks RMEM_ACCESS_MW_BIND for a
 *     window, or LOCAL_WRITE for a right to modify.
 *   - -EOPNOTSUPP: a window cannot be bound to an MR of RMEM_MR_FD.
 *   - -ENOSPC: the send queue is full, max_leases are in use or quarantined, or the device has no
 *     key left.
 *   - -ENOMEM: no memory for another key.
 *   - -EBUSY: the QP is in the RESET state, or prepared leases wait for rmem_lease_post().
 *   - -ENODEV: the device is being closed, or was closed.
 *   - -EIO: the device failed to allocate another key.
 */
int rmem_lease_grant(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease);

/**
 * Prepare leases: assign their rkeys without posting requests.
 *
 * rmem_lease_post() then posts the grants and the request that announces them to the peer in one
 * call.
 *
 * Fast path, for the thread that uses the QP; see rmem_lease_grant().
 *
 * @param ctx
 *   Context to grant from.
 * @param req
 *   nb buffers; not needed after the call.
 * @param nb
 *   Number of buffers; 0 is allowed.
 * @param[out] lease
 *   Array of nb leases; undefined beyond the number returned.
 *
 * @return
 *   Number of leases prepared, at most RMEM_LEASE_MAX_PREPARED in total. If none:
 *   - -EINVAL, -EPERM, -EOPNOTSUPP, -ENOMEM, -ENODEV, -EIO: as rmem_lease_grant().
 *   - -ENOSPC: as rmem_lease_grant(), or RMEM_LEASE_MAX_PREPARED leases wait for rmem_lease_post().
 */
int rmem_lease_prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease);

/**
 * Post the grants of the prepared leases, followed by requests of the application.
 *
 * If the send queue accepts only some of the grants, the others stay prepared, and no request of
 * the application is posted. Call it again after a poll.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param ctx
 *   Context of the prepared leases.
 * @param wr
 *   nb_wr requests of the application, such as a SEND with the rkeys; not needed after the call.
 * @param nb_wr
 *   Number of requests; 0 is allowed.
 *
 * @return
 *   Number of requests accepted, as rmem_post_send(); 0 with nb_wr 0. Or:
 *   - -EINVAL: NULL ctx or not a context, or rmem_post_send() refuses the first request.
 *   - -ENOSPC: the send queue is full.
 *   - -EOPNOTSUPP, -EBUSY, -ENODEV: as rmem_post_send().
 */
int rmem_lease_post(struct rmem_lease_ctx *ctx, const struct rmem_send_wr *wr, uint16_t nb_wr);

/**
 * Revoke leases: post the invalidations of their rkeys.
 *
 * The invalidations are signaled like grants. If the send queue is full, a later poll posts the
 * rest. Only completions free entries: a queue full of unsignaled requests of the application has
 * no free entry before a signaled request completes.
 *
 * A lease that is being revoked or has ended is skipped, so that a lease that has just expired may
 * be passed.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param ctx
 *   Context of the leases.
 * @param lease
 *   nb leases that were not reclaimed.
 * @param nb
 *   Number of leases; 0 is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL ctx or not a context, or an element of lease is not a lease of ctx, or
 *     was reclaimed; no lease was revoked.
 */
int rmem_lease_revoke(struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint16_t nb);

/**
 * Poll the send CQ of the QP: rmem_poll_cq() followed by rmem_lease_process_wcs().
 *
 * Fast path, for the thread that uses the QP and its CQs.
 *
 * @param ctx
 *   Context on the QP.
 * @param[out] wc
 *   Array of nb_wc completions.
 * @param nb_wc
 *   Maximum number; 0 is allowed and only makes progress.
 *
 * @return
 *   Number of completions of the application, or:
 *   - -EINVAL: NULL ctx or not a context, or the calling thread is not registered with EAL.
 *   - -EIO, -ENODEV: as rmem_poll_cq().
 */
int rmem_lease_poll(struct rmem_lease_ctx *ctx, struct rmem_wc *wc, uint16_t nb_wc);

/**
 * Process the completions of a context among all completions of a CQ.
 *
 * Also revokes overdue leases, and posts revocations that a full send queue deferred.
 *
 * For applications that call rmem_poll_cq(): with a CQ shared by several QPs, once for each
 * context; or with a separate receive CQ, where RMEM_WC_WITH_INV reports that the peer ended a
 * lease. Such a completion remains for the application.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param ctx
 *   Context on the QP.
 * @param[in,out] wc
 *   nb_wc completions. Those of the context are removed; all others move to the front, in order.
 * @param nb_wc
 *   Number of completions; 0 is allowed.
 *
 * @return
 *   Number of remaining completions, or:
 *   - -EINVAL: NULL ctx or not a context.
 */
int rmem_lease_process_wcs(struct rmem_lease_ctx *ctx, struct rmem_wc *wc, uint16_t nb_wc);

/**
 * Reclaim leases that have ended.
 *
 * No access through their rkeys is possible any more: the buffers can be reused, freed or leased
 * again. The leases may be read until the next grant.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param ctx
 *   Context of the leases.
 * @param[out] lease
 *   Array of nb leases; undefined beyond the number returned.
 * @param nb
 *   Size of the array.
 *
 * @return
 *   Number of leases written, or:
 *   - -EINVAL: NULL ctx or not a context.
 */
int rmem_lease_reclaim(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint16_t nb);

/**
 * Look up a lease by its number, for example one received from a peer.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param ctx
 *   Context of the lease; NULL is allowed and returns NULL.
 * @param id
 *   rmem_lease::id, or any number.
 *
 * @return
 *   The lease, or NULL if no lease has that number, or it was reclaimed.
 */
struct rmem_lease *rmem_lease_lookup(const struct rmem_lease_ctx *ctx, uint64_t id);

/**
 * End all leases of a QP that was reset, and replace their keys.
 *
 * The result of the requests in the send queue of a failed QP is unknown. Therefore every key in
 * use is released, so that it is no longer valid, and replaced. All leases end and must be
 * reclaimed; completions from before the reset are ignored.
 *
 * Control path: as slow as registering. For the thread that uses the QP.
 *
 * @param ctx
 *   Context of a QP in the RESET state (rmem_qp_reset()).
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a context.
 *   - -EBUSY: the QP is not in the RESET state.
 *   - -EIO: the device failed to release a key; its lease has not ended. The call can be
 *     repeated.
 */
int rmem_lease_recover(struct rmem_lease_ctx *ctx);

/**
 * Release keys not needed since the previous call.
 *
 * rmem_lease_conf::min_leases keys are kept. Call it periodically, such as once a minute from a
 * timer; the period determines the age of released keys.
 *
 * Control path: as slow as deregistering. For the thread that uses the QP.
 *
 * @param ctx
 *   Context of the keys.
 *
 * @return
 *   Number of keys released, or:
 *   - -EINVAL: NULL or not a context.
 *   - -EIO: the device failed to release a key, which is no longer used.
 */
int rmem_lease_trim(struct rmem_lease_ctx *ctx);

/**
 * Get the statistics of a context.
 *
 * Not an atomic snapshot: sums may be off by a few leases.
 *
 * Control path. Safe to call from any thread.
 *
 * @param ctx
 *   Context of the leases.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a context, or NULL stats.
 */
int rmem_lease_stats_get(const struct rmem_lease_ctx *ctx, struct rmem_lease_stats *stats);

/**
 * Get the human-readable name of a reason to refuse a buffer.
 *
 * Safe to call from any thread.
 *
 * @param refusal
 *   rmem_lease_stats::last_refusal.
 *
 * @return
 *   Its name without the prefix, such as "MW_BIND", or "unknown"; static.
 */
const char *rmem_lease_refusal_str(uint32_t refusal);

/**
 * Print the properties and statistics of a context.
 *
 * Includes the oldest lease and the number of leases by MR, as telemetry reports them.
 *
 * Control path. Safe to call from any thread.
 *
 * @param ctx
 *   Context to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a context, or NULL f.
 *   - -ENOMEM: no memory for the text.
 */
int rmem_lease_ctx_dump(const struct rmem_lease_ctx *ctx, FILE *f);

/**
 * Get the name of a context.
 *
 * Control path. Safe to call from any thread.
 *
 * @param ctx
 *   Context; NULL is allowed.
 *
 * @return
 *   rmem_lease_conf::name, valid while the context exists; "" without one, and if ctx is not a
 *   context.
 */
const char *rmem_lease_ctx_name(const struct rmem_lease_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_LEASE_H */
