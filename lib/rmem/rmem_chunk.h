/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Chunks: contiguous memory of whole pages, as used by ALLOCATE_MR.
 *
 * A chunk is a memzone. rmem_mr_reg() with RMEM_ACCESS_ALLOCATE_MR reserves a chunk and registers
 * it; the chunk is freed with the MR. This header is for libraries that register parts of a chunk
 * separately, such as a pool over several MRs.
 */

#ifndef RMEM_CHUNK_H
#define RMEM_CHUNK_H

#include <stddef.h>

#include <rte_memzone.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reserve a chunk of contiguous memory.
 *
 * A chunk consists of whole pages of one size: hugepages, or system pages if EAL runs without
 * hugepages. Its IO addresses are contiguous if EAL uses virtual addresses for IO; otherwise
 * rmem_mr_query() returns the number of extents.
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param name
 *   Unique name, below RTE_MEMZONE_NAMESIZE bytes.
 * @param length
 *   Length in bytes, at least 1; rounded up to whole pages.
 * @param socket_id
 *   NUMA socket, SOCKET_ID_ANY for any.
 * @param[out] mz
 *   The chunk: rte_memzone::addr, rte_memzone::len (rounded up) and
 *   rte_memzone::hugepage_sz (bytes of a page). Written only on success. Release it with
 *   rte_memzone_free().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL name or mz, a name that is too long, length 0 or too large to round up,
 *     or no such NUMA socket.
 *   - -EEXIST: a memzone of that name exists.
 *   - -ENOMEM: too little memory; the log line has the missing bytes or hugepages, and the remedy.
 */
int rmem_chunk_reserve(
		const char *name, size_t length, int socket_id, const struct rte_memzone **mz);

/**
 * Get the page size of chunks, provided that EAL has free pages of that size.
 *
 * Control path. Safe to call from any thread.
 *
 * @return
 *   Bytes of the smallest hugepages of EAL, or of a system page if it runs without hugepages.
 */
size_t rmem_chunk_page_size(void);

/**
 * Get the number of pages available for a chunk.
 *
 * Counts the largest free range of memory in EAL, and the free hugepages of the kernel. Other
 * allocations may use them concurrently, and they may not be contiguous.
 *
 * Control path: reads a file of the kernel. Safe to call from any thread.
 *
 * @param page_size
 *   Bytes of a page, from rmem_chunk_page_size().
 * @param socket_id
 *   NUMA socket, SOCKET_ID_ANY for any.
 *
 * @return
 *   Number of pages; a chunk needs one more than its length.
 */
size_t rmem_chunk_free_pages(size_t page_size, int socket_id);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CHUNK_H */
