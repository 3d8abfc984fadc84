/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The domain shared by all software devices, and its grace periods; see rsoft_grace.h. */

#include <errno.h>
#include <string.h>

#include <rte_memzone.h>

#include "rsoft_grace.h"
#include "rsoft_guard.h"

#define RSOFT_DOMAIN_NAME "rmem_soft"

struct rsoft_domain *rsoft_domain;
bool (*rsoft_grace_peers_are_over)(uint64_t token);
__thread unsigned int rsoft_grace_lcore = LCORE_ID_ANY;

int
rsoft_domain_get(void)
{
	const struct rte_memzone *mz;
	struct rsoft_domain *domain;

	if (rsoft_domain != NULL)
		return 0;
	mz = rte_memzone_lookup(RSOFT_DOMAIN_NAME);
	if (mz != NULL) {
		rsoft_domain = mz->addr;
		return 0;
	}
	mz = rte_memzone_reserve(RSOFT_DOMAIN_NAME, sizeof(*domain), SOCKET_ID_ANY, 0);
	if (mz == NULL) {
		RSOFT_LOG(ERR, "state of all devices: no memory: %zu bytes", sizeof(*domain));
		return -ENOMEM;
	}
	domain = mz->addr;
	memset(domain, 0, sizeof(*domain));
	rte_ticketlock_init(&domain->lock);
	domain->grace.token = 1;
	rsoft_domain = domain;
	return 0;
}

void
rsoft_grace_register(unsigned int lcore)
{
	struct rsoft_grace *grace = &rsoft_domain->grace;
	const uint64_t bit = UINT64_C(1) << lcore % 64;
	uint32_t nb = __atomic_load_n(&grace->nb_words, __ATOMIC_RELAXED);

	while (nb <= lcore / 64 &&
			!__atomic_compare_exchange_n(&grace->nb_words, &nb, lcore / 64 + 1, true,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	/* Another thread may have registered this lcore id before. */
	if ((__atomic_fetch_or(&grace->lcores[lcore / 64], bit, __ATOMIC_RELAXED) & bit) == 0)
		__atomic_fetch_add(&grace->nb_lcores, 1, __ATOMIC_RELAXED);
	rsoft_guard_unblock();
	rsoft_grace_lcore = lcore;
}

bool
rsoft_grace_check(uint64_t token)
{
	const struct rsoft_grace *grace = &rsoft_domain->grace;
	unsigned int i, nb = __atomic_load_n(&grace->nb_words, __ATOMIC_RELAXED);

	for (i = 0; i < nb; i++) {
		uint64_t left = __atomic_load_n(&grace->lcores[i], __ATOMIC_RELAXED);

		for (; left != 0; left &= left - 1) {
			unsigned int lcore = 64 * i + (unsigned int)__builtin_ctzll(left);
			uint64_t seen = __atomic_load_n(
					&grace->lcore[lcore].token, __ATOMIC_ACQUIRE);

			if (seen != 0 && seen < token)
				return false;
		}
	}
	return __atomic_load_n(&grace->nb_peers, __ATOMIC_ACQUIRE) == 0 ||
			rsoft_grace_peers_are_over(token);
}

void
rsoft_grace_wait(void)
{
	unsigned int spins = 0;
	uint64_t token;

	/* Orders all stores before the call, of any memory order, before the loads below. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	token = __atomic_add_fetch(&rsoft_domain->grace.token, 1, __ATOMIC_RELEASE);
	while (!rsoft_grace_check(token))
		rsoft_relax(&spins);
}
