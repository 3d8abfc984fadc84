/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Send requests: the table of opcodes, and the check when posted; see rmem_wr_info.h. */

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include <rte_common.h>

#include <rmem_driver.h>

#define FLAGS        (RMEM_SEND_FENCE | RMEM_SEND_SIGNALED | RMEM_SEND_SOLICITED)
#define INLINE_FLAGS (FLAGS | RMEM_SEND_INLINE)

/* A field of struct rmem_send_wr that points to an object. */
#define HANDLE(field) offsetof(struct rmem_send_wr, field)

static_assert(RMEM_WR_OPCODE_NB <= 32, "a bit of rmem_wr_limits::opcodes each");
static_assert(sizeof(struct rmem_wr_info) == 64, "a request's properties are one cache line");

const struct rmem_wr_info rmem_wr_info[RMEM_WR_OPCODE_NB] __rte_cache_aligned = {
		[RMEM_WR_RDMA_WRITE] =
				{
						.wc_opcode = RMEM_WC_RDMA_WRITE,
						.flags = INLINE_FLAGS,
						.props = RMEM_WR_HAS_SGES,
						.remote_access = RMEM_ACCESS_REMOTE_WRITE,
				},
		[RMEM_WR_RDMA_WRITE_WITH_IMM] =
				{
						.wc_opcode = RMEM_WC_RDMA_WRITE,
						.flags = INLINE_FLAGS,
						.props = RMEM_WR_HAS_SGES,
						.remote_access = RMEM_ACCESS_REMOTE_WRITE,
						.recv_opcode = RMEM_WC_RECV_RDMA_WITH_IMM,
						.recv_flags = RMEM_WC_WITH_IMM,
				},
		[RMEM_WR_SEND] =
				{
						.wc_opcode = RMEM_WC_SEND,
						.flags = INLINE_FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_UD,
						.recv_opcode = RMEM_WC_RECV,
				},
		[RMEM_WR_SEND_WITH_IMM] =
				{
						.wc_opcode = RMEM_WC_SEND,
						.flags = INLINE_FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_UD,
						.recv_opcode = RMEM_WC_RECV,
						.recv_flags = RMEM_WC_WITH_IMM,
				},
		[RMEM_WR_RDMA_READ] =
				{
						.wc_opcode = RMEM_WC_RDMA_READ,
						.flags = FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_RC_ONLY,
						.remote_access = RMEM_ACCESS_REMOTE_READ,
				},
		[RMEM_WR_ATOMIC_CMP_AND_SWP] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_COMP_SWAP,
						.flags = FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_RC_ONLY |
								RMEM_WR_WORD,
						.capa = RMEM_DEV_CAPA_ATOMIC,
						.remote_access = RMEM_ACCESS_REMOTE_ATOMIC,
				},
		[RMEM_WR_ATOMIC_FETCH_AND_ADD] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_FETCH_ADD,
						.flags = FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_RC_ONLY |
								RMEM_WR_WORD,
						.capa = RMEM_DEV_CAPA_ATOMIC,
						.remote_access = RMEM_ACCESS_REMOTE_ATOMIC,
				},
		[RMEM_WR_LOCAL_INV] =
				{
						.wc_opcode = RMEM_WC_LOCAL_INV,
						.flags = FLAGS,
						.props = RMEM_WR_INVALIDATES,
						.capa = RMEM_DEV_CAPA_LOCAL_INV,
				},
		[RMEM_WR_SEND_WITH_INV] =
				{
						.wc_opcode = RMEM_WC_SEND,
						.flags = INLINE_FLAGS,
						.props = RMEM_WR_HAS_SGES |
								RMEM_WR_INVALIDATES_REMOTE |
								RMEM_WR_RC_ONLY,
						.capa = RMEM_DEV_CAPA_SEND_WITH_INV,
						.recv_opcode = RMEM_WC_RECV,
						.recv_flags = RMEM_WC_WITH_INV,
				},
		[RMEM_WR_REG_MR] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_REG_MR,
						.flags = FLAGS,
						.props = RMEM_WR_BINDS,
						.capa = RMEM_DEV_CAPA_FAST_REG,
						.handle = {HANDLE(reg_mr.mr),
								HANDLE(reg_mr.page_list)},
				},
		[RMEM_WR_RDMA_READ_WITH_INV] =
				{
						.wc_opcode = RMEM_WC_RDMA_READ,
						.flags = FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_INVALIDATES |
								RMEM_WR_RC_ONLY,
						.capa = RMEM_DEV_CAPA_READ_WITH_INV,
						.remote_access = RMEM_ACCESS_REMOTE_READ,
				},
		[RMEM_WR_BIND_MW] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_BIND_MW,
						.flags = FLAGS,
						.props = RMEM_WR_BINDS,
						.capa = RMEM_DEV_CAPA_MW_TYPE_2B,
						.handle = {HANDLE(bind_mw.mw), HANDLE(bind_mw.mr)},
				},
		[RMEM_WR_UMR] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_UMR,
						.flags = FLAGS,
						.props = RMEM_WR_BINDS,
						.capa = RMEM_DEV_CAPA_UMR,
						.handle = {HANDLE(umr.mr)},
				},
		[RMEM_WR_ATOMIC_WRITE] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_ATOMIC_WRITE,
						.flags = INLINE_FLAGS,
						.props = RMEM_WR_HAS_SGES | RMEM_WR_RC_ONLY |
								RMEM_WR_WORD,
						.capa = RMEM_DEV_CAPA_ATOMIC_WRITE,
						.remote_access = RMEM_ACCESS_REMOTE_WRITE,
				},
		[RMEM_WR_FLUSH] =
				{
						.is_full_check = true,
						.wc_opcode = RMEM_WC_FLUSH,
						.flags = FLAGS,
						.props = RMEM_WR_RC_ONLY,
						.capa = RMEM_DEV_CAPA_FLUSH,
						/* Or FLUSH_PERSISTENT, depending on flush.type. */
						.remote_access = RMEM_ACCESS_FLUSH_GLOBAL,
				},
};

/* Whether a service has the request. */
static bool
is_of_service(uint16_t type, const struct rmem_wr_info *info, bool is_late)
{
	if (type == RMEM_QPT_UD)
		return (info->props & RMEM_WR_UD) != 0 || (is_late && info->remote_access != 0);
	return type == RMEM_QPT_RC || type == RMEM_QPT_XRC_SEND ||
			(type == RMEM_QPT_UC && (info->props & RMEM_WR_RC_ONLY) == 0);
}

void
rmem_wr_limits_set(struct rmem_wr_limits *limits, const struct rmem_qp_conf *conf, uint64_t capa)
{
	unsigned int i;

	*limits = (struct rmem_wr_limits){.max_inline_data = conf->max_inline_data,
			.max_send_sge = conf->max_send_sge,
			.is_late = (conf->flags & RMEM_QP_LATE_ERRORS) != 0};
	for (i = 0; i < RMEM_WR_OPCODE_NB; i++) {
		const struct rmem_wr_info *info = &rmem_wr_info[i];

		if ((info->capa & ~capa) != 0)
			continue;
		if (!is_of_service(conf->type, info, limits->is_late))
			continue;
		limits->opcodes |= 1u << i;
		/* UD requests need a check of their destination. */
		if (!info->is_full_check && conf->type != RMEM_QPT_UD)
			limits->simple |= 1u << i;
	}
}

/* Check the number of SGEs and, where it matters, their lengths. */
static __rte_noinline bool
wr_check_sges(const struct rmem_wr_limits *limits, const struct rmem_send_wr *wr)
{
	uint64_t length = 0;
	uint32_t i;

	if (wr->num_sge > limits->max_send_sge)
		return false;
	if ((rmem_wr_info[wr->opcode].props & RMEM_WR_WORD) != 0 && !limits->is_late &&
			(wr->num_sge != 1 || wr->sg_list[0].length != sizeof(uint64_t)))
		return false;
	if ((wr->flags & RMEM_SEND_INLINE) == 0)
		return true;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= limits->max_inline_data;
}

/* Check the destination of a UD request. */
static int
wr_check_ud(const struct rmem_qp *qp, const struct rmem_wr_limits *limits,
		const struct rmem_send_wr *wr)
{
	if (!rmem_obj_is_of(wr->ud.ah, RMEM_OBJ_AH, &qp->obj) || wr->ud.remote_qpn >> 24 != 0)
		return -EINVAL;
	return wr->ud.ah->pd == qp->pd || limits->is_late ? 0 : -EPERM;
}

int
rmem_wr_check_full(const struct rmem_qp *qp, const struct rmem_wr_limits *limits,
		const struct rmem_send_wr *wr)
{
	const struct rmem_wr_info *info;
	int ret = 0;

	if (wr->opcode >= RMEM_WR_OPCODE_NB)
		return -EINVAL;
	info = &rmem_wr_info[wr->opcode];
	if (unlikely((limits->opcodes >> wr->opcode & 1) == 0))
		return -EOPNOTSUPP;
	if (unlikely((wr->flags & ~info->flags) != 0))
		return -EINVAL;
	if ((info->props & RMEM_WR_HAS_SGES) != 0 && !wr_check_sges(limits, wr))
		return -EINVAL;
	if (qp->type == RMEM_QPT_UD)
		ret = wr_check_ud(qp, limits, wr);
	return ret == 0 && !rmem_wr_objs_fit(qp, wr) ? -EINVAL : ret;
}
