/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Objects of the cases: made, remembered and released. */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_cycles.h>

#include "fixture.h"

#define MAX_OBJECTS 32768
#define MAX_MEM     256

struct fixture fx;

/* In the order made: released in the opposite one. */
static struct rmem_obj *objects[MAX_OBJECTS];
static unsigned int nb_objects;
static void *mems[MAX_MEM];
static unsigned int nb_mems;
static struct {
	void *mem;
	size_t size;
} maps[8];
static unsigned int nb_maps;

void
fx_track(void *object)
{
	if (nb_objects == MAX_OBJECTS) {
		printf("fixture: more than %d objects\n", MAX_OBJECTS);
		abort();
	}
	objects[nb_objects++] = object;
}

void
fx_untrack(const void *object)
{
	unsigned int i = nb_objects;

	while (i > 0 && objects[i - 1] != object)
		i--;
	if (i == 0)
		return;
	for (nb_objects--; i <= nb_objects; i++)
		objects[i - 1] = objects[i];
}

static int
release(struct rmem_obj *object)
{
	switch (object->type) {
	case RMEM_OBJ_DEV:
		return rmem_dev_close((struct rmem_dev *)object);
	case RMEM_OBJ_PD:
		return rmem_pd_dealloc((struct rmem_pd *)object);
	case RMEM_OBJ_MR:
		return rmem_mr_dereg((struct rmem_mr *)object);
	case RMEM_OBJ_CQ:
		return rmem_cq_destroy((struct rmem_cq *)object);
	case RMEM_OBJ_QP:
		return rmem_qp_destroy((struct rmem_qp *)object);
	case RMEM_OBJ_MW:
		return rmem_mw_dealloc((struct rmem_mw *)object);
	case RMEM_OBJ_AH:
		return rmem_ah_destroy((struct rmem_ah *)object);
	case RMEM_OBJ_SRQ:
		return rmem_srq_destroy((struct rmem_srq *)object);
	case RMEM_OBJ_XRCD:
		return rmem_xrcd_dealloc((struct rmem_xrcd *)object);
	case RMEM_OBJ_DM:
		return rmem_dm_free((struct rmem_dm *)object);
	case RMEM_OBJ_COUNTER:
		return rmem_counter_destroy((struct rmem_counter *)object);
	case RMEM_OBJ_ASYNC_CHANNEL:
		return rmem_async_channel_destroy((struct rmem_async_channel *)object);
	case RMEM_OBJ_COMP_CHANNEL:
		return rmem_comp_channel_destroy((struct rmem_comp_channel *)object);
	case RMEM_OBJ_EQ:
		return rmem_eq_destroy((struct rmem_eq *)object);
	case RMEM_OBJ_PAGE_LIST:
		return rmem_fast_reg_page_list_free((struct rmem_fast_reg_page_list *)object);
	default:
		return -EINVAL;
	}
}

int
fx_release(void *object)
{
	int ret = release(object);

	if (ret == 0)
		fx_untrack(object);
	return ret;
}

void
fx_expect_bad_fields(const void *good, size_t size, const struct fx_bad_field *rows,
		unsigned int nb_rows, int (*call)(const void *conf))
{
	uint64_t conf[128];
	unsigned int i;

	TEST_ASSERT(size <= sizeof(conf));
	for (i = 0; i < nb_rows; i++) {
		memcpy(conf, good, size);
		/* The low bytes are the first ones. */
		memcpy((uint8_t *)conf + rows[i].offset, &rows[i].value, rows[i].size);
		TEST_STOP_UNLESS(test_check_errno(
				__FILE__, __LINE__, rows[i].text, call(conf), -rows[i].error));
	}
}

/* Nothing but what the list holds may be counted on the device, and nothing in the end. */
static void
check_empty(struct rmem_dev *dev)
{
	struct rmem_dev_info info = fx_dev_info(dev);

	TEST_EQ(info.nb_qp, 0);
	TEST_EQ(info.nb_cq, 0);
	TEST_EQ(info.nb_mr, 0);
	TEST_EQ(info.nb_mw, 0);
	TEST_EQ(info.nb_srq, 0);
	TEST_EQ(info.nb_pd, 0);
}

/* The invariants of all devices, after the case; drivers without an audit are skipped. */
static void
audit_devices(void)
{
	struct rmem_dev *dev;
	int ret;

	RMEM_DEV_FOREACH(dev) {
		ret = rmem_dev_audit(dev);
		if (ret != 0 && ret != -EOPNOTSUPP) {
			printf("tear-down: audit of %s: %s\n", dev->name, strerror(-ret));
			test_stop(TEST_FAILED);
		}
	}
}

bool fx_is_cut_short;

/* Queued requests and unread events refer to objects that are younger than their queues. */
static void
release_any_order(void)
{
	unsigned int i, before;

	for (i = 0; i < nb_objects; i++) {
		while (objects[i]->type == RMEM_OBJ_EQ &&
				fx_event((struct rmem_eq *)objects[i]).status != -ETIMEDOUT)
			;
	}
	do {
		before = nb_objects;
		for (i = nb_objects; i > 0; i--) {
			struct rmem_obj *object = objects[i - 1];

			if (object->type != RMEM_OBJ_DEV && release(object) == 0)
				fx_untrack(object);
		}
	} while (nb_objects != before);
}

void
fx_teardown(void)
{
	int result = FX_IS_AUDITED ? TEST_TRY(audit_devices()) : TEST_SUCCESS;
	int ret;

	if (fx_is_cut_short)
		release_any_order();
	while (nb_objects > 0) {
		struct rmem_obj *object = objects[--nb_objects];

		if (object->type == RMEM_OBJ_DEV &&
				TEST_TRY(check_empty((struct rmem_dev *)object)) != TEST_SUCCESS)
			result = TEST_FAILED;
		ret = release(object);
		if (ret != 0) {
			printf("tear-down: releasing 0x%x: %s\n", object->type, strerror(-ret));
			result = TEST_FAILED;
		}
	}
	while (nb_mems > 0)
		free(mems[--nb_mems]);
	for (; nb_maps > 0; nb_maps--)
		munmap(maps[nb_maps - 1].mem, maps[nb_maps - 1].size);
	fx_free_memory();
	memset(&fx, 0, sizeof(fx));
	TEST_RUN(result);
}

void *
fx_mem(size_t align, size_t size)
{
	void *mem = NULL;

	if (nb_mems == MAX_MEM || posix_memalign(&mem, align, size) != 0) {
		printf("fixture: no %zu bytes of memory\n", size);
		abort();
	}
	memset(mem, 0, size);
	mems[nb_mems++] = mem;
	return mem;
}

void *
fx_map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (nb_maps == RTE_DIM(maps) || mem == MAP_FAILED) {
		printf("fixture: no %zu bytes of memory\n", size);
		abort();
	}
	maps[nb_maps].mem = mem;
	maps[nb_maps++].size = size;
	return mem;
}

/* Add the object that a call has created to the list. */
static void *
made(int ret, void *object, const char *call)
{
	if (ret != 0) {
		test_note("fixture: %s: %s", call, strerror(-ret));
		test_stop(TEST_FAILED);
	}
	fx_track(object);
	return object;
}

struct rmem_dev *
fx_dev(const char *name, const char *args)
{
	struct rmem_dev *dev = NULL;
	int ret = rmem_dev_create(name, args, &dev);

	return made(ret, dev, "rmem_dev_create");
}

struct rmem_pd *
fx_pd(struct rmem_dev *dev)
{
	struct rmem_pd *pd = NULL;
	int ret = rmem_pd_alloc(dev, &pd);

	return made(ret, pd, "rmem_pd_alloc");
}

struct rmem_mr *
fx_mr(struct rmem_pd *pd, void *addr, size_t length, uint32_t access)
{
	struct rmem_mr *mr = NULL;
	int ret = rmem_mr_reg(pd, addr, length, 0, access, &mr);

	return made(ret, mr, "rmem_mr_reg");
}

struct rmem_mr *
fx_mr_unmapped(struct rmem_pd *pd)
{
	void *mem = mmap(NULL, FX_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rmem_mr *mr;

	TEST_ASSERT(mem != MAP_FAILED);
	mr = fx_mr(pd, mem, FX_PAGE, 0);
	TEST_OK(munmap(mem, FX_PAGE));
	return mr;
}

int
fx_reg_attr(struct rmem_pd *pd, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	int ret = rmem_mr_reg_attr(pd, attr, mr);

	if (ret == 0)
		fx_track(*mr);
	return ret;
}

struct rmem_mr *
fx_fast_mr(struct rmem_pd *pd, uint32_t nb_pages)
{
	struct rmem_mr *mr = NULL;
	int ret = rmem_fast_reg_mr_alloc(pd, nb_pages, &mr);

	return made(ret, mr, "rmem_fast_reg_mr_alloc");
}

struct rmem_mr *
fx_mkey(struct rmem_pd *pd, uint32_t nb_entries)
{
	struct rmem_mr *mr = NULL;
	int ret = rmem_mkey_alloc(pd, nb_entries, &mr);

	return made(ret, mr, "rmem_mkey_alloc");
}

struct rmem_fast_reg_page_list *
fx_page_list(struct rmem_dev *dev, uint32_t nb_pages)
{
	struct rmem_fast_reg_page_list *list = NULL;
	int ret = rmem_fast_reg_page_list_alloc(dev, nb_pages, &list);

	return made(ret, list, "rmem_fast_reg_page_list_alloc");
}

struct rmem_counter *
fx_counter(struct rmem_dev *dev)
{
	struct rmem_counter *counter = NULL;
	int ret = rmem_counter_create(dev, NULL, &counter);

	return made(ret, counter, "rmem_counter_create");
}

struct rmem_eq *
fx_eq(struct rmem_dev *dev, uint32_t nb_events)
{
	struct rmem_eq *eq = NULL;
	int ret = rmem_eq_create(dev, &(struct rmem_eq_conf){.nb_events = nb_events}, &eq);

	return made(ret, eq, "rmem_eq_create");
}

struct rmem_event
fx_event(struct rmem_eq *eq)
{
	struct rmem_event event = {.status = -ETIMEDOUT};
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while (rmem_eq_read(eq, &event, 1) == 0 && !fx_is_late(deadline))
		fx_relax(&spins);
	return event;
}

struct rmem_cq *
fx_cq(struct rmem_dev *dev, uint32_t nb_cqe)
{
	const struct rmem_cq_conf conf = {.nb_cqe = nb_cqe};

	return fx_cq_by(dev, &conf);
}

struct rmem_cq *
fx_cq_by(struct rmem_dev *dev, const struct rmem_cq_conf *conf)
{
	struct rmem_cq *cq = NULL;
	int ret = rmem_cq_create(dev, conf, &cq);

	return made(ret, cq, "rmem_cq_create");
}

struct rmem_comp_channel *
fx_channel(struct rmem_dev *dev)
{
	struct rmem_comp_channel *channel = NULL;
	int ret = rmem_comp_channel_create(dev, &channel);

	return made(ret, channel, "rmem_comp_channel_create");
}

struct rmem_async_channel *
fx_async_channel(struct rmem_dev *dev)
{
	struct rmem_async_channel *channel = NULL;
	int ret = rmem_async_channel_create(dev, &channel);

	return made(ret, channel, "rmem_async_channel_create");
}

struct rmem_dev_info
fx_dev_info(struct rmem_dev *dev)
{
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(dev, &info));
	return info;
}

struct rmem_dev_stats
fx_dev_stats(struct rmem_dev *dev)
{
	struct rmem_dev_stats stats = {0};

	TEST_OK(rmem_dev_stats_get(dev, &stats));
	return stats;
}

bool
fx_is_readable(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, timeout_ms) == 1;
}

void
fx_expect_async(struct rmem_async_channel *channel, uint32_t type, const void *obj)
{
	struct rmem_async_event event;

	TEST_ASSERT(fx_is_readable(channel->fd, 0));
	TEST_OK(rmem_async_channel_get_event(channel, &event));
	TEST_EQ(event.type, type);
	TEST_ASSERT(event.qp == obj);
	TEST_OK(rmem_async_event_ack(&event));
}

void
fx_await_async(struct rmem_async_channel *channel, uint32_t type, const void *obj)
{
	TEST_ASSERT(fx_is_readable(channel->fd, FX_EVENT_MS));
	fx_expect_async(channel, type, obj);
}

struct rmem_qp_conf
fx_qp_conf(struct rmem_cq *cq, uint32_t depth)
{
	return (struct rmem_qp_conf){.send_cq = cq,
			.recv_cq = cq,
			.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64,
			.type = RMEM_QPT_RC,
			.access = RMEM_ACCESS_REMOTE};
}

struct rmem_qp *
fx_qp_by(struct rmem_pd *pd, const struct rmem_qp_conf *conf)
{
	struct rmem_qp *qp = NULL;
	int ret = rmem_qp_create(pd, conf, &qp);

	return made(ret, qp, "rmem_qp_create");
}

struct rmem_qp *
fx_qp(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t depth)
{
	const struct rmem_qp_conf conf = fx_qp_conf(cq, depth);

	return fx_qp_by(pd, &conf);
}

void
fx_side_open(struct fx_side *side, struct rmem_dev *dev, struct rmem_pd *pd)
{
	side->dev = dev;
	side->pd = pd;
	side->buf = fx_mem(FX_PAGE, FX_BUF_SIZE);
	side->mr = fx_mr(pd, side->buf, FX_BUF_SIZE, FX_ACCESS);
	side->cq = fx_cq(dev, 4 * FX_DEPTH);
	side->qp = fx_qp(pd, side->cq, FX_DEPTH);
}

void
fx_sides_open(struct rmem_dev *dev)
{
	struct rmem_pd *pd = fx_pd(dev);

	fx_side_open(&fx.a, dev, pd);
	fx_side_open(&fx.b, dev, pd);
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
}

void
fx_setup_none(void)
{
	nb_objects = 0;
	memset(&fx, 0, sizeof(fx));
}

/*
 * RMEM_TEST_DEV is the device and its arguments, "verbs0,ibdev=rxe0" for instance; soft0 without.
 * RMEM_TEST_ARGS are arguments alone, "engine=1" for instance. One left by a failed case
 * stays there: the others use another.
 */
void
fx_setup_dev(void)
{
	const char *spec = getenv("RMEM_TEST_DEV");
	const char *args = getenv("RMEM_TEST_ARGS");
	char name[RMEM_NAME_SIZE], driver[RMEM_NAME_SIZE];
	unsigned int i;

	fx_setup_none();
	if (spec == NULL)
		spec = "soft0";
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, ","), spec);
	snprintf(driver, sizeof(driver), "%.*s", (int)strcspn(name, "0123456789"), name);
	if (strchr(spec, ',') != NULL)
		args = strchr(spec, ',') + 1;
	for (i = 100; rmem_dev_get_by_name(name) != NULL; i++)
		snprintf(name, sizeof(name), "%.16s%u", driver, i);
	fx.a.dev = fx_dev(name, args);
	fx.b.dev = fx.a.dev;
}

void
fx_setup(void)
{
	fx_setup_dev();
	fx_sides_open(fx.a.dev);
}

void
fx_setup_inline(void)
{
	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "1", 1), 0);
	fx_setup();
}

void
fx_teardown_inline(void)
{
	TEST_EQ(unsetenv("RMEM_SCATTER_TO_CQE"), 0);
	fx_teardown();
}

void
fx_setup_fast(void)
{
	fx_setup();
	fx.fast.pages = fx_mem(FX_PAGE, FX_FAST_PAGES * FX_PAGE);
	fx.fast.mr = fx_fast_mr(fx.a.pd, FX_FAST_PAGES);
	fx.fast.list = fx_page_list(fx.a.dev, FX_FAST_PAGES);
	fx_list_pages(fx.fast.list, fx.fast.pages, FX_FAST_PAGES);
}

uint64_t
fx_deadline(void)
{
	return rte_get_timer_cycles() + (uint64_t)(FX_DEADLINE_S * (double)rte_get_timer_hz());
}

bool
fx_is_late(uint64_t deadline)
{
	return rte_get_timer_cycles() > deadline;
}

void
fx_await_counts(const uint64_t *first, size_t stride, unsigned int nb)
{
	unsigned int i;

	for (i = 0; i < nb; i++) {
		const uint64_t *count = RTE_PTR_ADD(first, i * stride);
		uint64_t want = __atomic_load_n(count, __ATOMIC_ACQUIRE) + 2;

		FX_AWAIT(__atomic_load_n(count, __ATOMIC_ACQUIRE) >= want);
	}
}

bool
fx_has_capa(struct rmem_dev *dev, uint64_t capa)
{
	struct rmem_dev_info info;

	return rmem_dev_info_get(dev, &info) == 0 && (info.capa & capa) == capa;
}

bool
fx_is_soft(void)
{
	struct rmem_dev_info info;

	return rmem_dev_info_get(fx.a.dev, &info) == 0 && strcmp(info.driver_name, "soft") == 0;
}

void
fx_need_soft(void)
{
	TEST_SKIP_IF(!fx_is_soft(), "it is about the software device");
}

bool
fx_is_rxe(void)
{
	const char *spec = getenv("RMEM_TEST_DEV");

	return spec != NULL && strstr(spec, "ibdev=rxe") != NULL;
}

uint64_t
fx_addr(const void *addr)
{
	return (uintptr_t)addr;
}

void
fx_fill(void *buf, size_t length, uint32_t seed)
{
	uint8_t *bytes = buf;
	size_t i;

	for (i = 0; i < length; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

bool
fx_is_zero(const void *buf, size_t length)
{
	const uint8_t *bytes = buf;
	size_t i;

	for (i = 0; i < length && bytes[i] == 0; i++)
		;
	return i == length;
}
