/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by the telemetry of the libraries. Not installed.
 *
 * The commands run on a thread of DPDK. They walk lists under the lock with which objects
 * are added and removed, so that no object is freed concurrently.
 */

#ifndef RMEM_TELEMETRY_PRIV_H
#define RMEM_TELEMETRY_PRIV_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_telemetry.h>
#include <rte_version.h>

/** A number; DPDK has renamed the function. */
static inline int
rmem_tel_uint(struct rte_tel_data *d, const char *name, uint64_t value)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	return rte_tel_data_add_dict_uint(d, name, value);
#else
	return rte_tel_data_add_dict_u64(d, name, value);
#endif
}

/** Bits, as hexadecimal digits. */
static inline int
rmem_tel_bits(struct rte_tel_data *d, const char *name, uint64_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	return rte_tel_data_add_dict_string(d, name, text);
}

#endif /* RMEM_TELEMETRY_PRIV_H */
