/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registration cache: MRs of memory that the application did not allocate with rmem.
 *
 * rmem_cache_get() returns an MR that covers a buffer: a registered one, or a new one. The caller
 * holds the MR until rmem_cache_put(). After that the cache keeps it until a limit is reached and
 * it is the least recently used MR, or until its memory is unmapped, moved or discarded.
 *
 * Invariant: when munmap(), mremap(), madvise(), brk(), or mmap() over a mapping has returned, no
 * rmem_cache_get() called after it returns an MR that was registered before the change. A holder
 * of such an MR keeps it: its keys stay valid, and it is deregistered by the last rmem_cache_put().
 * doc/cache.md states for each monitor what ensures this, and its exceptions.
 *
 * An MR may have more rights, and cover more memory, than requested, because other calls of
 * rmem_cache_get() requested them. To give a peer access to exactly one buffer, use a lease or a
 * window.
 */

#ifndef RMEM_CACHE_H
#define RMEM_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rmem_mr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_cache;
struct rmem_pd;

/** Default of rmem_cache_conf::max_mrs. */
#define RMEM_CACHE_DEFAULT_MRS 1024
/** Maximum of rmem_cache_conf::max_mrs. */
#define RMEM_CACHE_MAX_MRS 65536
/** Maximum number of caches of a process. */
#define RMEM_CACHE_MAX 64

/** Rights that rmem_cache_get() supports, and RMEM_ACCESS_OPTIONAL_RANGE. */
#define RMEM_CACHE_ACCESS (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE | RMEM_ACCESS_MW_BIND)

/** Sources of reports that memory is unmapped, moved or discarded. */
enum rmem_cache_monitor {
	RMEM_CACHE_MONITOR_AUTO = 0,   /**< UFFD, else HOOKS, else NONE: the first that works. */
	RMEM_CACHE_MONITOR_NONE = 1,   /**< Nothing: each rmem_cache_put() deregisters. */
	RMEM_CACHE_MONITOR_UFFD = 2,   /**< Events of userfaultfd. */
	RMEM_CACHE_MONITOR_CALLER = 3, /**< The application, by rmem_cache_invalidate(). */
	RMEM_CACHE_MONITOR_HOOKS = 4,  /**< Calls of libc, by librmem_cache_hooks.so, preloaded. */
};

/** Configuration of a cache. The caller zeroes it first. */
struct rmem_cache_conf {
	const char *name;     /**< Unique name, shorter than RMEM_NAME_SIZE; NULL for a number. */
	uint64_t max_size;    /**< Bytes of all its MRs; 0 for the limit RLIMIT_MEMLOCK, if any. */
	uint32_t max_mrs;     /**< MRs, up to RMEM_CACHE_MAX_MRS; 0 for the default. */
	uint32_t monitor;     /**< One of enum rmem_cache_monitor. */
	int socket_id;        /**< NUMA socket of its memory, SOCKET_ID_ANY for any. */
	uint32_t flags;       /**< No flag is defined: 0. */
	uint64_t reserved[4]; /**< Zero. */
};

/** Statistics of a cache since its creation. */
struct rmem_cache_stats {
	uint64_t hits;          /**< MRs returned without a registration. */
	uint64_t misses;        /**< MRs registered. */
	uint64_t merges;        /**< Misses that replaced overlapping MRs by one. */
	uint64_t single_use;    /**< Misses with MRs not kept: unmonitored or changing memory. */
	uint64_t failures;      /**< Calls that failed. */
	uint64_t evictions;     /**< MRs deregistered to stay within a limit. */
	uint64_t invalidations; /**< MRs whose memory was unmapped, moved or discarded. */
	uint64_t size;          /**< Bytes of all MRs now. */
	uint64_t max_size;      /**< Limit of size; UINT64_MAX for none. */
	uint64_t peak_size;     /**< Maximum of size. */
	uint32_t nb_mrs;        /**< MRs now, including nb_stale. */
	uint32_t nb_stale;      /**< MRs that are no longer returned and wait for their holders. */
	uint32_t max_mrs;       /**< Limit of nb_mrs. */
	uint32_t monitor;       /**< One of enum rmem_cache_monitor, never AUTO. */
	uint64_t reserved[4];   /**< Zero. */
};

/**
 * Create a registration cache for a PD.
 *
 * The PD cannot be deallocated before the cache is destroyed.
 *
 * Control path: allocates memory and starts a control thread. Safe to call from any thread.
 *
 * @param pd
 *   PD of the MRs.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] cache
 *   The new cache. Written only on success. Release it with rmem_cache_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL conf or cache, an unknown monitor or flag, a number out of
 *     range, a reserved field that is not zero, or no such NUMA socket.
 *   - -EINVAL: a name that is empty, too long, or not printable.
 *   - -EEXIST: another cache has the name.
 *   - -EOPNOTSUPP: UFFD, and the kernel does not permit userfaultfd; HOOKS, and
 *     librmem_cache_hooks.so is not preloaded; or a secondary process.
 *   - -ENOSPC: the process already has RMEM_CACHE_MAX caches.
 *   - -ENOMEM: no memory, or no thread or file descriptor left.
 */
int rmem_cache_create(
		struct rmem_pd *pd, const struct rmem_cache_conf *conf, struct rmem_cache **cache);

/**
 * Destroy a cache and deregister its MRs.
 *
 * Control path. Once for each cache; no other thread may use it.
 *
 * @param cache
 *   Cache to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a cache.
 *   - -EBUSY: MRs are held, or have windows or leases; the log has their number. All other MRs were
 *     deregistered.
 *   - -EPERM: this is a child of fork().
 *   - -EOPNOTSUPP: this is a secondary process.
 */
int rmem_cache_destroy(struct rmem_cache *cache);

/**
 * Get an MR that covers a buffer.
 *
 * A registered MR is returned if it covers the buffer and has the rights. Otherwise the buffer is
 * registered; if MRs overlap it, one MR with their memory and rights replaces them. When a limit
 * is reached, the least recently used MRs that are not held are deregistered.
 *
 * The MR is held: it is not deregistered before rmem_cache_put(), even if its memory is unmapped.
 *
 * Fast path if a registered MR is returned: takes no lock. Otherwise as rmem_mr_reg(), one thread
 * at a time. Safe to call from any thread.
 *
 * @param cache
 *   Cache.
 * @param addr
 *   First byte of the buffer. No alignment required.
 * @param length
 *   Bytes, at least 1.
 * @param access
 *   Bitwise OR of rights in RMEM_CACHE_ACCESS and RMEM_ACCESS_OPTIONAL_RANGE. Remote rights to
 *   modify need RMEM_ACCESS_LOCAL_WRITE.
 * @param[out] mr
 *   The MR. Its iova is its address, so requests use the address of the buffer. Written only on
 *   success. Read-only; release it with rmem_cache_put().
 *
 * @return
 *   0 on success, otherwise what rmem_mr_reg() returns, or:
 *   - -EINVAL: NULL or not a cache, NULL mr, or rights that a cache does not support.
 *   - -ENOSPC: a limit is reached and all MRs are held, or the buffer exceeds max_size.
 *   - -EPERM: this is a child of fork().
 */
int rmem_cache_get(struct rmem_cache *cache, void *addr, size_t length, uint32_t access,
		struct rmem_mr **mr);

/**
 * Release an MR of rmem_cache_get().
 *
 * No request may use the MR any more on behalf of the caller. The last holder of an MR that the
 * cache does not keep deregisters it.
 *
 * Fast path, except for such an MR. Safe to call from any thread.
 *
 * @param cache
 *   Cache.
 * @param mr
 *   MR that the caller holds.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a cache, or not an MR of it that is held.
 *   - -EPERM: this is a child of fork().
 *   - -EOPNOTSUPP: this is a secondary process.
 */
int rmem_cache_put(struct rmem_cache *cache, struct rmem_mr *mr);

/**
 * Remove the MRs of a range from a cache.
 *
 * Later calls of rmem_cache_get() do not return these MRs. MRs that are not held are deregistered
 * at once, all others by their last rmem_cache_put().
 *
 * Control path. Safe to call from any thread.
 *
 * @param cache
 *   Cache.
 * @param addr
 *   First byte; NULL and length SIZE_MAX for all memory.
 * @param length
 *   Bytes, at least 1.
 *
 * @return
 *   Number of MRs with memory in the range that are still registered, 0 if there is none, or:
 *   - -EINVAL: NULL or not a cache, length 0, or addr + length overflows.
 *   - -EPERM: this is a child of fork().
 *   - -EOPNOTSUPP: this is a secondary process.
 */
int rmem_cache_flush(struct rmem_cache *cache, void *addr, size_t length);

/**
 * Report to all caches of the process that memory is unmapped, moved or discarded.
 *
 * For RMEM_CACHE_MONITOR_CALLER: call it before the memory changes, when no thread uses the memory
 * any more. Later calls of rmem_cache_get() return no MR that was registered before. The call takes
 * no lock and allocates nothing, so that an allocator may make it.
 *
 * Control path. Safe to call from any thread.
 *
 * @param addr
 *   First byte.
 * @param length
 *   Bytes; 0 has no effect.
 */
void rmem_cache_invalidate(const void *addr, size_t length);

/**
 * Get the statistics of a cache.
 *
 * Control path. Not an atomic snapshot. Safe to call from any thread.
 *
 * @param cache
 *   Cache.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a cache, or NULL stats.
 *   - -EPERM: this is a child of fork().
 *   - -EOPNOTSUPP: this is a secondary process.
 */
int rmem_cache_stats_get(const struct rmem_cache *cache, struct rmem_cache_stats *stats);

/**
 * Print a cache and its MRs, human-readable.
 *
 * Control path. Safe to call from any thread.
 *
 * @param cache
 *   Cache.
 * @param f
 *   File.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a cache, or NULL f.
 *   - -EPERM: this is a child of fork().
 *   - -EOPNOTSUPP: this is a secondary process.
 *   - -ENOMEM: no memory for the text.
 */
int rmem_cache_dump(const struct rmem_cache *cache, FILE *f);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CACHE_H */
