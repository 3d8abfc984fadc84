/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Thread domains and parent domains. Locks are still taken: a thread domain only promises that they
 * are not needed. A parent domain is another handle of its PD.
 */

#include <errno.h>

#include "ribv.h"

static bool
is_td(const struct ibv_td *td)
{
	return ribv_slot(td, RIBV_TD) != 0 && td->context == ((const struct ribv_td *)td)->context;
}

struct ibv_td *
ribv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ribv_td *td;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (attr == NULL || attr->comp_mask != 0)
		return ribv_fail(EINVAL);
	td = ribv_new();
	if (td == NULL)
		return NULL;
	td->ibv.context = td->context = context;
	ribv_enter(td, RIBV_TD);
	return &td->ibv;
}

int
ribv_dealloc_td(struct ibv_td *ibv)
{
	struct ribv_td *td = (struct ribv_td *)ibv;

	if (!is_td(ibv))
		return ribv_leave_inherited(ibv, RIBV_TD);
	if (__atomic_load_n(&td->refs, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	ribv_leave(td);
	return 0;
}

struct ibv_pd *
ribv_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct ribv_pd *pd, *own;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (attr == NULL || !ribv_is_pd(attr->pd))
		return ribv_fail(EINVAL);
	own = (struct ribv_pd *)attr->pd;
	if (own->parent != NULL || own->context != context ||
			(attr->td != NULL && (!is_td(attr->td) || attr->td->context != context)))
		return ribv_fail(EINVAL);
	/* Devices of rmem do not use the program's allocators. */
	if ((attr->comp_mask &
			    ~(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
					    IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) != 0)
		return ribv_fail(EOPNOTSUPP);
	pd = ribv_new();
	if (pd == NULL)
		return NULL;
	pd->ibv.context = pd->context = context;
	pd->pd = own->pd;
	pd->parent = own;
	pd->td = (struct ribv_td *)attr->td;
	__atomic_fetch_add(&own->refs, 1, __ATOMIC_RELAXED);
	if (pd->td != NULL)
		__atomic_fetch_add(&pd->td->refs, 1, __ATOMIC_RELAXED);
	pd->ibv.handle = pd->handle = ribv_enter(pd, RIBV_PD);
	return &pd->ibv;
}

void
ribv_parent_domain_free(struct ribv_pd *pd)
{
	__atomic_fetch_sub(&pd->parent->refs, 1, __ATOMIC_RELEASE);
	if (pd->td != NULL)
		__atomic_fetch_sub(&pd->td->refs, 1, __ATOMIC_RELEASE);
	ribv_leave(pd);
}
