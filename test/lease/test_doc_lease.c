/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The examples of doc/lease.md, compiled and run; see test_doc_examples.c. */

#include <string.h>

#include <rte_cycles.h>

#include <rmem_lease_desc.h>

#include "lease.h"

/* example: lease_open */
static int
open_leases(struct rmem_qp *qp, struct rmem_lease_ctx **ctx)
{
	const struct rmem_lease_conf conf = {
			.max_leases = 1024,
			.min_leases = 256,
			.max_length = 4096,
			.socket_id = SOCKET_ID_ANY,
	};

	return rmem_lease_ctx_create(qp, &conf, ctx);
}
/* end of example */

/* example: lease_offer */
/* Lease a buffer until a deadline and notify the peer, in one post; message is in message_mr. */
static int
offer(struct rmem_lease_ctx *ctx, const struct rmem_mr *mr, void *buf, uint32_t length,
		uint64_t deadline, uint8_t message[RMEM_LEASE_DESC_SIZE],
		const struct rmem_mr *message_mr)
{
	const struct rmem_lease_req req = {
			.mr = mr,
			.addr = buf,
			.length = length,
			.access = RMEM_ACCESS_REMOTE_WRITE,
			.deadline = deadline, /* such as rte_rdtsc() + rte_get_tsc_hz() / 1000 */
			.user = buf,
	};
	const struct rmem_sge sge = {
			.addr = (uintptr_t)message,
			.length = RMEM_LEASE_DESC_SIZE,
			.lkey = message_mr->lkey,
	};
	const struct rmem_send_wr wr = {
			.opcode = RMEM_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.flags = RMEM_SEND_SIGNALED,
	};
	struct rmem_lease_desc desc;
	struct rmem_lease *lease;
	int ret;

	ret = rmem_lease_prepare(ctx, &req, 1, &lease);
	if (ret != 1)
		return ret;
	ret = rmem_lease_desc_get(lease, &desc);
	if (ret == 0)
		ret = rmem_lease_desc_pack(&desc, message, RMEM_LEASE_DESC_SIZE);
	if (ret > 0)
		ret = rmem_lease_post(ctx, &wr, 1); /* -ENOSPC: call again after a poll */
	if (ret < 0)
		rmem_lease_revoke(ctx, &lease, 1);
	return ret;
}
/* end of example */

/* example: lease_loop */
/* One iteration of the poll loop: use_wc() gets the application's completions, reuse() buffers. */
static int
poll_once(struct rmem_lease_ctx *ctx, void (*use_wc)(const struct rmem_wc *wc),
		void (*reuse)(void *buf, uint32_t length))
{
	struct rmem_lease *ended[32];
	struct rmem_wc wc[32];
	int i, nb;

	nb = rmem_lease_poll(ctx, wc, RTE_DIM(wc));
	if (nb < 0)
		return nb;
	for (i = 0; i < nb; i++)
		use_wc(&wc[i]);
	nb = rmem_lease_reclaim(ctx, ended, RTE_DIM(ended));
	for (i = 0; i < nb; i++)
		reuse(ended[i]->user, ended[i]->length); /* the peer has no access any more */
	return nb;
}
/* end of example */

/* example: lease_reconnect */
/* After a completion with an error: all leases end, and rmem_lease_reclaim() returns them. */
static int
reconnect(struct rmem_lease_ctx *ctx, struct rmem_qp *qp, const struct rmem_qp_conn *conn)
{
	int ret;

	ret = rmem_qp_reset(qp);
	if (ret == 0)
		ret = rmem_lease_recover(ctx);
	return ret != 0 ? ret : rmem_qp_connect(qp, conn);
}
/* end of example */

static unsigned int nb_used;
static unsigned int nb_reused;

static void
use_wc(const struct rmem_wc *wc)
{
	if (wc->status == RMEM_WC_SUCCESS)
		nb_used++;
}

static void
reuse(void *buf, uint32_t length)
{
	nb_reused += buf == fx.a.buf && length == FX_PAGE;
}

static void
setup(void)
{
	lx_setup_auto();
	lx_destroy();
	nb_used = nb_reused = 0;
	TEST_RUN(open_leases(fx.a.qp, &lx.ctx));
}

/* The peer reads the descriptor that arrives, and writes. Then the lease is revoked. */
TEST(doc_lease, offered_buffer_is_written_and_reclaimed)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, RMEM_LEASE_DESC_SIZE);
	uint8_t *message = fx.a.buf + 8 * FX_PAGE;
	uint64_t deadline = fx_deadline(), hour = 3600 * rte_get_tsc_hz();
	struct rmem_lease_desc desc;
	struct rmem_lease *lease;

	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_EQ(offer(lx.ctx, lx.mr, fx.a.buf, FX_PAGE, rte_rdtsc() + hour, message, lx.mr), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_lease_desc_unpack(fx.b.buf, RMEM_LEASE_DESC_SIZE, &desc, NULL),
			RMEM_LEASE_DESC_SIZE);
	TEST_STATUS(fx_peer_write(desc.remote_addr, (uint32_t)desc.length, desc.rkey),
			RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, FX_PAGE);
	lease = rmem_lease_lookup(lx.ctx, desc.lease_id);
	TEST_OK(rmem_lease_revoke(lx.ctx, &lease, 1));
	while (nb_reused == 0) {
		TEST_ASSERT(poll_once(lx.ctx, use_wc, reuse) >= 0);
		TEST_ASSERT(!fx_is_late(deadline));
	}
	TEST_EQ(nb_used, 1);
	TEST_EQ(nb_reused, 1);
}

TEST(doc_lease, leases_are_reclaimed_after_a_reconnect)
{
	struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp_attr attr;

	lx_grant(1, RMEM_ACCESS_REMOTE_WRITE);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_qp_query(fx.b.qp, &attr));
	conn.remote = attr.addr;
	TEST_OK(reconnect(lx.ctx, fx.a.qp, &conn));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_ASSERT(poll_once(lx.ctx, use_wc, reuse) == 1);
	TEST_EQ(nb_reused, 1);
}

TEST_SUITE(doc_lease, setup, lx_teardown);
