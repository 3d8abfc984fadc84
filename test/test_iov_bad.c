/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Invalid ranges: each error is refused, and the log line has the reason. */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "test.h"

#define NB     4u
#define LENGTH (77u + 1u + 64u + 24u)

static struct iovec ranges[NB];
static struct rmem_mr_attr attr;
static struct rmem_mr *shared;

static int
reg(struct rmem_mr **mr)
{
	return fx_reg_attr(fx.a.pd, &attr, mr);
}

/* Valid ranges; a case invalidates one of them. */
static void
setup(void)
{
	fx_setup();
	ranges[0] = (struct iovec){fx.a.buf + 2011, 77};
	ranges[1] = (struct iovec){fx.a.buf + 3, 1};
	ranges[2] = (struct iovec){fx.a.buf + 1024, 64};
	ranges[3] = (struct iovec){fx.a.buf + 4000, 24};
	memset(&attr, 0, sizeof(attr));
	attr.iov = ranges;
	attr.iov_count = NB;
	attr.access = FX_ACCESS;
}

TEST(iov_bad, bad_forms_are_refused)
{
	const struct rmem_mr_attr good = attr;
	struct rmem_mr *mr = NULL;

	attr.iov = NULL;
	TEST_ERR(reg(&mr), EINVAL);
	attr = good;
	attr.iov_count = 0;
	TEST_ERR(reg(&mr), EINVAL);
	attr = good;
	attr.addr = fx.a.buf;
	TEST_ERR(reg(&mr), EINVAL);
	attr = good;
	attr.access |= RMEM_ACCESS_ALLOCATE_MR;
	TEST_ERR(reg(&mr), EINVAL);
	attr = good;
	attr.length = LENGTH - 1;
	TEST_ERR(reg(&mr), EINVAL);
	attr = good;
	attr.flags = RMEM_MR_FD;
	TEST_ERR(reg(&mr), EINVAL);
	attr = good;
	attr.iova = UINT64_MAX - LENGTH + 2;
	TEST_ERR(reg(&mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	attr.iova--;
	TEST_OK(reg(&mr));
}

/* One range is invalid; the log line has the range and the reason. */
static void
expect_bad_range(void *base, size_t length, const char *what)
{
	struct rmem_mr *mr = NULL;
	int ret;

	ranges[2] = (struct iovec){base, length};
	fx_log_begin();
	ret = reg(&mr);
	what = strstr(fx_log_end(), what);
	TEST_ERR(ret, EINVAL);
	TEST_ASSERT(what != NULL);
}

TEST(iov_bad, invalid_ranges_are_refused)
{
	expect_bad_range(fx.a.buf, 0, "range 2 is NULL, empty or wraps around: 0 bytes");
	expect_bad_range(NULL, 8, "range 2 is NULL, empty or wraps around: 8 bytes");
	expect_bad_range((void *)(UINTPTR_MAX - 62), 64, "wraps around");
	/* Each is possible, their sum is not. */
	ranges[1] = (struct iovec){(void *)1, SIZE_MAX - 8};
	expect_bad_range((void *)1, SIZE_MAX - 8, "out of range");
}

TEST(iov_bad, limits_hold)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_iov=3,max_mr_size=8192");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = NULL;
	struct rmem_dev_info info;
	const char *log;
	int ret;

	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(info.max_iov, 3);
	TEST_ASSERT(info.capa & RMEM_DEV_CAPA_MR_IOV);
	fx_log_begin();
	ret = rmem_mr_reg_attr(pd, &attr, &mr);
	log = fx_log_end();
	TEST_ERR(ret, EINVAL);
	TEST_ASSERT(strstr(log, "iov_count out of range: 4 (1 to 3)") != NULL);
	attr.iov_count = 3;
	ranges[2].iov_len = 8192 - 78 + 1;
	TEST_ERR(rmem_mr_reg_attr(pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	ranges[2].iov_len--;
	TEST_OK(fx_reg_attr(pd, &attr, &mr));
}

TEST(iov_bad, each_range_must_be_mapped_as_needed)
{
	uint8_t *mem = fx_map(2 * FX_PAGE);
	struct rmem_mr *mr = NULL;

	ranges[2] = (struct iovec){mem, 8};
	TEST_ERR(reg(&mr), EFAULT);
	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(reg(&mr));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL),
			EFAULT);
	TEST_OK(munmap(mem + FX_PAGE, FX_PAGE));
	ranges[2] = (struct iovec){mem + FX_PAGE - 1, 2};
	TEST_ERR(reg(&mr), EFAULT);
}

static int
make_list(void **mr)
{
	return rmem_mr_reg_attr(fx.a.pd, &attr, (struct rmem_mr **)mr);
}

static int
make_shared_list(void **mr)
{
	return rmem_mr_reg_shared(shared, fx.a.pd, 0, FX_ACCESS, (struct rmem_mr **)mr);
}

TEST(iov_bad, no_memory_is_enomem_and_nothing_stays)
{
	fx_expect_enomem(make_list);
	TEST_OK(reg(&shared));
	fx_expect_enomem(make_shared_list);
}

TEST_SUITE(iov_bad, setup, fx_teardown);
