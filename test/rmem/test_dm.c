/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory of the software device, its limits, and what its MRs refuse. */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

#define SIZE   4096
#define ACCESS (FX_ACCESS | RMEM_ACCESS_ZERO_BASED)

static struct rmem_dm *dm;

/* A descriptor whose file is of another file system, with the same inode number; -1: none. */
static int foreign_fd = -1;

/* For the library, too: the number of an inode cannot be chosen. */
int
fstat(int fd, struct stat *st)
{
	int ret = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (ret == 0 && fd == foreign_fd)
		st->st_dev++;
	return ret;
}

static int
alloc(struct rmem_dev *dev, size_t length, struct rmem_dm **made)
{
	const struct rmem_dm_conf conf = {.length = length};
	int ret = rmem_dm_alloc(dev, &conf, made);

	if (ret == 0)
		fx_track(*made);
	return ret;
}

static void
setup(void)
{
	fx_setup();
	dm = NULL;
	TEST_OK(alloc(fx.a.dev, SIZE, &dm));
}

static struct rmem_mr_ext
whole(void)
{
	return (struct rmem_mr_ext){.dm = dm};
}

static int
reg(const struct rmem_mr_ext *ext, uint64_t length, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {.length = length, .access = ACCESS, .ext = ext};

	return fx_reg_attr(fx.a.pd, &attr, mr);
}

TEST(dm, conf_is_checked)
{
	const struct rmem_dm_conf good = {.length = 64};
	const struct rmem_dm_conf bad[] = {
			{.length = 0},
			{.length = (1 << 20) + 1},
			{.length = SIZE_MAX},
			{.length = 64, .log2_align = 13},
			{.length = 64, .flags = RMEM_DM_FD << 1},
			{.length = 64, .fd = 1},
			{.length = 64, .flags = RMEM_DM_FD, .fd = -1},
			{.length = 64, .name = "a\n"},
			{.length = 64, .reserved = {1}},
			{.length = 64, .reserved = {0, 0, 1}},
	};
	struct rmem_dm *made = NULL;
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++)
		TEST_ERR(rmem_dm_alloc(fx.a.dev, &bad[i], &made), EINVAL);
	TEST_ERR(rmem_dm_alloc(fx.a.dev, NULL, &made), EINVAL);
	TEST_ERR(rmem_dm_alloc(fx.a.dev, &good, NULL), EINVAL);
	TEST_ASSERT(made == NULL);
}

TEST(dm, all_of_it_is_limited_together)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_dm_size=8192,max_dm=3");
	struct rmem_dm *first = NULL, *other = NULL;
	struct rmem_dev_info info;

	TEST_ERR(alloc(dev, 8193, &other), EINVAL);
	TEST_OK(alloc(dev, 8000, &first));
	TEST_ERR(alloc(dev, 193, &other), ENOMEM);
	TEST_ASSERT(other == NULL);
	TEST_OK(alloc(dev, 192, &other));
	TEST_OK(rmem_dev_info_get(dev, &info));
	TEST_EQ(info.nb_dm, 2);
	TEST_EQ(info.max_dm, 3);
	TEST_EQ(info.max_dm_size, 8192);
	TEST_OK(fx_release(first));
	TEST_OK(alloc(dev, 8000, &first));
}

TEST(dm, device_without_it_is_eopnotsupp)
{
	struct rmem_dev *dev = fx_dev("soft1", "profile=rxe");
	struct rmem_dm *made = NULL;
	struct rmem_dev_info info = fx_dev_info(dev);

	TEST_EQ(info.capa & RMEM_DEV_CAPA_DM, 0);
	TEST_EQ(info.max_dm_size, 0);
	TEST_ERR(alloc(dev, 64, &made), EOPNOTSUPP);
	TEST_ASSERT(made == NULL);
}

TEST(dm, copies_are_within_it)
{
	uint8_t bytes[16] = {1}, out[16] = {0xee, 0xee};

	TEST_OK(rmem_dm_copy_from(dm, 0, out, sizeof(out)));
	TEST_ASSERT(fx_is_zero(out, sizeof(out)));
	TEST_OK(rmem_dm_copy_to(dm, SIZE - 15, bytes, 15));
	TEST_OK(rmem_dm_copy_from(dm, SIZE - 15, out, 15));
	TEST_MEM(out, bytes, 15);
	TEST_OK(rmem_dm_copy_to(dm, SIZE, bytes, 0));
	TEST_ERR(rmem_dm_copy_to(dm, SIZE - 15, bytes, 16), EINVAL);
	TEST_ERR(rmem_dm_copy_from(dm, SIZE - 15, out, 16), EINVAL);
	TEST_ERR(rmem_dm_copy_to(dm, SIZE + 1, bytes, 0), EINVAL);
	TEST_ERR(rmem_dm_copy_from(dm, UINT64_MAX, out, 2), EINVAL);
	TEST_ERR(rmem_dm_copy_to(dm, 8, bytes, SIZE_MAX), EINVAL);
	TEST_ERR(rmem_dm_copy_to(dm, 0, NULL, 1), EINVAL);
	TEST_ERR(rmem_dm_copy_from(dm, 0, NULL, 1), EINVAL);
	TEST_ERR(rmem_dm_copy_to(NULL, 0, bytes, 1), EINVAL);
	TEST_ERR(rmem_dm_copy_from((struct rmem_dm *)fx.a.pd, 0, out, 1), EINVAL);
}

static int
import(struct rmem_dev *dev, int fd, size_t length, struct rmem_dm **made)
{
	const struct rmem_dm_conf conf = {.length = length, .flags = RMEM_DM_FD, .fd = fd};
	int ret = rmem_dm_alloc(dev, &conf, made);

	if (ret == 0)
		fx_track(*made);
	return ret;
}

TEST(dm, exported_memory_is_that_of_the_device_that_imports_it)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_dm_size=4096");
	struct rmem_dm *own = NULL, *imported = NULL;
	uint8_t bytes[16] = {1, 2, 3}, out[16] = {0};
	struct rmem_mr_ext ext;
	struct rmem_mr *mr = NULL;
	int fd = -1, again = -1;

	TEST_OK(alloc(dev, SIZE, &own));
	TEST_OK(rmem_dm_export_fd(dm, &fd));
	TEST_ASSERT(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	TEST_OK(import(dev, fd, SIZE, &imported));
	TEST_OK(rmem_dm_export_fd(imported, &again));
	close(fd);
	close(again);
	TEST_OK(rmem_dm_copy_to(dm, 32, bytes, sizeof(bytes)));
	ext = (struct rmem_mr_ext){.dm = imported, .dm_offset = 32};
	TEST_OK(fx_reg_attr(fx_pd(dev),
			&(struct rmem_mr_attr){.length = 64, .access = ACCESS, .ext = &ext}, &mr));
	TEST_ERR(rmem_dm_free(imported), EBUSY);
	TEST_OK(fx_release(dm));
	TEST_OK(rmem_dm_copy_from(imported, 32, out, sizeof(out)));
	TEST_MEM(out, bytes, sizeof(out));
	TEST_OK(rmem_dm_copy_from(own, 32, out, sizeof(out)));
	TEST_ASSERT(fx_is_zero(out, sizeof(out)));
}

TEST(dm, descriptor_that_is_not_exported_is_refused)
{
	int file = memfd_create("other", MFD_ALLOW_SEALING), pipes[2] = {-1, -1}, fd = -1;
	struct rmem_dm *made = NULL;

	TEST_ASSERT(file >= 0 && ftruncate(file, SIZE) == 0 && pipe(pipes) == 0);
	TEST_OK(rmem_dm_export_fd(dm, &fd));
	TEST_ERR(import(fx.a.dev, fd, SIZE + 1, &made), EINVAL);
	TEST_ERR(import(fx.a.dev, file, SIZE, &made), EINVAL);
	TEST_ERR(import(fx.a.dev, pipes[0], SIZE, &made), EINVAL);
	TEST_ASSERT(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
	TEST_ERR(import(fx.a.dev, file, SIZE, &made), EINVAL);
	close(file);
	close(pipes[0]);
	close(pipes[1]);
	TEST_ERR(import(fx.a.dev, file, SIZE, &made), EINVAL);
	TEST_ERR(rmem_dm_export_fd(NULL, &fd), EINVAL);
	TEST_ERR(rmem_dm_export_fd(dm, NULL), EINVAL);
	TEST_ERR(rmem_dm_export_fd((struct rmem_dm *)fx.a.pd, &fd), EINVAL);
	TEST_ASSERT(made == NULL);
	close(fd);
}

/* Without a file, the memory is private: a larger file would raise SIGXFSZ. */
TEST(dm, memory_without_a_file_is_not_exported)
{
	struct rmem_dm *private = NULL;
	struct rlimit old, small;
	uint8_t out = 1;
	int fd = -1;

	TEST_ASSERT(getrlimit(RLIMIT_FSIZE, &old) == 0);
	small = old;
	small.rlim_cur = SIZE - 1;
	TEST_ASSERT(setrlimit(RLIMIT_FSIZE, &small) == 0);
	TEST_OK(alloc(fx.a.dev, SIZE, &private));
	TEST_ASSERT(setrlimit(RLIMIT_FSIZE, &old) == 0);
	TEST_ERR(rmem_dm_export_fd(private, &fd), EOPNOTSUPP);
	TEST_ASSERT(fd == -1);
	TEST_OK(rmem_dm_copy_to(private, SIZE - 1, &out, 1));
	TEST_OK(rmem_dm_copy_from(private, 0, &out, 1));
	TEST_EQ(out, 0);
}

/* The program has closed all descriptors, and opened another one of that number. */
TEST(dm, descriptor_of_the_program_stays_open)
{
	struct rmem_dm *made = NULL;
	int next = dup(0), other, fd = -1;

	TEST_ASSERT(next >= 0);
	close(next);
	TEST_OK(alloc(fx.a.dev, SIZE, &made)); /* takes the lowest number */
	close(next);
	other = memfd_create("other", 0);
	TEST_EQ(other, next);
	TEST_ERR(rmem_dm_export_fd(made, &fd), EOPNOTSUPP);
	TEST_OK(fx_release(made));
	TEST_ASSERT(close(other) == 0);
}

TEST(dm, file_with_the_same_inode_number_stays_open)
{
	struct rmem_dm *made = NULL;
	int next = dup(0), fd = -1;

	TEST_ASSERT(next >= 0);
	close(next);
	TEST_OK(alloc(fx.a.dev, SIZE, &made));
	foreign_fd = next;
	TEST_ERR(rmem_dm_export_fd(made, &fd), EOPNOTSUPP);
	TEST_OK(fx_release(made));
	foreign_fd = -1;
	TEST_ASSERT(close(next) == 0);
}

TEST(dm, bad_registrations_are_refused)
{
	static uint8_t buf[64];
	const struct iovec iov = {buf, sizeof(buf)};
	const struct rmem_mr_ext ext = whole(), of_a_pd = {.dm = (struct rmem_dm *)fx.a.pd},
				 no_dm = {.dm_offset = 4}, reserved = {.reserved = {[5] = 1}};
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	const struct rmem_mr_attr bad[] = {
			{.length = 64, .access = FX_ACCESS, .ext = &ext},
			{.length = 64, .access = ACCESS | RMEM_ACCESS_MW_BIND, .ext = &ext},
			{.length = 64, .access = ACCESS | RMEM_ACCESS_HUGETLB, .ext = &ext},
			{.length = 64, .access = ACCESS | RMEM_ACCESS_ALLOCATE_MR, .ext = &ext},
			{.length = 64, .access = ACCESS | RMEM_ACCESS_ON_DEMAND, .ext = &ext},
			{.length = 64, .access = ACCESS | RMEM_ACCESS_FLUSH_GLOBAL, .ext = &ext},
			{.length = 64, .access = ACCESS, .addr = buf, .ext = &ext},
			{.length = 64, .access = ACCESS, .iov = &iov, .iov_count = 1, .ext = &ext},
			{.length = 64, .access = ACCESS, .iova = 8, .ext = &ext},
			{.length = 64, .access = ACCESS, .eq = eq, .ext = &ext},
			{.length = 64, .access = ACCESS, .flags = RMEM_MR_DISABLED, .ext = &ext},
			{.length = 64, .access = ACCESS, .flags = RMEM_MR_FD, .ext = &ext},
			{.length = 64, .access = ACCESS, .fd = 1, .ext = &ext},
			{.length = SIZE + 1, .access = ACCESS, .ext = &ext},
			{.length = 64, .access = ACCESS, .ext = &of_a_pd},
			{.length = 64, .access = ACCESS, .addr = buf, .ext = &no_dm},
			{.length = 64, .access = ACCESS, .addr = buf, .ext = &reserved},
	};
	struct rmem_mr *mr = NULL;
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		int ret = rmem_mr_reg_attr(fx.a.pd, &bad[i], &mr);

		if (ret != -EINVAL)
			test_note("row %u: %d", i, ret);
		TEST_ERR(ret, EINVAL);
	}
	TEST_ASSERT(mr == NULL);
	TEST_OK(fx_release(dm));
}

TEST(dm, memory_of_another_device_is_refused)
{
	struct rmem_mr_ext ext = {.dm = NULL};
	struct rmem_mr *mr = NULL;

	TEST_OK(alloc(fx_dev("soft1", NULL), 64, &ext.dm));
	TEST_ERR(reg(&ext, 64, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
}

/* An ext without dm has no effect. */
TEST(dm, empty_ext_registers_memory_of_the_process)
{
	static const struct rmem_mr_ext ext;
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = 64, .access = FX_ACCESS, .ext = &ext};
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_EQ(mr->type, RMEM_MR_TYPE_USER);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, mr->rkey), RMEM_WC_SUCCESS);
}

TEST(dm, requested_key_is_the_rkey)
{
	const struct rmem_mr_ext ext = whole();
	struct rmem_mr *first = NULL, *mr = NULL;
	struct rmem_mr_attr attr = {.length = 64,
			.access = ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY,
			.ext = &ext};

	TEST_OK(reg(&ext, 64, &first));
	attr.requested_key = first->rkey;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EEXIST);
	TEST_OK(fx_release(first));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_EQ(mr->rkey, attr.requested_key);
}

/* The MR is released with an error of memory too. */
TEST(dm, failed_registration_leaves_it_free)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr=1");
	const struct rmem_mr_attr user = {.addr = fx.a.buf, .length = 64};
	struct rmem_mr_ext ext = {.dm = NULL};
	const struct rmem_mr_attr attr = {.length = 64, .access = ACCESS, .ext = &ext};
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = NULL, *none = NULL;

	TEST_OK(alloc(dev, 64, &ext.dm));
	TEST_OK(fx_reg_attr(pd, &user, &mr));
	TEST_ERR(rmem_mr_reg_attr(pd, &attr, &none), ENOSPC);
	TEST_ASSERT(none == NULL);
	TEST_OK(fx_release(ext.dm));
}

TEST(dm, is_named_and_dumped_with_its_mrs)
{
	const struct rmem_dm_conf conf = {.length = 100, .name = "scratch", .log2_align = 12};
	struct rmem_mr_ext ext = {.dm = NULL};
	struct rmem_mr *mr = NULL;
	char text[4096] = "";
	FILE *f;

	TEST_OK(rmem_dm_alloc(fx.a.dev, &conf, &ext.dm));
	fx_track(ext.dm);
	TEST_ASSERT(strcmp(rmem_dm_name(ext.dm), "scratch") == 0);
	TEST_ASSERT(rmem_dm_name(NULL)[0] == '\0' && rmem_dm_name(dm)[0] == '\0');
	TEST_ASSERT(rmem_dm_name((struct rmem_dm *)fx.a.pd)[0] == '\0');
	TEST_OK(reg(&ext, 100, &mr));
	f = fmemopen(text, sizeof(text), "w");
	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_dm_dump(ext.dm, f));
	TEST_OK(rmem_mr_dump(mr, f));
	fclose(f);
	TEST_ASSERT(strstr(text, "scratch") != NULL && strstr(text, "length: 100") != NULL);
	TEST_TEXT(text, "references: 1");
	TEST_ASSERT(strstr(text, "type: dm") != NULL && strstr(text, "dm: ") != NULL);
	TEST_ERR(rmem_dm_dump(NULL, stdout), EINVAL);
	TEST_ERR(rmem_dm_dump(dm, NULL), EINVAL);
}

TEST_SUITE(dm, setup, fx_teardown);
