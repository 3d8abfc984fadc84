/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The table of the devices of this process, by number.
 *
 * A secondary process has only the devices that it is attached to. Invariant: a slot is free if its
 * tag is RMEM_OBJ_NONE, and then its fast-path functions are those of rmem_fp_none. Slots are
 * allocated and freed under devs_lock; the tag is set last, with release.
 *
 * This file is below rmem_obj.c, which checks objects with the table.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <rte_string_fns.h>

#include "rmem_mp_priv.h"
#include "rmem_priv.h"

struct rmem_dev_slot rmem_devs[RMEM_MAX_DEVS];
static pthread_mutex_t devs_lock = PTHREAD_MUTEX_INITIALIZER;

struct rmem_fp_ops rmem_fp[RMEM_MAX_DEVS];

RTE_INIT(rmem_devs_init)
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		rmem_devs[i].drv.dev.obj.dev_id = (uint16_t)i;
		rmem_fp[i] = rmem_fp_none;
	}
}

void
rmem_devs_lock(void)
{
	pthread_mutex_lock(&devs_lock);
}

void
rmem_devs_unlock(void)
{
	pthread_mutex_unlock(&devs_lock);
}

struct rmem_dev *
rmem_devs_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		struct rmem_dev *dev = &rmem_devs[i].drv.dev;

		if (dev->obj.type == RMEM_OBJ_DEV && strcmp(dev->name, name) == 0)
			return dev;
	}
	return NULL;
}

struct rmem_dev_slot *
rmem_devs_find_free(void)
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		if (rmem_devs[i].drv.dev.obj.type == RMEM_OBJ_NONE)
			return &rmem_devs[i];
	}
	return NULL;
}

/* Fast-path functions of a device whose primary process has ended. */
static int
orphan_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return -ENODEV;
}

static int
orphan_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return -ENODEV;
}

/* Return the remaining completions first. */
static int
orphan_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int ret = rmem_devs[cq->obj.dev_id].drv.driver->ops.mp->fp.poll_cq(cq, wc, nb_wc);

	return ret == 0 ? -ENODEV : ret;
}

void
rmem_dev_orphan_all(void)
{
	unsigned int i;

	pthread_mutex_lock(&devs_lock);
	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		if (rmem_devs[i].drv.dev.obj.type != RMEM_OBJ_DEV)
			continue;
		__atomic_store_n(&rmem_fp[i].post_send, orphan_post_send, __ATOMIC_RELAXED);
		__atomic_store_n(&rmem_fp[i].post_recv, orphan_post_recv, __ATOMIC_RELAXED);
		__atomic_store_n(&rmem_fp[i].poll_cq, orphan_poll_cq, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&devs_lock);
}

int
rmem_dev_adopt(const char *name, uint16_t dev_id, const struct mp_dev *shared,
		const struct rmem_driver *driver, struct rmem_dev **dev)
{
	struct rmem_dev_slot *slot = &rmem_devs[dev_id];
	int ret = 0;

	pthread_mutex_lock(&devs_lock);
	if (slot->drv.dev.obj.type != RMEM_OBJ_NONE) {
		ret = RMEM_FAIL(EALREADY, "device \"%s\": this process is already attached", name);
	} else {
		slot->info = shared->info;
		slot->info.driver_name = driver->name;
		slot->drv.driver = driver;
		slot->drv.priv = shared->priv;
		slot->drv.dev.socket_id = shared->socket_id;
		strlcpy(slot->drv.dev.name, name, sizeof(slot->drv.dev.name));
		rmem_fp[dev_id] = driver->ops.mp->fp;
		__atomic_store_n(&slot->drv.dev.obj.type, RMEM_OBJ_DEV, __ATOMIC_RELEASE);
		*dev = &slot->drv.dev;
	}
	pthread_mutex_unlock(&devs_lock);
	return ret;
}

bool
rmem_mp_is_attached(const struct rmem_dev *dev)
{
	return dev != NULL && rte_eal_process_type() == RTE_PROC_SECONDARY &&
			dev >= &rmem_devs[0].drv.dev &&
			dev <= &rmem_devs[RMEM_MAX_DEVS - 1].drv.dev &&
			dev->obj.type == RMEM_OBJ_DEV;
}

bool
rmem_dev_abandon(const struct rmem_dev *dev)
{
	bool is_attached;

	pthread_mutex_lock(&devs_lock);
	is_attached = rmem_mp_is_attached(dev);
	if (is_attached) {
		rmem_fp[dev->obj.dev_id] = rmem_fp_none;
		rmem_devs[dev->obj.dev_id].drv.dev.obj.type = RMEM_OBJ_NONE;
	}
	pthread_mutex_unlock(&devs_lock);
	return is_attached;
}

void
rmem_dev_forget_all(void)
{
	unsigned int i;

	rmem_process_set_child();
	/* Another thread of the parent may have held the lock at fork(). */
	devs_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		rmem_fp[i] = rmem_fp_none;
		rmem_devs[i].drv.dev.obj.type = RMEM_OBJ_NONE;
	}
}

/* Return the remaining completions first. */
static int
failed_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	const struct rmem_dev_drv *drv = &rmem_devs[cq->obj.dev_id].drv;
	int ret = (drv->fp != NULL ? drv->fp : &drv->driver->fp)->poll_cq(cq, wc, nb_wc);

	return ret == 0 ? -EIO : ret;
}

/*
 * Relaxed stores: the new functions read nothing that this thread has written. The lock of the
 * channel orders the stores before the event, for a thread that gets the event.
 */
void
rmem_dev_fail(struct rmem_dev *dev)
{
	struct rmem_fp_ops *fp = &rmem_fp[dev->obj.dev_id];

	__atomic_store_n(&rmem_devs[dev->obj.dev_id].has_failed, true, __ATOMIC_RELAXED);
	__atomic_store_n(&fp->post_send, rmem_fp_none.post_send, __ATOMIC_RELAXED);
	__atomic_store_n(&fp->post_recv, rmem_fp_none.post_recv, __ATOMIC_RELAXED);
	__atomic_store_n(&fp->srq_post_recv, rmem_fp_none.srq_post_recv, __ATOMIC_RELAXED);
	__atomic_store_n(&fp->poll_cq, failed_poll_cq, __ATOMIC_RELAXED);
}

struct rmem_dev *
rmem_dev_get_by_name(const char *name)
{
	struct rmem_dev *dev;

	if (name == NULL)
		return NULL;
	pthread_mutex_lock(&devs_lock);
	dev = rmem_devs_find(name);
	pthread_mutex_unlock(&devs_lock);
	return dev;
}

struct rmem_dev *
rmem_dev_hold_by_name(const char *name)
{
	struct rmem_dev *dev;

	pthread_mutex_lock(&devs_lock);
	dev = rmem_devs_find(name);
	if (dev != NULL && !rmem_obj_hold(&dev->obj))
		dev = NULL;
	pthread_mutex_unlock(&devs_lock);
	return dev;
}

struct rmem_dev *
rmem_dev_next(const struct rmem_dev *prev)
{
	unsigned int i;

	for (i = prev == NULL ? 0 : prev->obj.dev_id + 1u; i < RMEM_MAX_DEVS; i++) {
		if (rmem_devs[i].drv.dev.obj.type == RMEM_OBJ_DEV)
			return &rmem_devs[i].drv.dev;
	}
	return NULL;
}

int
rmem_dev_visit(int (*func)(struct rmem_dev *dev, void *arg), void *arg)
{
	struct rmem_dev *dev = NULL;
	int ret = 0;

	pthread_mutex_lock(&devs_lock);
	while (ret == 0 && (dev = rmem_dev_next(dev)) != NULL)
		ret = func(dev, arg);
	pthread_mutex_unlock(&devs_lock);
	return ret;
}
