/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * rmem_dev_audit(): a sound device passes, and one flaw in any structure is found. It reads and
 * writes the private structures of the class, of the software device and of lease contexts.
 */

#include <string.h>

#include <rte_memory.h>

#include <rmem_pool.h>

#include "../../drivers/soft/mem/rsoft_dm.h"
#include "../../drivers/soft/queue/rsoft_srq.h"
#include "../../lib/rmem/rmem_priv.h"
#include "../../lib/rmem_lease/rmem_lease_priv.h"

#include "fixture.h"

static struct rsoft_dev *
soft(void)
{
	return rmem_dev_drv(fx.a.dev)->priv;
}

/* How many objects of a type the class counts. */
static uint32_t *
nb_of(uint32_t type)
{
	return &((struct rmem_dev_slot *)fx.a.dev)->nb[RMEM_OBJ_KIND(type)];
}

static struct rsoft_qp *
soft_qp(struct rmem_qp *qp)
{
	return (struct rsoft_qp *)qp;
}

/* With the bytes at a place changed, the audit fails with a line that has the word; then again. */
static void
expect_flaw(void *at, const void *bad, size_t size, const char *word)
{
	uint8_t good[16];
	const char *log;
	int ret;

	TEST_ASSERT(size <= sizeof(good));
	memcpy(good, at, size);
	TEST_ASSERT(memcmp(good, bad, size) != 0);
	memcpy(at, bad, size);
	fx_log_begin();
	ret = rmem_dev_audit(fx.a.dev);
	log = fx_log_end();
	memcpy(at, good, size);
	TEST_ERR(ret, EIO);
	TEST_TEXT(log, word);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

#define EXPECT_FLAW(field, value, word)                                                            \
	do {                                                                                       \
		struct {                                                                           \
			__typeof__(field) bad;                                                     \
		} bad_ = {(value)};                                                                \
		expect_flaw(&(field), &bad_.bad, sizeof(bad_), word);                              \
	} while (0)

/* Some of everything: queued requests and receives, unpolled completions, bound windows. */
TEST(audit, sound_device_passes)
{
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	unsigned int i;

	TEST_SKIP_IF(!fx_is_soft(), "it looks into the software device");
	TEST_OK(rmem_dev_audit(fx.a.dev));
	TEST_STATUS(fx_mw_bind_2(0, 4096, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_1(0, 4096, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	for (i = 0; i < 5; i++)
		TEST_EQ(rmem_post_send(fx.a.qp, &wr, 1), 1);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	for (i = 0; i < 3; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, &sge, 1), 1);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	TEST_OK(rmem_dev_audit(fx.a.dev));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(audit, wrong_handles_are_refused)
{
	TEST_ERR(rmem_dev_audit(NULL), EINVAL);
	TEST_ERR(rmem_dev_audit((struct rmem_dev *)fx.a.qp), EINVAL);
	TEST_ERR(rmem_audit_add(NULL), EINVAL);
}

TEST(audit, flaws_of_free_ids_are_found)
{
	struct rsoft_ids *ids[] = {&soft()->qp_ids, &soft()->mr_keys.ids, &soft()->mw_keys.ids};
	unsigned int i;

	for (i = 0; i < RTE_DIM(ids); i++) {
		EXPECT_FLAW(ids[i]->free[0], 0, "free id");
		EXPECT_FLAW(ids[i]->free[0], ids[i]->max + 1, "free id");
		EXPECT_FLAW(ids[i]->free[0], ids[i]->free[1], "free id");
		EXPECT_FLAW(ids[i]->nb_free, ids[i]->nb_free - 1, "audit: ");
		EXPECT_FLAW(ids[i]->nb_free, ids[i]->max + 1, "audit: ");
	}
	EXPECT_FLAW(soft()->mr_keys.quarantined.nb_free, 1, "slots of keys");
}

TEST(audit, flaws_of_keys_are_found)
{
	struct rsoft_key *key = ((struct rsoft_mr *)fx.a.mr)->key;
	struct rsoft_key *other = ((struct rsoft_mr *)fx.mw.mr)->key;
	struct rsoft_key *window = ((struct rsoft_mw *)fx.mw.two)->key;

	TEST_STATUS(fx_mw_bind_2(0, 4096, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	EXPECT_FLAW(key->word, key->word | (uint64_t)RSOFT_BUSY << 32, "RSOFT_BUSY");
	EXPECT_FLAW(key->word, key->word ^ 0x100, "rkey >> 8");
	EXPECT_FLAW(key->mr, NULL, "key");
	EXPECT_FLAW(key->mr, other->mr, "mr->key == key");
	EXPECT_FLAW(key->kind, 9, "kind");
	EXPECT_FLAW(window->word, window->word | (uint64_t)RSOFT_LOCAL << 32, "window key");
	EXPECT_FLAW(fx.mw.mr->obj.refs, 0, "window key");
	EXPECT_FLAW(fx.a.mr->lkey, fx.a.mr->rkey, "lkey");
	EXPECT_FLAW(fx.a.mr->obj.type, 0, "RMEM_OBJ_MR");
	EXPECT_FLAW(soft()->nb_mr, soft()->nb_mr + 1, "MRs");
	EXPECT_FLAW(soft()->nb_mw, soft()->nb_mw + 1, "slots of keys");
}

TEST(audit, flaws_of_srqs_are_found)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};
	struct rsoft_srq *srq;
	struct rsoft_rq *rq;

	TEST_OK(rmem_srq_create(fx.a.pd, &srq_conf, &conf.srq));
	fx_track(conf.srq);
	srq = (struct rsoft_srq *)conf.srq;
	EXPECT_FLAW(srq->prod, 5, "SRQ");
	EXPECT_FLAW(srq->limit, 1, "limit of SRQ");
	EXPECT_FLAW(srq->depth, 8, "SRQ");
	EXPECT_FLAW(srq->owner.dev, NULL, "SRQ");
	EXPECT_FLAW(*nb_of(RMEM_OBJ_SRQ), 1000000, "SRQs");
	rq = &soft_qp(fx_qp_by(fx.a.pd, &conf))->rq;
	EXPECT_FLAW(rq->cons_cached, 1, "RQ of QP");
}

TEST(audit, flaws_of_device_memory_are_found)
{
	const struct rmem_dm_conf conf = {.length = 64};
	struct rmem_dm *dm;

	TEST_OK(rmem_dm_alloc(fx.a.dev, &conf, &dm));
	fx_track(dm);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	EXPECT_FLAW(dm->length, 65, "bytes of device memory");
	EXPECT_FLAW(soft()->dm_bytes, 0, "bytes of device memory");
	EXPECT_FLAW(((struct rsoft_dm *)dm)->bytes, NULL, "device memory of bytes");
	EXPECT_FLAW(*nb_of(RMEM_OBJ_DM), 1000000, "DMs");
}

TEST(audit, flaws_of_completion_queues_are_found)
{
	struct rsoft_cq *cq = (struct rsoft_cq *)fx.a.cq;
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);

	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, &wr, 1), 1);
	EXPECT_FLAW(cq->ring[cq->cons & cq->mask].number, cq->cons + 2, "CQ of QP");
	EXPECT_FLAW(cq->cons, cq->prod + 1, "CQ of QP");
	EXPECT_FLAW(cq->prod, cq->cons + cq->mask + 2, "CQ of QP");
	EXPECT_FLAW(cq->cons_cached, cq->cons + 1, "CQ of QP");
	EXPECT_FLAW(cq->nb_producers, 0, "nb_producers");
	EXPECT_FLAW(cq->mask, cq->mask - 1, "CQ of QP");
}

TEST(audit, flaws_of_send_queues_are_found)
{
	struct rsoft_sq *sq = &soft_qp(fx.a.qp)->sq;

	EXPECT_FLAW(sq->prod, sq->cons + 1, "QP that waits");
	EXPECT_FLAW(sq->posted, sq->retired + sq->depth + 1, "SQ of QP");
	EXPECT_FLAW(sq->retired, sq->posted + 1, "SQ of QP");
	EXPECT_FLAW(sq->done, sq->posted + 1, "SQ of QP");
	EXPECT_FLAW(sq->sig_head, sq->sig_tail + 1, "SQ of QP");
	EXPECT_FLAW(sq->wait, 77, "SQ of QP");
	EXPECT_FLAW(sq->wait, RSOFT_WAIT_PEER, "SQ of QP");
	EXPECT_FLAW(soft()->nb_pending, 1, "QPs that wait");
}

TEST(audit, flaws_of_receive_queues_are_found)
{
	struct rsoft_rq *rq = &soft_qp(fx.a.qp)->rq;

	EXPECT_FLAW(rq->prod, rq->cons + rq->depth + 1, "RQ of QP");
	EXPECT_FLAW(rq->cons, rq->prod + 1, "RQ of QP");
	EXPECT_FLAW(rq->prod_cached, rq->prod + 1, "RQ of QP");
	EXPECT_FLAW(rq->depth, rq->mask + 2, "RQ of QP");
}

TEST(audit, flaws_of_qps_are_found)
{
	struct rsoft_qp *qp = soft_qp(fx.a.qp);
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);

	EXPECT_FLAW(qp->state, 77, "QP");
	EXPECT_FLAW(qp->qp.qp_num, qp->qp.qp_num ^ 1, "QP");
	EXPECT_FLAW(qp->dev, NULL, "QP");
	EXPECT_FLAW(qp->access, 0x20000000, "QP");
	EXPECT_FLAW(soft()->qps[qp->qp.qp_num & soft()->qp_mask], NULL, "QPs");
	EXPECT_FLAW(soft()->nb_qp, soft()->nb_qp + 1, "QPs");
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &sge, 1), 1);
	EXPECT_FLAW(qp->state, RMEM_QPS_ERR, "QP in ERR");
	EXPECT_FLAW(qp->state, RMEM_QPS_RESET, "QP in RESET");
	/* State of the class. */
	EXPECT_FLAW(qp->qp.obj.type, RMEM_OBJ_CQ, "PD or CQ does not exist");
	EXPECT_FLAW(fx.a.pd->obj.type, 0, "PD or CQ does not exist");
	EXPECT_FLAW(fx.a.cq->obj.refs, 0, "PD or CQ does not exist");
	EXPECT_FLAW(*nb_of(RMEM_OBJ_PD), (uint32_t)soft()->args.max_pd + 1, "PDs");
	EXPECT_FLAW(*nb_of(RMEM_OBJ_CQ), (uint32_t)soft()->args.max_cq + 1, "CQs");
	EXPECT_FLAW(soft()->odp_stats.pages, -1, "pages on demand");
}

TEST(audit, flaws_of_pools_are_found)
{
	const struct rmem_pool_conf conf = {.name = "audit", .nb_bufs = 8, .buf_size = 64};
	struct rmem_pool *pool = NULL;

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_OK(rmem_dev_audit(fx.a.dev));
	EXPECT_FLAW(pool->obj.type, 0, "wrong tag");
	EXPECT_FLAW(pool->nb_bufs, 7, "number of buffers");
	EXPECT_FLAW(pool->nb_mrs, 0, "number of MRs");
	EXPECT_FLAW(pool->mrs[0], fx.a.mr, "keys");
	TEST_OK(rmem_pool_destroy(pool));
}

TEST(audit, flaws_of_lease_contexts_are_found)
{
	const struct rmem_lease_conf conf = {.max_leases = 8,
			.min_leases = 4,
			.max_length = 64,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_lease_ctx *ctx = NULL;

	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &conf, &ctx));
	TEST_OK(rmem_dev_audit(fx.a.dev));
	EXPECT_FLAW(ctx->obj.type, 0, "tag or QP");
	EXPECT_FLAW(ctx->nb_staged, LEASE_BURST + 1, "number of requests");
	EXPECT_FLAW(ctx->ops_head, ctx->ops_tail + 1, "number of requests");
	EXPECT_FLAW(ctx->nb_free, ctx->nb_slots + 1, "list of slots");
	EXPECT_FLAW(ctx->free[0], ctx->free[1], "list of slots");
	EXPECT_FLAW(ctx->free[0], ctx->nb_slots, "list of slots");
	EXPECT_FLAW(ctx->quarantined.tail, ctx->quarantined.head + 1, "list of slots");
	EXPECT_FLAW(ctx->nb_due, 1, "heap of deadlines");
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST_SUITE(audit, fx_setup_mw, fx_teardown);
