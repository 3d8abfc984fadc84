/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Multicast groups; see rsoft_group.h. */

#include <string.h>

#include "rsoft_group.h"

struct rsoft_group *
rsoft_group_find(const struct rsoft_dev *dev, const uint8_t gid[16])
{
	struct rsoft_group *group;

	LIST_FOREACH(group, &dev->groups, entry) {
		if (memcmp(group->gid, gid, sizeof(group->gid)) == 0)
			break;
	}
	return group;
}

static uint32_t
index_of(const struct rsoft_group *group, const struct rsoft_qp *qp)
{
	uint32_t i;

	for (i = 0; i < group->nb_qps && group->qps[i] != qp; i++)
		;
	return i;
}

bool
rsoft_group_has(const struct rsoft_group *group, const struct rsoft_qp *qp)
{
	return index_of(group, qp) < group->nb_qps;
}

void
rsoft_group_add(struct rsoft_group *group, struct rsoft_qp *qp)
{
	if (group->nb_qps == 0)
		LIST_INSERT_HEAD(&qp->dev->groups, group, entry);
	group->qps[group->nb_qps++] = qp;
	qp->nb_groups++;
}

void
rsoft_group_remove(struct rsoft_group *group, struct rsoft_qp *qp)
{
	group->qps[index_of(group, qp)] = group->qps[--group->nb_qps];
	qp->nb_groups--;
	if (group->nb_qps == 0)
		LIST_REMOVE(group, entry);
}

/* Copy the QPs of port 1, which alone has multicast: a QP may get its port after it was attached.
 * Under the domain's lock. */
static uint32_t
copy_qps(const struct rsoft_dev *dev, const uint8_t gid[16], struct rsoft_qp **qps)
{
	const struct rsoft_group *group = rsoft_group_find(dev, gid);
	uint32_t i, n = 0;

	if (group == NULL)
		return 0;
	for (i = 0; i < group->nb_qps; i++) {
		if (likely(rsoft_gid_port(group->qps[i]->gid_slot) == 1))
			qps[n++] = group->qps[i];
	}
	return n;
}

uint32_t
rsoft_group_next(const uint8_t gid[16], bool has_wire, unsigned int *dev_id,
		struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS])
{
	uint32_t n = 0;

	rsoft_lock(&rsoft_domain->lock);
	for (; n == 0 && *dev_id < RMEM_MAX_DEVS; ++*dev_id) {
		const struct rsoft_dev *dev = rsoft_domain->dev[*dev_id];

		if (dev != NULL && (has_wire || dev->wire == NULL))
			n = copy_qps(dev, gid, qps);
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return n;
}

uint32_t
rsoft_group_qps(const struct rsoft_dev *dev, const uint8_t gid[16],
		struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS])
{
	uint32_t n;

	rsoft_lock(&rsoft_domain->lock);
	n = copy_qps(dev, gid, qps);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return n;
}
