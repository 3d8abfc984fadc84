/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* MRs with attributes of fi_mr(3): disabled, with a counter, registered in the background. */

#include <string.h>
#include <sys/mman.h>

#include "conf.h"

#define ALL (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ)

/* A counter that is still bound after a failed case is not destroyed. */
static struct rmem_mr *counting;

static void
setup(void)
{
	counting = NULL;
	conf_setup();
}

static void
teardown(void)
{
	if (counting != NULL)
		rmem_mr_bind_counter(counting, NULL, RMEM_COUNTER_REMOTE_WRITE);
	conf_teardown();
}

static int
count(struct rmem_mr *mr, struct rmem_counter *counter)
{
	int ret = rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE);

	counting = ret == 0 && counter != NULL ? mr : NULL;
	return ret;
}

/* An MR of a's over the start of its buffer, or NULL. */
static struct rmem_mr *
reg(uint32_t flags, struct rmem_eq *eq, void *context)
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 4096,
			.access = ALL,
			.flags = flags,
			.eq = eq,
			.context = context};
	struct rmem_mr *mr = NULL;

	if (rmem_mr_reg_attr(fx.a.pd, &attr, &mr) != 0)
		return NULL;
	fx_track(mr);
	return mr;
}

CONF_TEST(attr, disabled_mr_grants_no_access_until_enabled, RMEM_DEV_CAPA_MR_ENABLE, 0,
		"fi_mr(3): fi_mr_enable, an MR that starts disabled")
{
	struct rmem_mr *mr = reg(RMEM_MR_DISABLED, NULL, NULL);
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	uint32_t rkey;

	TEST_ASSERT(mr != NULL);
	rkey = mr->rkey;
	sge = fx_sge(mr, 0, 64);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_DISABLED);
	conf_denied(mr->iova, 64, rkey);
	conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
	TEST_ASSERT(rkey != 0 && mr->lkey != 0);
	TEST_OK(rmem_mr_enable(mr));
	TEST_EQ(mr->rkey, rkey);
	TEST_EQ(mr->lkey, sge.lkey);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_VALID);
	conf_granted(mr->iova, 4096, rkey, fx.a.buf);
	conf_denied(mr->iova + 4096, 1, rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_mr_enable(mr));
	TEST_OK(rmem_mr_enable(fx.a.mr));
	TEST_OK(fx_release(mr));
	mr = reg(RMEM_MR_DISABLED, NULL, NULL);
	TEST_OK(fx_release(mr));
}

CONF_TEST(attr, enabling_gives_the_requested_rights, RMEM_DEV_CAPA_MR_ENABLE, 0,
		"fi_mr(3): it adds no right to those of the registration")
{
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 64,
			.access = RMEM_ACCESS_REMOTE_READ,
			.flags = RMEM_MR_DISABLED};
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(rmem_mr_enable(mr));
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	conf_denied(mr->iova, 64, mr->rkey);
}

/* The counter is incremented after the bytes were written. */
CONF_TEST(attr, counter_counts_remote_writes_and_atomics, RMEM_DEV_CAPA_MR_COUNTER, 0,
		"fi_mr(3): a counter bound with FI_REMOTE_WRITE")
{
	struct rmem_counter *counter = fx_counter(conf.dev);
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 4096, FX_ACCESS & conf.info.access);
	uint64_t want = 0;

	TEST_OK(count(mr, counter));
	TEST_EQ(rmem_counter_read(counter), want);
	conf_granted(mr->iova, 1, mr->rkey, fx.a.buf);
	TEST_EQ(rmem_counter_read(counter), ++want);
	conf_granted(mr->iova, 4096, mr->rkey, fx.a.buf);
	TEST_EQ(rmem_counter_read(counter), ++want);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE_WITH_IMM, mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), ++want);
	if ((conf.info.capa & RMEM_DEV_CAPA_ATOMIC) != 0) {
		memset(fx.a.buf, 0, 8);
		TEST_STATUS(conf_do(RMEM_WR_ATOMIC_FETCH_AND_ADD, mr->iova, 8, mr->rkey),
				RMEM_WC_SUCCESS);
		TEST_EQ(rmem_counter_read(counter), ++want);
		/* The first COMPARE_AND_SWAP swaps 1 for 0; the second does not match. */
		TEST_STATUS(conf_do(RMEM_WR_ATOMIC_CMP_AND_SWP, mr->iova, 8, mr->rkey),
				RMEM_WC_SUCCESS);
		TEST_EQ(rmem_counter_read(counter), ++want);
		TEST_STATUS(conf_do(RMEM_WR_ATOMIC_CMP_AND_SWP, mr->iova, 8, mr->rkey),
				RMEM_WC_SUCCESS);
		TEST_EQ(rmem_counter_read(counter), want);
	}
	if ((conf.info.capa & RMEM_DEV_CAPA_ATOMIC_WRITE) != 0) {
		TEST_STATUS(conf_do(RMEM_WR_ATOMIC_WRITE, mr->iova, 8, mr->rkey), RMEM_WC_SUCCESS);
		TEST_EQ(rmem_counter_read(counter), ++want);
	}
	TEST_OK(count(mr, NULL));
	TEST_OK(count(mr, NULL));
	conf_granted(mr->iova, 64, mr->rkey, fx.a.buf);
	TEST_EQ(rmem_counter_read(counter), want);
	TEST_OK(count(mr, counter));
	conf_granted(mr->iova, 64, mr->rkey, fx.a.buf);
	TEST_EQ(rmem_counter_read(counter), ++want);
}

/* READs, empty and refused WRITEs, and local writes by requests of the owner. */
CONF_TEST(attr, counter_counts_nothing_else, RMEM_DEV_CAPA_MR_COUNTER, 0,
		"fi_mr(3): a counter bound with FI_REMOTE_WRITE")
{
	struct rmem_counter *counter = fx_counter(conf.dev);
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 4096, FX_ACCESS & conf.info.access);
	const struct rmem_sge mine = fx_sge(mr, 0, 64), from = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;

	TEST_OK(count(mr, counter));
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, mr->iova, 0, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE_WITH_IMM, mr->iova, 0, mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	wr = fx_rdma_to(RMEM_WR_RDMA_READ, &mine, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 2, &mine, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	conf_denied(mr->iova + 4095, 2, mr->rkey);
	TEST_EQ(rmem_counter_read(counter), 0);
}

CONF_TEST(attr, destroy_of_a_bound_counter_is_ebusy, RMEM_DEV_CAPA_MR_COUNTER, 0,
		"fi_mr(3): closing while bound is refused (FI_EBUSY)")
{
	struct rmem_counter *counter = fx_counter(conf.dev);
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 4096, ALL);

	TEST_OK(count(mr, counter));
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_ERR(rmem_counter_destroy(counter), EBUSY);
	TEST_ERR(rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE), EBUSY);
	TEST_ERR(rmem_mr_bind_counter(mr, fx_counter(conf.dev), RMEM_COUNTER_REMOTE_WRITE), EBUSY);
	TEST_OK(count(mr, NULL));
	TEST_OK(fx_release(mr));
	TEST_OK(fx_release(counter));
}

CONF_TEST(attr, background_registration_ends_with_an_event, 0, 0,
		"fi_mr(3): asynchronous registration, FI_MR_COMPLETE")
{
	struct rmem_eq *eq = fx_eq(conf.dev, 4);
	struct rmem_event event;
	struct rmem_mr *mr;
	int context;

	mr = reg(0, eq, &context);
	TEST_ASSERT(mr != NULL);
	event = fx_event(eq);
	TEST_OK(event.status);
	TEST_EQ(event.type, RMEM_EVENT_MR_COMPLETE);
	TEST_ASSERT(event.mr == mr);
	TEST_ASSERT(event.context == &context);
	TEST_EQ(rmem_eq_read(eq, &event, 1), 0);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_VALID);
	conf_granted(mr->iova, 4096, mr->rkey, fx.a.buf);
	conf_denied(mr->iova + 4096, 1, mr->rkey);
}

/* While the registration is pending, and when it has ended. */
CONF_TEST(attr, unread_event_holds_mr_and_event_queue, 0, 0,
		"fi_mr(3): an MR is not closed before its event was read")
{
	struct rmem_eq *eq = fx_eq(conf.dev, 4);
	uint64_t deadline = fx_deadline();
	unsigned int i, spins = 0;
	struct rmem_mr *mr;

	mr = reg(0, eq, NULL);
	TEST_ASSERT(mr != NULL);
	for (i = 0; i < 2; i++) {
		TEST_ERR(rmem_mr_dereg(mr), EBUSY);
		TEST_ERR(rmem_eq_destroy(eq), EBUSY);
		while (fx_mr_state(mr) == RMEM_MR_STATE_PENDING && !fx_is_late(deadline))
			fx_relax(&spins);
		TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_VALID);
	}
	TEST_OK(fx_event(eq).status);
	TEST_OK(fx_release(mr));
	TEST_OK(fx_release(eq));
}

/* The MR can only be released. */
CONF_TEST(attr, failed_registration_reports_its_error, 0, 0, "fi_mr(3): the event has the error")
{
	struct rmem_eq *eq = fx_eq(conf.dev, 4);
	uint8_t *mem = fx_map(FX_PAGE);
	struct rmem_mr_attr attr = {.addr = mem, .length = FX_PAGE, .access = ALL, .eq = eq};
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_EQ(fx_event(eq).status, -EFAULT);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_ERROR);
	TEST_OK(fx_release(mr));
	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(fx_event(eq).status);
}

CONF_TEST(attr, many_registrations_each_have_an_event, 0, 0, "fi_mr(3): the event has the context")
{
	enum {
		nb = 16
	};
	struct rmem_eq *eq = fx_eq(conf.dev, nb);
	struct rmem_mr *mrs[nb];
	uintptr_t i;
	unsigned int seen[nb] = {0};

	for (i = 0; i < nb; i++) {
		mrs[i] = reg(0, eq, (void *)i);
		TEST_ASSERT(mrs[i] != NULL);
	}
	for (i = 0; i < nb; i++) {
		const struct rmem_event event = fx_event(eq);

		TEST_OK(event.status);
		TEST_ASSERT((uintptr_t)event.context < nb);
		TEST_ASSERT(event.mr == mrs[(uintptr_t)event.context]);
		seen[(uintptr_t)event.context]++;
	}
	for (i = 0; i < nb; i++) {
		TEST_EQ(seen[i], 1);
		conf_granted(mrs[i]->iova, 8, mrs[i]->rkey, fx.a.buf);
	}
}

TEST_SUITE(attr, setup, teardown);
