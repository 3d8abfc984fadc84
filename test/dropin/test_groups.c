/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program, which prints "group step: result" for each step: the same lines on soft0 and on
 * a device of the kernel, except for those that groups.txt lists.
 *
 * usage: test-groups DEVICE. Its QPs are connected to each other by GID 0 of port 1.
 */

#include <inttypes.h>

#include "groups.h"

#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define QKEY 0x11223344

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_mr *mr;
struct ibv_qp *qps[2];
_Alignas(SIZE) uint8_t buf[2 * SIZE];
static struct ibv_comp_channel *channel;
static union ibv_gid gid;

void
completion(const char *name)
{
	struct ibv_wc wc = {.wr_id = 0};
	time_t end = time(NULL) + WAIT_S;
	int n = 0;

	while (n == 0 && time(NULL) < end)
		n = ibv_poll_cq(cq, 1, &wc);
	if (n != 1)
		step(name, "none");
	else if (wc.status != IBV_WC_SUCCESS)
		step(name, "%" PRIu64 " %s", wc.wr_id, ibv_wc_status_str(wc.status));
	else
		step(name, "%" PRIu64 " opcode %u", wc.wr_id, wc.opcode);
}

static void
query(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid other;
	__be16 pkey = 0;

	result("query device", ibv_query_device_ex(context, NULL, &attr));
	step("query ports", "%u", attr.orig_attr.phys_port_cnt);
	step("query limits", "%s",
			attr.orig_attr.max_qp >= 64 && attr.orig_attr.max_cq >= 64 &&
							attr.orig_attr.max_cqe >= 1024
					? "enough"
					: "too low");
	result("query port", ibv_query_port(context, 1, &port));
	step("query state", "%s", ibv_port_state_str(port.state));
	step("query link", "%u", port.link_layer);
	result("query other port", ibv_query_port(context, 9, &port));
	result("query GID", ibv_query_gid(context, 1, 0, &gid));
	result("query other GID", ibv_query_gid(context, 1, 9999, &other));
	result("query P_Key", ibv_query_pkey(context, 1, 0, &pkey));
	step("query value of P_Key", "0x%x", be16toh(pkey));
}

static void
regions(void)
{
	struct ibv_mr *other;
	int ret;

	pd = ibv_alloc_pd(context);
	created("pd alloc", pd);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), ACCESS);
	created("mr reg", mr);
	HOLDS(mr != NULL);
	step("mr addr", "%s", mr->addr == buf && mr->length == sizeof(buf) ? "ok" : "wrong");
	created("mr remote write without local write",
			ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_REMOTE_WRITE));
	other = ibv_reg_mr_iova(pd, buf, SIZE, (uintptr_t)buf + 16 * SIZE, ACCESS);
	created("mr reg at iova", other);
	/* Its errors have codes of their own, and an errno. */
	ret = ibv_rereg_mr(
			other, IBV_REREG_MR_CHANGE_ACCESS, pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE);
	result("mr rereg", ret == 0 ? 0 : errno);
	result("mr dereg", ibv_dereg_mr(other));
	result("pd dealloc in use", ibv_dealloc_pd(pd));
}

static void
completion_queues(void)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_poll_cq_attr poll_attr = {.comp_mask = 0};
	struct ibv_cq_ex *ex;

	channel = ibv_create_comp_channel(context);
	created("channel create", channel);
	cq = ibv_create_cq(context, 8, &qps, channel, 0);
	created("cq create", cq);
	HOLDS(cq != NULL);
	step("cq size", "%s", cq->cqe >= 8 ? "ok" : "too small");
	created("cq create beyond the limit", ibv_create_cq(context, INT32_MAX, NULL, NULL, 0));
	result("cq resize", ibv_resize_cq(cq, 128));
	step("cq size after that", "%s", cq->cqe >= 128 ? "ok" : "too small");
	result("cq resize beyond the limit", ibv_resize_cq(cq, INT32_MAX));
	ex = ibv_create_cq_ex(context, &init);
	created("cq_ex create", ex);
	if (ex != NULL) {
		result("cq_ex poll of an empty one", ibv_start_poll(ex, &poll_attr));
		result("cq_ex destroy", ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	}
}

static struct ibv_qp *
make_qp(enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = type,
			.send_cq = cq,
			.recv_cq = cq,
			.srq = srq,
			.pd = pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD,
			.cap = {.max_send_wr = 16,
					.max_recv_wr = 16,
					.max_send_sge = 2,
					.max_recv_sge = 2,
					.max_inline_data = 64}};

	if (type == IBV_QPT_RC && srq == NULL) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
	}
	return ibv_create_qp_ex(context, &init);
}

static int
to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qkey = QKEY,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	return ibv_modify_qp(qp, &attr,
			mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* From INIT. */
static int
to_rtr(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qp_num,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 12,
			.ah_attr = {.is_global = 1,
					.port_num = 1,
					.grh = {.dgid = gid, .hop_limit = 64}}};
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

/* From RTR. */
static int
to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 1};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attr, mask);
}

bool
make_pair(enum ibv_qp_type type, struct ibv_srq *srq, const char *create)
{
	int i;

	for (i = 0; i < 2; i++)
		qps[i] = make_qp(type, i == 1 ? srq : NULL);
	created(create, qps[0] != NULL ? qps[1] : NULL);
	return qps[0] != NULL && qps[1] != NULL;
}

int
connect_first(void)
{
	int i, ret = 0;

	for (i = 0; i < 2 && ret == 0; i++)
		ret = to_init(qps[i]);
	for (i = 0; i < 2 && ret == 0; i++)
		ret = to_rtr(qps[i], qps[!i]);
	return ret == 0 ? to_rts(qps[0]) : ret;
}

bool
pair(enum ibv_qp_type type, struct ibv_srq *srq, const char *create, const char *connect)
{
	int ret;

	if (!make_pair(type, srq, create))
		return false;
	ret = connect_first();
	if (ret == 0)
		ret = to_rts(qps[1]);
	result(connect, ret);
	return ret == 0;
}

void
unpair(const char *destroy)
{
	int i, ret = 0;

	for (i = 0; i < 2; i++)
		ret |= ibv_destroy_qp(qps[i]);
	result(destroy, ret);
}

int
receive(uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)buf + SIZE, length, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 100, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(qps[1], &wr, &bad);
}

int
post(enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey, unsigned int flags)
{
	bool is_atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {(uintptr_t)buf, is_atomic ? 8 : 64, lkey};
	struct ibv_send_wr *bad,
			wr = {.wr_id = 1,
					.opcode = opcode,
					.sg_list = &sge,
					.num_sge = 1,
					.imm_data = htobe32(7),
					.send_flags = IBV_SEND_SIGNALED | flags};

	if (is_atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)buf + SIZE;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 9;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)buf + SIZE;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qps[0], &wr, &bad);
}

void
message(const char *sent, const char *received)
{
	struct ibv_wc wc[2];
	int n = 0, i;

	for (i = 0; n < 2 && i < WAIT_S * 1000; i += n < 2) {
		n += ibv_poll_cq(cq, 2 - n, &wc[n]);
		if (n < 2)
			poll(NULL, 0, 1);
	}
	for (i = 0; i < n; i++) {
		const struct ibv_wc *at = &wc[(wc[0].wr_id == 100) ^ i];

		if (at->wr_id != 100 || at->status != IBV_WC_SUCCESS)
			step(at->wr_id == 100 ? received : sent, "%s",
					ibv_wc_status_str(at->status));
		else
			step(received, "flags 0x%x, length %u",
					at->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_GRH),
					at->byte_len);
	}
	if (n != 2)
		step(sent, "%d completions", n);
}

static bool
is_copied(void)
{
	return memcmp(buf, buf + SIZE, 64) == 0;
}

static void
transfers(void)
{
	uint64_t *word = (uint64_t *)(void *)buf, *target = (uint64_t *)(void *)(buf + SIZE);

	memset(buf, 7, 64);
	result("rc write", post(IBV_WR_RDMA_WRITE, mr->lkey, mr->rkey, 0));
	completion("rc write completion");
	step("rc write data", "%s", is_copied() ? "ok" : "wrong");
	memset(buf, 0, 64);
	result("rc read", post(IBV_WR_RDMA_READ, mr->lkey, mr->rkey, 0));
	completion("rc read completion");
	step("rc read data", "%s", is_copied() ? "ok" : "wrong");
	*target = 5;
	result("rc compare and swap", post(IBV_WR_ATOMIC_CMP_AND_SWP, mr->lkey, mr->rkey, 0));
	completion("rc compare and swap completion");
	step("rc compare and swap data", "%" PRIu64 " %" PRIu64, *word, *target);
	result("rc fetch and add", post(IBV_WR_ATOMIC_FETCH_AND_ADD, mr->lkey, mr->rkey, 0));
	completion("rc fetch and add completion");
	step("rc fetch and add data", "%" PRIu64 " %" PRIu64, *word, *target);
	memset(buf, 8, 64);
	result("rc receive", receive(SIZE));
	result("rc send", post(IBV_WR_SEND, mr->lkey, 0, 0));
	message("rc send completion", "rc receive completion");
	step("rc send data", "%s", is_copied() ? "ok" : "wrong");
	result("rc receive for immediate data", receive(SIZE));
	result("rc write with immediate", post(IBV_WR_RDMA_WRITE_WITH_IMM, mr->lkey, mr->rkey, 0));
	message("rc write with immediate completion", "rc immediate completion");
	memset(buf, 9, 64);
	result("rc inline write without lkey",
			post(IBV_WR_RDMA_WRITE, 0, mr->rkey, IBV_SEND_INLINE));
	completion("rc inline completion");
	step("rc inline data", "%s", is_copied() ? "ok" : "wrong");
}

/* Two WRITEs by ibv_wr_*, the second one inline if so. */
static void
extended_posts(bool is_inline, const char *first, const char *second, const char *data)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qps[0]);

	created("wr of the QP", ex);
	if (ex == NULL)
		return;
	memset(buf, is_inline ? 10 : 15, 64);
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf + SIZE);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buf, 32);
	ex->wr_id = 3;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf + SIZE + 32);
	if (is_inline)
		ibv_wr_set_inline_data(ex, buf + 32, 32);
	else
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buf + 32, 32);
	result("wr complete", ibv_wr_complete(ex));
	completion(first);
	completion(second);
	step(data, "%s", is_copied() ? "ok" : "wrong");
	ibv_wr_start(ex);
	ex->wr_id = 4;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)buf + SIZE);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buf, 64);
	ibv_wr_abort(ex);
	step("wr abort", "%d completions", ibv_poll_cq(cq, 1, &(struct ibv_wc){.wr_id = 0}));
}

static void
events(void)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *found = NULL;
	void *of = NULL;

	step("channel before it is armed", "%d", poll(&fd, 1, 0));
	result("channel arm", ibv_req_notify_cq(cq, 0));
	result("channel write", post(IBV_WR_RDMA_WRITE, mr->lkey, mr->rkey, 0));
	step("channel readable", "%d", poll(&fd, 1, WAIT_S * 1000));
	result("channel event", ibv_get_cq_event(channel, &found, &of));
	step("channel CQ", "%s", found == cq && of == &qps ? "ok" : "wrong");
	ibv_ack_cq_events(cq, 1);
	completion("channel completion");
	step("channel after the event", "%d", poll(&fd, 1, 0));
}

/* A window of type 2 is bound, written to, and invalidated. */
static void
windows(void)
{
	struct ibv_mw *one = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = {.wr_id = 5, .opcode = IBV_WR_BIND_MW};

	created("mw alloc type 1", one);
	created("mw alloc type 2", mw);
	if (one != NULL)
		result("mw dealloc type 1", ibv_dealloc_mw(one));
	if (mw == NULL)
		return;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = mr,
			.addr = (uintptr_t)buf + SIZE,
			.length = SIZE,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	/* The window is of the QP that is written to. */
	result("mw bind", ibv_post_send(qps[1], &wr, &bad));
	completion("mw bind completion");
	mw->rkey = wr.bind_mw.rkey;
	memset(buf, 11, 64);
	result("mw write", post(IBV_WR_RDMA_WRITE, mr->lkey, mw->rkey, 0));
	completion("mw write completion");
	step("mw data", "%s", is_copied() ? "ok" : "wrong");
	wr = (struct ibv_send_wr){.wr_id = 6,
			.opcode = IBV_WR_LOCAL_INV,
			.send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = mw->rkey};
	result("mw invalidate", ibv_post_send(qps[1], &wr, &bad));
	completion("mw invalidate completion");
	result("mw dealloc type 2", ibv_dealloc_mw(mw));
}

static void
reliable(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_qp_init_attr init;

	if (!pair(IBV_QPT_RC, NULL, "rc create", "rc connect"))
		return;
	result("rc query", ibv_query_qp(qps[0], &attr, IBV_QP_STATE, &init));
	step("rc state", "%d, timeout %u, MTU %d, %s", attr.qp_state, attr.timeout, attr.path_mtu,
			attr.dest_qp_num == qps[1]->qp_num ? "its peer" : "another peer");
	result("rc modify without attributes", ibv_modify_qp(qps[0], &attr, 0));
	attr.qp_state = IBV_QPS_INIT;
	result("rc back to INIT", ibv_modify_qp(qps[0], &attr, IBV_QP_STATE));
	result("cq destroy in use", ibv_destroy_cq(cq));
	transfers();
	events();
	windows();
	extended_posts(false, "wr first of two", "wr second of two", "wr data of two");
	extended_posts(true, "wr first, not inline", "wr second, inline", "wr data of both");
	unpair("rc destroy");
}

static void
unreliable(void)
{
	if (!pair(IBV_QPT_UC, NULL, "uc create", "uc connect"))
		return;
	memset(buf, 12, 64);
	result("uc receive", receive(SIZE));
	result("uc send", post(IBV_WR_SEND_WITH_IMM, mr->lkey, 0, 0));
	message("uc send completion", "uc receive completion");
	step("uc data", "%s", is_copied() ? "ok" : "wrong");
	unpair("uc destroy");
}

static void
datagrams(void)
{
	struct ibv_ah_attr attr = {
			.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}};
	struct ibv_sge sge = {(uintptr_t)buf, 64, mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.wr_id = 1,
					.opcode = IBV_WR_SEND,
					.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED};
	struct ibv_ah *ah;

	if (!pair(IBV_QPT_UD, NULL, "ud create", "ud connect"))
		return;
	ah = ibv_create_ah(pd, &attr);
	created("ud address handle", ah);
	if (ah != NULL) {
		memset(buf, 13, 64);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qps[1]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		result("ud receive", receive(SIZE));
		result("ud send", ibv_post_send(qps[0], &wr, &bad));
		message("ud send completion", "ud receive completion");
		step("ud data", "%s", memcmp(buf, buf + SIZE + 40, 64) == 0 ? "ok" : "wrong");
		result("ud destroy address handle", ibv_destroy_ah(ah));
	}
	unpair("ud destroy");
}

static void
shared_receives(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_sge sge = {(uintptr_t)buf + SIZE, SIZE, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 100, .sg_list = &sge, .num_sge = 1};
	struct ibv_srq_attr attr = {.srq_limit = 3};
	int i;

	created("srq create", srq);
	if (srq == NULL || !pair(IBV_QPT_RC, srq, "srq create QPs", "srq connect"))
		return;
	memset(buf, 14, 64);
	result("srq post", ibv_post_srq_recv(srq, &wr, &bad));
	result("srq send", post(IBV_WR_SEND, mr->lkey, 0, 0));
	message("srq send completion", "srq receive completion");
	step("srq data", "%s", is_copied() ? "ok" : "wrong");
	for (i = 0; i < 4; i++)
		result("srq further receive", ibv_post_srq_recv(srq, &wr, &bad));
	result("srq limit", ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	result("srq query", ibv_query_srq(srq, &attr));
	step("srq value of the limit", "%u", attr.srq_limit);
	result("srq destroy in use", ibv_destroy_srq(srq));
	unpair("srq destroy QPs");
	result("srq destroy", ibv_destroy_srq(srq));
}

/* A request with an error, and one that is flushed after it. */
static void
error(enum ibv_wr_opcode opcode, bool is_local, const char *create, const char *failed,
		const char *flushed)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr init;

	if (!pair(IBV_QPT_RC, NULL, create, "error connect"))
		return;
	result("error post",
			post(opcode, mr->lkey ^ (is_local ? 0xff00 : 0),
					mr->rkey ^ (is_local ? 0 : 0xff00), 0));
	completion(failed);
	result("error second post", post(IBV_WR_RDMA_WRITE, mr->lkey, mr->rkey, 0));
	completion(flushed);
	result("error query", ibv_query_qp(qps[0], &attr, IBV_QP_STATE, &init));
	step("error state", "%d", attr.qp_state);
	unpair("error destroy");
}

static void
errors(void)
{
	error(IBV_WR_RDMA_WRITE, false, "error of rkey", "error rkey of WRITE", "error flush");
	error(IBV_WR_RDMA_READ, false, "error of rkey", "error rkey of READ", "error flush");
	error(IBV_WR_SEND, true, "error of lkey", "error lkey of SEND", "error flush");
	if (!pair(IBV_QPT_RC, NULL, "error of length", "error connect"))
		return;
	result("error short receive", receive(8));
	result("error long send", post(IBV_WR_SEND, mr->lkey, 0, 0));
	message("error long send completion", "error short receive completion");
	unpair("error destroy");
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2);
	context = open_device(argv[1]);
	query();
	regions();
	completion_queues();
	reliable();
	unreliable();
	datagrams();
	shared_receives();
	errors();
	paging();
	asynchronous();
	result("cq destroy", ibv_destroy_cq(cq));
	result("channel destroy", ibv_destroy_comp_channel(channel));
	result("mr dereg at the end", ibv_dereg_mr(mr));
	result("pd dealloc", ibv_dealloc_pd(pd));
	result("device close", ibv_close_device(context));
	return 0;
}
