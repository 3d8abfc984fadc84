/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pages come and go below MRs, on demand or not, while an lcore writes and reads through them:
 * requests succeed or end with an access error, never with a signal, and those over pages that stay
 * mapped all succeed (design.md, 4).
 */

#include <string.h>
#include <sys/mman.h>

#include "fixture_odp.h"

#define ROUNDS 2000u

/* A thread sanitizer reports the rule that plain MRs' memory stays mapped, as it should. */
#ifdef __SANITIZE_THREAD__
#define MAY_RACE false
#else
#define MAY_RACE true
#endif

/* Changes of the pages by the other thread. */
enum change {
	CHANGE_DISCARD,
	CHANGE_REPLACE,
	CHANGE_PROTECT,
	CHANGE_UNMAP,
	CHANGE_NB,
};

static struct {
	enum change change;
	uint32_t nb_done;    /* requests; atomic */
	uint32_t nb_refused; /* by the writer */
	uint32_t is_stopped; /* atomic */
	bool is_plain;       /* the MR is not on demand */
} race;

static bool
is_mapped_throughout(void)
{
	return race.change == CHANGE_DISCARD || race.change == CHANGE_REPLACE;
}

/* Sizes of each way to copy, over one page and over several. */
static void
run_requests(void *arg)
{
	static const uint32_t sizes[] = {8, 64, 500, 2000, FX_PAGE, FX_ODP_SIZE};
	uint32_t i, size;
	int status;

	RTE_SET_USED(arg);
	for (i = 0; !__atomic_load_n(&race.is_stopped, __ATOMIC_ACQUIRE); i++) {
		size = sizes[i % RTE_DIM(sizes)];
		status = fx_odp_do(
				i & 1 ? FX_ODP_READ_FROM : FX_ODP_WRITE_TO, fx_odp.mr->iova, size);
		if (status != RMEM_WC_SUCCESS) {
			TEST_STATUS(status, RMEM_WC_REM_ACCESS_ERR);
			TEST_ASSERT(!is_mapped_throughout());
			race.nb_refused++;
			fx_reconnect();
		}
		__atomic_fetch_add(&race.nb_done, 1, __ATOMIC_RELEASE);
	}
}

static void
change_pages(uint32_t page)
{
	switch (race.change) {
	case CHANGE_DISCARD:
		TEST_OK(madvise(fx_odp_page(page), 2 * FX_PAGE, MADV_DONTNEED));
		return;
	case CHANGE_REPLACE:
		TEST_OK(fx_odp_map(page));
		return;
	case CHANGE_PROTECT:
		TEST_OK(fx_odp_protect(page, PROT_NONE));
		TEST_OK(fx_odp_protect(page, PROT_READ));
		TEST_OK(fx_odp_protect(page, PROT_READ | PROT_WRITE));
		return;
	default:
		TEST_OK(fx_odp_unmap(page));
		TEST_OK(fx_odp_map(page));
		return;
	}
}

/* At least so many rounds, and until a request ran during each hundred of them. */
static void
run_changes(void)
{
	unsigned int spins = 0;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		change_pages(i % (FX_ODP_PAGES - 1));
		if (i % 20 == 0)
			fx_relax(&spins);
	}
	FX_AWAIT(__atomic_load_n(&race.nb_done, __ATOMIC_ACQUIRE) >= ROUNDS / 100);
}

static void
race_with(enum change change, bool is_plain)
{
	int result;

	fx_need_workers(1);
	memset(&race, 0, sizeof(race));
	race.change = change;
	race.is_plain = is_plain;
	fx_launch(run_requests, &race, sizeof(race), 1);
	result = TEST_TRY(run_changes());
	__atomic_store_n(&race.is_stopped, 1, __ATOMIC_RELEASE);
	fx_join(1);
	TEST_EQ(result, TEST_SUCCESS);
	/* When all is mapped again all of it is reached. */
	TEST_STATUS(fx_odp_write(0, FX_ODP_SIZE), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp.mem, fx.b.buf, FX_ODP_SIZE);
	/* A failed request found one page unmapped, or two of them in turn. */
	TEST_ASSERT(race.is_plain || fx_stats(fx_odp.mr).failed_faults >= race.nb_refused);
}

TEST_CALL(odp_race, pages_are_discarded_below_requests, race_with(CHANGE_DISCARD, false));
TEST_CALL(odp_race, pages_are_replaced_below_requests, race_with(CHANGE_REPLACE, false));
TEST_CALL(odp_race, pages_are_protected_below_requests, race_with(CHANGE_PROTECT, false));
TEST_CALL(odp_race, pages_are_unmapped_below_requests, race_with(CHANGE_UNMAP, false));

/* Memory of plain MRs is unmapped, against the rule: errors, no signals. */
static void
race_with_plain(enum change change)
{
	fx_need_guard();
	TEST_SKIP_IF(!MAY_RACE, "a thread sanitizer reports the race");
	fx_odp.mr = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, FX_ACCESS);
	race_with(change, true);
}

TEST_CALL(odp_race, pages_of_plain_mrs_are_protected_below_requests,
		race_with_plain(CHANGE_PROTECT));
TEST_CALL(odp_race, pages_of_plain_mrs_are_unmapped_below_requests, race_with_plain(CHANGE_UNMAP));

TEST_SUITE(odp_race, fx_setup_odp, fx_teardown);
