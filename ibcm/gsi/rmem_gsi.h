/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QP 1 of a device: sends and receives MADs for an engine of ibcm.h.
 *
 * Inside: QP 1 of a device, and the packets of its MADs.
 * Callers: lib/rmem_cm, and dropin/cm, which have the engine and its threads.
 * Not known here: connections, rdma_cm, and drivers.
 *
 * Callers serialise all calls for a QP 1. The calling threads must be registered with EAL, because
 * they post and poll. They wait until the descriptor of rmem_gsi_fd() is readable, and then call
 * rmem_gsi_poll(). If it leaves MADs, they first let other threads have their locks.
 */

#ifndef RMEM_GSI_H
#define RMEM_GSI_H

#include "ibcm.h"

#define RMEM_GSI_MAX_POLL 4096 /* 10 ms */

struct rmem_gsi;
struct rmem_dev;

/*
 * Callback for a received MAD of class 7; path is the path of an answer. It may call
 * rmem_gsi_send().
 */
typedef void (*rmem_gsi_recv_t)(
		void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN]);

struct rmem_gsi_stats {
	uint64_t rx;      /* MADs of class 7 */
	uint64_t tx;      /* MADs sent */
	uint64_t foreign; /* dropped: another class, length or source QP */
	uint64_t lost;    /* not sent: no path to the GID, or the queue is full */
};

/*
 * Create QP 1 of a device. Return 0, -EOPNOTSUPP (the device has no QP 1), -EBUSY (it is in use),
 * -ENOMEM or -EIO.
 */
int rmem_gsi_open(struct rmem_dev *dev, rmem_gsi_recv_t recv, void *arg, struct rmem_gsi **gsi);
/* Destroy the QP, after waiting up to 0.1 s for MADs that are not sent yet. */
void rmem_gsi_close(struct rmem_gsi *gsi);
/*
 * Destroy the QP, but not its descriptor: the program has closed it, and its number may now refer
 * to another file.
 */
void rmem_gsi_abandon(struct rmem_gsi *gsi);

/* Descriptor that is readable when MADs have arrived since rmem_gsi_poll(); -1: poll
 * periodically. */
int rmem_gsi_fd(const struct rmem_gsi *gsi);
/* GID of the device. */
const uint8_t *rmem_gsi_gid(const struct rmem_gsi *gsi);
/*
 * Pass the MADs that have arrived to the callback, at most RMEM_GSI_MAX_POLL: peers may send more
 * and more. True: some may be left, for which the descriptor need not become readable.
 */
bool rmem_gsi_poll(struct rmem_gsi *gsi);
/* Send a MAD. It may be lost, as on the network. */
void rmem_gsi_send(struct rmem_gsi *gsi, const struct ibcm_path *path,
		const uint8_t mad[IBCM_MAD_LEN]);
/* 64 bits that peers can't guess, for ibcm_conf::random. */
uint64_t rmem_gsi_random(void *arg);
const struct rmem_gsi_stats *rmem_gsi_stats(const struct rmem_gsi *gsi);

#endif /* RMEM_GSI_H */
