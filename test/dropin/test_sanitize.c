/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program on soft0,sanitize=1: wrong uses are on stderr without RMEM_IBV_LOG. Threads may
 * share a QP and a CQ, which verbs permits.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "connect_qp.h"
#include "open_device.h"
#include "wait_wc.h"

#define THREADS 4
#define WRITES  2000
#define SIZE    64

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t buf[4096];
static int nb_polled; /* atomic */
static int log_fd;

/* The text on stderr so far. */
static const char *
log_text(void)
{
	static char text[16384];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	HOLDS(n >= 0);
	text[n] = '\0';
	return text;
}

static int
post_write(uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)buf, SIZE, mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)buf + 2048;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(qp, &wr, &bad);
}

static int
poll_some(void)
{
	struct ibv_wc wc[4];
	int i, n = ibv_poll_cq(cq, 4, wc);

	for (i = 0; i < n; i++)
		HOLDS(wc[i].status == IBV_WC_SUCCESS);
	HOLDS(n >= 0);
	return __atomic_add_fetch(&nb_polled, n, __ATOMIC_RELAXED);
}

static void *
run(void *arg)
{
	int i, ret;

	for (i = 0; i < WRITES; i++) {
		while ((ret = post_write(mr->rkey)) == ENOMEM)
			poll_some();
		HOLDS(ret == 0);
	}
	while (poll_some() != THREADS * WRITES)
		sched_yield();
	return arg;
}

static void
share(void)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, run, NULL) == 0);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	HOLDS(strstr(log_text(), "sanitize") == NULL);
}

static void
refuse(void)
{
	HOLDS(post_write(mr->rkey ^ 1) == 0);
	HOLDS(wait_wc(cq).status == IBV_WC_REM_ACCESS_ERR);
	HOLDS(strstr(log_text(), "sanitize: QP 0x") != NULL);
	HOLDS(strstr(log_text(), "request of the peer (REM_ACCESS_ERR) failed") != NULL);
}

int
main(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {16, 1, 1, 1, 0}};
	int out = dup(2);

	HOLDS(setenv("RMEM_IBV", "soft0,sanitize=1", 1) == 0 && unsetenv("RMEM_IBV_LOG") == 0);
	log_fd = memfd_create("log", 0);
	HOLDS(out >= 0 && log_fd >= 0 && dup2(log_fd, 2) == 2);
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	HOLDS(cq != NULL && mr != NULL && qp != NULL);
	connect_own(qp);
	share();
	refuse();
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	HOLDS(dup2(out, 2) == 2);
	return 0;
}
