/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Groups of test-groups: on-demand paging, and advice. */

#include <sys/mman.h>

#include "groups.h"

static uint8_t *pages; /* two, of odp */
static struct ibv_mr *odp;

static int
advise(uint32_t lkey, enum ibv_advise_mr_advice advice)
{
	struct ibv_sge sge = {(uintptr_t)pages, 2 * SIZE, lkey};

	return ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static void
advice(void)
{
	result("odp advise", advise(odp->lkey, IBV_ADVISE_MR_ADVICE_PREFETCH));
	result("odp advise for writing", advise(odp->lkey, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE));
	result("odp advise of an MR not on demand",
			advise(mr->lkey, IBV_ADVISE_MR_ADVICE_PREFETCH));
	result("odp advise of no MR",
			advise(odp->lkey ^ 0xff00, IBV_ADVISE_MR_ADVICE_PREFETCH) != 0 ? EINVAL
										       : 0);
	result("odp unknown advice", advise(odp->lkey, (enum ibv_advise_mr_advice)99));
}

/* WRITE 64 bytes. */
static void
copy(const char *name, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	result(name,
			post_write_to(qps[0], (struct ibv_sge){(uintptr_t)from, 64, lkey},
					(uintptr_t)to, rkey, 1));
}

static void
transfers(void)
{
	if (!pair(IBV_QPT_RC, NULL, "odp create", "odp connect"))
		return;
	memset(pages, 21, SIZE);
	copy("odp write from", pages, odp->lkey, buf, mr->rkey);
	completion("odp completion");
	step("odp data", "%s", memcmp(pages, buf, 64) == 0 ? "ok" : "wrong");
	copy("odp write to", buf, mr->lkey, pages + SIZE, odp->rkey);
	completion("odp completion");
	step("odp data", "%s", memcmp(buf, pages + SIZE, 64) == 0 ? "ok" : "wrong");
	/* Other pages at these addresses. */
	HOLDS(madvise(pages, 2 * SIZE, MADV_DONTNEED) == 0);
	memset(pages, 22, SIZE);
	copy("odp write from other pages", pages, odp->lkey, buf, mr->rkey);
	completion("odp completion");
	step("odp data", "%s", buf[0] == 22 && buf[63] == 22 ? "ok" : "wrong");
	unpair("odp destroy");
}

void
paging(void)
{
	struct ibv_device_attr_ex attr;

	HOLDS(ibv_query_device_ex(context, NULL, &attr) == 0);
	step("odp write and receive of RC", "%s",
			(~attr.odp_caps.per_transport_caps.rc_odp_caps &
					(IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_RECV)) == 0
					? "yes"
					: "no");
	pages = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(pages != MAP_FAILED);
	odp = ibv_reg_mr(pd, pages, 2 * SIZE,
			IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	created("odp reg", odp);
	if (odp == NULL)
		return;
	advice();
	transfers();
	result("odp dereg", ibv_dereg_mr(odp));
	munmap(pages, 2 * SIZE);
}
