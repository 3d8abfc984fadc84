/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The domain that all software devices share, and its grace periods; see rsoft_grace.h. */

#include <errno.h>
#include <string.h>

#include <rte_memzone.h>

#include "rsoft_grace.h"
#include "rsoft_guard.h"

#define RSOFT_DOMAIN_NAME "rmem_soft"

struct rsoft_domain *rsoft_domain;
__thread unsigned int rsoft_grace_lcore = LCORE_ID_ANY;

int
rsoft_domain_get(void)
{
	size_t head = RTE_ALIGN_CEIL(sizeof(struct rsoft_domain), RTE_CACHE_LINE_SIZE);
	size_t size = head + rte_rcu_qsbr_get_memsize(RTE_MAX_LCORE);
	const struct rte_memzone *mz;
	struct rsoft_domain *domain;

	if (rsoft_domain != NULL)
		return 0;
	mz = rte_memzone_lookup(RSOFT_DOMAIN_NAME);
	if (mz != NULL) {
		rsoft_domain = mz->addr;
		return 0;
	}
	mz = rte_memzone_reserve(RSOFT_DOMAIN_NAME, size, SOCKET_ID_ANY, 0);
	if (mz == NULL) {
		RSOFT_LOG(ERR, "no memory for the %zu bytes that devices share", size);
		return -ENOMEM;
	}
	domain = mz->addr;
	memset(domain, 0, size);
	rte_ticketlock_init(&domain->lock);
	domain->qsbr = RTE_PTR_ADD(mz->addr, head);
	rte_rcu_qsbr_init(domain->qsbr, RTE_MAX_LCORE);
	rsoft_domain = domain;
	return 0;
}

void
rsoft_grace_register(unsigned int lcore)
{
	/* It can't fail: the lcore number is below the maximum given to init. */
	rte_rcu_qsbr_thread_register(rsoft_domain->qsbr, lcore);
	rsoft_guard_unblock();
	rsoft_grace_lcore = lcore;
}

void
rsoft_grace_wait(void)
{
	/* All stores before the call, of any memory order, are ordered before the loads. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	rte_rcu_qsbr_synchronize(rsoft_domain->qsbr, RTE_QSBR_THRID_INVALID);
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* as in rsoft_grace_check() */
}
