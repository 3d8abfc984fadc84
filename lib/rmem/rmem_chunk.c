/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Chunks: memzones of whole pages, and the log line for missing memory.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include <rmem_chunk.h>

#include "rmem_priv.h"

int
rmem_socket_check(int socket_id)
{
	unsigned int i;

	if (socket_id == SOCKET_ID_ANY)
		return 0;
	for (i = 0; i < rte_socket_count(); i++) {
		if (rte_socket_id_by_idx(i) == socket_id)
			return 0;
	}
	return RMEM_FAIL(EINVAL, "socket_id: no such NUMA socket: %d (%u sockets)", socket_id,
			rte_socket_count());
}

static int
min_page_size(const struct rte_memseg_list *msl, void *arg)
{
	uint64_t *page_size = arg;

	if (!msl->external && (*page_size == 0 || msl->page_sz < *page_size))
		*page_size = msl->page_sz;
	return 0;
}

size_t
rmem_chunk_page_size(void)
{
	uint64_t page_size = 0;

	if (rte_eal_has_hugepages())
		rte_memseg_list_walk(min_page_size, &page_size);
	return page_size != 0 ? (size_t)page_size : (size_t)sysconf(_SC_PAGESIZE);
}

/* Free hugepages on a socket as reported by the kernel, or 0. */
static size_t
free_hugepages(size_t page_size, int socket_id)
{
	const char *dir = "/sys/kernel/mm";
	char node[64], path[128], line[32];
	size_t nb = 0;
	FILE *f;

	if (socket_id != SOCKET_ID_ANY) {
		snprintf(node, sizeof(node), "/sys/devices/system/node/node%d", socket_id);
		dir = node;
	}
	snprintf(path, sizeof(path), "%s/hugepages/hugepages-%zukB/free_hugepages", dir,
			page_size / 1024);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fgets(line, sizeof(line), f) != NULL)
		nb = strtoul(line, NULL, 10);
	fclose(f);
	return nb;
}

/* Largest contiguous free range of the memory that EAL holds already. */
static size_t
largest_free(int socket_id)
{
	struct rte_malloc_socket_stats stats;
	size_t largest = 0;
	unsigned int i;
	int id;

	for (i = 0; i < rte_socket_count(); i++) {
		id = rte_socket_id_by_idx(i);
		if (rte_eal_has_hugepages() && socket_id != SOCKET_ID_ANY && socket_id != id)
			continue;
		if (rte_malloc_get_socket_stats(id, &stats) == 0)
			largest = RTE_MAX(largest, stats.greatest_free_size);
	}
	return largest;
}

size_t
rmem_chunk_free_pages(size_t page_size, int socket_id)
{
	size_t nb = largest_free(socket_id) / page_size;

	return rte_eal_has_hugepages() ? nb + free_hugepages(page_size, socket_id) : nb;
}

/* Log the memory missing without hugepages; EAL's option -m is the limit. */
static int
no_small_pages(size_t length, size_t page_size)
{
	size_t need = length + page_size, held = largest_free(SOCKET_ID_ANY);
	size_t missing = need - RTE_MIN(held, need);

	return RMEM_FAIL(ENOMEM,
			"no memory: %zu bytes (%zu free, %zu missing: add %zu MiB to EAL's -m)",
			length, held, missing, (missing >> 20) + 1);
}

/* Log the memory missing, and the remedy. */
static int
no_memory(size_t length, size_t page_size, int socket_id)
{
	/* The chunk starts at a page, after a header in the preceding page. */
	size_t need = length / page_size + 1, have;
	char where[32] = "any socket";

	if (!rte_eal_has_hugepages())
		return no_small_pages(length, page_size);
	if (socket_id != SOCKET_ID_ANY)
		snprintf(where, sizeof(where), "socket %d", socket_id);
	have = rmem_chunk_free_pages(page_size, socket_id);
	if (have >= need)
		return RMEM_FAIL(ENOMEM,
				"no memory: %zu contiguous bytes on %s (%zu hugepages are free)",
				length, where, have);
	return RMEM_FAIL(ENOMEM,
			"no memory: %zu bytes on %s need %zu hugepages of %zu KiB (%zu free, %zu missing: raise nr_hugepages)",
			length, where, need, page_size / 1024, have, need - have);
}

/*
 * Reserve a chunk aligned to page_size; the error is in rte_errno. Contiguous physical pages are
 * not requested: EAL would allocate, check and free the memory, and clear it twice.
 */
static const struct rte_memzone *
reserve(const char *name, size_t length, size_t page_size, int socket_id)
{
	unsigned int flags = RTE_MEMZONE_SIZE_HINT_ONLY;

	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		flags |= RTE_MEMZONE_IOVA_CONTIG;
	return rte_memzone_reserve_aligned(name, length, socket_id, flags, (unsigned int)page_size);
}

/* Convert rte_errno to the errno of the call. */
static int
reserve_error(const char *name, size_t length, size_t page_size, int socket_id)
{
	switch (rte_errno) {
	case EEXIST:
		return RMEM_FAIL(EEXIST, "memzone: name in use: \"%s\"", name);
	case ENOSPC:
		return RMEM_FAIL(ENOMEM,
				"memzone: all entries of EAL are in use: %zu bytes requested",
				length);
	default:
		return no_memory(length, page_size, socket_id);
	}
}

int
rmem_chunk_alloc(const char *name, size_t length, int socket_id, const struct rte_memzone **mz)
{
	size_t page_size = rmem_chunk_page_size(), rounded;
	const struct rte_memzone *new_mz;

	/* The limit leaves space for rounding up to a page of any size, and for a header. */
	if (length == 0 || length > SIZE_MAX / 2)
		return RMEM_FAIL(EINVAL, "chunk: length out of range: %zu (1 to %zu)", length,
				SIZE_MAX / 2);
	for (;;) {
		rounded = RTE_ALIGN_CEIL(length, page_size);
		new_mz = reserve(name, rounded, page_size, socket_id);
		if (new_mz == NULL)
			return reserve_error(name, rounded, page_size, socket_id);
		if (new_mz->hugepage_sz <= page_size)
			break;
		/* EAL has only larger pages: round up to their size. */
		page_size = new_mz->hugepage_sz;
		rte_memzone_free(new_mz);
	}
	*mz = new_mz;
	return 0;
}

int
rmem_chunk_alloc_part(const char *name, size_t length, int socket_id, const struct rte_memzone **mz)
{
	size_t small = (size_t)sysconf(_SC_PAGESIZE), page_size = rmem_chunk_page_size();
	size_t rounded = RTE_ALIGN_CEIL(length, small);
	const struct rte_memzone *new_mz;

	if (length == 0 || length > page_size / 2)
		return rmem_chunk_alloc(name, length, socket_id, mz);
	new_mz = reserve(name, rounded, small, socket_id);
	if (new_mz == NULL)
		return reserve_error(name, rounded, page_size, socket_id);
	*mz = new_mz;
	return 0;
}

int
rmem_chunk_reserve(const char *name, size_t length, int socket_id, const struct rte_memzone **mz)
{
	RMEM_CALL(NULL);
	int ret;

	ret = rmem_check_arg(name, "name");
	if (ret == 0)
		ret = rmem_check_arg(mz, "memzone pointer");
	if (ret != 0)
		return ret;
	if (strnlen(name, RTE_MEMZONE_NAMESIZE) == RTE_MEMZONE_NAMESIZE)
		return RMEM_FAIL(EINVAL, "chunk: name too long: \"%s\" (%d bytes)", name,
				RTE_MEMZONE_NAMESIZE - 1);
	ret = rmem_socket_check(socket_id);
	return ret != 0 ? ret : rmem_chunk_alloc(name, length, socket_id, mz);
}
