/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completion counters of the headers after rdma-core 64: counters of QPs of the class. */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ribv.h"

static_assert((int)IBV_QP_ATTACH_COMP_CNTR_OP_SEND == (int)RMEM_QP_COUNT_SEND &&
				(int)IBV_QP_ATTACH_COMP_CNTR_OP_RECV == (int)RMEM_QP_COUNT_RECV &&
				(int)IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ ==
						(int)RMEM_QP_COUNT_RDMA_READ &&
				(int)IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ ==
						(int)RMEM_QP_COUNT_REMOTE_RDMA_READ &&
				(int)IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE ==
						(int)RMEM_QP_COUNT_RDMA_WRITE &&
				(int)IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE ==
						(int)RMEM_QP_COUNT_REMOTE_RDMA_WRITE,
		"the bits of the class are those of verbs");

static struct ribv_cntr *
cntr_of(struct ibv_comp_cntr *cntr)
{
	struct ribv_cntr *own = (struct ribv_cntr *)cntr;

	return ribv_slot(cntr, RIBV_CNTR) != 0 && cntr->context == own->context ? own : NULL;
}

static bool
has_counters(struct ibv_context *context)
{
	struct rmem_dev_info info;

	return rmem_dev_info_get(ribv_dev_of(context), &info) == 0 &&
			(info.capa & RMEM_DEV_CAPA_QP_COUNTER) != 0;
}

int
_ibv_query_comp_cntr_caps(
		struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
	struct ibv_comp_cntr_caps own = {.max_value = UINT64_MAX,
			.max_counters = RIBV_MAX_OBJS - 1,
			.supported_qp_attach_ops = RMEM_QP_COUNT_ALL};

	if (ribv_is_real(context))
		return RIBV_NEXT(_ibv_query_comp_cntr_caps)(context, caps, caps_size);
	if (!ribv_is_context(context))
		return ENOENT;
	if (caps == NULL || caps_size < sizeof(own))
		return EINVAL;
	if (!has_counters(context))
		return EOPNOTSUPP;
	memset(caps, 0, caps_size);
	memcpy(caps, &own, sizeof(own));
	return 0;
}

struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *cc_attr)
{
	struct rmem_counter_conf conf = {0};
	struct ribv_cntr *cntr;
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_create_comp_cntr)(context, cc_attr);
	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (cc_attr == NULL || cc_attr->comp_mask != 0 || cc_attr->flags != 0 ||
			cc_attr->type > IBV_COMP_CNTR_TYPE_BYTES)
		return ribv_fail(EINVAL);
	if (!has_counters(context))
		return ribv_fail(EOPNOTSUPP);
	if (cc_attr->type == IBV_COMP_CNTR_TYPE_BYTES)
		conf.flags = RMEM_COUNTER_BYTES;
	cntr = ribv_new();
	if (cntr == NULL)
		return NULL;
	ret = rmem_counter_create(ribv_dev_of(context), &conf, &cntr->counter);
	if (ret != 0) {
		ribv_leave(cntr);
		return ribv_fail(ribv_errno(ret));
	}
	cntr->ibv.context = cntr->context = context;
	cntr->ibv.handle = ribv_enter(cntr, RIBV_CNTR);
	return &cntr->ibv;
}

int
ibv_destroy_comp_cntr(struct ibv_comp_cntr *comp_cntr)
{
	struct ribv_cntr *cntr = cntr_of(comp_cntr);
	int ret;

	if (ribv_is_real(comp_cntr))
		return RIBV_NEXT(ibv_destroy_comp_cntr)(comp_cntr);
	if (cntr == NULL)
		return ribv_leave_inherited(comp_cntr, RIBV_CNTR);
	ret = rmem_counter_destroy(cntr->counter);
	if (ret != 0)
		return -ret;
	ribv_leave(cntr);
	return 0;
}

/* Define a function that changes a counter by calling a function of the class. */
#define CHANGE(name, call)                                                                         \
	int name(struct ibv_comp_cntr *comp_cntr, uint64_t value)                                  \
	{                                                                                          \
		struct ribv_cntr *cntr = cntr_of(comp_cntr);                                       \
                                                                                                   \
		if (ribv_is_real(comp_cntr))                                                       \
			return RIBV_NEXT(name)(comp_cntr, value);                                  \
		if (cntr == NULL)                                                                  \
			return ENOENT;                                                             \
		call(cntr->counter, value);                                                        \
		return 0;                                                                          \
	}

/* Define a function that reads a counter. The class has its value: the call makes no progress. */
#define READ(name, call)                                                                           \
	int name(struct ibv_comp_cntr *comp_cntr, uint64_t *value)                                 \
	{                                                                                          \
		struct ribv_cntr *cntr = cntr_of(comp_cntr);                                       \
                                                                                                   \
		if (ribv_is_real(comp_cntr))                                                       \
			return RIBV_NEXT(name)(comp_cntr, value);                                  \
		if (cntr == NULL)                                                                  \
			return ENOENT;                                                             \
		if (value == NULL)                                                                 \
			return EINVAL;                                                             \
		*value = call(cntr->counter);                                                      \
		return 0;                                                                          \
	}

CHANGE(ibv_set_comp_cntr, rmem_counter_set)
CHANGE(ibv_set_err_comp_cntr, rmem_counter_set_errors)
CHANGE(ibv_inc_comp_cntr, rmem_counter_inc)
CHANGE(ibv_inc_err_comp_cntr, rmem_counter_inc_errors)
READ(ibv_read_comp_cntr, rmem_counter_read)
READ(ibv_read_err_comp_cntr, rmem_counter_read_errors)

int
ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
		struct ibv_qp_attach_comp_cntr_attr *attr)
{
	struct ribv_cntr *cntr = cntr_of(comp_cntr);
	int ret;

	if (ribv_is_real(qp))
		return ribv_is_own(comp_cntr)
				? EINVAL
				: RIBV_NEXT(ibv_qp_attach_comp_cntr)(qp, comp_cntr, attr);
	if (!ribv_is_qp(qp))
		return ENOENT;
	if (cntr == NULL || attr == NULL || attr->comp_mask != 0 || cntr->context != qp->context)
		return EINVAL;
	if ((attr->op_mask & ~RMEM_QP_COUNT_ALL) != 0)
		return EOPNOTSUPP;
	ret = rmem_qp_attach_counter(((struct ribv_qp *)qp)->qp, cntr->counter, attr->op_mask);
	/* In the manual page EBUSY is another counter, and a wrong state is EINVAL. */
	return ret == -EEXIST ? EBUSY : ribv_errno(ret);
}
