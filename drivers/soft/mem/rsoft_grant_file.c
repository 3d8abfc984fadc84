/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Files of granted memory; see rsoft_grant_file.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "rsoft_grant_file.h"

/* PROCMAP_QUERY of Linux 6.11: the mapping that contains an address. */
struct file_query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t name_size;
	uint32_t build_id_size;
	uint64_t name;
	uint64_t build_id;
};

#define FILE_QUERY     _IOWR('f', 17, struct file_query)
#define FILE_WRITABLE  0x2u
#define FILE_SHARED    0x8u
#define FILE_MAX_PARTS 64    /* mappings of one range */
#define FILE_MAX_FDS   1024u /* descriptors searched, 1 us each, under the lock of grants */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* A file, and the number of its grants. */
static struct file_entry {
	struct rsoft_grant_file file; /* id 0: none */
	uint32_t nb_grants;
} files[RSOFT_GRANT_FILES];
static uint64_t file_ids;

/* Files without a descriptor, by inode number, which are not searched for again for a second. */
static struct file_missing {
	struct rsoft_grant_file file;
	uint64_t at; /* TSC */
} files_missing[RSOFT_GRANT_FILES];

/* Get the mapping of addr; false: none that can be used. */
static bool
file_query(int maps, uintptr_t addr, bool is_written, struct file_query *query)
{
	uint64_t need = FILE_SHARED | (is_written ? FILE_WRITABLE : 0);

	*query = (struct file_query){.size = sizeof(*query), .addr = addr};
	return ioctl(maps, FILE_QUERY, query) == 0 && query->vma_start <= addr &&
			query->inode != 0 && (query->vma_flags & need) == need;
}

/* Find the file of a range, which may have several mappings with consecutive offsets. */
static bool
file_locate(const void *base, uint64_t length, bool is_written, struct rsoft_grant_file *file,
		uint64_t *offset)
{
	uintptr_t addr = (uintptr_t)base, end = addr + length;
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), i;
	struct file_query query;
	bool is_found = false;

	if (maps < 0)
		return false;
	for (i = 0; i < FILE_MAX_PARTS && file_query(maps, addr, is_written, &query); i++) {
		uint64_t at = query.offset + (addr - query.vma_start);
		uint64_t dev = makedev(query.dev_major, query.dev_minor);

		if (i == 0) {
			*offset = at;
			file->dev = dev;
			file->ino = query.inode;
		} else if (file->dev != dev || file->ino != query.inode ||
				at - *offset != addr - (uintptr_t)base) {
			break;
		}
		addr = query.vma_end;
		is_found = addr >= end;
		if (is_found)
			break;
	}
	close(maps);
	return is_found;
}

/* Whether a descriptor has that file, and can be mapped for the access; sets the size. */
static bool
file_is_of(int fd, bool is_written, struct rsoft_grant_file *file)
{
	struct stat st;
	int flags;

	if (fstat(fd, &st) != 0 || st.st_dev != file->dev || st.st_ino != file->ino)
		return false;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY ||
			(is_written && (flags & O_ACCMODE) != O_RDWR))
		return false;
	file->fd = (uint32_t)fd;
	file->size = (uint64_t)st.st_size;
	return true;
}

/* Find a descriptor of this process with that file, among those with the lowest numbers. */
static bool
file_search(bool is_written, struct rsoft_grant_file *file)
{
	struct file_missing *missing = &files_missing[file->ino % RSOFT_GRANT_FILES];
	const struct dirent *entry;
	uint64_t now = rte_rdtsc();
	bool is_found = false;
	unsigned int i;
	DIR *dir;

	/* Any peer can request grants, and there may be many descriptors. */
	if (missing->file.ino == file->ino && missing->file.dev == file->dev &&
			now - missing->at < rte_get_tsc_hz())
		return false;
	dir = opendir("/proc/self/fd");
	if (dir == NULL)
		return false;
	for (i = 0; i < FILE_MAX_FDS && !is_found && (entry = readdir(dir)) != NULL; i++) {
		char *end;
		long fd = strtol(entry->d_name, &end, 10);

		is_found = end != entry->d_name && fd != dirfd(dir) &&
				file_is_of((int)fd, is_written, file);
	}
	closedir(dir);
	if (!is_found) {
		missing->file = *file;
		missing->at = now;
	}
	return is_found;
}

/*
 * The entry of a file that has grants, and had this range when peers mapped it, or a free one;
 * NULL: none is free. A file that has grown has another entry.
 */
static struct file_entry *
file_entry(const struct rsoft_grant_file *file, uint64_t offset, uint64_t length)
{
	struct file_entry *free_entry = NULL;
	uint32_t i;

	for (i = 0; i < RSOFT_GRANT_FILES; i++) {
		if (files[i].nb_grants == 0)
			free_entry = &files[i];
		else if (files[i].file.dev == file->dev && files[i].file.ino == file->ino &&
				offset <= files[i].file.size &&
				length <= files[i].file.size - offset)
			return &files[i];
	}
	return free_entry;
}

const struct rsoft_grant_file *
rsoft_grant_file_get(const void *base, uint64_t length, bool is_written, uint64_t *offset)
{
	struct rsoft_grant_file file = {0};
	struct file_entry *entry;

	if (!file_locate(base, length, is_written, &file, offset))
		return NULL;
	entry = file_entry(&file, *offset, length);
	if (entry == NULL)
		return NULL;
	if (entry->nb_grants != 0) {
		file = entry->file;
		/* The application may have closed the descriptor. */
		if (!file_is_of((int)file.fd, is_written, &file) && !file_search(is_written, &file))
			return NULL;
		/* Peers have mapped the size that the file had. */
		file.size = entry->file.size;
	} else if (!file_search(is_written, &file)) {
		return NULL;
	} else {
		do
			file.id = ++file_ids;
		while (file.id % RSOFT_GRANT_FILES != (uint64_t)(entry - files));
	}
	if (*offset > file.size || length > file.size - *offset)
		return NULL;
	entry->file = file;
	entry->nb_grants++;
	return &entry->file;
}

void
rsoft_grant_file_put(uint64_t id)
{
	files[id % RSOFT_GRANT_FILES].nb_grants--;
}

/* The futex of a robust mutex, in memory that only this process may map writable. */
static pthread_mutex_t *
alive_create(struct rsoft_grant_file *file)
{
	const size_t size = RSOFT_GRANT_ALIVE_SIZE;
	int fd = memfd_create("rmem-alive", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	pthread_mutex_t *mutex = MAP_FAILED;
	pthread_mutexattr_t attr;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (ftruncate(fd, (off_t)size) == 0 && fstat(fd, &st) == 0)
		mutex = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mutex == MAP_FAILED)
		goto close;
	if (fcntl(fd, F_ADD_SEALS,
			    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
		goto unmap;
	pthread_mutexattr_init(&attr);
	if (pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) != 0 ||
			pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
			pthread_mutex_init(mutex, &attr) != 0)
		goto unmap;
	*file = (struct rsoft_grant_file){.id = 1,
			.dev = st.st_dev,
			.ino = st.st_ino,
			.size = size,
			.fd = (uint32_t)fd};
	return mutex;
unmap:
	munmap(mutex, size);
close:
	close(fd);
	return NULL;
}

const struct rsoft_grant_file *
rsoft_grant_file_alive(void)
{
	static struct rsoft_grant_file file;
	static pthread_mutex_t *mutex;
	static pid_t owner;
	int ret;

	/* A child of fork() has the file of its parent. */
	if (owner != getpid()) {
		owner = getpid();
		mutex = alive_create(&file);
	}
	if (mutex == NULL)
		return NULL;
	/* Never unlocked: a thread of this process holds it. */
	ret = pthread_mutex_trylock(mutex);
	if (ret == EOWNERDEAD)
		ret = pthread_mutex_consistent(mutex);
	return ret == 0 || ret == EBUSY ? &file : NULL;
}
