/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Secondary processes: their calls; see rmem_mp.h.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_memory.h>

#include <rmem_mp.h>

#include "rmem_mp_priv.h"

#define MP_TIMEOUT_S 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmem_thread watcher;
static bool is_watching;
static unsigned int nb_attached;

bool
rmem_mp_is_shared(const void *addr)
{
	return rte_mem_virt2memseg_list(addr) != NULL;
}

/* Wait for the end of the primary. */
static void
run_watcher(void *arg)
{
	struct pollfd fd = {.fd = (int)(intptr_t)arg, .events = POLLIN};

	pthread_detach(pthread_self());
	while (poll(&fd, 1, -1) != 1)
		;
	rmem_dev_orphan_all();
	RMEM_LOG(NOTICE, "the primary process has ended: posts and polls return -ENODEV");
	close(fd.fd);
}

static int
watch(const struct mp_id *primary)
{
	int fd;

	if (is_watching)
		return 0;
	fd = rmem_mp_pidfd(primary);
	if (fd < 0)
		return RMEM_FAIL(-fd, "primary process %d: no pidfd: %s", (int)primary->pid,
				strerror(-fd));
	watcher.run = run_watcher;
	watcher.arg = (void *)(intptr_t)fd;
	if (rmem_thread_start(&watcher, "rmem-watcher") != 0) {
		close(fd);
		return RMEM_FAIL(ENOMEM, "primary process: no thread to wait for its end");
	}
	is_watching = true;
	return 0;
}

/* Send a request to the primary. A refusal is logged with its reason. */
static int
request(struct mp_req *req, struct mp_rep *rep)
{
	const struct timespec timeout = {.tv_sec = MP_TIMEOUT_S};
	struct rte_mp_msg msg = {.len_param = sizeof(*req)};
	struct rte_mp_reply replies;
	int ret = 0;

	req->version = RMEM_VERSION;
	req->id.pid = getpid();
	req->id.start = rmem_mp_start_time(getpid());
	snprintf(msg.name, sizeof(msg.name), "%s", MP_ACTION);
	memcpy(msg.param, req, sizeof(*req));
	if (rte_mp_request_sync(&msg, &replies, &timeout) != 0) {
		ret = rte_errno == ENOTSUP ? EOPNOTSUPP : ENODEV;
		return RMEM_FAIL(ret, "primary process: request failed: %s",
				rte_strerror(rte_errno));
	}
	if (replies.nb_received != 1 || replies.msgs[0].len_param != sizeof(*rep))
		ret = RMEM_FAIL(ENODEV,
				"primary process: no answer (%d received): it has ended, or has no device",
				replies.nb_received);
	else
		memcpy(rep, replies.msgs[0].param, sizeof(*rep));
	free(replies.msgs);
	if (ret == 0 && rep->ret != 0)
		ret = RMEM_FAIL(-rep->ret, "primary process: %.*s", (int)sizeof(rep->reason),
				rep->reason);
	return ret;
}

static void
fill_lcores(uint64_t *lcores)
{
	unsigned int lcore;

	for (lcore = 0; lcore < RTE_MAX_LCORE; lcore++) {
		if (rte_eal_lcore_role(lcore) != ROLE_OFF)
			lcores[lcore / 64] |= UINT64_C(1) << lcore % 64;
	}
}

/* Refuse calls in a primary process. */
static int
check_secondary(void)
{
	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		return 0;
	return RMEM_FAIL(EINVAL, "process: the primary (only for secondary processes)");
}

static int
do_attach(const char *name, struct rmem_dev **dev)
{
	struct mp_req req = {.op = MP_ATTACH};
	const struct rmem_driver *driver;
	struct mp_rep rep;
	int ret;

	snprintf(req.name, sizeof(req.name), "%s", name);
	fill_lcores(req.lcores);
	ret = request(&req, &rep);
	if (ret != 0)
		return ret;
	driver = rmem_driver_find(rep.dev->driver, strlen(rep.dev->driver));
	ret = watch(&rep.id);
	if (ret == 0 && (driver == NULL || driver->ops.mp == NULL))
		ret = RMEM_FAIL(EPROTO, "%s: driver \"%s\" is not in this process", name,
				rep.dev->driver);
	if (ret == 0)
		ret = rmem_dev_adopt(name, rep.dev_id, rep.dev, driver, dev);
	if (ret != 0) {
		req.op = MP_DETACH;
		req.dev_id = rep.dev_id;
		request(&req, &rep);
		return ret;
	}
	nb_attached++;
	rmem_process_number_set(rep.number);
	return 0;
}

int
rmem_dev_attach(const char *name, struct rmem_dev **dev)
{
	RMEM_CALL(NULL);
	int ret = check_secondary();

	/* A child of fork() has no thread that receives the answer. */
	if (ret == 0 && rmem_process_is_child())
		ret = rmem_process_check();
	if (ret == 0)
		ret = rmem_check_arg(name, "name");
	if (ret == 0)
		ret = rmem_check_arg(dev, "device pointer");
	/* A request has a part of it, which may be the name of another device. */
	if (ret == 0 && strnlen(name, RMEM_NAME_SIZE) == RMEM_NAME_SIZE)
		ret = RMEM_FAIL(ENODEV, "no device \"%.*s...\": name too long (up to %d bytes)",
				RMEM_NAME_SIZE, name, RMEM_NAME_SIZE - 1);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&lock);
	if (rmem_dev_get_by_name(name) != NULL)
		ret = RMEM_FAIL(EALREADY, "device \"%s\": this process is already attached", name);
	else
		ret = do_attach(name, dev);
	pthread_mutex_unlock(&lock);
	return ret;
}

int
rmem_dev_detach(struct rmem_dev *dev)
{
	RMEM_CALL(dev);
	struct mp_req req = {.op = MP_DETACH};
	struct mp_rep rep;
	int ret;

	if (dev == NULL)
		return 0;
	ret = check_secondary();
	if (ret == 0 && !rmem_mp_is_attached(dev))
		ret = RMEM_FAIL(EINVAL, "device %p: this process is not attached to it",
				(void *)dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&lock);
	req.dev_id = dev->obj.dev_id;
	ret = request(&req, &rep);
	/* Also without an answer: the primary may have released the resources of this process, and
	 * assigned its number again. */
	if (rmem_dev_abandon(dev) && --nb_attached == 0)
		rmem_process_number_set(0);
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Send a request about a device that this process is attached to. */
static int
request_of_dev(struct mp_req *req, const struct rmem_dev *dev, struct mp_rep *rep)
{
	int ret = check_secondary();

	if (ret == 0 && !rmem_mp_is_attached(dev))
		ret = RMEM_FAIL(EINVAL, "device: this process is not attached to it");
	if (ret != 0)
		return ret;
	req->dev_id = dev->obj.dev_id;
	return request(req, rep);
}

static int
request_qp(struct rmem_qp *qp, enum mp_op op)
{
	struct mp_req req = {.op = op, .obj = qp};
	struct mp_rep rep;

	/* A valid handle is in shared memory. */
	if (qp == NULL || !rmem_mp_is_shared(qp) || qp->obj.dev_id >= RMEM_MAX_DEVS)
		return RMEM_FAIL(EINVAL, "handle: %p, expected a QP", (void *)qp);
	return request_of_dev(&req, rmem_obj_dev(&qp->obj), &rep);
}

int
rmem_qp_claim(struct rmem_qp *qp)
{
	RMEM_CALL(NULL);

	return request_qp(qp, MP_CLAIM);
}

int
rmem_qp_unclaim(struct rmem_qp *qp)
{
	RMEM_CALL(NULL);

	return request_qp(qp, MP_UNCLAIM);
}

static int
lookup(const struct rmem_dev *dev, uint32_t type, const char *name, void **obj)
{
	struct mp_req req = {.op = MP_LOOKUP, .type = type};
	struct mp_rep rep;
	int ret = rmem_check_arg(obj, "result");

	if (ret == 0)
		ret = rmem_check_arg(name, "name");
	if (ret == 0)
		ret = rmem_name_check(name);
	if (ret == 0 && name[0] == '\0')
		ret = RMEM_FAIL(EINVAL, "name: empty");
	if (ret != 0)
		return ret;
	snprintf(req.name, sizeof(req.name), "%s", name);
	ret = request_of_dev(&req, dev, &rep);
	if (ret == 0)
		*obj = rep.obj;
	return ret;
}

int
rmem_qp_lookup(const struct rmem_dev *dev, const char *name, struct rmem_qp **qp)
{
	RMEM_CALL(dev);

	return lookup(dev, RMEM_OBJ_QP, name, (void **)qp);
}

int
rmem_mr_lookup(const struct rmem_dev *dev, const char *name, struct rmem_mr **mr)
{
	RMEM_CALL(dev);

	return lookup(dev, RMEM_OBJ_MR, name, (void **)mr);
}
