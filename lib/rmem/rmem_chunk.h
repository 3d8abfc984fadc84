/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Chunks: contiguous memory of whole pages, as ALLOCATE_MR uses it.
 *
 * A chunk is a memzone. rmem_mr_reg() with RMEM_ACCESS_ALLOCATE_MR makes one, registers it
 * and frees it with the MR; this header is for those who register the parts of a chunk
 * themselves, as a pool over several MRs does.
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
 * It is made of whole pages of one size: hugepages, or pages of the system when EAL runs
 * without hugepages. Its IO addresses are contiguous when EAL uses virtual ones;
 * otherwise rmem_mr_query() tells in how many extents they are.
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
 *   - -ENOMEM: too little memory; the log tells how many bytes or hugepages are missing and
 *     how to get them.
 */
int rmem_chunk_reserve(
		const char *name, size_t length, int socket_id, const struct rte_memzone **mz);

/**
 * Tell the size of the pages that chunks are made of, unless EAL has none of that size free.
 *
 * Control path. Safe to call from any thread.
 *
 * @return
 *   Bytes of the smallest hugepages that EAL hands out, or of a page of the system when it
 *   runs without hugepages.
 */
size_t rmem_chunk_page_size(void);

/**
 * Tell how many pages a chunk could take now: those in the largest free stretch of the memory
 * that EAL holds, and the hugepages that the kernel has free. Others may take them meanwhile,
 * and they may not all be in one stretch.
 *
 * Control path: reads a file of the kernel's. Safe to call from any thread.
 *
 * @param page_size
 *   Bytes of a page, as rmem_chunk_page_size() tells.
 * @param socket_id
 *   NUMA socket, SOCKET_ID_ANY for any.
 *
 * @return
 *   How many pages; a chunk needs one more than its length.
 */
size_t rmem_chunk_free_pages(size_t page_size, int socket_id);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_CHUNK_H */
