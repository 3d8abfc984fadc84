/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Device memory, which is a sealed memfd here, so that it can be exported. A memfd can't shrink, so
 * no access to the mapping raises a signal.
 *
 * Invariant: rsoft_dev::dms lists all device memory, and rsoft_dev::dm_bytes is the sum of the
 * lengths, at most max_dm_size; imported memory does not count. Both are protected by
 * rsoft_dev::lock.
 */

#ifndef RSOFT_DM_H
#define RSOFT_DM_H

#include "../base/rsoft.h"

struct rsoft_dm {
	struct rmem_dm dm;
	uint8_t *bytes; /* mapping, of whole pages */
	int fd;         /* of the memfd; -1: private memory */
	dev_t dev;      /* of the memfd: the program may have closed the descriptor */
	ino_t ino;      /* the same */
	bool is_imported;
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
