/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packets; see rwire_hdr.h. */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include "rwire_hdr.h"

#define BTH_BECN (UINT32_C(1) << 30)

#define SEND  (RWIRE_IS_VALID | RWIRE_IS_REQUEST | RWIRE_IS_SEND | RWIRE_HAS_PAYLOAD)
#define WRITE (RWIRE_IS_VALID | RWIRE_IS_REQUEST | RWIRE_IS_WRITE | RWIRE_HAS_PAYLOAD)
#define READ  (RWIRE_IS_VALID | RWIRE_IS_READ_RSP | RWIRE_HAS_PAYLOAD)
#define AETH  RWIRE_HAS_AETH
#define RETH  RWIRE_HAS_RETH
#define FIRST RWIRE_IS_FIRST
#define LAST  RWIRE_IS_LAST
#define ONLY  (RWIRE_IS_FIRST | RWIRE_IS_LAST)

const uint32_t rwire_opcode_info[RWIRE_OPCODE_NB] = {
		[RWIRE_SEND_FIRST] = SEND | FIRST,
		[RWIRE_SEND_MIDDLE] = SEND,
		[RWIRE_SEND_LAST] = SEND | LAST,
		[RWIRE_SEND_LAST_WITH_IMM] = SEND | LAST | RWIRE_HAS_IMM,
		[RWIRE_SEND_ONLY] = SEND | ONLY,
		[RWIRE_SEND_ONLY_WITH_IMM] = SEND | ONLY | RWIRE_HAS_IMM,
		[RWIRE_WRITE_FIRST] = WRITE | FIRST | RETH,
		[RWIRE_WRITE_MIDDLE] = WRITE,
		[RWIRE_WRITE_LAST] = WRITE | LAST,
		[RWIRE_WRITE_LAST_WITH_IMM] = WRITE | LAST | RWIRE_HAS_IMM,
		[RWIRE_WRITE_ONLY] = WRITE | ONLY | RETH,
		[RWIRE_WRITE_ONLY_WITH_IMM] = WRITE | ONLY | RETH | RWIRE_HAS_IMM,
		[RWIRE_READ_REQUEST] = RWIRE_IS_VALID | RWIRE_IS_REQUEST | ONLY | RETH,
		[RWIRE_READ_RESPONSE_FIRST] = READ | FIRST | AETH,
		[RWIRE_READ_RESPONSE_MIDDLE] = READ,
		[RWIRE_READ_RESPONSE_LAST] = READ | LAST | AETH,
		[RWIRE_READ_RESPONSE_ONLY] = READ | ONLY | AETH,
		[RWIRE_ACKNOWLEDGE] = RWIRE_IS_VALID | AETH,
		[RWIRE_ATOMIC_ACKNOWLEDGE] = RWIRE_IS_VALID | AETH | RWIRE_HAS_RESULT,
		[RWIRE_COMPARE_SWAP] = RWIRE_IS_VALID | RWIRE_IS_REQUEST | ONLY | RWIRE_HAS_ATOMIC,
		[RWIRE_FETCH_ADD] = RWIRE_IS_VALID | RWIRE_IS_REQUEST | ONLY | RWIRE_HAS_ATOMIC,
		[RWIRE_SEND_LAST_WITH_INV] = SEND | LAST | RWIRE_HAS_INV,
		[RWIRE_SEND_ONLY_WITH_INV] = SEND | ONLY | RWIRE_HAS_INV,
		[RWIRE_FLUSH] = RWIRE_IS_VALID | RWIRE_IS_REQUEST | ONLY | RWIRE_HAS_FETH | RETH,
		[RWIRE_ATOMIC_WRITE] =
				RWIRE_IS_VALID | RWIRE_IS_REQUEST | RWIRE_HAS_PAYLOAD | ONLY | RETH,
};

uint32_t
rwire_hdr_len(uint32_t info)
{
	uint32_t len = RWIRE_BTH_LEN;

	if (unlikely(info & (RWIRE_HAS_XETH | RWIRE_HAS_FETH)))
		len += (info & RWIRE_HAS_XETH ? RWIRE_XETH_LEN : 0) +
				(info & RWIRE_HAS_FETH ? 4 : 0);
	if (info & RWIRE_HAS_RETH)
		len += 16;
	if (info & RWIRE_HAS_ATOMIC)
		len += 28;
	if (info & RWIRE_HAS_AETH)
		len += 4;
	if (info & RWIRE_HAS_RESULT)
		len += 8;
	if (info & (RWIRE_HAS_IMM | RWIRE_HAS_INV))
		len += 4;
	if (info & RWIRE_HAS_DETH)
		len += RWIRE_DETH_LEN;
	return len;
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_32(v);
}

static uint64_t
get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static uint8_t *
put32(uint8_t *p, uint32_t v)
{
	v = rte_cpu_to_be_32(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *
put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

/* Decode the headers after the BTH. */
static void
parse_ext(const uint8_t *p, struct rwire_pkt *pkt)
{
	if (unlikely(pkt->info & RWIRE_HAS_XETH)) {
		pkt->srqn = get32(p) & RWIRE_QPN_MASK;
		p += RWIRE_XETH_LEN;
	}
	if (pkt->info & RWIRE_HAS_FETH) {
		pkt->type = p[3] & 0xf;
		pkt->level = p[3] >> 4 & 3;
		p += 4;
	}
	if (pkt->info & (RWIRE_HAS_RETH | RWIRE_HAS_ATOMIC)) {
		pkt->addr = get64(p);
		pkt->rkey = get32(p + 8);
		p += 12;
	}
	if (pkt->info & RWIRE_HAS_RETH) {
		pkt->dma_len = get32(p);
		p += 4;
	}
	if (pkt->info & RWIRE_HAS_ATOMIC) {
		pkt->swap_add = get64(p);
		pkt->compare = get64(p + 8);
	}
	if (pkt->info & RWIRE_HAS_DETH) {
		pkt->qkey = get32(p);
		pkt->src_qp = get32(p + 4) & RWIRE_QPN_MASK;
		p += RWIRE_DETH_LEN;
	}
	if (pkt->info & RWIRE_HAS_AETH) {
		pkt->syndrome = p[0];
		pkt->msn = get32(p) & RWIRE_PSN_MASK;
		p += 4;
	}
	if (pkt->info & RWIRE_HAS_RESULT)
		pkt->swap_add = get64(p);
	if (pkt->info & RWIRE_HAS_IMM)
		memcpy(&pkt->imm, p, sizeof(pkt->imm));
	if (pkt->info & RWIRE_HAS_INV)
		pkt->imm = get32(p);
}

/* Properties of an opcode with its service; 0: unknown opcode. */
static uint32_t
info_of(uint8_t opcode)
{
	uint8_t of_rc = opcode & (uint8_t)~RWIRE_SERVICE_MASK;
	uint32_t info;

	switch (opcode & RWIRE_SERVICE_MASK) {
	case RWIRE_RC:
		return of_rc < RWIRE_OPCODE_NB ? rwire_opcode_info[of_rc] : 0;
	case RWIRE_UC:
		return of_rc <= RWIRE_WRITE_ONLY_WITH_IMM ? rwire_opcode_info[of_rc] : 0;
	case RWIRE_UD:
		if (of_rc != RWIRE_SEND_ONLY && of_rc != RWIRE_SEND_ONLY_WITH_IMM)
			return 0;
		return rwire_opcode_info[of_rc] | RWIRE_HAS_DETH;
	case RWIRE_XRC:
		info = of_rc < RWIRE_OPCODE_NB ? rwire_opcode_info[of_rc] : 0;
		return info | (info & RWIRE_IS_REQUEST ? RWIRE_HAS_XETH : 0);
	case RWIRE_CN:
		return of_rc == RWIRE_CNP ? RWIRE_IS_VALID | RWIRE_HAS_PAYLOAD : 0;
	default:
		return 0;
	}
}

bool
rwire_pkt_parse(uint8_t *bth, uint32_t len, struct rwire_pkt *pkt)
{
	struct rwire_bth base;
	uint32_t hdr, data;

	memset(pkt, 0, sizeof(*pkt));
	if (len < RWIRE_BTH_LEN + RWIRE_ICRC_LEN || len > RWIRE_MAX_PKT)
		return false;
	base = rwire_bth_get(bth);
	pkt->service = RWIRE_BTH_OPCODE(&base) & RWIRE_SERVICE_MASK;
	pkt->opcode = RWIRE_BTH_OPCODE(&base) & (uint8_t)~RWIRE_SERVICE_MASK;
	pkt->info = info_of(RWIRE_BTH_OPCODE(&base));
	pkt->pad = RWIRE_BTH_PAD(&base);
	hdr = rwire_hdr_len(pkt->info);
	/* Transport version 0 only. */
	if (pkt->info == 0 || RWIRE_BTH_VERSION(&base) != 0 || len < hdr + RWIRE_ICRC_LEN)
		return false;
	pkt->pkey = RWIRE_BTH_PKEY(&base) ^ RWIRE_PKEY;
	data = len - hdr - RWIRE_ICRC_LEN;
	if (data < pkt->pad || data % 4 != 0)
		return false;
	pkt->payload_len = data - pkt->pad;
	if (pkt->payload_len > RWIRE_MAX_MTU || (data != 0 && (pkt->info & RWIRE_HAS_PAYLOAD) == 0))
		return false;
	pkt->is_solicited = RWIRE_BTH_IS_SOLICITED(&base);
	pkt->qpn = base.qpn & RWIRE_QPN_MASK;
	pkt->is_ack_req = RWIRE_BTH_IS_ACK_REQ(&base);
	pkt->psn = base.psn & RWIRE_PSN_MASK;
	pkt->payload = bth + hdr;
	parse_ext(bth + RWIRE_BTH_LEN, pkt);
	return true;
}

static uint8_t *
build_ext(uint8_t *p, const struct rwire_pkt *pkt)
{
	if (unlikely(pkt->info & RWIRE_HAS_XETH))
		p = put32(p, pkt->srqn & RWIRE_QPN_MASK);
	if (pkt->info & RWIRE_HAS_FETH)
		p = put32(p, (uint32_t)pkt->level << 4 | pkt->type);
	if (pkt->info & (RWIRE_HAS_RETH | RWIRE_HAS_ATOMIC))
		p = put32(put64(p, pkt->addr), pkt->rkey);
	if (pkt->info & RWIRE_HAS_RETH)
		p = put32(p, pkt->dma_len);
	if (pkt->info & RWIRE_HAS_ATOMIC)
		p = put64(put64(p, pkt->swap_add), pkt->compare);
	if (pkt->info & RWIRE_HAS_DETH)
		p = put32(put32(p, pkt->qkey), pkt->src_qp);
	if (pkt->info & RWIRE_HAS_AETH)
		p = put32(p, (uint32_t)pkt->syndrome << 24 | pkt->msn);
	if (pkt->info & RWIRE_HAS_RESULT)
		p = put64(p, pkt->swap_add);
	if (pkt->info & RWIRE_HAS_IMM) {
		memcpy(p, &pkt->imm, sizeof(pkt->imm));
		p += sizeof(pkt->imm);
	}
	if (pkt->info & RWIRE_HAS_INV)
		p = put32(p, pkt->imm);
	return p;
}

uint32_t
rwire_pkt_build(uint8_t *bth, struct rwire_pkt *pkt)
{
	uint8_t *p;

	pkt->info = rwire_pkt_info(pkt);
	pkt->pad = (uint8_t)(-pkt->payload_len & 3);
	rwire_bth_put(bth,
			RWIRE_BTH_WORD(pkt->service | pkt->opcode, pkt->is_solicited, pkt->pad,
					pkt->pkey ^ RWIRE_PKEY),
			pkt->qpn | (unlikely(pkt->service == RWIRE_CN) ? BTH_BECN : 0), pkt->psn,
			pkt->is_ack_req);
	if (unlikely(pkt->service == RWIRE_CN))
		bth[1] = 0;
	p = build_ext(bth + RWIRE_BTH_LEN, pkt) + pkt->payload_len;
	memset(p, 0, pkt->pad);
	return (uint32_t)(p - bth) + pkt->pad + RWIRE_ICRC_LEN;
}
