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

#include "fake.h"

#define VT_BUF    8192u
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
	/* Of vt_open_mw(). */
	struct rmem_mr *mw_mr; /* of the whole buffer too */
	struct rmem_mw *one;
	struct rmem_mw *two;
	uint8_t *buf; /* VT_BUF bytes; the second half is the target */
};

extern struct verbs_test vt;

/* Create all of it, up to a failure: the result of the failed call. */
int vt_open(void);
/* And windows of both types. */
int vt_open_mw(void);
/* Release what is there; what a release returned that failed. */
int vt_close(void);

/* Around each case. */
int vt_setup_fake(void);    /* a fake, no device */
int vt_setup(void);         /* extended QPs */
int vt_setup_classic(void); /* ibv_post_send() alone */
int vt_setup_mw(void);      /* with windows, as those of rdma_rxe: with the quirk */
int vt_setup_mw_classic(void);
int vt_setup_mw_plain(void); /* with well-made windows: without the quirk */
int vt_setup_mw_plain_classic(void);
int vt_teardown(void);

/* The log lines in between, at the default level; valid until the next call. */
void vt_log_begin(void);
const char *vt_log_end(void);

int vt_connect(void);
/* Reset both QPs, forget what was completed, and connect them again. */
int vt_reconnect(void);
/* Until posts report that the device was removed. */
int vt_until_gone(void);
/* Signaled requests that bind a type 2 window to the buffer's second half, and invalidate. */
struct rmem_send_wr vt_bind_wr(struct rmem_mw *mw);
struct rmem_send_wr vt_inv_wr(uint32_t rkey);
/* A binding of a type 1 window to the end of the buffer; 0 unbinds. */
struct rmem_mw_bind vt_bind(uint64_t length);
struct rmem_sge vt_sge(uint32_t offset, uint32_t length);
/* A signaled request on the first half of the buffer, whose target is the second half. */
struct rmem_send_wr vt_wr(uint8_t opcode, const struct rmem_sge *sge);
/* The one completion of a posted request; its status, or what the post or poll returned. */
int vt_run(const struct rmem_send_wr *wr);
int vt_wait(struct rmem_cq *cq, struct rmem_wc *wc);

#endif /* SETUP_H */
