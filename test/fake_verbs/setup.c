/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fixture of cases over the fakes; see setup.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_log.h>

#include "setup.h"

struct verbs_test vt;

static char vt_log_text[4096];
static FILE *vt_log_stream;
static uint32_t vt_log_global;
static int vt_log_type;

void
vt_log_begin(void)
{
	uint32_t type = (uint32_t)rte_log_register("pmd.rmem.verbs"); /* it is there already */

	vt_log_text[0] = '\0';
	vt_log_stream = fmemopen(vt_log_text, sizeof(vt_log_text), "w");
	vt_log_global = rte_log_get_global_level();
	vt_log_type = rte_log_get_level(type);
	rte_log_set_global_level(RTE_LOG_DEBUG);
	rte_log_set_level(type, RTE_LOG_NOTICE);
	rte_openlog_stream(vt_log_stream);
}

const char *
vt_log_end(void)
{
	uint32_t type = (uint32_t)rte_log_register("pmd.rmem.verbs");

	rte_openlog_stream(NULL);
	rte_log_set_level(type, (uint32_t)vt_log_type);
	rte_log_set_global_level(vt_log_global);
	if (vt_log_stream != NULL)
		fclose(vt_log_stream);
	vt_log_stream = NULL;
	return vt_log_text;
}

static int
vt_connect_one(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct rmem_qp_attr attr;
	int ret = rmem_qp_query(peer, &attr);

	conn.remote = attr.addr;
	return ret != 0 ? ret : rmem_qp_connect(qp, &conn);
}

int
vt_connect(void)
{
	int ret = vt_connect_one(vt.a, vt.b);

	return ret != 0 ? ret : vt_connect_one(vt.b, vt.a);
}

void
vt_reconnect(void)
{
	struct rmem_wc wc;

	TEST_OK(rmem_qp_reset(vt.a));
	TEST_OK(rmem_qp_reset(vt.b));
	while (rmem_poll_cq(vt.cq_a, &wc, 1) == 1 || rmem_poll_cq(vt.cq_b, &wc, 1) == 1)
		;
	TEST_OK(vt_connect());
}

void
vt_until_gone(void)
{
	uint64_t end = rte_get_timer_cycles() + 600 * rte_get_timer_hz();
	struct rmem_recv_wr recv = {.wr_id = 1};
	int ret;

	do {
		ret = rmem_post_recv(vt.a, &recv, 1);
		rte_delay_us_sleep(100);
	} while (ret != -ENODEV && rte_get_timer_cycles() < end);
	TEST_ERR(ret, ENODEV);
}

struct rmem_send_wr
vt_bind_wr(struct rmem_mw *mw)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_BIND_MW, NULL);

	wr.num_sge = 0;
	wr.bind_mw.mw = mw;
	wr.bind_mw.mr = vt.mw_mr;
	wr.bind_mw.addr = (uintptr_t)vt.buf + VT_HALF;
	wr.bind_mw.length = VT_HALF;
	wr.bind_mw.access = RMEM_ACCESS_REMOTE;
	wr.bind_mw.key_tag = rmem_rkey_next_tag(mw->rkey);
	return wr;
}

struct rmem_send_wr
vt_inv_wr(uint32_t rkey)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_LOCAL_INV, NULL);

	wr.num_sge = 0;
	wr.invalidate_rkey = rkey;
	return wr;
}

struct rmem_mw_bind
vt_bind(uint64_t length)
{
	struct rmem_mw_bind bind = {.wr_id = 0xb1b1, .flags = RMEM_SEND_SIGNALED};

	bind.bind_info.mr = length != 0 ? vt.mw_mr : NULL;
	bind.bind_info.addr = (uintptr_t)vt.buf + VT_BUF - length;
	bind.bind_info.length = length;
	bind.bind_info.access = RMEM_ACCESS_REMOTE;
	return bind;
}

static int
vt_open_qps(void)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * VT_DEPTH};
	struct rmem_qp_conf conf = {.max_send_wr = VT_DEPTH,
			.max_recv_wr = VT_DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64,
			.type = RMEM_QPT_RC,
			.access = RMEM_ACCESS_REMOTE};
	int ret;

	ret = rmem_cq_create(vt.dev, &cq_conf, &vt.cq_a);
	if (ret == 0)
		ret = rmem_cq_create(vt.dev, &cq_conf, &vt.cq_b);
	conf.send_cq = conf.recv_cq = vt.cq_a;
	if (ret == 0)
		ret = rmem_qp_create(vt.pd, &conf, &vt.a);
	conf.send_cq = conf.recv_cq = vt.cq_b;
	if (ret == 0)
		ret = rmem_qp_create(vt.pd, &conf, &vt.b);
	return ret == 0 ? vt_connect() : ret;
}

int
vt_open(void)
{
	int ret;

	memset(&vt, 0, sizeof(vt));
	vt.buf = aligned_alloc(4096, VT_BUF);
	if (vt.buf == NULL)
		return -ENOMEM;
	memset(vt.buf, 0, VT_BUF);
	ret = rmem_dev_create("verbs0", "ibdev=fake0", &vt.dev);
	if (ret == 0)
		ret = rmem_pd_alloc(vt.dev, &vt.pd);
	if (ret == 0)
		ret = rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0,
				VT_ACCESS & ~(fake.has_no_atomic ? RMEM_ACCESS_REMOTE_ATOMIC : 0u),
				&vt.mr);
	if (ret == 0)
		ret = vt_open_qps();
	fake.nb_ex = fake.nb_classic = fake.nb_aborts = 0;
	return ret;
}

int
vt_open_mw(void)
{
	int ret = vt_open();

	if (ret == 0)
		ret = rmem_mr_reg(vt.pd, vt.buf, VT_BUF, 0, VT_ACCESS | RMEM_ACCESS_MW_BIND,
				&vt.mw_mr);
	if (ret == 0)
		ret = rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_1, &vt.one);
	if (ret == 0)
		ret = rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &vt.two);
	return ret;
}

static int
vt_close_mw(void)
{
	int ret = rmem_mw_dealloc(vt.one);

	if (ret == 0)
		vt.one = NULL;
	if (ret == 0 && (ret = rmem_mw_dealloc(vt.two)) == 0)
		vt.two = NULL;
	if (ret == 0 && (ret = rmem_mr_dereg(vt.mw_mr)) == 0)
		vt.mw_mr = NULL;
	return ret;
}

int
vt_close(void)
{
	int ret = vt_close_mw();

	if (ret == 0 && (ret = rmem_qp_destroy(vt.a)) == 0)
		vt.a = NULL;
	if (ret == 0 && (ret = rmem_qp_destroy(vt.b)) == 0)
		vt.b = NULL;
	if (ret == 0 && (ret = rmem_cq_destroy(vt.cq_a)) == 0)
		vt.cq_a = NULL;
	if (ret == 0 && (ret = rmem_cq_destroy(vt.cq_b)) == 0)
		vt.cq_b = NULL;
	if (ret == 0 && (ret = rmem_mr_dereg(vt.mr)) == 0)
		vt.mr = NULL;
	if (ret == 0 && (ret = rmem_pd_dealloc(vt.pd)) == 0)
		vt.pd = NULL;
	if (ret == 0 && (ret = rmem_dev_close(vt.dev)) == 0)
		vt.dev = NULL;
	if (ret == 0) {
		free(vt.buf);
		vt.buf = NULL;
	}
	return ret;
}

void
vt_setup_fake(void)
{
	fake_reset();
	memset(&vt, 0, sizeof(vt));
}

void
vt_setup(void)
{
	fake_reset();
	TEST_RUN(vt_open());
}

void
vt_setup_classic(void)
{
	fake_reset();
	fake.has_no_ex = true;
	TEST_RUN(vt_open());
}

static int
vt_setup_windows(bool has_quirk, bool is_classic)
{
	fake_reset();
	fake.has_rxe_windows = has_quirk;
	fake.has_no_ex = is_classic;
	return vt_open_mw();
}

void
vt_setup_mw(void)
{
	TEST_RUN(vt_setup_windows(true, false));
}

void
vt_setup_mw_classic(void)
{
	TEST_RUN(vt_setup_windows(true, true));
}

void
vt_setup_mw_plain(void)
{
	TEST_RUN(vt_setup_windows(false, false));
}

void
vt_setup_mw_plain_classic(void)
{
	TEST_RUN(vt_setup_windows(false, true));
}

void
vt_teardown(void)
{
	fake.fail_at = 0;
	fake.fail_name = NULL;
	TEST_OK(vt_close());
	TEST_EQ(fake.nb_live, 0);
	TEST_EQ(fake.nb_crashes, 0);
	TEST_EQ(__atomic_load_n(&fake.nb_unacked, __ATOMIC_RELAXED), 0);
}

struct rmem_sge
vt_sge(uint32_t offset, uint32_t length)
{
	return (struct rmem_sge){
			.addr = (uintptr_t)vt.buf + offset, .length = length, .lkey = vt.mr->lkey};
}

struct rmem_send_wr
vt_wr(uint8_t opcode, const struct rmem_sge *sge)
{
	struct rmem_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = 0x1122334455667788;
	wr.sg_list = sge;
	wr.num_sge = 1;
	wr.opcode = opcode;
	wr.flags = RMEM_SEND_SIGNALED;
	if (opcode == RMEM_WR_ATOMIC_CMP_AND_SWP || opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = (uintptr_t)vt.buf + VT_HALF;
		wr.atomic.rkey = vt.mr->rkey;
	} else {
		wr.rdma.remote_addr = (uintptr_t)vt.buf + VT_HALF;
		wr.rdma.rkey = vt.mr->rkey;
	}
	return wr;
}

int
vt_wait(struct rmem_cq *cq, struct rmem_wc *wc)
{
	int n = rmem_poll_cq(cq, wc, 1); /* the fake completes inside the post */

	return n == 1 ? wc->status : n == 0 ? -ETIMEDOUT : n;
}

int
vt_write(struct rmem_qp *qp, uint64_t addr, uint32_t length, uint32_t rkey)
{
	struct rmem_sge sge = vt_sge(0, length);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct rmem_wc wc;

	wr.rdma.remote_addr = addr;
	wr.rdma.rkey = rkey;
	return rmem_post_send(qp, &wr, 1) == 1 ? vt_wait(qp->send_cq, &wc) : -EBADMSG;
}

int
vt_peer_write(uint32_t rkey)
{
	return vt_write(vt.b, (uintptr_t)vt.buf + VT_HALF, 8, rkey);
}

int
vt_bind_two(void)
{
	const struct rmem_send_wr wr = vt_bind_wr(vt.two);

	return vt_run(&wr);
}

int
vt_inv(uint32_t rkey)
{
	const struct rmem_send_wr wr = vt_inv_wr(rkey);

	return vt_run(&wr);
}

int
vt_bind_one(uint64_t length)
{
	const struct rmem_mw_bind bind = vt_bind(length);
	struct rmem_wc wc;
	int ret = rmem_mw_bind(vt.a, vt.one, &bind);

	return ret != 0 ? ret : vt_wait(vt.cq_a, &wc);
}

struct rmem_send_wr
vt_send_inv_wr(uint32_t rkey)
{
	struct rmem_send_wr wr = vt_inv_wr(rkey);

	wr.opcode = RMEM_WR_SEND_WITH_INV;
	return wr;
}

struct rmem_qp_conf
vt_qp_conf(struct rmem_cq *cq, enum rmem_qp_type type)
{
	return (struct rmem_qp_conf){.send_cq = cq,
			.recv_cq = cq,
			.max_send_wr = VT_DEPTH,
			.max_recv_wr = VT_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.type = type};
}

void
vt_fail(const char *name, int kernel)
{
	fake.fail_name = name;
	fake.fail_errno = kernel;
}

void
vt_qp_destroy(struct rmem_qp **qp)
{
	TEST_OK(rmem_qp_destroy(*qp));
	*qp = NULL;
}

void
vt_cq_destroy(struct rmem_cq **cq)
{
	TEST_OK(rmem_cq_destroy(*cq));
	*cq = NULL;
}

void
vt_post_writes(uint64_t first, uint32_t n)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, NULL);
	uint32_t i;

	wr.num_sge = 0;
	for (i = 0; i < n; i++) {
		wr.wr_id = first + i;
		TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	}
}

void
vt_replace_qp(struct rmem_qp **qp, const struct rmem_qp_conf *conf)
{
	TEST_OK(rmem_qp_destroy(*qp));
	*qp = NULL;
	TEST_OK(rmem_qp_create(vt.pd, conf, qp));
}

int
vt_run(const struct rmem_send_wr *wr)
{
	struct rmem_wc wc;
	int n = rmem_post_send(vt.a, wr, 1);

	if (n != 1)
		return n;
	n = vt_wait(vt.cq_a, &wc);
	return n >= 0 && wc.wr_id != wr->wr_id ? -EBADMSG : n;
}
