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

#include "own_qp.h"
#include "verbs/ribv.h"

#define BURST  32
#define SIZE   64
#define ROUNDS 400
#define REPEAT 200

static struct objects own;
static uint8_t buf[2][BURST][SIZE];
static struct ibv_send_wr wrs[BURST];
static struct rmem_send_wr own_wrs[BURST];
static struct ibv_sge sges[BURST];

/* Fill the requests of both sides: WRITEs from the first half of the buffer to the second. */
static void
fill(void)
{
	int i;

	for (i = 0; i < BURST; i++) {
		sges[i] = (struct ibv_sge){(uintptr_t)buf[0][i], SIZE, own.mr->lkey};
		wrs[i].sg_list = &sges[i];
		wrs[i].num_sge = 1;
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].send_flags = IBV_SEND_SIGNALED;
		wrs[i].wr.rdma.remote_addr = (uintptr_t)buf[1][i];
		wrs[i].wr.rdma.rkey = own.mr->rkey;
		wrs[i].next = i + 1 < BURST ? &wrs[i + 1] : NULL;
		own_wrs[i].sg_list = (const struct rmem_sge *)(const void *)&sges[i];
		own_wrs[i].num_sge = 1;
		own_wrs[i].opcode = RMEM_WR_RDMA_WRITE;
		own_wrs[i].flags = RMEM_SEND_SIGNALED;
		own_wrs[i].rdma.remote_addr = (uintptr_t)buf[1][i];
		own_wrs[i].rdma.rkey = own.mr->rkey;
	}
}

static void
write_verbs(void)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wcs[BURST];
	int i, n;

	HOLDS(ibv_post_send(own.qp, wrs, &bad) == 0);
	for (i = 0; i < BURST; i += n) {
		n = ibv_poll_cq(own.cq, BURST, wcs);
		HOLDS(n >= 0 && (n == 0 || wcs[0].status == IBV_WC_SUCCESS));
	}
}

static void
write_class(void)
{
	struct rmem_qp *own_qp = ((struct ribv_qp *)own.qp)->qp;
	struct rmem_cq *own_cq = ((struct ribv_cq *)own.cq)->cq;
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
	struct ibv_mr *one = (ibv_reg_mr)(own.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	HOLDS(one != NULL && ibv_dereg_mr(one) == 0);
}

static void
reg_class(void)
{
	struct rmem_mr *one;

	HOLDS(rmem_mr_reg(((struct ribv_pd *)own.pd)->pd, buf, sizeof(buf), (uintptr_t)buf,
			      RMEM_ACCESS_LOCAL_WRITE, &one) == 0);
	HOLDS(rmem_mr_dereg(one) == 0);
}

/* The ns of one call, of REPEAT in a row. */
static double
measure(void (*call)(void))
{
	uint64_t begin = now_ns();
	int i;

	for (i = 0; i < REPEAT; i++)
		call();
	return (double)(now_ns() - begin) / REPEAT;
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
	double verbs = 1e12, class = 1e12;
	int i;

	if (!is_write && (argc != 2 || strcmp(argv[1], "dropin_reg_mr") != 0))
		return 2;
	ribv_core_init(next);
	own = open_objects(buf, sizeof(buf), 2 * BURST);
	fill();
	write_verbs(); /* registers the thread */
	for (i = 0; i < ROUNDS; i++) {
		verbs = RTE_MIN(verbs, measure(is_write ? write_verbs : reg_verbs));
		class = RTE_MIN(class, measure(is_write ? write_class : reg_class));
	}
	printf("%s: verbs %.1f ns, rmem %.1f ns, ratio %.2f (bar %.1f)\n", argv[1], verbs / nb,
			class / nb, verbs / class, bar);
	return verbs <= bar * class ? 0 : 1;
}
