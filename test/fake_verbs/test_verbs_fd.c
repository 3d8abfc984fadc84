/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* MRs of descriptors: of a mapping, or of the dma-buf if the mapping cannot be pinned. */

#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "setup.h"

#define SIZE 8192

static int fd;

static void
setup(void)
{
	vt_setup_fake();
	fake.has_dmabuf = true;
	TEST_OK(vt_open());
	fd = memfd_create("verbs_fd", MFD_CLOEXEC);
	TEST_ASSERT(fd >= 0);
	TEST_OK(ftruncate(fd, SIZE));
}

static void
teardown(void)
{
	close(fd);
	vt_teardown();
}

static int
reg(struct rmem_eq *eq, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {.length = 4096,
			.access = VT_ACCESS,
			.flags = RMEM_MR_FD,
			.fd = fd,
			.fd_offset = 4096,
			.eq = eq};

	return rmem_mr_reg_attr(vt.pd, &attr, mr);
}

TEST(verbs_fd, memory_that_can_be_pinned_is_registered_as_a_mapping)
{
	enum rmem_rereg_result result;
	struct rmem_mr *mr = NULL;

	TEST_OK(reg(NULL, &mr));
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result));
	TEST_OK(rmem_mr_dereg(mr));
}

/* libibverbs changes no MR of a dma-buf, and the mapping cannot be registered. */
TEST(verbs_fd, memory_of_a_device_is_registered_as_a_dmabuf)
{
	enum rmem_rereg_result result = RMEM_REREG_OK;
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;
	int nb = fake.nb_live;

	fake.is_device_mapping = true;
	TEST_OK(reg(NULL, &mr));
	fake.is_device_mapping = false;
	TEST_EQ(fake.nb_live, nb + 1);
	TEST_EQ(fake.access, VT_ACCESS);
	TEST_EQ(mr->iova, (uintptr_t)mr->addr);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result), EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_EQ(fake.nb_live, nb);
}

TEST(verbs_fd, errno_is_that_of_the_mapping)
{
	struct rmem_mr *mr = NULL;

	fake.is_device_mapping = true;
	fake.has_dmabuf = false;
	TEST_ERR(reg(NULL, &mr), EFAULT);
	fake.is_device_mapping = false;
	TEST_ASSERT(mr == NULL);
}

/* Its descriptor may have been closed. */
TEST(verbs_fd, registration_in_the_background_is_of_the_mapping)
{
	const struct rmem_eq_conf conf = {.nb_events = 1};
	uint64_t end = rte_get_timer_cycles() + 600 * rte_get_timer_hz();
	struct rmem_event event = {.status = 0};
	struct rmem_mr *mr = NULL;
	struct rmem_eq *eq;
	int n = 0;

	TEST_OK(rmem_eq_create(vt.dev, &conf, &eq));
	fake.is_device_mapping = true;
	TEST_OK(reg(eq, &mr));
	while (n == 0 && rte_get_timer_cycles() < end)
		n = rmem_eq_read(eq, &event, 1);
	fake.is_device_mapping = false;
	TEST_EQ(n, 1);
	TEST_ERR(event.status, EFAULT);
	TEST_OK(rmem_mr_dereg(mr));
	TEST_OK(rmem_eq_destroy(eq));
}

/* Memory of the process has no descriptor. */
TEST(verbs_fd, other_memory_has_no_dmabuf)
{
	struct rmem_mr *mr = NULL;

	fake.is_device_mapping = true;
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 64, 0, VT_ACCESS, &mr), EFAULT);
	fake.is_device_mapping = false;
	TEST_ASSERT(mr == NULL);
}

TEST_SUITE(verbs_fd, setup, teardown);
