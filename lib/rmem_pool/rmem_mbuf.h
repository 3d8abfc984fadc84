/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Mbufs: registered pools, the keys of an mbuf, and conversion of chains to SGEs.
 *
 * The keys of an mbuf are the keys of the memory that it refers to: its own, memory of another
 * mbuf (a clone), or an external buffer. They are looked up by address in a registration
 * with the PD of the QP (rmem_mempool.h). No key is stored in the mbuf, so they are correct
 * after any rte_pktmbuf_* call.
 */

#ifndef RMEM_MBUF_H
#define RMEM_MBUF_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include <rmem_mempool.h>
#include <rmem_wr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_mr;
struct rmem_pd;

/** Configuration of an mbuf pool. The caller zeroes it first. */
struct rmem_pktmbuf_pool_conf {
	const char *name;        /**< Unique name, 1 to 25 bytes (RTE_MEMPOOL_NAMESIZE - 1). */
	const char *ops_name;    /**< Mempool ops; NULL for rte_mbuf_best_mempool_ops(), and
				   *  with RMEM_POOL_TRACKED, which has its own.
				   */
	uint32_t nb_mbufs;       /**< Mbufs, at least 1. */
	uint32_t cache_size;     /**< Mbufs cached by each lcore, 0 to
				   *  RTE_MEMPOOL_CACHE_MAX_SIZE and to nb_mbufs / 1.5;
				   *  0 with RMEM_POOL_TRACKED.
				   */
	uint16_t priv_size;      /**< Private bytes of an mbuf, a multiple of
				   *  RTE_MBUF_PRIV_ALIGN.
				   */
	uint16_t data_room_size; /**< Bytes of a buffer, RTE_PKTMBUF_HEADROOM included. */
	uint32_t access;         /**< Bitwise OR of RMEM_ACCESS_*, without ALLOCATE_MR and
				  *  ZERO_BASED.
				  */
	int socket_id;           /**< NUMA socket, SOCKET_ID_ANY for any. */
	uint32_t flags;          /**< 0 or RMEM_POOL_TRACKED. */
	uint64_t reserved[2];    /**< Zero. */
};

/**
 * Create a pool of mbufs whose memory is registered once.
 *
 * rmem_mempool::mp of the result is a mempool as of rte_pktmbuf_pool_create(): all
 * rte_pktmbuf_* and rte_mempool_* calls work on it, and so do Ethernet devices. Its memory
 * is one chunk of whole hugepages, one MR unless larger than rmem_dev_info::max_mr_size.
 * For more devices, register rmem_mempool::mp with their PDs with rmem_mempool_register().
 *
 * Control path: allocates, touches and registers memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain to register the memory with.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] reg
 *   The registration of the new pool. Written only on success. Release pool and
 *   registration with rmem_pktmbuf_pool_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL conf, name or reg, a name that is empty or too long,
 *     a number out of range, an object larger than rmem_dev_info::max_mr_size, unknown
 *     mempool ops, an unknown access bit or flag, a remote right to modify without
 *     LOCAL_WRITE, a reserved field that is not zero, or no such NUMA socket; RMEM_POOL_TRACKED
 *     with a cache or with mempool ops.
 *   - -EEXIST: a mempool of that name exists.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit.
 *   - -ENOSPC: the device has too few of its rmem_dev_info::max_mr regions left; or, with
 *     RMEM_POOL_TRACKED, DPDK has no free slot for mempool ops, or there are 128 such pools.
 *   - -ENOMEM: too little memory; the log has the amount missing.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_pktmbuf_pool_create(struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf,
		struct rmem_mempool **reg);

/**
 * Destroy a pool of rmem_pktmbuf_pool_create(), deregister and free its memory.
 *
 * Control path. Once for each pool; no other thread may use it.
 *
 * @param reg
 *   Registration of the pool; no longer valid on success, unchanged on failure except -EIO. NULL
 *   is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a registration, or one of rmem_mempool_register().
 *   - -EBUSY: mbufs are in use, the mempool has another registration, or an MR has references; if
 *     only the device detects a reference, the effect is as for -EIO.
 *   - -EIO: the device failed to deregister an MR. The memory is kept, since the device may still
 *     access it. The only valid use of the pool is another call of this function.
 */
int rmem_pktmbuf_pool_destroy(struct rmem_mempool *reg);

/**
 * Find a tracked pool of mbufs by its name, in any process.
 *
 * As rmem_pool_lookup(): in a secondary process mbufs of the pool can be allocated and freed, and
 * their keys can be looked up.
 *
 * If a process dies, its mbufs are initialized again before they are freed. If such an mbuf was
 * attached to an mbuf of another process, that mbuf keeps the reference.
 *
 * Control path. Safe to call from any thread. The primary process must not destroy the pool during
 * the call.
 *
 * @param name
 *   Name of the pool.
 * @param[out] reg
 *   The registration of the pool. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL name or reg.
 *   - -ENOENT: there is no tracked pool of mbufs of that name.
 *   - -EOPNOTSUPP: as for rmem_pool_lookup().
 *   - -ENOSPC: DPDK has no free slot for mempool ops in this process.
 */
int rmem_pktmbuf_pool_lookup(const char *name, struct rmem_mempool **reg);

/**
 * Check the resources for rmem_pktmbuf_pool_create(), and report limits exceeded.
 *
 * Control path. Safe to call from any thread; see rmem_pool_check().
 *
 * @param pd
 *   Protection domain, as for rmem_pktmbuf_pool_create().
 * @param conf
 *   Configuration, as for rmem_pktmbuf_pool_create().
 * @param[out] report
 *   Written on success, and if a limit is exceeded.
 *
 * @return
 *   0 if the resources suffice, otherwise:
 *   - -EINVAL: arguments that rmem_pktmbuf_pool_create() refuses with -EINVAL, or NULL report.
 *   - -ENOSPC: the device has too few MRs left.
 *   - -ENOMEM: too little memory is free.
 *   - -ENODEV: the device is being closed.
 */
int rmem_pktmbuf_pool_check(const struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf,
		struct rmem_pool_report *report);

/**
 * Add the memory of an MR to the lookups.
 *
 * For external buffers (rte_pktmbuf_attach_extbuf()) in memory that the application registered
 * itself.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mr
 *   MR of rmem_mr_reg(), with an iova equal to the address. It cannot be deregistered or
 *   re-registered before rmem_extbuf_mr_del().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, a fast-register MR, an MR of length 0, an iova that is not the
 *     address, or an MR that is being deregistered or re-registered.
 *   - -EEXIST: part of the memory is already in the lookups of its PD.
 *   - -ENOMEM: no memory.
 */
int rmem_extbuf_mr_add(struct rmem_mr *mr);

/**
 * Remove an MR of rmem_extbuf_mr_add() from the lookups.
 *
 * Control path. No other thread may look up an address of its memory during the call.
 *
 * @param mr
 *   The MR.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR.
 *   - -ENOENT: it was not added by rmem_extbuf_mr_add().
 */
int rmem_extbuf_mr_del(struct rmem_mr *mr);

/**
 * Get the lkey of the memory that an mbuf refers to.
 *
 * Fast path: reads buf_addr of the mbuf and, with the registration of its pool, one cache line;
 * see rmem_mempool_keys().
 *
 * @param reg
 *   Registration with the PD of the QP.
 * @param m
 *   Mbuf: direct, a clone, or with an external buffer. Segments of a chain may differ.
 *
 * @return
 *   Key for the SGEs of local requests, or RMEM_KEY_NONE.
 */
static inline uint32_t
rmem_mbuf_lkey(const struct rmem_mempool *reg, const struct rte_mbuf *m)
{
	return rmem_mempool_keys(reg, m->buf_addr, 1).lkey;
}

/**
 * Get the rkey of the memory that an mbuf refers to.
 *
 * Fast path; see rmem_mbuf_lkey().
 *
 * @param reg
 *   Registration with the PD of the QP that peers use.
 * @param m
 *   Mbuf.
 *
 * @return
 *   Key for the requests of peers, or RMEM_KEY_NONE.
 */
static inline uint32_t
rmem_mbuf_rkey(const struct rmem_mempool *reg, const struct rte_mbuf *m)
{
	return rmem_mempool_keys(reg, m->buf_addr, 1).rkey;
}

/**
 * Get the IO virtual address of the data of an mbuf.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 * @param m
 *   Mbuf.
 *
 * @return
 *   Address for rmem_sge::addr and for the remote_addr of peers. It is not
 *   rte_pktmbuf_iova(), which is for devices without MRs.
 */
static inline uint64_t
rmem_mbuf_iova(const struct rmem_mempool *reg, const struct rte_mbuf *m)
{
	RTE_SET_USED(reg);
	return (uintptr_t)m->buf_addr + m->data_off;
}

/** @cond private */

/**
 * Convert the data of each segment, or its tailroom, into SGEs.
 *
 * @return
 *   Number of SGEs, or -ENOSPC or -ENOENT; see rmem_mbuf_sges().
 */
static inline int
rmem_mbuf_fill_sges(const struct rmem_mempool *reg, const struct rte_mbuf *m, struct rmem_sge *sge,
		unsigned int n, bool is_room)
{
	struct rmem_pool_keys keys;
	unsigned int nb = 0;
	uint32_t begin, length;

	for (; m != NULL; m = m->next) {
		begin = m->data_off;
		length = m->data_len;
		if (is_room) {
			begin += length;
			length = m->buf_len - begin;
		}
		if (length == 0)
			continue;
		if (unlikely(nb == n))
			return -ENOSPC;
		keys = rmem_mempool_keys(reg, m->buf_addr, (size_t)begin + length);
		if (unlikely(keys.lkey == RMEM_KEY_NONE))
			return -ENOENT;
		sge[nb].addr = (uintptr_t)m->buf_addr + begin;
		sge[nb].length = length;
		sge[nb].lkey = keys.lkey;
		nb++;
	}
	return (int)nb;
}

/** @endcond */

/**
 * Convert the data of an mbuf chain into SGEs, for SENDs and WRITEs.
 *
 * Each segment with data takes one SGE, with the lkey of the memory that it refers to.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param reg
 *   Registration with the PD of the QP.
 * @param m
 *   First mbuf of the chain.
 * @param[out] sge
 *   Array of n SGEs; undefined on failure.
 * @param n
 *   Size of the array; m->nb_segs is always sufficient.
 *
 * @return
 *   Number of SGEs written, 0 for a chain without data, otherwise:
 *   - -ENOSPC: more than n segments have data. Linearize a copy of the chain, or post it
 *     in parts.
 *   - -ENOENT: part of the memory of a segment is not registered with the PD of reg.
 */
static inline int
rmem_mbuf_sges(const struct rmem_mempool *reg, const struct rte_mbuf *m, struct rmem_sge *sge,
		unsigned int n)
{
	return rmem_mbuf_fill_sges(reg, m, sge, n, false);
}

/**
 * Convert the tailroom of an mbuf chain into SGEs, for receives and READs.
 *
 * Segments are filled in order. data_len and pkt_len are not changed: set them from
 * rmem_wc::byte_len when the request has completed.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param reg
 *   Registration with the PD of the QP.
 * @param m
 *   First mbuf of the chain.
 * @param[out] sge
 *   Array of n SGEs; undefined on failure.
 * @param n
 *   Size of the array; m->nb_segs is always sufficient.
 *
 * @return
 *   Number of SGEs written, 0 for a chain without tailroom, otherwise:
 *   - -ENOSPC: more than n segments have tailroom.
 *   - -ENOENT: part of the memory of a segment is not registered with the PD of reg.
 */
static inline int
rmem_mbuf_tailroom_sges(const struct rmem_mempool *reg, const struct rte_mbuf *m,
		struct rmem_sge *sge, unsigned int n)
{
	return rmem_mbuf_fill_sges(reg, m, sge, n, true);
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MBUF_H */
