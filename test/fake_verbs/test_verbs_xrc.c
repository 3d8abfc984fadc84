/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC over the fakes: domains and QPs of other processes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "setup.h"

static int file; /* -1: none */

static void
setup(void)
{
	file = -1;
	vt_setup_fake();
	fake.has_srq = true;
	fake.has_xrc = true;
}

static void
teardown(void)
{
	if (file >= 0)
		close(file);
	vt_teardown();
}

static int
open_domain(uint32_t flags, struct rmem_xrcd **domain)
{
	const struct rmem_xrcd_conf conf = {.fd = file, .flags = RMEM_XRCD_FILE | flags};

	return rmem_xrcd_alloc(vt.dev, &conf, domain);
}

static void
open_file(void)
{
	char path[] = "/tmp/rmem_xrc_XXXXXX";

	file = mkstemp(path);
	TEST_ASSERT(file >= 0);
	unlink(path);
}

/* The kernel knows the domain, this process does not. */
TEST(verbs_xrc, domain_of_another_process_is_opened)
{
	struct rmem_xrcd *domain = NULL;
	struct stat st;

	TEST_OK(vt_open());
	open_file();
	TEST_EQ(fstat(file, &st), 0);
	TEST_ERR(open_domain(0, &domain), ENOENT);
	fake.other_inode = st.st_ino;
	TEST_ERR(open_domain(RMEM_XRCD_CREATE | RMEM_XRCD_EXCL, &domain), EEXIST);
	TEST_OK(open_domain(0, &domain));
	TEST_OK(rmem_xrcd_dealloc(domain));
}

/* Two handles of the domain of a file; the first one has an XRC_RECV QP, as of another process. */
static struct {
	struct rmem_xrcd *first, *second;
	struct rmem_qp *owned;
} pair;

static void
open_pair(void)
{
	struct rmem_qp_conf recv = vt_qp_conf(NULL, RMEM_QPT_XRC_RECV);
	struct rmem_qp_ext ext = {.xrcd = NULL};

	TEST_OK(vt_open());
	open_file();
	TEST_OK(open_domain(RMEM_XRCD_CREATE, &pair.first));
	TEST_OK(open_domain(0, &pair.second));
	ext.xrcd = pair.first;
	recv.ext = &ext;
	recv.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(rmem_qp_create(NULL, &recv, &pair.owned));
}

static void
close_pair(void)
{
	TEST_OK(rmem_qp_destroy(pair.owned));
	TEST_OK(rmem_xrcd_dealloc(pair.first));
	TEST_OK(rmem_xrcd_dealloc(pair.second));
}

static int
open_qp(uint32_t qp_num, struct rmem_async_channel *channel, struct rmem_qp **qp)
{
	const struct rmem_qp_shared_conf conf = {
			.qp_num = qp_num, .async_channel = channel, .name = "opened"};

	return rmem_qp_get_shared(pair.second, &conf, qp);
}

static struct rmem_qp_attr
attr_of(const struct rmem_qp *qp)
{
	struct rmem_qp_attr attr = {.state = UINT32_MAX};

	TEST_OK(rmem_qp_query(qp, &attr));
	return attr;
}

static void
connect_qp(struct rmem_qp *qp)
{
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7};

	conn.remote = attr_of(vt.a).addr;
	TEST_OK(rmem_qp_connect(qp, &conn));
}

/* Each handle changes the QP, and queries what the other one has changed. */
TEST(verbs_xrc, opened_qp_is_that_of_the_device)
{
	const struct rmem_qp_attr attr = {
			.state = RMEM_QPS_INIT, .port_num = 1, .access = RMEM_ACCESS_REMOTE_WRITE};
	struct rmem_qp *qp;

	open_pair();
	connect_qp(pair.owned);
	TEST_OK(open_qp(pair.owned->qp_num, NULL, &qp));
	TEST_ASSERT(qp != pair.owned && qp->qp_num == pair.owned->qp_num);
	TEST_EQ(attr_of(qp).state, RMEM_QPS_RTS);
	TEST_EQ(attr_of(qp).access, RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(attr_of(qp).remote.qp_num, vt.a->qp_num);
	TEST_ERR(rmem_qp_modify(qp, &attr, RMEM_QP_STATE), EBUSY);
	TEST_OK(rmem_qp_set_error(qp));
	TEST_EQ(attr_of(pair.owned).state, RMEM_QPS_ERR);
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(attr_of(pair.owned).remote.qp_num, 0);
	connect_qp(pair.owned);
	TEST_OK(rmem_qp_reset(pair.owned));
	connect_qp(qp);
	TEST_EQ(attr_of(pair.owned).access, RMEM_ACCESS_REMOTE_READ);
	TEST_OK(rmem_qp_reset(pair.owned));
	TEST_OK(rmem_qp_modify(qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS));
	TEST_EQ(attr_of(pair.owned).access, RMEM_ACCESS_REMOTE_WRITE);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_EQ(attr_of(pair.owned).state, RMEM_QPS_INIT);
	close_pair();
}

/* With the state of the QP, and without counters of requests that the device executes. */
TEST(verbs_xrc, opened_qp_is_dumped_as_a_handle)
{
	struct rmem_qp *qp;
	char *text = NULL;
	size_t size;
	FILE *f;

	open_pair();
	TEST_OK(open_qp(pair.owned->qp_num, NULL, &qp));
	f = open_memstream(&text, &size);
	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_qp_dump(qp, f));
	fclose(f);
	TEST_TEXT(text, "opened: 1");
	TEST_TEXT(text, "state: RESET");
	TEST_ASSERT(strstr(text, "recv_wrs") == NULL);
	free(text);
	TEST_OK(rmem_qp_destroy(qp));
	close_pair();
}

TEST(verbs_xrc, opened_qp_remains_without_its_creator)
{
	struct rmem_qp *qp;
	uint32_t qp_num;

	open_pair();
	qp_num = pair.owned->qp_num;
	connect_qp(pair.owned);
	TEST_OK(open_qp(qp_num, NULL, &qp));
	TEST_OK(rmem_qp_destroy(pair.owned));
	TEST_OK(rmem_xrcd_dealloc(pair.first));
	TEST_EQ(attr_of(qp).state, RMEM_QPS_RTS);
	TEST_ERR(rmem_xrcd_dealloc(pair.second), EBUSY);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_ASSERT(fake_qp_find(qp_num) == NULL);
	TEST_OK(rmem_xrcd_dealloc(pair.second));
}

TEST(verbs_xrc, events_of_an_opened_qp_are_those_of_its_handle)
{
	struct rmem_async_channel *channel;
	struct rmem_async_event event;
	struct rmem_qp *qp;

	open_pair();
	TEST_OK(rmem_async_channel_create(vt.dev, &channel));
	TEST_OK(open_qp(pair.owned->qp_num, channel, &qp));
	fake_event(IBV_EVENT_COMM_EST, NULL, &fake_qp_find(qp->qp_num)->opener->ex.qp_base, 0);
	TEST_OK(rmem_async_channel_get_event(channel, &event));
	TEST_EQ(event.type, RMEM_ASYNC_COMM_EST);
	TEST_ASSERT(event.qp == qp);
	TEST_OK(rmem_async_event_ack(&event));
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_async_channel_destroy(channel));
	close_pair();
}

TEST(verbs_xrc, qp_of_another_domain_is_not_opened)
{
	const struct rmem_xrcd_conf no_file = {.flags = 0};
	struct rmem_qp_shared_conf conf = {.qp_num = 1};
	struct rmem_xrcd *domain;
	struct rmem_qp *qp;

	open_pair();
	TEST_ERR(open_qp(pair.owned->qp_num + 1, NULL, &qp), ENOENT);
	TEST_ERR(open_qp(vt.a->qp_num, NULL, &qp), ENOENT);
	TEST_OK(rmem_xrcd_alloc(vt.dev, &no_file, &domain));
	conf.qp_num = pair.owned->qp_num;
	TEST_ERR(rmem_qp_get_shared(domain, &conf, &qp), ENOENT);
	TEST_OK(rmem_xrcd_dealloc(domain));
	close_pair();
}

TEST(verbs_xrc, provider_without_ibv_open_qp_is_reported)
{
	struct rmem_qp *qp;

	fake.has_no_open_qp = true;
	open_pair();
	TEST_ERR(open_qp(pair.owned->qp_num, NULL, &qp), EOPNOTSUPP);
	close_pair();
}

/* Nothing is leaked: the fakes count their objects. */
TEST(verbs_xrc, failed_calls_of_an_open_leave_nothing)
{
	static const struct {
		const char *name;
		int kernel, err;
	} rows[] = {
			{"open_qp", EINVAL, ENOENT},
			{"open_qp", ENOMEM, ENOMEM},
			{"open_qp", ENOSYS, EOPNOTSUPP},
			{"open_qp", EMFILE, ENOSPC},
			{"open_qp", EFAULT, EIO},
			{"query_qp", EIO, EIO},
	};
	struct rmem_qp *qp;
	unsigned int i;
	int nb_live;

	open_pair();
	nb_live = fake.nb_live;
	for (i = 0; i < RTE_DIM(rows); i++) {
		VT_FAILS(rows[i].name, rows[i].kernel, open_qp(pair.owned->qp_num, NULL, &qp),
				rows[i].err);
		TEST_EQ(fake.nb_live, nb_live);
	}
	TEST_OK(open_qp(pair.owned->qp_num, NULL, &qp));
	VT_FAILS("destroy_qp", EBUSY, rmem_qp_destroy(qp), EBUSY);
	TEST_EQ(attr_of(qp).state, RMEM_QPS_RESET);
	TEST_OK(rmem_qp_destroy(qp));
	close_pair();
}

TEST_SUITE(verbs_xrc, setup, teardown);
