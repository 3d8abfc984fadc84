/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Number of this process among those that share DPDK's memory.
 */

#include <errno.h>
#include <stdbool.h>

#include <rte_branch_prediction.h>
#include <rte_eal.h>

#include <rmem_process.h>

#include "rmem_priv.h"

/* 0 until it is set; atomic. */
static uint16_t number;
/* Whether this is a child, by fork(), of a process with devices; written by its only thread. */
static bool is_child;

uint16_t
rmem_process_number(void)
{
	uint16_t set = __atomic_load_n(&number, __ATOMIC_RELAXED);

	if (likely(set != 0))
		return set;
	return is_child || rte_eal_process_type() == RTE_PROC_SECONDARY ? 0 : RMEM_PROCESS_PRIMARY;
}

bool
rmem_process_is_child(void)
{
	return is_child;
}

void
rmem_process_set_child(void)
{
	is_child = true;
	__atomic_store_n(&number, 0, __ATOMIC_RELAXED);
}

int
rmem_process_number_set(uint16_t process)
{
	if (process > RMEM_PROCESS_MAX)
		return RMEM_FAIL(EINVAL, "process: number out of range: %u (at most %d)", process,
				RMEM_PROCESS_MAX);
	__atomic_store_n(&number, process, __ATOMIC_RELAXED);
	return 0;
}
