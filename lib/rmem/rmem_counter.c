/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters. A counter refers to its device. A binding is rmem_mr::counter, which bind_lock
 * orders, and a reference to each of the two: neither is released while it stands.
 */

#include <errno.h>
#include <pthread.h>

#include <rmem_priv.h>
#include <rmem_trace_priv.h>

static pthread_mutex_t bind_lock = PTHREAD_MUTEX_INITIALIZER;

static int
counter_alloc(struct rmem_dev *dev, struct rmem_counter **counter)
{
	struct rmem_counter *new_counter;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV, "rmem_counter_alloc");
	if (ret != 0)
		return ret;
	if (counter == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the counter pointer", dev->name);
		return -EINVAL;
	}
	ret = rmem_obj_get(&dev->obj, "rmem_counter_alloc");
	if (ret != 0)
		return ret;
	new_counter = rmem_obj_alloc(dev, RMEM_OBJ_COUNTER, sizeof(*new_counter));
	if (new_counter == NULL) {
		rmem_obj_put(&dev->obj);
		return -ENOMEM;
	}
	*counter = new_counter;
	return 0;
}

int
rmem_counter_alloc(struct rmem_dev *dev, struct rmem_counter **counter)
{
	return rmem_trace_call(__func__, dev, counter_alloc(dev, counter));
}

static int
counter_free(struct rmem_counter *counter)
{
	struct rmem_dev *dev;
	int ret;

	if (counter == NULL)
		return 0;
	ret = rmem_obj_check(counter, RMEM_OBJ_COUNTER, "rmem_counter_free");
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&counter->obj, "rmem_counter_free");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&counter->obj);
	rmem_obj_free(&counter->obj);
	rmem_obj_put(&dev->obj);
	return 0;
}

int
rmem_counter_free(struct rmem_counter *counter)
{
	return rmem_trace_call(__func__, counter, counter_free(counter));
}

static int
check_bind(const struct rmem_mr *mr, const struct rmem_counter *counter, uint32_t flags)
{
	const char *func = "rmem_mr_bind_counter";
	int ret;

	ret = rmem_obj_check(mr, RMEM_OBJ_MR, func);
	if (ret == 0 && counter != NULL)
		ret = rmem_obj_check(counter, RMEM_OBJ_COUNTER, func);
	if (ret != 0)
		return ret;
	if (flags != RMEM_COUNTER_REMOTE_WRITE) {
		RMEM_LOG(ERR, "%s: flags 0x%x are not RMEM_COUNTER_REMOTE_WRITE", func, flags);
		return -EINVAL;
	}
	if (mr->type != RMEM_MR_TYPE_USER) {
		RMEM_LOG(ERR, "%s: an MR that requests bind counts nothing", func);
		return -EINVAL;
	}
	if (counter != NULL && counter->obj.dev_id != mr->obj.dev_id) {
		RMEM_LOG(ERR, "%s: MR and counter are of different devices", func);
		return -EINVAL;
	}
	return 0;
}

/* Call with the lock held, as the next one. */
static int
do_bind(struct rmem_mr *mr, struct rmem_counter *counter)
{
	int ret;

	if (mr->counter != NULL || !rmem_mr_is_registered(mr)) {
		RMEM_LOG(ERR, "MR %p: %s", (void *)mr,
				mr->counter != NULL ? "a counter is bound to it"
						    : "its registration is under way or failed");
		return -EBUSY;
	}
	ret = rmem_obj_get(&mr->obj, "rmem_mr_bind_counter");
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&counter->obj, "rmem_mr_bind_counter");
	if (ret != 0)
		goto put_mr;
	ret = rmem_dev_ops(rmem_obj_dev(&mr->obj))->mr_bind_counter(mr, counter);
	if (ret != 0)
		goto put_counter;
	mr->counter = counter;
	return 0;

put_counter:
	rmem_obj_put(&counter->obj);
put_mr:
	rmem_obj_put(&mr->obj);
	return ret;
}

static int
do_unbind(struct rmem_mr *mr)
{
	struct rmem_counter *counter = mr->counter;
	int ret;

	if (counter == NULL)
		return 0;
	ret = rmem_dev_ops(rmem_obj_dev(&mr->obj))->mr_bind_counter(mr, NULL);
	if (ret != 0)
		return ret;
	mr->counter = NULL;
	rmem_obj_put(&counter->obj);
	rmem_obj_put(&mr->obj);
	return 0;
}

static int
mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter, uint32_t flags)
{
	int ret;

	ret = check_bind(mr, counter, flags);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&bind_lock);
	ret = counter != NULL ? do_bind(mr, counter) : do_unbind(mr);
	pthread_mutex_unlock(&bind_lock);
	return ret;
}

int
rmem_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter, uint32_t flags)
{
	return rmem_trace_call(__func__, mr, mr_bind_counter(mr, counter, flags));
}
