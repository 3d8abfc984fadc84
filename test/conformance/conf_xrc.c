/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC: each request names the SRQ whose receives, CQ and PD it uses, which must be of the domain of
 * the QP that receives it.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf.h"

#define CAPA  RMEM_DEV_CAPA_XRC
#define DEPTH 16u

/* Attributes of the transitions to INIT and RTR; RESPONDER: those of a QP that receives. */
#define TO_INIT   (RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS)
#define TO_RTR    (RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN | RMEM_QP_RQ_PSN)
#define RESPONDER (RMEM_QP_MAX_DEST_RD_ATOMIC | RMEM_QP_MIN_RNR_TIMER)

/* send is a QP of b, recv one of domain, where srq of a and its CQ belong to. */
static struct {
	struct rmem_xrcd *domain;
	struct rmem_qp *send;
	struct rmem_qp *recv;
	struct rmem_srq *srq;
	struct rmem_cq *cq;
} cx;

static struct rmem_xrcd *
make_domain(uint32_t flags, int fd)
{
	const struct rmem_xrcd_conf conf_xrcd = {.fd = fd, .flags = flags};
	struct rmem_xrcd *domain = NULL;

	if (rmem_xrcd_alloc(conf.dev, &conf_xrcd, &domain) != 0)
		return NULL;
	fx_track(domain);
	return domain;
}

static struct rmem_srq *
make_srq(struct rmem_pd *pd, struct rmem_xrcd *domain, struct rmem_cq *cq)
{
	const struct rmem_srq_ext ext = {.xrcd = domain, .cq = cq};
	const struct rmem_srq_conf conf_srq = {
			.max_wr = RTE_MIN(DEPTH, conf.info.max_srq_wr), .max_sge = 1, .ext = &ext};
	struct rmem_srq *srq = NULL;

	if (rmem_srq_create(pd, &conf_srq, &srq) != 0)
		return NULL;
	fx_track(srq);
	return srq;
}

static struct rmem_qp *
make_recv(struct rmem_xrcd *domain, uint32_t access)
{
	const struct rmem_qp_ext ext = {.xrcd = domain};
	const struct rmem_qp_conf conf_qp = {.type = RMEM_QPT_XRC_RECV,
			.access = access & conf.info.access,
			.ext = &ext};

	return fx_qp_by(NULL, &conf_qp);
}

static uint32_t
number(const struct rmem_srq *srq)
{
	uint32_t num = UINT32_MAX;

	return rmem_srq_num_get(srq, &num) == 0 ? num : UINT32_MAX;
}

static void
setup(void)
{
	conf_setup();
	if ((conf.info.capa & CAPA) == 0)
		return;
	cx.domain = make_domain(0, 0);
	TEST_ASSERT(cx.domain != NULL);
	cx.cq = fx_cq(conf.dev, DEPTH);
	cx.srq = make_srq(fx.a.pd, cx.domain, cx.cq);
	TEST_ASSERT(cx.srq != NULL);
	cx.recv = make_recv(cx.domain, RMEM_ACCESS_REMOTE | RMEM_ACCESS_FLUSH_GLOBAL);
	cx.send = conf_qp_of(fx.b.pd, fx.b.cq, 0, RMEM_QPT_XRC_SEND);
	TEST_OK(conf_connect(cx.send, cx.recv));
}

static int
post(struct rmem_srq *srq, uint64_t wr_id, const struct rmem_sge *sge)
{
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = sge != NULL};

	return rmem_srq_post_recv(srq, &wr, 1);
}

/* The status of a request of b that names an SRQ. */
static int
do_wr(struct rmem_send_wr wr, uint32_t srq_num)
{
	wr.xrc.remote_srqn = srq_num;
	return fx_send(cx.send, &wr);
}

static int
send_64(uint32_t srq_num)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);

	return do_wr(fx_wr(RMEM_WR_SEND, &sge, 1), srq_num);
}

static void
expect_recv(struct rmem_cq *cq, uint64_t wr_id)
{
	TEST_STATUS(fx_wait(cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, wr_id);
	TEST_EQ(fx.wc.qp_num, cx.recv->qp_num);
}

/* After a request that was refused: both QPs are in ERR, and are connected again. */
static void
reconnect(void)
{
	conf_expect_err(cx.send);
	conf_expect_err(cx.recv);
	TEST_OK(rmem_qp_reset(cx.send));
	TEST_OK(rmem_qp_reset(cx.recv));
	fx_drain(fx.b.cq);
	TEST_OK(conf_connect(cx.send, cx.recv));
}

CONF_TEST(xrc, message_takes_a_receive_of_the_named_srq, CAPA, 0,
		"IBTA A14.5: by the SRQ that the request names; the completion is in its CQ")
{
	const struct rmem_sge first = fx_sge(fx.a.mr, 0, 64), second = fx_sge(fx.a.mr, 64, 64);
	struct rmem_cq *cq = fx_cq(conf.dev, DEPTH);
	struct rmem_srq *srq = make_srq(fx.a.pd, cx.domain, cq);
	unsigned int i;

	TEST_ASSERT(srq != NULL && number(srq) != number(cx.srq) && number(srq) <= 0xffffff);
	fx_fill(fx.b.buf, 64, 1);
	for (i = 0; i < 4; i++) {
		TEST_EQ(post(cx.srq, 100 + i, &first), 1);
		TEST_EQ(post(srq, 200 + i, &second), 1);
	}
	for (i = 0; i < 4; i++) {
		TEST_STATUS(send_64(number(cx.srq)), RMEM_WC_SUCCESS);
		expect_recv(cx.cq, 100 + i);
		TEST_MEM(fx.a.buf, fx.b.buf, 64);
		TEST_STATUS(send_64(number(srq)), RMEM_WC_SUCCESS);
		expect_recv(cq, 200 + i);
		TEST_EQ(fx.wc.byte_len, 64);
		TEST_MEM(fx.a.buf + 64, fx.b.buf, 64);
	}
	TEST_ASSERT(fx_is_idle(cx.cq) && fx_is_idle(cq));
}

/* The receives of SRQs that a request does not name, or may not, are untouched. */
CONF_TEST(xrc, srq_outside_of_the_domain_is_refused, CAPA, 0,
		"IBTA A14.5: the SRQ must be of the XRC domain of the QP")
{
	struct rmem_srq *other = make_srq(fx.a.pd, make_domain(0, 0), cx.cq);
	struct rmem_srq *gone = make_srq(fx.a.pd, cx.domain, cx.cq);
	uint32_t nums[3];
	unsigned int i;

	TEST_ASSERT(other != NULL && gone != NULL);
	nums[0] = number(other);
	nums[1] = number(gone);
	nums[2] = 0;
	TEST_OK(fx_release(gone));
	TEST_EQ(post(cx.srq, 1, NULL), 1);
	TEST_EQ(post(other, 2, NULL), 1);
	for (i = 0; i < RTE_DIM(nums); i++) {
		TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), nums[i]), RMEM_WC_REM_INV_REQ_ERR);
		reconnect();
	}
	TEST_ASSERT(fx_is_idle(cx.cq));
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), number(cx.srq)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 1);
}

CONF_TEST(xrc, destroyed_srq_is_refused, CAPA, 0, "IBTA A14.5: there is no such SRQ")
{
	const uint32_t num = number(cx.srq);

	TEST_EQ(post(cx.srq, 1, NULL), 1);
	TEST_EQ(post(cx.srq, 2, NULL), 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), num), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(cx.srq));
	expect_recv(cx.cq, 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), num), RMEM_WC_REM_INV_REQ_ERR);
	TEST_ASSERT(fx_is_idle(cx.cq));
	TEST_OK(fx_release(cx.cq));
}

CONF_TEST(xrc, rkeys_are_of_the_pd_of_the_srq, CAPA, 0,
		"IBTA A14.5: memory is accessed by the PD of the SRQ")
{
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_srq *srq = make_srq(pd, cx.domain, cx.cq);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;

	TEST_ASSERT(srq != NULL);
	fx_fill(fx.b.buf, 64, 1);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	TEST_STATUS(do_wr(wr, number(cx.srq)), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	conf_status(CONF_REMOTE_KEY, do_wr(wr, number(srq)));
	reconnect();
	wr.rdma.rkey = fx_mr(pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS & conf.info.access)->rkey;
	conf_status(CONF_REMOTE_KEY, do_wr(wr, number(cx.srq)));
	reconnect();
	fx_fill(fx.b.buf, 64, 2);
	TEST_STATUS(do_wr(wr, number(srq)), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
}

CONF_TEST(xrc, receive_has_the_pd_of_the_srq, CAPA, 0,
		"IBTA A14.5: memory is accessed by the PD of the SRQ")
{
	struct rmem_srq *srq = make_srq(fx_pd(conf.dev), cx.domain, cx.cq);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);

	TEST_ASSERT(srq != NULL);
	TEST_EQ(post(srq, 1, &sge), 1);
	conf_status(CONF_PEER_MEMORY, send_64(number(srq)));
	conf_status(CONF_RECV_KEY, fx_wait(cx.cq));
	TEST_EQ(fx.wc.wr_id, 1);
	reconnect();
}

/* If the device has them: an ATOMIC_WRITE of a word, and a FLUSH of it. */
static void
place_word(void)
{
	const struct rmem_sge word = fx_sge(fx.b.mr, 64, 8);
	struct rmem_mr *mr;
	struct rmem_send_wr wr;

	if ((conf.info.capa & RMEM_DEV_CAPA_ATOMIC_WRITE) != 0) {
		fx_fill(fx.b.buf + 64, 8, 2);
		wr = fx_rdma(RMEM_WR_ATOMIC_WRITE, &word, fx_addr(fx.a.buf), fx.a.mr->rkey);
		TEST_STATUS(do_wr(wr, number(cx.srq)), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_ATOMIC_WRITE);
		TEST_MEM(fx.a.buf, fx.b.buf + 64, 8);
	}
	if ((conf.info.capa & RMEM_DEV_CAPA_FLUSH) == 0)
		return;
	mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS | RMEM_ACCESS_FLUSH_GLOBAL);
	wr = fx_wr(RMEM_WR_FLUSH, NULL, 0);
	wr.flush.remote_addr = fx_addr(fx.a.buf);
	wr.flush.rkey = mr->rkey;
	wr.flush.length = 8;
	wr.flush.type = RMEM_FLUSH_GLOBAL;
	wr.flush.level = RMEM_FLUSH_RANGE;
	TEST_STATUS(do_wr(wr, number(cx.srq)), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_FLUSH);
}

CONF_TEST(xrc, requests_of_rc_are_executed, CAPA, RMEM_ACCESS_REMOTE_ATOMIC,
		"IBTA A14.2: SEND, WRITE, READ and atomics, with immediate data")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64), word = fx_sge(fx.b.mr, 64, 8);
	const uint64_t addr = fx_addr(fx.a.buf);
	const uint32_t num = number(cx.srq);
	struct rmem_send_wr wr;
	uint64_t value = 7;

	fx_fill(fx.b.buf, 64, 1);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE_WITH_IMM, &sge, addr, fx.a.mr->rkey);
	wr.imm_data = 0x1234;
	TEST_EQ(post(cx.srq, 1, NULL), 1);
	TEST_STATUS(do_wr(wr, num), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 1);
	TEST_EQ(fx.wc.imm_data, 0x1234);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV_RDMA_WITH_IMM);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	memset(fx.b.buf, 0, 64);
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, addr, fx.a.mr->rkey);
	TEST_STATUS(do_wr(wr, num), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	memcpy(fx.a.buf, &value, sizeof(value));
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &word, addr, fx.a.mr->rkey, 3);
	TEST_STATUS(do_wr(wr, num), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf + 64, &value, sizeof(value));
	value = 10;
	TEST_MEM(fx.a.buf, &value, sizeof(value));
	place_word();
}

CONF_TEST(xrc, rights_are_those_of_the_qp, CAPA, 0, "IBTA 9.7.4.1.4: the QP permits the operation")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;

	TEST_OK(fx_release(cx.recv));
	cx.recv = make_recv(cx.domain, RMEM_ACCESS_REMOTE_READ);
	TEST_OK(rmem_qp_reset(cx.send));
	TEST_OK(conf_connect(cx.send, cx.recv));
	wr = fx_rdma_to(RMEM_WR_RDMA_READ, &sge, &fx.a);
	TEST_STATUS(do_wr(wr, number(cx.srq)), RMEM_WC_SUCCESS);
	wr.opcode = RMEM_WR_RDMA_WRITE;
	conf_status(CONF_QP_RIGHT, do_wr(wr, number(cx.srq)));
}

CONF_TEST(xrc, message_without_receive_is_retried, CAPA, 0, "IBTA 9.7.5.2.8: receiver not ready")
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	wr.flags = RMEM_SEND_SIGNALED;
	wr.xrc.remote_srqn = number(cx.srq);
	TEST_EQ(fx_post(cx.send, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	TEST_EQ(post(cx.srq, 5, NULL), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 5);
}

CONF_TEST(xrc, message_too_long_fails_the_receive, CAPA, 0, "IBTA 11.6.2: length errors")
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 63);

	TEST_EQ(post(cx.srq, 1, &sge), 1);
	conf_status(CONF_TOO_LONG, send_64(number(cx.srq)));
	conf_status(CONF_RECV_LENGTH, fx_wait(cx.cq));
	TEST_EQ(fx.wc.wr_id, 1);
	reconnect();
}

CONF_TEST(xrc, key_of_the_peer_is_invalidated,
		CAPA | RMEM_DEV_CAPA_SEND_WITH_INV | RMEM_DEV_CAPA_FAST_REG, 0,
		"IBTA 9.4.1.1.3: SEND with invalidate")
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	fx.fast.pages = fx.a.buf;
	fx.fast.mr = fx_fast_mr(fx.a.pd, FX_FAST_PAGES);
	fx.fast.list = fx_page_list(conf.dev, FX_FAST_PAGES);
	fx_list_pages(fx.fast.list, fx.fast.pages, FX_FAST_PAGES);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_EQ(post(cx.srq, 1, NULL), 1);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	TEST_STATUS(do_wr(wr, number(cx.srq)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 1);
	TEST_EQ(fx.wc.flags & RMEM_WC_WITH_INV, RMEM_WC_WITH_INV);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
}

/* Post receives until the SRQ is full. */
static void
fill_srq(struct rmem_srq *srq, uint64_t wr_id)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, FX_BUF_SIZE);
	unsigned int i;

	for (i = 0; i < DEPTH && post(srq, wr_id, &sge) == 1; i++)
		;
}

/* The completions of a CQ are those of its SRQ, whose receives have this wr_id; their number. */
static unsigned int
poll_all(struct rmem_cq *cq, uint64_t wr_id)
{
	unsigned int nb;

	for (nb = 0; rmem_poll_cq(cq, &fx.wc, 1) == 1; nb++) {
		TEST_EQ(fx.wc.wr_id, wr_id);
		TEST_EQ(fx.wc.qp_num, cx.recv->qp_num);
	}
	return nb;
}

/* Post SENDs to two SRQs in turn, each of several packets, and wait until some have arrived. */
static void
send_in_turn(const struct rmem_srq *const srqs[2], struct rmem_cq *const cqs[2], unsigned int nb)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8192);
	const uint64_t deadline = fx_deadline();
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	unsigned int i, arrived = 0;

	for (i = 0; i < 8; i++) {
		wr.xrc.remote_srqn = number(srqs[i % 2]);
		TEST_EQ(fx_post(cx.send, &wr), 1);
	}
	for (i = 0; arrived < nb && fx_state(cx.send) == RMEM_QPS_RTS && !fx_is_late(deadline); i++)
		arrived += poll_all(cqs[i % 2], 1 + i % 2);
	TEST_ASSERT(arrived >= nb);
}

/* Connect again. The receiver stays in RTR, which is all that it needs. */
static void
connect_rtr(void)
{
	struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp_attr attr = {0}, peer, last;

	TEST_OK(rmem_qp_query(cx.recv, &last));
	TEST_OK(rmem_qp_reset(cx.send));
	TEST_OK(rmem_qp_reset(cx.recv));
	fx_drain(fx.b.cq);
	TEST_OK(rmem_qp_query(cx.send, &peer));
	attr.port_num = attr.ah.port_num = 1;
	attr.state = RMEM_QPS_INIT;
	TEST_OK(rmem_qp_modify(cx.recv, &attr, TO_INIT));
	attr.state = RMEM_QPS_RTR;
	attr.path_mtu = last.path_mtu;
	attr.ah.is_global = 1;
	attr.ah.sgid_index = conf_gid_index(peer.addr.gid);
	memcpy(attr.ah.dgid, peer.addr.gid, sizeof(attr.ah.dgid));
	attr.dest_qp_num = cx.send->qp_num;
	attr.rq_psn = peer.addr.psn;
	TEST_OK(rmem_qp_modify(cx.recv, &attr, TO_RTR | RESPONDER));
	conn.timeout = 18; /* as conf_connect() */
	TEST_OK(fx_connect_by(cx.send, cx.recv, &conn));
}

CONF_TEST(xrc, failed_qp_completes_receives_in_the_cq_of_their_srq, CAPA, 0,
		"IBTA A14.5, 10.3.1: also a message in progress, which is flushed")
{
	struct rmem_cq *const cqs[] = {cx.cq, fx_cq(conf.dev, DEPTH)};
	const struct rmem_srq *srqs[] = {cx.srq, NULL};
	struct rmem_srq *other = make_srq(fx.a.pd, cx.domain, cqs[1]);
	unsigned int round;

	TEST_ASSERT(other != NULL);
	srqs[1] = other;
	for (round = 0; round < 64; round++) {
		connect_rtr();
		fill_srq(cx.srq, 1);
		fill_srq(other, 2);
		send_in_turn(srqs, cqs, round % 8);
		TEST_OK(rmem_qp_set_error(cx.recv));
		poll_all(cqs[0], 1);
		poll_all(cqs[1], 2);
	}
}

/* No order but that of the relaxed load is between the destruction of an SRQ and this request. */
static void
send_when(void *arg)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	const uint64_t deadline = fx_deadline();
	const uint32_t *is_gone = arg;

	while (!__atomic_load_n(is_gone, __ATOMIC_RELAXED) && !fx_is_late(deadline))
		rte_pause();
	wr.flags = RMEM_SEND_SIGNALED;
	wr.xrc.remote_srqn = number(cx.srq);
	TEST_EQ(fx_post(cx.send, &wr), 1);
}

CONF_TEST(xrc, another_srq_is_used_while_one_is_destroyed, CAPA, 0, "IBTA A14.5")
{
	struct rmem_srq *other = make_srq(fx.a.pd, cx.domain, cx.cq);
	uint32_t is_gone = 0;

	if (fx_nb_workers() == 0)
		return;
	TEST_ASSERT(other != NULL);
	TEST_EQ(post(cx.srq, 1, NULL), 1);
	TEST_EQ(post(other, 2, NULL), 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), number(other)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 2);
	fx_launch(send_when, &is_gone, 0, 1);
	TEST_OK(fx_release(other));
	__atomic_store_n(&is_gone, 1, __ATOMIC_RELAXED);
	fx_join(1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 1);
}

CONF_TEST(xrc, domain_in_use_is_busy, CAPA, 0, "ibv_close_xrcd(3): EBUSY")
{
	struct rmem_xrcd *domain = make_domain(0, 0);
	struct rmem_srq *srq = make_srq(fx.a.pd, domain, cx.cq);
	struct rmem_qp *qp = make_recv(domain, 0);

	TEST_ASSERT(srq != NULL);
	TEST_EQ(rmem_xrcd_dealloc(domain), -EBUSY);
	TEST_OK(fx_release(srq));
	TEST_EQ(rmem_xrcd_dealloc(domain), -EBUSY);
	TEST_OK(fx_release(qp));
	TEST_OK(fx_release(domain));
	TEST_EQ(rmem_cq_destroy(cx.cq), -EBUSY);
}

/* The SRQ is of one handle, the QP of the other. */
CONF_TEST(xrc, handles_of_one_file_are_one_domain, CAPA, 0, "ibv_open_xrcd(3): by the inode")
{
	char path[] = "/tmp/rmem_xrc_XXXXXX";
	const int fd = mkstemp(path);
	struct rmem_xrcd *first, *second;
	struct rmem_srq *srq;

	TEST_ASSERT(fd >= 0);
	unlink(path);
	TEST_ASSERT(make_domain(RMEM_XRCD_FILE, fd) == NULL);
	first = make_domain(RMEM_XRCD_FILE | RMEM_XRCD_CREATE | RMEM_XRCD_EXCL, fd);
	second = make_domain(RMEM_XRCD_FILE, fd);
	TEST_ASSERT(first != NULL && second != NULL && first != second);
	TEST_ASSERT(make_domain(RMEM_XRCD_FILE | RMEM_XRCD_CREATE | RMEM_XRCD_EXCL, fd) == NULL);
	close(fd);
	srq = make_srq(fx.a.pd, first, cx.cq);
	TEST_ASSERT(srq != NULL);
	TEST_OK(fx_release(cx.recv));
	cx.recv = make_recv(second, 0);
	TEST_OK(rmem_qp_reset(cx.send));
	TEST_OK(conf_connect(cx.send, cx.recv));
	TEST_EQ(post(srq, 9, NULL), 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), number(srq)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 9);
}

CONF_TEST(xrc, opened_qp_is_destroyed_with_its_last_handle, CAPA, 0,
		"ibv_open_qp(3): until all handles are destroyed")
{
	struct rmem_qp *qp = NULL;

	TEST_EQ(rmem_qp_get(make_domain(0, 0), cx.recv->qp_num, &qp), -ENOENT);
	TEST_EQ(rmem_qp_get(cx.domain, cx.send->qp_num, &qp), -ENOENT);
	TEST_OK(rmem_qp_get(cx.domain, cx.recv->qp_num, &qp));
	TEST_EQ(qp->qp_num, cx.recv->qp_num);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_EQ(post(cx.srq, 1, NULL), 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), number(cx.srq)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 1);
}

/* As by another process: by the file, and by calls of the handle. */
CONF_TEST(xrc, qp_is_opened_by_the_file_of_its_domain, CAPA, 0, "ibv_open_qp(3)")
{
	const int fd = memfd_create("xrcd", MFD_CLOEXEC);
	struct rmem_qp_shared_conf shared = {.qp_num = 0};
	struct rmem_xrcd *first, *second;
	struct rmem_srq *srq;
	struct rmem_qp *qp;
	int ret;

	TEST_ASSERT(fd >= 0);
	first = make_domain(RMEM_XRCD_FILE | RMEM_XRCD_CREATE, fd);
	second = make_domain(RMEM_XRCD_FILE, fd);
	TEST_ASSERT(first != NULL && second != NULL);
	close(fd);
	TEST_OK(fx_release(cx.recv));
	cx.recv = make_recv(first, 0);
	shared.qp_num = cx.recv->qp_num;
	ret = rmem_qp_get_shared(second, &shared, &qp);
	TEST_SKIP_IF(ret == -EOPNOTSUPP, "the device opens no QPs of other processes");
	TEST_SKIP_IF(ret == -ENOENT, "the device opens QPs of other processes only with ip=");
	TEST_OK(ret);
	fx_track(qp);
	srq = make_srq(fx.a.pd, second, cx.cq);
	TEST_ASSERT(srq != NULL);
	TEST_OK(rmem_qp_reset(cx.send));
	TEST_OK(conf_connect(cx.send, qp));
	TEST_EQ(post(srq, 9, NULL), 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), number(srq)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 9);
	TEST_OK(rmem_qp_set_error(qp));
	conf_expect_err(cx.recv);
	TEST_OK(fx_release(qp));
	conf_expect_err(cx.recv);
	TEST_OK(fx_release(cx.recv));
}

/* The QP is destroyed by a thread of the device: at any time of the audit. */
CONF_TEST(xrc, audit_holds_while_a_qp_of_others_ends, CAPA, 0, "rmem_dev_audit()")
{
	const int fd = memfd_create("xrcd", MFD_CLOEXEC);
	struct rmem_qp_shared_conf shared = {.qp_num = 0};
	struct rmem_xrcd *domain;
	struct rmem_qp *recv, *qp;
	uint32_t round, nb_qp;
	int ret;

	TEST_ASSERT(fd >= 0);
	domain = make_domain(RMEM_XRCD_FILE | RMEM_XRCD_CREATE, fd);
	TEST_ASSERT(domain != NULL);
	close(fd);
	nb_qp = fx_dev_info(conf.dev).nb_qp;
	for (round = 0; round < 100; round++) {
		recv = make_recv(domain, 0);
		shared.qp_num = recv->qp_num;
		ret = rmem_qp_get_shared(domain, &shared, &qp);
		TEST_SKIP_IF(ret == -EOPNOTSUPP, "the device opens no QPs of other processes");
		TEST_SKIP_IF(ret == -ENOENT,
				"the device opens QPs of other processes only with ip=");
		TEST_OK(ret);
		TEST_OK(rmem_qp_destroy(qp));
		TEST_OK(fx_release(recv));
		FX_AWAIT((ret = rmem_dev_audit(conf.dev)) != 0 ||
				fx_dev_info(conf.dev).nb_qp == nb_qp);
		TEST_OK(ret);
	}
}

CONF_TEST(xrc, qps_have_no_other_queue, CAPA, 0, "ibv_create_qp_ex(3): one direction each")
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	TEST_EQ(fx_post(cx.recv, &wr), -EOPNOTSUPP);
	TEST_EQ(fx_post_recv(cx.recv, 1, NULL, 0), -EINVAL);
	TEST_EQ(fx_post_recv(cx.send, 1, NULL, 0), -EINVAL);
}

static int
make_by(int fd, uint32_t flags, uint64_t reserved)
{
	const struct rmem_xrcd_conf conf_xrcd = {
			.fd = fd, .flags = flags, .reserved = {0, reserved}};
	struct rmem_xrcd *domain;

	return rmem_xrcd_alloc(conf.dev, &conf_xrcd, &domain);
}

CONF_TEST(xrc, bad_domains_are_refused, CAPA, 0, "ibv_open_xrcd(3)")
{
	const struct rmem_xrcd_conf good = {.fd = 0};
	struct rmem_xrcd *domain;

	TEST_ERR(make_by(0, 1u << 3, 0), EINVAL);
	TEST_ERR(make_by(0, 0, 1), EINVAL);
	TEST_ERR(make_by(1, 0, 0), EINVAL);
	TEST_ERR(make_by(0, RMEM_XRCD_CREATE, 0), EINVAL);
	TEST_ERR(make_by(0, RMEM_XRCD_FILE | RMEM_XRCD_EXCL, 0), EINVAL);
	TEST_ERR(make_by(-1, RMEM_XRCD_FILE | RMEM_XRCD_CREATE, 0), EINVAL);
	TEST_ERR(rmem_xrcd_alloc(NULL, &good, &domain), EINVAL);
	TEST_ERR(rmem_xrcd_alloc(conf.dev, NULL, &domain), EINVAL);
	TEST_ERR(rmem_xrcd_alloc(conf.dev, &good, NULL), EINVAL);
	TEST_ERR(rmem_xrcd_dealloc((void *)fx.a.cq), EINVAL);
	TEST_OK(rmem_xrcd_dealloc(NULL));
}

static int
srq_by(const struct rmem_srq_ext *ext)
{
	const struct rmem_srq_conf conf_srq = {.max_wr = 1, .ext = ext};
	struct rmem_srq *srq;

	return rmem_srq_create(fx.a.pd, &conf_srq, &srq);
}

CONF_TEST(xrc, bad_srqs_are_refused, CAPA, 0, "ibv_create_srq_ex(3): IBV_SRQT_XRC")
{
	const struct rmem_srq_ext rows[] = {
			{.xrcd = cx.domain},
			{.cq = cx.cq},
			{.xrcd = (void *)cx.cq, .cq = cx.cq},
			{.xrcd = cx.domain, .cq = (void *)cx.domain},
			{.xrcd = cx.domain, .cq = cx.cq, .reserved = {[5] = 1}},
	};
	struct rmem_qp_conf conf_qp = fx_qp_conf(fx.a.cq, 1);
	struct rmem_qp *qp;
	uint32_t num;
	size_t i;

	for (i = 0; i < RTE_DIM(rows); i++)
		TEST_ERR(srq_by(&rows[i]), EINVAL);
	TEST_ERR(rmem_srq_num_get(NULL, &num), EINVAL);
	TEST_ERR(rmem_srq_num_get(cx.srq, NULL), EINVAL);
	conf_qp.srq = cx.srq;
	conf_qp.max_inline_data = 0;
	conf_qp.max_send_sge = 1;
	conf_qp.access &= conf.info.access;
	TEST_ERR(rmem_qp_create(fx.a.pd, &conf_qp, &qp), EINVAL);
	conf_qp.type = RMEM_QPT_XRC_SEND;
	TEST_ERR(rmem_qp_create(fx.a.pd, &conf_qp, &qp), EINVAL);
}

CONF_TEST(xrc, bad_qps_are_refused, CAPA, 0, "ibv_create_qp_ex(3): IBV_QPT_XRC_RECV")
{
	const struct rmem_qp_ext ext = {.xrcd = cx.domain}, none = {0};
	struct rmem_qp_conf conf_qp = {.type = RMEM_QPT_XRC_RECV, .ext = &ext};
	struct rmem_qp *qp;

	TEST_ERR(rmem_qp_create(fx.a.pd, &conf_qp, &qp), EINVAL);
	conf_qp.ext = &none;
	TEST_ERR(rmem_qp_create(NULL, &conf_qp, &qp), EINVAL);
	conf_qp.ext = NULL;
	TEST_ERR(rmem_qp_create(NULL, &conf_qp, &qp), EINVAL);
	conf_qp = fx_qp_conf(fx.a.cq, 1);
	conf_qp.ext = &ext;
	conf_qp.max_inline_data = 0;
	TEST_ERR(rmem_qp_create(fx.a.pd, &conf_qp, &qp), EINVAL);
	TEST_ERR(rmem_qp_get(NULL, 1, &qp), EINVAL);
	TEST_ERR(rmem_qp_get(cx.domain, cx.recv->qp_num, NULL), EINVAL);
}

/* As the kernel's table of transitions: each side has its half of the attributes of RC. */
CONF_TEST(xrc, attributes_are_those_of_each_side, CAPA, 0, "ibv_modify_qp(3)")
{
	const uint32_t rts = RMEM_QP_STATE | RMEM_QP_TIMEOUT | RMEM_QP_SQ_PSN;
	const uint32_t requester = RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY | RMEM_QP_MAX_QP_RD_ATOMIC;
	struct rmem_qp_attr attr = {0}, mine;

	TEST_OK(rmem_qp_query(cx.recv, &mine));
	TEST_OK(rmem_qp_reset(cx.send));
	TEST_OK(rmem_qp_reset(cx.recv));
	attr.port_num = attr.ah.port_num = 1;
	attr.state = RMEM_QPS_INIT;
	TEST_OK(rmem_qp_modify(cx.send, &attr, TO_INIT));
	TEST_OK(rmem_qp_modify(cx.recv, &attr, TO_INIT));
	attr.state = RMEM_QPS_RTR;
	attr.path_mtu = 1;
	attr.ah.is_global = 1;
	attr.ah.sgid_index = conf_gid_index(mine.addr.gid);
	memcpy(attr.ah.dgid, mine.addr.gid, sizeof(attr.ah.dgid));
	attr.dest_qp_num = cx.recv->qp_num;
	TEST_ERR(rmem_qp_modify(cx.send, &attr, TO_RTR | RESPONDER), EINVAL);
	TEST_OK(rmem_qp_modify(cx.send, &attr, TO_RTR));
	attr.dest_qp_num = cx.send->qp_num;
	TEST_ERR(rmem_qp_modify(cx.recv, &attr, TO_RTR), EINVAL);
	TEST_OK(rmem_qp_modify(cx.recv, &attr, TO_RTR | RESPONDER));
	attr.state = RMEM_QPS_RTS;
	attr.timeout = 18;
	attr.retry_cnt = attr.rnr_retry = 7;
	TEST_ERR(rmem_qp_modify(cx.send, &attr, rts), EINVAL);
	TEST_OK(rmem_qp_modify(cx.send, &attr, rts | requester));
	TEST_EQ(post(cx.srq, 1, NULL), 1);
	TEST_STATUS(do_wr(fx_wr(RMEM_WR_SEND, NULL, 0), number(cx.srq)), RMEM_WC_SUCCESS);
	expect_recv(cx.cq, 1);
	TEST_ERR(rmem_qp_modify(cx.recv, &attr, rts | requester), EINVAL);
	TEST_OK(rmem_qp_modify(cx.recv, &attr, rts));
}

TEST_SUITE(xrc, setup, conf_teardown);
