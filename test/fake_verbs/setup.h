/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fixture of cases over the fakes: device "verbs0" over "fake0" with two connected sides.
 */

#ifndef SETUP_H
#define SETUP_H

#include <rmem.h>

#include "../test.h"
#include "fake.h"

#define VT_BUF    8192u
#define VT_HALF   (VT_BUF / 2)
#define VT_DEPTH  64u
#define VT_ACCESS (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)

struct verbs_test {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq_a;
	struct rmem_cq *cq_b;
	struct rmem_qp *a;
	struct rmem_qp *b;
	struct rmem_mr *mr;
	/* By vt_open_mw(). */
	struct rmem_mr *mw_mr; /* whole buffer, with MW_BIND */
	struct rmem_mw *one;
	struct rmem_mw *two;
	uint8_t *buf; /* VT_BUF bytes; the second half is the target */
};

extern struct verbs_test vt;

/* Create all objects up to the first failure; its errno. */
int vt_open(void);
/* The same, with windows of both types. */
int vt_open_mw(void);
/* Release all objects; the errno of a release that failed. */
int vt_close(void);

/* Set-up and tear-down of a case. */
void vt_setup_fake(void);    /* a fake, no device */
void vt_setup(void);         /* extended QPs */
void vt_setup_classic(void); /* ibv_post_send() alone */
void vt_setup_mw(void);      /* windows as of rdma_rxe, with mw_quirk */
void vt_setup_mw_classic(void);
void vt_setup_mw_plain(void); /* conforming windows, without mw_quirk */
void vt_setup_mw_plain_classic(void);
void vt_teardown(void);

/* Capture log lines at the default level; valid until the next call. */
void vt_log_begin(void);
const char *vt_log_end(void);

/* Let each call of a function fail with an errno. */
void vt_fail(const char *name, int kernel);
/* A call that returns -error when that function fails. */
#define VT_FAILS(name, kernel, call, error)                                                        \
	do {                                                                                       \
		vt_fail(name, kernel);                                                             \
		TEST_ERR(call, error);                                                             \
		fake.fail_name = NULL;                                                             \
	} while (0)

int vt_connect(void);
/* Reset both QPs, discard completions, and connect them again. */
void vt_reconnect(void);
/* Wait until a post reports that the device was removed. */
void vt_until_gone(void);
/* Signaled BIND_MW of a type 2 window to the second half of the buffer, and LOCAL_INV. */
struct rmem_send_wr vt_bind_wr(struct rmem_mw *mw);
struct rmem_send_wr vt_inv_wr(uint32_t rkey);
/* A binding of a type 1 window to the last length bytes of the buffer; 0 unbinds. */
struct rmem_mw_bind vt_bind(uint64_t length);
struct rmem_sge vt_sge(uint32_t offset, uint32_t length);
/* A signaled request from the first half of the buffer to the second half. */
struct rmem_send_wr vt_wr(uint8_t opcode, const struct rmem_sge *sge);
/* Post a request and poll its completion: the status, or -errno of the post or poll. */
int vt_run(const struct rmem_send_wr *wr);
int vt_wait(struct rmem_cq *cq, struct rmem_wc *wc);
/* Bind or invalidate the type 2 window vt.two, or bind vt.one: executed by vt_run(). */
int vt_bind_two(void);
int vt_inv(uint32_t rkey);
int vt_bind_one(uint64_t length);
/* A message of b without data that invalidates a key of a. */
struct rmem_send_wr vt_send_inv_wr(uint32_t rkey);
/* A QP writes the first bytes of the buffer through a key: the status, or -errno. */
int vt_write(struct rmem_qp *qp, uint64_t addr, uint32_t length, uint32_t rkey);
/* b writes 8 bytes through a key to the second half: the status, or -errno. */
int vt_peer_write(uint32_t rkey);
/* Both queues of VT_DEPTH requests, without SGEs. */
struct rmem_qp_conf vt_qp_conf(struct rmem_cq *cq, enum rmem_qp_type type);
/* Before the tear-down does. */
void vt_qp_destroy(struct rmem_qp **qp);
void vt_cq_destroy(struct rmem_cq **cq);
/* n WRITEs of a without data, numbered from first on. */
void vt_post_writes(uint64_t first, uint32_t n);
/* Replace a QP by one of this configuration. */
void vt_replace_qp(struct rmem_qp **qp, const struct rmem_qp_conf *conf);

#endif /* SETUP_H */
