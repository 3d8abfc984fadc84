/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Protection domains. */

#include "rverbs.h"

int
rverbs_pd_alloc(struct rmem_pd *base)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_pd *pd = rverbs_pd_of(base);
	int rc;

	rc = rverbs_take(dev, &dev->nb_pd, dev->attr.orig_attr.max_pd, "protection domains");
	if (rc != 0)
		return rc;
	pd->ibv = ibv_alloc_pd(dev->context);
	rc = rverbs_err_null(pd->ibv, "ibv_alloc_pd");
	if (rc != 0)
		rverbs_give(dev, &dev->nb_pd);
	else
		base->handle = pd->ibv->handle;
	return rc;
}

int
rverbs_pd_dealloc(struct rmem_pd *base)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	int rc = rverbs_err_code(ibv_dealloc_pd(rverbs_pd_of(base)->ibv), "ibv_dealloc_pd");

	if (rc == 0)
		rverbs_give(dev, &dev->nb_pd);
	return rc;
}
