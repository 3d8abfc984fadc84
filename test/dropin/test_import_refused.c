/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Imports from another process that are refused: command files that another process has written,
 * and owners that have ended, are of another user, or can't have a command file. */

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "import_peer.h"

/* Entry of a handle in the command file. */
#define ENTRY_SIZE   ((size_t)56)
#define ENTRY_AT(at) ((off_t)(4096 + (at)*ENTRY_SIZE))

/* Copy bytes of a command file, which any process that has it can write. */
static void
copy_in_file(int file, off_t to, off_t from, size_t size)
{
	char bytes[64];

	HOLDS(size <= sizeof(bytes) && pread(file, bytes, size, from) == (ssize_t)size);
	HOLDS(pwrite(file, bytes, size, to) == (ssize_t)size);
}

/* The owner changes the entry of an imported MR into one of a PD. */
static void
handle_of_an_object_of_another_type_is_refused(void)
{
	uint8_t *mem = map_file(NULL, open_memory(SIZE), SIZE);
	struct objects own = open_objects(mem, SIZE, 4);
	const off_t of_pd = ENTRY_AT(own.pd->handle), of_mr = ENTRY_AT(own.mr->handle);
	pid_t pid = fork();

	if (pid == 0) {
		struct ibv_context *context = ibv_import_device(dup(own.context->cmd_fd));
		struct ibv_pd *pd = ibv_import_pd(context, own.pd->handle);
		struct ibv_mr *mr = ibv_import_mr(pd, own.mr->handle);

		HOLDS(context != NULL && pd != NULL && mr != NULL);
		copy_in_file(context->cmd_fd, of_mr, of_pd, ENTRY_SIZE);
		errno = 0;
		HOLDS(ibv_import_pd(context, own.mr->handle) == NULL && errno == ENOENT);
		ibv_unimport_mr(mr);
		HOLDS(ibv_import_pd(context, own.mr->handle) != NULL);
		_exit(0);
	}
	wait_child(pid);
	close_objects(&own);
	munmap(mem, SIZE);
}

/* Entries of device memory that name no memory of the owner, or too much of it. */
static void
wrong_device_memory_is_refused(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_dm *dm = alloc_dm(context);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, PAGE, SIZE, IBV_ACCESS_ZERO_BASED);
	const off_t at = ENTRY_AT(dm->handle);
	pid_t pid;

	HOLDS(pd != NULL && mr != NULL);
	pid = fork();
	if (pid == 0) {
		struct ibv_context *other = ibv_import_device(dup(context->cmd_fd));
		struct ibv_pd *other_pd = ibv_import_pd(other, pd->handle);
		const uint64_t too_long = PAGE + SIZE + 1, no_inode = 1;

		HOLDS(other != NULL && other_pd != NULL);
		HOLDS(pwrite(other->cmd_fd, &too_long, 8, at + 24) == 8);
		errno = 0;
		HOLDS(ibv_import_dm(other, dm->handle) == NULL && errno == EINVAL);
		HOLDS(pwrite(other->cmd_fd, &no_inode, 8, at + 16) == 8);
		errno = 0;
		HOLDS(ibv_import_dm(other, dm->handle) == NULL && errno == EOPNOTSUPP);
		errno = 0;
		HOLDS(ibv_import_mr(other_pd, mr->handle) == NULL && errno == EOPNOTSUPP);
		copy_in_file(other->cmd_fd, at, ENTRY_AT(pd->handle), ENTRY_SIZE);
		errno = 0;
		HOLDS(ibv_import_mr(other_pd, mr->handle) == NULL && errno == ENOENT);
		_exit(0);
	}
	wait_child(pid);
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_free_dm(dm) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
}

/* The file names its owner, which has closed it. */
static void
closed_context_is_refused(void)
{
	struct ibv_context *context = open_device("soft0");
	int file = dup(context->cmd_fd), ready[2];
	pid_t pid;

	HOLDS(pipe(ready) == 0);
	pid = start_child();
	if (pid == 0) {
		wait_peer(ready[0]);
		errno = 0;
		HOLDS(ibv_import_device(file) == NULL && errno == EINVAL);
		_exit(0);
	}
	HOLDS(ibv_close_device(context) == 0);
	/* Its owner has a descriptor of the file, but no context. */
	errno = 0;
	HOLDS(ibv_import_device(file) == NULL && errno == EINVAL);
	close(file);
	signal_peer(ready[1]);
	wait_child(pid);
}

/* The import of a context of the parent, in a child that has called prepare(), fails. */
static void
expect_refused(int err, void (*prepare)(void))
{
	struct ibv_context *context = open_device("soft0");
	int file = dup(context->cmd_fd);
	pid_t pid;

	pid = start_child();
	if (pid == 0) {
		if (prepare != NULL)
			prepare();
		errno = 0;
		HOLDS(ibv_import_device(file) == NULL && errno == err);
		_exit(0);
	}
	wait_child(pid);
	close(file);
	HOLDS(ibv_close_device(context) == 0);
}

/* A user namespace may not have that user. */
static void
become_nobody(void)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		_exit(0);
}

static void
context_of_another_user_is_refused(void)
{
	if (geteuid() == 0)
		expect_refused(EPERM, become_nobody);
}

/* Its command file would be larger than its files may be. */
static void
context_with_a_small_file_is_refused(void)
{
	struct rlimit old, small;

	HOLDS(getrlimit(RLIMIT_FSIZE, &old) == 0);
	small = old;
	small.rlim_cur = 1 << 20;
	HOLDS(setrlimit(RLIMIT_FSIZE, &small) == 0);
	expect_refused(EOPNOTSUPP, NULL);
	HOLDS(setrlimit(RLIMIT_FSIZE, &old) == 0);
}

int
main(void)
{
	handle_of_an_object_of_another_type_is_refused();
	wrong_device_memory_is_refused();
	closed_context_is_refused();
	context_of_another_user_is_refused();
	context_with_a_small_file_is_refused();
	return 0;
}
