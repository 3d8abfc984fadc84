/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Locate and copy the bytes of a packet in the SGEs of a request or receive. */

#include "../mem/rsoft_access.h"
#include "rwire.h"

uint32_t
rwire_sge_trim(const struct rmem_sge *sge, uint32_t num_sge, uint64_t offset, uint64_t n,
		struct rmem_sge *out)
{
	uint32_t i, nb = 0;

	for (i = 0; i < num_sge && n != 0; i++) {
		uint64_t len = sge[i].length;

		if (offset >= len) {
			offset -= len;
			continue;
		}
		len = RTE_MIN(len - offset, n);
		out[nb].addr = sge[i].addr + offset;
		out[nb].length = (uint32_t)len;
		out[nb].lkey = sge[i].lkey;
		nb++;
		n -= len;
		offset = 0;
	}
	return n == 0 ? nb : 0;
}

/* Translate SGEs to spans; inline data has no key. */
static int
sge_open(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, const struct rmem_sge *sge,
		uint32_t num_sge, uint32_t need, uint64_t n, struct rsoft_span *spans,
		uint32_t *vendor_err)
{
	uint64_t total;
	uint32_t i;

	if ((wr->flags & RMEM_SEND_INLINE) == 0)
		return rsoft_access_sges(qp, sge, num_sge, need, n, spans, &total, vendor_err)
				? RMEM_WC_SUCCESS
				: RMEM_WC_LOC_PROT_ERR;
	for (i = 0; i < num_sge; i++) {
		spans[i].ptr = (uint8_t *)(uintptr_t)sge[i].addr;
		spans[i].length = sge[i].length;
		spans[i].kind = RSOFT_SPAN_FLAT;
	}
	return RMEM_WC_SUCCESS;
}

int
rwire_sge_span(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint32_t n, struct rsoft_span *span, uint32_t *vendor_err)
{
	struct rsoft_span spans[RSOFT_MAX_SGE];
	struct rmem_sge sge[RSOFT_MAX_SGE];
	uint32_t nb = rwire_sge_trim(wr->sg_list, wr->num_sge, offset, n, sge);
	int status;

	if (nb == 0)
		return RMEM_WC_LOC_LEN_ERR;
	status = sge_open(qp, wr, sge, nb, RSOFT_NEED_READ, n, spans, vendor_err);
	*span = spans[0];
	if (nb != 1 || span->kind != RSOFT_SPAN_FLAT || (wr->flags & RMEM_SEND_INLINE) != 0)
		span->length = 0;
	return status;
}

uint32_t
rwire_sge_iov(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset, uint32_t n,
		bool is_to_sges, struct iovec *iov)
{
	struct rsoft_span spans[RSOFT_MAX_SGE];
	uint32_t need = is_to_sges ? RSOFT_NEED_WRITE : RSOFT_NEED_READ, nb, i, vendor_err;
	struct rmem_sge sge[RSOFT_MAX_SGE];

	nb = rwire_sge_trim(wr->sg_list, wr->num_sge, offset, n, sge);
	if (nb == 0 || sge_open(qp, wr, sge, nb, need, n, spans, &vendor_err) != RMEM_WC_SUCCESS)
		return 0;
	/* SGEs without bytes have no span. */
	for (i = 0; n != 0; i++) {
		if (spans[i].kind != RSOFT_SPAN_FLAT)
			return 0;
		iov[i].iov_base = spans[i].ptr;
		iov[i].iov_len = (size_t)spans[i].length;
		n -= (uint32_t)spans[i].length;
	}
	return i;
}

int
rwire_sge_copy(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint8_t *data, uint32_t n, bool is_to_sges, uint32_t *vendor_err)
{
	struct rsoft_span spans[RSOFT_MAX_SGE], flat = {.ptr = data, .length = n};
	struct rmem_sge sge[RSOFT_MAX_SGE];
	unsigned int side;
	uint32_t nb;
	int status;

	if (n == 0)
		return RMEM_WC_SUCCESS;
	nb = rwire_sge_trim(wr->sg_list, wr->num_sge, offset, n, sge);
	if (nb == 0)
		return RMEM_WC_LOC_LEN_ERR;
	status = sge_open(qp, wr, sge, nb, is_to_sges ? RSOFT_NEED_WRITE : RSOFT_NEED_READ, n,
			spans, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	side = is_to_sges ? rsoft_copy_all(spans, &flat, n) : rsoft_copy_all(&flat, spans, n);
	return rsoft_copy_status(side, side, vendor_err);
}
