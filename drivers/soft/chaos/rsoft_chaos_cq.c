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
		if (!is_of_cq(&chaos->rules[i], ordinal))
			continue;
		cq->uses[cq->nb_uses++].rule = &chaos->rules[i];
		cq->has_late_recv |= chaos->rules[i].kind == RSOFT_CHAOS_LATE_RECV;
	}
	*out = cq;
	return 0;
}

void
rsoft_chaos_cq_fini(struct rsoft_chaos_cq *cq)
{
	free(cq);
}

/* Rule of a kind that hits its nth event, or NULL. */
static struct rsoft_chaos_use *
find_nth(struct rsoft_chaos_cq *cq, enum rsoft_chaos_kind kind, uint64_t nth)
{
	uint32_t i;

	for (i = 0; i < cq->nb_uses; i++) {
		if (cq->uses[i].rule->kind == kind &&
				rsoft_chaos_hits(cq->chaos, cq->uses[i].rule, cq->uses[i].nb_hits,
						cq->ordinal, nth))
			return &cq->uses[i];
	}
	return NULL;
}

/* Rule of a kind that hits the completion at a position, or NULL. */
static struct rsoft_chaos_use *
find(struct rsoft_chaos_cq *cq, enum rsoft_chaos_kind kind, uint32_t pos)
{
	return find_nth(cq, kind, (uint64_t)pos + 1);
}

static void
log_of_cq(struct rsoft_chaos_cq *cq, struct rsoft_chaos_use *use, uint64_t nth)
{
	char where[32];

	snprintf(where, sizeof(where), "@cq:%u", cq->ordinal);
	rsoft_chaos_log(cq->chaos, use->rule, where, nth, "completion");
	use->nb_hits++;
}

/* Delay the next completion, at the given position. */
static void
begin_late(struct rsoft_chaos_cq *cq, struct rsoft_chaos_use *use, uint32_t pos)
{
	log_of_cq(cq, use, (uint64_t)pos + 1);
	cq->pos = pos;
	cq->left = use->rule->delay;
	cq->is_passed = true;
}

uint32_t
rsoft_chaos_poll(struct rsoft_chaos_cq *cq, uint32_t pos, uint32_t n)
{
	struct rsoft_chaos_use *use;
	uint32_t i;

	if (!cq->is_passed || cq->pos != pos) {
		cq->is_passed = false;
		use = find(cq, RSOFT_CHAOS_LATE, pos);
		if (use != NULL)
			begin_late(cq, use, pos);
	}
	if (cq->is_passed && cq->left != 0) {
		cq->left--;
		return 0;
	}
	if (cq->has_late_recv)
		n = 1;
	for (i = 1; i < n && find(cq, RSOFT_CHAOS_LATE, pos + i) == NULL &&
			find(cq, RSOFT_CHAOS_REORDER, pos + i) == NULL;
			i++)
		;
	return i;
}

bool
rsoft_chaos_hold(struct rsoft_chaos_cq *cq, uint32_t pos, bool is_recv)
{
	struct rsoft_chaos_use *use = find(cq, RSOFT_CHAOS_REORDER, pos);
	uint64_t nth = (uint64_t)pos + 1;

	cq->nb_recvs += is_recv;
	cq->is_recv = use == NULL && is_recv;
	if (cq->is_recv) {
		nth = cq->nb_recvs;
		use = find_nth(cq, RSOFT_CHAOS_LATE_RECV, nth);
	}
	if (use == NULL)
		return false;
	log_of_cq(cq, use, nth);
	cq->is_held = true;
	cq->held_left = use->rule->delay;
	return true;
}
