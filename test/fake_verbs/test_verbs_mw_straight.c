/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Windows of a verbs device without the quirk: requests reach the provider as they were posted,
 * without a lock. And when a device has the quirk.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../drivers/verbs/rverbs_mwq_table.h"
#include "setup.h"

static uint32_t
vt_tickets(const rte_ticketlock_t *lock)
{
	return __atomic_load_n(&lock->tickets, __ATOMIC_RELAXED);
}

/* Number of times that the locks of the device, its window table and a window were taken. */
static uint32_t
vt_nb_locks(void)
{
	const struct rverbs_dev *dev = rverbs_dev_of(&vt.two->obj);

	return vt_tickets(&dev->lock) + vt_tickets(&rverbs_mwq_tables[vt.two->obj.dev_id].lock) +
			vt_tickets(&rverbs_mw_of(vt.two)->lock);
}

/* Bind and invalidate in bursts; the last time the peer invalidates. */
static void
vt_bind_and_invalidate(void)
{
	struct rmem_send_wr wr[2], send = vt_wr(RMEM_WR_SEND_WITH_INV, NULL);
	struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_wc wc[2];
	unsigned int i;

	for (i = 0; i < 8; i++) {
		wr[0] = vt_bind_wr(vt.two);
		wr[1] = vt_inv_wr(rmem_rkey_of_tag(vt.two->rkey, wr[0].bind_mw.key_tag));
		TEST_EQ(rmem_post_send(vt.a, wr, 2), 2);
		TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 2), 2);
		TEST_EQ(wc[1].status, RMEM_WC_SUCCESS);
	}
	wr[0] = vt_bind_wr(vt.two);
	TEST_STATUS(vt_run(&wr[0]), RMEM_WC_SUCCESS);
	send = vt_send_inv_wr(vt.two->rkey);
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	TEST_STATUS(vt_wait(vt.cq_b, wc), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_wait(vt.cq_a, wc), RMEM_WC_SUCCESS);
}

TEST(verbs_mw_straight, window_requests_take_no_lock)
{
	uint32_t before = vt_nb_locks();
	struct rmem_dev_stats stats;

	vt_bind_and_invalidate();
	TEST_EQ(vt_nb_locks(), before);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.mw_binds, 9);
	TEST_EQ(stats.invalidates, 9);
	TEST_OK(vt_close());
	/* The quirk takes locks: this count detects them. */
	fake.has_rxe_windows = true;
	TEST_OK(vt_open_mw());
	before = vt_nb_locks();
	vt_bind_and_invalidate();
	TEST_ASSERT(vt_nb_locks() != before);
}

static void
vt_is_seen(unsigned int i, enum ibv_wr_opcode opcode, uint32_t key)
{
	TEST_EQ(fake.seen[i].opcode, opcode);
	TEST_EQ(fake.seen[i].key, key);
}

/* Valid and invalid requests: the device refuses the latter, the driver passes all unchanged. */
TEST(verbs_mw_straight, window_requests_reach_the_provider_unchanged)
{
	struct rmem_send_wr wr[5] = {vt_bind_wr(vt.two)};
	uint32_t rkey = vt.two->rkey, keys[2];
	const struct fake_seen *seen = fake.seen;
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++)
		keys[i] = rmem_rkey_of_tag(rkey, (uint8_t)(0x10 + i));
	wr[0].bind_mw.key_tag = 0x10;
	wr[1] = vt_inv_wr(keys[0]);
	wr[2] = wr[0];
	wr[2].bind_mw.key_tag = 0x11;
	wr[2].bind_mw.access = RMEM_ACCESS_REMOTE_READ;
	wr[3] = vt_inv_wr(keys[0]); /* it is not that any more */
	wr[4] = vt_inv_wr(keys[1]);
	fake.nb_seen = 0;
	TEST_EQ(rmem_post_send(vt.a, wr, 5), 5);
	TEST_EQ(fake.nb_seen, 5);
	vt_is_seen(0, IBV_WR_BIND_MW, keys[0]);
	TEST_EQ(seen[0].old_key, rkey);
	TEST_EQ(seen[0].info.addr, (uintptr_t)vt.buf + VT_HALF);
	TEST_EQ(seen[0].info.length, VT_HALF);
	TEST_EQ(seen[0].info.mw_access_flags, RMEM_ACCESS_REMOTE);
	vt_is_seen(1, IBV_WR_LOCAL_INV, keys[0]);
	vt_is_seen(2, IBV_WR_BIND_MW, keys[1]);
	TEST_EQ(seen[2].old_key, keys[0]);
	TEST_EQ(seen[2].info.mw_access_flags, RMEM_ACCESS_REMOTE_READ);
	vt_is_seen(3, IBV_WR_LOCAL_INV, keys[0]);
	vt_is_seen(4, IBV_WR_LOCAL_INV, keys[1]);
	TEST_EQ(vt.two->rkey, keys[1]);
	for (i = 0; i < 3; i++)
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_LOC_QP_OP_ERR); /* the fake's */
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
}

/* Only successful ones are counted, signaled or not. */
TEST(verbs_mw_straight, failed_requests_are_not_counted)
{
	struct rmem_send_wr wr[4] = {vt_bind_wr(vt.two)};
	struct rmem_dev_stats stats;
	struct rmem_wc wc;
	unsigned int i;

	wr[1] = vt_inv_wr(rmem_rkey_of_tag(vt.two->rkey, wr[0].bind_mw.key_tag));
	wr[2] = wr[1]; /* fails */
	wr[3] = wr[0]; /* is flushed */
	for (i = 0; i < 4; i++)
		wr[i].flags = 0;
	TEST_EQ(rmem_post_send(vt.a, wr, 4), 4);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_LOC_QP_OP_ERR);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.mw_binds, 1);
	TEST_EQ(stats.invalidates, 1);
	TEST_EQ(stats.bytes, 0);
}

/* SEND_WITH_INV is not checked either, in any state of its key. */
TEST(verbs_mw_straight, send_with_inv_reaches_the_peer_unchecked)
{
	struct rmem_send_wr send = vt_wr(RMEM_WR_SEND_WITH_INV, NULL);
	struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_wc wc;

	send = vt_send_inv_wr(vt.two->rkey); /* not bound */
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	fake.nb_seen = 0;
	TEST_EQ(rmem_post_send(vt.b, &send, 1), 1);
	TEST_EQ(fake.nb_seen, 1);
	vt_is_seen(0, IBV_WR_SEND_WITH_INV, vt.two->rkey);
	TEST_STATUS(vt_wait(vt.cq_b, &wc), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_REM_INV_REQ_ERR);
}

/* There is no such MR at the device. */
TEST(verbs_mw_straight, binding_to_an_mr_that_is_not_registered_is_refused)
{
	struct rmem_send_wr wr = vt_bind_wr(vt.two);

	__atomic_store_n(&rmem_mr_drv(vt.mw_mr)->state, RMEM_MR_STATE_PENDING, __ATOMIC_RELEASE);
	TEST_ERR(vt_run(&wr), EINVAL);
	__atomic_store_n(&rmem_mr_drv(vt.mw_mr)->state, RMEM_MR_STATE_VALID, __ATOMIC_RELEASE);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
}

/* A window that was bound or not, as its request was flushed, is allocated again. */
TEST(verbs_mw_straight, window_of_a_flushed_binding_is_replaced)
{
	struct rmem_send_wr wr;
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		fake.is_flush_run = i != 0;
		wr = vt_bind_wr(vt.two);
		fake.is_held = true;
		TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
		fake.is_held = false;
		TEST_OK(rmem_qp_set_error(vt.a));
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
		TEST_OK(rmem_mw_dealloc(vt.two));
		TEST_OK(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &vt.two));
		vt_reconnect();
		vt_bind_and_invalidate();
	}
}

/* Bindings of type 1 that fail, executed and not: the key is that of the last that did not. */
TEST(verbs_mw_straight, failed_type_1_bind_keeps_the_current_key)
{
	struct rmem_mw_bind bind = vt_bind(VT_HALF);
	struct rmem_wc wc;
	unsigned int i;
	uint32_t rkey;

	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	rkey = vt.one->rkey;
	fake.is_bind_bad = true;
	for (i = 0; i < 3; i++)
		TEST_OK(rmem_mw_bind(vt.a, vt.one, &bind));
	TEST_ASSERT(vt.one->rkey != rkey);
	TEST_ERR(rmem_mw_dealloc(vt.one), EBUSY);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_MW_BIND_ERR);
	for (i = 1; i < 3; i++)
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(vt.one->rkey, rkey);
	fake.is_bind_bad = false;
	vt_reconnect();
	TEST_STATUS(vt_peer_write(rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_bind_one(VT_HALF), RMEM_WC_SUCCESS);
	TEST_STATUS(vt_peer_write(vt.one->rkey), RMEM_WC_SUCCESS);
}

/* The line of `show device` on the quirk with these arguments; NULL if there is no device. */
static const char *
vt_quirk(const char *args)
{
	static char line[256];
	struct rmem_dev *dev;
	char *text = NULL, *at;
	size_t size;
	FILE *f;

	if (rmem_dev_create("verbs1", args, &dev) != 0)
		return NULL;
	f = open_memstream(&text, &size);
	if (f != NULL) {
		(void)rmem_dev_dump(dev, f);
		fclose(f);
	}
	at = text != NULL ? strstr(text, "mw_quirk ") : NULL;
	line[0] = '\0';
	if (at != NULL)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	free(text);
	return rmem_dev_close(dev) == 0 ? line : NULL;
}

static void
vt_quirk_is(const char *args, const char *want)
{
	const char *line = vt_quirk(args);

	TEST_ASSERT(line != NULL);
	if (strcmp(line, want) != 0)
		printf("got '%s', expected '%s'\n", line, want);
	TEST_EQ(strcmp(line, want), 0);
}

#define AUTO "ibdev=fake0"
#define ON   "ibdev=fake0,mw_quirk=on"
#define OFF  "ibdev=fake0,mw_quirk=off"

/* Each sign by itself. */
TEST(verbs_mw_straight, mw_quirk_is_probed)
{
	vt_quirk_is(AUTO, "mw_quirk off");
	vt_quirk_is(ON, "mw_quirk on");
	TEST_ASSERT(vt_quirk("ibdev=fake0,mw_quirk=yes") == NULL);
	TEST_ASSERT(vt_quirk("ibdev=fake0,mw_quirk=") == NULL);
	fake.vendor_id = 0xffffff;
	vt_quirk_is(AUTO, "mw_quirk on: it has the vendor ID of rdma_rxe");
	fake.vendor_id = 0;
	fake.has_kernel_inv = true;
	vt_quirk_is(AUTO,
			"mw_quirk on: an invalidation is reported by another flag than "
			"IBV_WC_WITH_INV");
	fake.has_kernel_inv = false;
	fake.has_rxe_windows = true;
	vt_quirk_is(AUTO, "mw_quirk on: a WRITE past the end of a window is not refused");
	fake.has_no_mw[IBV_MW_TYPE_1] = true;
	vt_quirk_is(AUTO, "mw_quirk on: a WRITE past the end of a window is not refused");
	vt_quirk_is(OFF, "mw_quirk off: a WRITE past the end of a window is not refused");
	fake.has_no_mw[IBV_MW_TYPE_2] = true;
	vt_quirk_is(ON, "");
}

TEST_SUITE(verbs_mw_straight, vt_setup_mw_plain, vt_teardown);
TEST_SUITE_OF(verbs_mw_straight_classic, vt_setup_mw_plain_classic, vt_teardown, verbs_mw_straight);
