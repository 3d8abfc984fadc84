/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Regions of port=shm; see rwire_region.h. */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_memory.h>

#include "../../base/rsoft.h"
#include "../../mem/rsoft_guard.h"
#include "rwire_port.h"
#include "rwire_region.h"

/* Limit of the bytes mapped per channel; with 64 channels, a quarter of the address space. */
#define REGION_MAX_TOTAL (UINT64_C(1) << 39)

/* Number of times that EAL freed memory; atomic. */
static uint64_t region_freed;

static void
region_on_event(enum rte_mem_event event, const void *addr, size_t len, void *arg)
{
	RTE_SET_USED(addr);
	RTE_SET_USED(len);
	RTE_SET_USED(arg);
	if (event == RTE_MEM_EVENT_FREE)
		__atomic_fetch_add(&region_freed, 1, __ATOMIC_RELEASE);
}

bool
rwire_regions_begin(const char *name)
{
	if (!rsoft_guard_get()) {
		RSOFT_LOG(WARNING, "port=%s,share=1: no effect without a handler of SIGBUS", name);
		return false;
	}
	/* Registered once for all ports, and never removed. ENOTSUP: EAL never frees memory. */
	if (rte_mem_event_callback_register("rmem_soft_region", region_on_event, NULL) == 0 ||
			rte_errno == EEXIST || rte_errno == ENOTSUP)
		return true;
	RSOFT_LOG(WARNING, "port=%s,share=1: no effect without a callback of EAL: %s", name,
			rte_strerror(rte_errno));
	rsoft_guard_put();
	return false;
}

void
rwire_regions_end(void)
{
	rsoft_guard_put();
}

/* Sender. */

static bool
region_has(const struct rwire_region *region, const uint8_t *data, uint32_t len)
{
	uint64_t offset = (uint64_t)(data - region->base);

	return offset < region->size && len <= region->size - offset;
}

/* Open the file that contains the bytes, and get its address range; return a read-only descriptor,
 * or -1. */
static int
region_open(const uint8_t *data, struct rwire_region *region)
{
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list(data);
	struct rte_memseg *ms =
			msl == NULL || msl->external ? NULL : rte_mem_virt2memseg(data, msl);
	size_t offset = 0;
	struct stat st;
	char path[32];
	int fd;

	fd = ms == NULL ? -1 : rte_memseg_get_fd(ms);
	if (fd < 0 || rte_memseg_get_fd_offset(ms, &offset) != 0 || fstat(fd, &st) != 0)
		return -1;
	region->base = (uint8_t *)ms->addr - offset;
	region->size = (uint64_t)st.st_size;
	/* Reopen it read-only: the receiver must not write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Pass the file that contains the bytes to the receiver. */
static void
region_pass(struct rwire_regions *regions, int fd, const uint8_t *data, uint32_t len)
{
	struct shm_region message = {.id = regions->nb};
	struct rwire_region region;
	int memory;

	if (regions->nb == RWIRE_MAX_REGIONS)
		return;
	memory = region_open(data, &region);
	if (memory < 0)
		return;
	message.size = region.size;
	if (region_has(&region, data, len) && rwire_shm_pass_region(fd, &message, memory)) {
		regions->last = regions->nb;
		regions->region[regions->nb++] = region;
	}
	close(memory);
}

bool
rwire_regions_share(struct rwire_regions *regions, int fd, const struct rwire_ring *ring,
		const uint8_t *data, uint32_t len, struct rwire_shared *shared)
{
	uint64_t freed = __atomic_load_n(&region_freed, __ATOMIC_ACQUIRE);
	uint32_t i = regions->last;

	if (unlikely(regions->freed != freed)) {
		memset(regions->region, 0, sizeof(regions->region));
		regions->freed = freed;
	}
	if (unlikely(!region_has(&regions->region[i], data, len))) {
		for (i = 0; i < regions->nb && !region_has(&regions->region[i], data, len); i++)
			;
		if (i == regions->nb) {
			if (__atomic_load_n(&ring->accepts, __ATOMIC_RELAXED) != 0)
				region_pass(regions, fd, data, len);
			return false;
		}
		regions->last = i;
	}
	if ((__atomic_load_n(&ring->mapped, __ATOMIC_RELAXED) >> i & 1) == 0)
		return false;
	shared->region = i;
	shared->len = len;
	shared->offset = (uint64_t)(data - regions->region[i].base);
	return true;
}

/* Receiver. */

static void *
region_mmap(const struct shm_region *region, uint64_t used, int memory)
{
	struct statfs fs;
	struct stat st;

	/* On other file systems the owner decides when, or whether, pages are provided. */
	if (region->size > REGION_MAX_TOTAL - used || fstatfs(memory, &fs) != 0 ||
			(fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC) ||
			fstat(memory, &st) != 0 || (uint64_t)st.st_size < region->size)
		return MAP_FAILED;
	/* mmap() rounds up to the page size of the file, but munmap() then fails unless the size is
	 * a multiple. */
	if (region->size % (uint64_t)fs.f_bsize != 0)
		return MAP_FAILED;
	return mmap(NULL, region->size, PROT_READ, MAP_SHARED | MAP_NORESERVE, memory, 0);
}

void
rwire_regions_map(struct rwire_regions *regions, struct rwire_ring *ring,
		const struct shm_region *region, int memory)
{
	void *base = MAP_FAILED;
	uint64_t used = 0;
	uint32_t i;

	for (i = 0; i < RWIRE_MAX_REGIONS; i++)
		used += regions->region[i].size;
	/* A region number is used once. */
	if (region->id < RWIRE_MAX_REGIONS && region->size != 0 &&
			regions->region[region->id].size == 0)
		base = region_mmap(region, used, memory);
	close(memory);
	if (base == MAP_FAILED)
		return;
	regions->region[region->id].base = base;
	regions->region[region->id].size = region->size;
	regions->mapped |= UINT64_C(1) << region->id;
	__atomic_store_n(&ring->mapped, regions->mapped, __ATOMIC_RELAXED);
}

void
rwire_regions_unmap(struct rwire_regions *regions)
{
	uint32_t i;

	for (i = 0; i < RWIRE_MAX_REGIONS; i++) {
		if (regions->region[i].size != 0)
			munmap(regions->region[i].base, regions->region[i].size);
	}
	memset(regions, 0, sizeof(*regions));
}

uint8_t *
rwire_regions_find(const struct rwire_regions *regions, const struct rwire_shared *shared)
{
	const struct rwire_region *region = &regions->region[shared->region % RWIRE_MAX_REGIONS];

	if (shared->region >= RWIRE_MAX_REGIONS || shared->len == 0 ||
			shared->len > RWIRE_MAX_SHARED || shared->offset > region->size ||
			shared->len > region->size - shared->offset)
		return NULL;
	return region->base + shared->offset;
}
