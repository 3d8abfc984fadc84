/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A device that others use is closed, or they keep their QPs; with a driver of the test. */

#include <pthread.h>
#include <sched.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_driver.h>
#include <rmem_pd.h>
#include <rmem_qp.h>
#include <rmem_xrcd.h>

#include "fixture.h"
#include "stub_driver.h"

#define ROUNDS 2000

static struct {
	struct rmem_dev *dev;
	struct rmem_xrcd *xrcd;
	struct rmem_qp *qp;
	struct rmem_qp *held; /* by another process, until the driver releases it */
	unsigned int nb_left; /* calls of the driver to release it */
	bool is_kept;         /* the driver does not */
	int create_ret;       /* of the creation of a PD then */
	uint32_t turn;        /* of the other thread; UINT32_MAX: it ends. Atomic */
	uint32_t done;        /* its last turn; atomic */
} left;

static void
qp_leave(struct rmem_dev *dev)
{
	struct rmem_pd *pd;

	left.nb_left++;
	left.create_ret = rmem_pd_alloc(dev, &pd);
	if (!left.is_kept)
		rmem_qp_unhold(left.held);
}

static int
qp_open(struct rmem_qp *qp, struct rmem_xrcd *xrcd)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(xrcd);
	return -ENOENT;
}

static int
xrcd_alloc(struct rmem_xrcd *xrcd, const struct rmem_xrcd_conf *conf)
{
	RTE_SET_USED(xrcd);
	RTE_SET_USED(conf);
	return 0;
}

static int
xrcd_dealloc(struct rmem_xrcd *xrcd)
{
	RTE_SET_USED(xrcd);
	return 0;
}

static int
srq_num_get(struct rmem_srq *srq, uint32_t *number)
{
	RTE_SET_USED(srq);
	*number = 0;
	return 0;
}

static void
setup(void)
{
	static const struct rmem_qp_share_ops share = {.qp_open = qp_open, .qp_leave = qp_leave};
	static const struct rmem_xrc_ops xrc = {.xrcd_size = sizeof(struct rmem_xrcd),
			.srq_num_get = srq_num_get,
			.xrcd_dealloc = xrcd_dealloc,
			.xrcd_alloc = xrcd_alloc,
			.share = &share};
	struct rmem_driver driver = stub_driver_full("leaver");

	driver.ops.xrc = &xrc;
	stub_register(&driver);
	stub.capa = RMEM_DEV_CAPA_XRC;
	memset(&left, 0, sizeof(left));
}

static void
teardown(void)
{
}

/* Create a device with a QP that another process has opened. */
static void
open_dev(void)
{
	const struct rmem_xrcd_conf domain = {.fd = 0};
	struct rmem_qp_ext ext = {.xrcd = NULL};
	const struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV, .ext = &ext};

	TEST_OK(rmem_dev_create("leaver0", NULL, &left.dev));
	TEST_OK(rmem_xrcd_alloc(left.dev, &domain, &left.xrcd));
	ext.xrcd = left.xrcd;
	TEST_OK(rmem_qp_create(NULL, &conf, &left.qp));
	TEST_OK(rmem_qp_hold(left.xrcd, left.qp->qp_num, &left.held));
}

/* Destroy all that this process has, but the device. */
static void
leave_qp(void)
{
	TEST_OK(rmem_qp_destroy(left.qp));
	TEST_OK(rmem_xrcd_dealloc(left.xrcd));
}

TEST(dev_left, no_object_is_created_while_qps_of_others_are_released)
{
	open_dev();
	leave_qp();
	TEST_OK(rmem_dev_close(left.dev));
	TEST_EQ(left.nb_left, 1);
	TEST_EQ(left.create_ret, -ENODEV);
}

TEST(dev_left, device_in_use_keeps_the_qps_of_others)
{
	struct rmem_qp_call call = {.op = UINT32_MAX};
	struct rmem_pd *pd;

	open_dev();
	leave_qp();
	TEST_OK(rmem_pd_alloc(left.dev, &pd));
	TEST_ERR(rmem_dev_close(left.dev), EBUSY);
	TEST_EQ(left.nb_left, 0);
	TEST_ERR(rmem_qp_execute(left.held, &call), EINVAL);
	TEST_OK(rmem_pd_dealloc(pd));
	TEST_OK(rmem_dev_close(left.dev));
	TEST_EQ(left.nb_left, 1);
}

TEST(dev_left, device_whose_driver_keeps_a_qp_remains_usable)
{
	struct rmem_pd *pd;

	open_dev();
	leave_qp();
	left.is_kept = true;
	TEST_ERR(rmem_dev_close(left.dev), EBUSY);
	TEST_EQ(left.create_ret, -ENODEV);
	TEST_OK(rmem_pd_alloc(left.dev, &pd));
	TEST_OK(rmem_pd_dealloc(pd));
	rmem_qp_unhold(left.held);
	TEST_OK(rmem_dev_close(left.dev));
	TEST_EQ(left.nb_left, 1);
}

/* In each turn, create objects until the device is closed, or destroy the QP. */
static void *
run_user(void *arg)
{
	const bool is_creating = arg != NULL;
	uint32_t turn, last = 0;
	struct rmem_pd *pd;

	while ((turn = __atomic_load_n(&left.turn, __ATOMIC_ACQUIRE)) != UINT32_MAX) {
		if (turn == last) {
			sched_yield();
			continue;
		}
		if (!is_creating)
			TEST_OK(rmem_qp_destroy(left.qp));
		while (is_creating && rmem_pd_alloc(left.dev, &pd) == 0)
			TEST_OK(rmem_pd_dealloc(pd));
		last = turn;
		__atomic_store_n(&left.done, last, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Close a device as soon as possible: each close succeeds, or no QP was released. */
static void
race_with(void *arg)
{
	pthread_t thread;
	unsigned int i;
	int ret;

	TEST_EQ(pthread_create(&thread, NULL, run_user, arg), 0);
	for (i = 1; i <= ROUNDS; i++) {
		open_dev();
		left.nb_left = 0;
		if (arg != NULL)
			leave_qp();
		__atomic_store_n(&left.turn, i, __ATOMIC_RELEASE);
		while (arg == NULL && rmem_xrcd_dealloc(left.xrcd) != 0)
			;
		do {
			ret = rmem_dev_close(left.dev);
			TEST_EQ(left.nb_left, ret == 0);
		} while (ret != 0);
		while (__atomic_load_n(&left.done, __ATOMIC_ACQUIRE) != i)
			sched_yield();
	}
	__atomic_store_n(&left.turn, UINT32_MAX, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

TEST(dev_left, close_while_a_thread_creates_objects)
{
	race_with(&left);
}

TEST(dev_left, close_while_a_thread_leaves_the_qp)
{
	race_with(NULL);
}

TEST_SUITE(dev_left, setup, teardown);
