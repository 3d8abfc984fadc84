/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions called with NULL, freed, random and changed objects fail, with an errno that is also in
 * errno. */

#include "own_qp.h"

#define NEAR 8 /* bytes past the begin of an object */

/* The call fails with NULL and that errno. */
#define IS_NULL(call, err)                                                                         \
	do {                                                                                       \
		errno = 0;                                                                         \
		HOLDS((call) == NULL);                                                             \
		HOLDS(errno == (err));                                                             \
	} while (0)

/* The call returns that errno, and sets it. */
#define FAILS(call, err)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		HOLDS((call) == (err) && errno == (err));                                          \
	} while (0)

/* The call returns -1, and sets that errno. */
#define IS_MINUS_ONE(call, err)                                                                    \
	do {                                                                                       \
		errno = 0;                                                                         \
		HOLDS((call) == -1 && errno == (err));                                             \
	} while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_qp *qp;
static struct ibv_srq *srq;
static struct ibv_ah *ah;
static struct ibv_context_ops ops;
static uint8_t buf[4096];

static struct ibv_qp *
create_qp(struct ibv_pd *of, struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.send_cq = send_cq,
			.recv_cq = recv_cq,
			.cap = {4, 4, 1, 1, 0}};

	return ibv_create_qp(of, &init);
}

static uint16_t
port_lid(void)
{
	struct ibv_port_attr port;

	HOLDS(ibv_query_port(context, 1, &port) == 0);
	return port.lid;
}

static void
create(void)
{
	context = open_device("soft0");
	ibv_free_device_list(NULL);
	ops = context->ops;
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr.max_wr = 4});
	HOLDS(srq != NULL);
	ah = ibv_create_ah(pd, &(struct ibv_ah_attr){.dlid = port_lid(), .port_num = 1});
	HOLDS(ah != NULL);
	qp = create_qp(pd, cq, cq);
	HOLDS(pd != NULL && cq != NULL && mr != NULL && mw != NULL && qp != NULL);
}

/* As qperf does; a later list can have the same address. */
static void
list_is_freed_by_program(void)
{
	struct ibv_device **list;
	int i;

	for (i = 0; i < 3; i++) {
		list = ibv_get_device_list(NULL);
		HOLDS(list != NULL && list[0] != NULL);
		free(list);
	}
	list = ibv_get_device_list(NULL);
	ibv_free_device_list(list);
}

static void
bad_device(void *bad)
{
	IS_NULL(ibv_open_device(bad), ENODEV);
	HOLDS(ibv_get_device_guid(bad) == 0);
	HOLDS(ibv_get_device_index(bad) == -1);
	ibv_free_device_list(bad);
}

static void
bad_context(void *bad)
{
	struct _compat_ibv_port_attr *port = (void *)buf;
	struct ibv_device_attr attr;
	struct ibv_gid_entry entry;
	struct ibv_async_event event;
	union ibv_gid gid;
	__be16 pkey;

	HOLDS(ibv_query_device(bad, &attr) == ENOENT);
	FAILS((ibv_query_port)(bad, 1, port), ENOENT);
	IS_MINUS_ONE(ibv_query_gid(bad, 1, 0, &gid), EINVAL);
	HOLDS(_ibv_query_gid_ex(bad, 1, 0, &entry, 0, sizeof(entry)) == ENOENT);
	HOLDS(_ibv_query_gid_table(bad, &entry, 1, 0, sizeof(entry)) == -ENOENT);
	IS_MINUS_ONE(ibv_query_pkey(bad, 1, 0, &pkey), EINVAL);
	IS_MINUS_ONE(ibv_get_pkey_index(bad, 1, 0xffff), EINVAL);
	IS_MINUS_ONE(ibv_get_async_event(bad, &event), ENOENT);
	IS_MINUS_ONE(ibv_init_ah_from_wc(bad, 1, NULL, NULL, NULL), ENOENT);
	FAILS(ibv_resolve_eth_l2_from_gid(bad, NULL, NULL, NULL), ENOENT);
	IS_NULL(ibv_alloc_pd(bad), ENOENT);
	IS_NULL(ibv_create_cq(bad, 8, NULL, NULL, 0), ENOENT);
	IS_NULL(ibv_create_comp_channel(bad), ENOENT);
	IS_NULL(ibv_import_pd(bad, 1), ENOENT);
	IS_NULL(ibv_import_dm(bad, 1), ENOENT);
	FAILS(ibv_close_device(bad), ENOENT);
}

static void
bad_pd(void *bad)
{
	IS_NULL((ibv_reg_mr)(bad, buf, 8, 0), ENOENT);
	IS_NULL((ibv_reg_mr_iova)(bad, buf, 8, 0, 0), ENOENT);
	IS_NULL(ibv_reg_mr_iova2(bad, buf, 8, 0, 0), ENOENT);
	IS_NULL(ibv_reg_dmabuf_mr(bad, 0, 8, 0, -1, 0), ENOENT);
	IS_NULL(ibv_import_mr(bad, 1), ENOENT);
	IS_NULL(ibv_create_srq(bad, NULL), ENOENT);
	IS_NULL(ibv_create_ah(bad, NULL), ENOENT);
	IS_NULL(ibv_create_ah_from_wc(bad, NULL, NULL, 1), ENOENT);
	IS_NULL(create_qp(bad, cq, cq), ENOENT);
	IS_NULL(ops.alloc_mw(bad, IBV_MW_TYPE_1), ENOENT);
	HOLDS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, bad, NULL, 0, 0) != 0 && errno == ENOENT);
	ibv_unimport_pd(bad);
	FAILS(ibv_dealloc_pd(bad), ENOENT);
}

/* By control calls: posts and polls do not read the public part. */
static void
changed_mr(struct ibv_mr *bad)
{
	HOLDS(ibv_rereg_mr(bad, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	HOLDS(errno == ENOENT);
	ibv_unimport_mr(bad);
	FAILS(ibv_dereg_mr(bad), ENOENT);
}

static void
bad_mr(void *bad)
{
	struct ibv_mw_bind bind = {.bind_info = {bad, (uintptr_t)buf, 8, IBV_ACCESS_REMOTE_READ}};

	changed_mr(bad);
	HOLDS(bad == NULL || ops.bind_mw(qp, mw, &bind) == ENOENT);
}

static void
changed_mw(struct ibv_mw *bad)
{
	FAILS(ops.dealloc_mw(bad), ENOENT);
}

static void
bad_mw(void *bad)
{
	struct ibv_mw_bind bind = {.bind_info = {mr, (uintptr_t)buf, 8, IBV_ACCESS_REMOTE_READ}};

	changed_mw(bad);
	HOLDS(ops.bind_mw(qp, bad, &bind) == ENOENT);
}

static void
changed_cq(struct ibv_cq *bad)
{
	FAILS(ops.req_notify_cq(bad, 0), ENOENT);
	FAILS(ibv_resize_cq(bad, 16), ENOENT);
	ibv_ack_cq_events(bad, 1);
	ibv_ack_async_event(&(struct ibv_async_event){
			.element.cq = bad, .event_type = IBV_EVENT_CQ_ERR});
	ibv_ack_async_event(&(struct ibv_async_event){
			.element.cq = bad, .event_type = IBV_EVENT_QP_FATAL});
	IS_NULL(create_qp(pd, bad, cq), bad == NULL ? EINVAL : ENOENT);
	IS_NULL(create_qp(pd, cq, bad), bad == NULL ? EINVAL : ENOENT);
	FAILS(ibv_destroy_cq(bad), ENOENT);
}

static void
bad_cq(void *bad)
{
	struct ibv_wc wc;

	changed_cq(bad);
	HOLDS(ops.poll_cq(bad, 1, &wc) == -EINVAL);
}

static void
changed_qp(struct ibv_qp *bad)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_mw_bind bind = {0};
	struct ibv_ece ece = {0};
	union ibv_gid gid = {{0}};

	HOLDS(ibv_modify_qp(bad, &attr, IBV_QP_STATE) == ENOENT);
	HOLDS(ibv_query_qp(bad, &attr, IBV_QP_STATE, &init) == ENOENT);
	HOLDS(ops.bind_mw(bad, mw, &bind) == ENOENT);
	HOLDS(ibv_query_ece(bad, &ece) == ENOENT);
	HOLDS(ibv_set_ece(bad, &ece) == ENOENT);
	HOLDS(ibv_attach_mcast(bad, &gid, 0) == ENOENT);
	HOLDS(ibv_detach_mcast(bad, &gid, 0) == ENOENT);
	HOLDS(ibv_query_qp_data_in_order(bad, IBV_WR_SEND, 0) == 0);
	HOLDS(ibv_qp_to_qp_ex(bad) == NULL);
	FAILS(ibv_destroy_qp(bad), ENOENT);
}

static void
bad_qp(void *bad)
{
	struct ibv_send_wr *bad_send, send = {0};
	struct ibv_recv_wr *bad_recv, recv = {0};

	changed_qp(bad);
	HOLDS(ops.post_send(bad, &send, &bad_send) == EINVAL && bad_send == &send);
	HOLDS(ops.post_recv(bad, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
}

static void
bad_ah(void *bad)
{
	FAILS(ibv_destroy_ah(bad), ENOENT);
}

static void
changed_srq(struct ibv_srq *bad)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.send_cq = cq,
			.recv_cq = cq,
			.srq = bad,
			.cap.max_send_wr = 4};
	struct ibv_srq_attr attr = {0};

	HOLDS(ibv_modify_srq(bad, &attr, IBV_SRQ_LIMIT) == ENOENT);
	HOLDS(ibv_query_srq(bad, &attr) == ENOENT);
	if (bad != NULL)
		IS_NULL(ibv_create_qp(pd, &init), ENOENT);
	FAILS(ibv_destroy_srq(bad), ENOENT);
}

static void
bad_srq(void *bad)
{
	struct ibv_recv_wr *bad_recv, recv = {0};

	changed_srq(bad);
	HOLDS(ops.post_srq_recv(bad, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
}

/* Bad for every type. */
static void
bad_all(void *bad)
{
	bad_device(bad);
	bad_context(bad);
	bad_pd(bad);
	bad_mr(bad);
	bad_mw(bad);
	bad_cq(bad);
	bad_qp(bad);
	bad_srq(bad);
	bad_ah(bad);
}

/* With a public part that the program overwrote, control calls refuse the object. */
static void
garbled_pd(struct ibv_pd *bad)
{
	IS_NULL((ibv_reg_mr)(bad, buf, 8, 0), ENOENT);
	IS_NULL(ibv_create_srq(bad, &(struct ibv_srq_init_attr){.attr.max_wr = 1}), ENOENT);
	IS_NULL(ibv_create_ah(bad, &(struct ibv_ah_attr){.port_num = 1}), ENOENT);
	IS_NULL(create_qp(bad, cq, cq), ENOENT);
	IS_NULL(ops.alloc_mw(bad, IBV_MW_TYPE_1), ENOENT);
	HOLDS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, bad, NULL, 0, 0) != 0 && errno == ENOENT);
	FAILS(ibv_dealloc_pd(bad), ENOENT);
}

static void
garbled_cq(struct ibv_cq *bad)
{
	struct ibv_wc wc;

	FAILS(ibv_resize_cq(bad, 16), ENOENT);
	ibv_ack_cq_events(bad, 1);
	IS_NULL(create_qp(pd, bad, cq), ENOENT);
	FAILS(ibv_destroy_cq(bad), ENOENT);
	/* Polls use what the device has. */
	HOLDS(ops.poll_cq(bad, 1, &wc) == 0);
	HOLDS(ops.req_notify_cq(bad, 0) == 0);
}

static void
garbled_qp(struct ibv_qp *bad)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_SEND};
	struct ibv_qp_init_attr init;
	struct ibv_mw_bind bind = {0};

	FAILS(ibv_modify_qp(bad, &attr, IBV_QP_STATE), ENOENT);
	FAILS(ibv_query_qp(bad, &attr, IBV_QP_STATE, &init), ENOENT);
	FAILS(ops.bind_mw(bad, mw, &bind), ENOENT);
	FAILS(ibv_destroy_qp(bad), ENOENT);
	/* Of the QP itself, which is in the state RESET; one of UD would read an AH. */
	FAILS(ops.post_send(bad, &send, &bad_send), EINVAL);
}

static void
garbled_srq(struct ibv_srq *bad)
{
	struct ibv_srq_attr attr = {0};

	FAILS(ibv_modify_srq(bad, &attr, IBV_SRQ_LIMIT), ENOENT);
	FAILS(ibv_query_srq(bad, &attr), ENOENT);
	FAILS(ibv_destroy_srq(bad), ENOENT);
}

static void
garbled_channel(struct ibv_comp_channel *bad)
{
	struct ibv_cq *event_cq;
	void *event_context;

	IS_MINUS_ONE(ibv_get_cq_event(bad, &event_cq, &event_context), EINVAL);
	IS_NULL(ibv_create_cq(context, 8, NULL, bad, 0), EINVAL);
	FAILS(ibv_destroy_comp_channel(bad), ENOENT);
}

static void
garbled_td(struct ibv_td *bad)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = bad};

	IS_NULL(ibv_alloc_parent_domain(context, &attr), EINVAL);
	FAILS(ibv_dealloc_td(bad), ENOENT);
}

static void
garbled_dm(struct ibv_dm *bad)
{
	FAILS(bad->memcpy_to_dm(bad, 0, buf, 8), ENOENT);
	FAILS(bad->memcpy_from_dm(buf, bad, 0, 8), ENOENT);
	IS_NULL(ibv_reg_dm_mr(pd, bad, 0, 8, IBV_ACCESS_ZERO_BASED), ENOENT);
	FAILS(ibv_free_dm(bad), ENOENT);
}

static void
random_handles(void)
{
	uint64_t seed = 88172645463325252;
	int i;

	for (i = 0; i < 2000; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		/* Of any address, or near an object. */
		bad_all((void *)(uintptr_t)(seed >> (seed & 31)));
		bad_all((char *)qp + 1 + seed % 1000);
	}
	bad_all(NULL);
	bad_all(buf);
	bad_all((char *)context + NEAR);
	bad_all((char *)pd + NEAR);
}

/* Change the handle of an object, call with it, restore it. */
#define CHANGED(object, bad)                                                                       \
	do {                                                                                       \
		(object)->handle ^= 0x10001;                                                       \
		bad(object);                                                                       \
		(object)->handle ^= 0x10001;                                                       \
	} while (0)

static void
changed_handles(void)
{
	CHANGED(pd, bad_pd);
	CHANGED(mr, changed_mr);
	CHANGED(mw, changed_mw);
	CHANGED(cq, changed_cq);
	CHANGED(qp, changed_qp);
	CHANGED(srq, changed_srq);
	CHANGED(ah, bad_ah);
	/* Those of another type. */
	bad_pd(cq);
	bad_mr(qp);
	bad_mw(mr);
	bad_cq(pd);
	bad_qp(mw);
	bad_srq(qp);
	bad_ah(srq);
}

/* Overwrite a field of an object, call with it, restore it. */
#define GARBLED(object, field, value, bad)                                                         \
	do {                                                                                       \
		__typeof__((object)->field) was = (object)->field;                                 \
                                                                                                   \
		(object)->field = (value);                                                         \
		bad(object);                                                                       \
		(object)->field = was;                                                             \
	} while (0)

/* Fields that libibverbs would pass to the kernel, or read. */
static void
garbled_by_control_calls(struct ibv_context *other, struct ibv_pd *other_pd)
{
	struct ibv_context *contexts[] = {NULL, other, (struct ibv_context *)buf};
	struct ibv_pd *pds[] = {NULL, other_pd, (struct ibv_pd *)buf};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		GARBLED(pd, context, contexts[i], garbled_pd);
		GARBLED(mr, context, contexts[i], changed_mr);
		GARBLED(mw, context, contexts[i], changed_mw);
		GARBLED(cq, context, contexts[i], garbled_cq);
		GARBLED(qp, context, contexts[i], garbled_qp);
		GARBLED(srq, context, contexts[i], garbled_srq);
		GARBLED(ah, context, contexts[i], bad_ah);
		GARBLED(mr, pd, pds[i], changed_mr);
		GARBLED(mw, pd, pds[i], changed_mw);
		GARBLED(qp, pd, pds[i], garbled_qp);
		GARBLED(srq, pd, pds[i], garbled_srq);
		GARBLED(ah, pd, pds[i], bad_ah);
	}
	GARBLED(mr, lkey, mr->lkey + 1, changed_mr);
	GARBLED(mr, rkey, mr->rkey ^ 0x100, changed_mr);
	GARBLED(qp, qp_num, qp->qp_num + 1, garbled_qp);
	GARBLED(qp, send_cq, NULL, garbled_qp);
	GARBLED(qp, recv_cq, (struct ibv_cq *)buf, garbled_qp);
	GARBLED(qp, srq, srq, garbled_qp);
	GARBLED(qp, qp_type, IBV_QPT_UD, garbled_qp);
	GARBLED(cq, channel, (struct ibv_comp_channel *)buf, garbled_cq);
}

/* Channels, thread domains and device memory. */
static void
garbled_others(struct ibv_context *other)
{
	struct ibv_context *contexts[] = {NULL, other, (struct ibv_context *)buf};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
	struct ibv_dm *dm = ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){.length = 64});
	unsigned int i;

	HOLDS(channel != NULL && td != NULL && dm != NULL);
	for (i = 0; i < 3; i++)
		GARBLED(channel, context, contexts[i], garbled_channel);
	/* The functions of the header read it. */
	GARBLED(dm, context, other, garbled_dm);
	GARBLED(td, context, other, garbled_td);
	CHANGED(dm, garbled_dm);
	HOLDS(ibv_destroy_comp_channel(channel) == 0 && ibv_free_dm(dm) == 0);
	HOLDS(ibv_dealloc_td(td) == 0);
}

static void
null_arguments(void)
{
	struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_SEND, .num_sge = 1};
	struct ibv_recv_wr *bad_recv, recv = {.num_sge = 1};
	struct ibv_mw_bind bind = {.bind_info = {NULL, (uintptr_t)buf, 8, IBV_ACCESS_REMOTE_READ}};

	HOLDS(ops.bind_mw(qp, mw, &bind) == EINVAL);
	send.bind_mw.mw = mw;
	send.opcode = IBV_WR_BIND_MW;
	send.num_sge = 0;
	HOLDS(ops.post_send(qp, &send, &bad_send) == EINVAL && bad_send == &send);
	send.opcode = IBV_WR_SEND;
	send.num_sge = 1;
	FAILS(ibv_query_device(context, NULL), EINVAL);
	FAILS((ibv_query_port)(context, 1, NULL), EINVAL);
	IS_MINUS_ONE(ibv_query_gid(context, 1, 0, NULL), EINVAL);
	IS_MINUS_ONE(ibv_query_pkey(context, 1, 0, NULL), EINVAL);
	FAILS(_ibv_query_gid_ex(context, 1, 0, NULL, 0, sizeof(struct ibv_gid_entry)), EINVAL);
	IS_NULL(ibv_create_qp(pd, NULL), EINVAL);
	FAILS(ibv_modify_qp(qp, NULL, IBV_QP_STATE), EINVAL);
	FAILS(ibv_query_qp(qp, NULL, 0, NULL), EINVAL);
	IS_NULL(ibv_create_srq(pd, NULL), EINVAL);
	FAILS(ibv_modify_srq(srq, NULL, IBV_SRQ_LIMIT), EINVAL);
	FAILS(ibv_query_srq(srq, NULL), EINVAL);
	HOLDS(ops.post_srq_recv(srq, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	HOLDS(ops.post_srq_recv(srq, &recv, NULL) == EINVAL);
	FAILS(ops.bind_mw(qp, mw, NULL), EINVAL);
	HOLDS(ops.poll_cq(cq, 1, NULL) == -EINVAL);
	HOLDS(ops.post_send(qp, &send, &bad_send) == EINVAL && bad_send == &send);
	HOLDS(ops.post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	HOLDS(ops.post_send(qp, &send, NULL) == EINVAL);
	HOLDS(ops.post_recv(qp, &recv, NULL) == EINVAL);
}

int
main(void)
{
	struct ibv_context *other;
	struct ibv_pd *other_pd;

	create();
	list_is_freed_by_program();
	random_handles();
	changed_handles();
	other = open_device("soft0");
	other_pd = ibv_alloc_pd(other);
	HOLDS(other_pd != NULL);
	garbled_by_control_calls(other, other_pd);
	garbled_others(other);
	HOLDS(ibv_dealloc_pd(other_pd) == 0 && ibv_close_device(other) == 0);
	null_arguments();
	HOLDS(ibv_destroy_qp(qp) == 0);
	bad_qp(qp);
	qp = create_qp(pd, cq, cq);
	HOLDS(ops.dealloc_mw(mw) == 0);
	bad_mw(mw);
	mw = ops.alloc_mw(pd, IBV_MW_TYPE_1);
	HOLDS(ibv_dereg_mr(mr) == 0);
	bad_mr(mr);
	mr = NULL;
	HOLDS(ibv_destroy_srq(srq) == 0);
	bad_srq(srq);
	HOLDS(ibv_destroy_ah(ah) == 0);
	bad_ah(ah);
	HOLDS(ops.dealloc_mw(mw) == 0 && ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
	bad_cq(cq);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	bad_pd(pd);
	bad_context(context);
	printf("NULL, freed, random and changed objects were refused\n");
	return 0;
}
