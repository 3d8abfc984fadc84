/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Each function of libibverbs, each way in which it fails: prints "function, way: result", with the
 * value of errno if it differs from the result. errnos.txt has the lines of soft0 and of rdma_rxe.
 *
 * usage: test-errnos DEVICE. A real device has no protection from random pointers: test_handles.c.
 */

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "own_qp.h"
#include "errnos.h"

#define PAGE 4096u
#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
			IBV_ACCESS_MW_BIND)

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_mr *mr;
uint8_t *buf;

static void
devices(void)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_values_ex values = {.comp_mask = 1u << 30};
	struct ibv_device_attr_ex attr;
	struct ibv_gid_entry entries[64];
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	fails("ibv_query_device_ex, input", ibv_query_device_ex(context, &input, &attr));
	fails("ibv_query_rt_values_ex, mask", ibv_query_rt_values_ex(context, &values));
	fails("ibv_query_port, 0", ibv_query_port(context, 0, &port));
	fails("ibv_query_port, 9", ibv_query_port(context, 9, &port));
	fails("ibv_query_gid, port 9", ibv_query_gid(context, 9, 0, &gid));
	fails("ibv_query_gid, index", ibv_query_gid(context, 1, 9999, &gid));
	fails("ibv_query_gid, index -1", ibv_query_gid(context, 1, -1, &gid));
	fails("ibv_query_gid_ex, port 9", ibv_query_gid_ex(context, 9, 0, entries, 0));
	fails("ibv_query_gid_ex, index", ibv_query_gid_ex(context, 1, 9999, entries, 0));
	fails("ibv_query_gid_ex, flags", ibv_query_gid_ex(context, 1, 0, entries, 1));
	fails("ibv_query_gid_table, flags", (int)ibv_query_gid_table(context, entries, 64, 1));
	fails("ibv_query_gid_table, 0 entries", (int)ibv_query_gid_table(context, entries, 0, 0));
	fails("ibv_query_pkey, port 9", ibv_query_pkey(context, 9, 0, &pkey));
	fails("ibv_query_pkey, index", ibv_query_pkey(context, 1, 9999, &pkey));
	fails("ibv_get_pkey_index, unknown", ibv_get_pkey_index(context, 1, htobe16(0x1234)));
	is_null("ibv_import_device, fd -1", ibv_import_device(-1));
}

static void
protection_domains(void)
{
	struct ibv_td_init_attr td = {.comp_mask = 1};
	struct ibv_parent_domain_init_attr parent = {.pd = NULL};
	struct ibv_xrcd_init_attr xrcd = {0};
	struct ibv_mr *null;

	fails("ibv_dealloc_pd, in use", ibv_dealloc_pd(pd));
	is_null("ibv_alloc_td, mask", ibv_alloc_td(context, &td));
	is_null("ibv_alloc_parent_domain, no PD", ibv_alloc_parent_domain(context, &parent));
	parent.pd = pd;
	parent.comp_mask = 1u << 30;
	is_null("ibv_alloc_parent_domain, mask", ibv_alloc_parent_domain(context, &parent));
	is_null("ibv_open_xrcd, no mask", ibv_open_xrcd(context, &xrcd));
	is_null("ibv_alloc_null_mr", null = ibv_alloc_null_mr(pd));
	HOLDS(null == NULL || ibv_dereg_mr(null) == 0);
}

/* MRs of descriptors; the device may map any of them. */
static void
dmabufs(int rights)
{
	int fd = memfd_create("errnos", MFD_CLOEXEC), other = eventfd(0, EFD_CLOEXEC);
	char path[64];

	HOLDS(fd >= 0 && other >= 0 && ftruncate(fd, PAGE) == 0);
	is_null("ibv_reg_dmabuf_mr, fd -1", ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, rights));
	is_null("ibv_reg_dmabuf_mr, offset", ibv_reg_dmabuf_mr(pd, 8, 8, 16, fd, rights));
	is_null("ibv_reg_dmabuf_mr, right", ibv_reg_dmabuf_mr(pd, 0, 8, 0, fd, rights | 1 << 4));
	is_null("ibv_reg_dmabuf_mr, end", ibv_reg_dmabuf_mr(pd, 8, PAGE, 8, fd, rights));
	is_null("ibv_reg_dmabuf_mr, length 0", ibv_reg_dmabuf_mr(pd, 0, 0, 0, fd, rights));
	is_null("ibv_reg_dmabuf_mr, not mapped", ibv_reg_dmabuf_mr(pd, 0, 8, 0, other, rights));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	HOLDS(close(other) == 0);
	other = open(path, O_RDONLY | O_CLOEXEC);
	HOLDS(other >= 0);
	is_null("ibv_reg_dmabuf_mr, read-only", ibv_reg_dmabuf_mr(pd, 0, 8, 0, other, rights));
	HOLDS(close(other) == 0 && close(fd) == 0);
}

static void
regions(void)
{
	uint8_t *fixed = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int rights = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};

	HOLDS(fixed != MAP_FAILED && gone != MAP_FAILED && munmap(gone, PAGE) == 0);
	is_null("ibv_reg_mr, remote write alone", ibv_reg_mr(pd, buf, 8, IBV_ACCESS_REMOTE_WRITE));
	is_null("ibv_reg_mr, remote atomic alone",
			ibv_reg_mr(pd, buf, 8, IBV_ACCESS_REMOTE_ATOMIC));
	is_null("ibv_reg_mr, unknown right", ibv_reg_mr(pd, buf, 8, 1 << 15));
	is_null("ibv_reg_mr, wraps", ibv_reg_mr(pd, buf, SIZE_MAX, rights));
	is_null("ibv_reg_mr, unmapped", ibv_reg_mr(pd, gone, PAGE, rights));
	is_null("ibv_reg_mr, NULL", ibv_reg_mr(pd, NULL, PAGE, rights));
	is_null("ibv_reg_mr, read-only", ibv_reg_mr(pd, fixed, PAGE, rights));
	is_null("ibv_reg_mr_iova, offset", ibv_reg_mr_iova(pd, buf, 8, 8, rights));
	dmabufs(rights);
	rereg_fails("ibv_rereg_mr, flags", ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0));
	rereg_fails("ibv_rereg_mr, length 0",
			ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, 0, 0));
	rereg_fails("ibv_rereg_mr, rights without flag",
			ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, 8, rights));
	rereg_fails("ibv_rereg_mr, remote write alone",
			ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					IBV_ACCESS_REMOTE_WRITE));
	fails("ibv_advise_mr, advice", ibv_advise_mr(pd, 99, 0, &sge, 1));
	fails("ibv_advise_mr, flags",
			ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 30, &sge, 1));
	fails("ibv_advise_mr, no SGE",
			ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0));
	munmap(fixed, PAGE);
}

static void
device_memory(void)
{
	struct ibv_alloc_dm_attr attr = {0};
	struct ibv_dm *dm;
	struct ibv_mr *over;

	is_null("ibv_alloc_dm, length 0", ibv_alloc_dm(context, &attr));
	attr.length = SIZE_MAX / 2;
	is_null("ibv_alloc_dm, too long", ibv_alloc_dm(context, &attr));
	attr.length = PAGE;
	attr.comp_mask = 1;
	is_null("ibv_alloc_dm, mask", ibv_alloc_dm(context, &attr));
	attr.comp_mask = 0;
	dm = ibv_alloc_dm(context, &attr);
	if (dm == NULL)
		return;
	fails("ibv_memcpy_to_dm, end", ibv_memcpy_to_dm(dm, PAGE - 8, buf, 9));
	fails("ibv_memcpy_to_dm, wraps", ibv_memcpy_to_dm(dm, UINT64_MAX - 3, buf, 8));
	fails("ibv_memcpy_from_dm, end", ibv_memcpy_from_dm(buf, dm, PAGE - 8, 9));
	fails("ibv_memcpy_from_dm, wraps", ibv_memcpy_from_dm(buf, dm, 8, SIZE_MAX - 3));
	is_null("ibv_reg_dm_mr, not zero-based", ibv_reg_dm_mr(pd, dm, 0, 8, 0));
	is_null("ibv_reg_dm_mr, end", ibv_reg_dm_mr(pd, dm, PAGE - 8, 9, IBV_ACCESS_ZERO_BASED));
	over = ibv_reg_dm_mr(pd, dm, 0, PAGE, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	HOLDS(over != NULL);
	fails("ibv_free_dm, in use", ibv_free_dm(dm));
	HOLDS(ibv_dereg_mr(over) == 0 && ibv_free_dm(dm) == 0);
}

static void
completion_queues(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq_init_attr_ex init = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_modify_cq_attr modify = {.attr_mask = 0};
	struct ibv_poll_cq_attr poll = {.comp_mask = 1};
	struct ibv_cq *own = ibv_create_cq(context, 8, NULL, channel, 0);
	struct ibv_cq_ex *ex = ibv_create_cq_ex(context, &init);
	struct ibv_cq *event_cq;
	struct ibv_wc wc;
	void *event_context;

	HOLDS(channel != NULL && own != NULL && ex != NULL);
	is_null("ibv_create_cq, 0 entries", ibv_create_cq(context, 0, NULL, NULL, 0));
	is_null("ibv_create_cq, -1 entries", ibv_create_cq(context, -1, NULL, NULL, 0));
	is_null("ibv_create_cq, too many", ibv_create_cq(context, INT32_MAX, NULL, NULL, 0));
	is_null("ibv_create_cq, vector", ibv_create_cq(context, 8, NULL, NULL, 9999));
	init.wc_flags = UINT64_C(1) << 40;
	is_null("ibv_create_cq_ex, fields", ibv_create_cq_ex(context, &init));
	init.wc_flags = 0;
	init.comp_mask = 1u << 30;
	is_null("ibv_create_cq_ex, mask", ibv_create_cq_ex(context, &init));
	fails("ibv_resize_cq, 0 entries", ibv_resize_cq(own, 0));
	fails("ibv_resize_cq, too many", ibv_resize_cq(own, INT32_MAX));
	fails("ibv_modify_cq, nothing", ibv_modify_cq(own, &modify));
	fails("ibv_poll_cq, empty", ibv_poll_cq(own, 1, &wc));
	fails("ibv_start_poll, mask", ibv_start_poll(ex, &poll));
	poll.comp_mask = 0;
	fails("ibv_start_poll, empty", ibv_start_poll(ex, &poll));
	HOLDS(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	fails("ibv_get_cq_event, none", ibv_get_cq_event(channel, &event_cq, &event_context));
	fails("ibv_destroy_comp_channel, in use", ibv_destroy_comp_channel(channel));
	HOLDS(ibv_destroy_cq(own) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(ex)) == 0);
	HOLDS(ibv_destroy_comp_channel(channel) == 0);
	fails("ibv_destroy_cq, in use", ibv_destroy_cq(cq));
}

static void
shared_receive_queues(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_init_attr_ex ex = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
			.srq_type = IBV_SRQT_BASIC,
			.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_srq_attr attr = {.srq_limit = 1 << 20};
	struct ibv_sge sges[64] = {{(uintptr_t)buf, 8, mr->lkey}};
	struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = 64}, *bad;
	uint32_t number;
	int ret, i;

	HOLDS(srq != NULL);
	init.attr.max_wr = UINT32_MAX / 2;
	is_null("ibv_create_srq, requests", ibv_create_srq(pd, &init));
	init.attr.max_wr = 4;
	init.attr.max_sge = 4096;
	is_null("ibv_create_srq, SGEs", ibv_create_srq(pd, &init));
	is_null("ibv_create_srq_ex, no PD", ibv_create_srq_ex(context, &ex));
	ex.comp_mask |= IBV_SRQ_INIT_ATTR_PD | 1u << 30;
	ex.pd = pd;
	is_null("ibv_create_srq_ex, mask", ibv_create_srq_ex(context, &ex));
	fails("ibv_modify_srq, limit", ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.max_wr = UINT32_MAX / 2;
	fails("ibv_modify_srq, requests", ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	fails("ibv_get_srq_num, basic", ibv_get_srq_num(srq, &number));
	fails("ibv_post_srq_recv, SGEs", ibv_post_srq_recv(srq, &wr, &bad));
	wr.num_sge = 1;
	errno = STALE;
	for (i = 0, ret = 0; i < 1 << 16 && ret == 0; i++)
		ret = ibv_post_srq_recv(srq, &wr, &bad);
	print_failure("ibv_post_srq_recv, full", ret);
	HOLDS(ibv_destroy_srq(srq) == 0);
}

static void
address_handles(void)
{
	struct ibv_ah_attr attr = {.port_num = 0, .is_global = 1};

	HOLDS(ibv_query_gid(context, 1, 0, &attr.grh.dgid) == 0);
	is_null("ibv_create_ah, port 0", ibv_create_ah(pd, &attr));
	attr.port_num = 9;
	is_null("ibv_create_ah, port 9", ibv_create_ah(pd, &attr));
	attr.port_num = 1;
	attr.grh.sgid_index = 200;
	is_null("ibv_create_ah, GID index", ibv_create_ah(pd, &attr));
}

static void
windows(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *two;

	is_null("ibv_alloc_mw, type 0", ibv_alloc_mw(pd, (enum ibv_mw_type)0));
	is_null("ibv_alloc_mw, type 9", ibv_alloc_mw(pd, (enum ibv_mw_type)9));
	two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	HOLDS(mw != NULL && two != NULL);
	HOLDS(ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(two) == 0);
}

/* Objects that Ethernet QPs use. */
static void
not_supported(void)
{
	struct ibv_wq_init_attr wq = {
			.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_action_esp_attr esp = {0};
	struct ibv_async_event event;

	is_null("ibv_create_wq", ibv_create_wq(context, &wq));
	is_null("ibv_create_rwq_ind_table", ibv_create_rwq_ind_table(context, &table));
	is_null("ibv_create_counters", ibv_create_counters(context, &counters));
	is_null("ibv_create_flow_action_esp", ibv_create_flow_action_esp(context, &esp));
	HOLDS(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
	fails("ibv_get_async_event, none", ibv_get_async_event(context, &event));
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2 && setvbuf(stdout, NULL, _IOLBF, 0) == 0);
	context = open_device(argv[1]);
	buf = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(buf != MAP_FAILED);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, PAGE, ALL);
	HOLDS(pd != NULL && cq != NULL && mr != NULL);
	devices();
	protection_domains();
	regions();
	device_memory();
	queue_pairs();
	completion_queues();
	shared_receive_queues();
	address_handles();
	windows();
	not_supported();
	queue_pairs_end();
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
	return 0;
}
