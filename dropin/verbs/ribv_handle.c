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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ribv.h"

static bool has_imports; /* an object was imported; atomic */

int
ribv_handle_file_open(struct ribv_context *context)
{
	int fd = memfd_create(RIBV_FILE_NAME, MFD_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return EIO;
	}
	context->cmd_fd = fd;
	context->file_dev = st.st_dev;
	context->file_ino = st.st_ino;
	return 0;
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
ribv_handle_free(const struct ibv_context *context)
{
	struct ribv_pd *pd;
	uint32_t i = 0;

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
		if (other->handle == pd->handle &&
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
