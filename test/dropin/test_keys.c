/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Keys and addresses of MRs and windows, as programs for NICs expect them. */

#include <sys/mman.h>

#include "own_qp.h"

#define PAGE   4096u
#define ACCESS (WRITABLE | IBV_ACCESS_MW_BIND)
#define TAG    0x5au
#define DEPTH  8u

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *buf; /* two pages */

/* WRITE bytes of the second page to an address, by an rkey. */
static enum ibv_wc_status
write_some(uint32_t length, uint64_t addr, uint32_t rkey)
{
	return write_to(qp, (struct ibv_sge){(uintptr_t)buf + PAGE, length, mr->lkey}, addr, rkey);
}

static void
create(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_BIND_MW,
			.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1}};

	buf = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(buf != MAP_FAILED);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, 2 * PAGE, ACCESS);
	init.pd = pd;
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp_ex(context, &init);
	HOLDS(pd != NULL && cq != NULL && mr != NULL && qp != NULL);
	connect_own(qp);
}

/* Bindings of two windows in turn, more than the queue has space for: the rest changes nothing. */
static void
rkey_is_of_the_last_accepted_binding(void)
{
	struct ibv_mw *mw[2] = {ibv_alloc_mw(pd, IBV_MW_TYPE_2), ibv_alloc_mw(pd, IBV_MW_TYPE_2)};
	struct ibv_send_wr wr[4 * DEPTH], *bad;
	uint32_t index[2], i, accepted;

	HOLDS(mw[0] != NULL && mw[1] != NULL);
	for (i = 0; i < 2; i++)
		index[i] = mw[i]->rkey & ~0xffu;
	memset(wr, 0, sizeof(wr));
	for (i = 0; i < 4 * DEPTH; i++) {
		wr[i].opcode = IBV_WR_BIND_MW;
		wr[i].next = i + 1 < 4 * DEPTH ? &wr[i + 1] : NULL;
		wr[i].bind_mw.mw = mw[i % 2];
		wr[i].bind_mw.rkey = TAG + 1 + i;
		wr[i].bind_mw.bind_info = (struct ibv_mw_bind_info){
				mr, (uintptr_t)buf, PAGE, IBV_ACCESS_REMOTE_WRITE};
	}
	HOLDS(ibv_post_send(qp, wr, &bad) == ENOMEM);
	accepted = (uint32_t)(bad - wr);
	HOLDS(accepted >= 2 && accepted < 4 * DEPTH);
	for (i = accepted - 2; i < accepted; i++)
		HOLDS(mw[i % 2]->rkey == (index[i % 2] | ((TAG + 1 + i) & 0xff)));
	reconnect_own(qp);
	HOLDS(ibv_dealloc_mw(mw[0]) == 0 && ibv_dealloc_mw(mw[1]) == 0);
}

/* As irdma's provider: 24 bits of the window, 8 of the request. */
static void
rkey_of_window_is_set_by_the_post(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2),
		      *other = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	const struct ibv_mw_bind_info info = {mr, (uintptr_t)buf, PAGE, IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_send_wr *bad, second = {.opcode = IBV_WR_BIND_MW},
				 wr = {.opcode = IBV_WR_BIND_MW,
						 .send_flags = IBV_SEND_SIGNALED,
						 .next = &second};
	uint32_t index, unbound;

	HOLDS(mw != NULL && other != NULL);
	index = mw->rkey & ~0xffu;
	unbound = other->rkey;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = 0x12345600 | TAG; /* only 8 bits are of the request */
	wr.bind_mw.bind_info = info;
	second.bind_mw.mw = other;
	second.bind_mw.rkey = TAG;
	second.bind_mw.bind_info = info;
	second.bind_mw.bind_info.mr = NULL; /* refused */
	HOLDS(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &second);
	HOLDS(mw->rkey == (index | TAG));
	HOLDS(other->rkey == unbound);
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(write_some(8, (uintptr_t)buf, mw->rkey) == IBV_WC_SUCCESS);

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, other, unbound + 1, &info);
	ibv_wr_abort(ex);
	HOLDS(other->rkey == unbound);
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, other, unbound + 1, &info);
	HOLDS(ibv_wr_complete(ex) == 0);
	HOLDS(other->rkey == ((unbound & ~0xffu) | ((unbound + 1) & 0xff)));
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(write_some(8, (uintptr_t)buf, other->rkey) == IBV_WC_SUCCESS);
	HOLDS(ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(other) == 0);
}

static void
mr_begins_at_its_iova(uint64_t iova)
{
	struct ibv_mr *at = ibv_reg_mr_iova(pd, buf, PAGE, iova, ACCESS);

	HOLDS(at != NULL);
	buf[PAGE] = (uint8_t)(iova + 1);
	buf[16] = 0;
	HOLDS(write_some(8, iova + 16, at->rkey) == IBV_WC_SUCCESS);
	HOLDS(buf[16] == (uint8_t)(iova + 1));
	HOLDS(write_some(8, iova + PAGE - 8, at->rkey) == IBV_WC_SUCCESS);
	HOLDS(write_some(8, iova + PAGE - 7, at->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(qp);
	HOLDS(write_some(8, (uintptr_t)buf + 16, at->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(qp);
	HOLDS(ibv_dereg_mr(at) == 0);
}

/* A window over an MR at 0 is in its addresses. */
static void
window_of_mr_at_0(void)
{
	struct ibv_mr *at = ibv_reg_mr_iova2(pd, buf, PAGE, 0, ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};

	HOLDS(at != NULL && mw != NULL);
	bind.bind_info = (struct ibv_mw_bind_info){at, 64, 64, IBV_ACCESS_REMOTE_WRITE};
	HOLDS(ibv_bind_mw(qp, mw, &bind) == 0);
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
	HOLDS(write_some(8, 64, mw->rkey) == IBV_WC_SUCCESS);
	HOLDS(write_some(8, 63, mw->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(qp);
	HOLDS(ibv_dealloc_mw(mw) == 0 && ibv_dereg_mr(at) == 0);
}

static void
mr_of_length_0_is_valid_for_no_byte(void)
{
	struct ibv_mr *none = ibv_reg_mr(pd, buf, 0, ACCESS),
		      *again = ibv_reg_mr(pd, buf, 0, ACCESS);

	HOLDS(none != NULL && again != NULL && none->length == 0);
	HOLDS(write_some(0, (uintptr_t)buf, none->rkey) == IBV_WC_SUCCESS);
	HOLDS(write_some(1, (uintptr_t)buf, none->rkey) == IBV_WC_REM_ACCESS_ERR);
	reconnect_own(qp);
	HOLDS(ibv_dereg_mr(none) == 0 && ibv_dereg_mr(again) == 0);
}

/* The kernel translates by pages. */
static void
iova_with_another_page_offset_is_refused(void)
{
	errno = 0;
	HOLDS(ibv_reg_mr_iova(pd, buf, 64, 8, ACCESS) == NULL && errno == EINVAL);
	errno = 0;
	HOLDS(ibv_reg_mr_iova2(pd, buf + 8, 64, 0, ACCESS) == NULL && errno == EINVAL);
	HOLDS(ibv_dereg_mr(ibv_reg_mr_iova(pd, buf + 8, 64, 8, ACCESS)) == 0);
}

int
main(void)
{
	create();
	rkey_of_window_is_set_by_the_post();
	rkey_is_of_the_last_accepted_binding();
	mr_begins_at_its_iova(0);
	mr_begins_at_its_iova(UINT64_C(0x123456789000));
	window_of_mr_at_0();
	iova_with_another_page_offset_is_refused();
	mr_of_length_0_is_valid_for_no_byte();
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0);
	return 0;
}
