/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Event queues. An EQ refers to its device.
 *
 * Each accepted registration takes an entry of the EQ (nb_reserved), one reference to the EQ, and
 * one to the MR. Reading the event releases all three. So there is an entry for every event, and
 * neither the EQ nor the MR is released before the event was read. The thread that puts an event
 * accesses neither of them once the event can be read.
 *
 * A lock serializes producers and consumers: an rte_ring with several producers or consumers orders
 * them with relaxed loads, which do not order their accesses to elements.
 */

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include <rte_bitops.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_ticketlock.h>

#include "rmem_job_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

#define EVENT_SIZE ((unsigned int)sizeof(struct rmem_event))

struct eq {
	struct rmem_eq eq;
	uint32_t nb_reserved __rte_cache_aligned; /* events accepted and not read yet; atomic */
	rte_ticketlock_t lock; /* protects the ring, for producers and consumers */
	struct rte_ring ring;  /* its elements follow */
};

static_assert(sizeof(struct eq) == offsetof(struct eq, ring) + sizeof(struct rte_ring),
		"the elements of the ring follow it");

static struct eq *
eq_of(struct rmem_eq *eq)
{
	return (struct eq *)eq;
}

static int
init_ring(struct eq *eq, uint32_t nb_events)
{
	eq->eq.nb_events = nb_events;
	return rte_ring_init(&eq->ring, "rmem_eq", nb_events,
			RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

int
rmem_eq_create(struct rmem_dev *dev, const struct rmem_eq_conf *conf, struct rmem_eq **eq)
{
	RMEM_CALL(dev);
	struct eq *new_eq;
	uint32_t nb_events;
	size_t size;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret == 0)
		ret = rmem_check_arg(eq, "EQ pointer");
	if (ret == 0)
		ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved));
	if (ret != 0)
		return ret;
	if (conf->flags != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown EQ flags: 0x%x", dev->name, conf->flags);
	nb_events = conf->nb_events;
	if (nb_events == 0 || nb_events > RMEM_EQ_MAX_EVENTS)
		return RMEM_FAIL(EINVAL, "%s: nb_events out of range: %u (1 to %u)", dev->name,
				nb_events, RMEM_EQ_MAX_EVENTS);
	/* A ring keeps one element empty. */
	size = sizeof(*new_eq) + (size_t)rte_align32pow2(nb_events + 1) * EVENT_SIZE;
	new_eq = rmem_obj_create(&dev->obj, RMEM_OBJ_EQ, size, &ret);
	if (new_eq == NULL)
		return ret;
	ret = init_ring(new_eq, nb_events);
	if (ret == 0)
		ret = rmem_jobs_start();
	if (ret != 0) {
		rmem_obj_drop(&new_eq->eq.obj, &dev->obj);
		return ret;
	}
	*eq = &new_eq->eq;
	return 0;
}

int
rmem_eq_reserve(struct rmem_eq *eq, struct rmem_mr *mr)
{
	uint32_t *nb_reserved = &eq_of(eq)->nb_reserved;
	uint32_t nb = __atomic_load_n(nb_reserved, __ATOMIC_RELAXED);
	int ret;

	ret = rmem_obj_get(&eq->obj);
	if (ret != 0)
		return ret;
	do {
		if (nb == eq->nb_events) {
			rmem_obj_unhold(&eq->obj);
			return RMEM_FAIL(ENOSPC,
					"EQ %p: full: %u events (read it, or create a larger one)",
					(void *)eq, eq->nb_events);
		}
	} while (!__atomic_compare_exchange_n(
			nb_reserved, &nb, nb + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	/* No other thread can release this MR yet. */
	return rmem_obj_get(&mr->obj);
}

void
rmem_eq_put(struct rmem_eq *eq, struct rmem_event *event)
{
	/* Cannot fail: an entry was reserved. The event can be read once the lock is released. */
	rte_ticketlock_lock(&eq_of(eq)->lock);
	rte_ring_sp_enqueue_elem(&eq_of(eq)->ring, event, EVENT_SIZE);
	rte_ticketlock_unlock(&eq_of(eq)->lock);
}

int
rmem_eq_read(struct rmem_eq *eq, struct rmem_event *events, uint16_t nb_events)
{
	RMEM_CALL(eq);
	unsigned int i, nb;
	int ret;

	ret = rmem_obj_check(eq, RMEM_OBJ_EQ);
	if (ret == 0)
		ret = rmem_check_arg(events, "events");
	if (ret != 0)
		return ret;
	rte_ticketlock_lock(&eq_of(eq)->lock);
	nb = rte_ring_sc_dequeue_burst_elem(&eq_of(eq)->ring, events, EVENT_SIZE, nb_events, NULL);
	rte_ticketlock_unlock(&eq_of(eq)->lock);
	if (nb == 0)
		return 0;
	__atomic_fetch_sub(&eq_of(eq)->nb_reserved, nb, __ATOMIC_RELEASE);
	for (i = 0; i < nb; i++) {
		rmem_obj_unhold(&events[i].mr->obj);
		rmem_obj_unhold(&eq->obj);
	}
	return (int)nb;
}

int
rmem_eq_destroy(struct rmem_eq *eq)
{
	RMEM_CALL(eq);
	int ret;

	if (eq == NULL)
		return 0;
	ret = rmem_obj_check(eq, RMEM_OBJ_EQ);
	if (ret == 0)
		ret = rmem_obj_kill(&eq->obj);
	if (ret != 0)
		return ret;
	rmem_jobs_stop();
	rmem_obj_drop(&eq->obj, &rmem_obj_dev(&eq->obj)->obj);
	return 0;
}
