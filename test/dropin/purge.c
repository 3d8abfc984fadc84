/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * An allocator that gives registered memory back to the kernel: buffers are freed while they are
 * registered, memory of calloc() is zero, and a WRITE to the next buffer arrives. Run by
 * devtools/gallery.sh with allocators that purge at once.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "../holds.h"
#include "connect_qp.h"
#include "open_device.h"
#include "wait_wc.h"

#define SIZE   ((size_t)1 << 20)
#define ROUNDS 32
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void
expect_zero(const uint8_t *bytes)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		HOLDS(bytes[i] == 0);
}

static void
write_to(uint8_t *to, uint8_t *from)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, to, SIZE, ACCESS),
		      *of_from = ibv_reg_mr(pd, from, SIZE, 0);
	struct ibv_sge sge = {(uintptr_t)from, SIZE, 0};
	struct ibv_send_wr *bad,
			wr = {.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED};

	HOLDS(mr != NULL && of_from != NULL);
	sge.lkey = of_from->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = mr->rkey;
	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(memcmp(to, from, SIZE) == 0);
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(of_from) == 0);
}

int
main(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_context *context;
	struct ibv_mr *mr;
	uint8_t *old, *new, *from = malloc(SIZE);
	int i;

	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	HOLDS(from != NULL && pd != NULL && cq != NULL);
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	HOLDS(qp != NULL);
	connect_own(qp);
	for (i = 0; i < ROUNDS; i++) {
		old = malloc(SIZE);
		HOLDS(old != NULL);
		memset(old, 0xff, SIZE);
		mr = ibv_reg_mr(pd, old, SIZE, ACCESS);
		HOLDS(mr != NULL);
		free(old);
		new = calloc(1, SIZE);
		HOLDS(new != NULL);
		expect_zero(new);
		HOLDS(ibv_dereg_mr(mr) == 0);
		memset(from, i + 1, SIZE);
		write_to(new, from);
		free(new);
	}
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
	free(from);
	return 0;
}
