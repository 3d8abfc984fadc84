/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No access outlives its invalidation (design.md, 4): lcores go on writing through a key while
 * another takes it away. When that has completed, nothing of theirs reaches the memory.
 *
 * Writers own a pair of connected QPs each. When the key is refused, which is part of the test,
 * they reset and connect them again. Their messages are large, so that the key is invalidated in
 * the midst of a copy. The main lcore then scribbles over the memory at once, first where a copy is
 * last, and checks for foreign bytes after every writer was refused.
 */

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "test.h"

#define MAX_WRITERS 3u
#define ROUNDS      16u
/* Where one lcore executes for all others, they wait for it and for each other. */
#define ENGINE_ROUNDS 16u
/* Size of a message, and of all of them: a part for each writer. */
#define PART     (4u * FX_BUF_SIZE)
#define SIZE     (MAX_WRITERS * PART)
#define PAGES    (SIZE / FX_PAGE)
#define SCRIBBLE 0x5c
#define PAYLOAD  0xa9

/* Commands of the main lcore to the writers. */
static struct {
	uint32_t rkey;       /* atomic; 0 while there is none */
	uint32_t is_stopped; /* atomic */
} target;

struct writer {
	struct fx_side side; /* posts */
	struct fx_side peer; /* answers */
	uint64_t addr;       /* where it writes */
	uint64_t nb_written; /* atomic */
	uint64_t nb_refused; /* atomic */
} __rte_cache_aligned;

static struct writer writers[MAX_WRITERS];
static unsigned int nb_writers;
static uint32_t nb_rounds;

static void
count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELEASE);
}

static void
reconnect(struct writer *writer)
{
	struct rmem_wc wc;

	TEST_OK(rmem_qp_reset(writer->side.qp));
	TEST_OK(rmem_qp_reset(writer->peer.qp));
	while (rmem_poll_cq(writer->side.cq, &wc, 1) > 0)
		;
	TEST_OK(fx_connect_pair(writer->side.qp, writer->peer.qp));
}

/* Two messages, the last signaled, to the writer's own part of the memory. */
static void
write_burst(struct writer *writer, uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(writer->side.mr, 0, FX_BUF_SIZE);
	const struct rmem_sge sges[] = {sge, sge, sge, sge};
	struct rmem_send_wr wrs[2];
	struct rmem_wc wc;

	wrs[0] = fx_rdma(RMEM_WR_RDMA_WRITE, sges, writer->addr, rkey);
	wrs[0].num_sge = RTE_DIM(sges);
	wrs[1] = wrs[0];
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(writer->side.qp, wrs, 2), 2);
	TEST_EQ(fx_poll(writer->side.cq, &wc, 1), 1);
	if (wc.status == RMEM_WC_SUCCESS) {
		count(&writer->nb_written);
		return;
	}
	TEST_STATUS(wc.status, RMEM_WC_REM_ACCESS_ERR);
	reconnect(writer);
	count(&writer->nb_refused);
	/* There may be fewer CPUs than lcores. While the key is valid, no lcore yields. */
	sched_yield();
}

static void
run_writer(void *arg)
{
	unsigned int spins = 0;

	while (!__atomic_load_n(&target.is_stopped, __ATOMIC_ACQUIRE)) {
		uint32_t rkey = __atomic_load_n(&target.rkey, __ATOMIC_ACQUIRE);

		if (rkey == 0) {
			fx_relax(&spins);
			continue;
		}
		write_burst(arg, rkey);
	}
}

static void
setup(void)
{
	unsigned int i;

	fx_setup();
	fx.fast.pages = fx_mem(FX_PAGE, SIZE);
	fx.fast.mr = fx_fast_mr(fx.a.pd, PAGES);
	fx.fast.list = fx_page_list(fx.a.dev, PAGES);
	TEST_ASSERT(fx.fast.mr != NULL && fx.fast.list != NULL);
	fx_list_pages(fx.fast.list, fx.fast.pages, PAGES);
	memset(&target, 0, sizeof(target));
	nb_rounds = fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_ENGINE) ? ENGINE_ROUNDS : ROUNDS;
	nb_writers = RTE_MIN(fx_nb_workers(), MAX_WRITERS);
	for (i = 0; i < nb_writers; i++) {
		struct writer *writer = &writers[i];

		memset(writer, 0, sizeof(*writer));
		fx_side_open(&writer->side, fx.a.dev, fx.a.pd);
		fx_side_open(&writer->peer, fx.a.dev, fx.a.pd);
		memset(writer->side.buf, PAYLOAD, FX_BUF_SIZE);
		TEST_OK(fx_connect_pair(writer->side.qp, writer->peer.qp));
	}
}

static void
start_writers(uint64_t addr)
{
	unsigned int i;

	for (i = 0; i < nb_writers; i++)
		writers[i].addr = addr + i * PART;
	fx_launch(run_writer, writers, sizeof(writers[0]), nb_writers);
}

static void
stop_writers(int result)
{
	__atomic_store_n(&target.is_stopped, 1, __ATOMIC_RELEASE);
	if (TEST_TRY(fx_join(nb_writers)) != TEST_SUCCESS)
		test_stop(TEST_FAILED);
	TEST_RUN(result);
}

/* Until every writer has counted two more: the later one began after the call. */
static void
wait_for(size_t counter)
{
	uint64_t deadline = fx_deadline();
	unsigned int i, spins = 0;

	for (i = 0; i < nb_writers; i++) {
		uint64_t *value = (uint64_t *)(void *)((uint8_t *)&writers[i] + counter);
		uint64_t want = __atomic_load_n(value, __ATOMIC_ACQUIRE) + 2;

		while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < want) {
			TEST_ASSERT(!fx_is_late(deadline));
			fx_relax(&spins);
		}
	}
}

static void
wait_for_writes(uint32_t rkey)
{
	__atomic_store_n(&target.rkey, rkey, __ATOMIC_RELEASE);
	wait_for(offsetof(struct writer, nb_written));
}

static void
wait_for_refusals(void)
{
	wait_for(offsetof(struct writer, nb_refused));
}

static int
bind_to(struct rmem_fast_reg_page_list *list)
{
	const struct rmem_send_wr wr =
			fx_reg(fx.fast.mr, list, PAGES, fx_addr(fx.fast.pages), SIZE);

	return fx_send(fx.a.qp, &wr);
}

/* Page by page, from the end of each writer's part to its start. */
static void
scribble(uint8_t *buf)
{
	unsigned int page, i;

	for (page = PART / FX_PAGE; page-- > 0;) {
		for (i = 0; i < MAX_WRITERS; i++)
			memset(buf + i * PART + page * FX_PAGE, SCRIBBLE, FX_PAGE);
	}
}

static bool
is_scribbled(const uint8_t *buf)
{
	return buf[0] == SCRIBBLE && memcmp(buf, buf + 1, SIZE - 1) == 0;
}

/* After the invalidation: writes are refused, and the bytes are unchanged. */
static void
expect_no_late_write(uint8_t *buf)
{
	scribble(buf);
	wait_for_refusals();
	TEST_ASSERT(is_scribbled(buf));
}

static void
local_inv_rounds(void)
{
	uint32_t i;

	for (i = 0; i < nb_rounds; i++) {
		TEST_STATUS(bind_to(fx.fast.list), RMEM_WC_SUCCESS);
		wait_for_writes(fx.fast.mr->rkey);
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
		expect_no_late_write(fx.fast.pages);
	}
}

TEST(rcu, no_write_arrives_after_local_inv)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(local_inv_rounds()));
}

static void
dereg_rounds(void)
{
	uint32_t i;

	for (i = 0; i < nb_rounds; i++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, fx.fast.pages, SIZE, FX_ACCESS);

		TEST_ASSERT(mr != NULL);
		wait_for_writes(mr->rkey);
		TEST_OK(fx_release(mr));
		expect_no_late_write(fx.fast.pages);
	}
}

TEST(rcu, no_write_arrives_after_dereg)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(dereg_rounds()));
}

/* The memory is unmapped immediately: a late write would be a SIGSEGV. */
static void
unmap_rounds(uint8_t *pages)
{
	uint32_t i;

	for (i = 0; i < nb_rounds; i++) {
		struct rmem_mr *mr;

		TEST_OK(mprotect(pages, SIZE, PROT_READ | PROT_WRITE));
		mr = fx_mr(fx.a.pd, pages, SIZE, FX_ACCESS);
		TEST_ASSERT(mr != NULL);
		wait_for_writes(mr->rkey);
		TEST_OK(fx_release(mr));
		TEST_OK(mprotect(pages, SIZE, PROT_NONE));
		wait_for_refusals();
	}
}

TEST(rcu, memory_may_be_unmapped_after_dereg)
{
	uint8_t *pages;
	int result;

	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	pages = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(pages != MAP_FAILED);
	start_writers(fx_addr(pages));
	result = TEST_TRY(unmap_rounds(pages));
	result = TEST_TRY(stop_writers(result));
	munmap(pages, SIZE);
	TEST_RUN(result);
}

static void
fast_dereg_rounds(void)
{
	struct rmem_mr *first = fx.fast.mr;
	uint32_t i;

	for (i = 0; i < nb_rounds; i++) {
		fx.fast.mr = fx_fast_mr(fx.a.pd, PAGES);
		TEST_ASSERT(fx.fast.mr != NULL);
		TEST_STATUS(bind_to(fx.fast.list), RMEM_WC_SUCCESS);
		wait_for_writes(fx.fast.mr->rkey);
		TEST_OK(fx_release(fx.fast.mr));
		expect_no_late_write(fx.fast.pages);
	}
	fx.fast.mr = first;
}

TEST(rcu, no_write_arrives_after_dereg_of_a_bound_mr)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(fast_dereg_rounds()));
}

/* The peer invalidates; its receive completes when no lcore writes any more. */
static void
send_with_inv_rounds(void)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	uint32_t i;

	for (i = 0; i < nb_rounds; i++) {
		TEST_STATUS(bind_to(fx.fast.list), RMEM_WC_SUCCESS);
		wait_for_writes(fx.fast.mr->rkey);
		TEST_EQ(fx_post_recv(fx.a.qp, i, NULL, 0), 1);
		wr.invalidate_rkey = fx.fast.mr->rkey;
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.invalidated_rkey, fx.fast.mr->rkey);
		expect_no_late_write(fx.fast.pages);
	}
}

TEST(rcu, no_write_arrives_after_send_with_inv)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(send_with_inv_rounds()));
}

/* The READ completes when no lcore writes any more through the key that it invalidates. */
static void
read_with_inv_rounds(void)
{
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_READ_WITH_INV, NULL, 0, 0);
	uint32_t i;

	for (i = 0; i < nb_rounds; i++) {
		TEST_STATUS(bind_to(fx.fast.list), RMEM_WC_SUCCESS);
		wait_for_writes(fx.fast.mr->rkey);
		wr.invalidate_rkey = fx.fast.mr->rkey;
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		expect_no_late_write(fx.fast.pages);
	}
}

TEST(rcu, no_write_arrives_after_read_with_inv)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(read_with_inv_rounds()));
}

/* The next binding, to other pages with the next tag, is not accessible with the previous key. */
static void
rebind_rounds(uint8_t *others)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, PAGES);
	uint32_t i;

	TEST_ASSERT(list != NULL);
	fx_list_pages(list, others, PAGES);
	scribble(others);
	for (i = 0; i < nb_rounds; i++) {
		struct rmem_send_wr wrs[2];

		TEST_STATUS(bind_to(fx.fast.list), RMEM_WC_SUCCESS);
		wait_for_writes(fx.fast.mr->rkey);
		wrs[0] = fx_inv(fx.fast.mr->rkey);
		wrs[1] = fx_reg(fx.fast.mr, list, PAGES, fx_addr(fx.fast.pages), SIZE);
		wrs[1].flags = RMEM_SEND_SIGNALED;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		expect_no_late_write(fx.fast.pages);
		TEST_ASSERT(is_scribbled(others));
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	}
}

TEST(rcu, former_key_never_reaches_the_next_binding)
{
	uint8_t *others = fx_mem(FX_PAGE, SIZE);

	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(rebind_rounds(others)));
}

/* Bind fx.mw.one to the memory, all of it or, with length 0, to nothing. */
static int
bind_window(struct rmem_mr *mr, uint64_t length)
{
	struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED};
	int ret;

	bind.bind_info.mr = mr;
	bind.bind_info.addr = mr->iova;
	bind.bind_info.length = length;
	bind.bind_info.access = RMEM_ACCESS_REMOTE;
	ret = rmem_mw_bind(fx.a.qp, fx.mw.one, &bind);
	return ret == 0 ? fx_wait(fx.a.cq) : ret;
}

/* In turn: bound to other memory, unbound, released. Then the previous key is not valid. */
static void
window_rounds(uint8_t *others)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.fast.pages, SIZE, access);
	struct rmem_mr *other = fx_mr(fx.a.pd, others, SIZE, access);
	uint32_t i;

	TEST_ASSERT(mr != NULL && other != NULL);
	scribble(others);
	for (i = 0; i < nb_rounds; i++) {
		fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
		TEST_ASSERT(fx.mw.one != NULL);
		TEST_STATUS(bind_window(mr, SIZE), RMEM_WC_SUCCESS);
		wait_for_writes(fx.mw.one->rkey);
		if (i % 3 != 2)
			TEST_STATUS(bind_window(i % 3 == 0 ? other : mr, i % 3 == 0 ? SIZE : 0),
					RMEM_WC_SUCCESS);
		else
			TEST_OK(fx_release(fx.mw.one));
		expect_no_late_write(fx.fast.pages);
		TEST_ASSERT(is_scribbled(others));
		if (i % 3 != 2)
			TEST_OK(fx_release(fx.mw.one));
	}
}

TEST(rcu, former_key_of_a_window_reaches_nothing)
{
	uint8_t *others = fx_mem(FX_PAGE, SIZE);

	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(window_rounds(others)));
}

/* A change of the rights or of the PD revokes the access of the writers, and is undone. */
static void
rereg_rounds(uint32_t flags)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.fast.pages, SIZE, FX_ACCESS);
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	uint32_t i;

	TEST_ASSERT(mr != NULL && pd != NULL);
	for (i = 0; i < nb_rounds; i++) {
		wait_for_writes(mr->rkey);
		TEST_OK(rmem_mr_rereg(mr, flags, pd, NULL, 0, RMEM_ACCESS_LOCAL_WRITE, NULL));
		expect_no_late_write(fx.fast.pages);
		TEST_OK(rmem_mr_rereg(mr, flags, fx.a.pd, NULL, 0, FX_ACCESS, NULL));
	}
}

TEST(rcu, no_write_arrives_after_rereg_of_access)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(rereg_rounds(RMEM_REREG_CHANGE_ACCESS)));
}

TEST(rcu, no_write_arrives_after_rereg_of_pd)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(rereg_rounds(RMEM_REREG_CHANGE_PD)));
}

/* To memory elsewhere and back: the writers go on with the old addresses, and reach neither. */
static void
move_rounds(uint8_t *others)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.fast.pages, SIZE, FX_ACCESS);
	const uint32_t flags = RMEM_REREG_CHANGE_TRANSLATION;
	uint32_t i;

	TEST_ASSERT(mr != NULL);
	scribble(others);
	for (i = 0; i < nb_rounds; i++) {
		wait_for_writes(mr->rkey);
		TEST_OK(rmem_mr_rereg(mr, flags, NULL, others, SIZE, 0, NULL));
		expect_no_late_write(fx.fast.pages);
		TEST_ASSERT(is_scribbled(others));
		TEST_OK(rmem_mr_rereg(mr, flags, NULL, fx.fast.pages, SIZE, 0, NULL));
	}
}

TEST(rcu, no_write_arrives_after_rereg_of_translation)
{
	uint8_t *others = fx_mem(FX_PAGE, SIZE);

	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(move_rounds(others)));
}

/* Without an invalidation writes arrive: the checks can detect one. */
static void
checker_rounds(void)
{
	TEST_STATUS(bind_to(fx.fast.list), RMEM_WC_SUCCESS);
	scribble(fx.fast.pages);
	TEST_ASSERT(is_scribbled(fx.fast.pages));
	wait_for_writes(fx.fast.mr->rkey);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_ASSERT(!is_scribbled(fx.fast.pages));
	wait_for_refusals();
}

TEST(rcu, checker_sees_writes_through_a_valid_key)
{
	if (nb_writers == 0)
		test_skip("it takes a worker lcore");
	start_writers(fx_addr(fx.fast.pages));
	stop_writers(TEST_TRY(checker_rounds()));
}

TEST_SUITE(rcu, setup, fx_teardown);
