/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* QPs and requests of test-errnos. */

#include "own_qp.h"
#include "errnos.h"

#define DEPTH 4u

static struct ibv_qp *qp;

static struct ibv_qp_init_attr_ex
good_init(void)
{
	return (struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_RC,
			.send_cq = cq,
			.recv_cq = cq,
			.pd = pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD,
			.cap = {.max_send_wr = DEPTH,
					.max_recv_wr = DEPTH,
					.max_send_sge = 1,
					.max_recv_sge = 1}};
}

static void
create_fails(const char *call, struct ibv_qp_init_attr_ex init)
{
	struct ibv_qp *made;

	errno = STALE;
	made = ibv_create_qp_ex(context, &init);
	print_null(call, made);
	if (made != NULL)
		HOLDS(ibv_destroy_qp(made) == 0);
}

static void
creation(void)
{
	struct ibv_qp_init_attr_ex init = good_init();

	init.qp_type = (enum ibv_qp_type)0;
	create_fails("ibv_create_qp, type 0", init);
	init.qp_type = (enum ibv_qp_type)99;
	create_fails("ibv_create_qp, type 99", init);
	init = good_init();
	init.cap.max_send_wr = UINT32_MAX / 2;
	create_fails("ibv_create_qp, sends", init);
	init = good_init();
	init.cap.max_recv_wr = UINT32_MAX / 2;
	create_fails("ibv_create_qp, receives", init);
	init = good_init();
	init.cap.max_send_sge = 4096;
	create_fails("ibv_create_qp, SGEs", init);
	init = good_init();
	init.cap.max_inline_data = 1u << 20;
	create_fails("ibv_create_qp, inline data", init);
	init = good_init();
	init.comp_mask = 0;
	create_fails("ibv_create_qp_ex, no PD", init);
	init.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 30;
	create_fails("ibv_create_qp_ex, mask", init);
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = UINT64_C(1) << 40;
	create_fails("ibv_create_qp_ex, operations", init);
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = 1u << 30;
	create_fails("ibv_create_qp_ex, flags", init);
}

static void
modification(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .port_num = 9};
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	fails("ibv_modify_qp, RESET to RTS", ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	fails("ibv_modify_qp, no attributes", ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	fails("ibv_modify_qp, port 9", ibv_modify_qp(qp, &attr, to_init));
	attr.port_num = 1;
	attr.pkey_index = 999;
	fails("ibv_modify_qp, P_Key index", ibv_modify_qp(qp, &attr, to_init));
	attr.qp_state = (enum ibv_qp_state)77;
	fails("ibv_modify_qp, state 77", ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	fails("ibv_attach_mcast, RC", ibv_attach_mcast(qp, &attr.ah_attr.grh.dgid, 0));
	fails("ibv_detach_mcast, RC", ibv_detach_mcast(qp, &attr.ah_attr.grh.dgid, 0));
}

static void
binding(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.bind_info = {mr, (uintptr_t)buf, 8, IBV_ACCESS_ZERO_BASED}};

	HOLDS(mw != NULL);
	fails("ibv_bind_mw, zero-based", ibv_bind_mw(qp, mw, &bind));
	bind.bind_info = (struct ibv_mw_bind_info){NULL, (uintptr_t)buf, 8, 0};
	fails("ibv_bind_mw, no MR", ibv_bind_mw(qp, mw, &bind));
	HOLDS(ibv_dealloc_mw(mw) == 0);
}

/* In RESET, then in RTS. */
static void
posts(const char *sends, const char *receives)
{
	struct ibv_sge sges[64] = {{(uintptr_t)buf, 8, mr->lkey}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sges, .num_sge = 1};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = sges, .num_sge = 1};

	wr.wr.rdma.remote_addr = (uintptr_t)buf + 64;
	wr.wr.rdma.rkey = mr->rkey;
	fails(sends, ibv_post_send(qp, &wr, &bad));
	fails(receives, ibv_post_recv(qp, &recv, &bad_recv));
}

static void
requests(void)
{
	struct ibv_sge sges[64] = {{(uintptr_t)buf, 8, mr->lkey}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sges, .num_sge = 64};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = sges, .num_sge = 64};
	int ret = 0, i;

	wr.wr.rdma.remote_addr = (uintptr_t)buf + 64;
	wr.wr.rdma.rkey = mr->rkey;
	fails("ibv_post_send, SGEs", ibv_post_send(qp, &wr, &bad));
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	sges[0].length = 1u << 20;
	fails("ibv_post_send, inline data", ibv_post_send(qp, &wr, &bad));
	fails("ibv_post_recv, SGEs", ibv_post_recv(qp, &recv, &bad_recv));
	recv.num_sge = 1;
	errno = STALE;
	for (i = 0; i < 1 << 16 && ret == 0; i++)
		ret = ibv_post_recv(qp, &recv, &bad_recv);
	print_failure("ibv_post_recv, full", ret);
}

void
queue_pairs(void)
{
	struct ibv_qp_init_attr_ex init = good_init();
	union ibv_gid gid;
	struct ibv_qp_attr attr = {
			.path_mtu = IBV_MTU_1024, .max_rd_atomic = 1, .max_dest_rd_atomic = 1};

	creation();
	qp = ibv_create_qp_ex(context, &init);
	HOLDS(qp != NULL && ibv_query_gid(context, 1, 0, &gid) == 0);
	modification();
	attr.qp_state = IBV_QPS_RESET;
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	posts("ibv_post_send, RESET", "ibv_post_recv, RESET");
	binding();
	attr.dest_qp_num = qp->qp_num;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = gid;
	connect_qp(qp, attr);
	attr.qp_state = IBV_QPS_INIT;
	fails("ibv_modify_qp, RTS to INIT", ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	requests();
}

void
queue_pairs_end(void)
{
	HOLDS(ibv_destroy_qp(qp) == 0);
}
