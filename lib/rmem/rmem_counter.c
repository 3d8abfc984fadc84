/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters. A counter refers to its device. A binding to an MR is stored in rmem_mr_drv::counter,
 * protected by bind_lock, and holds a reference to both, so neither can be released while bound. A
 * QP holds references to its counters until it is destroyed.
 */

#include <errno.h>
#include <pthread.h>

#include "rmem_mr_priv.h"

static pthread_mutex_t bind_lock = PTHREAD_MUTEX_INITIALIZER;

static int
check_conf(const struct rmem_counter_conf *conf)
{
	struct rmem_counter_conf rest = *conf;

	rest.flags = 0;
	if ((conf->flags & ~RMEM_COUNTER_BYTES) != 0)
		return RMEM_FAIL(EINVAL, "counter: unknown flags: 0x%x (RMEM_COUNTER_BYTES)",
				conf->flags);
	return rmem_check_reserved(&rest, sizeof(rest));
}

int
rmem_counter_create(struct rmem_dev *dev, const struct rmem_counter_conf *conf,
		struct rmem_counter **counter)
{
	RMEM_CALL(dev);
	struct rmem_counter *new_counter;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(counter, "counter pointer");
	if (ret == 0 && conf != NULL)
		ret = check_conf(conf);
	if (ret != 0)
		return ret;
	new_counter = rmem_obj_create(&dev->obj, RMEM_OBJ_COUNTER, sizeof(*new_counter), &ret);
	if (new_counter == NULL)
		return ret;
	new_counter->flags = conf != NULL ? conf->flags : 0;
	*counter = new_counter;
	return 0;
}

int
rmem_counter_destroy(struct rmem_counter *counter)
{
	RMEM_CALL(counter);
	int ret;

	if (counter == NULL)
		return 0;
	ret = rmem_obj_check(counter, RMEM_OBJ_COUNTER);
	if (ret == 0)
		ret = rmem_obj_kill(&counter->obj);
	if (ret == 0)
		rmem_obj_drop(&counter->obj, &rmem_obj_dev(&counter->obj)->obj);
	return ret;
}

static int
check_bind(const struct rmem_mr *mr, const struct rmem_counter *counter, uint32_t flags)
{
	int ret = rmem_obj_check(mr, RMEM_OBJ_MR);

	if (ret == 0 && counter != NULL)
		ret = rmem_obj_check_of(counter, RMEM_OBJ_COUNTER, &mr->obj);
	if (ret != 0)
		return ret;
	if (flags != RMEM_COUNTER_REMOTE_WRITE)
		return RMEM_FAIL(EINVAL, "counter: unknown flags: 0x%x (RMEM_COUNTER_REMOTE_WRITE)",
				flags);
	if (counter != NULL && (counter->flags & RMEM_COUNTER_BYTES) != 0)
		return RMEM_FAIL(EINVAL, "MR %p: counter of bytes (must count requests)",
				(const void *)mr);
	return rmem_mr_check_user(mr);
}

/* Call do_bind() and do_unbind() with bind_lock held. */
static int
do_bind(struct rmem_mr *mr, struct rmem_counter *counter)
{
	int ret;

	if (rmem_mr_drv(mr)->counter != NULL)
		return RMEM_FAIL(EBUSY, "MR %p: in use: a counter is bound to it", (void *)mr);
	ret = rmem_mr_check_registered(mr);
	if (ret == 0)
		ret = rmem_obj_get(&mr->obj);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&counter->obj);
	if (ret != 0)
		goto put_mr;
	ret = RMEM_OP(mr, mr_bind_counter, mr, counter);
	if (ret != 0)
		goto put_counter;
	rmem_mr_drv(mr)->counter = counter;
	return 0;

put_counter:
	rmem_obj_unhold(&counter->obj);
put_mr:
	rmem_obj_unhold(&mr->obj);
	return ret;
}

static int
do_unbind(struct rmem_mr *mr)
{
	struct rmem_counter *counter = rmem_mr_drv(mr)->counter;
	int ret;

	if (counter == NULL)
		return 0;
	ret = RMEM_OP(mr, mr_bind_counter, mr, NULL);
	if (ret != 0)
		return ret;
	rmem_mr_drv(mr)->counter = NULL;
	rmem_obj_unhold(&counter->obj);
	rmem_obj_unhold(&mr->obj);
	return 0;
}

int
rmem_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter, uint32_t flags)
{
	RMEM_CALL(mr);
	int ret;

	ret = check_bind(mr, counter, flags);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&bind_lock);
	ret = counter != NULL ? do_bind(mr, counter) : do_unbind(mr);
	pthread_mutex_unlock(&bind_lock);
	return ret;
}
