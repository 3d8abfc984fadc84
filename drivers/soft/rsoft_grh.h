/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fields of a GRH that an address handle has, and packets carry; all 0 by default. */

#ifndef RSOFT_GRH_H
#define RSOFT_GRH_H

#include <stdint.h>

#define RSOFT_GRH_FLOW_LABEL UINT32_C(0xfffff)

struct rsoft_grh {
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0: 64 */
};

#endif /* RSOFT_GRH_H */
