/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Files of another process, opened and mapped by this one; see ribv_table.h. They are found by the
 * process's descriptors, by their paths, or by a mapping that this process has inherited.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rte_common.h>

#include "ribv_table.h"

#define PAGE      UINT64_C(4096)
#define MAX_ADDR  (UINT64_C(1) << 56)
#define MAX_PARTS 65536

/* A mapping of a process, or the part of it that an MR covers. */
struct part {
	uint64_t begin, end; /* addresses */
	uint64_t offset;     /* in the file, of begin */
	struct ribv_owner_file file;
	bool is_shared;
	bool is_writable;
	char name[64];  /* as in /proc/PID/map_files */
	char path[256]; /* or "" */
};

/* Memory of an MR in the owner. */
struct memory {
	uint32_t owner;
	bool is_written;
	uint64_t begin, end; /* whole pages */
	struct part *parts;
	uint32_t nb;
	uint64_t align; /* largest page size of its files */
};

/* An error of access to files of /proc: of a process of another user, or that has ended. */
static int
proc_errno(void)
{
	return errno == EACCES || errno == EPERM ? EPERM : EINVAL;
}

/* Open a file by a path that may name another file, which is not opened; -ENOENT: not possible. */
static int
open_path(const char *path, struct ribv_owner_file file, int flags)
{
	struct stat st;
	int fd;

	/* To open another file may have an effect, as that of a FIFO or a device. */
	if (stat(path, &st) != 0 || st.st_dev != file.dev || st.st_ino != file.ino)
		return -ENOENT;
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == file.dev && st.st_ino == file.ino)
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

int
ribv_owner_open(uint32_t process, struct ribv_owner_file file, int flags)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int fd = -ENOENT;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/fd", process);
	dir = opendir(path);
	if (dir == NULL)
		return -proc_errno();
	while (fd < 0 && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%u/fd/%s", process, entry->d_name);
		fd = open_path(path, file, flags);
	}
	closedir(dir);
	return fd;
}

/* Read a number that the character ends, and step over both; false if there is none. */
static bool
number_read(const char **text, int base, char end, uint64_t *number)
{
	char *rest;

	*number = strtoull(*text, &rest, base);
	if (rest == *text || *rest != end)
		return false;
	*text = rest + 1;
	return true;
}

/* Read a line of /proc/PID/maps, without its newline; false if it has another format. */
static bool
part_read(const char *line, struct part *part)
{
	uint64_t major, minor, ino;
	const char *rights;

	if (!number_read(&line, 16, '-', &part->begin) ||
			!number_read(&line, 16, ' ', &part->end) || strnlen(line, 5) < 5 ||
			line[4] != ' ')
		return false;
	rights = line;
	line += 5;
	if (!number_read(&line, 16, ' ', &part->offset) || !number_read(&line, 16, ':', &major) ||
			!number_read(&line, 16, ' ', &minor) || !number_read(&line, 10, ' ', &ino))
		return false;
	part->file = (struct ribv_owner_file){
			makedev((unsigned int)major, (unsigned int)minor), (ino_t)ino};
	part->is_shared = rights[3] == 's' && ino != 0;
	part->is_writable = rights[1] == 'w';
	snprintf(part->name, sizeof(part->name), "%" PRIx64 "-%" PRIx64, part->begin, part->end);
	snprintf(part->path, sizeof(part->path), "%s", line + strspn(line, " "));
	return true;
}

/* Read the mappings of a process, in their order, until next() does not return 0; or an errno. */
static int
parts_walk(const char *process, int (*next)(const struct part *part, void *arg), void *arg)
{
	struct part part;
	char path[64];
	char *line = NULL;
	size_t size = 0;
	int ret = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%s/maps", process);
	maps = fopen(path, "re");
	if (maps == NULL)
		return proc_errno();
	while (ret == 0 && getline(&line, &size, maps) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (part_read(line, &part))
			ret = next(&part, arg);
	}
	free(line);
	fclose(maps);
	return ret;
}

/* Add a mapping to the memory if it has some of it. */
static int
part_add(const struct part *part, void *arg)
{
	struct memory *memory = arg;
	uint64_t from = memory->nb != 0 ? memory->parts[memory->nb - 1].end : memory->begin;
	struct part *parts;

	if (part->end <= from || part->begin >= memory->end || from >= memory->end)
		return 0;
	/*
	 * Without a gap, and of memory that can be shared. This process may have rights of the file
	 * that the owner does not have.
	 */
	if (part->begin > from || !part->is_shared || memory->nb == MAX_PARTS ||
			(memory->is_written && !part->is_writable))
		return EOPNOTSUPP;
	parts = realloc(memory->parts, (memory->nb + 1) * sizeof(*parts));
	if (parts == NULL)
		return ENOMEM;
	memory->parts = parts;
	parts[memory->nb++] = *part;
	return 0;
}

/* A search among the mappings of this process. */
struct twin {
	const struct part *part;
	uint64_t at; /* address; 0: not found */
};

static int
find_twin(const struct part *part, void *arg)
{
	struct twin *twin = arg;
	uint64_t size = part->end - part->begin;

	if (!part->is_shared || part->file.dev != twin->part->file.dev ||
			part->file.ino != twin->part->file.ino ||
			part->offset > twin->part->offset ||
			twin->part->offset - part->offset > size ||
			twin->part->end - twin->part->begin >
					size - (twin->part->offset - part->offset))
		return 0;
	twin->at = part->begin + (twin->part->offset - part->offset);
	return 1;
}

/* Map a part by a mapping of the same file that this process has; false: it has none. */
static bool
map_twin(const struct part *part, void *to)
{
	struct twin twin = {part, 0};

	(void)parts_walk("self", find_twin, &twin);
	/* A shared mapping of which 0 bytes are moved is duplicated. */
	return twin.at != 0 &&
			mremap((void *)(uintptr_t)twin.at, 0, part->end - part->begin,
					MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

/* Open the file of a part; -1: not possible. */
static int
part_open(const struct memory *memory, const struct part *part)
{
	int flags = memory->is_written ? O_RDWR : O_RDONLY;
	char path[128];
	int fd;

	fd = ribv_owner_open(memory->owner, part->file, flags);
	if (fd < 0 && part->path[0] == '/')
		fd = open_path(part->path, part->file, flags);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%u/map_files/%s", memory->owner, part->name);
		fd = open_path(path, part->file, flags);
	}
	return fd;
}

/* Page size of a file. */
static uint64_t
page_of(int fd)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC
			? (uint64_t)fs.f_bsize
			: PAGE;
}

/* Set the parts' pages: begin and end of the memory are multiples of those of its files. */
static void
memory_align(struct memory *memory, const int *fds)
{
	uint64_t first = page_of(fds[0]), last = page_of(fds[memory->nb - 1]);
	uint32_t i;

	memory->begin = RTE_ALIGN_FLOOR(memory->begin, first);
	memory->end = RTE_ALIGN_CEIL(memory->end, last);
	for (i = 0; i < memory->nb; i++) {
		struct part *part = &memory->parts[i];
		uint64_t begin = RTE_MAX(part->begin, memory->begin);

		part->offset += begin - part->begin;
		part->begin = begin;
		part->end = RTE_MIN(part->end, memory->end);
		memory->align = RTE_MAX(memory->align, page_of(fds[i]));
	}
}

/* Reserve addresses for the memory, at the same offset in the largest page; NULL: none. */
static uint8_t *
memory_reserve(const struct memory *memory)
{
	size_t size = memory->end - memory->begin, more = memory->align;
	uint8_t *base, *at;

	base = mmap(NULL, size + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			0);
	if (base == MAP_FAILED)
		return NULL;
	at = base + ((memory->begin - (uintptr_t)base) & (memory->align - 1));
	if (at != base)
		munmap(base, (size_t)(at - base));
	if (at + size != base + size + more)
		munmap(at + size, (size_t)(base + more - at));
	return at;
}

/* Map a part of a file, or as another mapping of this process without fd; false: not possible. */
static bool
map_part(const struct part *part, int fd, int rights, void *to)
{
	if (fd < 0)
		return map_twin(part, to);
	to = mmap(to, part->end - part->begin, rights, MAP_SHARED | MAP_FIXED, fd,
			(off_t)part->offset);
	return to != MAP_FAILED;
}

/* Map all parts; 0 or an errno. */
static int
memory_map(struct memory *memory, const int *fds, uint8_t **map)
{
	const int rights = PROT_READ | (memory->is_written ? PROT_WRITE : 0);
	uint32_t i;

	memory_align(memory, fds);
	*map = memory_reserve(memory);
	if (*map == NULL)
		return ENOMEM;
	for (i = 0; i < memory->nb; i++) {
		const struct part *part = &memory->parts[i];

		if (!map_part(part, fds[i], rights, *map + (part->begin - memory->begin))) {
			munmap(*map, memory->end - memory->begin);
			return EOPNOTSUPP;
		}
	}
	return 0;
}

/* The same; opens their files. */
static int
memory_open(struct memory *memory, uint8_t **map)
{
	const uint32_t nb = memory->nb;
	int *fds = malloc(nb * sizeof(*fds));
	uint32_t i;
	int ret;

	if (fds == NULL)
		return ENOMEM;
	for (i = 0; i < nb; i++)
		fds[i] = part_open(memory, &memory->parts[i]);
	ret = memory_map(memory, fds, map);
	for (i = 0; i < nb; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	free(fds);
	return ret;
}

int
ribv_owner_map(uint32_t owner, const struct ribv_table_entry *entry, struct ribv_owner_map *map)
{
	struct memory memory = {.owner = owner,
			.is_written = (entry->access & RMEM_ACCESS_LOCAL_WRITE) != 0,
			.begin = RTE_ALIGN_FLOOR(entry->addr, PAGE),
			.end = RTE_ALIGN_CEIL(entry->addr + entry->length, PAGE),
			.align = PAGE};
	char process[16];
	uint8_t *base;
	int ret;

	if (entry->addr == 0 || entry->length == 0 || entry->addr > MAX_ADDR ||
			entry->length > MAX_ADDR)
		return EOPNOTSUPP;
	snprintf(process, sizeof(process), "%u", owner);
	ret = parts_walk(process, part_add, &memory);
	if (ret == 0 && (memory.nb == 0 || memory.parts[memory.nb - 1].end < memory.end))
		ret = EOPNOTSUPP;
	if (ret == 0)
		ret = memory_open(&memory, &base);
	free(memory.parts);
	if (ret != 0)
		return ret;
	map->base = base;
	map->size = memory.end - memory.begin;
	map->addr = base + (entry->addr - memory.begin);
	return 0;
}
