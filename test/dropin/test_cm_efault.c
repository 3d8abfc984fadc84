/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A command of rdma_cm whose memory is not mapped, or not writable, fails with EFAULT. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm_cmd.h"

static uint8_t *constant, *unmapped; /* a page, and the one that follows it */

static void
map(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	constant = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(constant != MAP_FAILED);
	unmapped = constant + page;
	HOLDS(munmap(unmapped, page) == 0);
}

/* A response of 4 bytes, of which one or none can be written. */
static uint64_t
bad_response(int i)
{
	const uint8_t *const all[] = {NULL, constant, unmapped, unmapped - 1, (uint8_t *)-16};

	return (uintptr_t)all[i];
}

#define NB_BAD 5

static void
create_fails_and_leaves_no_id(int fd)
{
	struct rdma_ucm_create_id in = {.uid = 1, .ps = RDMA_PS_TCP};
	uint32_t before = cm_create(fd, RDMA_PS_TCP), after;
	int i;

	for (i = 0; i < NB_BAD; i++) {
		in.response = bad_response(i);
		HOLDS(cm_run(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), 4) == EFAULT);
	}
	after = cm_create(fd, RDMA_PS_TCP);
	HOLDS(after == before + 1);
	HOLDS(cm_destroy(fd, before) == 0 && cm_destroy(fd, after) == 0);
}

/* The event stays in the queue. */
static void
event_is_not_lost(int fd)
{
	struct rdma_ucm_get_event in;
	uint32_t id = cm_create(fd, RDMA_PS_TCP);
	int i;

	HOLDS(cm_resolve_addr(fd, id, LOOPBACK, 7) == 0);
	for (i = 0; i < NB_BAD; i++) {
		in.response = bad_response(i);
		HOLDS(cm_run(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in),
				      sizeof(struct rdma_ucm_event_resp)) == EFAULT);
	}
	HOLDS(cm_expect(fd, ADDR_RESOLVED).id == id);
	HOLDS(cm_destroy(fd, id) == 1);
}

/* Destroyed, though the number of its events is not returned. */
static void
id_is_destroyed(int fd)
{
	struct rdma_ucm_destroy_id in = {.response = bad_response(2)};

	in.id = cm_create(fd, RDMA_PS_TCP);
	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), 4) == EFAULT);
	HOLDS(cm_destroy(fd, in.id) == -1 && errno == ENOENT);
}

static void
option_is_not_set(int fd)
{
	struct rdma_ucm_set_option in = {.optname = RDMA_OPTION_ID_REUSEADDR, .optlen = 4};
	int i;

	in.id = cm_create(fd, RDMA_PS_TCP);
	for (i = 0; i < NB_BAD; i++) {
		in.optval = bad_response(i);
		HOLDS(cm_run(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0) ==
				(i == 1 ? 0 : EFAULT));
	}
	HOLDS(cm_destroy(fd, in.id) == 0);
}

static void
write_fails(int fd, const void *data, size_t size)
{
	HOLDS(write(fd, data, size) == -1 && errno == EFAULT);
}

/* The header is at the end of a page; the command is not mapped. */
static void
command_is_read_in_full(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rdma_ucm_cmd_hdr hdr = {.cmd = RDMA_USER_CM_CMD_DISCONNECT, .in = 4};

	HOLDS(mprotect(constant, page, PROT_READ | PROT_WRITE) == 0);
	memcpy(unmapped - sizeof(hdr), &hdr, sizeof(hdr));
	write_fails(fd, unmapped - sizeof(hdr), sizeof(hdr) + 4);
	write_fails(fd, unmapped - 4, sizeof(hdr) + 4);
	write_fails(fd, unmapped, sizeof(hdr) + 4);
	write_fails(fd, NULL, sizeof(hdr) + 4);
	HOLDS(write(fd, unmapped - 4, 4) == -1 && errno == EINVAL);
	HOLDS(mprotect(constant, page, PROT_READ) == 0);
}

/* A child of fork() can only destroy IDs of its parent. */
static void
child_gets_efault(int fd)
{
	struct rdma_ucm_destroy_id in = {.response = bad_response(1)};
	pid_t pid;
	int status;

	in.id = cm_create(fd, RDMA_PS_TCP);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0) {
		HOLDS(cm_run(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), 4) == EFAULT);
		write_fails(fd, unmapped, sizeof(struct rdma_ucm_cmd_hdr) + sizeof(in));
		HOLDS(cm_destroy(fd, in.id) == 0);
		_exit(0);
	}
	HOLDS(waitpid(pid, &status, 0) == pid && status == 0);
	HOLDS(cm_destroy(fd, in.id) == 0);
}

int
main(void)
{
	int fd = cm_open();

	map();
	create_fails_and_leaves_no_id(fd);
	event_is_not_lost(fd);
	id_is_destroyed(fd);
	option_is_not_set(fd);
	command_is_read_in_full(fd);
	child_gets_efault(fd);
	HOLDS(close(fd) == 0);
	return 0;
}
