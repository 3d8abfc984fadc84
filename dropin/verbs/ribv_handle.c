/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Command files, and the handles of imported objects (ribv_import.c).
 *
 * The command file of a context is a memfd; a duplicate of its descriptor refers to the same file.
 *
 * Invariant: all handles of an object have the same number and the same pointer to the object of
 * the class. The call that destroys it sets this pointer in all other handles to NULL; these can
 * then only be unimported, as with a device of the kernel.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ribv_table.h"

static bool has_imports; /* an object was imported; atomic */
static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Give the file its size and head. It remains empty if the process must not have files of that
 * size (a larger one would raise SIGXFSZ): no other process can import then.
 */
static void
file_fill(int fd, uint32_t dev)
{
	struct ribv_table_head head = {.magic = RIBV_TABLE_MAGIC, .owner = (uint32_t)getpid()};
	struct rlimit limit;

	snprintf(head.device, sizeof(head.device), "%s", ribv_device(dev)->name);
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= sizeof(struct ribv_table) &&
			ftruncate(fd, sizeof(struct ribv_table)) == 0 &&
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
			pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		errno = EIO;
}

int
ribv_handle_file_open(struct ribv_context *context)
{
	int fd = memfd_create(RIBV_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return EIO;
	}
	file_fill(fd, context->dev);
	context->cmd_fd = fd;
	context->file_dev = st.st_dev;
	context->file_ino = st.st_ino;
	return 0;
}

/* Map the table of a context; NULL: not possible, or another process owns it. */
static struct ribv_table *
table_map(struct ribv_context *context)
{
	struct ribv_table *table;
	struct stat st;

	pthread_mutex_lock(&map_lock);
	table = context->table;
	if (table == NULL && context->owner == 0 && fstat(context->cmd_fd, &st) == 0 &&
			st.st_dev == context->file_dev && st.st_ino == context->file_ino &&
			st.st_size == sizeof(*table)) {
		table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED,
				context->cmd_fd, 0);
		if (table == MAP_FAILED)
			table = NULL;
		__atomic_store_n(&context->table, table, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&map_lock);
	return table;
}

/*
 * Table of a context; NULL: none. The program may have closed the context. It is mapped when the
 * first PD is allocated, or later if objects have handles in several contexts.
 */
static struct ribv_table *
table_of(const struct ibv_context *context, bool is_first)
{
	struct ribv_table *table;

	if (!ribv_is_context(context))
		return NULL;
	table = __atomic_load_n(&ribv_context_of(context)->table, __ATOMIC_ACQUIRE);
	return table == NULL && (is_first || __atomic_load_n(&has_imports, __ATOMIC_RELAXED))
			? table_map(ribv_context_of(context))
			: table;
}

void
ribv_handle_publish_pd(const struct ribv_pd *pd)
{
	struct ribv_table *table = table_of(pd->context, true);

	if (table != NULL)
		__atomic_store_n(&table->entries[pd->handle].type, RIBV_PD, __ATOMIC_RELEASE);
}

void
ribv_handle_publish_mr(const struct ribv_mr *own)
{
	struct ribv_table *table = table_of(own->pd->context, false);
	const struct rmem_mr *mr = own->mr;
	struct ribv_table_entry *entry;

	if (table == NULL)
		return;
	entry = &table->entries[own->handle];
	entry->pd = own->pd->parent != NULL ? own->pd->parent->handle : own->pd->handle;
	entry->lkey = mr->lkey;
	entry->rkey = mr->rkey;
	entry->dm = own->dm;
	entry->addr = own->dm != 0 ? own->dm_offset : (uintptr_t)mr->addr;
	entry->length = mr->length;
	entry->iova = mr->iova;
	entry->access = mr->access;
	__atomic_store_n(&entry->type, RIBV_MR, __ATOMIC_RELEASE);
}

void
ribv_handle_publish_dm(const struct ribv_dm *dm)
{
	struct ribv_table *table = table_of(dm->context, true);
	struct ribv_table_entry *entry;
	struct stat st = {0};
	int fd;

	if (table == NULL)
		return;
	/* Without a file, a zero address. */
	if (rmem_dm_export_fd(dm->dm, &fd) == 0) {
		if (fstat(fd, &st) != 0)
			st.st_ino = 0;
		close(fd);
	}
	entry = &table->entries[dm->handle];
	entry->addr = st.st_ino;
	entry->iova = st.st_dev;
	entry->length = dm->dm->length;
	__atomic_store_n(&entry->type, RIBV_DM, __ATOMIC_RELEASE);
}

/* Whether another process holds a lock on the byte of a handle. */
static bool
is_locked(int fd, uint32_t handle)
{
	struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = handle, .l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int
ribv_handle_withdraw(const struct ibv_context *context, uint32_t handle)
{
	struct ribv_table *table = table_of(context, false);
	uint32_t type;

	if (table == NULL)
		return 0;
	type = __atomic_exchange_n(&table->entries[handle].type, RIBV_FREE, __ATOMIC_SEQ_CST);
	if (type == RIBV_FREE || !__atomic_load_n(&table->head.is_imported, __ATOMIC_SEQ_CST) ||
			!is_locked(context->cmd_fd, handle))
		return 0;
	__atomic_store_n(&table->entries[handle].type, type, __ATOMIC_RELEASE);
	return EBUSY;
}

void
ribv_handle_imported(void)
{
	__atomic_store_n(&has_imports, true, __ATOMIC_RELAXED);
}

/* Next object of the type after *i, other than `one`; NULL: none, as always without imports. */
static void *
next_other(uint32_t *i, enum ribv_type type, const void *one)
{
	void *obj;

	while (__atomic_load_n(&has_imports, __ATOMIC_RELAXED) && ++*i < RIBV_MAX_OBJS) {
		obj = ribv_at(*i, type);
		if (obj != NULL && obj != one)
			return obj;
	}
	return NULL;
}

void
ribv_handle_free(struct ibv_context *context)
{
	struct ribv_context *own = ribv_context_of(context);
	struct ribv_pd *pd;
	uint32_t i = 0;

	if (own->release != NULL)
		own->release(context);
	if (own->table != NULL)
		munmap(own->table, sizeof(*own->table));
	own->table = NULL;

	while ((pd = next_other(&i, RIBV_UNIMPORTED, NULL)) != NULL) {
		if (pd->context == context)
			ribv_leave(pd);
	}
}

bool
ribv_handle_pd_has_parents(const struct ribv_pd *pd)
{
	const struct ribv_pd *other;
	uint32_t i = 0;

	if (__atomic_load_n(&pd->refs, __ATOMIC_ACQUIRE) != 0)
		return true;
	while ((other = next_other(&i, RIBV_PD, pd)) != NULL) {
		if (other->handle == pd->handle && other->pd == pd->pd &&
				__atomic_load_n(&other->refs, __ATOMIC_ACQUIRE) != 0)
			return true;
	}
	return false;
}

void
ribv_handle_pd_ended(const struct ribv_pd *ended)
{
	struct ribv_pd *pd;
	uint32_t i = 0;

	while ((pd = next_other(&i, RIBV_PD, ended)) != NULL) {
		if (pd->handle == ended->handle && pd->pd == ended->pd)
			pd->pd = NULL;
	}
}

void
ribv_handle_mr_ended(const struct ribv_mr *ended)
{
	struct ribv_mr *mr;
	uint32_t i = 0;

	while ((mr = next_other(&i, RIBV_MR, ended)) != NULL) {
		if (mr->handle == ended->handle && mr->mr == ended->mr)
			mr->mr = NULL;
	}
}

void
ribv_handle_dm_ended(const struct ribv_dm *ended)
{
	struct ribv_dm *dm;
	uint32_t i = 0;

	while ((dm = next_other(&i, RIBV_DM, ended)) != NULL) {
		if (dm->handle == ended->handle && dm->dm == ended->dm)
			dm->dm = NULL;
	}
}
