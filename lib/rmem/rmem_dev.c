/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Devices: the table of this process, by number.
 *
 * In a secondary process it is empty, so that the fast-path functions refuse. Invariant: a slot is
 * free if its tag is RMEM_OBJ_NONE. Slots are allocated and freed under one lock; the fast-path
 * functions are the dummies while the device is not ready.
 */

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <rte_memory.h>
#include <rte_string_fns.h>

#include "rmem_mp_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

struct rmem_dev_slot rmem_devs[RMEM_MAX_DEVS];
static pthread_mutex_t devs_lock = PTHREAD_MUTEX_INITIALIZER;

struct rmem_fp_ops rmem_fp[RMEM_MAX_DEVS];

RTE_INIT(rmem_dev_init)
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		rmem_devs[i].drv.dev.obj.dev_id = (uint16_t)i;
		rmem_fp[i] = rmem_fp_none;
	}
	/* Called by name, so that the linker includes it from a static library. */
	rmem_telemetry_init();
}

/* Split a name into driver and number; *driver_len is the length of the former. */
static int
check_name(const char *name, size_t *driver_len)
{
	size_t len, i;

	if (name == NULL)
		return RMEM_FAIL(EINVAL, "device: NULL name");
	len = strnlen(name, RMEM_NAME_SIZE);
	if (len == RMEM_NAME_SIZE)
		return RMEM_FAIL(EINVAL, "device: name too long: \"%.*s...\" (%d bytes)",
				RMEM_NAME_SIZE, name, RMEM_NAME_SIZE - 1);
	for (i = len; i > 0 && isdigit((unsigned char)name[i - 1]); i--)
		;
	if (i == 0 || i == len)
		return RMEM_FAIL(EINVAL,
				"device: name is not that of a driver and a number: \"%s\"", name);
	*driver_len = i;
	return 0;
}

static struct rmem_dev *
find(const char *name)
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		struct rmem_dev *dev = &rmem_devs[i].drv.dev;

		if (dev->obj.type == RMEM_OBJ_DEV && strcmp(dev->name, name) == 0)
			return dev;
	}
	return NULL;
}

static struct rmem_dev_slot *
find_free(void)
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		if (rmem_devs[i].drv.dev.obj.type == RMEM_OBJ_NONE)
			return &rmem_devs[i];
	}
	return NULL;
}

/* Let the driver create the device of a slot, and cache its capabilities. */
static int
open_dev(struct rmem_dev_slot *slot, const char *args)
{
	const struct rmem_driver *driver = slot->drv.driver;
	int ret;

	ret = rmem_traced(driver->ops.dev_create(&slot->drv.dev, args));
	if (ret != 0)
		return ret;
	slot->info.driver_name = driver->name;
	ret = rmem_traced(driver->ops.dev_info_get(&slot->drv.dev, &slot->info));
	if (ret != 0)
		driver->ops.dev_close(&slot->drv.dev);
	slot->info.capa |= RMEM_DEV_CAPA_MR_FD;
	return ret;
}

/* Allocate a slot and let the driver fill it; call with the lock held. */
static int
do_create(const char *name, const struct rmem_driver *driver, const char *args,
		struct rmem_dev **dev)
{
	struct rmem_dev_slot *slot;
	int ret;

	if (find(name) != NULL)
		return RMEM_FAIL(EEXIST, "device: name in use: \"%s\"", name);
	slot = find_free();
	if (slot == NULL)
		return RMEM_FAIL(ENOSPC, "device \"%s\": table full (%d devices)", name,
				RMEM_MAX_DEVS);
	memset(&slot->info, 0, sizeof(slot->info));
	memset(slot->nb, 0, sizeof(slot->nb));
	slot->has_failed = false;
	strlcpy(slot->drv.dev.name, name, sizeof(slot->drv.dev.name));
	slot->drv.dev.socket_id = SOCKET_ID_ANY;
	slot->drv.driver = driver;
	slot->drv.priv = NULL;
	slot->drv.fp = NULL;
	__atomic_fetch_and(&slot->drv.dev.obj.refs, ~RMEM_OBJ_REFS_DEAD, __ATOMIC_RELAXED);
	ret = open_dev(slot, args);
	if (ret != 0)
		return ret;
	rmem_mp_start();
	rmem_fp[slot->drv.dev.obj.dev_id] = slot->drv.fp != NULL ? *slot->drv.fp : driver->fp;
	__atomic_store_n(&slot->drv.dev.obj.type, RMEM_OBJ_DEV, __ATOMIC_RELEASE);
	*dev = &slot->drv.dev;
	return 0;
}

int
rmem_dev_create(const char *name, const char *args, struct rmem_dev **dev)
{
	RMEM_CALL(NULL);
	const struct rmem_driver *driver;
	size_t driver_len;
	int ret;

	ret = rmem_process_check();
	if (ret == 0)
		ret = check_name(name, &driver_len);
	if (ret == 0)
		ret = rmem_check_arg(dev, "device pointer");
	if (ret != 0)
		return ret;
	driver = rmem_driver_find(name, driver_len);
	if (driver == NULL)
		return RMEM_FAIL(ENODEV, "device: no such driver: \"%.*s\" (for \"%s\")",
				(int)driver_len, name, name);
	pthread_mutex_lock(&devs_lock);
	ret = do_create(name, driver, args, dev);
	if (ret == 0)
		rmem_trace_dev_create((*dev)->name, (*dev)->obj.dev_id);
	pthread_mutex_unlock(&devs_lock);
	return ret;
}

static int
refuse_close(const struct rmem_dev *dev, uint32_t refs)
{
	struct rmem_dev_info info;

	rmem_obj_counts_get(dev, &info);
	return RMEM_FAIL(EBUSY,
			"%s: in use: %u objects refer to it (%u PDs with %u MRs, %u MWs, %u QPs and %u SRQs, %u CQs, page lists, EQs, counters)",
			dev->name, refs, info.nb_pd, info.nb_mr, info.nb_mw, info.nb_qp,
			info.nb_srq, info.nb_cq);
}

/* Call with the lock held. */
static int
do_close(struct rmem_dev *dev)
{
	uint32_t refs;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret != 0)
		return ret;
	refs = rmem_obj_kill_quietly(&dev->obj);
	if (refs != 0)
		return refuse_close(dev, refs);
	rmem_trace_dev_close(dev->name);
	rmem_fp[dev->obj.dev_id] = rmem_fp_none;
	rmem_mp_forget(dev);
	rmem_obj_driver(&dev->obj)->ops.dev_close(dev);
	__atomic_store_n(&dev->obj.type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	return 0;
}

int
rmem_dev_close(struct rmem_dev *dev)
{
	RMEM_CALL(dev);
	int ret;

	if (dev == NULL)
		return 0;
	pthread_mutex_lock(&devs_lock);
	ret = do_close(dev);
	pthread_mutex_unlock(&devs_lock);
	return ret;
}

/* The functions of a device whose primary process has ended. */
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

/* Completions that are left are returned first. */
static int
orphan_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int ret = rmem_obj_driver(&cq->obj)->ops.mp->fp.poll_cq(cq, wc, nb_wc);

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
		ret = RMEM_FAIL(EALREADY, "device \"%s\": this process is attached", name);
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
	/* Another thread of the parent may have had it. */
	devs_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		rmem_fp[i] = rmem_fp_none;
		rmem_devs[i].drv.dev.obj.type = RMEM_OBJ_NONE;
	}
}

/* Completions that are left are returned first. */
static int
failed_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int ret = rmem_obj_driver(&cq->obj)->fp.poll_cq(cq, wc, nb_wc);

	return ret == 0 ? -EIO : ret;
}

/*
 * Relaxed: the functions depend on nothing that this thread has stored. A thread that gets the
 * event sees them replaced.
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
	dev = find(name);
	pthread_mutex_unlock(&devs_lock);
	return dev;
}

struct rmem_dev *
rmem_dev_hold_by_name(const char *name)
{
	struct rmem_dev *dev;

	pthread_mutex_lock(&devs_lock);
	dev = find(name);
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

/* Check the device and the pointer for the result. */
static int
check_get(const struct rmem_dev *dev, const void *out)
{
	int ret = rmem_obj_check(dev, RMEM_OBJ_DEV);

	return ret != 0 ? ret : rmem_check_arg(out, "answer");
}

void
rmem_dev_info_fill(const struct rmem_dev *dev, struct rmem_dev_info *info)
{
	*info = *rmem_obj_info(&dev->obj);
	rmem_obj_counts_get(dev, info);
}

int
rmem_dev_info_get(const struct rmem_dev *dev, struct rmem_dev_info *info)
{
	RMEM_CALL(dev);
	int ret = rmem_mp_is_attached(dev) ? rmem_check_arg(info, "answer") : check_get(dev, info);

	if (ret == 0)
		rmem_dev_info_fill(dev, info);
	return ret;
}

int
rmem_dev_stats_get(const struct rmem_dev *dev, struct rmem_dev_stats *stats)
{
	RMEM_CALL(dev);
	struct rmem_dev_stats tmp;
	int ret;

	ret = check_get(dev, stats);
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	ret = RMEM_OP(dev, dev_stats_get, rmem_obj_dev(&dev->obj), &tmp);
	if (ret == 0)
		*stats = tmp;
	return ret;
}

int
rmem_dev_stats_reset(struct rmem_dev *dev)
{
	RMEM_CALL(dev);
	int ret = rmem_obj_check(dev, RMEM_OBJ_DEV);

	return ret != 0 ? ret : RMEM_OP(dev, dev_stats_reset, dev);
}

#define STAT(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct rmem_dev_stats, name)                                       \
	}

const struct rmem_dev_stat_name rmem_dev_stats_names[] = {
		STAT(send_wrs),
		STAT(recv_wrs),
		STAT(bytes),
		STAT(reg_mrs),
		STAT(invalidates),
		STAT(errors),
		STAT(flushed),
		STAT(local_prot_errors),
		STAT(rem_access_errors),
		STAT(rnr_retries),
		STAT(queued),
		STAT(grace_waits),
		STAT(inline_recvs),
		STAT(mw_binds),
		STAT(umrs),
		STAT(odp_page_faults),
		STAT(odp_invalidations),
		STAT(odp_prefetches),
		STAT(odp_pages),
		STAT(odp_failed_faults),
		STAT(bad_rkeys),
		STAT(mem_faults),
		STAT(wire_tx_packets),
		STAT(wire_tx_bytes),
		STAT(wire_tx_drops),
		STAT(wire_rx_packets),
		STAT(wire_rx_bytes),
		STAT(wire_retransmits),
		STAT(wire_timeouts),
		STAT(wire_duplicates),
		STAT(wire_gaps),
		STAT(wire_naks_sent),
		STAT(wire_naks_received),
		STAT(wire_rnr_naks_sent),
		STAT(wire_malformed),
		STAT(wire_icrc_errors),
		STAT(wire_unknown_qps),
		STAT(wire_wrong_peers),
		STAT(wire_busy_drops),
		STAT(drop_no_recv),
		STAT(drop_length),
		STAT(drop_access),
		STAT(drop_no_peer),
		STAT(drop_qkey),
};
const size_t rmem_nb_dev_stats = RTE_DIM(rmem_dev_stats_names);

static_assert(offsetof(struct rmem_dev_stats, reserved) ==
				sizeof(uint64_t) * RTE_DIM(rmem_dev_stats_names),
		"each counter has its name");

static void
dump_stats(const struct rmem_dev_stats *stats, FILE *f)
{
	size_t i;

	for (i = 0; i < rmem_nb_dev_stats; i++)
		fprintf(f, "  %s: %" PRIu64 "\n", rmem_dev_stats_names[i].name,
				rmem_dev_stat(stats, &rmem_dev_stats_names[i]));
}

int
rmem_dev_dump(const struct rmem_dev *dev, FILE *f)
{
	RMEM_CALL(dev);
	struct rmem_dev_stats stats;
	struct rmem_dev_info info;
	int ret;

	ret = check_get(dev, f);
	if (ret != 0)
		return ret;
	rmem_dev_info_fill(dev, &info);
	fprintf(f, "device %s: driver %s, socket %d, capabilities 0x%" PRIx64 "\n", dev->name,
			info.driver_name, dev->socket_id, info.capa);
	fprintf(f, "  PDs: %u of %u\n", info.nb_pd, info.max_pd);
	fprintf(f, "  MRs: %u of %u, up to %" PRIu64 " bytes, up to %u pages, access 0x%x\n",
			info.nb_mr, info.max_mr, info.max_mr_size, info.max_page_list_len,
			info.access);
	fprintf(f, "  MWs: %u of %u\n", info.nb_mw, info.max_mw);
	fprintf(f, "  CQs: %u of %u, up to %u completions\n", info.nb_cq, info.max_cq,
			info.max_cqe);
	fprintf(f, "  SRQs: %u of %u, up to %u receives of %u SGEs\n", info.nb_srq, info.max_srq,
			info.max_srq_wr, info.max_srq_sge);
	fprintf(f, "  QPs: %u of %u, up to %u sends of %u SGEs and %u receives of %u SGEs\n",
			info.nb_qp, info.max_qp, info.max_send_wr, info.max_send_sge,
			info.max_recv_wr, info.max_recv_sge);
	fprintf(f, "  messages: up to %" PRIu64 " bytes, %u inline\n", info.max_msg_size,
			info.max_inline_data);
	memset(&stats, 0, sizeof(stats));
	if (rmem_obj_driver(&dev->obj)->ops.dev_stats_get(rmem_obj_dev(&dev->obj), &stats) == 0)
		dump_stats(&stats, f);
	return RMEM_OP(dev, dev_dump, rmem_obj_dev(&dev->obj), f);
}
