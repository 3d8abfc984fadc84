/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A connection between a QP of `soft`, used with rmem's calls, and one of an RDMA device of the
 * kernel, used with plain verbs.
 *
 * Requests and completions of both are in rmem's structures; opcodes and statuses have verbs'
 * values. Environment: PAIR_SOFT, the arguments of soft0; PAIR_VDEV, if set, the interface of
 * net_af_packet0, which is attached as ethdev port 0 while soft0 is open, since its driver can't
 * start a port again; PAIR_IBDEV and PAIR_GID, the device and the index of its GID.
 */

#ifndef PAIR_H
#define PAIR_H

#include <infiniband/verbs.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_mr.h>
#include <rmem_mw.h>
#include <rmem_pd.h>
#include <rmem_fp.h>
#include <rmem_qp.h>

#include "../test.h"

/* Memory of an end: three areas, all in one MR. */
#define PAIR_AREA   ((size_t)512 * 1024)
#define PAIR_LOCAL  ((size_t)0)     /* of its requests */
#define PAIR_TARGET (PAIR_AREA)     /* of the peer's requests */
#define PAIR_RECV   (2 * PAIR_AREA) /* of receives */
#define PAIR_SIZE   (3 * PAIR_AREA)

#define PAIR_DEPTH   32
#define PAIR_TIMEOUT 16 /* 268 ms */

struct pair_conf {
	const char *args; /* more arguments of soft0, with a comma; NULL: none */
	uint32_t mtu;     /* 0: the largest */
	uint8_t timeout;  /* 0: PAIR_TIMEOUT */
	uint8_t rnr_retry;
	uint8_t retry_cnt;
	bool is_read_only; /* peers may not write nor execute atomics */
};

/* Conf of a connection that tolerates a slow machine. */
#define PAIR_CONF                                                                                  \
	{                                                                                          \
		.rnr_retry = 7, .retry_cnt = 7                                                     \
	}

struct pair_end {
	const char *name;
	uint8_t *memory; /* PAIR_SIZE bytes */
	uint32_t lkey;
	uint32_t rkey;
	int (*post_send)(const struct rmem_send_wr *wr);
	int (*post_recv)(const struct rmem_recv_wr *wr);
	/* 1: a completion of the send or receive CQ; 0: none yet; or an error. */
	int (*poll)(bool is_recv, struct rmem_wc *wc);
	/* Bind a type 2 window to the target area; the rkey. */
	int (*bind)(uint32_t *rkey);
};

extern struct pair_end pair_soft;
extern struct pair_end pair_rxe;

static inline struct pair_end *
pair_peer(const struct pair_end *end)
{
	return end == &pair_soft ? &pair_rxe : &pair_soft;
}

/* Open both devices, and connect new QPs. The peer of pair_rxe_connect() is the soft QP. */
void pair_open(const struct pair_conf *conf);
/* Replace the QPs by connected ones. */
void pair_connect(const struct pair_conf *conf);
void pair_close(void);
/* Counters of soft0. */
int pair_stats(struct rmem_dev_stats *stats);
int pair_destroy_qp(struct pair_end *end);

/* Wait for a completion, a minute at most. */
void pair_wait(struct pair_end *end, bool is_recv, struct rmem_wc *wc);
/* A request of length bytes between the areas of local memory and of targets, at an offset. */
struct rmem_send_wr pair_wr(const struct pair_end *end, uint8_t opcode, uint32_t offset,
		uint32_t length, struct rmem_sge *sge);
/* Post a receive of length bytes at an offset of the area of receives. */
int pair_post_recv(struct pair_end *end, uint64_t wr_id, uint32_t offset, uint32_t length);

/* pair_rxe.c */
void pair_rxe_open(void);
void pair_rxe_create_qp(const struct pair_conf *conf, struct rmem_qp_addr *addr);
void pair_rxe_connect(const struct pair_conf *conf, const struct rmem_qp_addr *peer, uint32_t psn);
void pair_rxe_destroy_qp(void);
void pair_rxe_close(void);

#endif /* PAIR_H */
