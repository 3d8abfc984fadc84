/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The history of keys, with sanitize=1: the call or request that created each key, and the one that
 * ended it, with time and lcore, for the log line of a failed request.
 *
 * Invariant: a note about a key is written by the one thread that changes the key's word at that
 * time: the registration, the winner of rsoft_key_take() or rsoft_key_invalidate(), or the
 * deregistration. So the word orders the notes. A report may run concurrently: each field is
 * atomic, and a report about a key that is just changing may mix two notes.
 */

#ifndef RSOFT_HISTORY_H
#define RSOFT_HISTORY_H

#include "../base/rsoft.h"

enum rsoft_history_event {
	RSOFT_HISTORY_NONE = 0,
	RSOFT_HISTORY_REG,   /* a call created the key: qp_num is 0 */
	RSOFT_HISTORY_WR,    /* a request created it */
	RSOFT_HISTORY_INV,   /* a LOCAL_INV or SEND_WITH_INV ended it */
	RSOFT_HISTORY_DEREG, /* the key was freed: qp_num is 0 */
};

struct rsoft_history_note {
	uint64_t tsc;
	uint64_t info;   /* rkey | lcore << 32 | enum rsoft_history_event << 48 */
	uint64_t qp_num; /* | RSOFT_HISTORY_HAS_WR; 0: a call */
	uint64_t wr_id;
};

/* The request was posted to this QP, not to its peer. */
#define RSOFT_HISTORY_HAS_WR (UINT64_C(1) << 32)

/* History of a slot of the key table. */
struct rsoft_history {
	struct rsoft_history_note made;
	struct rsoft_history_note ended;
	char name[RMEM_NAME_SIZE]; /* name of the latest MR; under rsoft_dev::lock */
	uint64_t below;            /* window: rkey of the MR it was bound to; atomic */
};

int rsoft_history_init(struct rsoft_dev *dev, int socket_id);
void rsoft_history_fini(struct rsoft_dev *dev);

/* Record that a key was created or ended: by a call, or by a request of a QP or its peer. */
void rsoft_history_store(struct rsoft_dev *dev, const struct rsoft_key *key, uint32_t rkey,
		enum rsoft_history_event event, const struct rmem_qp *qp,
		const struct rmem_send_wr *wr);
/* Record the name of a registered MR. */
void rsoft_history_name(
		struct rsoft_dev *dev, const struct rmem_mr *mr, const struct rsoft_key *key);
/* Log a failure of a QP with the history of its key; memory describes the memory: "" or "; ...". */
void rsoft_history_report(
		const struct rmem_qp *qp, const struct rmem_qp_error *error, const char *memory);

#endif /* RSOFT_HISTORY_H */
