/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* FLUSH to the type PERSISTENT stores pages in their file. GLOBAL is in the conformance suite. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"

#define SIZE   (2 * FX_PAGE)
#define RIGHTS (FX_ACCESS | RMEM_ACCESS_FLUSH)

static int fd;
static struct rmem_mr *mr;

/* A file that has no name, in the current directory or where temporary files outlive a restart. */
static int
open_file(void)
{
	char here[] = "rmem_flush_XXXXXX", there[] = "/var/tmp/rmem_flush_XXXXXX";
	char *path = here;
	int file = mkstemp(path);

	if (file < 0) {
		path = there;
		file = mkstemp(path);
	}
	if (file >= 0)
		unlink(path);
	return file;
}

/* A file of which b has an MR; skips if it is in memory alone. */
static void
setup(void)
{
	struct rmem_mr_attr attr = {.flags = RMEM_MR_FD, .length = SIZE, .access = RIGHTS};
	struct rmem_qp_conf conf;
	int ret;

	fx_setup();
	fd = open_file();
	TEST_ASSERT(fd >= 0);
	TEST_OK(ftruncate(fd, SIZE));
	attr.fd = fd;
	ret = fx_reg_attr(fx.b.pd, &attr, &mr);
	TEST_SKIP_IF(ret == -EOPNOTSUPP, "the files here are in memory alone");
	TEST_OK(ret);
	conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	conf.access = RMEM_ACCESS_REMOTE | RMEM_ACCESS_FLUSH;
	TEST_OK(fx_release(fx.b.qp));
	fx.b.qp = fx_qp_by(fx.b.pd, &conf);
	fx_reconnect();
}

static void
teardown(void)
{
	int ret = TEST_TRY(fx_teardown());

	close(fd);
	TEST_RUN(ret);
}

/* KiB of the mapping of an address that were modified since they were last stored. */
static unsigned long
dirty_kib(const void *addr)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long sum = 0;
	bool is_here = false;
	char line[512], *end;

	TEST_ASSERT(file != NULL);
	while (fgets(line, sizeof(line), file) != NULL) {
		uintptr_t first = strtoul(line, &end, 16);

		if (*end == '-' && end != line)
			is_here = first <= (uintptr_t)addr &&
					(uintptr_t)addr < strtoul(end + 1, NULL, 16);
		if (is_here &&
				(strncmp(line, "Shared_Dirty:", 13) == 0 ||
						strncmp(line, "Private_Dirty:", 14) == 0))
			sum += strtoul(strchr(line, ':') + 1, NULL, 10);
	}
	fclose(file);
	return sum;
}

static struct rmem_send_wr
flush_wr(uint8_t type, uint8_t level)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_FLUSH, NULL, 0);

	wr.flush.remote_addr = mr->iova;
	wr.flush.length = level == RMEM_FLUSH_RANGE ? 8 : 0;
	wr.flush.rkey = mr->rkey;
	wr.flush.type = type;
	wr.flush.level = level;
	return wr;
}

/* KiB that are modified after both pages were written, and then flushed. */
static unsigned long
dirty_after(uint8_t type, uint8_t level)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, SIZE);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, mr->iova, mr->rkey);

	fx_fill(fx.a.buf, SIZE, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	wr = flush_wr(type, level);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_FLUSH);
	return dirty_kib(mr->addr);
}

/* At least once in 100 times: the kernel stores pages by itself, too, as sync() makes it. */
static void
expect_dirty(uint8_t type, uint8_t level, unsigned long kib)
{
	unsigned int n = 100;

	while (n > 0 && dirty_after(type, level) != kib)
		n--;
	TEST_ASSERT(n > 0);
}

TEST(flush, persistent_stores_a_range_or_all_of_the_mr)
{
	expect_dirty(RMEM_FLUSH_GLOBAL, RMEM_FLUSH_MR, SIZE / 1024);
	expect_dirty(RMEM_FLUSH_PERSISTENT, RMEM_FLUSH_RANGE, SIZE / 1024 / 2);
	TEST_EQ(dirty_after(RMEM_FLUSH_GLOBAL | RMEM_FLUSH_PERSISTENT, RMEM_FLUSH_MR), 0);
}

/* The program unmapped the memory of the MR. */
TEST(flush, persistent_that_fails_is_a_remote_error)
{
	struct rmem_send_wr wr = flush_wr(RMEM_FLUSH_PERSISTENT, RMEM_FLUSH_MR);
	void *addr = mr->addr;

	TEST_OK(munmap(addr, SIZE));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_OP_ERR);
	TEST_ASSERT(mmap(addr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
			addr);
}

TEST(flush, persistent_of_memory_without_a_stored_file_is_eopnotsupp)
{
	const uint32_t access = RMEM_ACCESS_FLUSH_PERSISTENT;
	struct rmem_mr_attr attr = {.flags = RMEM_MR_FD, .length = SIZE, .access = access};
	struct rmem_mr *other;

	TEST_ERR(rmem_mr_reg(fx.b.pd, fx.b.buf, SIZE, fx_addr(fx.b.buf), access, &other),
			EOPNOTSUPP);
	attr.fd = memfd_create("rmem_test", MFD_CLOEXEC);
	TEST_ASSERT(attr.fd >= 0);
	TEST_OK(ftruncate(attr.fd, SIZE));
	TEST_ERR(fx_reg_attr(fx.b.pd, &attr, &other), EOPNOTSUPP);
	close(attr.fd);
}

TEST_SUITE(flush, setup, teardown);
