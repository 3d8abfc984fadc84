/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Engines on service lcores; see rsoft_engine.h. */

#include <errno.h>
#include <stdio.h>

#include <rte_memory.h>
#include <rte_pause.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "rsoft_engine.h"
#include "mem/rsoft_grace.h"
#include "rsoft_post.h"
#include "queue/rsoft_sq.h"
#include "wire/rwire.h"

/* Execute the queue of a QP; return the number of bytes copied directly. */
static uint64_t
engine_drain(struct rsoft_qp *qp, unsigned int lcore)
{
	/* The receiver of the wire may also use the queue. */
	bool is_shared = __atomic_load_n(&qp->wire, __ATOMIC_ACQUIRE) != NULL;
	uint64_t copied = 0;

	if (is_shared)
		rte_ticketlock_lock(&qp->sq.lock);
	rsoft_post_drain(qp, lcore);
	if (is_shared) {
		copied = rwire_qp_copied(qp);
		rte_ticketlock_unlock(&qp->sq.lock);
	}
	return copied;
}

/* Execute the queues of all QPs, or of the next ones until it is time to receive. */
static void
engine_drain_all(struct rsoft_engine *engine, unsigned int lcore)
{
	uint64_t copied = 0;
	struct rsoft_qp *qp;

	TAILQ_FOREACH(qp, &engine->qps, next) {
		if (copied >= RWIRE_DIRECT_BUDGET) {
			rsoft_sq_begin_with(&engine->qps, qp);
			return;
		}
		if (!rsoft_sq_is_empty(&qp->sq) || rsoft_qp_is_claimed(qp))
			copied += engine_drain(qp, lcore);
	}
}

/* Service callback: execute the requests of all QPs of an engine once. */
static int32_t
engine_run(void *arg)
{
	struct rsoft_engine *engine = arg;
	unsigned int lcore;

	if (!rte_ticketlock_trylock(&engine->lock))
		return 0;
	lcore = rsoft_grace_enter();
	if (lcore != LCORE_ID_ANY) {
		if (engine->wire != NULL)
			rwire_progress(engine->wire, lcore);
		engine_drain_all(engine, lcore);
		rsoft_grace_leave(lcore);
	}
	rte_ticketlock_unlock(&engine->lock);
	return 0;
}

static int
engine_start(struct rsoft_engine *engine, const char *name, unsigned int i, uint32_t lcore)
{
	struct rte_service_spec spec = {.callback = engine_run,
			.callback_userdata = engine,
			.capabilities = RTE_SERVICE_CAP_MT_SAFE,
			.socket_id = SOCKET_ID_ANY};
	int ret;

	snprintf(spec.name, sizeof(spec.name), "%s_engine%u", name, i);
	rte_ticketlock_init(&engine->lock);
	TAILQ_INIT(&engine->qps);
	engine->lcore_id = lcore;
	ret = rte_service_component_register(&spec, &engine->service_id);
	if (ret != 0) {
		RSOFT_LOG(ERR, "service '%s': not registered: error %d", spec.name, ret);
		return -ENOSPC;
	}
	rte_service_component_runstate_set(engine->service_id, 1);
	rte_service_runstate_set(engine->service_id, 1);
	rte_service_map_lcore_set(engine->service_id, lcore, 1);
	ret = rte_service_lcore_start(lcore);
	if (ret != 0 && ret != -EALREADY) {
		RSOFT_LOG(ERR, "service lcore %u: not started: error %d", lcore, ret);
		rte_service_component_unregister(engine->service_id);
		return -EINVAL;
	}
	return 0;
}

int
rsoft_engines_start(struct rsoft_dev *dev, const char *name)
{
	uint32_t lcores[RTE_MAX_LCORE];
	unsigned int i, wanted = (unsigned int)dev->args.engine;
	int32_t nb_lcores;
	int ret;

	if (wanted == 0)
		return 0;
	nb_lcores = rte_service_lcore_list(lcores, RTE_DIM(lcores));
	if (nb_lcores <= 0) {
		RSOFT_LOG(ERR, "engine=%u: no service lcore (EAL option -s or -S)", wanted);
		return -EINVAL;
	}
	for (i = 0; i < wanted; i++) {
		dev->engine[i].wire = dev->wire;
		ret = engine_start(&dev->engine[i], name, i, lcores[i % (unsigned int)nb_lcores]);
		if (ret != 0) {
			rsoft_engines_stop(dev);
			return ret;
		}
		dev->nb_engines++;
	}
	return 0;
}

void
rsoft_engines_stop(struct rsoft_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->nb_engines; i++) {
		struct rsoft_engine *engine = &dev->engine[i];

		rte_service_runstate_set(engine->service_id, 0);
		while (rte_service_may_be_active(engine->service_id) == 1)
			rte_pause();
		rte_service_map_lcore_set(engine->service_id, engine->lcore_id, 0);
		rte_service_component_runstate_set(engine->service_id, 0);
		rte_service_component_unregister(engine->service_id);
	}
	dev->nb_engines = 0;
}

void
rsoft_engine_add_qp(struct rsoft_qp *qp)
{
	struct rsoft_dev *dev = qp->dev;
	struct rsoft_engine *engine;
	uint16_t i;

	if (dev->nb_engines == 0)
		return;
	for (i = 1; i < dev->nb_engines; i++) {
		if (__atomic_load_n(&dev->engine[i].nb_qps, __ATOMIC_RELAXED) <
				__atomic_load_n(&dev->engine[qp->engine].nb_qps, __ATOMIC_RELAXED))
			qp->engine = i;
	}
	engine = &dev->engine[qp->engine];
	rte_ticketlock_lock(&engine->lock);
	TAILQ_INSERT_TAIL(&engine->qps, qp, next);
	__atomic_store_n(&engine->nb_qps, engine->nb_qps + 1, __ATOMIC_RELAXED);
	rte_ticketlock_unlock(&engine->lock);
}

void
rsoft_engine_remove_qp(struct rsoft_qp *qp)
{
	struct rsoft_engine *engine = &qp->dev->engine[qp->engine];

	if (qp->dev->nb_engines == 0)
		return;
	rte_ticketlock_lock(&engine->lock);
	TAILQ_REMOVE(&engine->qps, qp, next);
	__atomic_store_n(&engine->nb_qps, engine->nb_qps - 1, __ATOMIC_RELAXED);
	rte_ticketlock_unlock(&engine->lock);
}

void
rsoft_engine_lock_qp(struct rsoft_qp *qp)
{
	if (qp->dev->nb_engines != 0)
		rte_ticketlock_lock(&qp->dev->engine[qp->engine].lock);
}

void
rsoft_engine_unlock_qp(struct rsoft_qp *qp)
{
	if (qp->dev->nb_engines != 0)
		rte_ticketlock_unlock(&qp->dev->engine[qp->engine].lock);
}
