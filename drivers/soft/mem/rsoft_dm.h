/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Device memory, which is DPDK memory of the process here.
 *
 * Invariant: rsoft_dev::dms lists all device memory, and rsoft_dev::dm_bytes is the sum of its
 * lengths, at most max_dm_size. Both are protected by rsoft_dev::lock.
 */

#ifndef RSOFT_DM_H
#define RSOFT_DM_H

#include "../base/rsoft.h"

struct rsoft_dm {
	struct rmem_dm dm;
	uint8_t *bytes;
	LIST_ENTRY(rsoft_dm) entry;
};

static_assert(offsetof(struct rsoft_dm, dm) == 0, "the class has its address");

extern const struct rmem_dm_ops rsoft_dm_ops;

static inline struct rsoft_dm *
rsoft_dm_of(struct rmem_dm *dm)
{
	return (struct rsoft_dm *)dm;
}

#endif /* RSOFT_DM_H */
