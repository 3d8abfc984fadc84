/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * For libraries above the class: values of telemetry.
 *
 * Handlers run on a thread of DPDK's. They walk lists under the lock that protects the lists, so
 * that no object is released concurrently.
 */

#ifndef RMEM_TELEMETRY_H
#define RMEM_TELEMETRY_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Add a number to a dictionary; DPDK has renamed the function.
 *
 * @param d
 *   Dictionary.
 * @param name
 *   Name of the value.
 * @param value
 *   Value.
 */
static inline void
rmem_tel_uint(struct rte_tel_data *d, const char *name, uint64_t value)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_tel_data_add_dict_uint(d, name, value);
#else
	rte_tel_data_add_dict_u64(d, name, value);
#endif
}

/**
 * Add bits to a dictionary, in hexadecimal.
 *
 * @param d
 *   Dictionary.
 * @param name
 *   Name of the value.
 * @param bits
 *   Bits.
 */
static inline void
rmem_tel_bits(struct rte_tel_data *d, const char *name, uint64_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	rte_tel_data_add_dict_string(d, name, text);
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_TELEMETRY_H */
