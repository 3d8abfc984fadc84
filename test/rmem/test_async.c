/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Registrations in the background end with one event each; their keys are not valid before. */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "stub_driver.h"

#define MIB         (1024u * 1024)
#define MAX_WORKERS 3u

static int marks[4]; /* their addresses are contexts */

static struct rmem_mr_attr
attr_of(struct rmem_eq *eq, void *addr, size_t length)
{
	return (struct rmem_mr_attr){.addr = addr,
			.length = length,
			.access = FX_ACCESS,
			.eq = eq,
			.context = &marks[0]};
}

static uint8_t *
map(size_t size)
{
	void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

/* All pages of 200 MiB, from an odd byte to another, are there when the event is. */
TEST(async, large_registration_populates_all_pages)
{
	const size_t size = 200u * MIB;
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	uint8_t *mem = map(size);
	unsigned char *resident = fx_mem(8, size / FX_PAGE);
	struct rmem_mr_attr attr = attr_of(eq, mem + 5, size - 9);
	struct rmem_mr *mr = NULL;
	size_t i;

	TEST_ASSERT(mem != NULL);
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(fx_event(eq).status);
	TEST_OK(mincore(mem, size, resident));
	for (i = 0; i < size / FX_PAGE; i++)
		TEST_EQ(resident[i] & 1, 1);
	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(fx_peer_write(mr->iova + mr->length - 64, 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(mem + size - 4 - 64, fx.b.buf, 64);
	TEST_OK(fx_release(mr));
	munmap(mem, size);
}

/* One piece of several fails: the MR can only be released. */
TEST(async, hole_in_the_memory_is_an_event_with_efault)
{
	const size_t size = 300u * MIB, hole = 170u * MIB;
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	uint8_t *mem = map(size);
	struct rmem_mr_attr attr = attr_of(eq, mem, size);
	struct rmem_mr *mr = NULL;
	struct rmem_event event;

	TEST_ASSERT(mem != NULL);
	TEST_OK(munmap(mem + hole, FX_PAGE));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	event = fx_event(eq);
	TEST_ERR(event.status, EFAULT);
	TEST_ASSERT(event.mr == mr && event.context == &marks[0]);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_ERROR);
	TEST_ERR(rmem_mr_enable(mr), EBUSY);
	TEST_OK(fx_release(mr));
	munmap(mem, size);
}

/* The event also reports an error that only the driver finds. */
TEST(async, failure_of_the_driver_is_in_the_event)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 2);
	struct rmem_mr_attr attr = attr_of(eq, fx.a.buf, 64);
	struct rmem_mr *mr = NULL;

	attr.flags = RMEM_MR_REQUESTED_KEY;
	attr.requested_key = fx.a.mr->rkey;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_ERR(fx_event(eq).status, EEXIST);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_ERROR);
}

/* A call that failed has no event and uses no entry of the queue. */
TEST(async, refused_call_yields_no_event)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	struct rmem_mr_attr attr = attr_of(eq, NULL, 64);
	struct rmem_mr *mr = NULL;
	struct rmem_event event;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	attr.addr = fx.a.buf;
	attr.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	attr.access = FX_ACCESS;
	attr.flags = UINT32_C(1) << 31;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	attr.flags = 0;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(fx_event(eq).status);
	TEST_EQ(rmem_eq_read(eq, &event, 1), 0);
}

TEST(async, queue_of_another_device_or_no_queue_is_einval)
{
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_mr_attr attr = attr_of(fx_eq(dev, 1), fx.a.buf, 64);
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	attr.eq = (struct rmem_eq *)fx.a.cq;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
}

TEST(async, disabled_region_is_disabled_after_its_event)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	struct rmem_mr_attr attr = attr_of(eq, fx.a.buf, 64);
	struct rmem_mr *mr = NULL;

	attr.flags = RMEM_MR_DISABLED;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(fx_event(eq).status);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_DISABLED);
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(rmem_mr_enable(mr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
}

TEST(async, memory_of_the_library_is_allocated_and_freed)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 2);
	struct rmem_mr_attr attr = attr_of(eq, NULL, 3 * MIB);
	struct rmem_mr *mr = NULL;

	attr.access |= RMEM_ACCESS_ALLOCATE_MR;
	attr.socket_id = SOCKET_ID_ANY;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(fx_event(eq).status);
	TEST_ASSERT(mr->addr != NULL && mr->length >= 3 * MIB);
	TEST_EQ(mr->iova, fx_addr(mr->addr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mr));
	attr.length = (size_t)1 << 45;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_ERR(fx_event(eq).status, ENOMEM);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_ERROR);
	TEST_OK(fx_release(mr));
}

/* A driver whose mr_reg waits for the gate to open. */
static struct {
	uint32_t is_open;    /* atomic */
	uint32_t nb_waiting; /* atomic */
	unsigned int nb_dereg;
	int ret;
} gate;

static int
gate_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	RTE_SET_USED(attr);
	__atomic_fetch_add(&gate.nb_waiting, 1, __ATOMIC_ACQ_REL);
	FX_AWAIT(__atomic_load_n(&gate.is_open, __ATOMIC_ACQUIRE));
	mr->lkey = mr->rkey = 0x1234;
	return gate.ret;
}

static int
gate_mr_dereg(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	gate.nb_dereg++;
	return 0;
}

/* Registered once. */
static void
setup_gate(void)
{
	struct rmem_driver driver = stub_driver_full("gate");

	driver.ops.mr_reg = gate_mr_reg;
	driver.ops.mr_dereg = gate_mr_dereg;
	stub_register(&driver);
	memset(&gate, 0, sizeof(gate));
	stub.access = FX_ACCESS;
	fx_setup_none();
	fx.a.dev = fx_dev("gate0", NULL);
	fx.a.pd = fx_pd(fx.a.dev);
	fx.a.buf = fx_mem(FX_PAGE, FX_BUF_SIZE);
}

/* Before its event was read, an MR accepts no call but rmem_mr_query(). */
TEST_WITH(async, pending_region_is_busy, setup_gate)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	struct rmem_mr_attr attr = attr_of(eq, fx.a.buf, 64);
	uint64_t deadline = fx_deadline();
	enum rmem_rereg_result result;
	struct rmem_mr *mr = NULL;
	struct rmem_event event;
	unsigned int spins = 0;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	memset(&attr, 0xff, sizeof(attr)); /* not needed any more */
	while (!__atomic_load_n(&gate.nb_waiting, __ATOMIC_ACQUIRE) && !fx_is_late(deadline))
		fx_relax(&spins);
	TEST_EQ(rmem_eq_read(eq, &event, 1), 0);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_PENDING);
	TEST_EQ(fx_query(mr).rkey, 0);
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_ERR(rmem_mr_enable(mr), EBUSY);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result), EBUSY);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_ERR(rmem_eq_destroy(eq), EBUSY);
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
	TEST_ERR(rmem_dev_close(fx.a.dev), EBUSY);
	__atomic_store_n(&gate.is_open, 1, __ATOMIC_RELEASE);
	TEST_OK(fx_event(eq).status);
	TEST_EQ(mr->rkey, 0x1234);
	TEST_EQ(fx_query(mr).rkey, 0x1234);
	TEST_OK(fx_release(mr));
	TEST_EQ(gate.nb_dereg, 1);
}

TEST_WITH(async, driver_does_not_deregister_what_it_refused, setup_gate)
{
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	struct rmem_mr_attr attr = attr_of(eq, fx.a.buf, 64);
	struct rmem_mr *mr = NULL;

	gate.is_open = 1;
	gate.ret = -EIO;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_ERR(fx_event(eq).status, EIO);
	TEST_OK(fx_release(mr));
	TEST_EQ(gate.nb_dereg, 0);
}

/* Several lcores at one queue: all register, all read, and release what they read of. */
struct worker {
	struct rmem_eq *eq;
	uint8_t *buf;
	uint32_t nb_read;
	uint32_t *left; /* events not yet read; atomic */
} __rte_cache_aligned;

#define ROUNDS 200u

static void
register_and_read(void *arg)
{
	struct worker *worker = arg;
	uint64_t deadline = fx_deadline();
	uint32_t nb_asked = 0;
	unsigned int spins = 0;
	struct rmem_event event;
	struct rmem_mr *mr;

	while (__atomic_load_n(worker->left, __ATOMIC_ACQUIRE) != 0 && !fx_is_late(deadline)) {
		struct rmem_mr_attr attr = attr_of(worker->eq, worker->buf, FX_BUF_SIZE);

		if (nb_asked < ROUNDS) {
			int ret = rmem_mr_reg_attr(fx.a.pd, &attr, &mr);

			TEST_ASSERT(ret == 0 || ret == -ENOSPC);
			nb_asked += ret == 0;
		}
		if (rmem_eq_read(worker->eq, &event, 1) == 0) {
			fx_relax(&spins);
			continue;
		}
		TEST_OK(event.status);
		event.mr->rkey ^= 1; /* it is ours alone */
		TEST_OK(rmem_mr_dereg(event.mr));
		__atomic_fetch_sub(worker->left, 1, __ATOMIC_ACQ_REL);
	}
	TEST_EQ(nb_asked, ROUNDS);
}

TEST(async, lcores_share_a_queue)
{
	static struct worker workers[MAX_WORKERS];
	unsigned int i, nb = RTE_MIN(fx_nb_workers(), MAX_WORKERS);
	struct rmem_eq *eq = fx_eq(fx.a.dev, 5);
	uint32_t left = nb * ROUNDS;

	fx_need_workers(2);
	for (i = 0; i < nb; i++) {
		workers[i].eq = eq;
		workers[i].buf = fx_mem(FX_PAGE, FX_BUF_SIZE);
		workers[i].left = &left;
	}
	fx_launch(register_and_read, workers, sizeof(workers[0]), nb);
	fx_join(nb);
	TEST_EQ(left, 0);
	TEST_OK(fx_release(eq));
}

/* Threads start with the first queue and end with the last, over and over. */
static void
make_and_destroy_queues(void *arg)
{
	unsigned int i;

	for (i = 0; i < 50; i++) {
		struct rmem_mr_attr attr;
		struct rmem_eq *eq = NULL;
		struct rmem_mr *mr;

		TEST_OK(rmem_eq_create(fx.a.dev, &(struct rmem_eq_conf){.nb_events = 1}, &eq));
		attr = attr_of(eq, ((struct worker *)arg)->buf, FX_BUF_SIZE);
		TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
		TEST_OK(fx_event(eq).status);
		TEST_OK(rmem_eq_destroy(eq));
		TEST_OK(rmem_mr_dereg(mr));
	}
}

TEST(async, queues_come_and_go_on_every_lcore)
{
	static struct worker workers[MAX_WORKERS];
	unsigned int i, nb = RTE_MIN(fx_nb_workers(), MAX_WORKERS);

	for (i = 0; i < nb; i++)
		workers[i].buf = fx_mem(FX_PAGE, FX_BUF_SIZE);
	fx_launch(make_and_destroy_queues, workers, sizeof(workers[0]), nb);
	fx_join(nb);
}

TEST_SUITE(async, fx_setup, fx_teardown);
