/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Decisions of rules on completions; see rsoft_chaos.h. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rsoft_chaos_rule.h"

static bool
is_of_cq(const struct rsoft_chaos_rule *rule, uint32_t ordinal)
{
	return (rule->kind == RSOFT_CHAOS_LATE || rule->kind == RSOFT_CHAOS_REORDER ||
			       rule->kind == RSOFT_CHAOS_LATE_RECV) &&
			(rule->object == 0 || rule->object == ordinal);
}

int
rsoft_chaos_cq_init(struct rsoft_chaos *chaos, struct rsoft_chaos_cq **out)
{
	uint32_t i, nb = 0, ordinal = __atomic_add_fetch(&chaos->nb_cqs, 1, __ATOMIC_RELAXED);
	struct rsoft_chaos_cq *cq;

	*out = NULL;
	for (i = 0; i < chaos->nb_rules; i++)
		nb += is_of_cq(&chaos->rules[i], ordinal);
	if (nb == 0)
		return 0;
	cq = calloc(1, sizeof(*cq) + nb * sizeof(cq->uses[0]));
	if (cq == NULL)
		return -ENOMEM;
	cq->chaos = chaos;
	cq->ordinal = ordinal;
	for (i = 0; i < chaos->nb_rules; i++) {
		if (is_of_cq(&chaos->rules[i], ordinal))
			cq->uses[cq->nb_uses++].rule = &chaos->rules[i];
	}
	*out = cq;
	return 0;
}

void
rsoft_chaos_cq_fini(struct rsoft_chaos_cq *cq)
{
	free(cq);
}

/* Number of the next completion among the events of a rule; 0: it is no event. */
static uint64_t
next_nth(const struct rsoft_chaos_cq *cq, const struct rsoft_chaos_rule *rule, bool is_recv)
{
	if (rule->kind == RSOFT_CHAOS_LATE_RECV)
		return is_recv ? cq->nb_recvs + 1 : 0;
	return cq->nb + 1;
}

/*
 * Whether the completion at a position is returned at once. The mark is removed with the first
 * completion after it.
 */
static bool
is_prompt(struct rsoft_chaos_cq *cq, uint32_t pos)
{
	uint64_t drain = __atomic_load_n(&cq->drain, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&cq->chaos->has_failed, __ATOMIC_ACQUIRE))
		return true;
	if (likely(drain == 0))
		return false;
	if ((int32_t)((uint32_t)drain - pos) > 0)
		return true;
	/* Another QP may set a later one. */
	__atomic_compare_exchange_n(
			&cq->drain, &drain, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return false;
}

void
rsoft_chaos_cq_drain(struct rsoft_chaos_cq *cq, uint32_t end)
{
	if (cq != NULL)
		__atomic_store_n(&cq->drain, RSOFT_CHAOS_DRAIN | end, __ATOMIC_RELEASE);
}

struct rsoft_chaos_use *
rsoft_chaos_cq_next(struct rsoft_chaos_cq *cq, uint32_t pos, bool is_recv)
{
	bool is_passed = is_prompt(cq, pos) || cq->is_late;
	struct rsoft_chaos_use *use;
	uint32_t i;

	for (i = 0; i < cq->nb_uses && !is_passed; i++) {
		uint64_t nth;

		use = &cq->uses[i];
		nth = next_nth(cq, use->rule, is_recv);
		if (nth != 0 &&
				rsoft_chaos_hits(cq->chaos, use->rule, use->nb_hits, cq->ordinal,
						nth))
			return use;
	}
	cq->is_late = false;
	cq->nb++;
	cq->nb_recvs += is_recv;
	return NULL;
}

bool
rsoft_chaos_cq_begin(
		struct rsoft_chaos_cq *cq, struct rsoft_chaos_use *use, uint32_t pos, bool is_recv)
{
	char where[32];

	snprintf(where, sizeof(where), "@cq:%u", cq->ordinal);
	rsoft_chaos_log(cq->chaos, use->rule, where, next_nth(cq, use->rule, is_recv),
			"completion");
	use->nb_hits++;
	cq->left = use->rule->delay;
	cq->pos = pos;
	cq->is_late = use->rule->kind == RSOFT_CHAOS_LATE;
	if (cq->is_late)
		return false;
	cq->is_held = true;
	cq->is_recv = use->rule->kind == RSOFT_CHAOS_LATE_RECV;
	cq->nb++;
	cq->nb_recvs += is_recv;
	return true;
}

bool
rsoft_chaos_cq_waits(struct rsoft_chaos_cq *cq)
{
	if ((!cq->is_late && !cq->is_held) || cq->left == 0 || is_prompt(cq, cq->pos))
		return false;
	cq->left--;
	return true;
}

void
rsoft_chaos_fail(struct rsoft_chaos *chaos)
{
	__atomic_store_n(&chaos->has_failed, true, __ATOMIC_RELEASE);
}
