/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Table of send requests, and their check when posted, for drivers.
 *
 * A driver implements the execution of each opcode, and checks its own limits.
 */

#ifndef RMEM_WR_INFO_H
#define RMEM_WR_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include <rmem_mr.h>
#include <rmem_mw.h>
#include <rmem_obj.h>
#include <rmem_obj_ref.h>
#include <rmem_qp.h>
#include <rmem_wr.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The request has SGEs; without this flag, sg_list and num_sge are ignored. */
#define RMEM_WR_HAS_SGES (1u << 0)
/** The request makes a key of this device valid. */
#define RMEM_WR_BINDS (1u << 1)
/** The request invalidates a key of this device. */
#define RMEM_WR_INVALIDATES (1u << 2)
/** The request invalidates a key of the peer. */
#define RMEM_WR_INVALIDATES_REMOTE (1u << 3)
/** RC QPs only. */
#define RMEM_WR_RC_ONLY (1u << 4)
/** Also on UD QPs. */
#define RMEM_WR_UD (1u << 5)
/** The request has exactly one SGE, of 8 bytes. */
#define RMEM_WR_WORD (1u << 6)

/** Objects that a request can name. */
#define RMEM_WR_MAX_HANDLES 2

/** An opcode of enum rmem_wr_opcode. */
struct rmem_wr_info {
	uint64_t capa;          /**< RMEM_DEV_CAPA_* that the opcode needs, or 0. */
	uint32_t remote_access; /**< RMEM_ACCESS_REMOTE_* that its rkey must grant; 0: no rkey. */
	uint16_t recv_flags;    /**< RMEM_WC_WITH_* of the receive that it consumes. */
	uint8_t recv_opcode;    /**< enum rmem_wc_opcode of that receive; 0: it consumes none. */
	uint8_t wc_opcode;      /**< enum rmem_wc_opcode of its completion. */
	uint8_t flags;          /**< RMEM_SEND_* that it may have. */
	uint8_t props;          /**< Bitwise OR of RMEM_WR_*. */
	bool is_full_check;     /**< rmem_wr_is_simple() never accepts the opcode. */
	uint8_t pad;            /**< Zero. */
	/** Offsets in struct rmem_send_wr of the objects that the request names; 0: none. */
	uint16_t handle[RMEM_WR_MAX_HANDLES];
	uint64_t reserved[5]; /**< Zero. */
};

/** All requests, by opcode. One cache line each. */
extern const struct rmem_wr_info rmem_wr_info[RMEM_WR_OPCODE_NB];

/** Limits of a QP; the driver sets them with rmem_wr_limits_set(). */
struct rmem_wr_limits {
	uint32_t opcodes;         /**< Bitmask of the opcodes of the device and the service. */
	uint32_t simple;          /**< Opcodes that rmem_wr_is_simple() can accept. */
	uint32_t max_inline_data; /**< As in struct rmem_qp_conf. */
	uint16_t max_send_sge;    /**< As in struct rmem_qp_conf. */
	bool is_late;             /**< RMEM_QP_LATE_ERRORS. */
	uint8_t reserved;         /**< Zero. */
};

/**
 * Set the limits of a QP.
 *
 * Control path.
 *
 * @param[out] limits
 *   Limits.
 * @param conf
 *   Configuration of the QP.
 * @param capa
 *   RMEM_DEV_CAPA_* of the device.
 */
void rmem_wr_limits_set(
		struct rmem_wr_limits *limits, const struct rmem_qp_conf *conf, uint64_t capa);

/**
 * Check whether a request has one of the opcodes and no special flag.
 *
 * All flags are special except FENCE, SIGNALED and SOLICITED, which each opcode may have.
 *
 * Fast path.
 *
 * @param opcodes
 *   Bitmask of opcodes, of struct rmem_wr_limits.
 * @param wr
 *   Request of a known opcode.
 *
 * @return
 *   Whether both hold.
 */
static inline bool
rmem_wr_is_among(uint32_t opcodes, const struct rmem_send_wr *wr)
{
	const uint8_t other =
			(uint8_t) ~(RMEM_SEND_FENCE | RMEM_SEND_SIGNALED | RMEM_SEND_SOLICITED);

	return (opcodes >> wr->opcode & 1) != 0 && (wr->flags & other) == 0;
}

/**
 * Check whether a request is valid and needs no check beyond its head.
 *
 * This is the common case of rmem_wr_check(). Other cases are inline data, the SGE of an atomic,
 * objects, and invalid requests.
 *
 * Fast path.
 *
 * @param limits
 *   Limits of the QP.
 * @param wr
 *   Request, of any opcode.
 *
 * @return
 *   Whether it may be accepted; otherwise rmem_wr_check_full() decides.
 */
static inline bool
rmem_wr_is_simple(const struct rmem_wr_limits *limits, const struct rmem_send_wr *wr)
{
	if (unlikely(wr->opcode >= RMEM_WR_OPCODE_NB || wr->num_sge > limits->max_send_sge))
		return false;
	return rmem_wr_is_among(limits->simple, wr);
}

/**
 * Count the requests at the start of an array that rmem_wr_is_simple() accepts.
 *
 * Opcode and number of SGEs are checked once for consecutive requests in which they are equal.
 *
 * Fast path.
 *
 * @param limits
 *   Limits of the QP.
 * @param wr
 *   Requests, of any opcode.
 * @param nb_wr
 *   Number of requests.
 *
 * @return
 *   Their number, up to nb_wr.
 */
static inline uint32_t
rmem_wr_nb_simple(
		const struct rmem_wr_limits *limits, const struct rmem_send_wr *wr, uint32_t nb_wr)
{
	const uint8_t other =
			(uint8_t) ~(RMEM_SEND_FENCE | RMEM_SEND_SIGNALED | RMEM_SEND_SOLICITED);
	uint32_t i = 0;

	while (i < nb_wr && likely(rmem_wr_is_simple(limits, &wr[i]))) {
		const uint8_t opcode = wr[i].opcode;
		const uint16_t num_sge = wr[i].num_sge;

		do {
			i++;
		} while (i < nb_wr && wr[i].opcode == opcode && wr[i].num_sge == num_sge &&
				(wr[i].flags & other) == 0);
	}
	return i;
}

/**
 * Check that an object exists, has a type, and is of the device of another object.
 *
 * Fast path.
 *
 * @param handle
 *   Object, which begins with its head; or NULL.
 * @param type
 *   RMEM_OBJ_*.
 * @param same
 *   Head of the other object.
 *
 * @return
 *   Whether all hold.
 */
static inline bool
rmem_obj_is_of(const void *handle, uint32_t type, const struct rmem_obj *same)
{
	const struct rmem_obj *obj = (const struct rmem_obj *)handle;

	return obj != NULL && obj->type == type && obj->dev_id == same->dev_id;
}

/**
 * Get an object that a request names.
 *
 * Fast path.
 *
 * @param wr
 *   Request of a known opcode.
 * @param i
 *   Index of the object, below RMEM_WR_MAX_HANDLES.
 *
 * @return
 *   Head of the object; NULL if the request names no such object.
 */
static inline struct rmem_obj *
rmem_wr_obj(const struct rmem_send_wr *wr, unsigned int i)
{
	uint16_t offset = rmem_wr_info[wr->opcode].handle[i];

	if (offset == 0)
		return NULL;
	return *(struct rmem_obj *const *)(const void *)((const uint8_t *)wr + offset);
}

/**
 * Take a reference to each object that a request names, while a driver queues it.
 *
 * Fast path.
 *
 * @param wr
 *   Request of a known opcode that was accepted; its caller releases none of them concurrently.
 */
static inline void
rmem_wr_hold(const struct rmem_send_wr *wr)
{
	struct rmem_obj *obj;
	unsigned int i;

	for (i = 0; i < RMEM_WR_MAX_HANDLES; i++) {
		obj = rmem_wr_obj(wr, i);
		if (obj != NULL)
			__atomic_fetch_add(&obj->refs, 1, __ATOMIC_RELAXED);
	}
}

/**
 * Release the references of rmem_wr_hold().
 *
 * Fast path.
 *
 * @param wr
 *   The request, or a copy.
 */
static inline void
rmem_wr_unhold(const struct rmem_send_wr *wr)
{
	struct rmem_obj *obj;
	unsigned int i;

	for (i = 0; i < RMEM_WR_MAX_HANDLES; i++) {
		obj = rmem_wr_obj(wr, i);
		if (obj != NULL)
			rmem_obj_unhold(obj);
	}
}

/**
 * Check that the objects of a request have the required types and device.
 *
 * A window must be of type 2, a UMR must have entries, and a FLUSH a type and a level.
 *
 * Fast path.
 *
 * @param qp
 *   QP that the request is posted to.
 * @param wr
 *   Request of a known opcode.
 *
 * @return
 *   Whether all hold; true for a request that names no object.
 */
static inline bool
rmem_wr_objs_fit(const struct rmem_qp *qp, const struct rmem_send_wr *wr)
{
	switch (wr->opcode) {
	case RMEM_WR_REG_MR:
		return rmem_obj_is_of(wr->reg_mr.mr, RMEM_OBJ_MR, &qp->obj) &&
				rmem_obj_is_of(wr->reg_mr.page_list, RMEM_OBJ_PAGE_LIST, &qp->obj);
	case RMEM_WR_BIND_MW:
		return rmem_obj_is_of(wr->bind_mw.mw, RMEM_OBJ_MW, &qp->obj) &&
				rmem_obj_is_of(wr->bind_mw.mr, RMEM_OBJ_MR, &qp->obj) &&
				wr->bind_mw.mw->type == RMEM_MW_TYPE_2;
	case RMEM_WR_UMR:
		return rmem_obj_is_of(wr->umr.mr, RMEM_OBJ_MR, &qp->obj) && wr->umr.entries != NULL;
	case RMEM_WR_FLUSH:
		return wr->flush.type != 0 && wr->flush.level <= RMEM_FLUSH_MR &&
				(wr->flush.type & ~(RMEM_FLUSH_GLOBAL | RMEM_FLUSH_PERSISTENT)) ==
				0;
	default:
		return true;
	}
}

/**
 * Check whether a request is a valid REG_MR, BIND_MW or UMR.
 *
 * This is the common case, checked without a function call.
 *
 * Fast path.
 *
 * @param qp
 *   QP that the request is posted to.
 * @param limits
 *   Limits of the QP.
 * @param wr
 *   Request, of any opcode.
 *
 * @return
 *   Whether it is such a request and may be accepted; otherwise rmem_wr_check_full() decides.
 */
static inline bool
rmem_wr_is_bind(const struct rmem_qp *qp, const struct rmem_wr_limits *limits,
		const struct rmem_send_wr *wr)
{
	switch (wr->opcode) {
	case RMEM_WR_REG_MR:
	case RMEM_WR_BIND_MW:
	case RMEM_WR_UMR:
		return rmem_wr_is_among(limits->opcodes, wr) && rmem_wr_objs_fit(qp, wr);
	default:
		return false;
	}
}

/**
 * Check whether a request is a valid atomic or ATOMIC_WRITE.
 *
 * This is the common case, checked without a function call.
 *
 * Fast path.
 *
 * @param qp
 *   QP that the request is posted to.
 * @param limits
 *   Limits of the QP.
 * @param wr
 *   Request, of any opcode.
 *
 * @return
 *   Whether it is such a request and may be accepted; otherwise rmem_wr_check_full() decides.
 */
static inline bool
rmem_wr_is_word(const struct rmem_qp *qp, const struct rmem_wr_limits *limits,
		const struct rmem_send_wr *wr)
{
	const uint32_t words = 1u << RMEM_WR_ATOMIC_CMP_AND_SWP |
			1u << RMEM_WR_ATOMIC_FETCH_AND_ADD | 1u << RMEM_WR_ATOMIC_WRITE;

	return wr->opcode < RMEM_WR_OPCODE_NB && qp->type == RMEM_QPT_RC &&
			rmem_wr_is_among(limits->opcodes & words, wr) && wr->num_sge == 1 &&
			limits->max_send_sge != 0 && wr->sg_list[0].length == sizeof(uint64_t);
}

/**
 * Check a send request of any kind; rmem_wr_check() is faster for simple ones.
 *
 * Fast path: reads only, logs nothing.
 *
 * @param qp
 *   QP that the request is posted to.
 * @param limits
 *   Limits of the QP.
 * @param wr
 *   Request, of any opcode.
 *
 * @return
 *   0 when it may be accepted, otherwise:
 *   - -EINVAL, -EPERM, -EOPNOTSUPP: as rmem_wr_check().
 */
int rmem_wr_check_full(const struct rmem_qp *qp, const struct rmem_wr_limits *limits,
		const struct rmem_send_wr *wr);

/**
 * Check a send request at its post.
 *
 * Checks opcode, capability, flags, number of SGEs, the SGE of an atomic, inline length, and that
 * each object of the request has the right type and belongs to the device of the QP. So a driver
 * may read its private part of these objects.
 *
 * Fast path: reads only, logs nothing.
 *
 * @param qp
 *   QP that the request is posted to.
 * @param limits
 *   Limits of the QP.
 * @param wr
 *   Request, of any opcode.
 *
 * @return
 *   0 when it may be accepted, otherwise:
 *   - -EINVAL: unknown opcode, a flag that the opcode can't have, too many SGEs or inline bytes, an
 *     atomic or ATOMIC_WRITE without one SGE of 8 bytes, NULL entries, or an object that is NULL,
 *     of another type or device, or a window that is not of type 2; UD: no AH, an AH of another
 *     device, or a QP number over 24 bits.
 *   - -EPERM: UD: an AH of another PD.
 *   - -EOPNOTSUPP: the device lacks the capability for the opcode, or the service of the QP has no
 *     such request.
 */
static inline int
rmem_wr_check(const struct rmem_qp *qp, const struct rmem_wr_limits *limits,
		const struct rmem_send_wr *wr)
{
	if (likely(rmem_wr_is_simple(limits, wr) || rmem_wr_is_bind(qp, limits, wr) ||
			    rmem_wr_is_word(qp, limits, wr)))
		return 0;
	return rmem_wr_check_full(qp, limits, wr);
}

/**
 * Check whether a request has SGEs.
 *
 * Fast path.
 *
 * @param wr
 *   Request of a known opcode.
 *
 * @return
 *   Whether sg_list and num_sge are used.
 */
static inline bool
rmem_wr_has_sges(const struct rmem_send_wr *wr)
{
	return (rmem_wr_info[wr->opcode].props & RMEM_WR_HAS_SGES) != 0;
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_WR_INFO_H */
