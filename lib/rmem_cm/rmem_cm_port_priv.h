/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The port: communication manager of a device that has none in the kernel. It consists of an
 * engine of ibcm.h, QP 1, and a thread that serves both. Not installed.
 *
 * A device has a port while a listener or a connection uses one. The lock of the port protects its
 * engine and all its links.
 */

#ifndef RMEM_CM_PORT_PRIV_H
#define RMEM_CM_PORT_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <rmem_obj.h>

#include "ibcm.h"
#include "rmem_gsi.h"

#include "rmem_cm_priv.h"

struct cm_port;

/** One side of a connection, or a request that waits for rmem_cm_accept(). */
struct cm_link {
	TAILQ_ENTRY(cm_link) next; /**< In the queue of the listener, while it is queued. */
	struct cm_links *queue;    /**< The queue; NULL: not queued. */
	struct ibcm_id *id;        /**< Released with the link, and not before. */
	bool has_reply;            /**< A REP was received. */
	bool is_established;       /**< An RTU was received. */
	bool is_ended;
	int error;       /**< -errno for the waiting call, if is_ended. */
	uint32_t length; /**< Valid bytes of data[]. */
	uint8_t data[CM_MAX_SIZE];
};

/** Requests of a listener. */
TAILQ_HEAD(cm_links, cm_link);

/** Get the port of a device, and create it if there is none. Return 0, or the -errno of
 * rmem_cm_connect(). */
int rmem_cm_port_get(struct rmem_dev *dev, struct cm_port **port);
/** Release a port. The last user waits up to 2 s for the peers that are disconnected. */
void rmem_cm_port_put(struct cm_port *port);

/** Lock a port. Return its engine. */
struct ibcm *rmem_cm_port_lock(struct cm_port *port);
void rmem_cm_port_unlock(struct cm_port *port);
/** Wait, with the port locked, until its thread has run once. Return false at end_ms. */
bool rmem_cm_port_wait(struct cm_port *port, uint64_t end_ms);
/** Current time of the engine, ns. */
uint64_t rmem_cm_port_now(void);
struct rmem_dev *rmem_cm_port_dev(const struct cm_port *port);

/** A port in reports, also for a device whose port no longer exists. */
struct rmem_cm_port_view {
	const char *dev; /**< Name of the device. */
	const struct ibcm_log *log;
	const struct ibcm *cm;            /**< NULL: there is no port now. */
	const struct rmem_gsi_stats *gsi; /**< NULL: there is no port now. */
};

/** Visit the ports of all devices that had one, each under its lock. */
void rmem_cm_ports_visit(void (*visit)(void *arg, const struct rmem_cm_port_view *view), void *arg);

#endif /* RMEM_CM_PORT_PRIV_H */
