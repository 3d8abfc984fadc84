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
	uint64_t nb_idle;    /* atomic */
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
	struct writer *writer = arg;
	unsigned int spins = 0;

	while (!__atomic_load_n(&target.is_stopped, __ATOMIC_ACQUIRE)) {
		uint32_t rkey = __atomic_load_n(&target.rkey, __ATOMIC_ACQUIRE);

		if (rkey == 0) {
			count(&writer->nb_idle);
			fx_relax(&spins);
			continue;
		}
		write_burst(writer, rkey);
	}
}

static void
setup(void)
{
	unsigned int i;

	fx_setup();
	fx.fast.pages = fx_map(SIZE);
	TEST_OK(mprotect(fx.fast.pages, SIZE, PROT_READ | PROT_WRITE));
	fx.fast.mr = fx_fast_mr(fx.a.pd, PAGES);
	fx.fast.list = fx_page_list(fx.a.dev, PAGES);
	fx_list_pages(fx.fast.list, fx.fast.pages, PAGES);
	memset(&target, 0, sizeof(target));
	fx.mw.two = NULL;
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
start_writers(void)
{
	unsigned int i;

	for (i = 0; i < nb_writers; i++)
		writers[i].addr = fx_addr(fx.fast.pages) + i * PART;
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

static void
wait_for_writes(uint32_t rkey)
{
	__atomic_store_n(&target.rkey, rkey, __ATOMIC_RELEASE);
	fx_await_counts(&writers[0].nb_written, sizeof(writers[0]), nb_writers);
}

static void
wait_for_refusals(void)
{
	fx_await_counts(&writers[0].nb_refused, sizeof(writers[0]), nb_writers);
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

/* How the writers get access to the memory, lose it, and what the next round needs. */
struct way {
	uint32_t (*grant)(void); /* an rkey */
	void (*revoke)(void);
	void (*renew)(void); /* or NULL */
	bool is_alone;       /* with one writer */
};

/* Objects of the ways; others is memory that no key may reach. */
static struct rmem_mr *mr, *other_mr, *mkey;
static struct rmem_fast_reg_page_list *other_list;
static struct rmem_pd *other_pd;
static uint8_t *others;
static uint32_t round_nb;

static void
run_rounds(const struct way *way)
{
	scribble(others);
	for (round_nb = 0; round_nb < nb_rounds; round_nb++) {
		wait_for_writes(way->grant());
		way->revoke();
		expect_no_late_write(fx.fast.pages);
		TEST_ASSERT(is_scribbled(others));
		if (way->renew != NULL)
			way->renew();
	}
}

/* MRs of all rights over both parts of the memory. */
static struct rmem_mr *
reg(uint8_t *pages)
{
	struct rmem_mr *made = fx_mr(fx.a.pd, pages, SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);

	return made;
}

static void
run_way(const struct way *way)
{
	fx_need_workers(1);
	if (way->is_alone)
		nb_writers = 1;
	others = fx_mem(FX_PAGE, SIZE);
	mr = reg(fx.fast.pages);
	other_mr = reg(others);
	mkey = fx_mkey(fx.a.pd, 2);
	other_pd = fx_pd(fx.a.dev);
	other_list = fx_page_list(fx.a.dev, PAGES);
	fx_list_pages(other_list, others, PAGES);
	start_writers();
	stop_writers(TEST_TRY(run_rounds(way)));
}

#define WAY(rule, ...)                                                                             \
	TEST(rcu, rule)                                                                            \
	{                                                                                          \
		static const struct way way = {__VA_ARGS__};                                       \
		run_way(&way);                                                                     \
	}

static uint32_t
grant_pages(void)
{
	const struct rmem_send_wr wr =
			fx_reg(fx.fast.mr, fx.fast.list, PAGES, fx_addr(fx.fast.pages), SIZE);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	return fx.fast.mr->rkey;
}

static void
unbind(void)
{
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
}

WAY(no_write_arrives_after_local_inv, grant_pages, unbind, NULL, false)

static uint32_t
grant_mr(void)
{
	return mr->rkey;
}

static void
dereg(void)
{
	TEST_OK(fx_release(mr));
}

static void
reg_again(void)
{
	mr = reg(fx.fast.pages);
}

WAY(no_write_arrives_after_dereg, grant_mr, dereg, reg_again, false)

/* The memory is unmapped immediately: a late write would be a SIGSEGV. */
static void
dereg_and_unmap(void)
{
	int result;

	dereg();
	TEST_OK(mprotect(fx.fast.pages, SIZE, PROT_NONE));
	result = TEST_TRY(wait_for_refusals());
	TEST_OK(mprotect(fx.fast.pages, SIZE, PROT_READ | PROT_WRITE));
	TEST_RUN(result);
}

WAY(memory_may_be_unmapped_after_dereg, grant_mr, dereg_and_unmap, reg_again, false)

static void
dereg_bound(void)
{
	TEST_OK(fx_release(fx.fast.mr));
}

static void
alloc_again(void)
{
	fx.fast.mr = fx_fast_mr(fx.a.pd, PAGES);
}

WAY(no_write_arrives_after_dereg_of_a_bound_mr, grant_pages, dereg_bound, alloc_again, false)

/* The peer invalidates; its receive completes when no lcore writes any more. */
static void
send_with_inv(void)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.invalidated_rkey, fx.fast.mr->rkey);
}

WAY(no_write_arrives_after_send_with_inv, grant_pages, send_with_inv, NULL, false)

static void
read_with_inv(void)
{
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_READ_WITH_INV, NULL, 0, 0);

	wr.invalidate_rkey = fx.fast.mr->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

WAY(no_write_arrives_after_read_with_inv, grant_pages, read_with_inv, NULL, false)

/* The next binding, to other pages with the next tag, is not accessible with the previous key. */
static void
rebind(void)
{
	struct rmem_send_wr wrs[2];

	wrs[0] = fx_inv(fx.fast.mr->rkey);
	wrs[1] = fx_reg(fx.fast.mr, other_list, PAGES, fx_addr(fx.fast.pages), SIZE);
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

WAY(former_key_never_reaches_the_next_binding, grant_pages, rebind, unbind, false)

/* Bind fx.mw.one to all of an MR or, with length 0, to nothing. */
static void
bind_window(uint64_t length)
{
	struct rmem_mw_bind bind = fx_mw_bind(0, length, RMEM_ACCESS_REMOTE);

	bind.flags = RMEM_SEND_SIGNALED;
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

static uint32_t
grant_window(void)
{
	fx.mw.mr = mr;
	fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	bind_window(SIZE);
	return fx.mw.one->rkey;
}

/* In turn: bound to other memory, unbound, released. */
static void
revoke_window(void)
{
	fx.mw.mr = round_nb % 3 == 0 ? other_mr : mr;
	if (round_nb % 3 == 2)
		TEST_OK(fx_release(fx.mw.one));
	else
		bind_window(round_nb % 3 == 0 ? SIZE : 0);
}

static void
release_window(void)
{
	if (round_nb % 3 != 2)
		TEST_OK(fx_release(fx.mw.one));
}

WAY(former_key_of_a_window_reaches_nothing, grant_window, revoke_window, release_window, false)

/* The QP of the only writer's peer has the window; the writer resets it when it was refused. */
static uint32_t
grant_window_2(void)
{
	struct rmem_send_wr wr;

	__atomic_store_n(&target.rkey, 0, __ATOMIC_RELEASE);
	fx_await_counts(&writers[0].nb_idle, sizeof(writers[0]), nb_writers);
	fx.mw.mr = mr;
	if (fx.mw.two == NULL)
		fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	wr = fx_mw_wr(fx.mw.two, 0, SIZE, RMEM_ACCESS_REMOTE_WRITE);
	TEST_STATUS(fx_send(writers[0].peer.qp, &wr), RMEM_WC_SUCCESS);
	return fx.mw.two->rkey;
}

/* In turn: invalidated, released. */
static void
revoke_window_2(void)
{
	const struct rmem_send_wr inv = fx_inv(fx.mw.two->rkey);

	if (round_nb % 2 == 0) {
		TEST_STATUS(fx_send(writers[0].peer.qp, &inv), RMEM_WC_SUCCESS);
	} else {
		TEST_OK(fx_release(fx.mw.two));
		fx.mw.two = NULL;
	}
}

WAY(no_write_arrives_after_the_end_of_a_window, grant_window_2, revoke_window_2, NULL, true)

/* Over the two halves of an MR. */
static uint32_t
grant_indirect(void)
{
	const struct rmem_mkey_entry entries[] = {
			fx_entry(mr, 0, SIZE / 2), fx_entry(mr, SIZE / 2, SIZE / 2)};
	const struct rmem_send_wr wr = fx_umr(mkey, entries, 2, fx_addr(fx.fast.pages));

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	return mkey->rkey;
}

static void
invalidate_indirect(void)
{
	TEST_STATUS(fx_invalidate(mkey->rkey), RMEM_WC_SUCCESS);
}

WAY(no_write_arrives_after_local_inv_of_an_indirect_key, grant_indirect, invalidate_indirect, NULL,
		false)

/* The indirect key is valid still, over a key that is not. */
static void
renew_below(void)
{
	invalidate_indirect();
	reg_again();
}

WAY(no_write_arrives_after_release_of_a_key_of_an_entry, grant_indirect, dereg, renew_below, false)

/* A change of the rights, of the PD or of the memory revokes the access, and is undone. */
static void
rereg(uint32_t flags, struct rmem_pd *pd, uint8_t *pages, uint32_t access)
{
	TEST_OK(rmem_mr_rereg(mr, flags, pd, pages, SIZE, access, NULL));
}

static void
reduce_access(void)
{
	rereg(RMEM_REREG_CHANGE_ACCESS, NULL, NULL, RMEM_ACCESS_LOCAL_WRITE);
}

static void
restore_access(void)
{
	rereg(RMEM_REREG_CHANGE_ACCESS, NULL, NULL, FX_ACCESS);
}

WAY(no_write_arrives_after_rereg_of_access, grant_mr, reduce_access, restore_access, false)

static void
change_pd(void)
{
	rereg(RMEM_REREG_CHANGE_PD, other_pd, NULL, 0);
}

static void
restore_pd(void)
{
	rereg(RMEM_REREG_CHANGE_PD, fx.a.pd, NULL, 0);
}

WAY(no_write_arrives_after_rereg_of_pd, grant_mr, change_pd, restore_pd, false)

/* The writers go on with the old addresses, and reach neither. */
static void
move(void)
{
	rereg(RMEM_REREG_CHANGE_TRANSLATION, NULL, others, 0);
}

static void
move_back(void)
{
	rereg(RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.fast.pages, 0);
}

WAY(no_write_arrives_after_rereg_of_translation, grant_mr, move, move_back, false)

/* Without an invalidation writes arrive: the checks can detect one. */
static void
checker_rounds(void)
{
	uint32_t rkey = grant_pages();

	scribble(fx.fast.pages);
	TEST_ASSERT(is_scribbled(fx.fast.pages));
	wait_for_writes(rkey);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_ASSERT(!is_scribbled(fx.fast.pages));
	wait_for_refusals();
}

TEST(rcu, checker_sees_writes_through_a_valid_key)
{
	fx_need_workers(1);
	start_writers();
	stop_writers(TEST_TRY(checker_rounds()));
}

TEST_SUITE(rcu, setup, fx_teardown);
