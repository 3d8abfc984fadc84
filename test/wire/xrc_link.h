/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC QPs of two sides, and a socket of the test that has an SRQ of their domain. */

#ifndef XRC_LINK_H
#define XRC_LINK_H

#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "soft/wire/rwire_xrc.h"

#include "sides.h"

#define MTU     256u
#define FOREIGN 0x123456u /* number of an SRQ or QP that a socket of the test has */
#define ADDR    UINT64_C(0x123456789000)
#define RKEY    0x87654321u

/* Side 0 has the XRC_SEND QP, side 1 the XRC_RECV QP of a domain, with an SRQ. */
struct xrc_link {
	int file;
	struct rmem_xrcd *domain;
	struct rmem_srq *srq;
	uint32_t number;
	struct rmem_qp *send, *recv;
	struct rwire_addr peer;
	/* Of link_open_two(): an SRQ of another PD, which has the memory of side 1. */
	struct {
		struct rmem_pd *pd;
		struct rmem_mr *mr;
		struct rmem_srq *srq;
		uint32_t number;
	} other;
};

extern struct xrc_link link_;

/* An SRQ of four receives, whose completions are those of receives of the side. */
void xrc_make_srq(const struct side *side, struct rmem_pd *pd, struct rmem_xrcd *domain,
		struct rmem_srq **srq, uint32_t *number);
void xrc_post(struct rmem_srq *srq, const struct rmem_mr *mr, const void *addr, uint64_t wr_id,
		uint32_t length);
/* An XRC_SEND QP of side 0 and an XRC_RECV QP of a domain of side 1, connected. */
void xrc_make_qps(struct rmem_xrcd *domain, struct rmem_qp **send, struct rmem_qp **recv);
/* Take the next packet for side 0. */
struct rwire_pkt xrc_expect(uint8_t opcode, uint8_t syndrome);
void xrc_expect_nothing(void);

/* With the domain of a file; or a private one, with two SRQs. */
void link_open(void);
void link_open_two(void);
void link_close(void);
/* State of a QP of the domain, or of a handle of it. */
uint32_t link_state_of(const struct rmem_qp *qp);
/* Let side 1 receive: completions of receives alone are in its CQs. */
void link_progress(void);
/* Post a receive to the SRQ; and the number of those posted. */
void link_post(uint64_t wr_id, uint32_t length);
uint32_t link_nb_posted(void);
/* A request of the peer, that many packets after the next one, with the key and address above. */
struct rwire_pkt link_packet(uint8_t opcode, uint32_t srqn, uint32_t ahead);
/* Deliver a packet of the peer, which has MTU bytes of payload at the most. */
void link_deliver(struct rwire_pkt pkt);

/* The process of the SRQ FOREIGN: its listener, its end of the link, -1 if it is closed. */
struct xrc_owner {
	int listener, fd;
	struct rwire_xrc_request request; /* received last, with its payload */
	uint8_t payload[3 * MTU];
	size_t payload_len;
};

extern struct xrc_owner owner_;

/* A link over which the first request to the SRQ was sent, of a length. */
void owner_open(struct rwire_pkt (*first)(uint32_t), uint32_t length);
void owner_close(void);
/* End the link. */
void owner_hang_up(void);
/* Exchange hellos with a forwarder that has connected. */
bool owner_accept(void);
/* Receive the next request. */
void owner_take(uint8_t opcode, uint8_t flags);
void owner_expect_nothing(void);
/* Answer the last request, with bytes of a READ from an offset on. */
void owner_answer(int32_t status, uint32_t at, uint32_t len);

/* The byte of a READ at an offset. */
static inline uint8_t
owner_byte(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

#endif /* XRC_LINK_H */
