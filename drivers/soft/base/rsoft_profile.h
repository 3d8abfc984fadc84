/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Profiles: the software device with the limits of a device of the verbs driver.
 *
 * A profile only removes capabilities, access rights, and the upper part of the ranges of
 * arguments. So a program that runs on a device with a profile also runs on one without, except
 * that profile=mlx5 has equal lkeys and rkeys unless keys=different is set.
 */

#ifndef RSOFT_PROFILE_H
#define RSOFT_PROFILE_H

#include <stdbool.h>

#include "rsoft.h"

struct rsoft_profile {
	uint64_t capa;         /* RMEM_DEV_CAPA_* that remain */
	uint64_t max_msg_size; /* bytes per message */
	uint32_t access;       /* RMEM_ACCESS_* that MRs may have */
	bool is_iova_aligned;  /* address and iova of an MR have the same offset in a page */
	struct rsoft_args max; /* highest values of arguments; 0: no limit; default of keys= */
};

/* Profiles by enum rsoft_profile_arg. */
extern const struct rsoft_profile rsoft_profiles[RSOFT_PROFILE_NB];

static inline const struct rsoft_profile *
rsoft_profile_of(const struct rsoft_dev *dev)
{
	return &rsoft_profiles[dev->args.profile];
}

/* Whether the device has a profile, which adds the rules of the verbs driver. */
static inline bool
rsoft_has_profile(const struct rsoft_dev *dev)
{
	return dev->args.profile != RSOFT_PROFILE_NONE;
}

#endif /* RSOFT_PROFILE_H */
