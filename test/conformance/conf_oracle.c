/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rules that hold with any injected fault (--faults): each request and receive that was accepted
 * completes at most once, in the order of its queue, successfully or by its error; after the first
 * error of a queue all others are flushed, those without a completion of their own too; and once
 * the QP is in ERR nothing is left (IBTA 10.8.5.1, 10.8.6, 10.3.1).
 *
 * The fast path of the device is replaced by functions that record posts and completions, and calls
 * that drop requests by functions of this file (-Wl,--wrap).
 *
 * Invariant: a completion is of a request that was posted and has not completed; a violation fails
 *   the case, also if a fault was injected.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "conf.h"

#define MAX_QPS     256
#define MAX_SRQS    64
#define DRAIN_POLLS 2000u

/* A request or receive that was accepted. */
struct item {
	uint64_t wr_id;
	bool has_wc; /* also if it succeeds */
};

/* Those that have not completed, in the order posted. */
struct queue {
	struct item *items;
	uint32_t nb;
	bool has_failed;
	bool is_vague; /* two have one wr_id: which of them is left is unknown */
};

enum side {
	SIDE_SEND,
	SIDE_RECV,
	SIDE_NB,
};

/* A QP, of one of two lives of its number: earlier is what a reset or destroy dropped. */
struct record {
	struct rmem_qp *qp; /* NULL: destroyed */
	uint32_t qp_num;
	bool is_sig_all;
	bool is_xrc_recv;
	struct queue now[SIDE_NB];
	struct queue earlier[SIDE_NB];
};

/* Receives of an SRQ, which QPs take in any order. */
struct srq_record {
	const struct rmem_srq *srq;
	struct queue queue;
};

static struct rmem_fp_ops device; /* its own functions */
static struct record records[MAX_QPS];
static struct srq_record srqs[MAX_SRQS];
static uint32_t nb_records, nb_srqs;
static unsigned int nb_violations; /* of the case */
static pthread_mutex_t lock;

int __real_rmem_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);
int __real_rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp);
int __real_rmem_qp_destroy(struct rmem_qp *qp);
int __real_rmem_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask);
int __real_rmem_qp_reset(struct rmem_qp *qp);
int __wrap_rmem_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);
int __wrap_rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp);
int __wrap_rmem_qp_destroy(struct rmem_qp *qp);
int __wrap_rmem_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask);
int __wrap_rmem_qp_reset(struct rmem_qp *qp);

static void
violation(const struct record *record, enum side side, uint64_t wr_id, const char *what)
{
	nb_violations++;
	printf("oracle: QP 0x%06x, %s 0x%" PRIx64 ": %s\n", record != NULL ? record->qp_num : 0,
			side == SIDE_SEND ? "request" : "receive", wr_id, what);
}

void
conf_must(bool is_held, const char *what)
{
	if (is_held)
		return;
	nb_violations++;
	printf("oracle: it does not hold that %s\n", what);
}

static void
queue_add(struct queue *queue, uint64_t wr_id, bool has_wc)
{
	if ((queue->nb & (queue->nb - 1)) == 0) {
		queue->items = realloc(queue->items,
				(queue->nb == 0 ? 1 : 2 * (size_t)queue->nb) * sizeof(struct item));
		if (queue->items == NULL)
			abort();
	}
	queue->items[queue->nb++] = (struct item){wr_id, has_wc};
}

/* Remove the first n. */
static void
queue_drop(struct queue *queue, uint32_t n)
{
	queue->nb -= n;
	memmove(queue->items, queue->items + n, queue->nb * sizeof(struct item));
	/* The size is the next power of two, or more. */
	if (queue->nb == 0) {
		free(queue->items);
		queue->items = NULL;
		return;
	}
	queue->items = realloc(
			queue->items, (size_t)rte_align32pow2(queue->nb) * sizeof(struct item));
	if (queue->items == NULL)
		abort();
}

static void
queue_clear(struct queue *queue)
{
	free(queue->items);
	memset(queue, 0, sizeof(*queue));
}

/* The index of the first with a wr_id from i on, or the number of entries. */
static uint32_t
queue_find(const struct queue *queue, uint32_t i, uint64_t wr_id)
{
	while (i < queue->nb && queue->items[i].wr_id != wr_id)
		i++;
	return i;
}

static struct record *
record_of(uint32_t qp_num)
{
	uint32_t i = nb_records;

	while (i > 0 && records[i - 1].qp_num != qp_num)
		i--;
	return i > 0 ? &records[i - 1] : NULL;
}

static struct queue *
queue_of_srq(const struct rmem_srq *srq)
{
	uint32_t i;

	for (i = 0; i < nb_srqs && srqs[i].srq != srq; i++)
		;
	if (i == MAX_SRQS)
		abort();
	if (i == nb_srqs)
		srqs[nb_srqs++].srq = srq;
	return &srqs[i].queue;
}

static int
oracle_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct record *record;
	int i, ret;

	pthread_mutex_lock(&lock);
	ret = device.post_send(qp, wr, nb_wr);
	record = record_of(qp->qp_num);
	for (i = 0; i < ret && record != NULL; i++)
		queue_add(&record->now[SIDE_SEND], wr[i].wr_id,
				record->is_sig_all || (wr[i].flags & RMEM_SEND_SIGNALED) != 0);
	pthread_mutex_unlock(&lock);
	return ret;
}

static int
oracle_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct record *record;
	int i, ret;

	pthread_mutex_lock(&lock);
	ret = device.post_recv(qp, wr, nb_wr);
	record = record_of(qp->qp_num);
	for (i = 0; i < ret && record != NULL; i++)
		queue_add(&record->now[SIDE_RECV], wr[i].wr_id, true);
	pthread_mutex_unlock(&lock);
	return ret;
}

static int
oracle_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	int i, ret;

	pthread_mutex_lock(&lock);
	ret = device.srq_post_recv(srq, wr, nb_wr);
	for (i = 0; i < ret; i++)
		queue_add(queue_of_srq(srq), wr[i].wr_id, true);
	pthread_mutex_unlock(&lock);
	return ret;
}

/* A completion from before a reset or destroy, which leave those that are in the CQ. */
static bool
is_of_earlier(struct record *record, enum side side, const struct rmem_wc *wc)
{
	struct queue *queue = &record->earlier[side];
	uint32_t i = queue_find(queue, 0, wc->wr_id);

	if (i == queue->nb)
		return false;
	queue_drop(queue, i + 1);
	record->now[side].is_vague = true;
	return true;
}

/* The position of the request of a completion; those before it have none of their own. */
static uint32_t
find_request(struct record *record, enum side side, const struct rmem_wc *wc)
{
	const struct queue *queue = &record->now[side];
	uint32_t i = queue_find(queue, 0, wc->wr_id), before;

	while (i < queue->nb && wc->status == RMEM_WC_SUCCESS && !queue->items[i].has_wc)
		i = queue_find(queue, i + 1, wc->wr_id);
	if (i == queue->nb) {
		violation(record, side, wc->wr_id, "completes, but is not outstanding");
		return i;
	}
	for (before = 0; before < i && !queue->is_vague; before++) {
		if (queue->items[before].has_wc || queue->has_failed) {
			violation(record, side, wc->wr_id, "completes before an earlier one");
			break;
		}
	}
	return i;
}

/* Whether a failure may also be of a request after that at i, none before which had to complete. */
static bool
is_ambiguous(const struct queue *queue, uint32_t i)
{
	uint32_t next = queue_find(queue, i + 1, queue->items[i].wr_id);

	for (; i < next && next < queue->nb; i++) {
		if (queue->items[i].has_wc)
			return false;
	}
	return next < queue->nb;
}

static void
check_of_qp(struct record *record, enum side side, const struct rmem_wc *wc)
{
	struct queue *queue = &record->now[side];
	uint32_t i;

	if (is_of_earlier(record, side, wc))
		return;
	i = find_request(record, side, wc);
	if (i == queue->nb)
		return;
	if (queue->has_failed && wc->status != RMEM_WC_WR_FLUSH_ERR)
		violation(record, side, wc->wr_id, "is not flushed, but its queue has failed");
	if (wc->status != RMEM_WC_SUCCESS && !queue->has_failed) {
		queue->has_failed = true;
		queue->is_vague |= is_ambiguous(queue, i);
	}
	queue_drop(queue, i + 1);
}

/* An SRQ with a receive for a message to a QP of XRC_RECV, whose request named it; or NULL. */
static const struct rmem_srq *
srq_with(uint64_t wr_id)
{
	uint32_t i;

	for (i = 0; i < nb_srqs; i++) {
		if (queue_find(&srqs[i].queue, 0, wr_id) != srqs[i].queue.nb)
			return srqs[i].srq;
	}
	return NULL;
}

static void
check_of_srq(const struct record *record, const struct rmem_srq *srq, const struct rmem_wc *wc)
{
	struct queue *queue = queue_of_srq(srq);
	uint32_t i = queue_find(queue, 0, wc->wr_id);

	if (i == queue->nb) {
		violation(record, SIDE_RECV, wc->wr_id, "completes, but is not in the SRQ");
		return;
	}
	queue->items[i] = queue->items[0];
	queue_drop(queue, 1);
}

static void
check(const struct rmem_wc *wc)
{
	struct record *record = record_of(wc->qp_num);
	enum side side = wc->opcode >= RMEM_WC_RECV ? SIDE_RECV : SIDE_SEND;

	if (record == NULL)
		violation(NULL, side, wc->wr_id, "completes, of a QP that there was not");
	else if (side == SIDE_RECV && record->is_xrc_recv)
		check_of_srq(record, srq_with(wc->wr_id), wc);
	else if (side == SIDE_RECV && record->qp != NULL && record->qp->srq != NULL)
		check_of_srq(record, record->qp->srq, wc);
	else if (record->qp != NULL)
		check_of_qp(record, side, wc);
	else if (!is_of_earlier(record, side, wc))
		violation(record, side, wc->wr_id, "completes, of a QP that was destroyed");
}

static int
oracle_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int i, ret;

	pthread_mutex_lock(&lock);
	ret = device.poll_cq(cq, wc, nb_wc);
	for (i = 0; i < ret; i++)
		check(&wc[i]);
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Requests that have not completed are dropped, except those whose completion is in a CQ. */
static void
drop(struct record *record)
{
	unsigned int side;
	uint32_t i;

	for (side = 0; side < SIDE_NB; side++) {
		struct queue *queue = &record->now[side];

		for (i = 0; i < queue->nb; i++)
			queue_add(&record->earlier[side], queue->items[i].wr_id, true);
		queue_clear(queue);
	}
}

int
__wrap_rmem_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	struct record *record;
	int ret;

	if (conf.faults == NULL)
		return __real_rmem_mw_bind(qp, mw, bind);
	pthread_mutex_lock(&lock);
	ret = __real_rmem_mw_bind(qp, mw, bind);
	record = ret == 0 ? record_of(qp->qp_num) : NULL;
	if (record != NULL)
		queue_add(&record->now[SIDE_SEND], bind->wr_id,
				record->is_sig_all || (bind->flags & RMEM_SEND_SIGNALED) != 0);
	pthread_mutex_unlock(&lock);
	return ret;
}

int
__wrap_rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf_qp, struct rmem_qp **qp)
{
	int ret = __real_rmem_qp_create(pd, conf_qp, qp);

	if (ret != 0 || conf.faults == NULL)
		return ret;
	pthread_mutex_lock(&lock);
	if (nb_records == MAX_QPS)
		abort();
	records[nb_records++] = (struct record){.qp = *qp,
			.qp_num = (*qp)->qp_num,
			.is_sig_all = (conf_qp->flags & RMEM_QP_SIG_ALL) != 0,
			.is_xrc_recv = conf_qp->type == RMEM_QPT_XRC_RECV};
	pthread_mutex_unlock(&lock);
	return 0;
}

/* A call that drops requests, or lets a queue continue that has failed. */
static int
change(struct rmem_qp *qp, int (*call)(struct rmem_qp *qp), bool is_last)
{
	uint32_t qp_num = qp != NULL && conf.faults != NULL ? qp->qp_num : 0;
	struct record *record;
	int ret;

	if (qp == NULL || conf.faults == NULL)
		return call(qp);
	pthread_mutex_lock(&lock);
	ret = call(qp);
	record = ret == 0 ? record_of(qp_num) : NULL;
	if (record != NULL) {
		drop(record);
		if (is_last)
			record->qp = NULL;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int
__wrap_rmem_qp_destroy(struct rmem_qp *qp)
{
	return change(qp, __real_rmem_qp_destroy, true);
}

int
__wrap_rmem_qp_reset(struct rmem_qp *qp)
{
	return change(qp, __real_rmem_qp_reset, false);
}

int
__wrap_rmem_qp_modify(struct rmem_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	int ret = __real_rmem_qp_modify(qp, attr, mask);
	struct record *record;

	if (ret != 0 || conf.faults == NULL || (mask & RMEM_QP_STATE) == 0)
		return ret;
	pthread_mutex_lock(&lock);
	record = record_of(qp->qp_num);
	if (record != NULL && attr->state == RMEM_QPS_RESET)
		drop(record);
	else if (record != NULL && attr->state == RMEM_QPS_RTS)
		record->now[SIDE_SEND].has_failed = false;
	pthread_mutex_unlock(&lock);
	return ret;
}

void
conf_oracle_open(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	/* rmem_mw_bind() may post. */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
	device = rmem_fp[conf.dev->obj.dev_id];
	rmem_fp[conf.dev->obj.dev_id].post_send = oracle_post_send;
	rmem_fp[conf.dev->obj.dev_id].post_recv = oracle_post_recv;
	rmem_fp[conf.dev->obj.dev_id].poll_cq = oracle_poll_cq;
	rmem_fp[conf.dev->obj.dev_id].srq_post_recv = oracle_srq_post_recv;
}

/* Whether a request of a QP in ERR has no completion yet. */
static bool
is_waiting(const struct record *record, enum side side)
{
	const struct queue *queue = &record->now[side];
	uint32_t i;

	for (i = 0; i < queue->nb && !queue->items[i].has_wc && !queue->has_failed; i++)
		;
	return i < queue->nb && !queue->is_vague;
}

/*
 * Wait for the completions of a QP; false if its CQ has overrun, which loses some. The time is not
 * enough where the process seldom runs: rules delay completions by polls.
 */
static bool
drain(const struct record *record, enum side side, uint64_t deadline)
{
	struct rmem_cq *cq = side == SIDE_SEND ? record->qp->send_cq : record->qp->recv_cq;
	unsigned int spins = 0;
	struct rmem_wc wc;
	int ret;

	while (is_waiting(record, side) && !(spins >= DRAIN_POLLS && fx_is_late(deadline))) {
		ret = rmem_poll_cq(cq, &wc, 1);
		if (ret < 0)
			return false;
		if (ret == 0)
			fx_relax(&spins);
	}
	return true;
}

static void
drain_qp(struct record *record)
{
	uint64_t deadline = rte_get_timer_cycles() + (conf.is_wrong ? 1 : 10) * rte_get_timer_hz();
	unsigned int side;

	if (record->qp == NULL || fx_state(record->qp) == RMEM_QPS_RESET)
		return;
	TEST_OK(rmem_qp_set_error(record->qp));
	for (side = 0; side < SIDE_NB; side++) {
		if (drain(record, side, deadline) && is_waiting(record, side))
			violation(record, side, record->now[side].items[0].wr_id,
					"is not completed, and the QP is in ERR");
	}
}

static void
drain_all(void)
{
	uint32_t i;

	for (i = 0; i < nb_records; i++)
		drain_qp(&records[i]);
}

bool
conf_oracle_end(void)
{
	bool is_right;
	unsigned int side;
	uint32_t i;

	if (conf.faults == NULL)
		return nb_violations == 0;
	is_right = TEST_TRY(drain_all()) == TEST_SUCCESS && nb_violations == 0;
	for (i = 0; i < nb_records; i++) {
		for (side = 0; side < SIDE_NB; side++) {
			queue_clear(&records[i].now[side]);
			queue_clear(&records[i].earlier[side]);
		}
	}
	for (i = 0; i < nb_srqs; i++)
		queue_clear(&srqs[i].queue);
	return is_right;
}

void
conf_oracle_begin(void)
{
	nb_records = 0;
	nb_srqs = 0;
	nb_violations = 0;
	memset(srqs, 0, sizeof(srqs));
}
