/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mode fastreg: buffers of the pool are opened to the peer one by one by REG_MR, written to, and
 * closed by LOCAL_INV before they go back (cycle.h). One operation is one such cycle.
 */

#include <errno.h>

#include "cycle.h"

static int
fastreg_fill(struct testrmem_pair *pair, struct cycle_train *train, uint32_t nb)
{
	RTE_SET_USED(pair);
	RTE_SET_USED(train);
	/* The sources are as the ring was filled. */
	return (int)nb;
}

static const struct cycle_ops fastreg_cycle_ops = {
		.fill = fastreg_fill,
};

static int
fastreg_setup(struct testrmem_pair *pair)
{
	return cycle_setup(pair, &fastreg_cycle_ops);
}

static int
fastreg_finish(struct testrmem_session *session)
{
	int ret = cycle_try_revoked(session);

	if (ret < 0)
		return ret;
	printf("revoked key refused: %s\n", ret == 1 ? "yes" : "NO");
	if (ret == 1)
		return 0;
	testrmem_fail(session, "a WRITE through a revoked rkey was not refused as REM_ACCESS_ERR");
	return -EIO;
}

const struct testrmem_engine testrmem_engine_fastreg = {
		.name = "fastreg",
		.help = "REG_MR, WRITE by the peer and LOCAL_INV for each buffer",
		.verified = "a last burst of each QP pair arrived",
		.capa = RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV,
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.has_fast_reg = true,
		.setup = fastreg_setup,
		.burst = cycle_burst,
		.verify = cycle_verify,
		.finish = fastreg_finish,
		.teardown = cycle_teardown,
};
