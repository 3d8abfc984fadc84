/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * CQs with a completion channel: arm, notify, acknowledge.
 *
 * Invariant: a completion that the consumer does not find with a poll after rmem_cq_req_notify()
 * generates an event. The producer writes the completion, then reads rmem_cq_events::armed; the
 * consumer writes armed, then reads the CQ. Both access armed with atomic read-modify-writes, with
 * acquire and release, which are totally ordered. If the consumer is first, the producer finds the
 * CQ armed. If the producer is first, the consumer synchronizes with it, so its poll finds the
 * completion.
 *
 * The producer that clears armed generates the event, so there is at most one event each time the
 * CQ becomes armed. Arming an armed CQ adds no event.
 */

#include <errno.h>

#include <rte_branch_prediction.h>
#include <rte_malloc.h>

#include "rmem_priv.h"

/* Bits of rmem_cq_events::armed: completions that generate an event. */
#define ARMED_SOLICITED UINT32_C(1) /* solicited completions and errors */
#define ARMED_OTHER     UINT32_C(2) /* all other completions */

int
rmem_cq_events_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf)
{
	cq->context = conf->context;
	if (conf->channel == NULL && conf->async_channel == NULL)
		return 0;
	cq->events = rte_zmalloc("rmem_cq_events", sizeof(*cq->events), RTE_CACHE_LINE_SIZE);
	if (cq->events == NULL)
		return RMEM_FAIL(ENOMEM, "%s: no memory for the events of a CQ",
				rmem_obj_dev(&cq->obj)->name);
	cq->events->base.obj = &cq->obj;
	cq->channel = conf->channel;
	return rmem_async_channel_bind(
			conf->async_channel, &cq->obj, conf->context, &cq->events->async);
}

void
rmem_cq_events_free(struct rmem_cq *cq)
{
	if (cq->events == NULL)
		return;
	rmem_async_channel_unbind(cq->events->async);
	rte_free(cq->events);
}

void
rmem_cq_notify(struct rmem_cq *cq, bool is_solicited)
{
	const uint32_t need = is_solicited ? ARMED_SOLICITED : ARMED_OTHER;
	uint32_t *armed = &cq->events->armed;
	struct rmem_cq_moder *moder = __atomic_load_n(&cq->events->moder, __ATOMIC_ACQUIRE);
	uint32_t was;

	if (unlikely(moder != NULL) && rmem_cq_moder_notify(cq, moder, need))
		return;
	was = __atomic_fetch_or(armed, 0, __ATOMIC_ACQ_REL);
	while ((was & need) != 0) {
		if (!__atomic_compare_exchange_n(
				    armed, &was, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		rmem_comp_channel_put(cq->channel, cq->events);
		return;
	}
}

int
rmem_own_cq_req_notify(struct rmem_cq *cq, bool is_solicited_only)
{
	__atomic_fetch_or(&cq->events->armed,
			is_solicited_only ? ARMED_SOLICITED : ARMED_SOLICITED | ARMED_OTHER,
			__ATOMIC_ACQ_REL);
	return 0;
}

/* Check that the CQ has a channel. */
static int
check_channel(const struct rmem_cq *cq)
{
	int ret = rmem_obj_check(cq, RMEM_OBJ_CQ);

	if (ret == 0 && cq->channel == NULL)
		ret = RMEM_FAIL(EINVAL, "CQ %p: no completion channel", (const void *)cq);
	return ret;
}

int
rmem_cq_req_notify(struct rmem_cq *cq, bool is_solicited_only)
{
	RMEM_CALL(cq);
	int ret;

	ret = check_channel(cq);
	if (ret != 0)
		return ret;
	return RMEM_OP(cq, cq_req_notify, cq, is_solicited_only);
}

int
rmem_cq_ack_events(struct rmem_cq *cq, uint32_t nb_events)
{
	RMEM_CALL(cq);
	uint32_t nb, i;
	int ret;

	ret = check_channel(cq);
	if (ret != 0)
		return ret;
	nb = __atomic_load_n(&cq->events->nb_unacked, __ATOMIC_RELAXED);
	do {
		if (nb_events > nb)
			return RMEM_FAIL(EINVAL,
					"CQ %p: nb_events out of range: %u (%u not acknowledged)",
					(void *)cq, nb_events, nb);
	} while (!__atomic_compare_exchange_n(&cq->events->nb_unacked, &nb, nb - nb_events, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED));
	for (i = 0; i < nb_events; i++)
		rmem_obj_unhold(&cq->obj);
	return 0;
}
