/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by programs of verbs: a device by its name, QPs connected over LIDs, WRITEs, and all
 * objects that one QP needs.
 */

#ifndef OWN_QP_H
#define OWN_QP_H

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../holds.h"

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Attributes that the transitions of a QP of RC set. */
#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
			IBV_QP_MAX_QP_RD_ATOMIC)

static inline struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	HOLDS(list != NULL);
	for (i = 0; list[i] != NULL && context == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	HOLDS(context != NULL);
	return context;
}

/* A QP with one CQ, and an SRQ or NULL; NULL with errno. */
static inline struct ibv_qp *
create_qp_of(enum ibv_qp_type type, struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq,
		struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
			.qp_type = type, .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = cap};

	return ibv_create_qp(pd, &init);
}

/* A QP of RC whose queues have that many requests of one SGE; NULL with errno. */
static inline struct ibv_qp *
create_rc(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t depth)
{
	return create_qp_of(IBV_QPT_RC, pd, cq, NULL, (struct ibv_qp_cap){depth, depth, 1, 1, 0});
}

/* Move a QP of UD from RESET to RTS, at that port. */
static inline void
start_ud_at(struct ibv_qp *qp, uint32_t qkey, uint8_t port_num)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = port_num, .qkey = qkey};

	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
	attr.qp_state = IBV_QPS_RTR;
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

static inline void
start_ud(struct ibv_qp *qp, uint32_t qkey)
{
	start_ud_at(qp, qkey, 1);
}

/*
 * Move a QP from RESET to RTS. Its peer is a QP of the process with that LID: attr has dest_qp_num,
 * and what else should not be 0. By LID, no address handle needs a GID.
 */
static inline void
connect_qp_at(struct ibv_qp *qp, struct ibv_qp_attr attr, uint16_t dlid)
{
	attr.port_num = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.dlid = dlid;
	attr.qp_state = IBV_QPS_INIT;
	HOLDS(ibv_modify_qp(qp, &attr, INIT_MASK) == 0);
	attr.qp_state = IBV_QPS_RTR;
	HOLDS(ibv_modify_qp(qp, &attr, RTR_MASK) == 0);
	attr.qp_state = IBV_QPS_RTS;
	HOLDS(ibv_modify_qp(qp, &attr, RTS_MASK) == 0);
}

/* The same with a peer of this process. */
static inline void
connect_qp(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	struct ibv_port_attr port;

	HOLDS(ibv_query_port(qp->context, 1, &port) == 0);
	connect_qp_at(qp, attr, port.lid);
}

/* Connect a QP with itself, for WRITEs. */
static inline void
connect_own_for(struct ibv_qp *qp, uint8_t timeout, uint8_t retry_cnt)
{
	const struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = qp->qp_num,
			.timeout = timeout,
			.retry_cnt = retry_cnt,
			.max_rd_atomic = 1,
			.max_dest_rd_atomic = 1};

	connect_qp(qp, attr);
}

static inline void
connect_own(struct ibv_qp *qp)
{
	connect_own_for(qp, 0, 0);
}

static inline void
reset_qp(struct ibv_qp *qp)
{
	HOLDS(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE) ==
			0);
}

/* The same after an error. */
static inline void
reconnect_own(struct ibv_qp *qp)
{
	reset_qp(qp);
	connect_own(qp);
}

/* Whether a thread of this process sleeps, as in a system call that waits for a lock. */
static inline bool
is_asleep(pid_t tid)
{
	char name[64], line[256] = "";
	const char *end;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	fd = open(name, O_RDONLY);
	HOLDS(fd >= 0);
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	end = strrchr(line, ')');
	return n > 0 && end != NULL && end[2] == 'S';
}

/* A device, and a QP of it connected with itself. */
struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* WRITABLE */
	struct ibv_qp *qp;
};

static inline struct objects
open_objects_of(const char *device, void *mem, size_t size, uint32_t depth)
{
	struct objects all;

	all.context = open_device(device);
	all.pd = ibv_alloc_pd(all.context);
	all.cq = ibv_create_cq(all.context, 64, NULL, NULL, 0);
	HOLDS(all.pd != NULL && all.cq != NULL);
	all.mr = ibv_reg_mr(all.pd, mem, size, WRITABLE);
	all.qp = create_rc(all.pd, all.cq, depth);
	HOLDS(all.mr != NULL && all.qp != NULL);
	connect_own(all.qp);
	return all;
}

static inline struct objects
open_objects(void *mem, size_t size, uint32_t depth)
{
	return open_objects_of("soft0", mem, size, depth);
}

static inline void
close_objects(const struct objects *all)
{
	HOLDS(ibv_destroy_qp(all->qp) == 0 && ibv_dereg_mr(all->mr) == 0);
	HOLDS(ibv_destroy_cq(all->cq) == 0 && ibv_dealloc_pd(all->pd) == 0);
	HOLDS(ibv_close_device(all->context) == 0);
}

/* The next completion of a CQ. */
static inline struct ibv_wc
wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	HOLDS(n == 1);
	return wc;
}

/* Post a signaled WRITE; the result of ibv_post_send(). */
static inline int
post_write_to(struct ibv_qp *qp, struct ibv_sge from, uint64_t to, uint32_t rkey, uint64_t wr_id)
{
	struct ibv_send_wr *bad,
			wr = {.wr_id = wr_id,
					.opcode = IBV_WR_RDMA_WRITE,
					.sg_list = &from,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = {to, rkey}};

	return ibv_post_send(qp, &wr, &bad);
}

/* WRITE the first half of an MR to its second half. */
static inline int
post_write(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id)
{
	const uint32_t half = (uint32_t)mr->length / 2;

	return post_write_to(qp, (struct ibv_sge){(uintptr_t)mr->addr, half, mr->lkey},
			(uintptr_t)mr->addr + half, mr->rkey, wr_id);
}

/* A WRITE to its end; the status. */
static inline enum ibv_wc_status
write_to(struct ibv_qp *qp, struct ibv_sge from, uint64_t to, uint32_t rkey)
{
	HOLDS(post_write_to(qp, from, to, rkey, 0) == 0);
	return wait_wc(qp->send_cq).status;
}

struct cancelled {
	void (*call)(void *arg);
	void *arg;
	bool has_returned;
};

static inline void *
call_cancelled(void *arg)
{
	struct cancelled *cancelled = arg;

	pthread_cancel(pthread_self());
	cancelled->call(cancelled->arg);
	cancelled->has_returned = true;
	pthread_testcancel();
	return NULL;
}

/* Call a function in a thread that is cancelled; false: it is a cancellation point. */
static inline bool
returns_cancelled(void (*call)(void *arg), void *arg)
{
	struct cancelled cancelled = {call, arg, false};
	pthread_t thread;

	HOLDS(pthread_create(&thread, NULL, call_cancelled, &cancelled) == 0);
	HOLDS(pthread_join(thread, NULL) == 0);
	return cancelled.has_returned;
}

#endif /* OWN_QP_H */
