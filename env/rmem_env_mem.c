/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory of the process: small blocks are those of malloc(), zones and large blocks are mappings,
 * which are zero and take memory as they are used. IO addresses are virtual addresses.
 */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#define LARGE (256u << 10)

/* A mapping; a large block is one without a name. */
struct zone {
	struct rte_memzone mz;
	struct zone *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zone *zones;     /* under lock */
static unsigned int nb_blocks; /* atomic */

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Map whole pages from an aligned address; NULL: no memory. */
static void *
map(size_t length, size_t align)
{
	size_t extra = align > page_size() ? align : 0;
	uint8_t *begin, *at;

	if (length > SIZE_MAX / 2 - extra)
		return NULL;
	begin = mmap(NULL, length + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	if (begin == MAP_FAILED)
		return NULL;
	if (extra == 0)
		return begin;
	at = RTE_PTR_ALIGN_CEIL(begin, align);
	if (at != begin)
		munmap(begin, (size_t)(at - begin));
	munmap(at + length, (size_t)(begin + extra - at));
	return at;
}

static struct zone *
find(const char *name)
{
	struct zone *zone = zones;

	while (zone != NULL && (name[0] == '\0' || strcmp(zone->mz.name, name) != 0))
		zone = zone->next;
	return zone;
}

/* The errno of a failure is in rte_errno. */
static const struct rte_memzone *
add_zone(const char *name, size_t length, size_t align)
{
	struct zone *zone = NULL;
	int error = EEXIST;

	length = RTE_ALIGN_CEIL(length, page_size());
	pthread_mutex_lock(&lock);
	if (find(name) == NULL) {
		zone = calloc(1, sizeof(*zone));
		error = ENOMEM;
	}
	if (zone != NULL) {
		zone->mz.addr = map(length, align);
		if (zone->mz.addr == NULL) {
			free(zone);
			zone = NULL;
		}
	}
	if (zone != NULL) {
		memcpy(zone->mz.name, name, strlen(name));
		zone->mz.iova = (uintptr_t)zone->mz.addr;
		zone->mz.len = length;
		zone->mz.hugepage_sz = page_size();
		zone->next = zones;
		zones = zone;
	}
	pthread_mutex_unlock(&lock);
	if (zone == NULL)
		rte_errno = error;
	return zone != NULL ? &zone->mz : NULL;
}

/* Whether there was one at that address. */
static bool
remove_zone(const void *addr)
{
	struct zone **at, *zone;

	pthread_mutex_lock(&lock);
	for (at = &zones; *at != NULL && (*at)->mz.addr != addr; at = &(*at)->next)
		;
	zone = *at;
	if (zone != NULL) {
		*at = zone->next;
		munmap(zone->mz.addr, zone->mz.len);
		free(zone);
	}
	pthread_mutex_unlock(&lock);
	return zone != NULL;
}

const struct rte_memzone *
rte_memzone_reserve_aligned(
		const char *name, size_t len, int socket_id, unsigned int flags, unsigned int align)
{
	RTE_SET_USED(socket_id);
	RTE_SET_USED(flags);
	if (strnlen(name, RTE_MEMZONE_NAMESIZE) == RTE_MEMZONE_NAMESIZE) {
		rte_errno = ENAMETOOLONG;
		return NULL;
	}
	return add_zone(name, len, align);
}

const struct rte_memzone *
rte_memzone_reserve(const char *name, size_t len, int socket_id, unsigned int flags)
{
	return rte_memzone_reserve_aligned(name, len, socket_id, flags, RTE_CACHE_LINE_SIZE);
}

const struct rte_memzone *
rte_memzone_lookup(const char *name)
{
	const struct zone *zone;

	pthread_mutex_lock(&lock);
	zone = find(name);
	pthread_mutex_unlock(&lock);
	return zone != NULL ? &zone->mz : NULL;
}

int
rte_memzone_free(const struct rte_memzone *mz)
{
	return mz != NULL && remove_zone(mz->addr) ? 0 : -EINVAL;
}

static void *
allocate(size_t size, unsigned int align, bool is_zero)
{
	const struct rte_memzone *mz;
	void *block = NULL;

	align = RTE_MAX(align, (unsigned int)RTE_CACHE_LINE_SIZE);
	if (size == 0 || !rte_is_power_of_2(align))
		return NULL;
	if (size >= LARGE) {
		mz = add_zone("", size, align);
		block = mz != NULL ? mz->addr : NULL;
	} else if (posix_memalign(&block, align, size) != 0) {
		block = NULL;
	} else if (is_zero) {
		memset(block, 0, size);
	}
	if (block != NULL)
		__atomic_fetch_add(&nb_blocks, 1, __ATOMIC_RELAXED);
	return block;
}

void *
rte_malloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	RTE_SET_USED(type);
	RTE_SET_USED(socket);
	return allocate(size, align, false);
}

void *
rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	RTE_SET_USED(type);
	RTE_SET_USED(socket);
	return allocate(size, align, true);
}

void *
rte_malloc(const char *type, size_t size, unsigned int align)
{
	return rte_malloc_socket(type, size, align, SOCKET_ID_ANY);
}

void *
rte_zmalloc(const char *type, size_t size, unsigned int align)
{
	return rte_zmalloc_socket(type, size, align, SOCKET_ID_ANY);
}

void
rte_free(void *ptr)
{
	if (ptr == NULL)
		return;
	__atomic_fetch_sub(&nb_blocks, 1, __ATOMIC_RELAXED);
	/* A small block may begin at a page too. */
	if ((uintptr_t)ptr % page_size() != 0 || !remove_zone(ptr))
		free(ptr);
}

int
rte_malloc_get_socket_stats(int socket, struct rte_malloc_socket_stats *socket_stats)
{
	RTE_SET_USED(socket);
	memset(socket_stats, 0, sizeof(*socket_stats));
	socket_stats->alloc_count = __atomic_load_n(&nb_blocks, __ATOMIC_RELAXED);
	socket_stats->greatest_free_size = (size_t)sysconf(_SC_AVPHYS_PAGES) * page_size();
	return 0;
}

int
rte_eal_has_hugepages(void)
{
	return 0;
}

enum rte_iova_mode
rte_eal_iova_mode(void)
{
	return RTE_IOVA_VA;
}

rte_iova_t
rte_mem_virt2iova(const void *virt)
{
	return (uintptr_t)virt;
}

struct rte_memseg *
rte_mem_virt2memseg(const void *virt, const struct rte_memseg_list *msl)
{
	RTE_SET_USED(virt);
	RTE_SET_USED(msl);
	return NULL;
}

struct rte_memseg_list *
rte_mem_virt2memseg_list(const void *virt)
{
	RTE_SET_USED(virt);
	return NULL;
}

int
rte_memseg_list_walk(rte_memseg_list_walk_t func, void *arg)
{
	RTE_SET_USED(func);
	RTE_SET_USED(arg);
	return 0;
}

/* Memory of which there are no segments. */

int
rte_memseg_get_fd(const struct rte_memseg *ms)
{
	RTE_SET_USED(ms);
	rte_errno = ENOTSUP;
	return -1;
}

int
rte_memseg_get_fd_offset(const struct rte_memseg *ms, size_t *offset)
{
	RTE_SET_USED(ms);
	RTE_SET_USED(offset);
	rte_errno = ENOTSUP;
	return -1;
}

int
rte_mem_event_callback_register(const char *name, rte_mem_event_callback_t clb, void *arg)
{
	RTE_SET_USED(name);
	RTE_SET_USED(clb);
	RTE_SET_USED(arg);
	rte_errno = ENOTSUP;
	return -1;
}

unsigned int
rte_socket_count(void)
{
	return 1;
}

int
rte_socket_id_by_idx(unsigned int idx)
{
	return idx == 0 ? 0 : -1;
}
