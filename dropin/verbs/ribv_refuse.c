/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions that refuse objects of rmem with EOPNOTSUPP. libibverbs must not
 * see these objects. */

#include <errno.h>

#include "ribv.h"

/* The argument named first, with the name of its type, decides whose call it
 * is. */
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

#ifdef RIBV_HAS_COMP_CNTR

REFUSE_INT(_ibv_query_comp_cntr_caps, context,
		(struct ibv_context * context, struct ibv_comp_cntr_caps *caps, size_t caps_size),
		(context, caps, caps_size))
REFUSE_INT(ibv_qp_attach_comp_cntr, qp,
		(struct ibv_qp * qp, struct ibv_comp_cntr *comp_cntr,
				struct ibv_qp_attach_comp_cntr_attr *attr),
		(qp, comp_cntr, attr))

struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *cc_attr)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_create_comp_cntr)(context, cc_attr);
	return ribv_fail(ribv_is_context(context) ? EOPNOTSUPP : ENOENT);
}

/* A function of a counter: there is none of rmem. */
#define REFUSE_CNTR(name, params, args)                                                            \
	int name params                                                                            \
	{                                                                                          \
		return ribv_is_real(comp_cntr) ? RIBV_NEXT(name) args : ENOENT;                    \
	}

REFUSE_CNTR(ibv_destroy_comp_cntr, (struct ibv_comp_cntr * comp_cntr), (comp_cntr))
REFUSE_CNTR(ibv_set_comp_cntr, (struct ibv_comp_cntr * comp_cntr, uint64_t value),
		(comp_cntr, value))
REFUSE_CNTR(ibv_set_err_comp_cntr, (struct ibv_comp_cntr * comp_cntr, uint64_t value),
		(comp_cntr, value))
REFUSE_CNTR(ibv_inc_comp_cntr, (struct ibv_comp_cntr * comp_cntr, uint64_t amount),
		(comp_cntr, amount))
REFUSE_CNTR(ibv_inc_err_comp_cntr, (struct ibv_comp_cntr * comp_cntr, uint64_t amount),
		(comp_cntr, amount))
REFUSE_CNTR(ibv_read_comp_cntr, (struct ibv_comp_cntr * comp_cntr, uint64_t *value),
		(comp_cntr, value))
REFUSE_CNTR(ibv_read_err_comp_cntr, (struct ibv_comp_cntr * comp_cntr, uint64_t *value),
		(comp_cntr, value))

#endif /* RIBV_HAS_COMP_CNTR */
