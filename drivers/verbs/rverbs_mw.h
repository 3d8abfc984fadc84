/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory windows. Requests are passed to the device as posted, and the device enforces the rules of
 * windows, unless it has the quirk of rverbs_mwq.h.
 *
 * Binds of type 1 windows, REG_MR and UMR, and with the quirk all requests that refer to windows,
 * are noted in a second ring, in the order of the first. Without the quirk, the note of a bind of a
 * type 2 window has the previous key, which is restored if the device refuses the request.
 *
 * Invariant: the posting thread writes notes and prod; the holder of the send CQ's lock reads notes
 * and writes cons. Without the quirk, busy and key_in_force are only used for type 1 windows, and
 * written under the window's lock; the rkey of a type 2 window is in its ibv_mw.
 */

#ifndef RVERBS_MW_H
#define RVERBS_MW_H

#include "rverbs_mw_op.h"

static inline struct ibv_mw_bind_info
rverbs_mw_bind_info(const struct rmem_send_wr *wr)
{
	struct ibv_mw_bind_info info = {
			.mr = rverbs_mr_of(wr->bind_mw.mr)->ibv,
			.addr = wr->bind_mw.addr,
			.length = wr->bind_mw.length,
			.mw_access_flags = wr->bind_mw.access,
	};

	return info;
}

/* Assign the key of a BIND_MW, which was noted before, to its window; without the quirk. */
static inline uint32_t
rverbs_mw_new_key(const struct rmem_send_wr *wr)
{
	struct rverbs_mw *mw = rverbs_mw_of(wr->bind_mw.mw);
	uint32_t key = rmem_rkey_of_tag(mw->mw.rkey, wr->bind_mw.key_tag);

	rverbs_mw_set_handle(mw, key);
	return key;
}

/* Write a BIND_MW to an extended QP. */
static inline void
rverbs_mw_write_bind(struct ibv_qp_ex *ex, const struct rmem_send_wr *wr, uint32_t key)
{
	struct ibv_mw *mw = rverbs_mw_of(wr->bind_mw.mw)->ibv;
	struct ibv_mw_bind_info info = rverbs_mw_bind_info(wr);

	ibv_wr_bind_mw(ex, mw, key, &info);
	/*
	 * Providers derive the key of the next bind from this one. Both are read again, because
	 * saving them over the call costs more.
	 */
	rverbs_mw_of(wr->bind_mw.mw)->ibv->rkey = wr->bind_mw.mw->rkey;
}

/* Write a BIND_MW to an entry of a chain. */
void rverbs_mw_write_chain(
		struct ibv_send_wr *to, const struct rmem_send_wr *wr, uint32_t key, bool is_bind);

int rverbs_mw_ops_init(struct rverbs_mw_ops *ops, uint32_t depth);
/* Undo the effects of the requests [pos, end), which the device did not accept. */
void rverbs_mw_undo(
		struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos, uint32_t end);
/*
 * End the requests before `end`, of which all but the last succeeded. May correct status and opcode
 * in the completion of the last one.
 */
void rverbs_mw_done(struct rverbs_qp *qp, uint32_t end, struct rmem_wc *wc);
/* Drop the requests that have not completed. */
void rverbs_mw_forget(struct rverbs_qp *qp);

int rverbs_mw_alloc(struct rmem_mw *mw);
int rverbs_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);
int rverbs_mw_dealloc(struct rmem_mw *mw);

#endif /* RVERBS_MW_H */
