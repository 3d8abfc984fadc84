/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Operations that programs call through a context, by inline functions of verbs.h, and not through
 * ribv_preload.c. As there, a thread can't be cancelled in a control call, because it may hold a
 * lock of the class. Posts and polls are not cancellation points.
 */

#include <errno.h>

#include "ribv.h"

#define LIST(...) __VA_ARGS__

/* Define an operation that calls ribv_<name>(). */
#define OP(type, name, params, args)                                                               \
	static type op_##name(params)                                                              \
	{                                                                                          \
		type ret;                                                                          \
		int state;                                                                         \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ret = ribv_##name(args);                                                           \
		pthread_setcancelstate(state, NULL);                                               \
		return ret;                                                                        \
	}

/* Define an operation that returns an errno and also sets errno, as after a call of the kernel. */
#define OP_ERR(name, params, args)                                                                 \
	static int op_##name(params)                                                               \
	{                                                                                          \
		int ret, state;                                                                    \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ret = ribv_##name(args);                                                           \
		pthread_setcancelstate(state, NULL);                                               \
		if (ret > 0)                                                                       \
			errno = ret;                                                               \
		return ret;                                                                        \
	}

/* clang-format off */
OP(struct ibv_mw *, alloc_mw, LIST(struct ibv_pd *pd, enum ibv_mw_type type), LIST(pd, type))
OP_ERR(bind_mw, LIST(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind),
		LIST(qp, mw, bind))
OP_ERR(dealloc_mw, LIST(struct ibv_mw *mw), LIST(mw))
OP_ERR(modify_qp_rate_limit, LIST(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr),
		LIST(qp, attr))
OP_ERR(modify_cq, LIST(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr), LIST(cq, attr))
OP_ERR(req_notify_cq, LIST(struct ibv_cq *cq, int solicited_only), LIST(cq, solicited_only))
OP_ERR(query_device_ex, LIST(struct ibv_context *context,
		const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
		size_t size), LIST(context, input, attr, size))
OP_ERR(query_rt_values, LIST(struct ibv_context *context, struct ibv_values_ex *values),
		LIST(context, values))
OP_ERR(query_port, LIST(struct ibv_context *context, uint8_t port_num,
		struct ibv_port_attr *attr, size_t len), LIST(context, port_num, attr, len))
OP_ERR(advise_mr, LIST(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		struct ibv_sge *sg_list, uint32_t num_sge),
		LIST(pd, advice, flags, sg_list, num_sge))
OP(struct ibv_mr *, alloc_null_mr, LIST(struct ibv_pd *pd), LIST(pd))
OP(struct ibv_dm *, alloc_dm, LIST(struct ibv_context *context, struct ibv_alloc_dm_attr *attr),
		LIST(context, attr))
OP_ERR(free_dm, LIST(struct ibv_dm *dm), LIST(dm))
OP(struct ibv_mr *, reg_dm_mr, LIST(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
		size_t length, unsigned int access), LIST(pd, dm, offset, length, access))
OP(struct ibv_td *, alloc_td, LIST(struct ibv_context *context, struct ibv_td_init_attr *attr),
		LIST(context, attr))
OP_ERR(dealloc_td, LIST(struct ibv_td *td), LIST(td))
OP(struct ibv_pd *, alloc_parent_domain, LIST(struct ibv_context *context,
		struct ibv_parent_domain_init_attr *attr), LIST(context, attr))
OP(struct ibv_cq_ex *, create_cq_ex, LIST(struct ibv_context *context,
		struct ibv_cq_init_attr_ex *attr), LIST(context, attr))
OP(struct ibv_srq *, create_srq_ex, LIST(struct ibv_context *context,
		struct ibv_srq_init_attr_ex *attr), LIST(context, attr))
OP(struct ibv_qp *, create_qp_ex, LIST(struct ibv_context *context,
		struct ibv_qp_init_attr_ex *attr), LIST(context, attr))
OP(struct ibv_qp *, open_qp, LIST(struct ibv_context *context, struct ibv_qp_open_attr *attr),
		LIST(context, attr))
OP(struct ibv_xrcd *, open_xrcd, LIST(struct ibv_context *context,
		struct ibv_xrcd_init_attr *attr), LIST(context, attr))
OP_ERR(close_xrcd, LIST(struct ibv_xrcd *xrcd), LIST(xrcd))
OP_ERR(get_srq_num, LIST(struct ibv_srq *srq, uint32_t *srq_num), LIST(srq, srq_num))
/* clang-format on */

void
ribv_ops_set(struct verbs_context *context)
{
	context->query_device_ex = op_query_device_ex;
	context->query_port = op_query_port;
	context->modify_qp_rate_limit = op_modify_qp_rate_limit;
	context->modify_cq = op_modify_cq;
	context->query_rt_values = op_query_rt_values;
	context->advise_mr = op_advise_mr;
	context->alloc_null_mr = op_alloc_null_mr;
	context->alloc_dm = op_alloc_dm;
	context->free_dm = op_free_dm;
	context->reg_dm_mr = op_reg_dm_mr;
	context->alloc_td = op_alloc_td;
	context->dealloc_td = op_dealloc_td;
	context->alloc_parent_domain = op_alloc_parent_domain;
	context->create_cq_ex = op_create_cq_ex;
	context->create_srq_ex = op_create_srq_ex;
	context->create_qp_ex = op_create_qp_ex;
	context->open_qp = op_open_qp;
	context->open_xrcd = op_open_xrcd;
	context->close_xrcd = op_close_xrcd;
	context->get_srq_num = op_get_srq_num;
	context->context.ops = (struct ibv_context_ops){
			.alloc_mw = op_alloc_mw,
			.bind_mw = op_bind_mw,
			.dealloc_mw = op_dealloc_mw,
			.poll_cq = ribv_poll_cq,
			.req_notify_cq = op_req_notify_cq,
			.post_send = ribv_post_send,
			.post_recv = ribv_post_recv,
			.post_srq_recv = ribv_post_srq_recv,
	};
}
