/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Leases: a key of its own for one buffer, for a while.
 *
 * A grant gives a peer one buffer by an rkey that opens exactly that buffer, for exactly the
 * rights asked for. A revocation takes it away, and hands the buffer back only when no access
 * can reach it any more. Both go through the send queue in bursts, without a system call.
 *
 * A context is made on a QP and belongs to the thread that owns the QP. Its requests share the
 * send queue with those of the application, and their completions come from the QP's send CQ:
 * rmem_lease_poll() is rmem_poll_cq() without them. They are known by their wr_id, whose upper
 * 16 bits are RMEM_LEASE_WR_ID: no request of the application on that QP may have those.
 *
 * Life of a lease: rmem_lease_grant() makes it; rmem_lease_revoke(), its deadline, the peer's
 * RMEM_WR_SEND_WITH_INV or a failure ends it; rmem_lease_take_ended() returns it, once, however
 * it ended. Then its buffer can be used again, and the lease belongs to the context.
 */

#ifndef RMEM_LEASE_H
#define RMEM_LEASE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_lease_ctx;
struct rmem_mr;
struct rmem_qp;
struct rmem_send_wr;
struct rmem_wc;

/** Upper 16 bits of the wr_id of a context's requests. No address of a process has them. */
#define RMEM_LEASE_WR_ID UINT64_C(0x6c73)
/** Leases that one rmem_lease_prepare() makes at most. */
#define RMEM_LEASE_MAX_PREPARED 64
/** Leases that a context has when its configuration says 0. */
#define RMEM_LEASE_DEFAULT_MAX 1024
/** Most leases that a context can have. */
#define RMEM_LEASE_MAX (UINT32_C(1) << 20)
/** Microseconds that a key rests before its tags come again when the configuration says 0. */
#define RMEM_LEASE_DEFAULT_QUARANTINE_US 10000

/** What a lease is made of. */
enum rmem_lease_backend {
	RMEM_LEASE_AUTO = 0,     /**< The first of the following that the device can do. */
	RMEM_LEASE_FAST_REG = 1, /**< Fast-register MRs: RMEM_WR_REG_MR. */
	RMEM_LEASE_MW = 2,       /**< Memory windows of type 2B: RMEM_WR_BIND_MW. */
	RMEM_LEASE_UMR = 3,      /**< Indirect keys: RMEM_WR_UMR. */
};

/** Where a lease is in its life. */
enum rmem_lease_state {
	RMEM_LEASE_FREE = 0,     /**< No lease: it belongs to the context. */
	RMEM_LEASE_PREPARED = 1, /**< Has its rkey; waits for rmem_lease_post(). */
	RMEM_LEASE_GRANTING = 2, /**< Posted: opens for requests that the QP sends from now on. */
	RMEM_LEASE_GRANTED = 3,  /**< Completed: opens for any request. */
	RMEM_LEASE_REVOKING = 4, /**< Being revoked: the peer may still reach the buffer. */
	RMEM_LEASE_LOST = 5,     /**< A request failed; rmem_lease_recover() ends it. */
	RMEM_LEASE_ENDED = 6,    /**< The peer can't reach the buffer; not taken yet. */
};

/** How a lease ended. */
enum rmem_lease_end {
	RMEM_LEASE_END_NONE = 0,     /**< It has not. */
	RMEM_LEASE_END_REVOKED = 1,  /**< By rmem_lease_revoke(). */
	RMEM_LEASE_END_EXPIRED = 2,  /**< Its deadline passed. */
	RMEM_LEASE_END_PEER_INV = 3, /**< The peer invalidated its rkey. */
	RMEM_LEASE_END_FAILED = 4,   /**< By rmem_lease_recover(), without any of these. */
};

/**
 * A lease. Applications read all but what is private and write none of it. It is valid from the
 * grant until the first grant after rmem_lease_take_ended() returned it.
 */
struct rmem_lease {
	uint64_t id;              /**< Of this lease, unlike all others of the context. */
	void *addr;               /**< First byte of the buffer. */
	uint64_t remote_addr;     /**< The same in the requests of peers. */
	void *user;               /**< rmem_lease_req::user. */
	uint64_t deadline;        /**< TSC when it expires, or 0. */
	const struct rmem_mr *mr; /**< rmem_lease_req::mr. */
	uint32_t length;          /**< Bytes of the buffer. */
	uint32_t rkey;            /**< Key for the requests of peers. */
	uint32_t access;          /**< Rights of the peer, of RMEM_ACCESS_REMOTE. */
	uint8_t state;            /**< One of enum rmem_lease_state. */
	uint8_t end;              /**< One of enum rmem_lease_end. */
	uint16_t pad;             /**< Zero. */
};

/** A buffer to lease. */
struct rmem_lease_req {
	/**
	 * MR that holds the buffer, made by rmem_mr_reg() and its kin in the PD of the QP. The
	 * lease holds it: it can't be deregistered or re-registered before the lease was taken
	 * back. Windows need RMEM_ACCESS_MW_BIND of it, and memory that is not of RMEM_MR_FD;
	 * rights to modify need RMEM_ACCESS_LOCAL_WRITE.
	 */
	const struct rmem_mr *mr;
	void *addr;        /**< First byte of the buffer. No alignment needed. */
	uint32_t length;   /**< Bytes, 1 to rmem_lease_conf::max_length. */
	uint32_t access;   /**< Bitwise OR of rights in RMEM_ACCESS_REMOTE, at least one. */
	uint64_t deadline; /**< TSC (rte_rdtsc()) from which it is overdue; 0 for never. */
	void *user;        /**< Of the application; for rmem_lease::user. */
};

/** What a context shall be. The caller zeroes it first. */
struct rmem_lease_conf {
	uint32_t backend;    /**< One of enum rmem_lease_backend. */
	uint32_t max_leases; /**< Leases at a time, with resting keys, up to RMEM_LEASE_MAX; 0 for
			      *  RMEM_LEASE_DEFAULT_MAX. */
	uint32_t min_leases; /**< Keys made at once and kept for good, 0 to max_leases. */
	uint32_t max_length; /**< Bytes of the largest buffer, at least 1. */
	uint32_t quarantine_us; /**< Rest of a key whose tags were all used, up to one hour; 0 for
				 *   RMEM_LEASE_DEFAULT_QUARANTINE_US. */
	int socket_id;          /**< NUMA socket of its memory, SOCKET_ID_ANY for any. */
	uint32_t flags;         /**< No flag is defined: 0. */
	uint32_t reserved;      /**< Zero. */
};

/** Figures of a context since it was created. */
struct rmem_lease_stats {
	uint64_t granted;      /**< Leases granted. */
	uint64_t revoked;      /**< Leases that ended by rmem_lease_revoke(). */
	uint64_t expired;      /**< Leases that ended by their deadline. */
	uint64_t peer_invs;    /**< Leases that the peer ended: LOCAL_INVs saved. */
	uint64_t failed;       /**< Leases that ended by a failure alone. */
	uint64_t local_invs;   /**< LOCAL_INVs posted. */
	uint64_t quarantines;  /**< Times that a key came to rest. */
	uint64_t rest_refused; /**< Grants cut short while keys rested and there were no others. */
	uint64_t queue_full;   /**< Posts cut short by a full send queue. */
	uint64_t made;         /**< Keys made. */
	uint64_t aged;         /**< Keys released by rmem_lease_age(). */
	uint64_t replaced;     /**< Keys released by rmem_lease_recover(). */
	uint64_t refused;      /**< Buffers refused: -EINVAL, -EPERM and -EOPNOTSUPP of grants. */
	uint32_t backend;      /**< One of enum rmem_lease_backend, never AUTO. */
	uint32_t nb_keys;      /**< Keys there are. */
	uint32_t nb_leases;    /**< Leases that were granted and not taken back. */
	uint32_t nb_free;      /**< Keys ready to be granted. */
	uint32_t nb_resting;   /**< Keys in quarantine. */
	uint32_t peak_keys;    /**< Most keys at a time. */
	uint32_t peak_leases;  /**< Most leases at a time. */
	uint32_t min_keys;     /**< rmem_lease_conf::min_leases. */
};

/**
 * Create a context for leases on a QP.
 *
 * The QP can't be destroyed before the context. It should have room for as many send requests
 * as are granted and revoked between two polls, beside those of the application.
 *
 * Control path: allocates memory and keys. Safe to call from any thread.
 *
 * @param qp
 *   QP in any state. Its rmem_qp_conf::access limits what can be granted.
 * @param conf
 *   What it shall be; not needed after the call.
 * @param[out] ctx
 *   The new context. Written only on success. Release it with rmem_lease_ctx_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a QP, NULL conf or ctx, an unknown backend or flag, a number out of
 *     range, a max_length that no page list of the device covers, a reserved field that is not
 *     zero, or a QP that is being destroyed.
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
 * Control path. Not while another thread uses the QP; once for each context.
 *
 * @param ctx
 *   Context to release; not valid any more on success. NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a context.
 *   - -EBUSY: leases were not taken back; the log counts them. Or the peer ended a lease, and
 *     the completion of its grant was not polled yet.
 *   - -EIO: the device failed to release a key. The others may be released; the context goes
 *     on with what it has left, and can be destroyed again.
 */
int rmem_lease_ctx_destroy(struct rmem_lease_ctx *ctx);

/**
 * Grant leases: post what opens their rkeys, one after the other, the last request signaled, and
 * so many before it that they can't fill the send queue alone.
 *
 * A lease opens for what the peer does in answer to requests that were posted to the QP later,
 * such as a SEND with its rkey. Who tells the peer in another way waits for
 * RMEM_LEASE_GRANTED first.
 *
 * Makes keys, which is slow, when more leases are out than ever before: none below
 * rmem_lease_conf::min_leases.
 *
 * Buffers that are refused are counted in rmem_lease_stats::refused; the first for each reason is
 * logged.
 *
 * When the send queue takes only a part, the last ones may be GRANTING until the next grant or
 * revocation completes; for requests posted later they are open as the others.
 *
 * Fast path, for the thread that owns the QP.
 *
 * @param ctx
 *   Context to grant from.
 * @param req
 *   nb buffers; not needed after the call.
 * @param nb
 *   How many; 0 is allowed.
 * @param[out] lease
 *   Room for nb leases; those behind the last one returned mean nothing.
 *
 * @return
 *   How many were granted; it stops at the first that can't be. If that is the first:
 *   - -EINVAL: NULL ctx or not a context, an MR that is NULL, not made by rmem_mr_reg(),
 *     not valid, over several ranges, of another PD or being deregistered, a buffer outside of it,
 *     or in the page at 0 of a page list, a length out of range, no right or an unknown one.
 *   - -EPERM: the QP gives its peer no such right, the MR lacks RMEM_ACCESS_MW_BIND for a
 *     window, or LOCAL_WRITE for a right to modify.
 *   - -EOPNOTSUPP: a window can't be bound to an MR of RMEM_MR_FD.
 *   - -ENOSPC: the send queue is full, max_leases are out or resting, or the device has no key
 *     left.
 *   - -ENOMEM: no memory for another key.
 *   - -EBUSY: the QP is in the RESET state, or prepared leases wait for rmem_lease_post().
 *   - -ENODEV: the device is being closed, or was.
 *   - -EIO: the device failed to make another key.
 */
int rmem_lease_grant(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease);

/**
 * Prepare leases: choose their rkeys, and post nothing yet. With rmem_lease_post(), what opens
 * the rkeys and the request that tells the peer go out in one post.
 *
 * Fast path, for the thread that owns the QP; see rmem_lease_grant().
 *
 * @param ctx
 *   Context to grant from.
 * @param req
 *   nb buffers; not needed after the call.
 * @param nb
 *   How many; 0 is allowed.
 * @param[out] lease
 *   Room for nb leases; those behind the last one returned mean nothing.
 *
 * @return
 *   How many were prepared; never more than RMEM_LEASE_MAX_PREPARED are. If not one:
 *   - -EINVAL, -EPERM, -EOPNOTSUPP, -ENOMEM, -ENODEV, -EIO: as rmem_lease_grant().
 *   - -ENOSPC: as there, or RMEM_LEASE_MAX_PREPARED wait for rmem_lease_post().
 */
int rmem_lease_prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease);

/**
 * Post what opens the prepared leases, and requests behind it.
 *
 * When the send queue takes only a part of the former, the rest stays prepared, no request is
 * posted, and the call is made again after a poll.
 *
 * Fast path, for the thread that owns the QP.
 *
 * @param ctx
 *   Context of the prepared leases.
 * @param wr
 *   nb_wr requests of the application, such as a SEND with the rkeys; not needed after the call.
 * @param nb_wr
 *   How many; 0 is allowed.
 *
 * @return
 *   How many of nb_wr were accepted, as rmem_post_send() does; 0 with nb_wr 0. Or:
 *   - -EINVAL: NULL ctx or not a context, or what rmem_post_send() refuses of the first.
 *   - -ENOSPC: the send queue is full.
 *   - -EOPNOTSUPP, -EBUSY, -ENODEV: as rmem_post_send().
 */
int rmem_lease_post(struct rmem_lease_ctx *ctx, const struct rmem_send_wr *wr, uint16_t nb_wr);

/**
 * Revoke leases: post the invalidations of their rkeys, signaled as grants are. What the send queue
 * has no room for is posted by a later poll. Room comes with completions: in a queue that is full
 * of unsignaled requests of the application there is none before a signaled one of it completes.
 *
 * A lease that is being revoked or has ended already is left alone, so that one which expired
 * meanwhile can be named.
 *
 * Fast path, for the thread that owns the QP.
 *
 * @param ctx
 *   Context of the leases.
 * @param lease
 *   nb leases that were not taken back.
 * @param nb
 *   How many; 0 is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL ctx or not a context, or one of them is no lease of it, or was taken back;
 *     none was revoked.
 */
int rmem_lease_revoke(struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint16_t nb);

/**
 * Poll the send CQ of the QP: rmem_poll_cq() and rmem_lease_take_wcs() in one.
 *
 * Fast path, for the thread that owns the QP and its CQs.
 *
 * @param ctx
 *   Context on the QP.
 * @param[out] wc
 *   Room for nb_wc completions.
 * @param nb_wc
 *   How many at most; 0 is allowed and only makes progress.
 *
 * @return
 *   How many completions of the application were written, or:
 *   - -EINVAL: NULL ctx or not a context, or the calling thread is not known to EAL.
 *   - -EIO, -ENODEV: as rmem_poll_cq().
 */
int rmem_lease_poll(struct rmem_lease_ctx *ctx, struct rmem_wc *wc, uint16_t nb_wc);

/**
 * Take the completions of a context out of those of a CQ, revoke what is overdue, and post what
 * did not fit before.
 *
 * For who polls by rmem_poll_cq(): a CQ that several QPs share, with a call for each context; or
 * a receive CQ of its own, where RMEM_WC_WITH_INV tells that the peer ended a lease. Such a
 * completion stays among those of the application.
 *
 * Fast path, for the thread that owns the QP.
 *
 * @param ctx
 *   Context to take for.
 * @param[in,out] wc
 *   nb_wc completions; those left move to the front, in order.
 * @param nb_wc
 *   How many; 0 is allowed.
 *
 * @return
 *   How many are left, or:
 *   - -EINVAL: NULL ctx or not a context.
 */
int rmem_lease_take_wcs(struct rmem_lease_ctx *ctx, struct rmem_wc *wc, uint16_t nb_wc);

/**
 * Take leases back that have ended. Nothing that a peer does through their rkeys reaches the
 * buffers any more: they can be used, freed or leased again.
 *
 * The leases may be read until the next grant.
 *
 * Fast path, for the thread that owns the QP.
 *
 * @param ctx
 *   Context of the leases.
 * @param[out] lease
 *   Room for nb leases; those behind the last one returned mean nothing.
 * @param nb
 *   How many at most.
 *
 * @return
 *   How many were written, or:
 *   - -EINVAL: NULL ctx or not a context.
 */
int rmem_lease_take_ended(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint16_t nb);

/**
 * Look a lease up by its number, as a peer may name it.
 *
 * Fast path, for the thread that owns the QP.
 *
 * @param ctx
 *   Context of the lease; NULL is allowed and finds nothing.
 * @param id
 *   rmem_lease::id, or any number.
 *
 * @return
 *   The lease, or NULL when there is none of that number, or it was taken back.
 */
struct rmem_lease *rmem_lease_find(const struct rmem_lease_ctx *ctx, uint64_t id);

/**
 * End all leases of a QP that was reset, and replace their keys.
 *
 * What became of the requests in the send queue of a QP that failed is not known. So every key
 * that was out is released, after which it opens nothing, and another is made. All leases end and
 * are to be taken back; completions of before the reset are ignored.
 *
 * Control path: as slow as registering. For the thread that owns the QP.
 *
 * @param ctx
 *   Context of a QP in the RESET state (rmem_qp_reset()).
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a context.
 *   - -EBUSY: the QP is not in the RESET state.
 *   - -EIO: the device failed to release a key; a lease of it has not ended. It can be tried
 *     again.
 */
int rmem_lease_recover(struct rmem_lease_ctx *ctx);

/**
 * Release keys that were not needed since the call before, down to rmem_lease_conf::min_leases.
 *
 * Called now and then, such as once a minute from a timer, it is the age of idle keys.
 *
 * Control path: as slow as deregistering. For the thread that owns the QP.
 *
 * @param ctx
 *   Context to look at.
 *
 * @return
 *   How many were released, or:
 *   - -EINVAL: NULL or not a context.
 *   - -EIO: the device failed to release a key, which is not used any more.
 */
int rmem_lease_age(struct rmem_lease_ctx *ctx);

/**
 * Get the figures of a context.
 *
 * They are read while its thread goes on, so that sums may be a few leases apart.
 *
 * Control path. Safe to call from any thread.
 *
 * @param ctx
 *   Context to ask.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a context, or NULL stats.
 */
int rmem_lease_stats_get(const struct rmem_lease_ctx *ctx, struct rmem_lease_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_LEASE_H */
