/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv_core.so: the ibv_* functions of libibverbs for objects of a device of rmem.
 * librmem_ibv.so (ribv_preload.c) passes calls to it.
 *
 * Each function passes the objects of other devices to libibverbs. It calls the class (rmem_*),
 * never a driver.
 */

#ifndef RIBV_H
#define RIBV_H

#include <pthread.h>
#include <stdbool.h>

#include <rmem.h>
#include <rmem_fp.h>

#include "ribv_verbs.h"

#define RIBV_PORT      1
#define RIBV_LID       1
#define RIBV_PKEY      0xffff
#define RIBV_RD_ATOMIC 16

/* The definition of a function in libibverbs. */
#define RIBV_NEXT(name) ((__typeof__(&name))ribv_next(#name))

enum ribv_type {
	RIBV_PD = 1,
	RIBV_MR,
	RIBV_MW,
	RIBV_CQ,
	RIBV_QP,
};

struct ribv_pd {
	struct ibv_pd ibv;
	struct rmem_pd *pd;
};

struct ribv_mr {
	struct ibv_mr ibv;
	struct rmem_mr *mr;
};

struct ribv_mw {
	struct ibv_mw ibv;
	struct rmem_mw *mw;
};

struct ribv_cq {
	struct ibv_cq ibv;
	struct rmem_cq *cq;
	pthread_spinlock_t lock; /* of polls */
};

struct ribv_qp {
	struct ibv_qp ibv;
	struct rmem_qp *qp;
	struct ibv_qp_init_attr init;
	struct ibv_ah_attr ah;        /* as the program set it */
	unsigned int access;          /* the same */
	pthread_spinlock_t send_lock; /* of posts of send requests */
	pthread_spinlock_t recv_lock; /* of posts of receives */
};

/* ribv_env.c: the environment of the class. */
/* Start it, once for the process; 0 or an errno. */
int ribv_env_start(void);
/* Prepare the calling thread for posts and polls; false: no slot is left. */
bool ribv_env_attach(void);

/* ribv_obj.c */
extern ribv_next_t ribv_next;
/* The errno of a call of the class, as verbs has it. */
int ribv_errno(int ret);
/* NULL, with errno set. */
void *ribv_fail(int err);
/* Give an object a handle; false: no handle is left, with errno set. */
bool ribv_enter(void *obj, enum ribv_type type, uint32_t *handle);
void ribv_leave(uint32_t handle);
/* Whether the handle is that of the object: a program may have changed or freed it. */
bool ribv_is(const void *obj, enum ribv_type type, uint32_t handle);

/* ribv_dev.c */
extern struct rmem_dev *ribv_dev;
bool ribv_is_ours(const struct ibv_context *context);
void ribv_gid(union ibv_gid *gid);

/* Operations that programs call through the context. */
struct ibv_mw *ribv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int ribv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int ribv_dealloc_mw(struct ibv_mw *mw);
int ribv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int ribv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int ribv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int ribv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_qp *ribv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);

#endif /* RIBV_H */
