/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The audit checks the invariants of all objects of a device, for debug builds and tests, with one
 * walker per structure.
 *
 * No other thread may use the device during the audit. Engines and the thread of the wire are
 * stopped by taking their locks, rwire::rx_lock and rsoft_dev::pending_lock.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "rsoft_dev.h"
#include "queue/rsoft_cq.h"
#include "queue/rsoft_group.h"
#include "rsoft_engine.h"
#include "queue/rsoft_inline.h"
#include "mem/rsoft_dm.h"
#include "mem/rsoft_key.h"
#include "mem/rsoft_mr.h"
#include "rsoft_qp.h"
#include "queue/rsoft_sq.h"
#include "queue/rsoft_srq.h"
#include "wire/rwire.h"

/* Whether an invariant holds; if not, log its text. */
#define RSOFT_HOLDS(held, what, number) audit_holds((held), what, (number), #held)

static bool
audit_holds(bool is_ok, const char *what, uint64_t number, const char *text)
{
	if (unlikely(!is_ok))
		RSOFT_LOG(ERR, "audit: %s %" PRIu64 ": violated: %s", what, number, text);
	return is_ok;
}

/* Mark an id of 1 to max; false if it is out of range or already marked. */
static bool
audit_note(uint8_t *bits, uint32_t id)
{
	uint8_t bit = (uint8_t)(1u << id % 8);
	bool is_new = (bits[id / 8] & bit) == 0;

	bits[id / 8] |= bit;
	return is_new;
}

/*
 * Check free ids: nb_free entries from first on in a ring of max, each an id of 1 to max, in only
 * one list. bits has the ids of all lists checked so far.
 */
static bool
ids_is_valid(const struct rsoft_ids *ids, uint32_t first, uint8_t *bits)
{
	uint32_t i;

	if (!RSOFT_HOLDS(ids->nb_free <= ids->max, "free ids", (uint64_t)ids->nb_free))
		return false;
	for (i = 0; i < ids->nb_free; i++) {
		uint32_t id = ids->free[(first + i) % ids->max];

		if (!RSOFT_HOLDS(id >= 1 && id <= ids->max && audit_note(bits, id), "free id",
				    (uint64_t)id))
			return false;
	}
	return true;
}

static uint8_t *
audit_bits(uint32_t max)
{
	return calloc((size_t)max / 8 + 1, 1);
}

/* Check the slots of MRs, or of windows: each is free, quarantined or in use. */
static int
key_pool_is_valid(const struct rsoft_key_pool *pool, uint32_t nb_used)
{
	uint8_t *bits = audit_bits(pool->ids.max);
	uint64_t sum = (uint64_t)pool->ids.nb_free + pool->quarantined.nb_free + nb_used;
	bool is_valid;

	if (bits == NULL)
		return -ENOMEM;
	is_valid = RSOFT_HOLDS(sum == pool->ids.max, "slots of keys", sum) &&
			ids_is_valid(&pool->ids, 0, bits) &&
			ids_is_valid(&pool->quarantined, pool->quarantine_head, bits);
	free(bits);
	return is_valid ? 0 : -EIO;
}

/* Check a key and its owner. */
static bool
key_is_valid(const struct rsoft_dev *dev, const struct rsoft_key *key)
{
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	const uint32_t rights = rsoft_word_rights(word);
	const uint64_t rkey = rsoft_word_rkey(word);
	const struct rsoft_mr *mr = key->mr;

	if (!RSOFT_HOLDS((rights & RSOFT_VALID) == 0 || (rights & RSOFT_BUSY) == 0, "key", rkey) ||
			!RSOFT_HOLDS(key->kind <= RSOFT_KIND_ODP, "key", rkey))
		return false;
	if (mr == NULL)
		return RSOFT_HOLDS((rights & RSOFT_VALID) == 0, "key", rkey);
	if (!RSOFT_HOLDS(mr->mr.obj.type == RMEM_OBJ_MR, "key", rkey))
		return false;
	if (key->is_window)
		return RSOFT_HOLDS((rights & RSOFT_LOCAL) == 0, "window key", rkey) &&
				RSOFT_HOLDS((mr->mr.obj.refs & ~RMEM_OBJ_REFS_DEAD) != 0,
						"window key", rkey);
	return RSOFT_HOLDS(mr->key == key, "key", rkey) &&
			RSOFT_HOLDS(mr->mr.rkey >> 8 == rkey >> 8, "key", rkey) &&
			RSOFT_HOLDS((mr->mr.rkey ^ dev->lkey_xor) == mr->mr.lkey, "key", rkey);
}

static int
keys_are_valid(const struct rsoft_dev *dev)
{
	uint32_t i, nb_mr = 0;
	int ret;

	for (i = 0; i < dev->nb_keys; i++) {
		if (!key_is_valid(dev, &dev->keys[i]))
			return -EIO;
		nb_mr += !dev->keys[i].is_window && dev->keys[i].mr != NULL;
	}
	if (!RSOFT_HOLDS(nb_mr == dev->nb_mr, "MRs", (uint64_t)nb_mr))
		return -EIO;
	ret = key_pool_is_valid(&dev->mr_keys, dev->nb_mr);
	return ret != 0 ? ret : key_pool_is_valid(&dev->mw_keys, dev->nb_mw);
}

/*
 * Check the ring: a written completion has its number, a reserved entry the number of an earlier
 * round.
 */
static bool
cq_is_valid(const struct rsoft_cq *cq, uint64_t qp_num)
{
	uint32_t size = cq->mask + 1, at;

	if (!RSOFT_HOLDS(cq->cq.obj.type == RMEM_OBJ_CQ, "CQ of QP", qp_num) ||
			!RSOFT_HOLDS((size & cq->mask) == 0 && cq->cq.nb_cqe == size, "CQ of QP",
					qp_num) ||
			!RSOFT_HOLDS((cq->nb_producers & ~RSOFT_CQ_IGNORES) != 0, "CQ of QP",
					qp_num))
		return false;
	if (cq->overrun)
		return true;
	if (!RSOFT_HOLDS(cq->prod - cq->cons <= size, "CQ of QP", qp_num) ||
			!RSOFT_HOLDS(cq->cons - cq->cons_cached <= size, "CQ of QP", qp_num))
		return false;
	for (at = cq->cons; at != cq->prod; at++) {
		uint32_t number = cq->ring[at & cq->mask].number;

		if (!RSOFT_HOLDS(number == at + 1 || number == at + 1 - size ||
						    (number == 0 && at < size),
				    "CQ of QP", qp_num))
			return false;
	}
	return true;
}

static bool
sq_is_valid(const struct rsoft_sq *sq, uint64_t qp_num)
{
	uint32_t nb_queued = sq->prod - sq->cons;

	return RSOFT_HOLDS(sq->depth <= sq->mask + 1, "SQ of QP", qp_num) &&
			RSOFT_HOLDS(nb_queued <= sq->mask + 1, "SQ of QP", qp_num) &&
			RSOFT_HOLDS(sq->posted - sq->retired <= sq->depth, "SQ of QP", qp_num) &&
			RSOFT_HOLDS(sq->posted - sq->done <= sq->depth, "SQ of QP", qp_num) &&
			RSOFT_HOLDS(sq->sig_tail - sq->sig_head <= sq->sig_mask + 1, "SQ of QP",
					qp_num) &&
			RSOFT_HOLDS(sq->wait >= RSOFT_WAIT_RNR && sq->wait <= RSOFT_WAIT_NONE,
					"SQ of QP", qp_num) &&
			RSOFT_HOLDS(sq->wait == RSOFT_WAIT_NONE || nb_queued != 0, "SQ of QP",
					qp_num) &&
			RSOFT_HOLDS(sq->wait != RSOFT_WAIT_GRACE || sq->nb_inv <= nb_queued,
					"SQ of QP", qp_num);
}

static bool
rq_is_valid(const struct rsoft_rq *rq, uint64_t qp_num)
{
	uint32_t most = rq->srq != NULL ? 1 : rq->depth;

	return RSOFT_HOLDS(most <= rq->mask + 1, "RQ of QP", qp_num) &&
			RSOFT_HOLDS(rq->prod - rq->cons <= most, "RQ of QP", qp_num) &&
			RSOFT_HOLDS(rq->srq == NULL || rq->prod == rq->cons_cached, "RQ of QP",
					qp_num) &&
			RSOFT_HOLDS(rq->prod_cached - rq->cons <= rq->prod - rq->cons, "RQ of QP",
					qp_num);
}

/* Check that the state of a QP permits the contents of its queues. */
static bool
qp_state_is_valid(const struct rsoft_qp *qp, uint64_t qp_num)
{
	const struct rsoft_sq *sq = &qp->sq;

	switch (qp->state) {
	case RMEM_QPS_RESET:
		return RSOFT_HOLDS(sq->prod == sq->cons && sq->posted == 0, "QP in RESET",
				       qp_num) &&
				RSOFT_HOLDS(qp->rq.prod == qp->rq.cons, "QP in RESET", qp_num);
	case RMEM_QPS_ERR:
		/* After an overrun of its CQ, receives are not flushed. */
		return (qp->qp.recv_cq != NULL && rsoft_cq_is_overrun(qp->qp.recv_cq)) ||
				RSOFT_HOLDS(qp->rq.prod == qp->rq.cons, "QP in ERR", qp_num);
	case RMEM_QPS_INIT:
	case RMEM_QPS_RTR:
		return RSOFT_HOLDS(
				sq->prod == sq->cons && sq->posted == 0, "QP before RTS", qp_num);
	case RMEM_QPS_RTS:
	case RMEM_QPS_SQD:
		return true;
	case RMEM_QPS_SQE:
		return RSOFT_HOLDS(!rsoft_qp_is_reliable(qp), "QP in SQE", qp_num);
	default:
		return RSOFT_HOLDS(qp->state == RMEM_QPS_RTS, "QP", qp_num);
	}
}

static bool
qp_is_valid(const struct rsoft_dev *dev, const struct rsoft_qp *qp)
{
	uint64_t qp_num = qp->qp.qp_num;

	return RSOFT_HOLDS(qp->qp.obj.type == RMEM_OBJ_QP && qp->dev == dev, "QP", qp_num) &&
			RSOFT_HOLDS(dev->qps[qp_num & dev->qp_mask] == qp, "QP", qp_num) &&
			RSOFT_HOLDS((qp->access & ~(RSOFT_ACCESS | RSOFT_QP_NO_RIGHTS)) == 0, "QP",
					qp_num) &&
			RSOFT_HOLDS(qp->rq.nb_inline == 0 || (qp->access & RSOFT_QP_INLINE) != 0,
					"QP with messages in completions", qp_num) &&
			RSOFT_HOLDS(dev->nb_engines != 0 || qp->sq.prod == qp->sq.cons ||
							qp->sq.is_pending,
					"QP that waits", qp_num) &&
			qp_state_is_valid(qp, qp_num) && sq_is_valid(&qp->sq, qp_num) &&
			rq_is_valid(&qp->rq, qp_num) &&
			(qp->qp.send_cq == NULL ||
					cq_is_valid(rsoft_cq_of(qp->qp.send_cq), qp_num)) &&
			(qp->qp.recv_cq == NULL ||
					cq_is_valid(rsoft_cq_of(qp->qp.recv_cq), qp_num));
}

/* Check the SRQs, also those that no QP uses. */
static bool
srqs_are_valid(const struct rsoft_dev *dev)
{
	const struct rsoft_srq *srq;

	LIST_FOREACH(srq, &dev->srqs, entry) {
		uint64_t nb_wr = srq->prod - srq->cons;

		if (!RSOFT_HOLDS(srq->srq.obj.type == RMEM_OBJ_SRQ && srq->owner.dev == dev, "SRQ",
				    nb_wr) ||
				!RSOFT_HOLDS(srq->depth <= srq->mask + 1, "SRQ", nb_wr) ||
				!RSOFT_HOLDS(nb_wr <= srq->depth, "SRQ", nb_wr) ||
				!RSOFT_HOLDS(srq->limit <= nb_wr, "limit of SRQ", nb_wr))
			return false;
	}
	return true;
}

/* Check device memory, and the sum of its lengths. */
static bool
dms_are_valid(const struct rsoft_dev *dev)
{
	const struct rsoft_dm *dm;
	uint64_t sum = 0;

	LIST_FOREACH(dm, &dev->dms, entry) {
		if (!RSOFT_HOLDS(dm->dm.obj.type == RMEM_OBJ_DM && dm->bytes != NULL,
				    "device memory of bytes", (uint64_t)dm->dm.length))
			return false;
		sum += dm->is_imported ? 0 : dm->dm.length;
	}
	return RSOFT_HOLDS(sum == dev->dm_bytes && sum <= dev->args.max_dm_size,
			"bytes of device memory", sum);
}

/* Check the table of QPs and its free numbers. */
static int
qps_are_valid(const struct rsoft_dev *dev)
{
	uint8_t *bits = audit_bits(dev->qp_ids.max);
	uint32_t i, nb_qp = 0, nb_gsi = 0;
	bool is_valid;

	if (bits == NULL)
		return -ENOMEM;
	is_valid = ids_is_valid(&dev->qp_ids, 0, bits);
	free(bits);
	for (i = 0; i <= dev->qp_mask && is_valid; i++) {
		if (dev->qps[i] == NULL)
			continue;
		nb_qp++;
		nb_gsi += i == RSOFT_GSI_QP;
		is_valid = qp_is_valid(dev, dev->qps[i]);
	}
	if (!is_valid || !RSOFT_HOLDS(nb_qp == dev->nb_qp, "QPs", (uint64_t)nb_qp) ||
			!RSOFT_HOLDS(dev->qp_ids.nb_free + nb_qp - nb_gsi == dev->qp_ids.max, "QPs",
					(uint64_t)nb_qp))
		return -EIO;
	return 0;
}

/* Check that each QP is in as many groups as it counts. */
static bool
groups_are_valid(const struct rsoft_dev *dev)
{
	const struct rsoft_group *group;
	uint32_t i, nb = 0, nb_counted = 0;

	LIST_FOREACH(group, &dev->groups, entry) {
		if (!RSOFT_HOLDS(group->nb_qps != 0 && group->nb_qps <= RSOFT_MAX_GROUP_QPS,
				    "QPs of a multicast group", (uint64_t)group->nb_qps))
			return false;
		for (i = 0; i < group->nb_qps; i++) {
			const struct rsoft_qp *qp = group->qps[i];

			if (!RSOFT_HOLDS(qp->dev == dev && qp->qp.type == RMEM_QPT_UD,
					    "QP of a multicast group", (uint64_t)qp->qp.qp_num))
				return false;
		}
		nb += group->nb_qps;
	}
	for (i = 0; i <= dev->qp_mask; i++)
		nb_counted += dev->qps[i] != NULL ? dev->qps[i]->nb_groups : 0;
	return RSOFT_HOLDS(nb == nb_counted, "QPs of multicast groups", (uint64_t)nb);
}

/* Check the lists of QPs whose queued requests are executed: pending QPs, and QPs of each
 * engine. */
static bool
lists_are_valid(const struct rsoft_dev *dev)
{
	uint32_t i, nb = 0, nb_engine = 0;
	const struct rsoft_qp *qp;

	if (dev->nb_engines == 0) {
		TAILQ_FOREACH(qp, &dev->pending, next) {
			if (!RSOFT_HOLDS(qp->sq.is_pending, "QP that waits",
					    (uint64_t)qp->qp.qp_num))
				return false;
			nb++;
		}
	}
	nb += rwire_nb_pending(dev);
	if (!RSOFT_HOLDS(nb == dev->nb_pending, "QPs that wait", (uint64_t)nb))
		return false;
	for (i = 0; i < dev->nb_engines; i++) {
		nb = 0;
		TAILQ_FOREACH(qp, &dev->engine[i].qps, next)
			nb++;
		nb_engine += nb;
		if (!RSOFT_HOLDS(nb == dev->engine[i].nb_qps, "QPs of an engine", (uint64_t)nb))
			return false;
	}
	return RSOFT_HOLDS(dev->nb_engines == 0 || nb_engine == dev->nb_qp, "QPs of engines",
			(uint64_t)nb_engine);
}

static int
audit_locked(const struct rsoft_dev *dev)
{
	int ret;

	if (!RSOFT_HOLDS(dev->odp_stats.pages >= 0, "pages on demand",
			    (uint64_t)dev->odp_stats.pages) ||
			!lists_are_valid(dev) || !srqs_are_valid(dev) || !groups_are_valid(dev) ||
			!dms_are_valid(dev))
		return -EIO;
	ret = qps_are_valid(dev);
	return ret != 0 ? ret : keys_are_valid(dev);
}

static void
lock_all(struct rsoft_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->nb_engines; i++)
		rte_ticketlock_lock(&dev->engine[i].lock);
	if (dev->wire != NULL)
		rsoft_lock(&dev->wire->rx_lock);
	rsoft_lock(&dev->pending_lock);
	rsoft_lock(&rsoft_domain->lock);
	rsoft_lock(&dev->lock);
}

static void
unlock_all(struct rsoft_dev *dev)
{
	unsigned int i;

	rte_ticketlock_unlock(&dev->lock);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rte_ticketlock_unlock(&dev->pending_lock);
	if (dev->wire != NULL)
		rte_ticketlock_unlock(&dev->wire->rx_lock);
	for (i = 0; i < dev->nb_engines; i++)
		rte_ticketlock_unlock(&dev->engine[i].lock);
}

int
rsoft_audit(struct rmem_dev *base)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;
	int ret;

	lock_all(dev);
	/* A QP that other processes held is destroyed by the device's thread. */
	while (!LIST_EMPTY(&dev->dying_qps)) {
		unlock_all(dev);
		rte_pause();
		lock_all(dev);
	}
	ret = audit_locked(dev);
	unlock_all(dev);
	return ret;
}
