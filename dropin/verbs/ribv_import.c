/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Import of devices, PDs, MRs and device memory by handle.
 *
 * Contexts with the same command file share objects. Within a process, an imported object is
 * another handle of an object of the class, with the same number (ribv_handle.c). Objects of
 * another process, the owner, are foreign: they are found in the table of its command file
 * (ribv_table.h). A foreign PD is a PD of this process's device. A foreign MR is an MR of it, with
 * the keys and the iova of the owner's, and covers the same memory by a mapping of its own
 * (ribv_owner.c). Foreign device memory is imported by the descriptor of the owner's memory.
 *
 * Invariant: while a context of this process has a foreign object, its description of the file
 * (ribv_context::locks) holds a read lock on the byte of the object's handle.
 * Invariant: the foreign MRs of one object share one rmem_mr and one mapping, or one rmem_dm. The
 * last one that is released deregisters and unmaps them. Each import of device memory has an
 * rmem_dm of its own.
 * Invariant: one lock protects all foreign objects.
 * Invariant: an unimported PD keeps its slot until its context is closed, because QPs and other
 * objects created with it refer to the slot.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ribv_table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

static struct ribv_dm *
dm_at(uint32_t slot)
{
	struct ribv_dm *dm = ribv_at(slot, RIBV_DM);

	return dm != NULL && dm->foreign != NULL ? dm : NULL;
}

/* Handle and context of a foreign object in a slot; NULL if there is none. */
static const struct ribv_context *
foreign_at(uint32_t slot, uint32_t *handle)
{
	const struct ribv_pd *pd = pd_at(slot);
	const struct ribv_mr *mr = mr_at(slot);
	const struct ribv_dm *dm = dm_at(slot);

	if (pd != NULL) {
		*handle = pd->handle;
		return ribv_context_of(pd->context);
	}
	if (mr != NULL) {
		*handle = mr->handle;
		return mr->foreign;
	}
	if (dm != NULL)
		*handle = dm->handle;
	return dm != NULL ? dm->foreign : NULL;
}

/* Slot of a foreign object of that file and handle, of a context if it is not NULL; 0: none. */
static uint32_t
find(const struct ribv_context *file, uint32_t handle, const struct ribv_context *context)
{
	const struct ribv_context *own;
	uint32_t i, at;

	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		own = foreign_at(i, &at);
		if (own != NULL && at == handle && own->file_dev == file->file_dev &&
				own->file_ino == file->file_ino &&
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

/* Whether the foreign object in a slot is of the type. */
static bool
is_of(uint32_t slot, enum ribv_type type)
{
	return (mr_at(slot) != NULL) == (type == RIBV_MR) &&
			(dm_at(slot) != NULL) == (type == RIBV_DM);
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
			entry->type == (uint32_t)type && (twin == 0 || is_of(twin, type)))
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

static struct ibv_pd *
foreign_pd(struct ibv_context *context, uint32_t handle)
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

/* Register an MR with the keys of the owner; 0 or an errno. */
static int
mr_register(struct ribv_mr *mr, const struct ribv_table_entry *entry, struct rmem_mr_attr *attr)
{
	int ret;

	attr->length = entry->length;
	attr->requested_key = entry->rkey;
	attr->flags |= RMEM_MR_REQUESTED_KEY;
	ret = rmem_mr_reg_attr(mr->pd->pd, attr, &mr->mr);
	/* A device with another argument keys= derives another lkey. */
	if (ret == 0 && mr->mr->lkey != entry->lkey) {
		(void)rmem_mr_dereg(mr->mr);
		return EOPNOTSUPP;
	}
	return ret != 0 ? ribv_errno(ret) : 0;
}

/* Map the memory of an MR and register it; 0 or an errno. */
static int
mr_map(struct ribv_mr *mr, uint32_t owner, const struct ribv_table_entry *entry)
{
	const bool is_zero_based = (entry->access & RMEM_ACCESS_ZERO_BASED) != 0;
	struct rmem_mr_attr attr = {.iova = is_zero_based ? 0 : entry->iova,
			.socket_id = SOCKET_ID_ANY,
			.access = entry->access &
					~(uint32_t)(RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_HUGETLB),
			.flags = is_zero_based ? 0 : RMEM_MR_IOVA};
	struct ribv_owner_map map;
	int ret = ribv_owner_map(owner, entry, &map);

	if (ret != 0)
		return ret;
	attr.addr = map.addr;
	mr->map = map.base;
	mr->map_size = map.size;
	ret = mr_register(mr, entry, &attr);
	if (ret != 0)
		munmap(map.base, map.size);
	return ret;
}

/* Allocate device memory of the owner's memory that an entry describes; 0 or an errno. */
static int
dm_import(const struct ribv_context *own, const struct ribv_table_entry *entry, struct rmem_dm **dm)
{
	const struct ribv_owner_file file = {(dev_t)entry->iova, (ino_t)entry->addr};
	struct rmem_dm_conf conf = {.length = entry->length, .flags = RMEM_DM_FD};
	int ret;

	if (entry->addr == 0)
		return EOPNOTSUPP;
	conf.fd = ribv_owner_open(own->owner, file, O_RDWR);
	if (conf.fd < 0)
		return conf.fd == -ENOENT ? EOPNOTSUPP : -conf.fd;
	ret = rmem_dm_alloc(ribv_devs[own->dev], &conf, dm);
	close(conf.fd);
	return ret != 0 ? ribv_errno(ret) : 0;
}

/* Import the device memory of an MR, which the MR's lock keeps, and register the MR. */
static int
mr_import_dm(struct ribv_mr *mr, const struct ribv_context *own,
		const struct ribv_table_entry *entry)
{
	struct rmem_mr_ext ext = {.dm_offset = entry->addr};
	struct rmem_mr_attr attr = {.access = entry->access, .ext = &ext};
	struct ribv_table_entry of_dm;
	int ret;

	if (entry->dm >= RIBV_MAX_OBJS ||
			pread(own->locks, &of_dm, sizeof(of_dm), ribv_table_offset(entry->dm)) !=
					(ssize_t)sizeof(of_dm) ||
			of_dm.type != RIBV_DM)
		return ENOENT;
	ret = dm_import(own, &of_dm, &ext.dm);
	if (ret != 0)
		return ret;
	ret = mr_register(mr, entry, &attr);
	if (ret != 0)
		(void)rmem_dm_free(ext.dm);
	else
		mr->memory = ext.dm;
	return ret;
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
		mr->memory = twin->memory;
	} else if (entry.dm != 0) {
		ret = mr_import_dm(mr, own, &entry);
	} else {
		ret = mr_map(mr, own->owner, &entry);
	}
	if (ret != 0)
		release(own, handle);
	return ret;
}

static struct ibv_mr *
foreign_mr(struct ibv_pd *pd, uint32_t handle)
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

static struct ibv_dm *
foreign_dm(struct ibv_context *context, uint32_t handle)
{
	const struct ribv_context *own = ribv_context_of(context);
	struct ribv_table_entry entry;
	struct rmem_dm *memory = NULL;
	struct ibv_dm *dm = NULL;
	int ret;

	pthread_mutex_lock(&lock);
	ret = acquire(own, handle, RIBV_DM, &entry);
	if (ret == 0) {
		ret = dm_import(own, &entry, &memory);
		if (ret == 0) {
			dm = ribv_dm_handle(context, memory, handle, own);
			ret = dm == NULL ? errno : 0;
			if (ret != 0)
				(void)rmem_dm_free(memory);
		}
		if (ret != 0)
			release(own, handle);
	}
	pthread_mutex_unlock(&lock);
	return ret != 0 ? ribv_fail(ret) : dm;
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

static void
foreign_pd_end(struct ribv_pd *pd)
{
	pthread_mutex_lock(&lock);
	set_type(pd, RIBV_UNIMPORTED);
	pd_free(pd->pd);
	pthread_mutex_unlock(&lock);
}

/* Release a foreign MR; false: a window is bound to it. */
static bool
mr_end(struct ribv_mr *mr)
{
	const struct ribv_context *own = mr->foreign;

	set_type(mr, RIBV_NEW);
	if (find(own, mr->handle, NULL) == 0) {
		if (rmem_mr_dereg(mr->mr) != 0) {
			set_type(mr, RIBV_MR);
			return false;
		}
		if (mr->memory != NULL)
			(void)rmem_dm_free(mr->memory);
		else
			munmap(mr->map, mr->map_size);
	}
	release(own, mr->handle);
	ribv_leave(mr);
	return true;
}

static void
foreign_mr_end(struct ribv_mr *mr)
{
	pthread_mutex_lock(&lock);
	(void)mr_end(mr);
	pthread_mutex_unlock(&lock);
}

/* Release foreign device memory; false: an MR of it is registered. */
static bool
dm_end(struct ribv_dm *dm)
{
	const struct ribv_context *own = dm->foreign;
	uint32_t handle = dm->handle;

	if (rmem_dm_free(dm->dm) != 0)
		return false;
	ribv_leave(dm);
	release(own, handle);
	return true;
}

static void
foreign_dm_end(struct ribv_dm *dm)
{
	pthread_mutex_lock(&lock);
	(void)dm_end(dm);
	pthread_mutex_unlock(&lock);
}

/* Release the objects of a context that is closed. */
static void
close_context(struct ibv_context *context)
{
	struct ribv_mr *mr;
	struct ribv_pd *pd;
	struct ribv_dm *dm;
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		mr = mr_at(i);
		dm = dm_at(i);
		/* In use: the slot is lost, because other objects refer to it. */
		if (mr != NULL && mr->foreign == ribv_context_of(context) && !mr_end(mr))
			set_type(mr, RIBV_NEW);
		if (dm != NULL && dm->foreign == ribv_context_of(context) && !dm_end(dm))
			set_type(dm, RIBV_NEW);
	}
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		pd = pd_at(i);
		if (pd == NULL || pd->context != context)
			continue;
		set_type(pd, RIBV_UNIMPORTED);
		pd_free(pd->pd);
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
	fd = ribv_owner_open(owner, (struct ribv_owner_file){file->st_dev, file->st_ino}, O_RDONLY);
	if (fd < 0)
		return fd == -EPERM ? EPERM : EINVAL;
	close(fd);
	return 0;
}

static struct ibv_context *
foreign_device(int cmd_fd)
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
		return ribv_fail(errno == EACCES || errno == EPERM ? EPERM : EINVAL);
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

/* Whether a descriptor refers to a command file, of any process. */
static bool
is_file(int fd)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name) - 1) > 0 &&
			strncmp(name, "/memfd:" RIBV_FILE_NAME " ",
					strlen("/memfd:" RIBV_FILE_NAME " ")) == 0;
}

struct ibv_context *
ibv_import_device(int cmd_fd)
{
	const struct ribv_context *context;
	struct stat st;
	uint32_t i;

	if (fstat(cmd_fd, &st) != 0)
		return ribv_fail(EINVAL);
	/* The command file of a real device is a character device. */
	if (S_ISCHR(st.st_mode)) {
		__atomic_store_n(&ribv_has_real, true, __ATOMIC_RELAXED);
		return RIBV_NEXT(ibv_import_device)(cmd_fd);
	}
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		context = ribv_at(i, RIBV_CONTEXT);
		if (context != NULL && context->owner == 0 && context->file_dev == st.st_dev &&
				context->file_ino == st.st_ino)
			return ribv_context_new(context->dev, context, cmd_fd);
	}
	return is_file(cmd_fd) ? foreign_device(cmd_fd) : ribv_fail(EINVAL);
}

/* Whether objects of one context can be imported into the other. */
static bool
is_shared(const struct ibv_context *a, const struct ibv_context *b)
{
	const struct ribv_context *own = ribv_context_of(a), *other = ribv_context_of(b);

	return own->file_dev == other->file_dev && own->file_ino == other->file_ino;
}

/* Whether the context was imported from another process. */
static bool
is_foreign(const struct ibv_context *context)
{
	return ribv_is_context(context) && ribv_context_of(context)->owner != 0;
}

struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	const struct ribv_pd *from = ribv_at(handle, RIBV_PD);
	struct ribv_pd *pd;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_import_pd)(context, handle);
	if (is_foreign(context))
		return foreign_pd(context, handle);
	if (!ribv_is_context(context) || from == NULL || from->pd == NULL || from->parent != NULL ||
			!is_shared(from->context, context))
		return ribv_fail(ENOENT);
	pd = ribv_new();
	if (pd == NULL)
		return NULL;
	pd->ibv.context = pd->context = context;
	pd->ibv.handle = pd->handle = from->handle;
	pd->pd = from->pd;
	pd->is_imported = true;
	ribv_handle_imported();
	ribv_enter(pd, RIBV_PD);
	return &pd->ibv;
}

void
ibv_unimport_pd(struct ibv_pd *pd)
{
	const struct ribv_pd *own = (const struct ribv_pd *)pd;

	if (ribv_is_real(pd))
		RIBV_NEXT(ibv_unimport_pd)(pd);
	else if (ribv_slot(pd, RIBV_PD) != 0 && own->is_foreign)
		foreign_pd_end((struct ribv_pd *)pd);
	else if (ribv_slot(pd, RIBV_PD) != 0 && (own->is_imported || own->pd == NULL))
		__atomic_store_n(&ribv_types[ribv_slot(pd, RIBV_PD)], RIBV_UNIMPORTED,
				__ATOMIC_RELEASE);
}

struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	const struct ribv_mr *from = ribv_at(handle, RIBV_MR);
	struct ribv_mr *mr;

	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_import_mr)(pd, handle);
	if (ribv_is_pd(pd) && is_foreign(pd->context))
		return foreign_mr(pd, handle);
	if (!ribv_is_pd(pd) || from == NULL || from->mr == NULL ||
			!is_shared(from->pd->context, pd->context))
		return ribv_fail(ENOENT);
	mr = ribv_new();
	if (mr == NULL)
		return NULL;
	mr->pd = (struct ribv_pd *)pd;
	mr->mr = from->mr;
	mr->dm = from->dm;
	mr->dm_offset = from->dm_offset;
	mr->is_imported = true;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.length = from->ibv.length;
	mr->ibv.lkey = mr->mr->lkey;
	mr->ibv.rkey = mr->mr->rkey;
	mr->ibv.handle = mr->handle = from->handle;
	ribv_handle_imported();
	ribv_enter(mr, RIBV_MR);
	return &mr->ibv;
}

void
ibv_unimport_mr(struct ibv_mr *mr)
{
	const struct ribv_mr *own = (const struct ribv_mr *)mr;

	if (ribv_is_real(mr))
		RIBV_NEXT(ibv_unimport_mr)(mr);
	else if (ribv_slot(mr, RIBV_MR) != 0 && own->foreign != NULL)
		foreign_mr_end((struct ribv_mr *)mr);
	else if (ribv_slot(mr, RIBV_MR) != 0 && (own->is_imported || own->mr == NULL))
		ribv_leave(mr);
}

struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	const struct ribv_dm *from = ribv_at(handle, RIBV_DM);
	struct ibv_dm *dm;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_import_dm)(context, handle);
	if (is_foreign(context))
		return foreign_dm(context, handle);
	if (!ribv_is_context(context) || from == NULL || from->dm == NULL ||
			!is_shared(from->context, context))
		return ribv_fail(ENOENT);
	dm = ribv_dm_handle(context, from->dm, from->handle, NULL);
	if (dm != NULL)
		ribv_handle_imported();
	return dm;
}

void
ibv_unimport_dm(struct ibv_dm *dm)
{
	const struct ribv_dm *own = (const struct ribv_dm *)dm;

	if (ribv_is_real(dm))
		RIBV_NEXT(ibv_unimport_dm)(dm);
	else if (ribv_slot(dm, RIBV_DM) != 0 && own->foreign != NULL)
		foreign_dm_end((struct ribv_dm *)dm);
	else if (ribv_slot(dm, RIBV_DM) != 0 && (own->is_imported || own->dm == NULL))
		ribv_leave(dm);
}
