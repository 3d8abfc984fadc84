/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions that refuse objects of rmem with EOPNOTSUPP: libibverbs must not get these objects. */

#include <errno.h>

#include "ribv.h"

/* Define a function; the argument `object` decides whether the call is for rmem or libibverbs. */
#define REFUSE_INT(name, object, params, args)                                                     \
	int name params                                                                            \
	{                                                                                          \
		if (ribv_is_real(object))                                                          \
			return RIBV_NEXT(name) args;                                               \
		return ribv_is_##object(object) ? EOPNOTSUPP : ENOENT;                             \
	}

REFUSE_INT(ibv_resolve_eth_l2_from_gid, context,
		(struct ibv_context * context, struct ibv_ah_attr *attr,
				uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid),
		(context, attr, mac, vid))
