/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of verbs calls over those of the class, on the same objects:
 * dropin_write64_burst32: ibv_post_send() and ibv_poll_cq() over rmem_post_send() and
 * rmem_poll_cq(), bursts of 32 signaled WRITEs of 64 bytes; at most 3 times.
 * dropin_reg_mr: ibv_reg_mr() and ibv_dereg_mr() over rmem_mr_reg() and rmem_mr_dereg(); at most
 * 1.2 times.
 * The library is part of this program, so that the objects of both sides are the same.
 * Argument: the row. The best of many rounds counts, the two sides in turn.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "connect_qp.h"
#include "open_device.h"
#include "verbs/ribv.h"

#define BURST  32
#define SIZE   64
#define ROUNDS 400
#define REPEAT 200

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t buf[2][BURST][SIZE];
static struct ibv_send_wr wrs[BURST];
static struct rmem_send_wr own_wrs[BURST];
static struct ibv_sge sges[BURST];

/* One QP, connected to itself. */
static void
create(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {2 * BURST, 1, 1, 1, SIZE}};

	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 2 * BURST, NULL, NULL, 0);
	mr = (ibv_reg_mr)(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	HOLDS(pd != NULL && cq != NULL && mr != NULL);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	HOLDS(qp != NULL);
	connect_qp(qp,
			(struct ibv_qp_attr){.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
					.path_mtu = IBV_MTU_4096,
					.dest_qp_num = qp->qp_num,
					.retry_cnt = 7,
					.rnr_retry = 7});
}

/* Fill the requests of both sides: WRITEs from the first half of the buffer to the second. */
static void
fill(void)
{
	int i;

	for (i = 0; i < BURST; i++) {
		sges[i] = (struct ibv_sge){(uintptr_t)buf[0][i], SIZE, mr->lkey};
		wrs[i].sg_list = &sges[i];
		wrs[i].num_sge = 1;
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].send_flags = IBV_SEND_SIGNALED;
		wrs[i].wr.rdma.remote_addr = (uintptr_t)buf[1][i];
		wrs[i].wr.rdma.rkey = mr->rkey;
		wrs[i].next = i + 1 < BURST ? &wrs[i + 1] : NULL;
		own_wrs[i].sg_list = (const struct rmem_sge *)(const void *)&sges[i];
		own_wrs[i].num_sge = 1;
		own_wrs[i].opcode = RMEM_WR_RDMA_WRITE;
		own_wrs[i].flags = RMEM_SEND_SIGNALED;
		own_wrs[i].rdma.remote_addr = (uintptr_t)buf[1][i];
		own_wrs[i].rdma.rkey = mr->rkey;
	}
}

static void
write_verbs(void)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wcs[BURST];
	int i, n;

	HOLDS(ibv_post_send(qp, wrs, &bad) == 0);
	for (i = 0; i < BURST; i += n) {
		n = ibv_poll_cq(cq, BURST, wcs);
		HOLDS(n >= 0 && (n == 0 || wcs[0].status == IBV_WC_SUCCESS));
	}
}

static void
write_class(void)
{
	struct rmem_qp *own_qp = ((struct ribv_qp *)qp)->qp;
	struct rmem_cq *own_cq = ((struct ribv_cq *)cq)->cq;
	struct rmem_wc wcs[BURST];
	int i, n;

	HOLDS(rmem_post_send(own_qp, own_wrs, BURST) == BURST);
	for (i = 0; i < BURST; i += n) {
		n = rmem_poll_cq(own_cq, wcs, BURST);
		HOLDS(n >= 0 && (n == 0 || wcs[0].status == RMEM_WC_SUCCESS));
	}
}

static void
reg_verbs(void)
{
	struct ibv_mr *one = (ibv_reg_mr)(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	HOLDS(one != NULL && ibv_dereg_mr(one) == 0);
}

static void
reg_class(void)
{
	struct rmem_mr *one;

	HOLDS(rmem_mr_reg(((struct ribv_pd *)pd)->pd, buf, sizeof(buf), (uintptr_t)buf,
			      RMEM_ACCESS_LOCAL_WRITE, &one) == 0);
	HOLDS(rmem_mr_dereg(one) == 0);
}

/* The ns of one call, of REPEAT in a row. */
static double
measure(void (*call)(void))
{
	struct timespec begin, end;
	int i;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 0; i < REPEAT; i++)
		call();
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
			REPEAT;
}

/* The function of libibverbs. */
static void (*next(const char *name))(void)
{
	union {
		void *object;
		void (*function)(void);
	} found = {.object = dlsym(RTLD_NEXT, name)};

	return found.function;
}

int
main(int argc, char **argv)
{
	const bool is_write = argc == 2 && strcmp(argv[1], "dropin_write64_burst32") == 0;
	const double bar = is_write ? 3 : 1.2;
	const int nb = is_write ? BURST : 1;
	double verbs = 1e12, own = 1e12;
	int i;

	if (!is_write && (argc != 2 || strcmp(argv[1], "dropin_reg_mr") != 0))
		return 2;
	ribv_core_init(next);
	create();
	fill();
	write_verbs(); /* registers the thread */
	for (i = 0; i < ROUNDS; i++) {
		verbs = RTE_MIN(verbs, measure(is_write ? write_verbs : reg_verbs));
		own = RTE_MIN(own, measure(is_write ? write_class : reg_class));
	}
	printf("%s: verbs %.1f ns, rmem %.1f ns, ratio %.2f (bar %.1f)\n", argv[1], verbs / nb,
			own / nb, verbs / own, bar);
	return verbs <= bar * own ? 0 : 1;
}
