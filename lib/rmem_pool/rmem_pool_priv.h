/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by the files of the pool library. Not installed.
 *
 * Inside: registered mempools, keys of mbufs, tracked pools of several processes.
 * Callers: applications and app/, by rmem_pool.h, rmem_mempool.h, rmem_mbuf.h, rmem_tracked.h.
 * Not known here: drivers, leases, caches and connections.
 */

#ifndef RMEM_POOL_PRIV_H
#define RMEM_POOL_PRIV_H

#include <stdbool.h>

#include <rmem_log.h>
#include <rmem_mempool.h>
#include <rmem_obj_ref.h>
#include <rmem_pool.h>

extern int rmem_pool_logtype;

/** Log a line: POOL_LOG(ERR, "format", ...). */
#define POOL_LOG(level, ...) RMEM_LOG_LINE(level, rmem_pool_logtype, "rmem_pool", __VA_ARGS__)

/** Refuse a call: return POOL_FAIL(EINVAL, "format", ...). */
#define POOL_FAIL(error, ...) RMEM_FAIL_AS(rmem_pool_logtype, "rmem_pool", error, __VA_ARGS__)

/** Write the SGEs of n buffers with AVX2. Return 0. */
int rmem_pool_fill_avx2(struct rmem_sge *sge, void *const *objs, unsigned int n, uint64_t tail);

/** Collect the buffers of n SGEs with AVX2. */
void rmem_pool_collect_avx2(void **objs, const struct rmem_sge *sge, unsigned int n);

struct rmem_pool_puts;

/** Name of the mempool ops of pools that check puts. */
#define PUTS_OPS_NAME "rmem_puts"

/** Register the ops of pools that check puts. Return false with a log line if no slot is free. */
bool rmem_pool_puts_register(const char *name);

/** Let a mempool check puts; it must have its ops, and no memory yet. Return 0 or -ENOMEM. */
int rmem_pool_puts_alloc(struct rmem_pool *pool);

/** Free the checks of a pool, after its mempool; NULL is allowed. */
void rmem_pool_puts_free(struct rmem_pool_puts *puts);

/** Start the checks; the mempool must have all buffers. */
void rmem_pool_puts_start(struct rmem_pool *pool);

/** Check the handle of a PD. Return 0, or -EINVAL with a log line. */
int rmem_pool_check_pd(const struct rmem_pd *pd);

/** Check the common configuration of a pool. Return 0, or -EINVAL with a log line. */
int rmem_pool_check_args(
		const struct rmem_pd *pd, const struct rmem_pool_conf *conf, const void *out);

/** A pool, with the private data of the library. */
struct rmem_pool_priv {
	struct rmem_pool pool;        /**< Public part. */
	uint32_t nb_slices;           /**< Elements of rmem_pool::keys. */
	uint32_t no_cache;            /**< Zero: see pool_cache_set(). */
	const struct rte_memzone *mz; /**< Memory of several slices, else NULL. */
	struct rmem_map *map;         /**< All memory registered with the PD. */
	uint64_t failed_gets;         /**< Gets that found too few buffers; atomic. */
	uint32_t low_water;           /**< Lowest number of buffers outside of caches; atomic. */
	struct rmem_pool_puts *puts;  /**< Checks of puts, or NULL. */
	struct rmem_pool_priv *next;
};

static inline struct rmem_pool_priv *
rmem_pool_priv(const struct rmem_pool *pool)
{
	return (struct rmem_pool_priv *)(uintptr_t)pool;
}

/** Lower the low-water mark to the number of buffers outside of caches. */
static inline void
rmem_pool_note_level(const struct rmem_pool *pool)
{
	uint32_t *low = &rmem_pool_priv(pool)->low_water;
	uint32_t level = rte_mempool_get_ops(pool->mp->ops_index)->get_count(pool->mp);
	uint32_t seen = __atomic_load_n(low, __ATOMIC_RELAXED);

	while (level < seen &&
			!__atomic_compare_exchange_n(low, &seen, level, true, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		;
}

/** A registration, with the private data of the library; its MRs follow. */
struct rmem_mempool_priv {
	struct rmem_mempool reg;      /**< Public part. */
	const struct rte_memzone *mz; /**< Memory that was allocated for the mempool, else NULL. */
	struct rmem_mempool_priv *next;
};

static inline struct rmem_mempool_priv *
rmem_mempool_priv(const struct rmem_mempool *reg)
{
	return (struct rmem_mempool_priv *)(uintptr_t)reg;
}

/** Query the capabilities and limits of the device of a PD. Return 0, or -errno of the class. */
int rmem_pool_dev_info(const struct rmem_pd *pd, struct rmem_dev_info *info);

/** Name of the device of a PD. */
const char *rmem_pool_dev_name(const struct rmem_pd *pd);

/** Register the telemetry commands, at the start of the program. */
void rmem_pool_telemetry_init(void);

/** Add the pools to rmem_dev_audit(), at the start of the program. */
void rmem_pool_audit_init(void);

/* Pools and registered mempools of the process (rmem_pool_list.c). */

/** Add a complete pool. */
void rmem_pool_list_add(struct rmem_pool *pool);

/** Remove a pool, if it was added. */
void rmem_pool_list_del(struct rmem_pool *pool);

/**
 * Call func for each pool whose mempool was not freed, until it returns another value than 0.
 * Excludes creating and destroying pools.
 */
int rmem_pool_visit(int (*func)(struct rmem_pool *pool, void *arg), void *arg);

/** As rmem_pool_visit(), for registered mempools, including mempools of mbuf pools. */
int rmem_mempool_visit(int (*func)(struct rmem_mempool *reg, void *arg), void *arg);

/** Add a complete registration. */
void rmem_pool_list_add_mempool(struct rmem_mempool *reg);

/** Remove a registration that was added. */
void rmem_pool_list_del_mempool(struct rmem_mempool *reg);

/** Number of registrations of a mempool. */
unsigned int rmem_mempool_nb_regs(const struct rte_mempool *mp);

/** Whether a mempool exists; only addresses are compared, because mp may have been freed. */
bool rmem_mempool_exists(const struct rte_mempool *mp);

/*
 * Directory of tracked pools, which secondary processes read (rmem_pool_lookup.c).
 */

/** Add a complete pool, or registration of a pool of mbufs. Return 0, -ENOMEM or -ENOSPC. */
int rmem_pool_dir_add(struct rmem_obj *obj, const char *name);

/** Remove an entry; no effect if there is none. */
void rmem_pool_dir_del(const struct rmem_obj *obj);

/** Set the mempool ops of a configuration; tracked pools have their own. */
int rmem_pool_set_ops(struct rte_mempool *mp, const struct rmem_pool_conf *conf);

/** Convert and log the errno of a failed call of the mempool library. */
int rmem_pool_mempool_error(const struct rmem_pool_conf *conf, int err);

/** Get log2 of the slice size: as large as an MR permits, at most one slice per buffer. */
uint32_t rmem_pool_log2_slice(uint64_t max_mr_size, size_t buf_size, size_t stride);

/** A contiguous range to register as an MR. */
struct rmem_range {
	uint8_t *begin;
	uint8_t *end;
};

/** Ranges sorted by address; adjacent ones are joined up to the limit of an MR. */
struct rmem_ranges {
	struct rmem_range *range;
	uint32_t nb;
	uint32_t cap;
	uint64_t buf_size; /* bytes of the largest object or external buffer */
};

/**
 * Get the ranges of a mempool to register, each of at most max_mr_size bytes; they are not usable
 * if buf_size is above that. Return 0, or -ENOMEM with a log line. Call rmem_ranges_free() after
 * any result.
 */
int rmem_ranges_get(struct rte_mempool *mp, uint64_t max_mr_size, struct rmem_ranges *ranges);
void rmem_ranges_free(struct rmem_ranges *ranges);

/** Whether the mempool is a pool of mbufs with pinned external buffers. */
bool rmem_mempool_is_pinned(struct rte_mempool *mp);

/**
 * Register a mempool, as rmem_mempool_register() without checks of arguments. *reg is set, too, on
 * a failure after which some MRs cannot be deregistered.
 */
int rmem_mempool_do_register(struct rte_mempool *mp, struct rmem_pd *pd, uint32_t access,
		struct rmem_mempool **reg);

/** Check the handle of a registration. Return 0, or -EINVAL with a log line. */
int rmem_mempool_check_reg(const struct rmem_mempool *reg);

/** Return 0 if the mempool of a registration exists, else -ENOENT with a log line. */
int rmem_mempool_check_mp(const struct rmem_mempool *reg);

/** Return 0, or -EBUSY with a log line if an MR of a registration has references. */
int rmem_mempool_check_idle(const struct rmem_mempool *reg);

/** Release an idle registration. On -errno, some MRs and the registration remain. */
int rmem_mempool_do_unregister(struct rmem_mempool *reg);

/** Free a registration that was released. */
void rmem_mempool_free_reg(struct rmem_mempool *reg);

/* Memory registered with a PD, by address (rmem_map.c). */

/** Add MRs to the map of their PD, all or none. Return 0, or -EEXIST or -ENOMEM with a log line. */
int rmem_map_add(struct rmem_mr *const *mrs, uint32_t nb_mrs, struct rmem_map **map);

/** Remove MRs from the map of their PD. Return 0, or -ENOENT if the map lacks one. */
int rmem_map_del(struct rmem_mr *const *mrs, uint32_t nb_mrs);

/** Resources that a pool needs. */
struct rmem_need {
	const char *name;
	uint64_t length;   /* bytes to register */
	uint64_t buf_size; /* bytes of a buffer */
	uint64_t nb_mrs;
	int socket_id;
	bool is_new; /* the memory of the pool must be allocated */
};

/** Get the resources that rmem_pool_create() needs for a configuration. */
void rmem_pool_need(const struct rmem_pool_conf *conf, const struct rmem_dev_info *info,
		struct rmem_need *need);

/** Fill a report. Return 0, or the -errno of the first limit exceeded. */
int rmem_pool_report_fill(const struct rmem_need *need, const struct rmem_dev_info *info,
		struct rmem_pool_report *report);

/** Return 0, or -EINVAL or -ENOSPC with a log line if the device has too few resources. */
int rmem_pool_report_mrs(const struct rmem_need *need, const struct rmem_dev_info *info);

#endif /* RMEM_POOL_PRIV_H */
