/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC over the fakes: a destroyed SRQ, domains of others, and calls that fail. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test.h"
#include "setup.h"

#define DEPTH 8u

/* send is connected to recv, of domain, as the SRQs are, each with its CQ. */
static struct {
	struct rmem_xrcd *domain;
	struct rmem_cq *cq[2];
	struct rmem_srq *srq[2];
	uint32_t number[2];
	struct rmem_qp *send;
	struct rmem_qp *recv;
	int fd; /* of a file; -1: none */
} vx;

static struct rmem_srq *
create_srq(struct rmem_xrcd *domain, struct rmem_cq *cq)
{
	const struct rmem_srq_ext ext = {.xrcd = domain, .cq = cq};
	const struct rmem_srq_conf conf = {.max_wr = DEPTH, .max_sge = 1, .ext = &ext};
	struct rmem_srq *srq = NULL;

	TEST_OK(rmem_srq_create(vt.pd, &conf, &srq));
	return srq;
}

static void
connect_to(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(peer, &attr));
	conn.remote = attr.addr;
	TEST_OK(rmem_qp_connect(qp, &conn));
}

static void
connect_pair(void)
{
	connect_to(vx.send, vx.recv);
	connect_to(vx.recv, vx.send);
}

static void
setup(void)
{
	memset(&vx, 0, sizeof(vx));
	vx.fd = -1;
	vt_setup_fake();
	fake.has_srq = true;
	fake.has_xrc = true;
}

static void
open_xrc(void)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * DEPTH};
	const struct rmem_xrcd_conf domain_conf = {.flags = 0};
	struct rmem_qp_ext ext = {.xrcd = NULL};
	struct rmem_qp_conf conf;
	unsigned int i;

	TEST_OK(vt_open());
	TEST_OK(rmem_xrcd_alloc(vt.dev, &domain_conf, &vx.domain));
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_cq_create(vt.dev, &cq_conf, &vx.cq[i]));
		vx.srq[i] = create_srq(vx.domain, vx.cq[i]);
		TEST_OK(rmem_srq_num_get(vx.srq[i], &vx.number[i]));
	}
	conf = vt_qp_conf(vt.cq_a, RMEM_QPT_XRC_SEND);
	TEST_OK(rmem_qp_create(vt.pd, &conf, &vx.send));
	conf = vt_qp_conf(NULL, RMEM_QPT_XRC_RECV);
	ext.xrcd = vx.domain;
	conf.ext = &ext;
	TEST_OK(rmem_qp_create(NULL, &conf, &vx.recv));
	connect_pair();
}

static void
teardown(void)
{
	unsigned int i;

	fake.fail_name = NULL;
	TEST_OK(rmem_qp_destroy(vx.send));
	TEST_OK(rmem_qp_destroy(vx.recv));
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_srq_destroy(vx.srq[i]));
		TEST_OK(rmem_cq_destroy(vx.cq[i]));
	}
	TEST_OK(rmem_xrcd_dealloc(vx.domain));
	if (vx.fd >= 0)
		close(vx.fd);
	vt_teardown();
}

static void
post_recv(unsigned int i, uint64_t wr_id)
{
	const struct rmem_recv_wr wr = {.wr_id = wr_id};

	TEST_EQ(rmem_srq_post_recv(vx.srq[i], &wr, 1), 1);
}

/* The status of a request without data that names an SRQ. */
static int
run(uint8_t opcode, uint32_t number)
{
	struct rmem_send_wr wr = vt_wr(opcode, NULL);
	struct rmem_wc wc;

	wr.num_sge = 0;
	wr.xrc.remote_srqn = number;
	TEST_EQ(rmem_post_send(vx.send, &wr, 1), 1);
	return vt_wait(vt.cq_a, &wc);
}

static void
expect_recv(unsigned int i, uint64_t wr_id, uint8_t opcode)
{
	struct rmem_wc wc;

	TEST_STATUS(vt_wait(vx.cq[i], &wc), RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, wr_id);
	TEST_EQ(wc.qp_num, vx.recv->qp_num);
	TEST_EQ(wc.opcode, opcode);
	TEST_EQ(rmem_poll_cq(vx.cq[!i], &wc, 1), 0);
}

/* They have the wr_ids of its receives, although the SRQ is not there any more. */
TEST(verbs_xrc, completions_of_a_destroyed_srq_are_kept)
{
	struct rmem_srq *gone;

	open_xrc();
	post_recv(0, 7);
	post_recv(0, 8);
	TEST_STATUS(run(RMEM_WR_SEND, vx.number[0]), RMEM_WC_SUCCESS);
	TEST_STATUS(run(RMEM_WR_SEND, vx.number[0]), RMEM_WC_SUCCESS);
	gone = vx.srq[0];
	vx.srq[0] = NULL;
	TEST_OK(rmem_srq_destroy(gone));
	vx.srq[0] = create_srq(vx.domain, vx.cq[0]);
	expect_recv(0, 7, RMEM_WC_RECV);
	expect_recv(0, 8, RMEM_WC_RECV);
}

static int
open_domain(uint32_t flags, struct rmem_xrcd **domain)
{
	const struct rmem_xrcd_conf conf = {.fd = vx.fd, .flags = RMEM_XRCD_FILE | flags};

	return rmem_xrcd_alloc(vt.dev, &conf, domain);
}

static void
open_file(void)
{
	char path[] = "/tmp/rmem_xrc_XXXXXX";

	vx.fd = mkstemp(path);
	TEST_ASSERT(vx.fd >= 0);
	unlink(path);
}

/* The kernel knows the domain, this process does not. */
TEST(verbs_xrc, domain_of_another_process_is_opened)
{
	struct rmem_xrcd *domain = NULL;
	struct stat st;

	TEST_OK(vt_open());
	open_file();
	TEST_EQ(fstat(vx.fd, &st), 0);
	TEST_ERR(open_domain(0, &domain), ENOENT);
	fake.other_inode = st.st_ino;
	TEST_ERR(open_domain(RMEM_XRCD_CREATE | RMEM_XRCD_EXCL, &domain), EEXIST);
	TEST_OK(open_domain(0, &domain));
	TEST_OK(rmem_xrcd_dealloc(domain));
}

TEST(verbs_xrc, qps_of_other_processes_are_not_supported)
{
	struct rmem_qp_shared_conf conf = {.qp_num = 1};
	struct rmem_qp *qp;

	open_xrc();
	conf.qp_num = vx.recv->qp_num;
	TEST_ERR(rmem_qp_get_shared(vx.domain, &conf, &qp), EOPNOTSUPP);
}

TEST(verbs_xrc, failed_calls_are_their_errnos)
{
	struct rmem_xrcd *domain = NULL;
	uint32_t number = 5;

	open_xrc();
	open_file();
	vt_fail("open_xrcd", ENOMEM);
	TEST_ERR(open_domain(RMEM_XRCD_CREATE, &domain), ENOMEM);
	fake.fail_errno = EINVAL;
	TEST_ERR(open_domain(RMEM_XRCD_CREATE, &domain), EINVAL);
	fake.fail_name = "get_srq_num";
	TEST_ERR(rmem_srq_num_get(vx.srq[0], &number), EINVAL);
	TEST_EQ(number, 5);
	fake.fail_name = NULL;
	TEST_OK(open_domain(RMEM_XRCD_CREATE, &domain));
	VT_FAILS("close_xrcd", EIO, rmem_xrcd_dealloc(domain), EIO);
	TEST_OK(rmem_xrcd_dealloc(domain));
}

static uint64_t
probed_capa(void)
{
	struct rmem_dev_info info = {.capa = 0};

	TEST_OK(vt_open());
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_OK(vt_close());
	return info.capa & RMEM_DEV_CAPA_XRC;
}

TEST(verbs_xrc, xrc_is_a_capability)
{
	const struct rmem_xrcd_conf conf = {.flags = 0};
	struct rmem_xrcd *domain = NULL;

	TEST_ASSERT(probed_capa() != 0);
	vt_fail("get_srq_num", EOPNOTSUPP);
	TEST_EQ(probed_capa(), 0);
	fake.fail_name = NULL;
	fake.has_xrc = false;
	TEST_OK(vt_open());
	TEST_ERR(rmem_xrcd_alloc(vt.dev, &conf, &domain), EOPNOTSUPP);
}

TEST_SUITE(verbs_xrc, setup, teardown);
