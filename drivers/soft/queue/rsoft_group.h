/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Multicast groups: the UD QPs of each device that are attached to a GID.
 *
 * Invariant: a group in the list of a device has at least one QP, each once, and
 * rsoft_qp::nb_groups counts the groups that have the QP. Both change under rsoft_domain::lock.
 */

#ifndef RSOFT_GROUP_H
#define RSOFT_GROUP_H

#include "../base/rsoft.h"

#define RSOFT_MAX_GROUPS    256 /* of a device */
#define RSOFT_MAX_GROUP_QPS 240 /* of a group on a device, as mlx5 */

struct rsoft_group {
	LIST_ENTRY(rsoft_group) entry; /* in rsoft_dev::groups */
	uint8_t gid[16];
	uint32_t nb_qps;
	struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS];
};

/* The group of a device, or NULL. Under the domain's lock. */
struct rsoft_group *rsoft_group_find(const struct rsoft_dev *dev, const uint8_t gid[16]);

/* Whether a QP is in a group. Under the domain's lock. */
bool rsoft_group_has(const struct rsoft_group *group, const struct rsoft_qp *qp);

/*
 * Add a QP that is not in the group, which has space; remove one, and the group from its device
 * with the last one. Under the domain's lock.
 */
void rsoft_group_add(struct rsoft_group *group, struct rsoft_qp *qp);
void rsoft_group_remove(struct rsoft_group *group, struct rsoft_qp *qp);

/*
 * The QPs of the next device, in the order of their numbers from *dev_id on, that are attached to a
 * GID: their number, up to RSOFT_MAX_GROUP_QPS, and *dev_id is that of the following device. 0:
 * there is none. They are valid until the lcore leaves (rsoft_grace.h). has_wire: devices with a
 * wire too.
 */
uint32_t rsoft_group_next(const uint8_t gid[16], bool has_wire, unsigned int *dev_id,
		struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS]);

/* The same of one device. */
uint32_t rsoft_group_qps(const struct rsoft_dev *dev, const uint8_t gid[16],
		struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS]);

#endif /* RSOFT_GROUP_H */
