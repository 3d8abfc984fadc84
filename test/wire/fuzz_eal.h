/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* EAL of a fuzzer, which leaves the arguments to libFuzzer. */

#ifndef FUZZ_EAL_H
#define FUZZ_EAL_H

#include <rte_common.h>
#include <rte_eal.h>

#include "fuzz.h"

static inline void
fuzz_eal_init(char *program)
{
	static char options[][32] = {"--no-huge", "--no-shconf", "-m", "64", "--no-pci",
			"--no-telemetry", "--log-level=*:emergency"};
	char *eal[1 + RTE_DIM(options)] = {program};
	unsigned int i;

	for (i = 0; i < RTE_DIM(options); i++)
		eal[1 + i] = options[i];
	CHECK(rte_eal_init(RTE_DIM(eal), eal) >= 0);
}

#endif /* FUZZ_EAL_H */
