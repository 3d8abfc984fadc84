/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory of a file descriptor is mapped, registered, shared and unmapped, and is not changed. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "fixture.h"

#define NB_PAGES 4u
#define SIZE     (NB_PAGES * FX_PAGE)
#define HUGE     ((size_t)2 << 20)

static struct rmem_mr_attr attr;
static int memfd;

static int
reg(struct rmem_mr **mr)
{
	return fx_reg_attr(fx.a.pd, &attr, mr);
}

static void
setup(void)
{
	fx_setup();
	memfd = memfd_create("rmem_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	TEST_ASSERT(memfd >= 0);
	TEST_OK(ftruncate(memfd, SIZE));
	memset(&attr, 0, sizeof(attr));
	attr.flags = RMEM_MR_FD;
	attr.fd = memfd;
	attr.length = SIZE;
	attr.access = FX_ACCESS;
}

static void
teardown(void)
{
	int ret = TEST_TRY(fx_teardown());

	close(memfd);
	TEST_RUN(ret);
}

/* Whether anything is mapped at a page. */
static bool
is_mapped(void *addr)
{
	unsigned char resident;

	return mincore(addr, FX_PAGE, &resident) == 0;
}

/* The file from an offset on equals b's buffer. */
static void
expect_in_file(off_t offset, size_t length)
{
	static uint8_t got[SIZE];

	TEST_EQ(pread(memfd, got, length, offset), length);
	TEST_MEM(got, fx.b.buf, length);
}

TEST(mr_fd, peers_write_to_the_file)
{
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;
	void *addr;

	TEST_OK(reg(&mr));
	TEST_ASSERT(mr->addr != NULL);
	TEST_EQ(mr->iova, fx_addr(mr->addr));
	TEST_EQ(mr->length, SIZE);
	info = fx_query(mr);
	TEST_EQ(info.is_fd, 1);
	TEST_EQ(info.is_shared, 0);
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(fx_query(fx.a.mr).is_fd, 0);
	fx_fill(fx.b.buf, SIZE, 3);
	TEST_STATUS(fx_peer_write(mr->iova, SIZE, mr->rkey), RMEM_WC_SUCCESS);
	expect_in_file(0, SIZE);
	TEST_STATUS(fx_peer_write(mr->iova + 1, SIZE, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	addr = mr->addr;
	TEST_OK(fx_release(mr));
	TEST_ASSERT(!is_mapped(addr));
}

/* The mapping begins and ends with a page, and the MR does not. */
TEST(mr_fd, part_begins_at_any_offset)
{
	static const struct {
		uint64_t offset;
		size_t length;
	} parts[] = {{1, SIZE - 1}, {FX_PAGE - 1, 2}, {FX_PAGE + 100, 3}, {SIZE - 1, 1}};
	struct rmem_mr *mr = NULL;
	unsigned int i;
	uint8_t *addr;

	for (i = 0; i < RTE_DIM(parts); i++) {
		attr.fd_offset = parts[i].offset;
		attr.length = parts[i].length;
		TEST_OK(reg(&mr));
		TEST_EQ(mr->length, parts[i].length);
		TEST_EQ((uintptr_t)mr->addr % FX_PAGE, parts[i].offset % FX_PAGE);
		fx_fill(fx.b.buf, SIZE, i);
		TEST_STATUS(fx_peer_write(mr->iova, (uint32_t)parts[i].length, mr->rkey),
				RMEM_WC_SUCCESS);
		expect_in_file((off_t)parts[i].offset, parts[i].length);
		TEST_STATUS(fx_peer_write(mr->iova - 1, 1, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
		fx_reconnect();
		addr = mr->addr;
		TEST_OK(fx_release(mr));
		addr -= parts[i].offset % FX_PAGE;
		TEST_ASSERT(!is_mapped(addr));
		TEST_ASSERT(!is_mapped(addr +
				(parts[i].offset % FX_PAGE + parts[i].length - 1) / FX_PAGE *
						FX_PAGE));
	}
	attr.iova = 0x5000;
	TEST_OK(reg(&mr));
	TEST_EQ(mr->iova, 0x5000);
	attr.iova = 0;
	attr.access |= RMEM_ACCESS_ZERO_BASED;
	TEST_OK(reg(&mr));
	TEST_EQ(mr->iova, 0);
}

TEST(mr_fd, descriptor_may_be_closed_afterwards)
{
	struct rmem_mr *mr = NULL;

	attr.fd = dup(memfd);
	attr.eq = fx_eq(fx.a.dev, 1);
	TEST_OK(reg(&mr));
	TEST_OK(close(attr.fd));
	TEST_OK(fx_event(attr.eq).status);
	fx_fill(fx.b.buf, SIZE, 5);
	TEST_STATUS(fx_peer_write(mr->iova, SIZE, mr->rkey), RMEM_WC_SUCCESS);
	expect_in_file(0, SIZE);
}

/* The log line has the reason. */
static void
expect_bad(int error, const char *what)
{
	struct rmem_mr *mr = NULL;

	FX_ERR_LOG(reg(&mr), error, what);
	TEST_ASSERT(mr == NULL);
}

TEST(mr_fd, bad_places_are_refused)
{
	attr.fd_offset = 1;
	expect_bad(EINVAL, "(16384 bytes");
	attr.fd_offset = FX_PAGE;
	expect_bad(EINVAL, "(16384 bytes");
	attr.length = 1;
	attr.fd_offset = SIZE;
	expect_bad(EINVAL, "(16384 bytes");
	attr.fd_offset = UINT64_MAX - FX_PAGE + 1;
	expect_bad(EINVAL, "(16384 bytes");
	attr.fd_offset = 0;
	attr.length = 0;
	expect_bad(EINVAL, "length out of range: 0");
	attr.length = SIZE;
	attr.flags = 0;
	attr.addr = fx.a.buf;
	expect_bad(EINVAL, "without RMEM_MR_FD");
}

TEST(mr_fd, attributes_that_exclude_an_fd_are_refused)
{
	const struct iovec iov = {fx.a.buf, SIZE};
	struct rmem_mr *mr = NULL;

	attr.addr = fx.a.buf;
	expect_bad(EINVAL, "cannot be combined");
	attr.addr = NULL;
	attr.iov = &iov;
	attr.iov_count = 1;
	expect_bad(EINVAL, "cannot be combined");
	attr.iov = NULL;
	attr.iov_count = 0;
	attr.access = FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR;
	expect_bad(EINVAL, "cannot be combined");
	attr.access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	TEST_OK(reg(&mr));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0,
				 RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ON_DEMAND, NULL),
			EINVAL);
	attr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ON_DEMAND;
	expect_bad(EINVAL, "cannot be combined");
}

TEST(mr_fd, descriptors_that_cannot_be_mapped_are_refused)
{
	attr.fd = -1;
	expect_bad(EINVAL, "fd -1");
	attr.fd = 1023;
	expect_bad(EINVAL, "fd 1023");
	attr.fd = eventfd(0, EFD_CLOEXEC);
	TEST_ASSERT(attr.fd >= 0);
	expect_bad(EINVAL, "cannot be mapped");
	TEST_OK(close(attr.fd));
}

/* Opened for reading, it gives rights to read, and no others later. */
TEST(mr_fd, descriptor_to_read_gives_no_more)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, SIZE);
	struct rmem_mr *mr = NULL, *other = NULL;
	enum rmem_rereg_result result;
	struct rmem_send_wr wr;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	attr.fd = open(path, O_RDONLY | O_CLOEXEC);
	TEST_ASSERT(attr.fd >= 0);
	expect_bad(EPERM, "cannot be mapped for writing");
	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(reg(&mr));
	TEST_OK(close(attr.fd));
	TEST_EQ(pwrite(memfd, "seen", 4, 0), 4);
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, mr->iova, mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, "seen", 4);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, &result),
			EFAULT);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_ERR(rmem_mr_reg_shared(mr, fx.a.pd, 0, FX_ACCESS, &other), EFAULT);
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, RMEM_ACCESS_REMOTE_READ, &other));
	fx_track(other);
	TEST_ERR(rmem_mr_rereg(other, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL),
			EFAULT);
}

TEST(mr_fd, sealed_file_is_read_only)
{
	struct rmem_mr *mr = NULL;

	TEST_OK(fcntl(memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	expect_bad(EPERM, "cannot be mapped for writing");
	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(reg(&mr));
}

/* Seed 0: memory of peer clients can't be re-registered elsewhere; PD and rights can change. */
TEST(mr_fd, rereg_of_the_memory_is_eopnotsupp)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	enum rmem_rereg_result result = RMEM_REREG_OK;
	struct rmem_mr *mr = NULL;

	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(reg(&mr));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf, 64, 0, &result),
			EOPNOTSUPP);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION | RMEM_REREG_CHANGE_PD, pd,
				 fx.a.buf, 64, 0, &result),
			EOPNOTSUPP);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_PD | RMEM_REREG_CHANGE_ACCESS, pd, NULL, 0,
			FX_ACCESS, &result));
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_PD, fx.a.pd, NULL, 0, 0, &result));
	TEST_EQ(fx_query(mr).is_fd, 1);
	TEST_STATUS(fx_peer_write(mr->iova, SIZE, mr->rkey), RMEM_WC_SUCCESS);
}

/* Seed 0: windows do not go together with peer clients. */
TEST(mr_fd, windows_are_refused)
{
	struct rmem_mw *one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	struct rmem_mw *two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	struct rmem_mr *other = NULL;
	struct rmem_mw_bind bind;
	struct rmem_send_wr wr;

	attr.access |= RMEM_ACCESS_MW_BIND;
	TEST_OK(reg(&fx.mw.mr));
	bind = fx_mw_bind(0, 64, RMEM_ACCESS_REMOTE_READ);
	TEST_ERR(rmem_mw_bind(fx.a.qp, one, &bind), EOPNOTSUPP);
	wr = fx_mw_wr(two, 0, 64, RMEM_ACCESS_REMOTE_READ);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_MW_BIND_ERR);
	fx_reconnect();
	TEST_OK(rmem_mr_reg_shared(fx.mw.mr, fx.a.pd, 0, attr.access, &other));
	fx_track(other);
	bind.bind_info.mr = other;
	TEST_ERR(rmem_mw_bind(fx.a.qp, one, &bind), EOPNOTSUPP);
}

/* The mapping is that of the first MR. */
TEST(mr_fd, owner_of_the_mapping_is_released_last)
{
	struct rmem_mr *mr = NULL, *second = NULL, *third = NULL;
	void *addr;

	TEST_OK(reg(&mr));
	addr = mr->addr;
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, FX_ACCESS, &second));
	fx_track(second);
	TEST_OK(rmem_mr_reg_shared(second, fx.a.pd, 0, FX_ACCESS, &third));
	fx_track(third);
	TEST_EQ(fx_query(third).is_fd, 1);
	TEST_EQ(fx_query(third).is_shared, 1);
	TEST_ERR(rmem_mr_rereg(third, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf, 8, 0, NULL),
			EOPNOTSUPP);
	TEST_OK(fx_release(second));
	TEST_ASSERT(is_mapped(addr));
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_STATUS(fx_peer_write(third->iova, 64, third->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(third));
	TEST_ASSERT(is_mapped(addr));
	TEST_OK(fx_release(mr));
	TEST_ASSERT(!is_mapped(addr));
}

/* Mappings of the process. */
static unsigned int
count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int nb = 0;
	int c;

	while (f != NULL && (c = fgetc(f)) != EOF)
		nb += c == '\n';
	if (f != NULL)
		fclose(f);
	return nb;
}

TEST(mr_fd, failed_registration_unmaps)
{
	unsigned int before = count_mappings();
	struct rmem_mr *mr = NULL;

	attr.flags |= RMEM_MR_REQUESTED_KEY;
	attr.requested_key = fx.a.mr->rkey;
	TEST_ERR(reg(&mr), EEXIST);
	TEST_EQ(count_mappings(), before);
	attr.eq = fx_eq(fx.a.dev, 1);
	before = count_mappings();
	TEST_OK(reg(&mr));
	TEST_ERR(fx_event(attr.eq).status, EEXIST);
	TEST_OK(fx_release(mr));
	TEST_ASSERT(count_mappings() <= before);
}

TEST(mr_fd, file_of_hugepages_is_registered)
{
	int fd = memfd_create("rmem_huge", MFD_CLOEXEC | MFD_HUGETLB | 21 << MAP_HUGE_SHIFT);
	struct rmem_mr *mr = NULL;
	void *addr;

	TEST_SKIP_IF(fd < 0 || ftruncate(fd, (off_t)HUGE) != 0, "no files of hugepages");
	attr.fd = fd;
	attr.length = HUGE;
	attr.access = FX_ACCESS | RMEM_ACCESS_HUGETLB;
	if (reg(&mr) != 0) {
		close(fd);
		test_skip("no hugepage of 2 MiB is free");
	}
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_STATUS(fx_peer_write(mr->iova + HUGE - 64, 64, mr->rkey), RMEM_WC_SUCCESS);
	addr = mr->addr;
	TEST_OK(fx_release(mr));
	TEST_ASSERT(!is_mapped(addr));
	/* Less than a page of it is mapped and unmapped as a whole. */
	attr.length = 5000;
	attr.access = FX_ACCESS;
	TEST_OK(reg(&mr));
	TEST_EQ(fx_query(mr).length, 5000);
	addr = mr->addr;
	TEST_OK(fx_release(mr));
	TEST_ASSERT(!is_mapped(addr));
	TEST_OK(close(fd));
}

/* A mapping of a kernel driver can't be populated, like that of most dmabufs. */
TEST(mr_fd, memory_of_a_driver_is_registered)
{
	struct perf_event_attr event;
	struct rmem_mr *mr = NULL;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	int fd, ret;

	memset(&event, 0, sizeof(event));
	event.size = sizeof(event);
	event.type = PERF_TYPE_SOFTWARE;
	event.config = PERF_COUNT_SW_DUMMY;
	fd = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	TEST_SKIP_IF(fd < 0, "perf_event_open() is not allowed");
	attr.fd = fd;
	attr.length = 2 * FX_PAGE;
	attr.access = RMEM_ACCESS_REMOTE_READ;
	ret = reg(&mr);
	close(fd);
	TEST_OK(ret);
	sge = fx_sge(fx.b.mr, 0, 64);
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, mr->iova, mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, mr->addr, 8);
	TEST_OK(fx_release(mr));
}

TEST_SUITE(mr_fd, setup, teardown);
