/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Import of objects of another process, the owner, by the table in its command file (ribv_table.h).
 *
 * A foreign PD is a PD of this process's device. A foreign MR is an MR of it, with the keys and the
 * iova of the owner's, and covers the same memory by a mapping of its own.
 *
 * Invariant: while a context of this process has a foreign object, its description of the file
 * (ribv_context::locks) holds a read lock on the byte of the object's handle.
 * Invariant: the foreign MRs of one object share one rmem_mr and one mapping. The last one that is
 * released deregisters and unmaps them.
 * Invariant: one lock protects all of it.
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

/* A file that is in memory of the owner. */
struct file {
	dev_t dev;
	ino_t ino;
};

/* A mapping of a process, or the part of it that an MR covers. */
struct part {
	uint64_t begin, end; /* addresses */
	uint64_t offset;     /* in the file, of begin */
	struct file file;
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* An error of access to files of /proc: of a process of another user, or that has ended. */
static int
proc_errno(void)
{
	return errno == EACCES || errno == EPERM ? EPERM : EINVAL;
}

/* Open a file by a path that may name another file, which is not opened; -ENOENT: not possible. */
static int
open_path(const char *path, struct file file, int flags)
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

/*
 * Find a descriptor of a process that refers to a file, and open the file by it; return a
 * descriptor, or minus an errno.
 */
static int
open_of(uint32_t process, struct file file, int flags)
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
	part->file = (struct file){makedev((unsigned int)major, (unsigned int)minor), (ino_t)ino};
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

	fd = open_of(memory->owner, part->file, flags);
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

/* Find and map the memory of an entry; 0 or an errno. */
static int
memory_find(struct memory *memory, const struct ribv_table_entry *entry, uint8_t **map)
{
	char process[16];
	int ret;

	if (entry->addr == 0 || entry->length == 0 || entry->addr > MAX_ADDR ||
			entry->length > MAX_ADDR)
		return EOPNOTSUPP;
	memory->begin = RTE_ALIGN_FLOOR(entry->addr, PAGE);
	memory->end = RTE_ALIGN_CEIL(entry->addr + entry->length, PAGE);
	memory->align = PAGE;
	memory->is_written = (entry->access & RMEM_ACCESS_LOCAL_WRITE) != 0;
	snprintf(process, sizeof(process), "%u", memory->owner);
	ret = parts_walk(process, part_add, memory);
	if (ret == 0 && (memory->nb == 0 || memory->parts[memory->nb - 1].end < memory->end))
		ret = EOPNOTSUPP;
	if (ret == 0)
		ret = memory_open(memory, map);
	free(memory->parts);
	return ret;
}

/* A foreign PD in a slot, also an unimported one; NULL if there is none. */
static struct ribv_pd *
pd_at(uint32_t slot)
{
	struct ribv_pd *pd = ribv_at(slot, RIBV_PD);

	if (pd == NULL)
		pd = ribv_at(slot, RIBV_UNIMPORTED);
	return pd != NULL && pd->is_foreign ? pd : NULL;
}

static struct ribv_mr *
mr_at(uint32_t slot)
{
	struct ribv_mr *mr = ribv_at(slot, RIBV_MR);

	return mr != NULL && mr->foreign != NULL ? mr : NULL;
}

/* Slot of a foreign object of that file and handle, of a context if it is not NULL; 0: none. */
static uint32_t
find(const struct ribv_context *file, uint32_t handle, const struct ribv_context *context)
{
	const struct ribv_context *own;
	const struct ribv_pd *pd;
	const struct ribv_mr *mr;
	uint32_t i;

	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		pd = pd_at(i);
		mr = mr_at(i);
		if ((pd == NULL || pd->handle != handle) && (mr == NULL || mr->handle != handle))
			continue;
		own = mr != NULL ? mr->foreign : ribv_context_of(pd->context);
		if (own->file_dev == file->file_dev && own->file_ino == file->file_ino &&
				(context == NULL || own == context))
			return i;
	}
	return 0;
}

/* Lock or unlock the byte of a handle: F_RDLCK, F_UNLCK; 0 or an errno. */
static int
set_lock(const struct ribv_context *context, uint32_t handle, short type)
{
	struct flock own = {.l_type = type, .l_whence = SEEK_SET, .l_start = handle, .l_len = 1};

	return fcntl(context->locks, F_OFD_SETLK, &own) == 0 ? 0 : errno;
}

/* Unlock the byte of a handle unless a further object of the context has it. */
static void
release(const struct ribv_context *context, uint32_t handle)
{
	if (find(context, handle, context) == 0)
		(void)set_lock(context, handle, F_UNLCK);
}

/*
 * Lock the byte of a handle and read its entry; 0 or an errno. The owner may have changed the type
 * of an object that this process has: a handle is of one type.
 */
static int
acquire(const struct ribv_context *context, uint32_t handle, enum ribv_type type,
		struct ribv_table_entry *entry)
{
	const off_t at = ribv_table_offset(handle);
	uint32_t first = RIBV_FREE, twin;
	int ret;

	if (handle >= RIBV_MAX_OBJS)
		return ENOENT;
	ret = set_lock(context, handle, F_RDLCK);
	if (ret != 0)
		return ret;
	twin = find(context, handle, NULL);
	/* The type is read first, since the owner stores it last. */
	if (pread(context->locks, &first, sizeof(first), at) == (ssize_t)sizeof(first) &&
			first == (uint32_t)type &&
			pread(context->locks, entry, sizeof(*entry), at) ==
					(ssize_t)sizeof(*entry) &&
			entry->type == (uint32_t)type &&
			(twin == 0 || (mr_at(twin) != NULL) == (type == RIBV_MR)))
		return 0;
	release(context, handle);
	return ENOENT;
}

static int
import_pd(struct ribv_pd *pd, const struct ribv_context *own, uint32_t handle)
{
	struct ribv_table_entry entry;
	uint32_t twin;
	int ret;

	ret = acquire(own, handle, RIBV_PD, &entry);
	if (ret != 0)
		return ret;
	twin = find(own, handle, NULL);
	if (twin != 0)
		pd->pd = pd_at(twin)->pd;
	else
		ret = rmem_pd_alloc(ribv_devs[own->dev], &pd->pd);
	if (ret != 0)
		release(own, handle);
	return ret != 0 ? ribv_errno(ret) : 0;
}

struct ibv_pd *
ribv_foreign_pd(struct ibv_context *context, uint32_t handle)
{
	struct ribv_pd *pd = ribv_new();
	int ret;

	if (pd == NULL)
		return NULL;
	pthread_mutex_lock(&lock);
	ret = import_pd(pd, ribv_context_of(context), handle);
	if (ret == 0) {
		pd->ibv.context = pd->context = context;
		pd->ibv.handle = pd->handle = handle;
		pd->is_imported = pd->is_foreign = true;
		ribv_handle_imported();
		ribv_enter(pd, RIBV_PD);
	}
	pthread_mutex_unlock(&lock);
	if (ret == 0)
		return &pd->ibv;
	ribv_leave(pd);
	return ribv_fail(ret);
}

/* Map the memory of an MR and register it with the keys of the owner; 0 or an errno. */
static int
mr_register(struct ribv_mr *mr, uint32_t owner, const struct ribv_table_entry *entry)
{
	const bool is_zero_based = (entry->access & RMEM_ACCESS_ZERO_BASED) != 0;
	struct rmem_mr_attr attr = {.length = entry->length,
			.iova = is_zero_based ? 0 : entry->iova,
			.socket_id = SOCKET_ID_ANY,
			.access = entry->access &
					~(uint32_t)(RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_HUGETLB),
			.requested_key = entry->rkey,
			.flags = RMEM_MR_REQUESTED_KEY | (is_zero_based ? 0 : RMEM_MR_IOVA)};
	struct memory memory = {.owner = owner};
	uint8_t *map;
	int ret;

	ret = memory_find(&memory, entry, &map);
	if (ret != 0)
		return ret;
	attr.addr = map + (entry->addr - memory.begin);
	ret = rmem_mr_reg_attr(mr->pd->pd, &attr, &mr->mr);
	/* A device with another argument keys= derives another lkey. */
	if (ret == 0 && mr->mr->lkey != entry->lkey) {
		(void)rmem_mr_dereg(mr->mr);
		ret = -EOPNOTSUPP;
	}
	mr->map = map;
	mr->map_size = memory.end - memory.begin;
	if (ret != 0)
		munmap(map, mr->map_size);
	return ret != 0 ? ribv_errno(ret) : 0;
}

static int
import_mr(struct ribv_mr *mr, const struct ribv_context *own, uint32_t handle)
{
	struct ribv_table_entry entry;
	const struct ribv_mr *twin;
	int ret;

	ret = acquire(own, handle, RIBV_MR, &entry);
	if (ret != 0)
		return ret;
	twin = mr_at(find(own, handle, NULL));
	if (entry.pd != mr->pd->handle || !mr->pd->is_foreign) {
		ret = ENOENT;
	} else if (twin != NULL) {
		mr->mr = twin->mr;
		mr->map = twin->map;
		mr->map_size = twin->map_size;
	} else {
		ret = mr_register(mr, own->owner, &entry);
	}
	if (ret != 0)
		release(own, handle);
	return ret;
}

struct ibv_mr *
ribv_foreign_mr(struct ibv_pd *pd, uint32_t handle)
{
	const struct ribv_context *own = ribv_context_of(pd->context);
	struct ribv_mr *mr = ribv_new();
	int ret;

	if (mr == NULL)
		return NULL;
	mr->pd = (struct ribv_pd *)pd;
	pthread_mutex_lock(&lock);
	ret = import_mr(mr, own, handle);
	if (ret == 0) {
		mr->foreign = own;
		mr->is_imported = true;
		mr->ibv.context = pd->context;
		mr->ibv.pd = pd;
		mr->ibv.length = mr->mr->length;
		mr->ibv.lkey = mr->mr->lkey;
		mr->ibv.rkey = mr->mr->rkey;
		mr->ibv.handle = mr->handle = handle;
		ribv_handle_imported();
		ribv_enter(mr, RIBV_MR);
	}
	pthread_mutex_unlock(&lock);
	if (ret == 0)
		return &mr->ibv;
	ribv_leave(mr);
	return ribv_fail(ret);
}

int
ribv_foreign_dm(const struct ibv_context *context, uint32_t handle)
{
	const struct ribv_context *own = ribv_context_of(context);
	struct ribv_table_entry entry;
	int ret;

	pthread_mutex_lock(&lock);
	ret = acquire(own, handle, RIBV_DM, &entry);
	if (ret == 0)
		release(own, handle);
	pthread_mutex_unlock(&lock);
	return ret != 0 ? ret : EOPNOTSUPP;
}

/* Whether a PD of the class has a handle, or one of its handles has parent domains. */
static bool
is_pd_used(const struct rmem_pd *base)
{
	const struct ribv_pd *pd;
	uint32_t i;

	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		pd = pd_at(i);
		if (pd != NULL && pd->pd == base &&
				(ribv_at(i, RIBV_PD) != NULL ||
						__atomic_load_n(&pd->refs, __ATOMIC_ACQUIRE) != 0))
			return true;
	}
	return false;
}

/* Free a PD of the class, and the slots of its handles, if it has no user. */
static void
pd_free(struct rmem_pd *base)
{
	struct ribv_pd *pd;
	uint32_t i, handle;

	if (is_pd_used(base) || rmem_pd_dealloc(base) != 0)
		return;
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		pd = pd_at(i);
		if (pd == NULL || pd->pd != base)
			continue;
		handle = pd->handle;
		ribv_leave(pd);
		release(ribv_context_of(pd->context), handle);
	}
}

static void
set_type(const void *obj, enum ribv_type type)
{
	__atomic_store_n(&ribv_types[((uintptr_t)obj - ribv_objs) / RIBV_SLOT], (uint8_t)type,
			__ATOMIC_RELEASE);
}

void
ribv_foreign_pd_end(struct ribv_pd *pd)
{
	pthread_mutex_lock(&lock);
	set_type(pd, RIBV_UNIMPORTED);
	pd_free(pd->pd);
	pthread_mutex_unlock(&lock);
}

/* Release a foreign MR, unless a window is bound to it. */
static void
mr_end(struct ribv_mr *mr)
{
	const struct ribv_context *own = mr->foreign;

	set_type(mr, RIBV_NEW);
	if (find(own, mr->handle, NULL) == 0) {
		if (rmem_mr_dereg(mr->mr) != 0) {
			set_type(mr, RIBV_MR);
			return;
		}
		munmap(mr->map, mr->map_size);
	}
	release(own, mr->handle);
	ribv_leave(mr);
}

void
ribv_foreign_mr_end(struct ribv_mr *mr)
{
	pthread_mutex_lock(&lock);
	mr_end(mr);
	pthread_mutex_unlock(&lock);
}

/* Release the objects of a context that is closed. */
static void
close_context(struct ibv_context *context)
{
	struct ribv_mr *mr;
	struct ribv_pd *pd;
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		mr = mr_at(i);
		if (mr != NULL && mr->foreign == ribv_context_of(context))
			mr_end(mr);
	}
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		pd = pd_at(i);
		if (pd == NULL || pd->context != context)
			continue;
		set_type(pd, RIBV_UNIMPORTED);
		pd_free(pd->pd);
		/* In use: the slot is lost, because other objects refer to it. */
		if (pd_at(i) == pd)
			set_type(pd, RIBV_NEW);
	}
	pthread_mutex_unlock(&lock);
	close(ribv_context_of(context)->locks);
}

/* Check that a process other than this one has the file; 0 or an errno. */
static int
owner_check(uint32_t owner, const struct stat *file)
{
	int fd;

	/* No context of it has the file: closed, or the owner is of another PID namespace. */
	if (owner == (uint32_t)getpid())
		return EINVAL;
	fd = open_of(owner, (struct file){file->st_dev, file->st_ino}, O_RDONLY);
	if (fd < 0)
		return fd == -EPERM ? EPERM : EINVAL;
	close(fd);
	return 0;
}

struct ibv_context *
ribv_foreign_device(int cmd_fd)
{
	struct ribv_context from = {.cmd_fd = -1, .release = close_context};
	struct ribv_table_head head;
	struct ibv_device *device = NULL;
	struct ibv_context *context;
	const uint32_t one = 1;
	struct stat st;
	char path[64];
	uint32_t i;
	int ret;

	/* A description of its own: locks of one description do not conflict. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", cmd_fd);
	from.locks = open(path, O_RDWR | O_CLOEXEC);
	if (from.locks < 0 || fstat(from.locks, &st) != 0)
		return ribv_fail(proc_errno());
	if (pread(from.locks, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
			head.magic != RIBV_TABLE_MAGIC) {
		close(from.locks);
		return ribv_fail(EOPNOTSUPP);
	}
	from.file_dev = st.st_dev;
	from.file_ino = st.st_ino;
	from.owner = head.owner;
	ret = owner_check(head.owner, &st);
	for (i = 0; ret == 0 && (device = ribv_device(i)) != NULL; i++) {
		if (strncmp(device->name, head.device, sizeof(head.device)) == 0)
			break;
	}
	context = NULL;
	if (ret != 0)
		errno = ret;
	else if (device == NULL)
		errno = EOPNOTSUPP;
	else if (pwrite(from.locks, &one, sizeof(one),
				 offsetof(struct ribv_table_head, is_imported)) == sizeof(one))
		context = ribv_context_new(i, &from, cmd_fd);
	if (context == NULL)
		close(from.locks);
	return context;
}
