/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Transitions of a QP, and their attributes (IBTA 10.3.1, 11.2.5.2; ibv_modify_qp(3)).
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "rmem_priv.h"
#include "rmem_qp_priv.h"
#include "rmem_trace_priv.h"

#define NB_STATES (RMEM_QPS_ERR + 1)

/* Attributes that may change while the QP is connected. */
#define LIVE (RMEM_QP_CUR_STATE | RMEM_QP_ACCESS_FLAGS | RMEM_QP_MIN_RNR_TIMER | RMEM_QP_QKEY)
#define INIT (RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS | RMEM_QP_QKEY)
#define RTR                                                                                        \
	(RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN | RMEM_QP_RQ_PSN |                       \
			RMEM_QP_MAX_DEST_RD_ATOMIC | RMEM_QP_MIN_RNR_TIMER)
#define RETRY (RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY | RMEM_QP_MAX_QP_RD_ATOMIC)

#define ATTRS                                                                                      \
	(RMEM_QP_STATE | RMEM_QP_CUR_STATE | RMEM_QP_EN_SQD_ASYNC_NOTIFY | INIT | RTR | RETRY |    \
			RMEM_QP_SQ_PSN | RMEM_QP_RATE_LIMIT)

/* Attributes that QPs of a type do not have. */
static uint32_t
lacking(uint16_t type)
{
	const uint32_t of_responder = RMEM_QP_MAX_DEST_RD_ATOMIC | RMEM_QP_MIN_RNR_TIMER;
	const uint32_t of_rc = of_responder | RETRY;

	switch (type) {
	case RMEM_QPT_RC:
		return RMEM_QP_QKEY;
	case RMEM_QPT_UD:
		return of_rc | RTR | RMEM_QP_ACCESS_FLAGS;
	case RMEM_QPT_XRC_SEND:
		return RMEM_QP_QKEY | of_responder;
	case RMEM_QPT_XRC_RECV:
		return RMEM_QP_QKEY | RMEM_QP_RATE_LIMIT | (RETRY & ~RMEM_QP_TIMEOUT);
	default:
		return RMEM_QP_QKEY | of_rc;
	}
}

/* A transition: the attributes that are required, and the additional ones that are permitted. */
struct transition {
	bool is_valid;
	uint32_t required;
	uint32_t optional;
};

static const struct transition transitions[NB_STATES][NB_STATES] = {
		[RMEM_QPS_RESET] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_INIT] = {true, INIT, RMEM_QP_CUR_STATE},
				},
		[RMEM_QPS_INIT] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_INIT] = {true, 0,
								INIT | RMEM_QP_CUR_STATE},
						[RMEM_QPS_RTR] = {true, RTR,
								RMEM_QP_CUR_STATE |
										RMEM_QP_ACCESS_FLAGS |
										RMEM_QP_PKEY_INDEX |
										RMEM_QP_QKEY},
						[RMEM_QPS_ERR] = {true, 0, RMEM_QP_CUR_STATE},
				},
		[RMEM_QPS_RTR] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_RTS] = {true, RETRY | RMEM_QP_SQ_PSN,
								LIVE | RMEM_QP_RATE_LIMIT},
						[RMEM_QPS_ERR] = {true, 0, RMEM_QP_CUR_STATE},
				},
		[RMEM_QPS_RTS] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_RTS] = {true, 0,
								LIVE | RMEM_QP_RATE_LIMIT},
						[RMEM_QPS_SQD] = {true, 0,
								RMEM_QP_CUR_STATE |
										RMEM_QP_EN_SQD_ASYNC_NOTIFY},
						[RMEM_QPS_ERR] = {true, 0, RMEM_QP_CUR_STATE},
				},
		[RMEM_QPS_SQD] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_RTS] = {true, 0, LIVE},
						[RMEM_QPS_SQD] = {true, 0,
								LIVE | RETRY | RMEM_QP_PKEY_INDEX |
										RMEM_QP_PORT |
										RMEM_QP_AV |
										RMEM_QP_MAX_DEST_RD_ATOMIC},
						[RMEM_QPS_ERR] = {true, 0, RMEM_QP_CUR_STATE},
				},
		[RMEM_QPS_SQE] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_RTS] = {true, 0, LIVE},
						[RMEM_QPS_ERR] = {true, 0, RMEM_QP_CUR_STATE},
				},
		[RMEM_QPS_ERR] =
				{
						[RMEM_QPS_RESET] = {true, 0, RMEM_QP_CUR_STATE},
						[RMEM_QPS_ERR] = {true, 0, RMEM_QP_CUR_STATE},
				},
};

/* Check the arguments, except what depends on the state. */
static int
check_args(const struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	const char *name = rmem_obj_dev(&qp->obj)->name;
	int ret;

	ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));
	if (ret == 0)
		ret = rmem_check_reserved(attr->reserved_byte, sizeof(attr->reserved_byte));
	if (ret == 0 && (mask & RMEM_QP_AV) != 0)
		ret = rmem_check_reserved(attr->ah.reserved, sizeof(attr->ah.reserved));
	if (ret != 0)
		return ret;
	if ((mask & ~ATTRS) != 0)
		return RMEM_FAIL(EINVAL, "%s: QP %u: unknown attributes 0x%x", name, qp->qp_num,
				mask & ~ATTRS);
	if ((mask & RMEM_QP_RATE_LIMIT) != 0 &&
			(rmem_obj_info(&qp->obj)->capa & RMEM_DEV_CAPA_RATE_LIMIT) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: not supported by the device: rate limits", name);
	if ((mask & RMEM_QP_STATE) != 0 && attr->state >= NB_STATES)
		return RMEM_FAIL(EINVAL, "%s: QP %u: unknown state %u", name, qp->qp_num,
				attr->state);
	if ((mask & RMEM_QP_QKEY) != 0 && attr->qkey != RMEM_GSI_QKEY &&
			(((const struct rmem_qp_drv *)qp)->flags & RMEM_QP_GSI) != 0)
		return RMEM_FAIL(EINVAL, "%s: QP 1: Q_Key 0x%x, not 0x%x", name, attr->qkey,
				RMEM_GSI_QKEY);
	if ((mask & RMEM_QP_ACCESS_FLAGS) != 0 &&
			(attr->access &
					~(RMEM_ACCESS_REMOTE |
							(rmem_obj_info(&qp->obj)->access &
									RMEM_ACCESS_FLUSH))) != 0)
		return RMEM_FAIL(EINVAL, "%s: access bits of a QP not supported: 0x%x (0x%x)", name,
				attr->access, RMEM_ACCESS_REMOTE);
	return 0;
}

/* Get the device limits of the attributes in the mask. */
static int
get_limits(const struct rmem_qp *qp, uint32_t mask, struct rmem_dev_attr *limits)
{
	int ret;

	memset(limits, 0, sizeof(*limits));
	if ((mask & (RMEM_QP_MAX_QP_RD_ATOMIC | RMEM_QP_MAX_DEST_RD_ATOMIC)) == 0)
		return 0;
	/* A driver without dev_attr_get checks the values itself. */
	limits->max_rd_atomic = limits->max_dest_rd_atomic = UINT8_MAX;
	ret = rmem_obj_driver(&qp->obj)->ops.dev_attr_get(rmem_obj_dev(&qp->obj), limits);
	return ret == -EOPNOTSUPP ? 0 : rmem_traced(ret);
}

static int
check_values(const struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask,
		const struct rmem_dev_attr *limits)
{
	const struct {
		uint32_t bit;
		const char *what;
		uint32_t value;
		uint32_t min;
		uint32_t max;
	} bounds[] = {
			{RMEM_QP_EN_SQD_ASYNC_NOTIFY, "en_sqd_async_notify",
					attr->en_sqd_async_notify, 0, 1},
			{RMEM_QP_PORT, "port_num", attr->port_num, 1, UINT8_MAX},
			{RMEM_QP_AV, "ah.port_num", attr->ah.port_num, 1, UINT8_MAX},
			{RMEM_QP_AV, "ah.is_global", attr->ah.is_global, 0, 1},
			{RMEM_QP_PATH_MTU, "path_mtu", attr->path_mtu, 1, 5},
			{RMEM_QP_TIMEOUT, "timeout", attr->timeout, 0, 31},
			{RMEM_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt, 0, 7},
			{RMEM_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry, 0, 7},
			{RMEM_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer, 0, 31},
			{RMEM_QP_RQ_PSN, "rq_psn", attr->rq_psn, 0, 0xffffff},
			{RMEM_QP_SQ_PSN, "sq_psn", attr->sq_psn, 0, 0xffffff},
			{RMEM_QP_DEST_QPN, "dest_qp_num", attr->dest_qp_num, 0, 0xffffff},
			{RMEM_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic, 0,
					limits->max_rd_atomic},
			{RMEM_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attr->max_dest_rd_atomic,
					0, limits->max_dest_rd_atomic},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(bounds); i++) {
		if ((mask & bounds[i].bit) != 0 &&
				(bounds[i].value < bounds[i].min ||
						bounds[i].value > bounds[i].max))
			return RMEM_FAIL(EINVAL, "%s: QP %u: %s out of range: %u (%u to %u)",
					rmem_obj_dev(&qp->obj)->name, qp->qp_num, bounds[i].what,
					bounds[i].value, bounds[i].min, bounds[i].max);
	}
	return 0;
}

/* Check that the transition from cur_state to state exists, and that the mask fits it. */
static int
check_transition(const struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	const struct transition *t = &transitions[attr->cur_state][attr->state];
	const char *name = rmem_obj_dev(&qp->obj)->name;
	uint32_t lacks = lacking(qp->type);
	uint32_t missing = t->required & ~mask & ~lacks;
	uint32_t extra = mask & ~(((t->required | t->optional) & ~lacks) | RMEM_QP_STATE);

	if (!t->is_valid)
		return RMEM_FAIL(EBUSY, "%s: QP %u can't move from %s to %s", name, qp->qp_num,
				rmem_qp_state_str(attr->cur_state), rmem_qp_state_str(attr->state));
	if (missing != 0 || extra != 0)
		return RMEM_FAIL(EINVAL,
				"%s: QP %u from %s to %s: attributes 0x%x are missing, 0x%x are "
				"not permitted",
				name, qp->qp_num, rmem_qp_state_str(attr->cur_state),
				rmem_qp_state_str(attr->state), missing, extra);
	return 0;
}

/* Copy the attributes, and set both states, as the driver requires. */
static int
set_states(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask,
		struct rmem_qp_attr *next)
{
	struct rmem_qp_attr now;
	int ret;

	ret = rmem_qp_query(qp, &now);
	if (ret != 0)
		return ret;
	*next = *attr;
	next->cur_state = now.state;
	if ((mask & RMEM_QP_STATE) == 0)
		next->state = now.state;
	if ((mask & RMEM_QP_CUR_STATE) != 0 && attr->cur_state != now.state)
		return RMEM_FAIL(EBUSY, "%s: QP %u is in %s, not in %s",
				rmem_obj_dev(&qp->obj)->name, qp->qp_num,
				rmem_qp_state_str(now.state), rmem_qp_state_str(attr->cur_state));
	return 0;
}

static int
do_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	int ret;

	if (attr->state == RMEM_QPS_RESET)
		return RMEM_OP(qp, qp_reset, qp);
	if (attr->state == RMEM_QPS_ERR)
		return RMEM_OP(qp, qp_set_error, qp);
	ret = rmem_check_live(&qp->obj);
	return ret != 0 ? ret : RMEM_OP(qp, qp_modify, qp, attr, mask | RMEM_QP_STATE);
}

int
rmem_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	RMEM_CALL(qp);
	struct rmem_dev_attr limits;
	struct rmem_qp_attr next;
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret == 0 && rmem_qp_is_opened(qp)) {
		struct rmem_qp_call call = {.op = RMEM_QP_CALL_MODIFY, .mask = mask, .attr = *attr};

		return rmem_qp_forward(qp, &call);
	}
	if (ret == 0)
		ret = check_args(qp, attr, mask);
	if (ret == 0)
		ret = set_states(qp, attr, mask, &next);
	if (ret == 0)
		ret = check_transition(qp, &next, mask);
	if (ret == 0)
		ret = get_limits(qp, mask, &limits);
	if (ret == 0)
		ret = check_values(qp, &next, mask, &limits);
	if (ret == 0)
		ret = do_modify(qp, &next, mask);
	if (ret == 0)
		rmem_trace_qp_state(qp, qp->qp_num, (int)next.state);
	return ret;
}
