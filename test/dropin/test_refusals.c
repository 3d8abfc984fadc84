/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requests that posts refuse, and those that complete with an error: the table of doc/dropin.md. A
 * program's own test of errors expects what NICs do.
 */

#include "own_qp.h"

#define PAGE  4096u
#define QKEY  0x1234u
#define LOCAL IBV_ACCESS_LOCAL_WRITE
#define CAP   ((struct ibv_qp_cap){8, 8, 2, 1, 0})
#define ALL                                                                                        \
	(LOCAL | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |     \
			IBV_ACCESS_MW_BIND)

static struct ibv_context *context;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq *cq;
static struct ibv_qp *conn, *ud;
static struct ibv_mr *mr;
static uint8_t buf[2 * PAGE] __attribute__((aligned(PAGE)));

static void
set_state(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qkey = QKEY};

	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask) == 0);
}

static void
connect_rc(void)
{
	const struct ibv_qp_attr attr = {.qp_access_flags = ALL & ~(LOCAL | IBV_ACCESS_MW_BIND),
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = conn->qp_num,
			.max_rd_atomic = 1,
			.max_dest_rd_atomic = 1};

	set_state(conn, IBV_QPS_RESET, 0);
	connect_qp(conn, attr);
}

static void
connect_ud(void)
{
	set_state(ud, IBV_QPS_RESET, 0);
	set_state(ud, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	set_state(ud, IBV_QPS_RTR, 0);
	set_state(ud, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static struct ibv_ah *
create_ah(struct ibv_pd *of)
{
	struct ibv_port_attr port;
	struct ibv_ah *ah;

	HOLDS(ibv_query_port(context, 1, &port) == 0);
	ah = ibv_create_ah(of, &(struct ibv_ah_attr){.dlid = port.lid, .port_num = 1});
	HOLDS(ah != NULL);
	return ah;
}

static int
post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(qp, wr, &bad);
}

/* The request is accepted, and completes with that status. */
static void
completes(struct ibv_qp *qp, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	wr->wr_id++;
	HOLDS(post(qp, wr) == 0);
	wc = wait_wc(cq);
	HOLDS(wc.status == status && wc.wr_id == wr->wr_id && wc.qp_num == qp->qp_num);
}

/* IBTA table 61 of 11.4.1.1: UD has SENDs only. */
static void
operations_that_ud_lacks(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
			IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_ah *ah = create_ah(pd);
	unsigned int i;

	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		wr.opcode = opcodes[i];
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = ud->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		completes(ud, &wr, IBV_WC_LOC_QP_OP_ERR);
		connect_ud();
	}
	/* Refused; the window of a binding is not read. */
	wr.opcode = IBV_WR_LOCAL_INV;
	HOLDS(post(ud, &wr) == EOPNOTSUPP && errno == EOPNOTSUPP);
	wr.opcode = IBV_WR_BIND_MW;
	HOLDS(post(ud, &wr) == EOPNOTSUPP && errno == EOPNOTSUPP);
	HOLDS(ibv_destroy_ah(ah) == 0);
}

/* IBTA C10-10. A changed handle does not matter, nor do more than 24 bits of a number. */
static void
address_handles_of_datagrams(void)
{
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	struct ibv_ah *ah = create_ah(pd), *other = create_ah(other_pd);

	wr.wr.ud.ah = other;
	wr.wr.ud.remote_qpn = ud->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	completes(ud, &wr, IBV_WC_LOC_QP_OP_ERR);
	connect_ud();
	wr.wr.ud.ah = ah;
	ah->handle ^= 1;
	completes(ud, &wr, IBV_WC_SUCCESS);
	ah->handle ^= 1;
	wr.wr.ud.remote_qpn = 0xdeadbeef;
	completes(ud, &wr, IBV_WC_SUCCESS);
	wr.wr.ud.ah = (struct ibv_ah *)(void *)mr;
	HOLDS(post(ud, &wr) == EINVAL);
	HOLDS(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(other) == 0);
}

/* IBTA 9.4.5: 8 bytes. */
static void
atomics_of_another_size(void)
{
	struct ibv_sge sge[2] = {{(uintptr_t)buf, 8, mr->lkey}, {(uintptr_t)buf, 8, mr->lkey}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		wr.num_sge = i < 3 ? 1 : 2;
		sge[0].length = i == 0 ? 9 : i == 1 ? 4 : i == 2 ? 0 : 8;
		wr.wr.atomic.remote_addr = (uintptr_t)buf + 64;
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.compare_add = 1;
		buf[64] = 5;
		completes(conn, &wr, IBV_WC_LOC_LEN_ERR);
		HOLDS(buf[64] == 5);
		connect_rc();
	}
}

static void
bind_fails(struct ibv_mw *mw, struct ibv_mr *to, uint64_t addr, uint64_t length,
		unsigned int access, unsigned int flags)
{
	struct ibv_mw_bind bind = {.wr_id = 7, .send_flags = flags};
	struct ibv_wc wc;

	bind.bind_info = (struct ibv_mw_bind_info){to, addr, length, access};
	HOLDS(ibv_bind_mw(conn, mw, &bind) == 0);
	wc = wait_wc(cq);
	HOLDS(wc.status == IBV_WC_MW_BIND_ERR && wc.wr_id == 7);
	connect_rc();
}

/* IBTA C10-72 to C10-75. */
static void
bindings_of_type_1(void)
{
	const unsigned int right = IBV_ACCESS_REMOTE_WRITE;
	const uint64_t at = (uintptr_t)buf;
	struct ibv_mr *plain = ibv_reg_mr(pd, buf, PAGE, LOCAL);
	struct ibv_mr *fixed = ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_MW_BIND);
	struct ibv_mr *others = ibv_reg_mr(other_pd, buf, PAGE, ALL);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw *other = ibv_alloc_mw(other_pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};

	HOLDS(plain != NULL && fixed != NULL && others != NULL && mw != NULL && other != NULL);
	bind_fails(mw, mr, at, PAGE + 1, right, IBV_SEND_SIGNALED);
	bind_fails(mw, mr, at - 1, 2, right, 0);
	bind_fails(mw, plain, at, 8, right, IBV_SEND_SIGNALED);
	bind_fails(mw, fixed, at, 8, right, IBV_SEND_SIGNALED);
	bind.bind_info = (struct ibv_mw_bind_info){others, at, 8, right};
	HOLDS(ibv_bind_mw(conn, mw, &bind) == EPERM); /* by libibverbs */
	bind_fails(other, others, at, 8, right, IBV_SEND_SIGNALED);
	bind_fails(other, NULL, 0, 0, 0, IBV_SEND_SIGNALED);
	/* Changed handles of a window and its MR are not read. */
	mw->handle ^= 1;
	mr->handle ^= 1;
	bind.bind_info = (struct ibv_mw_bind_info){mr, at, 8, right};
	HOLDS(ibv_bind_mw(conn, mw, &bind) == 0 && wait_wc(cq).status == IBV_WC_SUCCESS);
	mw->handle ^= 1;
	mr->handle ^= 1;
	HOLDS(ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(other) == 0);
	HOLDS(ibv_dereg_mr(plain) == 0 && ibv_dereg_mr(fixed) == 0 && ibv_dereg_mr(others) == 0);
}

/* IBTA C10-96, mlx5 and rxe: sends are refused until RTS, receives in RESET. */
static void
posts_before_rts(void)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR};
	const int masks[] = {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0};
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	struct ibv_sge rsge = {(uintptr_t)buf + 64, 128, mr->lkey};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 77, .sg_list = &rsge, .num_sge = 1};
	struct ibv_ah *ah = create_ah(pd);
	unsigned int i;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ud->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	for (i = 0; i < 3; i++) {
		set_state(ud, states[i], masks[i]);
		errno = 0;
		HOLDS(post(ud, &wr) == EINVAL && errno == EINVAL);
		HOLDS(ibv_post_recv(ud, &recv, &bad_recv) == (i == 0 ? EINVAL : 0));
	}
	set_state(ud, IBV_QPS_RTS, IBV_QP_SQ_PSN);
	HOLDS(post(ud, &wr) == 0);
	for (i = 0; i < 2; i++)
		HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_ah(ah) == 0);
}

/* As libibverbs refuses it; test_errnos.c has what else is refused. */
static void
rereg_without_address(void)
{
	struct ibv_mr *own = ibv_reg_mr(pd, buf, PAGE, LOCAL);

	HOLDS(own != NULL);
	HOLDS(ibv_rereg_mr(own, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 8, 0) ==
			IBV_REREG_MR_ERR_INPUT);
	HOLDS(ibv_dereg_mr(own) == 0);
}

/* The address that the macro ibv_reg_mr() passes as iova does not matter. */
static void
zero_based_mr_not_on_a_page(void)
{
	struct ibv_mr *own = ibv_reg_mr(pd, buf + 16, 64, ALL | IBV_ACCESS_ZERO_BASED);
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

	HOLDS(own != NULL);
	buf[0] = 42;
	wr.wr.rdma.remote_addr = 0;
	wr.wr.rdma.rkey = own->rkey;
	completes(conn, &wr, IBV_WC_SUCCESS);
	HOLDS(buf[16] == 42);
	wr.wr.rdma.remote_addr = 57;
	completes(conn, &wr, IBV_WC_REM_ACCESS_ERR);
	connect_rc();
	HOLDS(ibv_dereg_mr(own) == 0);
}

int
main(void)
{
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	other_pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 32, NULL, NULL, 0);
	HOLDS(pd != NULL && other_pd != NULL && cq != NULL);
	mr = ibv_reg_mr(pd, buf, PAGE, ALL);
	HOLDS(mr != NULL);
	conn = create_qp_of(IBV_QPT_RC, pd, cq, NULL, CAP);
	ud = create_qp_of(IBV_QPT_UD, pd, cq, NULL, CAP);
	HOLDS(conn != NULL && ud != NULL);
	connect_rc();
	connect_ud();
	operations_that_ud_lacks();
	address_handles_of_datagrams();
	atomics_of_another_size();
	bindings_of_type_1();
	posts_before_rts();
	rereg_without_address();
	zero_based_mr_not_on_a_page();
	HOLDS(ibv_destroy_qp(conn) == 0 && ibv_destroy_qp(ud) == 0 && ibv_dereg_mr(mr) == 0);
	HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(other_pd) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
	return 0;
}
