/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program of test_sweep.py that takes failures wrongly: without an MR it crashes, a failed
 * WRITE leaves wrong results in its file, and with hang, it waits forever for a QP. All others it
 * reports.
 *
 * usage: sweep FILE [hang]
 */

#include "own_qp.h"

static char buf[64] = "right";

int
main(int argc, char **argv)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	FILE *file;

	if (argc < 2 || pd == NULL || cq == NULL)
		return 1;
	mr = ibv_reg_mr(pd, buf, sizeof(buf), WRITABLE);
	qp = create_rc(pd, cq, 4);
	while (qp == NULL && argc > 2)
		pause();
	HOLDS(qp != NULL);
	connect_own(qp);
	if (post_write(qp, mr, 0) == 0)
		wait_wc(qp->send_cq);
	file = fopen(argv[1], "w");
	return file == NULL || fprintf(file, "%s\n", buf + 32) < 0 || fclose(file) != 0;
}
