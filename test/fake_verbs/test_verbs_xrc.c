/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC over the fakes: domains and QPs of other processes. */

#include <stdlib.h>
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

TEST(verbs_xrc, qps_of_other_processes_are_not_supported)
{
	const struct rmem_xrcd_conf domain_conf = {.flags = 0};
	struct rmem_qp_conf recv = vt_qp_conf(NULL, RMEM_QPT_XRC_RECV);
	struct rmem_qp_shared_conf conf = {.qp_num = 1};
	struct rmem_qp_ext ext = {.xrcd = NULL};
	struct rmem_qp *qp, *other;

	TEST_OK(vt_open());
	TEST_OK(rmem_xrcd_alloc(vt.dev, &domain_conf, &ext.xrcd));
	recv.ext = &ext;
	TEST_OK(rmem_qp_create(NULL, &recv, &qp));
	conf.qp_num = qp->qp_num;
	TEST_ERR(rmem_qp_get_shared(ext.xrcd, &conf, &other), EOPNOTSUPP);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_xrcd_dealloc(ext.xrcd));
}

TEST_SUITE(verbs_xrc, setup, teardown);
