/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of functions with a system call; see fake.h. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "fake.h"

/* As the header makes macros of them. */
#undef ibv_get_device_list
#undef ibv_query_port

struct fake fake;

static struct ibv_device fake_devices[2] = {
		{.name = "fake0", .dev_name = "uverbs0"},
		{.name = "fake1", .dev_name = "uverbs1"},
};
static struct fake_qp *fake_qps;
static struct fake_mr *fake_mrs;
static uint32_t fake_next;
static struct ibv_async_event fake_events[8];
static unsigned int fake_nb_events;
static struct ibv_context *fake_context;
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

void
fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.nb_devices = 1;
	fake.port_state = IBV_PORT_ACTIVE;
	fake.link_layer = IBV_LINK_LAYER_ETHERNET;
	fake.nb_gids = FAKE_NB_GIDS;
	fake.max_inline = 256;
	fake.max_objects = 16;
	fake.rereg_flags = IBV_REREG_MR_FLAGS_SUPPORTED;
	fake.odp_general = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	fake.odp_rc = 0x3f; /* with an SRQ's receives */
	fake_nb_events = 0;
}

bool
fake_fails(const char *name)
{
	fake.nb_calls++;
	if (fake.nb_calls != fake.fail_at &&
			(fake.fail_name == NULL || strcmp(fake.fail_name, name) != 0))
		return false;
	fake.is_failed = true;
	errno = fake.fail_errno;
	return true;
}

void
fake_crash(const char *what)
{
	fprintf(stderr, "fake: %s\n", what);
	fake.nb_crashes++;
}

void *
fake_new(const char *name, size_t size)
{
	void *object;

	if (fake_fails(name))
		return NULL;
	object = calloc(1, size);
	if (object != NULL)
		fake.nb_live++;
	return object;
}

/* It remains reachable for the leak check. */
bool
fake_keeps(const char *name, void *object)
{
	static void *kept[64];
	static unsigned int nb;

	if (!fake_fails(name))
		return false;
	fake.is_release_failed = true;
	kept[nb++ % 64] = object;
	return kept[0] != NULL;
}

int
fake_delete(void *object)
{
	free(object);
	fake.nb_live--;
	return 0;
}

static int
fake_free(const char *name, void *object)
{
	if (fake_keeps(name, object))
		return errno;
	return fake_delete(object);
}

/* That of libc for all the program, but for the files of our devices. */
int
access(const char *path, int mode)
{
	if (strncmp(path, "/dev/infiniband/", strlen("/dev/infiniband/")) != 0)
		return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
	errno = fake.access_errno;
	return errno == 0 ? 0 : -1;
}

struct ibv_device **
ibv_get_device_list(int *nb)
{
	struct ibv_device **list;
	unsigned int i;

	if (fake.list_errno != 0) {
		errno = fake.list_errno;
		return NULL;
	}
	list = fake_new("get_device_list", sizeof(struct ibv_device *[3]));
	if (list == NULL)
		return NULL;
	for (i = 0; i < fake.nb_devices; i++)
		list[i] = &fake_devices[i];
	*nb = (int)fake.nb_devices;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
	fake.nb_live--;
}

static int
fake_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	RTE_SET_USED(cq);
	if (fake_fails("modify_cq"))
		return errno;
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	fake.moderation = attr->moderate;
	return 0;
}

static int
fake_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr *orig = &attr->orig_attr;

	RTE_SET_USED(context);
	RTE_SET_USED(input);
	if (fake_fails("query_device"))
		return errno;
	memset(attr, 0, size);
	strcpy(orig->fw_ver, "1.0");
	orig->vendor_id = fake.vendor_id;
	orig->node_guid = htobe64(UINT64_C(0x0102030405060708));
	orig->max_mr_size = UINT64_C(1) << 40;
	orig->max_pd = orig->max_cq = orig->max_qp = orig->max_mw = fake.max_objects;
	orig->max_mr = 2 * fake.max_objects;
	orig->max_cqe = 1024;
	orig->max_qp_wr = FAKE_QUEUE;
	orig->max_mcast_grp = fake.has_no_mcast ? 0 : FAKE_GROUPS;
	orig->max_mcast_qp_attach = 2;
	orig->max_total_mcast_qp_attach = 2 * FAKE_GROUPS;
	orig->max_sge = 32;
	if (fake.has_srq) {
		orig->max_srq = 4;
		orig->max_srq_wr = FAKE_QUEUE;
		orig->max_srq_sge = 4;
		orig->device_cap_flags = IBV_DEVICE_SRQ_RESIZE;
	}
	if (fake.has_xrc)
		orig->device_cap_flags |= IBV_DEVICE_XRC;
	orig->max_qp_rd_atom = orig->max_qp_init_rd_atom = 128;
	orig->phys_port_cnt = fake.nb_other_gids == 0 ? 1 : 2;
	attr->odp_caps.general_caps = fake.odp_general;
	attr->max_dm_size = fake.max_dm_size;
	attr->completion_timestamp_mask = fake.timestamp_mask;
	attr->hca_core_clock = 156250;
	attr->packet_pacing_caps.qp_rate_limit_max = fake.max_rate;
	attr->packet_pacing_caps.supported_qpts = 1u << IBV_QPT_RC;
	attr->cq_mod_caps.max_cq_count = attr->cq_mod_caps.max_cq_period = fake.max_cq_period;
	attr->odp_caps.per_transport_caps.rc_odp_caps = fake.odp_rc;
	attr->odp_caps.per_transport_caps.ud_odp_caps = fake.odp_rc;
	return 0;
}

static int
fake_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	RTE_SET_USED(context);
	if (fake_fails("query_port"))
		return errno;
	memset(attr, 0, size);
	attr->state = (enum ibv_port_state)fake.port_state;
	attr->active_mtu = IBV_MTU_1024;
	attr->max_mtu = IBV_MTU_4096;
	attr->pkey_tbl_len = 1;
	attr->active_speed = 32;
	attr->max_msg_sz = 1u << 30;
	attr->link_layer = fake.link_layer;
	attr->port_cap_flags = 0x10000;
	attr->port_cap_flags2 = 0x20;
	attr->bad_pkey_cntr = 2;
	attr->qkey_viol_cntr = 3;
	attr->lid = 4;
	attr->sm_lid = 5;
	attr->lmc = 6;
	attr->sm_sl = 7;
	attr->max_vl_num = 8;
	attr->subnet_timeout = 9;
	attr->init_type_reply = 10;
	attr->active_width = 11;
	attr->phys_state = 12;
	attr->flags = 13;
	attr->gid_tbl_len = (int)(port == 1 ? fake.nb_gids : fake.nb_other_gids);
	return 0;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	RTE_SET_USED(context);
	RTE_SET_USED(attr);
	return EOPNOTSUPP;
}

int
ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	RTE_SET_USED(context);
	RTE_SET_USED(port);
	RTE_SET_USED(attr);
	return EOPNOTSUPP;
}

static struct ibv_qp *fake_create_qp_ex(
		struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct verbs_context *ctx = fake_new("open_device", sizeof(*ctx));

	if (ctx == NULL)
		return NULL;
	ctx->sz = sizeof(*ctx);
	ctx->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->context.device = device;
	ctx->context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	ctx->query_device_ex = fake_query_device_ex;
	ctx->modify_cq = fake_modify_cq;
	ctx->query_port = fake_query_port;
	ctx->create_qp_ex = fake_create_qp_ex;
	fake_data_ops(&ctx->context);
	fake_srq_ops(&ctx->context);
	fake_xrc_ops(ctx);
	fake_channel_ops(&ctx->context);
	fake_mw_ops(&ctx->context);
	fake_odp_ops(ctx);
	fake_dm_ops(ctx);
	fake_cq_ops(ctx);
	fake_context = &ctx->context;
	return &ctx->context;
}

int
ibv_close_device(struct ibv_context *context)
{
	int fd = context->async_fd, ret = fake_free("close_device", verbs_get_ctx(context));

	if (ret == 0)
		close(fd);
	return ret;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = fake_new("alloc_pd", sizeof(*pd));

	if (pd != NULL) {
		pd->context = context;
		pd->handle = ++fake_next;
	}
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	return fake_free("dealloc_pd", pd);
}

uint32_t
fake_new_key(void)
{
	return ++fake_next << 8;
}

static struct ibv_mr *
fake_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct fake_mr *mr;

	fake.access = access;
	if ((fake.has_no_relaxed && (access & IBV_ACCESS_OPTIONAL_RANGE) != 0) ||
			(fake.has_no_atomic && (access & IBV_ACCESS_REMOTE_ATOMIC) != 0) ||
			!fake_odp_takes(addr, length, access)) {
		errno = EINVAL;
		return NULL;
	}
	mr = fake_new("reg_mr", sizeof(*mr));
	if (mr == NULL)
		return NULL;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.lkey = mr->ibv.rkey = fake_new_key();
	mr->iova = iova;
	mr->access = access;
	mr->next = fake_mrs;
	fake_mrs = mr;
	return &mr->ibv;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (!fake.is_device_mapping)
		return fake_reg(pd, addr, length, iova, access);
	errno = EFAULT;
	return NULL;
}

/* As in libibverbs, its address is the offset. */
struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		int access)
{
	if (fake.has_dmabuf && fcntl(fd, F_GETFD) >= 0)
		return fake_reg(pd, (void *)(uintptr_t)offset, length, iova, (unsigned int)access);
	errno = EOPNOTSUPP;
	return NULL;
}

/* The state after each of the five results is that of libibverbs. */
int
ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		int access)
{
	struct fake_mr *mr = (struct fake_mr *)ibv;

	if (fake_fails("rereg_mr"))
		return IBV_REREG_MR_ERR_CMD;
	if (((unsigned int)flags & ~fake.rereg_flags) != 0) {
		errno = EOPNOTSUPP;
		return IBV_REREG_MR_ERR_CMD;
	}
	if ((access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) ||
			((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 &&
					(addr == NULL || length == 0))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	errno = fake.fail_errno;
	if (fake.rereg_result != 0 && fake.rereg_result != IBV_REREG_MR_ERR_DO_FORK_OLD) {
		if (fake.rereg_result <= IBV_REREG_MR_ERR_CMD)
			mr->access = mr->ibv.lkey = mr->ibv.rkey = 0;
		return fake.rereg_result;
	}
	if ((flags & IBV_REREG_MR_CHANGE_PD) != 0)
		mr->ibv.pd = pd;
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0)
		mr->access = (unsigned int)access;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
		mr->ibv.addr = addr;
		mr->ibv.length = length;
		mr->iova = (uintptr_t)addr;
	}
	if (fake.has_new_keys)
		mr->ibv.lkey = mr->ibv.rkey = fake_new_key();
	return fake.rereg_result;
}

int
ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct fake_mr **at = &fake_mrs, *mr = (struct fake_mr *)ibv;

	if (mr->nb_mw != 0)
		return EINVAL;
	if (fake_keeps("dereg_mr", mr))
		return errno;
	while (*at != mr)
		at = &(*at)->next;
	*at = mr->next;
	return fake_delete(mr);
}

struct fake_mr *
fake_mr_find(uint32_t key)
{
	struct fake_mr *mr = fake_mrs;

	while (mr != NULL && mr->ibv.lkey != key)
		mr = mr->next;
	return mr;
}

static struct ibv_qp *
fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	bool is_ex = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
	bool is_refused = is_ex &&
			(fake.has_no_ex ||
					(fake.has_no_mw_ex &&
							attr->send_ops_flags &
									IBV_QP_EX_WITH_BIND_MW));
	struct fake_qp *qp;

	is_refused |= fake.has_no_uc && attr->qp_type == IBV_QPT_UC;
	is_refused |= fake.has_no_ud && attr->qp_type == IBV_QPT_UD;
	if (is_refused || attr->cap.max_inline_data > fake.max_inline) {
		errno = is_refused ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	qp = fake_new("create_qp", sizeof(*qp));
	if (qp == NULL)
		return NULL;
	qp->ex.qp_base.context = context;
	qp->ex.qp_base.pd = attr->pd;
	qp->ex.qp_base.send_cq = attr->send_cq;
	qp->ex.qp_base.recv_cq = attr->recv_cq;
	qp->ex.qp_base.qp_num = ++fake_next;
	qp->ex.qp_base.qp_type = attr->qp_type;
	qp->init = *attr;
	if (is_ex)
		fake_ex_ops(&qp->ex);
	qp->next = fake_qps;
	fake_qps = qp;
	return &qp->ex.qp_base;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex;

	memset(&ex, 0, sizeof(ex));
	memcpy(&ex, attr, sizeof(*attr));
	ex.pd = pd;
	return fake_create_qp_ex(pd->context, &ex);
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;

	return ex->wr_start != NULL ? ex : NULL;
}

static int
fake_unlink_qp(struct fake_qp *qp)
{
	struct fake_qp **at = &fake_qps;

	while (*at != qp)
		at = &(*at)->next;
	*at = qp->next;
	free(qp->mlx5);
	free(qp);
	return 0;
}

/* The last handle of a QP destroys it. */
static int
fake_close_qp(struct fake_qp *handle)
{
	struct fake_qp *qp = handle->opened;

	if (--qp->nb_openers == 0 && qp->is_left)
		fake_unlink_qp(qp);
	else if (qp->opener == handle)
		qp->opener = NULL;
	return fake_delete(handle);
}

int
ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	if (fake_nb_bound_on(qp) != 0 && !fake.has_rxe_windows)
		return EBUSY;
	if (fake_nb_bound_on(qp) != 0)
		fake_crash("a QP is destroyed before its windows");
	if (qp->nb_groups != 0)
		return EBUSY;
	if (fake_keeps("destroy_qp", qp))
		return errno;
	if (qp->opened != NULL)
		return fake_close_qp(qp);
	if (fake.is_run_at_end)
		fake_run_held(ibv->qp_num, FAKE_QUEUE);
	fake.nb_live--;
	qp->is_left = qp->nb_openers != 0;
	return qp->is_left ? 0 : fake_unlink_qp(qp);
}

struct fake_qp *
fake_qp_find(uint32_t qp_num)
{
	struct fake_qp *qp = fake_qps;

	while (qp != NULL && qp->ex.qp_base.qp_num != qp_num)
		qp = qp->next;
	return qp;
}

int
ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = fake_qp_of_ibv(ibv);

	if (fake_fails("modify_qp"))
		return errno;
	/* As ib_modify_qp_is_ok() of the kernel. */
	if ((mask & IBV_QP_CUR_STATE) != 0 && attr->qp_state != IBV_QPS_RTS)
		return EINVAL;
	/* As of rdma_rxe: no route. */
	if ((mask & IBV_QP_AV) != 0 && attr->ah_attr.is_global &&
			attr->ah_attr.grh.dgid.global.subnet_prefix == 0 &&
			attr->ah_attr.grh.dgid.global.interface_id == 0) {
		errno = ENETUNREACH;
		return errno;
	}
	if ((mask & IBV_QP_QKEY) != 0)
		qp->qkey = attr->qkey;
	if ((mask & IBV_QP_DEST_QPN) != 0)
		qp->dest = attr->dest_qp_num;
	qp->mask = mask;
	qp->attr = *attr;
	if ((mask & IBV_QP_AV) != 0)
		qp->path = *attr;
	if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
		qp->access = attr->qp_access_flags;
	if (attr->qp_state == IBV_QPS_ERR)
		fake_qp_error(qp);
	if (attr->qp_state == IBV_QPS_RESET) {
		fake_qp_drop(qp);
		qp->access = 0;
	}
	qp->ex.qp_base.state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_RESET && fake.nb_late_errors != 0) {
		fake.nb_late_errors--;
		qp->ex.qp_base.state = IBV_QPS_ERR;
	}
	return 0;
}

int
ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	const struct fake_qp *qp = fake_qp_of_ibv(ibv);

	RTE_SET_USED(init);
	if (fake_fails("query_qp"))
		return errno;
	*attr = qp->attr;
	attr->qp_state = qp->ex.qp_base.state;
	attr->qkey = qp->qkey;
	if ((mask & IBV_QP_ACCESS_FLAGS) == 0)
		return 0;
	attr->qp_access_flags = qp->access;
	attr->dest_qp_num = qp->dest;
	attr->ah_attr = qp->path.ah_attr;
	attr->path_mtu = qp->path.path_mtu;
	attr->rq_psn = qp->path.rq_psn;
	return 0;
}

void
fake_event(enum ibv_event_type type, struct ibv_cq *cq, struct ibv_qp *qp, int port)
{
	struct ibv_async_event event = {.event_type = type};
	uint64_t one = 1;

	if (cq != NULL)
		event.element.cq = cq;
	else if (qp != NULL)
		event.element.qp = qp;
	else
		event.element.port_num = port;
	pthread_mutex_lock(&fake_lock);
	fake_events[fake_nb_events++] = event;
	pthread_mutex_unlock(&fake_lock);
	if (write(fake_context->async_fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* The object of the next event is destroyed, and the event withdrawn. */
static bool
fake_is_withdrawn(const struct ibv_context *context)
{
	uint64_t one;

	if (__atomic_load_n(&fake.nb_withdrawn, __ATOMIC_RELAXED) == 0)
		return false;
	if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	pthread_mutex_lock(&fake_lock);
	fake_nb_events--;
	memmove(fake_events, fake_events + 1, fake_nb_events * sizeof(fake_events[0]));
	pthread_mutex_unlock(&fake_lock);
	if ((fcntl(context->async_fd, F_GETFL) & O_NONBLOCK) == 0)
		fake_crash("a read of a withdrawn event blocks");
	__atomic_sub_fetch(&fake.nb_withdrawn, 1, __ATOMIC_RELEASE);
	return true;
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	uint64_t one;

	if (fake_is_withdrawn(context)) {
		errno = EAGAIN;
		return -1;
	}
	if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	pthread_mutex_lock(&fake_lock);
	*event = fake_events[0];
	fake_nb_events--;
	memmove(fake_events, fake_events + 1, fake_nb_events * sizeof(*event));
	pthread_mutex_unlock(&fake_lock);
	__atomic_add_fetch(&fake.nb_unacked, 1, __ATOMIC_RELAXED);
	return 0;
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	RTE_SET_USED(event);
	__atomic_sub_fetch(&fake.nb_unacked, 1, __ATOMIC_RELAXED);
}

const char *
ibv_event_type_str(enum ibv_event_type type)
{
	RTE_SET_USED(type);
	return "an event";
}
