/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The link of a port: whether its network interface is up and has the address of the device.
 * Changes are events of the port.
 *
 * They are read when an attribute of the port is queried, and periodically while no packet arrives,
 * by whichever thread makes progress; no post and no poll pays for them.
 */

#ifndef RWIRE_NETIF_H
#define RWIRE_NETIF_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ticketlock.h>

#include "codec/rwire_addr.h"

struct rwire;

#define RWIRE_NETIF_UP  UINT32_C(1) /* else PORT_ERR was reported */
#define RWIRE_NETIF_GID UINT32_C(2) /* the interface has the address */

/* Reasons of a link that is set down. */
#define RWIRE_NETIF_BY_CONTROL UINT32_C(1) /* rmem-ctl */
#define RWIRE_NETIF_BY_RULE    UINT32_C(2) /* chaos= */

/* Under its lock; no other lock but that of channels of events is taken while it is held. */
struct rwire_netif {
	rte_ticketlock_t lock;
	int fd;           /* of rtnetlink; -1: the port has no interface of the host */
	uint32_t ifindex; /* 0: unknown */
	uint32_t state;   /* RWIRE_NETIF_*; that of the last event */
	uint32_t found;   /* the same, of the host */
	uint32_t shut;    /* RWIRE_NETIF_BY_*: down; 0: it is not */
	uint64_t netns;   /* inode of the network namespace; 0: unknown */
};

/* Without an event. If the host reports no changes, the link stays up. */
void rwire_netif_open(struct rwire *wire);
void rwire_netif_close(struct rwire *wire);

/* Report the changes since the last call, unless another thread does. */
void rwire_netif_poll(struct rwire *wire);

/* The same, and the state: RWIRE_NETIF_*. ifindex may be NULL. */
uint32_t rwire_netif_get(struct rwire *wire, uint32_t *ifindex);

/* Set the link down, or let it be that of the host unless something else has set it down; an event
 * reports it. */
void rwire_netif_shut(struct rwire *wire, uint32_t by, bool is_shut);

#endif /* RWIRE_NETIF_H */
