/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * What the files of the connection manager share. Not installed.
 *
 * rdma_cm carries messages alone: its ids have no QP. Each connection has an event channel of its
 * own, which does not block, so that calls wait in poll(2) and know their end.
 */

#ifndef RMEM_CM_PRIV_H
#define RMEM_CM_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>
#include <rte_log.h>

#include <rmem_cm.h>

extern int rmem_cm_logtype;

/** Log a line: CM_LOG(ERR, "format", ...). */
#define CM_LOG(level, ...)                                                                         \
	rte_log(RTE_LOG_##level, rmem_cm_logtype,                                                  \
			RTE_FMT("rmem_cm: " RTE_FMT_HEAD(__VA_ARGS__, ) "\n",                      \
					RTE_FMT_TAIL(__VA_ARGS__, )))

/** Bytes before those of the caller. */
#define CM_HEAD_SIZE 32
/** Bytes of a message, with those of the caller. */
#define CM_MAX_SIZE (CM_HEAD_SIZE + RMEM_CM_MAX_ANSWER)
/** What rdma_cm carries at most: RDMA_PS_TCP, rdma_connect(3) and rdma_accept(3). */
#define CM_MAX_CONNECT 56
#define CM_MAX_ACCEPT  196

_Static_assert(CM_HEAD_SIZE + RMEM_CM_MAX_REQUEST == CM_MAX_CONNECT, "fills a request");
_Static_assert(CM_MAX_SIZE == CM_MAX_ACCEPT, "fills an answer");

struct rmem_cm_listener {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

struct rmem_cm_conn {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool is_ended;
};

/** An event, copied and acknowledged. */
struct cm_event {
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;
	int status;
	uint8_t size;
	uint8_t data[UINT8_MAX];
};

/** Make a message; its size. */
uint8_t cm_pack(const struct rmem_qp_addr *addr, const void *data, uint32_t data_size,
		uint8_t message[CM_MAX_SIZE]);
/** Read one: 0 or -EBADMSG. Bytes behind it do no harm. */
int cm_unpack(const uint8_t *message, uint32_t size, struct rmem_cm_peer *peer);

/** A channel that does not block. */
int cm_channel_create(struct rdma_event_channel **channel);
/** The time on a clock that only goes forward, ms. */
uint64_t cm_now_ms(void);
/** The next event; -ETIMEDOUT at the end of the wait. */
int cm_next(struct rdma_event_channel *channel, uint64_t end_ms, struct cm_event *event);
/** Wait for an event of that type, which succeeded. */
int cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type, uint64_t end_ms,
		struct cm_event *event);
/** What a call of rdma_cm left in errno, logged: as -errno of ours. */
int cm_errno(const char *call);
/** The same of a number. */
int cm_error(int error);

#endif /* RMEM_CM_PRIV_H */
