/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * XRC domains. A handle refers to its device; SRQs and QPs refer to the handle.
 *
 * All handles of a file have the same number. Each has its own file descriptor, so that the inode
 * is not used for another file while the domain exists.
 *
 * Other processes may hold QPs of which this process has destroyed its handles. A handle of the
 * domain with such QPs only can be closed, as if it had none; it is freed with the last of them.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

#define FLAGS (RMEM_XRCD_FILE | RMEM_XRCD_CREATE | RMEM_XRCD_EXCL)

/* Held from the search for a domain until it is listed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_handle; /* under the lock */

static int
check_capa(const struct rmem_dev *dev)
{
	if ((rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_XRC) != 0 &&
			rmem_obj_driver(&dev->obj)->ops.xrc != NULL)
		return 0;
	return RMEM_FAIL(EOPNOTSUPP, "%s: no XRC", dev->name);
}

int
rmem_xrcd_check(const struct rmem_xrcd *xrcd, const struct rmem_dev *dev)
{
	int ret = check_capa(dev);

	return ret != 0 ? ret : rmem_obj_check_of(xrcd, RMEM_OBJ_XRCD, &dev->obj);
}

static int
check_conf(const struct rmem_dev *dev, const struct rmem_xrcd_conf *conf)
{
	const uint32_t flags = conf->flags;
	int ret;

	ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved));
	if (ret == 0)
		ret = rmem_name_check(conf->name);
	if (ret != 0)
		return ret;
	if ((flags & ~FLAGS) != 0)
		return RMEM_FAIL(EINVAL, "%s: XRC domain: unknown flags: 0x%x", dev->name,
				flags & ~FLAGS);
	if (((flags & RMEM_XRCD_FILE) == 0 && (flags != 0 || conf->fd != 0)) ||
			(flags & (RMEM_XRCD_CREATE | RMEM_XRCD_EXCL)) == RMEM_XRCD_EXCL)
		return RMEM_FAIL(EINVAL,
				"%s: XRC domain: flags 0x%x, fd %d: CREATE and an fd need FILE, EXCL needs CREATE",
				dev->name, flags, conf->fd);
	return check_capa(dev);
}

/* Duplicate the file descriptor, and identify the file. */
static int
get_file(struct rmem_xrcd *xrcd, const struct rmem_xrcd_conf *conf)
{
	const char *name = rmem_obj_dev(&xrcd->obj)->name;
	struct stat st;

	xrcd->fd = -1;
	if ((conf->flags & RMEM_XRCD_FILE) == 0)
		return 0;
	if (fstat(conf->fd, &st) != 0)
		return RMEM_FAIL(EINVAL, "%s: XRC domain: fd %d: %s", name, conf->fd,
				strerror(errno));
	xrcd->fd = fcntl(conf->fd, F_DUPFD_CLOEXEC, 0);
	if (xrcd->fd < 0)
		return RMEM_FAIL(ENOMEM, "%s: XRC domain: fd %d: %s", name, conf->fd,
				strerror(errno));
	xrcd->file[0] = st.st_dev;
	xrcd->file[1] = st.st_ino;
	return 0;
}

static int
is_same_file(struct rmem_obj *obj, void *arg)
{
	const struct rmem_xrcd *xrcd = (const struct rmem_xrcd *)obj;
	struct rmem_xrcd *new_xrcd = arg;

	if (xrcd->fd < 0 || obj->dev_id != new_xrcd->obj.dev_id ||
			memcmp(xrcd->file, new_xrcd->file, sizeof(xrcd->file)) != 0)
		return 0;
	new_xrcd->handle = xrcd->handle;
	return 1;
}

/* Find the domain of the file, or create a domain. Under the lock. */
static int
set_handle(struct rmem_xrcd *xrcd, const struct rmem_xrcd_conf *conf)
{
	const char *name = rmem_obj_dev(&xrcd->obj)->name;
	bool has_file = (conf->flags & RMEM_XRCD_FILE) != 0;
	bool is_shared = (rmem_obj_driver(&xrcd->obj)->ops.xrc->flags & RMEM_XRC_OPS_SHARED) != 0;

	if (has_file && rmem_obj_visit(RMEM_OBJ_XRCD, is_same_file, xrcd) != 0)
		return (conf->flags & RMEM_XRCD_EXCL) == 0
				? 0
				: RMEM_FAIL(EEXIST, "%s: XRC domain of fd %d: exists", name,
						  conf->fd);
	if (has_file && !is_shared && (conf->flags & RMEM_XRCD_CREATE) == 0)
		return RMEM_FAIL(ENOENT, "%s: XRC domain of fd %d: does not exist", name, conf->fd);
	xrcd->handle = ++last_handle;
	return 0;
}

static void
put_file(const struct rmem_xrcd *xrcd)
{
	if (xrcd->fd >= 0)
		close(xrcd->fd);
}

/* Open a new handle, and list it. */
static int
alloc_listed(struct rmem_xrcd *xrcd, const struct rmem_xrcd_conf *conf)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = set_handle(xrcd, conf);
	if (ret == 0)
		ret = RMEM_OP(xrcd, xrc->xrcd_alloc, xrcd, conf);
	if (ret == 0) {
		rmem_obj_set_name(&xrcd->obj, conf->name);
		rmem_obj_list(&xrcd->obj);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int
rmem_xrcd_alloc(struct rmem_dev *dev, const struct rmem_xrcd_conf *conf, struct rmem_xrcd **xrcd)
{
	RMEM_CALL(dev);
	struct rmem_xrcd *new_xrcd;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret == 0)
		ret = rmem_check_arg(xrcd, "XRC domain pointer");
	if (ret == 0)
		ret = check_conf(dev, conf);
	if (ret != 0)
		return ret;
	new_xrcd = rmem_obj_create(&dev->obj, RMEM_OBJ_XRCD,
			rmem_obj_driver(&dev->obj)->ops.xrc->xrcd_size, &ret);
	if (new_xrcd == NULL)
		return ret;
	ret = get_file(new_xrcd, conf);
	if (ret == 0)
		ret = alloc_listed(new_xrcd, conf);
	if (ret != 0) {
		put_file(new_xrcd);
		rmem_obj_drop(&new_xrcd->obj, &dev->obj);
		return ret;
	}
	*xrcd = new_xrcd;
	rmem_trace_xrcd_alloc(dev->name, new_xrcd, new_xrcd->handle);
	return 0;
}

/* Release a handle without references. */
static int
release(struct rmem_xrcd *xrcd)
{
	int ret;

	ret = RMEM_OP(xrcd, xrc->xrcd_dealloc, xrcd);
	if (ret == 0) {
		put_file(xrcd);
		rmem_trace_xrcd_dealloc(xrcd);
	}
	return rmem_obj_end(&xrcd->obj, &rmem_obj_dev(&xrcd->obj)->obj, ret);
}

/* Whether only QPs of other processes use a handle. Under the lock. */
static bool
is_left(const struct rmem_xrcd *xrcd)
{
	return xrcd->nb_left != 0 &&
			__atomic_load_n(&xrcd->obj.refs, __ATOMIC_ACQUIRE) == xrcd->nb_left;
}

/* Close a handle that only QPs of other processes use; false: it has other references. */
static bool
close_left(struct rmem_xrcd *xrcd)
{
	bool is_closed;

	pthread_mutex_lock(&lock);
	is_closed = xrcd->is_closed == 0 && is_left(xrcd);
	if (is_closed)
		xrcd->is_closed = 1;
	pthread_mutex_unlock(&lock);
	return is_closed;
}

struct count {
	uint16_t dev_id;
	uint32_t nb;
};

static int
count_left(struct rmem_obj *obj, void *arg)
{
	const struct rmem_xrcd *xrcd = (const struct rmem_xrcd *)obj;
	struct count *count = arg;

	if (obj->dev_id == count->dev_id && xrcd->is_closed != 0 && is_left(xrcd))
		count->nb++;
	return 0;
}

/*
 * Each handle is one reference, which it releases under the lock. So if the compare-and-swap
 * succeeds, the device has no other reference, and rmem_obj_hold() of a thread that creates an
 * object precedes it, and makes it fail, or fails itself.
 */
bool
rmem_xrcd_kill_left(struct rmem_dev *dev)
{
	struct count count = {.dev_id = dev->obj.dev_id};
	bool is_dead;

	pthread_mutex_lock(&lock);
	(void)rmem_obj_visit(RMEM_OBJ_XRCD, count_left, &count);
	is_dead = count.nb != 0 &&
			__atomic_compare_exchange_n(&dev->obj.refs, &count.nb,
					count.nb | RMEM_OBJ_REFS_DEAD, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return is_dead;
}

bool
rmem_xrcd_leave(struct rmem_xrcd *xrcd, struct rmem_qp *qp,
		int (*unhold)(struct rmem_obj *qp, void *arg))
{
	bool is_left;

	pthread_mutex_lock(&lock);
	is_left = rmem_obj_visit(RMEM_OBJ_QP, unhold, qp) != 0;
	if (is_left)
		xrcd->nb_left++;
	pthread_mutex_unlock(&lock);
	return is_left;
}

void
rmem_xrcd_reopen_qp(struct rmem_xrcd *xrcd)
{
	pthread_mutex_lock(&lock);
	xrcd->nb_left--;
	pthread_mutex_unlock(&lock);
}

void
rmem_xrcd_drop_qp(struct rmem_xrcd *xrcd, struct rmem_obj *qp, bool is_left)
{
	bool is_closed;

	pthread_mutex_lock(&lock);
	is_closed = xrcd->is_closed != 0;
	(void)rmem_obj_hold(&xrcd->obj);
	rmem_obj_drop(qp, &xrcd->obj);
	if (is_left)
		xrcd->nb_left--;
	/* A handle that is not closed may be freed from here on. */
	rmem_obj_unhold(&xrcd->obj);
	if (is_closed && rmem_obj_kill_quietly(&xrcd->obj) == 0)
		(void)release(xrcd);
	pthread_mutex_unlock(&lock);
}

int
rmem_xrcd_dealloc(struct rmem_xrcd *xrcd)
{
	RMEM_CALL(xrcd);
	int ret;

	if (xrcd == NULL)
		return 0;
	ret = rmem_obj_check(xrcd, RMEM_OBJ_XRCD);
	if (ret == 0 && close_left(xrcd))
		return 0;
	if (ret == 0)
		ret = rmem_obj_kill(&xrcd->obj);
	return ret != 0 ? ret : release(xrcd);
}
