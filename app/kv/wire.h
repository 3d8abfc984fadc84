/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Messages between client and server of dpdk-rmem-kv, one per SEND. Numbers are in
 * network byte order.
 */

#ifndef WIRE_H
#define WIRE_H

#include <rte_byteorder.h>

#include <rmem_lease_desc.h>

/** Requests of a client. */
enum kv_op {
	KV_GET = 1,  /**< A lease of the value of a key. */
	KV_PUT = 2,  /**< A new value for a key; it follows the request. */
	KV_DONE = 3, /**< No answer: SEND_WITH_INV ends the lease of its rkey. */
};

struct kv_request {
	rte_be32_t op;
	rte_be32_t tag; /**< Returned in the answer. */
	rte_be64_t key;
};

struct kv_answer {
	rte_be32_t tag;
	rte_be32_t error;                     /**< 0, or an errno. */
	rte_be32_t nb_revoked;                /**< KV_PUT: leases of the old value that it ended. */
	rte_be32_t desc_size;                 /**< KV_GET: bytes of desc. */
	uint8_t desc[RMEM_LEASE_SEALED_SIZE]; /**< KV_GET: the lease, packed or sealed. */
};

/** Associated data of a sealed descriptor, so that it is valid on its connection only. */
struct kv_seal_with {
	rte_be32_t server_qp;
	rte_be32_t client_qp;
};

#endif /* WIRE_H */
