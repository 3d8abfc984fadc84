/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * MRs of descriptors by ibv_reg_dmabuf_mr(): a memfd, and dma-bufs of udmabuf and of a heap where
 * the kernel has them. Offsets, iova, rights, and pages that are truncated after the registration.
 */

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "own_qp.h"

#define PAGE  4096u
#define SIZE  (8 * PAGE)
#define PART  1000u
#define IOVA  UINT64_C(0x7000000)
#define AT    (PAGE + 100)
#define LEN   (3 * PAGE)
#define RIGHT (WRITABLE | IBV_ACCESS_RELAXED_ORDERING)

static uint8_t mem[2 * PART];
static struct objects own;

static int
open_memfd(void)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	HOLDS(fd >= 0 && ftruncate(fd, SIZE) == 0);
	return fd;
}

/* -1: the kernel has none, or permits none. */
static int
open_udmabuf(void)
{
	struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE};
	int memory, fd, dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (dev < 0)
		return -1;
	memory = open_memfd();
	HOLDS(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	create.memfd = (uint32_t)memory;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	HOLDS(close(memory) == 0 && close(dev) == 0);
	return fd;
}

static int
open_heap(void)
{
	struct dma_heap_allocation_data data = {.len = SIZE, .fd_flags = O_RDWR | O_CLOEXEC};
	int dev = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	int ret;

	if (dev < 0)
		return -1;
	ret = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);
	HOLDS(close(dev) == 0);
	return ret == 0 ? (int)data.fd : -1;
}

/* WRITE PART bytes to an address of the MR; the status. */
static enum ibv_wc_status
put(const struct ibv_mr *mr, uint64_t to)
{
	return write_to(own.qp, (struct ibv_sge){(uintptr_t)mem, PART, own.mr->lkey}, to, mr->rkey);
}

static void
refuses_put(const struct ibv_mr *mr, uint64_t to)
{
	HOLDS(put(mr, to) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(own.qp);
}

/* The MR has the bytes from an offset on, at its iova, also after the descriptor is closed. */
static void
is_registered(const char *name, int fd)
{
	const uint64_t iova = IOVA + AT % PAGE;
	struct ibv_mr *mr;
	uint8_t *map;
	size_t i;

	if (fd < 0) {
		printf("%s: not present\n", name);
		return;
	}
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	HOLDS(map != MAP_FAILED);
	memset(map, 0, SIZE);
	mr = ibv_reg_dmabuf_mr(own.pd, AT, LEN, iova, fd, RIGHT);
	HOLDS(mr != NULL && close(fd) == 0);
	HOLDS(mr->length == LEN && mr->pd == own.pd && mr->context == own.context);
	HOLDS(mr->addr == (void *)(uintptr_t)AT);
	for (i = 0; i < PART; i++)
		mem[i] = (uint8_t)(i * 7 + 1);
	HOLDS(put(mr, iova) == IBV_WC_SUCCESS && memcmp(map + AT, mem, PART) == 0);
	HOLDS(put(mr, iova + LEN - PART) == IBV_WC_SUCCESS);
	HOLDS(memcmp(map + AT + LEN - PART, mem, PART) == 0);
	HOLDS(map[AT - 1] == 0 && map[AT + PART] == 0 && map[AT + LEN] == 0);
	refuses_put(mr, iova - 1);
	refuses_put(mr, iova + LEN - PART + 1);
	/* As the source of a WRITE. */
	memset(mem, 0, sizeof(mem));
	HOLDS(write_to(own.qp, (struct ibv_sge){iova, PART, mr->lkey}, (uintptr_t)mem,
			      own.mr->rkey) == IBV_WC_SUCCESS);
	HOLDS(memcmp(map + AT, mem, PART) == 0 && mem[0] == 1);
	HOLDS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ==
					IBV_REREG_MR_ERR_INPUT &&
			errno == EINVAL);
	HOLDS(ibv_dereg_mr(mr) == 0 && munmap(map, SIZE) == 0);
	printf("%s: registered\n", name);
}

/* Pages that were truncated fail the request; the others remain accessible. */
static void
truncated_pages_fail_requests(void)
{
	int fd = open_memfd();
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(own.pd, 0, SIZE, 0, fd, RIGHT);
	const struct ibv_sge gone = {SIZE - PART, PART, mr->lkey};

	HOLDS(mr != NULL && put(mr, SIZE - PART) == IBV_WC_SUCCESS);
	HOLDS(ftruncate(fd, PAGE) == 0);
	refuses_put(mr, SIZE - PART);
	HOLDS(write_to(own.qp, gone, (uintptr_t)mem, own.mr->rkey) == IBV_WC_LOC_PROT_ERR);
	reconnect_own(own.qp);
	HOLDS(put(mr, 0) == IBV_WC_SUCCESS);
	HOLDS(ftruncate(fd, SIZE) == 0 && put(mr, SIZE - PART) == IBV_WC_SUCCESS);
	HOLDS(ibv_dereg_mr(mr) == 0 && close(fd) == 0);
}

/* An MR without a right does not give it. */
static void
rights_are_checked(void)
{
	int fd = open_memfd();
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(own.pd, 0, SIZE, 0, fd, IBV_ACCESS_REMOTE_READ);

	HOLDS(mr != NULL);
	refuses_put(mr, 0);
	HOLDS(ibv_dereg_mr(mr) == 0 && close(fd) == 0);
}

int
main(void)
{
	own = open_objects(mem, sizeof(mem), 4);
	is_registered("memfd", open_memfd());
	is_registered("udmabuf", open_udmabuf());
	is_registered("dma-heap", open_heap());
	truncated_pages_fail_requests();
	rights_are_checked();
	close_objects(&own);
	return 0;
}
