/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Multicast groups: the UD QPs of each device that are attached to a GID.
 *
 * Invariant: a group in the list of a device has at least one QP, and each QP once.
 * rsoft_qp::nb_groups is the number of groups that a QP is in. Both change under
 * rsoft_domain::lock.
 */

#ifndef RSOFT_GROUP_H
#define RSOFT_GROUP_H

#include "../base/rsoft.h"

#define RSOFT_MAX_GROUPS    256 /* groups per device */
#define RSOFT_MAX_GROUP_QPS 240 /* QPs of a device per group, as mlx5 */

struct rsoft_group {
	LIST_ENTRY(rsoft_group) entry; /* in rsoft_dev::groups */
	uint8_t gid[16];
	uint32_t nb_qps;
	struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS];
};

/* Find the group of a device, or NULL. Under the domain's lock. */
struct rsoft_group *rsoft_group_find(const struct rsoft_dev *dev, const uint8_t gid[16]);

/* Whether a QP is in a group. Under the domain's lock. */
bool rsoft_group_has(const struct rsoft_group *group, const struct rsoft_qp *qp);

/*
 * Add a QP that is not in the group, which has a free entry; or remove a QP, and the group from its
 * device with the last one. Under the domain's lock.
 */
void rsoft_group_add(struct rsoft_group *group, struct rsoft_qp *qp);
void rsoft_group_remove(struct rsoft_group *group, struct rsoft_qp *qp);

/*
 * Get the attached QPs of port 1 of the next device, in the order of device numbers from *dev_id
 * on. Return their number, up to RSOFT_MAX_GROUP_QPS, and set *dev_id to the following device; 0:
 * there are no more. The QPs are valid until the lcore leaves (rsoft_grace.h). has_wire: include
 * devices with a wire.
 */
uint32_t rsoft_group_next(const uint8_t gid[16], bool has_wire, unsigned int *dev_id,
		struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS]);

/* The same for one device. */
uint32_t rsoft_group_qps(const struct rsoft_dev *dev, const uint8_t gid[16],
		struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS]);

#endif /* RSOFT_GROUP_H */
