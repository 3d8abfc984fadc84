/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Probe of on-demand MRs: data is transferred to and from pages that were just discarded, at
 * offsets inside of pages and with lengths that cross a page or need several packets, and every
 * byte is compared. rdma_rxe of Linux 7.2 ignores the offset in the page and reports SUCCESS;
 * rdma_rxe of 7.3 transfers wrong bytes too.
 *
 * The iova of the MR is its address, because another iova may crash the kernel with rdma_rxe.
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rverbs_probe.h"

#define RVERBS_PROBE_PLAIN 4096u /* bytes at probe->mem */
#define RVERBS_PROBE_PAGES 4u
#define RVERBS_PROBE_ADDED UINT64_C(0x0123456789abcdef)

struct rverbs_probe_odp {
	struct rverbs_probe *probe;
	uint8_t *mem; /* pages on demand */
	size_t page;
	struct ibv_mr *mr;
};

/* A transfer between the on-demand pages and the plain page. */
struct rverbs_probe_way {
	enum ibv_wr_opcode opcode;
	bool is_local; /* the pages are local to the request, else its target */
	bool is_in;    /* the transfer is to the pages */
	uint32_t caps; /* required capabilities */
	const char *name;
};

static const struct rverbs_probe_way rverbs_probe_ways[] = {
		{IBV_WR_RDMA_WRITE, false, true, IBV_ODP_SUPPORT_WRITE, "a WRITE to"},
		{IBV_WR_RDMA_READ, false, false, IBV_ODP_SUPPORT_READ, "a READ of"},
		{IBV_WR_RDMA_WRITE, true, false, IBV_ODP_SUPPORT_WRITE, "a WRITE from"},
		{IBV_WR_RDMA_READ, true, true, IBV_ODP_SUPPORT_READ, "a READ into"},
		{IBV_WR_SEND, true, false, IBV_ODP_SUPPORT_SEND, "a SEND from"},
		{IBV_WR_SEND, false, true, IBV_ODP_SUPPORT_RECV, "a receive into"},
};

static void
probe_fill(uint8_t *bytes, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (uint8_t)(1 + i % 251);
}

static bool
probe_is_zero(const uint8_t *bytes, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

static bool
probe_odp_send(const struct rverbs_probe *probe, struct ibv_sge *from, struct ibv_sge *into)
{
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1, .sg_list = into, .num_sge = 1};
	struct ibv_send_wr *bad_send,
			wr = {.opcode = IBV_WR_SEND,
					.sg_list = from,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	return ibv_post_recv(probe->qp, &recv, &bad_recv) == 0 &&
			ibv_post_send(probe->qp, &wr, &bad_send) == 0 &&
			rverbs_probe_wait(probe, &wc) == IBV_WC_SUCCESS &&
			rverbs_probe_wait(probe, &wc) == IBV_WC_SUCCESS;
}

static bool
probe_odp_run(const struct rverbs_probe_odp *odp, const struct rverbs_probe_way *way, size_t offset,
		uint32_t length)
{
	const struct rverbs_probe *probe = odp->probe;
	struct ibv_sge pages = {(uintptr_t)(odp->mem + offset), length, odp->mr->lkey};
	struct ibv_sge plain = {(uintptr_t)probe->mem, length, probe->mr->lkey};
	struct ibv_send_wr wr = {.opcode = way->opcode,
			.sg_list = way->is_local ? &pages : &plain,
			.num_sge = 1};

	if (way->opcode == IBV_WR_SEND)
		return way->is_local ? probe_odp_send(probe, &pages, &plain)
				     : probe_odp_send(probe, &plain, &pages);
	wr.wr.rdma.remote_addr = way->is_local ? plain.addr : pages.addr;
	wr.wr.rdma.rkey = way->is_local ? probe->mr->rkey : odp->mr->rkey;
	return rverbs_probe_run_wr(probe, &wr) == IBV_WC_SUCCESS;
}

/* Return NULL if exactly the intended bytes were changed, else the error. */
static const char *
probe_odp_moves(const struct rverbs_probe_odp *odp, const struct rverbs_probe_way *way,
		size_t offset, uint32_t length)
{
	size_t size = RVERBS_PROBE_PAGES * odp->page;
	uint8_t *plain = (uint8_t *)odp->probe->mem;
	uint8_t *pages = odp->mem + offset;

	memset(plain, 0, RVERBS_PROBE_PLAIN);
	if (madvise(odp->mem, size, MADV_DONTNEED) != 0)
		return "can't be tried";
	probe_fill(way->is_in ? plain : pages, length);
	if (!probe_odp_run(odp, way, offset, length))
		return "failed";
	if (memcmp(plain, pages, length) != 0 ||
			!probe_is_zero(plain + length, RVERBS_PROBE_PLAIN - length) ||
			!probe_is_zero(odp->mem, offset) ||
			!probe_is_zero(pages + length, size - offset - length))
		return "moved the wrong bytes";
	return NULL;
}

/* Test all reported capabilities, at several offsets; log the first error. */
static bool
probe_odp_all(const struct rverbs_probe_odp *odp, uint32_t caps, const char *what)
{
	const struct {
		size_t offset;
		uint32_t length;
	} places[] = {{odp->page, RVERBS_PROBE_PLAIN}, {1000, 512}, {odp->page - 46, 100},
			{odp->page - 1096, 2500}};
	const char *wrong;
	size_t i, j;

	for (i = 0; i < RTE_DIM(rverbs_probe_ways); i++) {
		const struct rverbs_probe_way *way = &rverbs_probe_ways[i];

		for (j = 0; (caps & way->caps) != 0 && j < RTE_DIM(places); j++) {
			wrong = probe_odp_moves(odp, way, places[j].offset, places[j].length);
			if (wrong == NULL)
				continue;
			RVERBS_LOG(NOTICE,
					"%s: %s MRs are not offered: %s one, %u bytes at offset %zu, %s",
					odp->probe->dev->context->device->name, what, way->name,
					places[j].length, places[j].offset, wrong);
			return false;
		}
	}
	return true;
}

static bool
probe_odp_atomic(const struct rverbs_probe_odp *odp)
{
	const struct rverbs_probe *probe = odp->probe;
	struct ibv_sge sge = {(uintptr_t)probe->mem, sizeof(uint64_t), probe->mr->lkey};
	struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t *at = (uint64_t *)(void *)(odp->mem + odp->page + 8);

	memset(probe->mem, 0xff, RVERBS_PROBE_PLAIN);
	if (madvise(odp->mem, RVERBS_PROBE_PAGES * odp->page, MADV_DONTNEED) != 0)
		return false;
	wr.wr.atomic.remote_addr = (uintptr_t)at;
	wr.wr.atomic.compare_add = RVERBS_PROBE_ADDED;
	wr.wr.atomic.rkey = odp->mr->rkey;
	return rverbs_probe_run_wr(probe, &wr) == IBV_WC_SUCCESS && probe->mem[0] == 0 &&
			*at == RVERBS_PROBE_ADDED;
}

/* After a failure, connect again, and drop the remaining completions in the CQ. */
static void
probe_odp_again(struct rverbs_probe *probe)
{
	struct ibv_wc wc;

	rverbs_probe_connect(probe);
	while (ibv_poll_cq(probe->cq, 1, &wc) > 0)
		;
}

/* Probe an MR of the pages, or an implicit MR; return the requests that work. */
static uint32_t
probe_odp_mr(struct rverbs_probe_odp *odp, uint32_t caps, bool is_implicit)
{
	const char *what = is_implicit ? "implicit on-demand" : "on-demand";
	size_t size = RVERBS_PROBE_PAGES * odp->page;
	struct rverbs_probe *probe = odp->probe;
	uint32_t access = RVERBS_BASIC_ACCESS | RMEM_ACCESS_ON_DEMAND;

	if ((caps & IBV_ODP_SUPPORT_ATOMIC) != 0)
		access |= RMEM_ACCESS_REMOTE_ATOMIC;
	odp->mr = is_implicit
			? ibv_reg_mr_iova2(probe->pd, NULL, SIZE_MAX, 0, access)
			: ibv_reg_mr_iova2(probe->pd, odp->mem, size, (uintptr_t)odp->mem, access);
	if (rverbs_err_null(odp->mr,
			    is_implicit ? "ibv_reg_mr of all memory on demand, to try it"
					: "ibv_reg_mr on demand, to try it") != 0)
		return 0;
	if (!probe_odp_all(odp, caps, what)) {
		caps = 0;
		probe_odp_again(probe);
	} else if ((caps & IBV_ODP_SUPPORT_ATOMIC) != 0 && !probe_odp_atomic(odp)) {
		RVERBS_LOG(NOTICE, "%s: an atomic on %s memory fails or gives a wrong value",
				probe->dev->context->device->name, what);
		caps &= ~(uint32_t)IBV_ODP_SUPPORT_ATOMIC;
		probe_odp_again(probe);
	}
	if (ibv_dereg_mr(odp->mr) != 0)
		probe->is_held = true;
	return probe->is_held ? 0 : caps;
}

/* Capabilities reported by the device, for the supported QPs and requests. */
static uint32_t
probe_odp_claims(const struct rverbs_dev *dev)
{
	const struct ibv_odp_caps *caps = &dev->attr.odp_caps;
	const uint32_t needed = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	uint32_t rc_caps = caps->per_transport_caps.rc_odp_caps;

	if ((caps->general_caps & IBV_ODP_SUPPORT) == 0 || (rc_caps & needed) != needed)
		return 0;
	rc_caps &= needed | IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_ATOMIC;
	if ((dev->capa & RMEM_DEV_CAPA_ATOMIC) == 0)
		rc_caps &= ~(uint32_t)IBV_ODP_SUPPORT_ATOMIC;
	return rc_caps;
}

void
rverbs_probe_on_demand(struct rverbs_probe *probe)
{
	struct rverbs_probe_odp odp = {.probe = probe, .page = (size_t)sysconf(_SC_PAGESIZE)};
	struct rverbs_dev *dev = probe->dev;
	uint32_t rc_caps = probe_odp_claims(dev);
	size_t size = RVERBS_PROBE_PAGES * odp.page;
	void *mem;

	if (!probe->is_connected || rc_caps == 0)
		return;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return;
	odp.mem = mem;
	rc_caps = probe_odp_mr(&odp, rc_caps, false);
	if (rc_caps != 0) {
		dev->access |= RMEM_ACCESS_ON_DEMAND;
		dev->odp.general = RMEM_ODP_SUPPORT;
		dev->odp.rc = rc_caps;
		if ((dev->attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) != 0 &&
				probe_odp_mr(&odp, rc_caps, true) == rc_caps)
			dev->odp.general |= RMEM_ODP_SUPPORT_IMPLICIT;
	}
	if (!probe->is_held) /* else the device may still access it */
		munmap(mem, size);
}
