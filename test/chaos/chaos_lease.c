/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Leases on the second QP of each lcore, by another backend each. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_memory.h>

#include "chaos.h"

#define NB_LEASES  4u
#define FIRST_SLOT 8u /* after those of bindings */

struct leased {
	struct ch_slot *slot;
	struct rmem_mr *mr;
	struct rmem_lease *lease;
	uint32_t access;
	bool is_published;
	bool is_revoked;
	bool has_deadline;
};

struct ch_leases {
	struct rmem_lease_ctx *ctx;
	struct leased all[NB_LEASES];
	uint32_t backend;
};

bool
ch_leases_open(struct ch_thread *t)
{
	struct rmem_lease_conf conf = {
			.backend = RMEM_LEASE_FAST_REG + t->index % 3,
			.max_leases = 64,
			.min_leases = ch_below(t, 4),
			.max_length = CH_DATA,
			.quarantine_us = 1000,
			.socket_id = SOCKET_ID_ANY,
	};
	unsigned int i;
	int ret;

	t->leases = calloc(1, sizeof(*t->leases));
	if (t->leases == NULL)
		return CH_FAIL(t, "no memory");
	/* The context is for a QP of PD 0. */
	if (t->qps[1]->pd != 0)
		return true;
	t->leases->backend = conf.backend;
	for (i = 0; i < NB_LEASES; i++) {
		struct leased *l = &t->leases->all[i];

		l->slot = &t->slots[FIRST_SLOT + i];
		ret = rmem_mr_reg(ch.pds[0], l->slot->mem, CH_DATA, 0,
				RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_MW_BIND, &l->mr);
		if (ret != 0)
			return CH_FAIL(t, "rmem_mr_reg: %s", strerror(-ret));
	}
	ret = rmem_lease_ctx_create(t->qps[1]->qp, &conf, &t->leases->ctx);
	return CH_CHECK(t, ret == 0, "rmem_lease_ctx_create: %s", strerror(-ret));
}

int
ch_leases_take(struct ch_thread *t, struct rmem_wc *wc, unsigned int nb)
{
	int ret;

	if (t->leases == NULL || t->leases->ctx == NULL)
		return (int)nb;
	ret = rmem_lease_process_wcs(t->leases->ctx, wc, (uint16_t)nb);
	if (ret < 0 || ret > (int)nb)
		CH_FAIL(t, "rmem_lease_process_wcs: %d", ret);
	return ret;
}

static bool
grant(struct ch_thread *t, struct leased *l)
{
	struct rmem_lease_req req = {.mr = l->mr, .user = l};
	size_t offset, length;
	int ret;

	l->access = ch_one_in(t, 2) ? RMEM_ACCESS_REMOTE
				    : RMEM_ACCESS_REMOTE_WRITE << ch_below(t, 3);
	l->has_deadline = ch_one_in(t, 4);
	l->is_published = false;
	l->is_revoked = false;
	if (!ch_slot_begin(t, l->slot))
		return false;
	ch_part(t, &offset, &length);
	ch_slot_open(l->slot, offset, length);
	req.addr = l->slot->mem + offset;
	req.length = (uint32_t)length;
	req.access = l->access;
	if (l->has_deadline)
		req.deadline = rte_rdtsc() + ch_below(t, 1000000);
	ret = rmem_lease_grant(t->leases->ctx, &req, 1, &l->lease);
	if (ret == 1)
		return true;
	l->lease = NULL;
	return CH_CHECK(t, ret == -ENOSPC || ret == -EBUSY, "rmem_lease_grant: %d", ret) &&
			ch_slot_end(t, l->slot);
}

static void
publish(struct ch_thread *t, struct leased *l)
{
	const struct ch_grant one = {
			.kind = "lease",
			.addr = l->lease->remote_addr,
			.length = l->lease->length,
			.rkey = l->lease->rkey,
			.access = l->access,
			.only_qp = t->leases->backend == RMEM_LEASE_MW ? t->qps[1]->index
								       : CH_NO_QP,
			.inv_qp = t->qps[1]->index,
			.state = l->has_deadline ? CH_UNSURE : CH_LIVE,
	};

	ch_publish(t, l->slot, &one);
	l->is_published = true;
}

static bool
reclaim(struct ch_thread *t)
{
	struct rmem_lease *ended[NB_LEASES];
	int n = rmem_lease_reclaim(t->leases->ctx, ended, NB_LEASES);
	int i;

	if (n < 0)
		return CH_FAIL(t, "rmem_lease_reclaim: %d", n);
	for (i = 0; i < n; i++) {
		struct leased *l = ended[i]->user;

		if (l->lease != ended[i])
			return CH_FAIL(t, "lease %" PRIu64 " ended twice", ended[i]->id);
		ch_note(t, "lease %" PRIu64 " ended by %u, grant %" PRIu64, ended[i]->id,
				ended[i]->end, l->slot->id);
		l->lease = NULL;
		if (!ch_slot_end(t, l->slot))
			return false;
	}
	return true;
}

bool
ch_leases_tick(struct ch_thread *t)
{
	struct rmem_wc none;
	unsigned int i;
	int ret;

	if (t->leases->ctx == NULL)
		return true;
	for (i = 0; i < NB_LEASES; i++) {
		struct leased *l = &t->leases->all[i];

		if (l->lease == NULL) {
			if (ch_is_connected(t->qps[1]) && ch_one_in(t, 4) && !grant(t, l))
				return false;
		} else if (!l->is_published && l->lease->state == RMEM_LEASE_GRANTED) {
			publish(t, l);
		} else if (!l->is_revoked && ch_one_in(t, 60)) {
			ch_set_state(l->slot, CH_UNSURE);
			ret = rmem_lease_revoke(t->leases->ctx, &l->lease, 1);
			if (ret != 0)
				return CH_FAIL(t, "rmem_lease_revoke: %s", strerror(-ret));
			l->is_revoked = true;
		}
	}
	if (ch_one_in(t, 1000)) {
		ret = rmem_lease_trim(t->leases->ctx);
		if (ret < 0)
			return CH_FAIL(t, "rmem_lease_trim: %s", strerror(-ret));
	}
	/* Deadlines pass without completions too. */
	ret = rmem_lease_process_wcs(t->leases->ctx, &none, 0);
	return CH_CHECK(t, ret == 0, "rmem_lease_process_wcs: %d", ret) && reclaim(t);
}

bool
ch_leases_recover(struct ch_thread *t, const struct ch_qp *q)
{
	unsigned int i;
	int ret;

	if (q != t->qps[1] || t->leases->ctx == NULL)
		return true;
	for (i = 0; i < NB_LEASES; i++) {
		if (t->leases->all[i].lease != NULL)
			ch_set_state(t->leases->all[i].slot, CH_UNSURE);
	}
	ret = rmem_lease_recover(t->leases->ctx);
	if (ret != 0)
		return CH_FAIL(t, "rmem_lease_recover: %s", strerror(-ret));
	return reclaim(t);
}

bool
ch_leases_close(struct ch_thread *t)
{
	unsigned int i;
	int ret = 0;

	if (t->leases->ctx != NULL) {
		if (!ch_qp_reset(t, t->qps[1]))
			return false;
		ret = rmem_lease_ctx_destroy(t->leases->ctx);
		if (ret != 0)
			return CH_FAIL(t, "rmem_lease_ctx_destroy: %s", strerror(-ret));
		for (i = 0; i < NB_LEASES && ret == 0; i++)
			ret = rmem_mr_dereg(t->leases->all[i].mr);
	}
	free(t->leases);
	t->leases = NULL;
	return CH_CHECK(t, ret == 0, "an MR of leases: %s", strerror(-ret));
}
