/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The examples of doc/memory_semantics.md and memory_requests.md, compiled and run; see
 * test_doc_examples.c.
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_memory.h>

#include "fixture.h"

#define SIZE 256u

/* example: mem_user */
/* Allocate and register memory at start, for requests of both sides. */
static int
reg_user(struct rmem_pd *pd, size_t length, struct rmem_mr **mr)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ |
			RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_ALLOCATE_MR;

	return rmem_mr_reg(pd, NULL, length, 0, access, mr);
}
/* end of example */

/* example: mem_zero_based */
/* The peer addresses the memory by offset, and needs no virtual address. */
static int
reg_zero_based(struct rmem_pd *pd, void *addr, size_t length, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.addr = addr,
			.length = length,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_ZERO_BASED,
			.socket_id = SOCKET_ID_ANY,
	};

	return rmem_mr_reg_attr(pd, &attr, mr);
}
/* end of example */

/* example: mem_iov */
/* A separate header and body, as one range for the peer. */
static int
reg_iov(struct rmem_pd *pd, void *header, size_t header_length, void *body, size_t body_length,
		struct rmem_mr **mr)
{
	const struct iovec iov[] = {{header, header_length}, {body, body_length}};
	const struct rmem_mr_attr attr = {
			.iov = iov,
			.iov_count = 2,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_ZERO_BASED,
			.socket_id = SOCKET_ID_ANY,
	};

	return rmem_mr_reg_attr(pd, &attr, mr);
}
/* end of example */

/* example: mem_dm */
/* Register device memory from an offset on. Requests address the range from 0 on. */
static int
reg_dm(struct rmem_pd *pd, struct rmem_dm *dm, uint64_t offset, size_t length, struct rmem_mr **mr)
{
	const struct rmem_mr_ext ext = {.dm = dm, .dm_offset = offset};
	const struct rmem_mr_attr attr = {
			.length = length,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_ZERO_BASED,
			.ext = &ext,
	};

	return rmem_mr_reg_attr(pd, &attr, mr);
}
/* end of example */

/* example: mem_async */
/* Start a registration in the background. The keys are valid when its event has been read. */
static int
reg_async(struct rmem_pd *pd, void *addr, size_t length, struct rmem_eq *eq, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.addr = addr,
			.length = length,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.socket_id = SOCKET_ID_ANY,
			.eq = eq,
	};

	return rmem_mr_reg_attr(pd, &attr, mr);
}

/* Call periodically: returns the MR that is ready, or NULL. */
static struct rmem_mr *
next_registered(struct rmem_eq *eq)
{
	struct rmem_event event;

	if (rmem_eq_read(eq, &event, 1) != 1)
		return NULL;
	if (event.status == 0)
		return event.mr;
	rmem_mr_dereg(event.mr); /* its registration failed with event.status */
	return NULL;
}
/* end of example */

/* example: mem_counter */
/* The MR is enabled after the counter is bound, so that the first WRITE is counted. */
static int
reg_counted(struct rmem_pd *pd, void *addr, size_t length, struct rmem_counter *counter,
		struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.addr = addr,
			.length = length,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_MR_DISABLED,
	};
	int ret;

	ret = rmem_mr_reg_attr(pd, &attr, mr);
	if (ret == 0)
		ret = rmem_mr_bind_counter(*mr, counter, RMEM_COUNTER_REMOTE_WRITE);
	return ret == 0 ? rmem_mr_enable(*mr) : ret;
}
/* end of example */

/* example: mem_fd */
/* Memory shared with another process: a memfd, or any file that can be mapped. */
static int
reg_fd(struct rmem_pd *pd, int fd, size_t length, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {
			.length = length,
			.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_MR_FD,
			.fd = fd,
	};

	return rmem_mr_reg_attr(pd, &attr, mr);
}
/* end of example */

/* example: mem_odp */
/* A file of any size, whose pages are faulted in on access. */
static int
reg_on_demand(struct rmem_pd *pd, void *map, size_t length, struct rmem_mr **mr)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ |
			RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_ON_DEMAND;

	return rmem_mr_reg(pd, map, length, 0, access, mr);
}

/* Prefetch pages that the peer is about to write. */
static int
prefetch(struct rmem_pd *pd, const struct rmem_mr *mr, size_t offset, uint32_t length)
{
	const struct rmem_sge part = {mr->iova + offset, length, mr->lkey};

	return rmem_mr_advise(pd, RMEM_ADVISE_PREFETCH_WRITE, 0, &part, 1);
}
/* end of example */

/* example: mem_rereg */
/* Revoke the rights of peers. When it returns 0, no peer has access; the lkey stays valid. */
static int
revoke_remote(struct rmem_mr *mr)
{
	enum rmem_rereg_result result;
	int ret;

	ret = rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, RMEM_ACCESS_LOCAL_WRITE,
			&result);
	if (ret != 0 && result <= RMEM_REREG_ERR_CMD)
		rmem_mr_dereg(mr); /* neither the old registration nor the new one is valid */
	return ret;
}
/* end of example */

/* example: mem_shared */
/* Grant other peers read access to the same bytes, with a key and a PD of their own. */
static int
reg_shared(struct rmem_mr *mr, struct rmem_pd *readers, struct rmem_mr **view)
{
	return rmem_mr_reg_shared(mr, readers, mr->iova, RMEM_ACCESS_REMOTE_READ, view);
}
/* end of example */

/* example: mem_fast_reg */
/* Grant the peer one buffer of whole pages. mr->rkey is the new rkey when the post returns. */
static int
grant_pages(struct rmem_qp *qp, struct rmem_mr *mr, struct rmem_fast_reg_page_list *list,
		uint8_t *buf, uint16_t nb_pages)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_REG_MR, .flags = RMEM_SEND_SIGNALED};
	uint16_t i;

	for (i = 0; i < nb_pages; i++)
		list->page_list[i] = (uintptr_t)buf + i * 4096u;
	wr.reg_mr.mr = mr;
	wr.reg_mr.page_list = list;
	wr.reg_mr.page_list_len = nb_pages;
	wr.reg_mr.log2_page_size = 12;
	wr.reg_mr.iova = (uintptr_t)buf;
	wr.reg_mr.length = nb_pages * 4096u;
	wr.reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr.reg_mr.key_tag = rmem_rkey_next_tag(mr->rkey);
	return rmem_post_send(qp, &wr, 1);
}

/* Invalidate the rkey. After the completion, no request accesses memory through it. */
static int
invalidate(struct rmem_qp *qp, uint32_t rkey)
{
	const struct rmem_send_wr wr = {
			.opcode = RMEM_WR_LOCAL_INV,
			.flags = RMEM_SEND_SIGNALED,
			.invalidate_rkey = rkey,
	};

	return rmem_post_send(qp, &wr, 1);
}
/* end of example */

/* example: mem_window_1 */
/* Grant all QPs of the PD access to part of an MR. The window may be bound again at any time. */
static int
bind_window(struct rmem_qp *qp, struct rmem_mw *mw, struct rmem_mr *mr, uint64_t addr,
		uint64_t length)
{
	const struct rmem_mw_bind bind = {
			.flags = RMEM_SEND_SIGNALED,
			.bind_info =
					{
							.mr = mr,
							.addr = addr,
							.length = length,
							.access = RMEM_ACCESS_REMOTE_READ,
					},
	};

	return rmem_mw_bind(qp, mw, &bind);
}
/* end of example */

/* example: mem_window_2 */
/* Grant the peer of this QP access to any bytes of an MR; invalidate() revokes it. */
static int
grant_window(struct rmem_qp *qp, struct rmem_mw *mw, struct rmem_mr *mr, uint64_t addr,
		uint64_t length)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_BIND_MW, .flags = RMEM_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.mr = mr;
	wr.bind_mw.addr = addr;
	wr.bind_mw.length = length;
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
	wr.bind_mw.key_tag = rmem_rkey_next_tag(mw->rkey);
	return rmem_post_send(qp, &wr, 1);
}
/* end of example */

/* example: mem_umr */
/*
 * Grant a column of a matrix as one range: rows elements of size bytes, stride bytes apart. The
 * entry may be reused when the request has completed.
 */
static int
grant_column(struct rmem_qp *qp, struct rmem_mr *column, struct rmem_mkey_entry *entry,
		const struct rmem_mr *matrix, uint64_t first, uint32_t rows, uint64_t size,
		uint64_t stride)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_UMR, .flags = RMEM_SEND_SIGNALED};

	entry->addr = first;
	entry->length = size;
	entry->skip = stride - size;
	entry->lkey = matrix->lkey;
	entry->reserved = 0;
	wr.umr.mr = column;
	wr.umr.entries = entry;
	wr.umr.nb_entries = 1;
	wr.umr.repeat_count = rows;
	wr.umr.iova = 0;
	wr.umr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	wr.umr.key_tag = rmem_rkey_next_tag(column->rkey);
	return rmem_post_send(qp, &wr, 1);
}
/* end of example */

/* b writes the first bytes of its buffer to a's: true if the WRITE succeeded. */
static void
expect(uint64_t addr, uint32_t length, uint32_t rkey, uint8_t opcode, bool is_open)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, length);
	struct rmem_send_wr wr = fx_rdma(opcode, &sge, addr, rkey);

	TEST_STATUS(fx_send(fx.b.qp, &wr), is_open ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR);
	if (!is_open)
		fx_reconnect();
}

static void
expect_write(uint64_t addr, uint32_t rkey, const uint8_t *at)
{
	fx_fill(fx.b.buf, SIZE, 3);
	expect(addr, SIZE, rkey, RMEM_WR_RDMA_WRITE, true);
	TEST_MEM(at, fx.b.buf, SIZE);
}

TEST(doc_memory, user_mrs)
{
	struct rmem_mr *mr, *zero, *view, *both;

	TEST_OK(reg_user(fx.a.pd, FX_BUF_SIZE, &mr));
	fx_track(mr);
	expect_write(mr->iova, mr->rkey, mr->addr);
	TEST_OK(reg_zero_based(fx.a.pd, fx.a.buf, FX_BUF_SIZE, &zero));
	fx_track(zero);
	expect_write(100, zero->rkey, fx.a.buf + 100);
	TEST_OK(reg_shared(zero, fx.a.pd, &view));
	fx_track(view);
	expect(view->iova, 8, view->rkey, RMEM_WR_RDMA_READ, true);
	expect(view->iova, 8, view->rkey, RMEM_WR_RDMA_WRITE, false);
	TEST_OK(reg_iov(fx.a.pd, fx.a.buf + 4096, 64, fx.a.buf, 4096, &both));
	fx_track(both);
	fx_fill(fx.b.buf, SIZE, 5);
	expect(0, SIZE, both->rkey, RMEM_WR_RDMA_WRITE, true);
	TEST_MEM(fx.a.buf + 4096, fx.b.buf, 64);
	TEST_MEM(fx.a.buf, fx.b.buf + 64, SIZE - 64);
	TEST_OK(revoke_remote(zero));
	expect(100, 8, zero->rkey, RMEM_WR_RDMA_WRITE, false);
}

TEST(doc_memory, memory_of_a_file_and_on_demand)
{
	int fd = memfd_create("test_doc_memory", 0);
	void *map = fx_mem(FX_PAGE, 4 * FX_PAGE);
	struct rmem_dev_info info;
	struct rmem_mr *mr = NULL;
	int ret;

	TEST_ASSERT(fd >= 0);
	ret = ftruncate(fd, FX_PAGE);
	if (ret == 0)
		ret = reg_fd(fx.a.pd, fd, FX_PAGE, &mr);
	close(fd);
	TEST_ASSERT(ret == 0 && mr != NULL);
	fx_track(mr);
	expect_write(mr->iova, mr->rkey, mr->addr);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	if ((info.odp.general & RMEM_ODP_SUPPORT) == 0)
		return;
	TEST_OK(reg_on_demand(fx.a.pd, map, 4 * FX_PAGE, &mr));
	fx_track(mr);
	TEST_OK(prefetch(fx.a.pd, mr, 0, FX_PAGE));
	expect_write(mr->iova, mr->rkey, map);
}

TEST(doc_memory, device_memory)
{
	const struct rmem_dm_conf conf = {.length = 2 * SIZE};
	struct rmem_dm *dm = NULL;
	struct rmem_mr *mr = NULL;
	uint8_t out[SIZE];

	TEST_OK(rmem_dm_alloc(fx.a.dev, &conf, &dm));
	fx_track(dm);
	TEST_OK(reg_dm(fx.a.pd, dm, SIZE, SIZE, &mr));
	fx_track(mr);
	TEST_STATUS(fx_peer_write(0, SIZE, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dm_copy_from(dm, SIZE, out, SIZE));
	TEST_MEM(out, fx.b.buf, SIZE);
}

TEST(doc_memory, async_and_counted_mrs)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);
	struct rmem_eq *eq = fx_eq(fx.a.dev, 1);
	uint64_t deadline = fx_deadline();
	struct rmem_mr *mr, *ready = NULL;
	unsigned int spins = 0;

	TEST_OK(reg_async(fx.a.pd, fx.a.buf, FX_BUF_SIZE, eq, &mr));
	while ((ready = next_registered(eq)) == NULL && !fx_is_late(deadline))
		fx_relax(&spins);
	TEST_ASSERT(ready == mr);
	fx_track(mr);
	expect_write(mr->iova, mr->rkey, fx.a.buf);
	TEST_OK(reg_counted(fx.a.pd, fx.a.buf, FX_BUF_SIZE, counter, &mr));
	expect_write(mr->iova, mr->rkey, fx.a.buf);
	TEST_EQ(rmem_counter_read(counter), 1);
	TEST_OK(rmem_mr_bind_counter(mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
	TEST_OK(rmem_mr_dereg(mr));
}

/* A granted key is valid, and a revoked one is not. */
static void
expect_grant(int nb_posted, uint64_t addr, const uint32_t *rkey, const uint8_t *at)
{
	TEST_EQ(nb_posted, 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	expect_write(addr, *rkey, at);
	TEST_EQ(invalidate(fx.a.qp, *rkey), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	expect(addr, SIZE, *rkey, RMEM_WR_RDMA_WRITE, false);
}

TEST_WITH(doc_memory, grants_of_every_kind, fx_setup_mw)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 2);
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 2);
	uint64_t addr = fx_addr(fx.a.buf) + 777;

	expect_grant(grant_pages(fx.a.qp, fast, list, fx.a.buf, 2), fx_addr(fx.a.buf), &fast->rkey,
			fx.a.buf);
	expect_grant(grant_window(fx.a.qp, fx.mw.two, fx.mw.mr, addr, SIZE), addr, &fx.mw.two->rkey,
			fx.a.buf + 777);
	TEST_OK(bind_window(fx.a.qp, fx.mw.one, fx.mw.mr, addr, SIZE));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	expect(addr, SIZE, fx.mw.one->rkey, RMEM_WR_RDMA_READ, true);
	expect(addr, SIZE, fx.mw.one->rkey, RMEM_WR_RDMA_WRITE, false);
}

TEST(doc_memory, umr_grants_a_column_of_a_matrix)
{
	struct rmem_mr *column = fx_mkey(fx.a.pd, 1);
	struct rmem_mkey_entry entry;
	uint32_t i;

	TEST_EQ(grant_column(fx.a.qp, column, &entry, fx.a.mr, fx.a.mr->iova + 24, SIZE / 8, 8,
				800),
			1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, SIZE, 3);
	expect(0, SIZE, column->rkey, RMEM_WR_RDMA_WRITE, true);
	for (i = 0; i < SIZE / 8; i++)
		TEST_MEM(fx.a.buf + 24 + i * 800, fx.b.buf + i * 8, 8);
}

TEST_SUITE(doc_memory, fx_setup, fx_teardown);
