/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The rest of the driver of doc/writing_a_driver.md, outside of the tree. check-install.sh builds
 * it from the code blocks of that page and the installed files only; it is registered and used.
 */

#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_eal.h>

static void
check(const char *call, int ret)
{
	if (ret != 0)
		rte_exit(EXIT_FAILURE, "%s: %d\n", call, ret);
}

/* A WRITE by the driver. */
static void
use(struct rmem_pd *pd, struct rmem_cq *cq)
{
	static uint8_t buffer[64];
	const struct rmem_qp_conf conf = {.send_cq = cq,
			.recv_cq = cq,
			.max_send_wr = 1,
			.max_send_sge = 1,
			.type = RMEM_QPT_RC};
	const struct rmem_qp_conn conn = {.retry_cnt = 0};
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	struct rmem_qp *qp;
	struct rmem_sge sge;
	struct rmem_mr *mr;
	struct rmem_wc wc;

	check("rmem_mr_reg",
			rmem_mr_reg(pd, buffer, sizeof(buffer), 0, RMEM_ACCESS_LOCAL_WRITE, &mr));
	check("rmem_qp_create", rmem_qp_create(pd, &conf, &qp));
	check("rmem_qp_connect", rmem_qp_connect(qp, &conn));
	sge = (struct rmem_sge){.addr = mr->iova, .length = sizeof(buffer), .lkey = mr->lkey};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	check("rmem_post_send", rmem_post_send(qp, &wr, 1) - 1);
	check("rmem_poll_cq", rmem_poll_cq(cq, &wc, 1) - 1);
	printf("null0: %s\n", rmem_wc_status_str(wc.status));
	check("status", wc.status);
	check("rmem_qp_destroy", rmem_qp_destroy(qp));
	check("rmem_mr_dereg", rmem_mr_dereg(mr));
}

int
main(int argc, char **argv)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 1};
	struct rmem_driver later = null_driver;
	struct rmem_dev *dev;
	struct rmem_cq *cq;
	struct rmem_pd *pd;

	if (rte_eal_init(argc, argv) < 0)
		rte_exit(EXIT_FAILURE, "EAL does not start\n");
	check("null_register", null_register());
	later.version++;
	check("a driver of another version", rmem_driver_register(&later) + EINVAL);

	check("rmem_dev_create", rmem_dev_create("null0", NULL, &dev));
	check("rmem_pd_alloc", rmem_pd_alloc(dev, &pd));
	check("rmem_cq_create", rmem_cq_create(dev, &conf, &cq));
	use(pd, cq);
	check("rmem_cq_destroy", rmem_cq_destroy(cq));
	check("rmem_pd_dealloc", rmem_pd_dealloc(pd));
	check("rmem_dev_close", rmem_dev_close(dev));
	return rte_eal_cleanup();
}
