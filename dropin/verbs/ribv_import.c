/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Import of devices, PDs, MRs and device memory by handle. Objects of a context of another process:
 * ribv_foreign.c.
 *
 * Contexts with the same command file share objects of the class. An imported object is another
 * handle of an object, with the same number (ribv_handle.c).
 *
 * Invariant: an unimported PD keeps its slot until its context is closed, because QPs and other
 * objects created with it refer to the slot.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ribv.h"

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
	return is_file(cmd_fd) ? ribv_foreign_device(cmd_fd) : ribv_fail(EINVAL);
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
		return ribv_foreign_pd(context, handle);
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
		ribv_foreign_pd_end((struct ribv_pd *)pd);
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
		return ribv_foreign_mr(pd, handle);
	if (!ribv_is_pd(pd) || from == NULL || from->mr == NULL ||
			!is_shared(from->pd->context, pd->context))
		return ribv_fail(ENOENT);
	mr = ribv_new();
	if (mr == NULL)
		return NULL;
	mr->pd = (struct ribv_pd *)pd;
	mr->mr = from->mr;
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
		ribv_foreign_mr_end((struct ribv_mr *)mr);
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
		return ribv_fail(ribv_foreign_dm(context, handle));
	if (!ribv_is_context(context) || from == NULL || from->dm == NULL ||
			!is_shared(from->context, context))
		return ribv_fail(ENOENT);
	dm = ribv_dm_handle(context, from->dm, from->handle);
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
	else if (ribv_slot(dm, RIBV_DM) != 0 && (own->is_imported || own->dm == NULL))
		ribv_leave(dm);
}
