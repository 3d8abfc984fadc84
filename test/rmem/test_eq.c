/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Event queues: creation, refused arguments, entries of accepted registrations, destruction. */

#include <string.h>

#include "fixture.h"

static int
reg(struct rmem_eq *eq, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf, .length = 64, .access = FX_ACCESS, .eq = eq};
	return fx_reg_attr(fx.a.pd, &attr, mr);
}

TEST(eq, new_queue_has_no_event)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 3);
	struct rmem_event event;

	TEST_EQ(eq->nb_events, 3);
	TEST_EQ(rmem_eq_read(eq, &event, 1), 0);
	TEST_EQ(rmem_eq_read(eq, &event, 0), 0);
}

static int
create(struct rmem_dev *dev, uint32_t nb_events, struct rmem_eq **eq)
{
	const struct rmem_eq_conf conf = {.nb_events = nb_events};

	return rmem_eq_create(dev, &conf, eq);
}

TEST(eq, create_refuses_bad_sizes)
{
	const struct rmem_eq_conf bad_flags = {.nb_events = 1, .flags = 1};
	const struct rmem_eq_conf bad_reserved = {.nb_events = 1, .reserved = {0, 1}};
	struct rmem_eq *eq = NULL;

	TEST_ERR(create(fx.a.dev, 0, &eq), EINVAL);
	TEST_ERR(create(fx.a.dev, RMEM_EQ_MAX_EVENTS + 1, &eq), EINVAL);
	TEST_ERR(create(fx.a.dev, UINT32_MAX, &eq), EINVAL);
	TEST_ERR(rmem_eq_create(fx.a.dev, NULL, &eq), EINVAL);
	TEST_ERR(rmem_eq_create(fx.a.dev, &bad_flags, &eq), EINVAL);
	TEST_ERR(rmem_eq_create(fx.a.dev, &bad_reserved, &eq), EINVAL);
	TEST_ASSERT(eq == NULL);
	fx_eq(fx.a.dev, RMEM_EQ_MAX_EVENTS);
}

TEST(eq, read_refuses_null_and_wrong_handles)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	static uint64_t zeros[64] __rte_cache_aligned;
	struct rmem_event event;

	TEST_ERR(rmem_eq_read(NULL, &event, 1), EINVAL);
	TEST_ERR(rmem_eq_read((struct rmem_eq *)zeros, &event, 1), EINVAL);
	TEST_ERR(rmem_eq_read((struct rmem_eq *)fx.a.pd, &event, 1), EINVAL);
	TEST_ERR(rmem_eq_read(eq, NULL, 1), EINVAL);
}

/* An accepted registration keeps its entry until its event is read; no event is lost. */
TEST(eq, full_queue_is_enospc_until_it_is_read)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 3);
	struct rmem_mr *mr = NULL;
	struct rmem_mr *last = NULL;
	struct rmem_dev_info info;
	unsigned int i;

	for (i = 0; i < 3; i++)
		TEST_OK(reg(eq, &mr));
	TEST_ERR(reg(eq, &last), ENOSPC);
	TEST_ASSERT(last == NULL);
	TEST_OK(fx_event(eq).status);
	TEST_OK(reg(eq, &last));
	TEST_ERR(reg(eq, &mr), ENOSPC);
	for (i = 0; i < 3; i++)
		TEST_OK(fx_event(eq).status);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 2 + 4);
}

TEST(eq, many_events_are_read_at_once)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1000);
	uint64_t deadline = fx_deadline();
	struct rmem_event events[64];
	unsigned int i, spins = 0;
	struct rmem_mr *mr;
	int ret, nb = 0;

	for (i = 0; i < 1000; i++)
		TEST_OK(reg(eq, &mr));
	while (nb < 1000 && !fx_is_late(deadline)) {
		ret = rmem_eq_read(eq, events, RTE_DIM(events));
		TEST_ASSERT(ret >= 0 && ret <= (int)RTE_DIM(events));
		for (i = 0; i < (unsigned int)ret; i++) {
			TEST_OK(events[i].status);
			TEST_EQ(events[i].type, RMEM_EVENT_MR_COMPLETE);
			TEST_OK(fx_release(events[i].mr));
		}
		nb += ret;
		fx_relax(&spins);
	}
	TEST_EQ(nb, 1000);
	TEST_EQ(rmem_eq_read(eq, events, RTE_DIM(events)), 0);
}

TEST_SUITE(eq, fx_setup, fx_teardown);
