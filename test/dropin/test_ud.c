/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program with QPs of UD: a message by ibv_post_send(), whose GRH leads back to its sender,
 * and the answer by ibv_wr_*.
 */

#include <netinet/in.h>

#include "own_qp.h"

#define QKEY 0x11111111
#define GRH  40

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qps[2]; /* the second one with ibv_wr_* */
static uint8_t buf[4096];

static void
ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp_init_attr init;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	HOLDS(ibv_modify_qp(qp, &attr, mask | IBV_QP_ACCESS_FLAGS) == EINVAL);
	start_ud(qp, QKEY);
	memset(&attr, 0, sizeof(attr));
	HOLDS(ibv_query_qp(qp, &attr, IBV_QP_QKEY, &init) == 0);
	HOLDS(attr.qkey == QKEY && attr.qp_state == IBV_QPS_RTS);
	HOLDS(init.qp_type == IBV_QPT_UD);
}

static void
create(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_UD,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
			.cap = {4, 4, 1, 1, 16}};
	struct ibv_qp_init_attr plain;

	context = open_device("soft0");
	init.pd = pd = ibv_alloc_pd(context);
	cq = ibv_create_cq_ex(context, &cq_attr);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	HOLDS(pd != NULL && cq != NULL && mr != NULL);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	memcpy(&plain, &init, sizeof(plain));
	qps[0] = ibv_create_qp(pd, &plain);
	HOLDS(ibv_create_qp_ex(context, &init) == NULL && errno == EOPNOTSUPP);
	init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	qps[1] = ibv_create_qp_ex(context, &init);
	HOLDS(qps[0] != NULL && qps[1] != NULL);
	ready(qps[0]);
	ready(qps[1]);
}

static void
post_recv(struct ibv_qp *qp, uint64_t wr_id, size_t at)
{
	struct ibv_sge sge = {(uintptr_t)buf + at, GRH + 16, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	HOLDS(ibv_post_recv(qp, &wr, &bad) == 0);
}

/* Poll until the completion with that wr_id. */
static struct ibv_wc
expect(uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc);
	while (n == 0);
	HOLDS(n == 1 && wc.wr_id == wr_id && wc.status == IBV_WC_SUCCESS);
	HOLDS(wc.vendor_err == 0);
	return wc;
}

static struct ibv_ah *
create_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.traffic_class = 0xfc};
	struct ibv_ah *ah;

	HOLDS(ibv_query_gid(context, 1, 0, &attr.grh.dgid) == 0);
	ah = ibv_create_ah(pd, &attr);
	HOLDS(ah != NULL && ah->pd == pd && ah->context == context);
	attr.port_num = 2;
	HOLDS(ibv_create_ah(pd, &attr) == NULL && errno == EINVAL);
	HOLDS(ibv_create_ah(pd, NULL) == NULL && errno == EINVAL);
	return ah;
}

/* By ibv_post_send(), to the second QP. */
static void
send_one(struct ibv_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)buf, 16, mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.wr_id = 1,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND_WITH_IMM,
					.imm_data = 5,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.ud = {NULL, qps[1]->qp_num, QKEY}};

	HOLDS(ibv_post_send(qps[0], &wr, &bad) == EINVAL && bad == &wr);
	wr.wr.ud.ah = ah;
	wr.opcode = IBV_WR_SEND_WITH_INV;
	HOLDS(ibv_post_send(qps[0], &wr, &bad) == EOPNOTSUPP && bad == &wr);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	memcpy(buf, "datagram", sizeof("datagram"));
	post_recv(qps[1], 2, 1024);
	HOLDS(ibv_post_send(qps[0], &wr, &bad) == 0);
}

/* By ibv_wr_*, to the sender of the first message. */
static void
answer(struct ibv_ah *ah, uint32_t qp_num)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qps[1]);
	char text[] = "answer";

	post_recv(qps[0], 4, 2048);
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, qp_num, QKEY);
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	HOLDS(ibv_wr_complete(ex) == 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, NULL, qp_num, QKEY);
	HOLDS(ibv_wr_complete(ex) == EINVAL);
}

/* As mlx5: 8 for UDP, and 1 for IPv6 or 2 for IPv4. */
static uint8_t
roce_header(void)
{
	struct ibv_port_attr port;
	struct in6_addr ip;
	union ibv_gid gid;

	HOLDS(ibv_query_port(context, 1, &port) == 0 && ibv_query_gid(context, 1, 0, &gid) == 0);
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return 0;
	memcpy(&ip, &gid, sizeof(ip));
	return IN6_IS_ADDR_V4MAPPED(&ip) ? 10 : 9;
}

static void
exchange(struct ibv_ah *ah)
{
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_ah_attr path;
	struct ibv_wc wc;
	struct ibv_ah *back;

	send_one(ah);
	wc = expect(2);
	HOLDS(wc.byte_len == GRH + 16 && wc.src_qp == qps[0]->qp_num);
	HOLDS(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.imm_data == 5);
	HOLDS(strcmp((char *)buf + 1024 + GRH, "datagram") == 0);
	HOLDS(wc.sl == roce_header());
	expect(1);
	HOLDS(ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)(void *)(buf + 1024), &path) ==
			0);
	HOLDS(path.grh.traffic_class == 0xfc);
	back = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(void *)(buf + 1024), 1);
	HOLDS(back != NULL);
	answer(back, wc.src_qp);
	HOLDS(ibv_destroy_ah(back) == 0);
	HOLDS(ibv_destroy_ah(back) == ENOENT);
	while (ibv_start_poll(cq, &poll) == ENOENT)
		;
	HOLDS(cq->wr_id == 4 && cq->status == IBV_WC_SUCCESS);
	HOLDS(ibv_wc_read_src_qp(cq) == qps[1]->qp_num);
	HOLDS(ibv_wc_read_wc_flags(cq) == IBV_WC_GRH && ibv_wc_read_vendor_err(cq) == 0);
	HOLDS(ibv_wc_read_byte_len(cq) == GRH + 7 && ibv_wc_read_sl(cq) == roce_header());
	ibv_end_poll(cq);
	HOLDS(strcmp((char *)buf + 2048 + GRH, "answer") == 0);
}

/* As many as the device reports, not one more, and again after they are destroyed. */
static void
all_ahs(void)
{
	static struct ibv_ah *ahs[32768];
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1, .grh.hop_limit = 1};
	int round, i;

	HOLDS(ibv_query_device(context, &device) == 0 && ibv_query_port(context, 1, &port) == 0);
	HOLDS(device.max_ah > 0 && device.max_ah <= (int)(sizeof(ahs) / sizeof(ahs[0])));
	attr.dlid = port.lid;
	HOLDS(ibv_query_gid(context, 1, 0, &attr.grh.dgid) == 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < device.max_ah; i++) {
			ahs[i] = ibv_create_ah(pd, &attr);
			HOLDS(ahs[i] != NULL);
		}
		HOLDS(ibv_create_ah(pd, &attr) == NULL && errno == ENOMEM);
		for (i = 0; i < device.max_ah; i++)
			HOLDS(ibv_destroy_ah(ahs[i]) == 0);
	}
}

int
main(void)
{
	struct ibv_qp_init_attr of_rc = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qkey = 1};
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1}};
	struct ibv_ah *ah;
	struct ibv_qp *qp;

	create();
	all_ahs();
	ah = create_ah();
	exchange(ah);
	HOLDS(ibv_attach_mcast(qps[0], NULL, 0xc000) == EINVAL);
	HOLDS(ibv_detach_mcast(qps[0], &gid, 0xc000) == EINVAL);
	HOLDS(ibv_attach_mcast(qps[0], &gid, 0xc000) == 0);
	HOLDS(ibv_attach_mcast(qps[0], &gid, 0xc000) == 0);
	HOLDS(ibv_destroy_qp(qps[0]) == EBUSY);
	HOLDS(ibv_detach_mcast(qps[0], &gid, 0xc000) == 0);
	HOLDS(ibv_detach_mcast(qps[0], NULL, 0xc000) == EINVAL);
	of_rc.send_cq = of_rc.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(pd, &of_rc);
	HOLDS(qp != NULL && ibv_modify_qp(qp, &attr, IBV_QP_QKEY) == EINVAL);
	HOLDS(ibv_dealloc_pd(pd) == EBUSY);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_ah(ah) == 0);
	HOLDS(ibv_destroy_ah(NULL) == ENOENT);
	HOLDS(ibv_destroy_qp(qps[0]) == 0 && ibv_destroy_qp(qps[1]) == 0);
	HOLDS(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0 && ibv_dereg_mr(mr) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	puts("ok");
	return 0;
}
