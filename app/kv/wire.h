/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * What client and server of dpdk-rmem-kv send each other, one message a SEND. Numbers are in
 * network byte order.
 */

#ifndef WIRE_H
#define WIRE_H

#include <rte_byteorder.h>

#include <rmem_lease_desc.h>

/** What a client can ask for. */
enum kv_op {
	KV_GET = 1,  /**< A lease of the value of a key. */
	KV_PUT = 2,  /**< A new value for a key; it follows the request. */
	KV_DONE = 3, /**< Nothing, no answer: SEND_WITH_INV ends the lease whose rkey it names. */
};

struct kv_request {
	rte_be32_t op;
	rte_be32_t tag; /**< Comes back in the answer. */
	rte_be64_t key;
};

struct kv_answer {
	rte_be32_t tag;
	rte_be32_t error;                     /**< 0, or an errno. */
	rte_be32_t nb_revoked;                /**< KV_PUT: leases of the old value that it ended. */
	rte_be32_t desc_size;                 /**< KV_GET: bytes of desc. */
	uint8_t desc[RMEM_LEASE_SEALED_SIZE]; /**< KV_GET: the lease, packed or sealed. */
};

/** What a descriptor is sealed with: it opens on its own connection only. */
struct kv_seal_with {
	rte_be32_t server_qp;
	rte_be32_t client_qp;
};

#endif /* WIRE_H */
