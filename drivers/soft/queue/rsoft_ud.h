/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Unreliable datagrams: address handles, and the messages of UD QPs. Each message is one packet of
 * at most the path MTU.
 *
 * Invariant: a request in the send queue does not refer to its AH, because rsoft_ud_keep() has
 * copied the destination.
 */

#ifndef RSOFT_UD_H
#define RSOFT_UD_H

#include "../mem/rsoft_access.h"
#include "../wire/codec/rsoft_grh.h"
#include "rsoft_batch.h"

/* A Q_Key with this bit selects the Q_Key of the QP (IBTA 10.2.5: controlled Q_Keys). */
#define RSOFT_QKEY_CONTROLLED (UINT32_C(1) << 31)

/* Values that are not QP numbers, which have 24 bits: an AH of another PD; a multicast group; no
 * number of a QP in a group; an AH of another port. */
#define RSOFT_UD_OTHER_PD   UINT32_MAX
#define RSOFT_UD_GROUP      (UINT32_MAX - 1)
#define RSOFT_UD_NO_QP      (UINT32_MAX - 2)
#define RSOFT_UD_OTHER_PORT (UINT32_MAX - 3)

struct rsoft_ah {
	struct rmem_ah ah;
	uint8_t gid[16]; /* destination */
	struct rsoft_grh grh;
	bool is_group; /* a multicast group */
};

/* The destination of a request. */
struct rsoft_ud_dest {
	uint8_t gid[16];
	uint32_t qpn;  /* or RSOFT_UD_OTHER_PD and so on */
	uint32_t qkey; /* as posted */
	struct rsoft_grh grh;
};

/* A message, as passed to its receiver. */
struct rsoft_ud_msg {
	const uint8_t *src_gid;
	const uint8_t *dst_gid;
	uint32_t src_qp;
	uint32_t qkey;
	uint32_t imm_data;
	uint16_t flags; /* RMEM_WC_* flags of the completion */
	struct rsoft_grh grh;
	uint64_t length; /* without the GRH */
};

int rsoft_ah_create(struct rmem_ah *ah, const struct rmem_ah_attr *attr);
int rsoft_ah_destroy(struct rmem_ah *ah);

/* Longest message of the device. */
uint32_t rsoft_ud_max_msg_size(const struct rsoft_dev *dev);

/* Copy the destination to a request in the send queue of a QP. */
void rsoft_ud_keep(const struct rsoft_qp *qp, struct rmem_send_wr *slot);

/* Get the destination of a request of a QP, in the send queue or not. */
void rsoft_ud_dest_of(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, bool is_queued,
		struct rsoft_ud_dest *dest);

/*
 * Cause why a UD QP can't send a request that was accepted (RMEM_QP_LATE_ERRORS); an enum
 * rmem_vendor_err.
 */
static inline uint32_t
rsoft_ud_vendor_err(const struct rmem_send_wr *wr, const struct rsoft_ud_dest *dest)
{
	if (unlikely(rmem_wr_info[wr->opcode].remote_access != 0))
		return RMEM_VENDOR_ERR_SERVICE;
	if (unlikely(dest->qpn == RSOFT_UD_OTHER_PORT))
		return RMEM_VENDOR_ERR_AH_PORT;
	return unlikely(dest->qpn == RSOFT_UD_OTHER_PD) ? RMEM_VENDOR_ERR_KEY_PD
							: RMEM_VENDOR_ERR_NONE;
}

/* Q_Key of a message of the QP. */
static inline uint32_t
rsoft_ud_qkey(const struct rsoft_qp *qp, const struct rsoft_ud_dest *dest)
{
	if ((dest->qkey & RSOFT_QKEY_CONTROLLED) != 0)
		return __atomic_load_n(&qp->qkey, __ATOMIC_RELAXED);
	return dest->qkey;
}

/*
 * Deliver a message to the QPs of this process in its destination group, each with its own receive.
 * Return RMEM_WC_SUCCESS, or RMEM_WC_LOC_PROT_ERR as rsoft_ud_deliver(). Drops are counted in qp,
 * the sender. has_wire: also deliver to QPs of devices with a wire. *nb is the number of QPs. From
 * inside of rsoft_grace_enter().
 */
int rsoft_ud_deliver_group(struct rsoft_qp *qp, const struct rsoft_ud_msg *msg,
		const struct rsoft_span *from, bool has_wire, uint32_t *nb);

/*
 * Send a message to a QP of this process; return an enum rmem_wc_status, or an enum rsoft_wait if
 * it is dropped. Under sq.lock; from has the spans of the request.
 */
int rsoft_ud_send(struct rsoft_batch *batch, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length);

/*
 * Place a message in a receive. Return RMEM_WC_SUCCESS; RMEM_WC_LOC_PROT_ERR if the memory of the
 * sender is not mapped; or the cause of a drop: RSOFT_WAIT_PEER, RSOFT_WAIT_RNR,
 * RMEM_WC_REM_INV_REQ_ERR for the length, RMEM_WC_REM_ACCESS_ERR for the Q_Key, RMEM_WC_REM_OP_ERR
 * for a failed receive. From inside of rsoft_grace_enter().
 */
int rsoft_ud_deliver(
		struct rsoft_qp *qp, const struct rsoft_ud_msg *msg, const struct rsoft_span *from);

#endif /* RSOFT_UD_H */
