/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A simulated network between two devices, and its clock. */

#ifndef SIM_H
#define SIM_H

#include "soft/wire/rwire.h"

/* Probabilities in units of 2^-32. */
struct sim_faults {
	uint32_t loss;
	uint32_t dup;
	uint32_t corrupt;
	uint32_t trunc;
	uint32_t delay_us; /* maximum of a random delay, which reorders packets */
};

/* Packets since sim_start(). */
struct sim_counts {
	uint64_t sent;
	uint64_t lost;
	uint64_t dups;
	uint64_t damaged;
	uint64_t sent_of[256]; /* of each traffic class */
};

extern struct sim_counts sim_counts;

/* Direct access of device 0 to device 1. */
struct sim_direct {
	bool is_on;
	bool has_grant; /* there may be one; else none */
	struct rwire_copy_peer link;
	struct rsoft_grants shared;
	uint32_t nb_received; /* attempts while device 0 received */
};

extern struct sim_direct sim_direct;

/* Replace the port of a device, 0 or 1; its own is closed with the device. */
void sim_attach(unsigned int i, struct rsoft_dev *dev);
void sim_start(uint64_t seed, const struct sim_faults *faults);
/* Drop all packets in flight. */
void sim_clear(void);
/* Deliver a packet to a device now; its ICRC is set with is_good. */
void sim_inject(unsigned int to, const struct rwire_addr *src, struct rwire_pkt *pkt,
		const void *payload, bool is_good);
/* The same with a traffic class, and a good ICRC. */
void sim_inject_class(unsigned int to, const struct rwire_addr *src, struct rwire_pkt *pkt,
		const void *payload, uint8_t traffic_class);
/* Remove the next packet for a device; its payload is dropped. */
bool sim_take(unsigned int to, struct rwire_pkt *pkt);
/* Advance the clock by a step or, after many idle steps, to the next event. */
void sim_step(bool is_idle);
/* Set the clock forward (positive) or back. */
void sim_jump(int64_t seconds);

uint32_t sim_random(uint32_t below);

#endif /* SIM_H */
