/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program, without any call of rmem: two QPs of one process, each function group. */

#include "own_qp.h"

#define SIZE 4096

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qps[2];
static uint8_t buf[2 * SIZE];

static void
query(void)
{
	struct ibv_device_attr_ex attr;

	HOLDS(ibv_query_device_ex(context, NULL, &attr) == 0);
	HOLDS(attr.orig_attr.max_qp == 4096 && attr.orig_attr.max_cq == 4096);
	HOLDS(attr.orig_attr.max_cqe == 4194303 && attr.orig_attr.max_srq == 4096);
	HOLDS(attr.orig_attr.max_mr == 65536 && attr.orig_attr.max_pd == 4096);
	HOLDS(attr.phys_port_cnt_ex == 1);
	HOLDS(attr.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
}

/* As ib_write_bw -q 4096: entries for 128 requests of each QP. */
static void
create_large(void)
{
	struct ibv_cq *large = ibv_create_cq(context, 128 * 4096, NULL, NULL, 0);

	HOLDS(large != NULL && large->cqe >= 128 * 4096);
	HOLDS(ibv_destroy_cq(large) == 0);
}

/* A CQ has at most max_cqe entries, so that it can be given the size that it has. */
static void
create_largest(void)
{
	struct ibv_device_attr attr;
	struct ibv_cq *largest;

	HOLDS(ibv_query_device(context, &attr) == 0);
	largest = ibv_create_cq(context, attr.max_cqe, NULL, NULL, 0);
	HOLDS(largest != NULL && largest->cqe == attr.max_cqe);
	HOLDS(ibv_resize_cq(largest, 1) == 0 && largest->cqe >= 1);
	HOLDS(ibv_resize_cq(largest, attr.max_cqe) == 0 && largest->cqe == attr.max_cqe);
	HOLDS(ibv_destroy_cq(largest) == 0);
}

static void
create(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 2, 2, 0}};
	int i;

	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	HOLDS(cq != NULL && cq->cqe >= 64);
	mr = ibv_reg_mr(pd, buf, sizeof(buf),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	HOLDS(mr != NULL);
	init.send_cq = init.recv_cq = cq;
	for (i = 0; i < 2; i++) {
		qps[i] = ibv_create_qp(pd, &init);
		HOLDS(init.cap.max_inline_data >= sizeof(struct ibv_sge));
		HOLDS(qps[i] != NULL && qps[i]->state == IBV_QPS_RESET);
	}
}

/* Connect, and query the sizes of the queues. */
static void
connect_to(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qp_num,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 12,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 1};
	struct ibv_qp_init_attr init;

	connect_qp(qp, attr);
	HOLDS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	HOLDS(init.cap.max_send_wr >= 16);
}

/* Poll for a completion of that QP and check it. */
static void
expect(const struct ibv_qp *qp, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	const struct ibv_wc wc = wait_wc(cq);

	HOLDS(wc.qp_num == qp->qp_num);
	HOLDS(wc.status == status);
	HOLDS(status != IBV_WC_SUCCESS || wc.opcode == opcode);
}

/* Not of test_groups.c: an ATOMIC_WRITE. */
static void
transfer(void)
{
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr *bad = NULL,
			   wr = {.sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_ATOMIC_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {(uintptr_t)buf + SIZE, mr->rkey}};

	memset(buf, 9, 8);
	HOLDS(ibv_post_send(qps[0], &wr, &bad) == 0 && bad == NULL);
	expect(qps[0], IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
	HOLDS(memcmp(buf, buf + SIZE, 8) == 0);
}

/* The completions of a QP leave its CQ when it is reset; those of others remain. */
static void
reset(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 6; i++)
		HOLDS(post_write(qps[i % 2], mr, (uint64_t)i) == 0);
	reset_qp(qps[0]);
	for (i = 1; i < 6; i += 2) {
		HOLDS(ibv_poll_cq(cq, 1, &wc) == 1);
		HOLDS(wc.wr_id == (uint64_t)i && wc.qp_num == qps[1]->qp_num);
	}
	HOLDS(ibv_poll_cq(cq, 1, &wc) == 0);
	reset_qp(qps[1]);
	connect_to(qps[0], qps[1]);
	connect_to(qps[1], qps[0]);
}

/* Post a batch by ibv_wr_*: an inline WRITE, a READ of what it wrote, and an ATOMIC_WRITE. */
static void
write_and_read(struct ibv_qp_ex *ex)
{
	static uint8_t text[16] = "inline";
	char word[8] = "8 bytes";

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf + SIZE);
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	ex->wr_id = 2;
	ibv_wr_rdma_read(ex, mr->rkey, (uintptr_t)buf + SIZE);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buf, sizeof(text));
	ex->wr_id = 3;
	ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)buf + SIZE + 64, word);
	memset(word, 0, sizeof(word));
	HOLDS(ibv_wr_complete(ex) == 0);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf);
	ibv_wr_set_inline_data(ex, buf, SIZE);
	HOLDS(ibv_wr_complete(ex) == EINVAL);
}

/* An extended CQ and QP, in a parent domain with a thread domain. */
static void
extended(void)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(context, &td_attr);
	struct ibv_parent_domain_init_attr domain_attr = {.pd = pd, .td = td};
	struct ibv_pd *domain = ibv_alloc_parent_domain(context, &domain_attr);
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq_ex = ibv_create_cq_ex(context, &cq_attr);
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = domain,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
					IBV_QP_EX_WITH_ATOMIC_WRITE,
			.cap = {16, 16, 1, 1, 16}};
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_qp *qp;

	HOLDS(td != NULL && domain != NULL && cq_ex != NULL);
	HOLDS(ibv_dealloc_td(td) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq_ex);
	qp = ibv_create_qp_ex(context, &init);
	HOLDS(qp != NULL && ibv_qp_to_qp_ex(qps[0]) == NULL);
	connect_to(qp, qp);
	write_and_read(ibv_qp_to_qp_ex(qp));
	HOLDS(strcmp((char *)buf, "inline") == 0);
	HOLDS(ibv_start_poll(cq_ex, &poll) == 0 && cq_ex->wr_id == 1);
	HOLDS(cq_ex->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(cq_ex) == IBV_WC_RDMA_WRITE);
	HOLDS(ibv_wc_read_qp_num(cq_ex) == qp->qp_num);
	HOLDS(ibv_next_poll(cq_ex) == 0 && cq_ex->wr_id == 2);
	HOLDS(ibv_wc_read_opcode(cq_ex) == IBV_WC_RDMA_READ);
	HOLDS(ibv_next_poll(cq_ex) == 0 && cq_ex->wr_id == 3);
	HOLDS(ibv_wc_read_opcode(cq_ex) == IBV_WC_ATOMIC_WRITE);
	HOLDS(strcmp((char *)buf + SIZE + 64, "8 bytes") == 0);
	HOLDS(ibv_next_poll(cq_ex) == ENOENT);
	ibv_end_poll(cq_ex);
	HOLDS(ibv_start_poll(cq_ex, &poll) == ENOENT);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)) == 0);
	HOLDS(ibv_dealloc_pd(domain) == 0 && ibv_dealloc_td(td) == 0);
}

/* Inline data, and the value of an ATOMIC_WRITE, need no SGE of the program. */
static void
requests_without_sge(void)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = pd,
			.send_cq = cq,
			.recv_cq = cq,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE,
			.cap = {16, 16, 0, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
	char text[] = "no SGE", word[8] = "a value";
	struct ibv_qp_ex *ex;

	HOLDS(qp != NULL && init.cap.max_inline_data >= sizeof(text));
	ex = ibv_qp_to_qp_ex(qp);
	connect_to(qp, qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf);
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)buf + 64, word);
	HOLDS(ibv_wr_complete(ex) == 0);
	expect(qp, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	expect(qp, IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
	HOLDS(strcmp((char *)buf, text) == 0 && strcmp((char *)buf + 64, word) == 0);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

/* Not of test_groups.c and test_errnos.c. */
static void
shared_receives(void)
{
	struct ibv_srq_init_attr_ex init_ex = {.attr = {.max_wr = 4, .max_sge = 1},
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
			.srq_type = IBV_SRQT_BASIC,
			.pd = pd};
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 2}};
	struct ibv_srq_attr attr = {.max_wr = 32, .srq_limit = 1};
	struct ibv_recv_wr *bad, recv[2] = {{.next = &recv[1]}, {.num_sge = 100}};
	struct ibv_srq *srq, *other;
	struct ibv_qp *qp;

	other = ibv_create_srq_ex(context, &init_ex);
	HOLDS(other != NULL && ibv_destroy_srq(other) == 0);
	init_ex.srq_type = IBV_SRQT_TM;
	HOLDS(ibv_create_srq_ex(context, &init_ex) == NULL);
	srq = ibv_create_srq(pd, &init);
	HOLDS(srq != NULL && srq->pd == pd);
	qp = create_qp_of(IBV_QPT_RC, pd, cq, srq, (struct ibv_qp_cap){16, 16, 0, 0, 0});
	HOLDS(qp != NULL && qp->srq == srq);
	HOLDS(ibv_post_recv(qp, recv, &bad) == EINVAL && bad == recv);
	HOLDS(ibv_post_srq_recv(srq, recv, &bad) == EINVAL && bad == &recv[1]);
	HOLDS(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == 0);
	HOLDS(ibv_query_srq(srq, &attr) == 0 && attr.max_wr >= 32);
	HOLDS(ibv_modify_srq(srq, &attr, 1 << 9) != 0);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0);
}

static void
destroy(void)
{
	HOLDS(ibv_destroy_qp(qps[0]) == 0 && ibv_destroy_qp(qps[1]) == 0);
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
}

int
main(int argc, char **argv)
{
	context = open_device(argc > 1 ? argv[1] : "soft0");
	query();
	create_large();
	create_largest();
	create();
	connect_to(qps[0], qps[1]);
	connect_to(qps[1], qps[0]);
	transfer();
	reset();
	extended();
	requests_without_sge();
	shared_receives();
	destroy();
	printf("all groups of verbs calls passed\n");
	return 0;
}
