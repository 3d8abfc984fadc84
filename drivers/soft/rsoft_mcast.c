/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Multicast: attach UD QPs to groups, and detach them (queue/rsoft_group.h). A device joins a group
 * on its wire with the first QP, and leaves it with the last.
 *
 * Invariant: rsoft_dev::group_lock serialises these calls; it is taken before the domain's lock.
 */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "mem/rsoft_grace.h"
#include "queue/rsoft_addr.h"
#include "queue/rsoft_group.h"
#include "rsoft_dev.h"
#include "wire/rwire.h"

/* LIDs of groups on an InfiniBand subnet (IBTA 4.1.3). */
#define MIN_LID 0xc000
#define MAX_LID 0xfffe

/* Check as the kernel does, which ignores the LID with RoCE. */
static int
check_group(const struct rsoft_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	const struct rsoft_dev *dev = qp->dev;

	if ((dev->wire == NULL || dev->address.lid != 0) && (lid < MIN_LID || lid > MAX_LID)) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: multicast LID out of range: 0x%x (0x%x to 0x%x)",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp), lid, MIN_LID, MAX_LID);
		return -EINVAL;
	}
	if (!rsoft_addr_has_group(dev, gid)) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: multicast GID of another family than ip=%s",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp), dev->args.ip);
		return -EINVAL;
	}
	return 0;
}

/* Find the group to which the QP is added; *out is NULL for a new group. 1: the QP is in it
 * already. Under the domain's lock. */
static int
find_group(const struct rsoft_qp *qp, const uint8_t gid[16], struct rsoft_group **out)
{
	const struct rsoft_group *other;
	struct rsoft_group *group = rsoft_group_find(qp->dev, gid);
	uint32_t n = 0;

	*out = group;
	if (group != NULL && rsoft_group_has(group, qp))
		return 1;
	LIST_FOREACH(other, &qp->dev->groups, entry)
		n++;
	if (group != NULL ? group->nb_qps < RSOFT_MAX_GROUP_QPS : n < RSOFT_MAX_GROUPS)
		return 0;
	RSOFT_LOG(ERR, "QP 0x%06x%s: not attached: %s are in use (%u)", qp->qp.qp_num,
			RSOFT_QP_NAME(&qp->qp),
			group != NULL ? "all QPs of the group" : "all groups",
			group != NULL ? RSOFT_MAX_GROUP_QPS : RSOFT_MAX_GROUPS);
	return -ENOSPC;
}

static int
make_group(const struct rsoft_dev *dev, const uint8_t gid[16], struct rsoft_group **out)
{
	struct rsoft_group *group;
	int ret;

	group = rte_zmalloc_socket(
			"rsoft_group", sizeof(*group), 0, (int)(int64_t)dev->args.socket);
	if (group == NULL) {
		RSOFT_LOG(ERR, "multicast group: no memory: %zu bytes", sizeof(*group));
		return -ENOMEM;
	}
	memcpy(group->gid, gid, sizeof(group->gid));
	ret = dev->wire != NULL ? rwire_ud_join(dev->wire, gid) : 0;
	if (ret != 0) {
		rte_free(group);
		return ret;
	}
	*out = group;
	return 0;
}

/* Under group_lock. */
static int
attach(struct rsoft_qp *qp, const uint8_t gid[16])
{
	struct rsoft_group *group;
	int ret;

	if (rsoft_gid_port(qp->gid_slot) != 1) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: not attached: port %u has no multicast, only port 1",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp),
				rsoft_gid_port(qp->gid_slot));
		return -EINVAL;
	}
	rsoft_lock(&rsoft_domain->lock);
	ret = find_group(qp, gid, &group);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (ret == 0 && group == NULL)
		ret = make_group(qp->dev, gid, &group);
	if (ret != 0)
		return ret > 0 ? 0 : ret;
	rsoft_lock(&rsoft_domain->lock);
	rsoft_group_add(group, qp);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return 0;
}

/* Under group_lock. */
static int
detach(struct rsoft_qp *qp, const uint8_t gid[16])
{
	struct rsoft_group *group;
	bool is_empty = false;
	int ret = -EINVAL;

	rsoft_lock(&rsoft_domain->lock);
	group = rsoft_group_find(qp->dev, gid);
	if (group != NULL && rsoft_group_has(group, qp)) {
		rsoft_group_remove(group, qp);
		is_empty = group->nb_qps == 0;
		ret = 0;
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (ret != 0)
		RSOFT_LOG(ERR, "QP 0x%06x%s: not attached to that multicast group", qp->qp.qp_num,
				RSOFT_QP_NAME(&qp->qp));
	if (!is_empty)
		return ret;
	if (qp->dev->wire != NULL)
		rwire_ud_leave(qp->dev->wire, gid);
	rte_free(group);
	return ret;
}

/* Attach or detach a QP, after the checks common to both. */
static int
change(struct rsoft_qp *qp, const uint8_t gid[16], uint16_t lid,
		int (*call)(struct rsoft_qp *qp, const uint8_t gid[16]))
{
	int ret = check_group(qp, gid, lid);

	if (ret != 0)
		return ret;
	rsoft_lock(&qp->dev->group_lock);
	ret = call(qp, gid);
	rte_ticketlock_unlock(&qp->dev->group_lock);
	return ret;
}

int
rsoft_qp_attach_mcast(struct rmem_qp *base, const uint8_t gid[16], uint16_t lid)
{
	return change((struct rsoft_qp *)base, gid, lid, attach);
}

int
rsoft_qp_detach_mcast(struct rmem_qp *base, const uint8_t gid[16], uint16_t lid)
{
	int ret = change((struct rsoft_qp *)base, gid, lid, detach);

	/* Afterwards no lcore delivers to the QP as a member of the group. */
	if (ret == 0)
		rsoft_grace_wait();
	return ret;
}
