/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A program outside the tree, built by check-install.sh from what is installed and nothing
 * else: one device, one registered region, one registered pool.
 */

#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_eal.h>

#include <rmem.h>
#include <rmem_pool.h>

static void
check(const char *call, int ret)
{
	if (ret != 0)
		rte_exit(EXIT_FAILURE, "%s: %d\n", call, ret);
}

int
main(int argc, char **argv)
{
	static char buffer[4096];
	const struct rmem_pool_conf conf = {
			.name = "consumer",
			.nb_bufs = 64,
			.buf_size = 256,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};
	struct rmem_pool *pool;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_mr *mr;

	if (rte_eal_init(argc, argv) < 0)
		rte_exit(EXIT_FAILURE, "EAL does not start\n");

	check("rmem_dev_create", rmem_dev_create("soft0", NULL, &dev));
	check("rmem_pd_alloc", rmem_pd_alloc(dev, &pd));
	check("rmem_mr_reg",
			rmem_mr_reg(pd, buffer, sizeof(buffer), 0, RMEM_ACCESS_LOCAL_WRITE, &mr));
	check("rmem_pool_create", rmem_pool_create(pd, &conf, &pool));
	printf("%s: a region of %zu bytes has lkey 0x%08x\n", dev->name, mr->length, mr->lkey);

	check("rmem_pool_destroy", rmem_pool_destroy(pool));
	check("rmem_mr_dereg", rmem_mr_dereg(mr));
	check("rmem_pd_dealloc", rmem_pd_dealloc(pd));
	check("rmem_dev_close", rmem_dev_close(dev));
	return rte_eal_cleanup();
}
