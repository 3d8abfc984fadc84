/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * CRC-32 of Ethernet and RoCEv2: polynomial 0x04c11db7, bits reflected, initial value and result
 * inverted.
 *
 * rte_net_crc_calc() is not used: its first calls must not run concurrently (its table of handlers
 * is NULL for a moment), and its prototype differs between DPDK releases.
 */

#ifndef RWIRE_CRC_H
#define RWIRE_CRC_H

#include <stdint.h>

#define RWIRE_CRC_POLY UINT32_C(0xedb88320) /* reflected */

/* CRC of len bytes. */
uint32_t rwire_crc(const uint8_t *data, uint32_t len);

/* The same without optional instructions of the processor. */
uint32_t rwire_crc_scalar(const uint8_t *data, uint32_t len);

#endif /* RWIRE_CRC_H */
