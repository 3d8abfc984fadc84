/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Processes, memory and device memory of the tests of import between processes. */

#ifndef IMPORT_PEER_H
#define IMPORT_PEER_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "own_qp.h"

#define PAGE ((size_t)4096)
#define SIZE (4 * PAGE)
#define PART 64u

#define DM_WORD UINT32_C(0xd3) /* in device memory, at 0 and PAGE */

/* A child that ends with this process. */
static inline pid_t
start_child(void)
{
	pid_t pid = fork();

	HOLDS(pid >= 0);
	HOLDS(pid != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	return pid;
}

static inline void
signal_peer(int fd)
{
	HOLDS(write(fd, "", 1) == 1);
}

static inline void
wait_peer(int fd)
{
	char byte;

	HOLDS(read(fd, &byte, 1) == 1);
}

static inline void *
map_file(void *at, int fd, size_t size)
{
	void *mem = mmap(at, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | (at != NULL ? MAP_FIXED : 0), fd, 0);

	HOLDS(mem != MAP_FAILED);
	return mem;
}

static inline int
open_memory(size_t size)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);

	HOLDS(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	return fd;
}

static inline struct ibv_dm *
alloc_dm(struct ibv_context *context)
{
	struct ibv_alloc_dm_attr attr = {.length = PAGE + SIZE};
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
	const uint32_t word = DM_WORD;

	HOLDS(dm != NULL);
	HOLDS(ibv_memcpy_to_dm(dm, 0, &word, 4) == 0 && ibv_memcpy_to_dm(dm, PAGE, &word, 4) == 0);
	return dm;
}

#endif /* IMPORT_PEER_H */
