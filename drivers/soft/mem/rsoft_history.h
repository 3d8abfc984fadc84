/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The history of keys, with sanitize=1: the call or request that made each key, and the one that
 * ended it, with the time and the lcore, for the log line of a failed request.
 *
 * Invariant: the notes of a key are made by the one thread that changes its word then: the
 * registration, the winner of rsoft_key_take() or rsoft_key_invalidate(), the deregistration. They
 * are ordered by the word, but for a report, which may run at the same time: each field is atomic,
 * and a report of a key that changes at that moment may mix two notes.
 */

#ifndef RSOFT_HISTORY_H
#define RSOFT_HISTORY_H

#include "../base/rsoft.h"

enum rsoft_history_event {
	RSOFT_HISTORY_NONE = 0,
	RSOFT_HISTORY_REG,   /* a call made the key: qp_num is 0 */
	RSOFT_HISTORY_WR,    /* a request made it */
	RSOFT_HISTORY_INV,   /* a LOCAL_INV or SEND_WITH_INV ended it */
	RSOFT_HISTORY_DEREG, /* the key was freed: qp_num is 0 */
};

struct rsoft_history_note {
	uint64_t tsc;
	uint64_t info;   /* rkey | lcore << 32 | enum rsoft_history_event << 48 */
	uint64_t qp_num; /* | RSOFT_HISTORY_HAS_WR; 0: a call */
	uint64_t wr_id;
};

/* The request was of this QP, not of its peer. */
#define RSOFT_HISTORY_HAS_WR (UINT64_C(1) << 32)

/* Of a slot of the key table. */
struct rsoft_history {
	struct rsoft_history_note made;
	struct rsoft_history_note ended;
	char name[RMEM_NAME_SIZE]; /* of the MR that was made last; under rsoft_dev::lock */
	uint64_t below;            /* of a window: the rkey of the MR it was bound to; atomic */
};

int rsoft_history_init(struct rsoft_dev *dev, int socket_id);
void rsoft_history_fini(struct rsoft_dev *dev);

/* Note that a key was made or ended: by a call, a request of the peer of a QP, or one of the QP. */
void rsoft_history_store(struct rsoft_dev *dev, const struct rsoft_key *key, uint32_t rkey,
		enum rsoft_history_event event, const struct rmem_qp *qp,
		const struct rmem_send_wr *wr);
/* Note the name of an MR that was registered. */
void rsoft_history_name(
		struct rsoft_dev *dev, const struct rmem_mr *mr, const struct rsoft_key *key);
/* Log a failure of a QP with the history of its key; memory describes its memory: "" or "; ...". */
void rsoft_history_report(
		const struct rmem_qp *qp, const struct rmem_qp_error *error, const char *memory);

static inline void
rsoft_history_add(struct rsoft_dev *dev, const struct rsoft_key *key, uint32_t rkey,
		enum rsoft_history_event event, const struct rmem_qp *qp,
		const struct rmem_send_wr *wr)
{
	if (unlikely(dev->history != NULL))
		rsoft_history_store(dev, key, rkey, event, qp, wr);
}

#endif /* RSOFT_HISTORY_H */
