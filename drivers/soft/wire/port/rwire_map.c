/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Mapped files of a target; see rwire_map.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv() */
#endif
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "../../mem/rsoft_guard.h"
#include "rwire_map.h"

#define MAP_MAX_SIZE (UINT64_C(1) << 39) /* of a file */
#define MAP_STEP     (UINT64_C(4) << 20) /* bytes that are released at once */
#define MAP_STEPS_MS 1                   /* time for steps of one call */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* Number of forks between the first process and this one. */
static uint32_t map_forks;

static void
map_forked(void)
{
	map_forks++;
}

/*
 * Whether the mappings are those of the parent, in a child of fork(): the child has other memory
 * there, if any.
 */
static bool
map_is_inherited(const struct rwire_maps *maps)
{
	return maps->forks != map_forks;
}

RTE_INIT(rwire_map_init)
{
	pthread_atfork(NULL, NULL, map_forked);
}

uint8_t *
rwire_maps_find(struct rwire_maps *maps, const struct rwire_map_range *range, bool is_written)
{
	const struct rwire_map *map = &maps->map[range->id % RSOFT_GRANT_FILES];
	bool is_same = __atomic_load_n(&map->id, __ATOMIC_ACQUIRE) == range->id;
	uint8_t *base = __atomic_load_n(&map->base[is_written], __ATOMIC_ACQUIRE);
	bool is_refused;

	if (unlikely(range->id == 0))
		return NULL;
	if (unlikely(!is_same || base == NULL)) {
		is_refused = __atomic_load_n(&maps->is_refused, __ATOMIC_RELAXED);
		if (is_same && __atomic_load_n(&map->is_refused[is_written], __ATOMIC_RELAXED))
			is_refused = true;
		if (!is_refused)
			__atomic_store_n(&maps->wanted, range->id * 2 + is_written,
					__ATOMIC_RELAXED);
		return NULL;
	}
	if (range->offset > map->size || range->length > map->size - range->offset)
		return NULL;
	return base + range->offset;
}

/* Whether a thread of the target holds its word. */
static bool
map_is_held(uint32_t word)
{
	return word != 0 && (word & ~FUTEX_TID_MASK) == 0;
}

bool
rwire_maps_are_orphaned(const struct rwire_maps *maps)
{
	const uint32_t *alive = __atomic_load_n(&maps->alive, __ATOMIC_ACQUIRE);

	return alive != NULL && !map_is_inherited(maps) &&
			!map_is_held(__atomic_load_n(alive, __ATOMIC_ACQUIRE));
}

bool
rwire_maps_gate(const struct rwire_maps *maps, const uint64_t *sentinel, struct rsoft_gate *gate)
{
	gate->open = sentinel;
	gate->alive = __atomic_load_n(&maps->alive, __ATOMIC_ACQUIRE);
	if (gate->alive == NULL || map_is_inherited(maps))
		return false;
	gate->alive_value = __atomic_load_n(gate->alive, __ATOMIC_ACQUIRE);
	return map_is_held((uint32_t)gate->alive_value);
}

/* Whether the sentinel proves that the process is the target. */
static bool
map_is_target(const struct rsoft_grants *shared, pid_t pid)
{
	uint64_t sentinel = __atomic_load_n(&shared->sentinel, __ATOMIC_ACQUIRE);
	const struct iovec remote = {(void *)(uintptr_t)sentinel, 1};
	uint8_t byte;
	const struct iovec local = {&byte, 1};

	return sentinel != 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1;
}

static bool
map_is_inode(const struct stat *st, const struct rsoft_grant_file *file)
{
	return st->st_dev == __atomic_load_n(&file->dev, __ATOMIC_RELAXED) &&
			st->st_ino == __atomic_load_n(&file->ino, __ATOMIC_RELAXED);
}

/*
 * Whether a descriptor of the target has the expected file, before a copy of it is closed: that
 * would end all record locks (fcntl(2), F_SETLK) of this process on another file.
 */
static bool
map_may_close(pid_t pid, uint32_t fd, const struct rsoft_grant_file *file)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
	return stat(path, &st) == 0 && map_is_inode(&st, file);
}

/* Whether the file is in memory, without a name, of the expected inode and size. */
static bool
map_is_valid(int fd, const struct rsoft_grant_file *file, uint64_t *size)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0)
		return false;
	if (fs.f_type != HUGETLBFS_MAGIC && (fs.f_type != TMPFS_MAGIC || st.st_nlink != 0))
		return false;
	/* Else mmap() would round up the size to the page size of the file, and munmap() fail. */
	if (fs.f_type == HUGETLBFS_MAGIC && (uint64_t)st.st_size % (uint64_t)fs.f_bsize != 0)
		return false;
	*size = (uint64_t)st.st_size;
	return map_is_inode(&st, file) && *size != 0 && *size <= MAP_MAX_SIZE;
}

/* Get a descriptor of the target's file, and its size; -1: not possible. */
static int
map_open(const struct rsoft_grants *shared, const struct rsoft_grant_file *file, pid_t pid,
		uint64_t *size)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), fd = -1;
	uint32_t of_target = __atomic_load_n(&file->fd, __ATOMIC_RELAXED);

	if (process < 0)
		return -1;
	/* The target has had its pid since the pidfd was opened. */
	if (map_is_target(shared, pid) && map_may_close(pid, of_target, file))
		fd = (int)syscall(SYS_pidfd_getfd, process, of_target, 0);
	close(process);
	if (fd < 0 || map_is_valid(fd, file, size))
		return fd;
	close(fd);
	return -1;
}

/* Map a file, and close its descriptor; NULL: not possible. */
static uint8_t *
map_mmap(int fd, uint64_t size, bool is_written)
{
	int protection = PROT_READ | (is_written ? PROT_WRITE : 0);
	void *base = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	close(fd);
	if (base == MAP_FAILED)
		return NULL;
	/* mlockall(MCL_FUTURE) would allocate all pages of the file: unlock it without access. */
	if (munlock(base, size) != 0 || madvise(base, size, MADV_DONTFORK) != 0 ||
			mprotect(base, size, protection) != 0) {
		munmap(base, size);
		return NULL;
	}
	/* A file of the target is not a part of a core dump of this process. */
	(void)madvise(base, size, MADV_DONTDUMP);
	return base;
}

/* Map the word that the kernel changes when the target ends. */
static bool
map_alive(struct rwire_maps *maps, const struct rsoft_grants *shared, pid_t pid)
{
	const uint32_t *alive;
	uint64_t size = 0;
	int fd, seals;

	if (maps->alive != NULL)
		return true;
	if (!maps->is_guarded)
		maps->is_guarded = rsoft_guard_get();
	fd = maps->is_guarded ? map_open(shared, &shared->alive, pid, &size) : -1;
	if (fd < 0)
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || size != RSOFT_GRANT_ALIVE_SIZE) {
		close(fd);
		return false;
	}
	maps->forks = map_forks;
	alive = (const uint32_t *)(const void *)map_mmap(fd, size, false);
	__atomic_store_n(&maps->alive, alive, __ATOMIC_RELEASE);
	return alive != NULL;
}

static void
map_unmap(struct rwire_map *map)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(map->base); i++) {
		if (map->base[i] != NULL)
			munmap(map->base[i], map->size);
	}
	memset(map, 0, sizeof(*map));
}

/* Release pages of a file, for MAP_STEPS_MS; true: all are released. */
static bool
map_release(struct rwire_map *map)
{
	uint64_t start = rte_rdtsc(), n;
	unsigned int i;

	do {
		n = RTE_MIN(map->size - map->released, MAP_STEP);
		for (i = 0; i < RTE_DIM(map->base); i++) {
			/* It may fail for hugepages, but they are few. */
			if (map->base[i] != NULL)
				(void)madvise(map->base[i] + map->released, n, MADV_DONTNEED);
		}
		map->released += n;
	} while (map->released < map->size &&
			rte_rdtsc() - start < rte_get_tsc_hz() / 1000 * MAP_STEPS_MS);
	return map->released >= map->size;
}

/* Map a file that a grant named. Other threads may use the entry, unless it is of another file. */
static void
maps_add(struct rwire_maps *maps, const struct rsoft_grants *shared, pid_t pid, uint64_t id,
		bool is_written)
{
	const struct rsoft_grant_file *file = &shared->file[id % RSOFT_GRANT_FILES];
	struct rwire_map *map = &maps->map[id % RSOFT_GRANT_FILES];
	uint8_t *base = NULL;
	uint64_t size;
	int fd;

	if (__atomic_load_n(&file->id, __ATOMIC_ACQUIRE) != id)
		return;
	if (map->id == id && (map->base[is_written] != NULL || map->is_refused[is_written]))
		return;
	fd = map_open(shared, file, pid, &size);
	/* Both mappings of a file have one size. */
	if (fd >= 0 && map->size == 0)
		map->size = size;
	if (fd >= 0)
		base = map_mmap(fd, map->size, is_written);
	__atomic_store_n(&map->is_refused[is_written], base == NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&map->base[is_written], base, __ATOMIC_RELEASE);
	__atomic_store_n(&map->id, id, __ATOMIC_RELEASE);
}

/* Unmap files without grants. While threads copy, only find out whether there are any. */
static void
maps_sweep(struct rwire_maps *maps, const struct rsoft_grants *shared, bool is_used)
{
	uint64_t ended = __atomic_load_n(&shared->files_ended, __ATOMIC_ACQUIRE);
	uint32_t i;

	for (i = 0; i < RSOFT_GRANT_FILES && maps->ended != ended; i++) {
		struct rwire_map *map = &maps->map[i];

		if (map->id == 0 ||
				map->id == __atomic_load_n(&shared->file[i].id, __ATOMIC_RELAXED))
			continue;
		if (is_used || !map_release(map))
			return;
		map_unmap(map);
	}
	maps->ended = ended;
}

void
rwire_maps_update(
		struct rwire_maps *maps, const struct rsoft_grants *shared, pid_t pid, bool is_used)
{
	uint64_t wanted = __atomic_load_n(&maps->wanted, __ATOMIC_RELAXED);
	struct rwire_map *map;
	struct rsoft_gate gate;

	if (maps->alive != NULL && map_is_inherited(maps))
		return;
	maps_sweep(maps, shared, is_used);
	/* A target that has no sentinel now will have one when no thread is inside. A mapping is of
	 * use to threads with restartable sequences only. */
	if (wanted == 0 || maps->is_refused ||
			__atomic_load_n(&shared->sentinel, __ATOMIC_RELAXED) == 0 ||
			!rsoft_gate_begin(&gate))
		return;
	map = &maps->map[wanted / 2 % RSOFT_GRANT_FILES];
	if (map->id != 0 && map->id != wanted / 2) {
		if (is_used || !map_release(map))
			return;
		map_unmap(map);
	}
	__atomic_store_n(&maps->wanted, 0, __ATOMIC_RELAXED);
	if (map_alive(maps, shared, pid))
		maps_add(maps, shared, pid, wanted / 2, wanted % 2 != 0);
	else
		__atomic_store_n(&maps->is_refused, true, __ATOMIC_RELAXED);
}

bool
rwire_maps_release(struct rwire_maps *maps)
{
	uint32_t i;

	for (i = 0; i < RSOFT_GRANT_FILES && !map_is_inherited(maps); i++) {
		if (!map_release(&maps->map[i]))
			return false;
	}
	return true;
}

void
rwire_maps_close(struct rwire_maps *maps)
{
	uint32_t i;

	if (!map_is_inherited(maps)) {
		for (i = 0; i < RSOFT_GRANT_FILES; i++)
			map_unmap(&maps->map[i]);
		if (maps->alive != NULL)
			munmap((void *)(uintptr_t)maps->alive, RSOFT_GRANT_ALIVE_SIZE);
	}
	if (maps->is_guarded)
		rsoft_guard_put();
	memset(maps, 0, sizeof(*maps));
}
