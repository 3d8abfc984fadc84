/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Protection domains. */

#include <errno.h>
#include <stdlib.h>

#include "rverbs_range.h"

#define RVERBS_PARK_SIZE 4096

int
rverbs_pd_alloc(struct rmem_pd *base)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_pd *pd = rverbs_pd_of(base);
	int ret;

	pd->ibv = ibv_alloc_pd(dev->context);
	ret = rverbs_err_null(pd->ibv, "ibv_alloc_pd");
	if (ret != 0)
		return ret;
	base->handle = pd->ibv->handle;
	rverbs_range_init(pd);
	return 0;
}

static int
pd_unpark(struct ibv_mr *park)
{
	void *page = park->addr;
	int ret = rverbs_err_code(ibv_dereg_mr(park), RVERBS_ERR_RELEASE, "ibv_dereg_mr");

	if (ret == 0)
		free(page);
	return ret;
}

int
rverbs_pd_park(struct rmem_pd *base)
{
	struct rverbs_pd *pd = rverbs_pd_of(base);
	struct ibv_mr *park, *none = NULL;
	void *page;
	int ret;

	if (__atomic_load_n(&pd->park, __ATOMIC_ACQUIRE) != NULL)
		return 0;
	page = aligned_alloc(RVERBS_PARK_SIZE, RVERBS_PARK_SIZE);
	if (page == NULL) {
		RVERBS_LOG(ERR, "PD: no memory for a page");
		return -ENOMEM;
	}
	park = ibv_reg_mr_iova2(pd->ibv, page, RVERBS_PARK_SIZE, (uintptr_t)page,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_MW_BIND);
	ret = rverbs_err_null(park, "ibv_reg_mr of a page for windows");
	if (ret != 0) {
		free(page);
		return ret;
	}
	if (!__atomic_compare_exchange_n(&pd->park, &none, park, false, __ATOMIC_ACQ_REL,
			    __ATOMIC_ACQUIRE)) /* another thread did it concurrently */
		return pd_unpark(park) == 0 ? 0 : -EIO;
	return 0;
}

int
rverbs_pd_dealloc(struct rmem_pd *base)
{
	struct rverbs_pd *pd = rverbs_pd_of(base);
	int ret = 0;

	if (pd->park != NULL)
		ret = pd_unpark(pd->park);
	if (ret != 0)
		return ret;
	pd->park = NULL;
	ret = rverbs_err_code(ibv_dealloc_pd(pd->ibv), RVERBS_ERR_RELEASE, "ibv_dealloc_pd");
	if (ret == 0)
		rverbs_range_fini(pd);
	return ret;
}
