/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The key of the previous access; see rsoft_key_cache.h. */

#include "rsoft_key_cache.h"

struct rsoft_odp *
rsoft_key_cache_odp(const struct rsoft_key *key)
{
	/* A counter that is bound from now on waits for the end of this section. */
	if (key->kind != RSOFT_KIND_ODP || key->qp_serial != 0 || !key->odp->is_guarded ||
			__atomic_load_n(&key->mr->counter, __ATOMIC_ACQUIRE) != NULL)
		return NULL;
	return key->odp;
}
