/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A device whose XRC domain a socket of the test shares. */

#ifndef XRC_LINK_H
#define XRC_LINK_H

#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "sides.h"

#define MTU 256u

/* Side 0 has the XRC_SEND QP, side 1 the XRC_RECV QP of a domain of a file, with an SRQ. */
struct xrc_link {
	int file;
	struct rmem_xrcd *domain;
	struct rmem_srq *srq;
	uint32_t number;
	struct rmem_qp *send, *recv;
	struct rwire_addr peer;
};

extern struct xrc_link link_;

void link_open(void);
void link_close(void);
/* Let side 1 receive: completions of receives alone are in its CQs. */
void link_progress(void);
/* Post a receive to the SRQ; and the number of those posted. */
void link_post(uint64_t wr_id, uint32_t length);
uint32_t link_nb_posted(void);

#endif /* XRC_LINK_H */
