/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The verbs devices of this process by number, and the log type. Calls no other file of the driver.
 */

#include <errno.h>
#include <string.h>

#include "rverbs.h"

RTE_LOG_REGISTER(rverbs_logtype, pmd.rmem.verbs, NOTICE)

/* Per process, like all objects of libibverbs. */
static struct rverbs_dev *rverbs_devs[RMEM_MAX_DEVS];
static rte_ticketlock_t rverbs_devs_lock; /* held while the entry of another device is read */

struct rverbs_dev *
rverbs_dev_of(const struct rmem_obj *obj)
{
	return rverbs_devs[obj->dev_id];
}

void
rverbs_devs_set(uint16_t dev_id, struct rverbs_dev *dev)
{
	rte_ticketlock_lock(&rverbs_devs_lock);
	rverbs_devs[dev_id] = dev;
	rte_ticketlock_unlock(&rverbs_devs_lock);
}

static bool
dev_has_qp(struct rverbs_dev *dev, uint32_t qp_num)
{
	bool is_found = false;
	uint32_t i;

	rte_ticketlock_lock(&dev->lock);
	for (i = 0; i < RVERBS_MAX_QP && !is_found; i++)
		is_found = dev->slots[i].qp != NULL && dev->slots[i].qp->qp.qp_num == qp_num;
	rte_ticketlock_unlock(&dev->lock);
	return is_found;
}

int
rverbs_devs_find(const struct rmem_qp_addr *addr)
{
	int i, found = -1;

	rte_ticketlock_lock(&rverbs_devs_lock);
	for (i = 0; i < RMEM_MAX_DEVS && found < 0; i++) {
		struct rverbs_dev *dev = rverbs_devs[i];

		if (dev != NULL && dev->has_mw_quirk &&
				memcmp(dev->port.gid.raw, addr->gid, sizeof(addr->gid)) == 0 &&
				dev_has_qp(dev, addr->qp_num))
			found = i;
	}
	rte_ticketlock_unlock(&rverbs_devs_lock);
	return found;
}
