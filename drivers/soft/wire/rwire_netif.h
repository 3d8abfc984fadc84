/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The link of a port: whether its network interface is up and has the address of the device.
 * Changes are reported as events of the port.
 *
 * Changes are read when an attribute of the port is queried, and periodically while no packet
 * arrives, by the thread that makes progress; posts and polls are not slower.
 */

#ifndef RWIRE_NETIF_H
#define RWIRE_NETIF_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ticketlock.h>

#include "codec/rwire_addr.h"

struct rwire;

#define RWIRE_NETIF_UP  UINT32_C(1) /* link up; else PORT_ERR was reported */
#define RWIRE_NETIF_GID UINT32_C(2) /* the interface has the address */

/* Reasons for setting a link down. */
#define RWIRE_NETIF_BY_CONTROL UINT32_C(1) /* rmem-ctl */
#define RWIRE_NETIF_BY_RULE    UINT32_C(2) /* chaos= */

/* Of each port. Protected by its lock; while it is held, only locks of event channels are taken. */
struct rwire_netif {
	rte_ticketlock_t lock;
	uint32_t port_num;
	struct rwire_addr addr; /* of the port */
	int fd;                 /* rtnetlink socket; -1: the port has no interface of the host */
	uint32_t ifindex;       /* 0: unknown */
	uint32_t state;         /* RWIRE_NETIF_*, as last reported */
	uint32_t found;         /* RWIRE_NETIF_*, of the host */
	uint32_t shut;          /* RWIRE_NETIF_BY_*: set down; 0: not set down */
	uint64_t netns;         /* inode of the network namespace; 0: unknown */
};

void rwire_netif_init(struct rwire *wire);
/* Read the state of a port, without an event. If the host can't report changes, the link stays
 * up. */
void rwire_netif_open(struct rwire *wire, uint32_t port_num);
/* Close those of all ports. */
void rwire_netif_close(struct rwire *wire);

/* Report changes of all ports since the last call, unless another thread does. */
void rwire_netif_poll(struct rwire *wire);

/* Report changes of a port, and return its state: RWIRE_NETIF_*. ifindex may be NULL. */
uint32_t rwire_netif_get(struct rwire *wire, uint32_t port_num, uint32_t *ifindex);

/* Set the link of a port down for a reason, or end that reason; without any reason the link follows
 * the host. An event reports the change. */
void rwire_netif_shut(struct rwire *wire, uint32_t port_num, uint32_t by, bool is_shut);

#endif /* RWIRE_NETIF_H */
