/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * RC, UC, UD and XRC packets of RoCEv2 (IBTA volume 1, chapter 9 and annexes A14 and A17), from the
 * BTH to the ICRC.
 *
 * Inside: headers, addresses and checksums of RoCEv2 packets, as functions of bytes.
 * Callers: queue (for a GRH), wire, wire/port and drivers/soft.
 * Not known here: QPs, keys, ports, and all other folders.
 *
 * A packet is decoded to a struct rwire_pkt, and encoded from one. Invariant: a packet accepted by
 * rwire_pkt_parse() has an opcode of its service, and a length that agrees with the opcode;
 * payload, payload_len, pad and ICRC are within the received bytes. All other fields are values of
 * an untrusted peer.
 */

#ifndef RWIRE_HDR_H
#define RWIRE_HDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#define RWIRE_UDP_PORT    4791
#define RWIRE_PKEY        0xffff
#define RWIRE_PSN_MASK    UINT32_C(0xffffff)
#define RWIRE_QPN_MASK    UINT32_C(0xffffff)
#define RWIRE_BTH_LEN     12
#define RWIRE_DETH_LEN    8
#define RWIRE_XETH_LEN    4
#define RWIRE_ICRC_LEN    4
#define RWIRE_MAX_EXT_LEN 28 /* for packets with a payload or an AtomicETH */
#define RWIRE_MAX_MTU     4096
#define RWIRE_MAX_HDR     (RWIRE_BTH_LEN + RWIRE_XETH_LEN + RWIRE_MAX_EXT_LEN)
#define RWIRE_MAX_PKT     (RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN + RWIRE_MAX_MTU + 3 + RWIRE_ICRC_LEN)

/* Services: the high bits of an opcode (IBTA table 38). */
#define RWIRE_SERVICE_MASK 0xe0
#define RWIRE_RC           0x00
#define RWIRE_UC           0x20
#define RWIRE_UD           0x60
#define RWIRE_CN           0x80 /* congestion notification */
#define RWIRE_XRC          0xa0

/* A CNP (IBTA A17.9.3) is the only packet of its service. Its payload is reserved. */
#define RWIRE_CNP     0x01
#define RWIRE_CNP_LEN 16

/*
 * Opcodes of the RC service. XRC uses all of them, UC its SENDs and WRITEs, UD its SENDs of one
 * packet.
 */
enum rwire_opcode {
	RWIRE_SEND_FIRST = 0x00,
	RWIRE_SEND_MIDDLE = 0x01,
	RWIRE_SEND_LAST = 0x02,
	RWIRE_SEND_LAST_WITH_IMM = 0x03,
	RWIRE_SEND_ONLY = 0x04,
	RWIRE_SEND_ONLY_WITH_IMM = 0x05,
	RWIRE_WRITE_FIRST = 0x06,
	RWIRE_WRITE_MIDDLE = 0x07,
	RWIRE_WRITE_LAST = 0x08,
	RWIRE_WRITE_LAST_WITH_IMM = 0x09,
	RWIRE_WRITE_ONLY = 0x0a,
	RWIRE_WRITE_ONLY_WITH_IMM = 0x0b,
	RWIRE_READ_REQUEST = 0x0c,
	RWIRE_READ_RESPONSE_FIRST = 0x0d,
	RWIRE_READ_RESPONSE_MIDDLE = 0x0e,
	RWIRE_READ_RESPONSE_LAST = 0x0f,
	RWIRE_READ_RESPONSE_ONLY = 0x10,
	RWIRE_ACKNOWLEDGE = 0x11,
	RWIRE_ATOMIC_ACKNOWLEDGE = 0x12,
	RWIRE_COMPARE_SWAP = 0x13,
	RWIRE_FETCH_ADD = 0x14,
	RWIRE_SEND_LAST_WITH_INV = 0x16,
	RWIRE_SEND_ONLY_WITH_INV = 0x17,
	RWIRE_FLUSH = 0x1c,
	RWIRE_ATOMIC_WRITE = 0x1d,
	RWIRE_OPCODE_NB = 0x1e,
};

/* Properties of an opcode: kind, and the headers that follow the BTH. */
#define RWIRE_IS_VALID    (1u << 0)
#define RWIRE_IS_REQUEST  (1u << 1)
#define RWIRE_IS_SEND     (1u << 2)
#define RWIRE_IS_WRITE    (1u << 3)
#define RWIRE_IS_READ_RSP (1u << 4)
#define RWIRE_HAS_FETH    (1u << 5) /* precedes the RETH */
#define RWIRE_IS_FIRST    (1u << 6) /* FIRST or ONLY */
#define RWIRE_IS_LAST     (1u << 7) /* LAST or ONLY */
#define RWIRE_HAS_PAYLOAD (1u << 8)
#define RWIRE_HAS_RETH    (1u << 9)
#define RWIRE_HAS_AETH    (1u << 10)
#define RWIRE_HAS_ATOMIC  (1u << 11) /* AtomicETH */
#define RWIRE_HAS_RESULT  (1u << 12) /* AtomicAckETH */
#define RWIRE_HAS_IMM     (1u << 13)
#define RWIRE_HAS_INV     (1u << 14) /* IETH */
#define RWIRE_HAS_DETH    (1u << 15)
#define RWIRE_HAS_XETH    (1u << 16) /* follows the BTH of each request of XRC (A14.3.1) */
/* Kinds of packets of messages, which are answered by an acknowledgement. */
#define RWIRE_IS_MESSAGE (RWIRE_IS_SEND | RWIRE_IS_WRITE)

/* Indexed by opcode; 0: not an opcode of RC. */
extern const uint32_t rwire_opcode_info[RWIRE_OPCODE_NB];

/* Syndrome of an AETH (IBTA 9.7.5.1.1). */
#define RWIRE_AETH_ACK      0x1f /* no end-to-end credits */
#define RWIRE_AETH_RNR      0x20 /* the low 5 bits are the RNR timer code */
#define RWIRE_AETH_NAK_PSN  0x60
#define RWIRE_AETH_NAK_INV  0x61 /* invalid request */
#define RWIRE_AETH_NAK_ACC  0x62 /* remote access error */
#define RWIRE_AETH_NAK_OP   0x63 /* remote operational error */
#define RWIRE_AETH_KIND(s)  ((s)&0x60)
#define RWIRE_AETH_KIND_NAK 0x60

struct rwire_pkt {
	uint8_t service;   /* RWIRE_RC, RWIRE_UC, RWIRE_UD, RWIRE_CN or RWIRE_XRC */
	uint8_t opcode;    /* enum rwire_opcode, without the service */
	uint8_t syndrome;  /* AETH */
	uint8_t pad;       /* bytes after the payload, 0 to 3 */
	uint8_t type;      /* FETH: placement type, 4 bits of RMEM_FLUSH_GLOBAL, _PERSISTENT */
	uint8_t level;     /* FETH: selectivity level, 2 bits: RMEM_FLUSH_RANGE, _MR */
	bool is_solicited; /* SE of the BTH */
	bool is_ack_req;
	bool is_shared; /* the payload may span several PSNs; not encoded */
	bool has_icrc;  /* received: its sender requests all acknowledgements; not encoded */
	uint16_t pkey;  /* bits that differ from RWIRE_PKEY */
	uint32_t info;  /* rwire_pkt_info() */
	uint32_t qpn;
	uint32_t psn;
	uint32_t msn;         /* AETH, 24 bits */
	uint32_t rkey;        /* RETH, AtomicETH */
	uint32_t dma_len;     /* RETH */
	uint32_t qkey;        /* DETH */
	uint32_t src_qp;      /* DETH, 24 bits */
	uint32_t srqn;        /* XETH, 24 bits */
	uint32_t imm;         /* ImmDt in network byte order, or the rkey of IETH in host order */
	uint32_t payload_len; /* without pad */
	uint64_t addr;        /* RETH, AtomicETH */
	uint64_t compare;     /* AtomicETH */
	uint64_t swap_add;    /* AtomicETH, or the value of AtomicAckETH */
	uint8_t *payload;
};

/* Whether a packet has an XETH, given its service and the properties of its opcode. */
static inline bool
rwire_is_xrc_request(uint8_t service, uint32_t info)
{
	return service == RWIRE_XRC && (info & RWIRE_IS_REQUEST) != 0;
}

/* Properties of a packet to encode, given its service and opcode. */
static inline uint32_t
rwire_pkt_info(const struct rwire_pkt *pkt)
{
	const uint32_t info = rwire_opcode_info[pkt->opcode];

	if (pkt->service < RWIRE_UD)
		return info;
	if (pkt->service == RWIRE_UD)
		return info | RWIRE_HAS_DETH;
	return info | (rwire_is_xrc_request(pkt->service, info) ? RWIRE_HAS_XETH : 0);
}

/* Length of the headers, including the BTH. */
uint32_t rwire_hdr_len(uint32_t info);

/*
 * Decode len bytes from the BTH to the ICRC. False: too short, unknown opcode, other transport
 * version or P_Key, or a length that does not agree with the opcode.
 */
bool rwire_pkt_parse(uint8_t *bth, uint32_t len, struct rwire_pkt *pkt);

/* A BTH, in host byte order. */
struct rwire_bth {
	uint32_t word; /* RWIRE_BTH_WORD() */
	uint32_t qpn;  /* destination QP, with FECN and BECN */
	uint32_t psn;  /* with AckReq */
};

#define RWIRE_BTH_OPCODE(bth)       ((uint8_t)((bth)->word >> 24)) /* with the service */
#define RWIRE_BTH_IS_SOLICITED(bth) (((bth)->word >> 23 & 1) != 0)
#define RWIRE_BTH_PAD(bth)          ((uint8_t)((bth)->word >> 20 & 3))
#define RWIRE_BTH_VERSION(bth)      ((bth)->word >> 16 & 0xf)
#define RWIRE_BTH_PKEY(bth)         ((uint16_t)(bth)->word)
#define RWIRE_BTH_IS_ACK_REQ(bth)   ((bth)->psn >> 31 != 0)

/* The first word of a BTH: opcode with service, flags and pad count, P_Key. */
#define RWIRE_BTH_WORD(opcode, is_solicited, pad, pkey)                                            \
	((uint32_t)(opcode) << 24 | ((is_solicited) ? UINT32_C(1) << 23 : 0) |                     \
			RWIRE_BTH_MIGRATED | (uint32_t)(pad) << 20 | (uint16_t)(pkey))
#define RWIRE_BTH_MIGRATED (UINT32_C(1) << 22) /* MigReq: path migration state Migrated */

static inline struct rwire_bth
rwire_bth_get(const uint8_t *bth)
{
	uint32_t word, qpn, psn;

	memcpy(&word, bth, sizeof(word));
	memcpy(&qpn, bth + 4, sizeof(qpn));
	memcpy(&psn, bth + 8, sizeof(psn));
	return (struct rwire_bth){
			rte_be_to_cpu_32(word), rte_be_to_cpu_32(qpn), rte_be_to_cpu_32(psn)};
}

/* Encode a BTH: the word above, the destination QP, and the PSN with AckReq. */
static inline void
rwire_bth_put(uint8_t *bth, uint32_t word, uint32_t qpn, uint32_t psn, bool is_ack_req)
{
	word = rte_cpu_to_be_32(word);
	qpn = rte_cpu_to_be_32(qpn);
	psn = rte_cpu_to_be_32((is_ack_req ? UINT32_C(1) << 31 : 0) | psn);
	memcpy(bth, &word, sizeof(word));
	memcpy(bth + 4, &qpn, sizeof(qpn));
	memcpy(bth + 8, &psn, sizeof(psn));
}

/* Encode an acknowledgement of RC or XRC; return its length as rwire_pkt_build(). */
static inline uint32_t
rwire_ack_put(uint8_t *bth, uint8_t service, uint16_t pkey, uint32_t qpn, uint32_t psn,
		uint8_t syndrome, uint32_t msn)
{
	const uint32_t aeth = rte_cpu_to_be_32((uint32_t)syndrome << 24 | msn);

	rwire_bth_put(bth, RWIRE_BTH_WORD(service | RWIRE_ACKNOWLEDGE, false, 0, pkey), qpn, psn,
			false);
	memcpy(bth + RWIRE_BTH_LEN, &aeth, sizeof(aeth));
	return RWIRE_BTH_LEN + sizeof(aeth) + RWIRE_ICRC_LEN;
}

/*
 * Encode the headers at bth, and the pad after the payload, which the caller stores at bth +
 * rwire_hdr_len(). Return the length from the BTH to the ICRC, which is not set.
 */
uint32_t rwire_pkt_build(uint8_t *bth, struct rwire_pkt *pkt);

/* a - b modulo 2^24, from -2^23 to 2^23 - 1. */
static inline int32_t
rwire_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t
rwire_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & RWIRE_PSN_MASK;
}

/* Number of packets of a message; at least one. */
static inline uint32_t
rwire_nb_pkts(uint64_t length, uint32_t mtu)
{
	return length == 0 ? 1 : (uint32_t)((length + mtu - 1) / mtu);
}

#endif /* RWIRE_HDR_H */
