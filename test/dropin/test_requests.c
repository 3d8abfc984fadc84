/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program on soft0,sanitize=2: wrong uses of requests in flight are on stderr, with the
 * place of the post, once for each place; correct uses are not.
 */

#include "log.h"
#include "own_qp.h"

#define DEPTH 8
#define SIZE  64

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t buf[4096] __attribute__((aligned(8)));

/* Reports with that text, of all so far. */
static int
nb_reports(const char *text)
{
	const char *at;
	int nb = 0;

	for (at = strstr(log_text(), text); at != NULL; at = strstr(at + 1, text))
		nb++;
	return nb;
}

static struct ibv_qp *
create_own(void)
{
	struct ibv_qp *qp = create_qp_of(
			IBV_QPT_RC, pd, cq, NULL, (struct ibv_qp_cap){DEPTH, DEPTH, 2, 2, 64});

	HOLDS(qp != NULL);
	connect_own(qp);
	return qp;
}

static int
post_from(struct ibv_qp *qp, struct ibv_sge sge, unsigned int flags)
{
	struct ibv_send_wr *bad,
			wr = {.wr_id = 7,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = flags,
					.wr.rdma = {(uintptr_t)buf + 2048, mr->rkey}};

	return ibv_post_send(qp, &wr, &bad);
}

static int
post(struct ibv_qp *qp, unsigned int flags)
{
	return post_from(qp, (struct ibv_sge){(uintptr_t)buf, SIZE, mr->lkey}, flags);
}

static int
post_recv(struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)buf + offset, SIZE, lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(qp, &wr, &bad);
}

/* A full queue, requests of which some are signaled, a buffer that changes when it may. */
static void
correct_uses_are_not_reported(void)
{
	struct ibv_qp *qp = create_own();
	int i;

	for (i = 0; i < 10 * DEPTH; i++) {
		buf[0]++; /* as if the peer has answered */
		HOLDS(post(qp, i % DEPTH == DEPTH - 1 ? IBV_SEND_SIGNALED : 0) == 0);
		if (i % DEPTH == DEPTH - 1)
			buf[0] += wait_wc(cq).status == IBV_WC_SUCCESS;
	}
	for (i = 0; i < DEPTH; i++)
		HOLDS(post(qp, IBV_SEND_SIGNALED) == 0);
	HOLDS(post(qp, IBV_SEND_SIGNALED) == ENOMEM);
	for (i = 0; i < DEPTH; i++)
		HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(post(qp, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0);
	buf[0]++; /* inline data was copied */
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	for (i = 0; i < DEPTH; i++)
		HOLDS(post_recv(qp, 0, (size_t)(1 + i) * SIZE, mr->lkey) == 0);
	HOLDS(ibv_destroy_qp(qp) == 0);
	HOLDS(nb_reports("sanitize") == 0);
}

static void
unsignaled_requests_until_full_are_reported(void)
{
	int i, round;

	for (round = 0; round < 2; round++) {
		struct ibv_qp *qp = create_own();

		for (i = 0; i < DEPTH; i++)
			HOLDS(post(qp, 0) == 0);
		HOLDS(post(qp, 0) == ENOMEM);
		HOLDS(ibv_destroy_qp(qp) == 0);
	}
	HOLDS(nb_reports("is full, and none of its 8 requests is signaled") == 1);
	HOLDS(nb_reports(" ago by thread ") == 1 && nb_reports("\n    #0 ") == 2);
	HOLDS(nb_reports("  found by thread ") == 1);
}

static void
changed_buffers_are_reported(void)
{
	struct ibv_qp *qp = create_own();
	uint8_t *page = mmap(
			NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *other = ibv_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);

	HOLDS(page != MAP_FAILED && other != NULL);
	HOLDS(post(qp, IBV_SEND_SIGNALED) == 0);
	buf[SIZE - 1]++;
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(nb_reports("the buffer of request 0x7, at 0x") == 1);
	HOLDS(nb_reports("changed between post and completion; posted ") == 1);
	HOLDS(post_from(qp, (struct ibv_sge){(uintptr_t)page, SIZE, other->lkey},
			      IBV_SEND_SIGNALED) == 0);
	HOLDS(munmap(page, 4096) == 0);
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(nb_reports("was unmapped between post and completion") == 1);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(other) == 0);
}

/* A sum of what is not mapped would end the process; the device ends the request. */
static void
unmapped_buffers_are_reported_at_post(void)
{
	struct ibv_qp *qp = create_own();
	uint8_t *page = mmap(
			NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *other = ibv_reg_mr(pd, page, 8192, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)page + 4096 - SIZE / 2, SIZE, 0};

	HOLDS(page != MAP_FAILED && other != NULL);
	sge.lkey = other->lkey;
	HOLDS(nb_reports("is not mapped") == 0);
	HOLDS(munmap(page + 4096, 4096) == 0);
	HOLDS(post_write_to(qp, sge, (uintptr_t)buf + 2048, mr->rkey, 13) == 0);
	HOLDS(nb_reports("the buffer of request 0xd, at 0x") == 1);
	HOLDS(nb_reports(", is not mapped; posted ") == 1);
	HOLDS(wait_wc(cq).status != IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(other) == 0);
	HOLDS(nb_reports("memory of an MR, 0x") == 1);
	HOLDS(nb_reports(", was unmapped before it is deregistered; made ") == 1);
	HOLDS(munmap(page, 4096) == 0);
}

/* A plain sum of the words is the same after it. */
static void
exchanged_words_are_reported(void)
{
	struct ibv_qp *qp = create_own();
	struct ibv_sge sge = {(uintptr_t)buf, 1024, mr->lkey};
	uint64_t *words = (uint64_t *)(void *)buf;

	words[2] = 1;
	words[10] = 2;
	HOLDS(post_write_to(qp, sge, (uintptr_t)buf + 2048, mr->rkey, 12) == 0);
	words[2] = 2;
	words[10] = 1;
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(nb_reports("the buffer of request 0xc, at 0x") == 1);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

static void
post_overlapping_recv(void *qp)
{
	HOLDS(post_recv(qp, 3, SIZE / 2, mr->lkey) == 0);
}

/* Also by a thread that is cancelled, which ends after the post. */
static void
overlapping_receives_are_reported(void)
{
	struct ibv_qp *qp = create_own();

	HOLDS(post_recv(qp, 1, 0, mr->lkey) == 0);
	HOLDS(post_recv(qp, 2, SIZE, mr->lkey) == 0);
	HOLDS(post_recv(qp, 2, SIZE, mr->lkey) == 0); /* one buffer for both, as ibv_rc_pingpong */
	HOLDS(nb_reports("which is in flight") == 0);
	HOLDS(returns_cancelled(post_overlapping_recv, qp));
	HOLDS(nb_reports("receive 0x3 has bytes of receive 0x2, at 0x") == 1);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

/* One place of a post, also where the compiler would have one for each caller. */
static __attribute__((noinline)) int
write_range(struct ibv_qp *qp, size_t to, uint32_t length, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)buf, length, mr->lkey};

	return post_write_to(qp, sge, (uintptr_t)buf + 2048 + to, mr->rkey, wr_id);
}

/* Not those of one QP, of one range, of neighbours, and of one that has ended. */
static void
overlapping_writes_are_reported(void)
{
	struct ibv_qp *a = create_own(), *b = create_own();
	uint64_t i;

	HOLDS(write_range(a, 0, SIZE, 1) == 0 && write_range(a, SIZE / 2, SIZE, 2) == 0);
	HOLDS(write_range(a, 512, SIZE, 3) == 0 && write_range(b, 512, SIZE, 4) == 0);
	HOLDS(write_range(b, SIZE * 3 / 2, SIZE, 5) == 0);
	HOLDS(wait_wc(cq).wr_id == 1);
	HOLDS(wait_wc(cq).wr_id == 2);
	HOLDS(write_range(b, 0, SIZE / 4, 6) == 0);
	HOLDS(nb_reports("has bytes of WRITE") == 0);
	HOLDS(write_range(a, 0, SIZE, 7) == 0);
	HOLDS(nb_reports("WRITE 0x7 has bytes of WRITE 0x6 of QP 0x") == 1);
	HOLDS(nb_reports("of the peer, which is in flight; posted ") == 1);
	HOLDS(write_range(b, SIZE / 2, SIZE, 8) == 0); /* one place */
	HOLDS(nb_reports("has bytes of WRITE") == 1);
	for (i = 3; i <= 8; i++)
		HOLDS(wait_wc(cq).wr_id == i);
	HOLDS(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

static void
deregistration_in_flight_is_reported(void)
{
	struct ibv_qp *qp = create_own();
	struct ibv_mr *other = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_mr *second;

	HOLDS(other != NULL && post_recv(qp, 9, 0, other->lkey) == 0);
	HOLDS(ibv_dereg_mr(other) == 0);
	HOLDS(nb_reports("is deregistered while request 0x9 is in flight") == 1);
	/* Not of a QP that uses it no more. */
	second = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	HOLDS(second != NULL && post_recv(qp, 10, 512, second->lkey) == 0);
	HOLDS(ibv_modify_qp(qp, &error, IBV_QP_STATE) == 0 && ibv_dereg_mr(second) == 0);
	HOLDS(nb_reports("while request 0xa is in flight") == 0);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

int
main(void)
{
	int out;

	HOLDS(setenv("RMEM_IBV", "soft0,sanitize=2", 1) == 0 && unsetenv("RMEM_IBV_LOG") == 0);
	out = log_begin();
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), WRITABLE);
	HOLDS(pd != NULL && cq != NULL && mr != NULL);
	correct_uses_are_not_reported();
	unsignaled_requests_until_full_are_reported();
	unmapped_buffers_are_reported_at_post();
	changed_buffers_are_reported();
	exchanged_words_are_reported();
	overlapping_receives_are_reported();
	overlapping_writes_are_reported();
	deregistration_in_flight_is_reported();
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	log_end(out);
	return 0;
}
