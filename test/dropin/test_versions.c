/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Functions of rdma-core 65, with its header: buffers, registrations by a mask, completion
 * counters, a port's speed.
 */

#include <fcntl.h>
#include <sys/mman.h>

#include "own_qp.h"

#define SIZE 8192u

static struct ibv_context *context;
static struct ibv_pd *pd;

/* Register by a mask; NULL with errno. */
static struct ibv_mr *
reg(uint64_t mask, struct ibv_mr_init_attr attr)
{
	attr.comp_mask = mask;
	attr.length = attr.length == 0 ? SIZE : attr.length;
	attr.access = WRITABLE;
	errno = 0;
	return ibv_reg_mr_ex(pd, &attr);
}

/* The errno of a registration that is refused. */
static int
refused(uint64_t mask, struct ibv_mr_init_attr attr)
{
	HOLDS(reg(mask, attr) == NULL);
	return errno;
}

static void
buffers_are_memory(void)
{
	struct ibv_pd *other = ibv_alloc_pd(context);
	struct ibv_buf *buf;
	struct ibv_mr *mr;
	char *mem;

	HOLDS(other != NULL);
	mem = ibv_alloc_buf(pd, SIZE, &buf);
	HOLDS(mem != NULL && (uintptr_t)mem % 4096 == 0);
	memset(mem, 0xa5, SIZE);
	mr = ibv_reg_buf_mr(pd, buf, mem + 1, SIZE - 1, WRITABLE);
	HOLDS(mr != NULL && mr->addr == mem + 1 && mr->length == SIZE - 1);
	HOLDS(ibv_dereg_mr(mr) == 0);
	HOLDS(ibv_reg_buf_mr(pd, buf, mem + 1, SIZE, WRITABLE) == NULL && errno == EINVAL);
	HOLDS(ibv_reg_buf_mr(pd, buf, mem - 1, SIZE, WRITABLE) == NULL && errno == EINVAL);
	HOLDS(ibv_reg_buf_mr(other, buf, mem, SIZE, WRITABLE) == NULL && errno == EINVAL);
	HOLDS(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
	mr = reg(IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA,
			(struct ibv_mr_init_attr){.buf = buf, .addr = mem, .iova = 1 << 20});
	HOLDS(mr != NULL && ibv_dereg_mr(mr) == 0);
	HOLDS(refused(IBV_REG_MR_MASK_BUF, (struct ibv_mr_init_attr){.buf = buf}) == EINVAL);
	HOLDS(refused(IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD_OFFSET,
			      (struct ibv_mr_init_attr){.buf = buf, .addr = mem}) == EINVAL);
	ibv_free_buf(buf);
	HOLDS(ibv_reg_buf_mr(pd, buf, mem, SIZE, WRITABLE) == NULL && errno == ENOENT);
	HOLDS(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENOENT);
	HOLDS(ibv_alloc_buf(NULL, SIZE, &buf) == NULL && errno == ENOENT);
	HOLDS(ibv_alloc_buf(pd, SIZE, NULL) == NULL && errno == EINVAL);
	HOLDS(ibv_dealloc_pd(other) == 0);
}

static void
mask_selects_memory(void)
{
	static char mem[SIZE] __attribute__((aligned(4096)));
	const uint64_t of_fd = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
	int fd = memfd_create("test", 0);
	struct ibv_mr_init_attr attr = {.addr = mem, .iova = 4096, .fd = fd, .fd_offset = 4096};
	struct ibv_mr *mr;

	HOLDS(fd >= 0 && ftruncate(fd, SIZE + 4096) == 0);
	mr = reg(IBV_REG_MR_MASK_ADDR, attr);
	HOLDS(mr != NULL && mr->addr == mem && mr->length == SIZE && mr->pd == pd);
	HOLDS(ibv_dereg_mr(mr) == 0);
	mr = reg(IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA, attr);
	HOLDS(mr != NULL && ibv_dereg_mr(mr) == 0);
	mr = reg(of_fd | IBV_REG_MR_MASK_IOVA, attr);
	HOLDS(mr != NULL && mr->addr == (void *)4096 && ibv_dereg_mr(mr) == 0);
	HOLDS(refused(0, attr) == EINVAL && refused(of_fd, attr) == EINVAL);
	HOLDS(refused(IBV_REG_MR_MASK_IOVA, attr) == EINVAL);
	HOLDS(refused(of_fd | IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_ADDR, attr) == EINVAL);
	HOLDS(refused(IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD_OFFSET, attr) == EINVAL);
	HOLDS(refused(IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH, attr) == EOPNOTSUPP);
	HOLDS(refused(IBV_REG_MR_MASK_ADDR | 1ull << 40, attr) == EOPNOTSUPP);
	attr.iova = 1;
	HOLDS(refused(IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA, attr) == EINVAL);
	HOLDS(ibv_reg_mr_ex(pd, NULL) == NULL && errno == EINVAL);
	HOLDS(ibv_reg_mr_ex(NULL, &attr) == NULL && errno == ENOENT);
	close(fd);
}

/* The values of a counter become these; a device may count after the completion. */
static void
expect_counts(struct ibv_comp_cntr *cntr, uint64_t value, uint64_t errors)
{
	uint64_t now = 0, failed = 0;

	while (now < value || failed < errors) {
		HOLDS(ibv_read_comp_cntr(cntr, &now) == 0);
		HOLDS(ibv_read_err_comp_cntr(cntr, &failed) == 0);
		sched_yield();
	}
	HOLDS(now == value && failed == errors);
}

static struct ibv_comp_cntr *
create_cntr(enum ibv_comp_cntr_type type)
{
	struct ibv_comp_cntr_init_attr attr = {.type = type};
	struct ibv_comp_cntr *cntr = ibv_create_comp_cntr(context, &attr);

	HOLDS(cntr != NULL && cntr->context == context);
	return cntr;
}

static int
attach(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t ops)
{
	struct ibv_qp_attach_comp_cntr_attr attr = {.op_mask = ops};

	return ibv_qp_attach_comp_cntr(qp, cntr, &attr);
}

/* A QP connected with itself: each WRITE is one of its peer, too. */
static void
counters_count(void)
{
	static char mem[SIZE] __attribute__((aligned(4096)));
	struct ibv_comp_cntr *mine = create_cntr(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_comp_cntr *its = create_cntr(IBV_COMP_CNTR_TYPE_BYTES);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, SIZE, WRITABLE);
	struct ibv_qp *qp;

	HOLDS(cq != NULL && mr != NULL);
	qp = create_rc(pd, cq, 4);
	HOLDS(qp != NULL);
	HOLDS(attach(qp, mine, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE) == 0);
	HOLDS(attach(qp, its, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE) == EBUSY);
	HOLDS(attach(qp, its, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE) == 0);
	HOLDS(attach(qp, its, 1 << 6) == EOPNOTSUPP && attach(qp, its, 0) == EINVAL);
	connect_own(qp);
	HOLDS(attach(qp, its, IBV_QP_ATTACH_COMP_CNTR_OP_SEND) == EINVAL);
	HOLDS(post_write(qp, mr, 1) == 0 && wait_wc(cq).status == IBV_WC_SUCCESS);
	expect_counts(mine, 1, 0);
	expect_counts(its, SIZE / 2, 0);
	HOLDS(ibv_set_comp_cntr(mine, 40) == 0 && ibv_inc_comp_cntr(mine, 2) == 0);
	HOLDS(ibv_set_err_comp_cntr(mine, 5) == 0 && ibv_inc_err_comp_cntr(mine, 1) == 0);
	HOLDS(write_to(qp, (struct ibv_sge){(uintptr_t)mem, 8, mr->lkey}, (uintptr_t)mem,
			      ~mr->rkey) != IBV_WC_SUCCESS);
	expect_counts(mine, 42, 7);
	expect_counts(its, SIZE / 2, 1);
	HOLDS(ibv_destroy_comp_cntr(mine) == EBUSY);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_destroy_comp_cntr(mine) == 0 && ibv_destroy_comp_cntr(its) == 0);
	HOLDS(ibv_destroy_comp_cntr(mine) == ENOENT && ibv_inc_comp_cntr(its, 1) == ENOENT);
}

static void
counters_refuse_wrong_arguments(void)
{
	struct ibv_comp_cntr_init_attr attr = {.type = IBV_COMP_CNTR_TYPE_BYTES + 1};
	struct ibv_comp_cntr *cntr = create_cntr(IBV_COMP_CNTR_TYPE_WRS);
	struct ibv_comp_cntr_caps caps;
	uint64_t value;

	HOLDS(ibv_query_comp_cntr_caps(context, &caps) == 0 && caps.max_value == UINT64_MAX);
	HOLDS(caps.max_counters > 0 && caps.supported_qp_attach_ops == 0x3f);
	HOLDS(ibv_query_comp_cntr_caps(context, NULL) == EINVAL);
	HOLDS(ibv_query_comp_cntr_caps(NULL, &caps) == ENOENT);
	HOLDS(ibv_create_comp_cntr(context, &attr) == NULL && errno == EINVAL);
	attr = (struct ibv_comp_cntr_init_attr){.flags = 1};
	HOLDS(ibv_create_comp_cntr(context, &attr) == NULL && errno == EINVAL);
	attr = (struct ibv_comp_cntr_init_attr){.comp_mask = 1};
	HOLDS(ibv_create_comp_cntr(context, &attr) == NULL && errno == EINVAL);
	HOLDS(ibv_create_comp_cntr(NULL, &attr) == NULL && errno == ENOENT);
	HOLDS(ibv_read_comp_cntr(cntr, NULL) == EINVAL &&
			ibv_read_comp_cntr(NULL, &value) == ENOENT);
	HOLDS(attach(NULL, cntr, 1) == ENOENT);
	HOLDS(ibv_destroy_comp_cntr(cntr) == 0);
}

/* Hints for the processor of a NIC. */
static void
hardware_is_refused(void)
{
	struct ibv_dmah_init_attr dmah = {0};

	HOLDS(ibv_alloc_dmah(context, &dmah) == NULL && errno == EOPNOTSUPP);
	HOLDS(ibv_alloc_dmah(NULL, &dmah) == NULL && errno == ENOENT);
	HOLDS(ibv_dealloc_dmah(NULL) == ENOENT);
}

static void
device_memory_is_exported(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
	struct ibv_mr *mr;
	int fd;

	HOLDS(dm != NULL);
	fd = ibv_dm_export_dmabuf_fd(dm);
	HOLDS(fd >= 0);
	mr = ibv_reg_dmabuf_mr(pd, 0, 64, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	HOLDS(mr != NULL && ibv_dereg_mr(mr) == 0);
	HOLDS(close(fd) == 0 && ibv_free_dm(dm) == 0);
	HOLDS(ibv_dm_export_dmabuf_fd(dm) == -1 && errno == ENOENT);
}

/* That of its lanes together: 4 of 25.78125 Gb/s. */
static void
port_has_a_speed(void)
{
	uint64_t speed = 0;

	HOLDS(ibv_query_port_speed(context, 1, &speed) == 0 && speed == 1000);
	HOLDS(ibv_query_port_speed(context, 2, &speed) == EINVAL);
	HOLDS(ibv_query_port_speed(context, 1, NULL) == EINVAL);
	HOLDS(ibv_query_port_speed(NULL, 1, &speed) == ENOENT);
}

int
main(void)
{
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	buffers_are_memory();
	mask_selects_memory();
	counters_count();
	counters_refuse_wrong_arguments();
	hardware_is_refused();
	device_memory_is_exported();
	port_has_a_speed();
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	return 0;
}
