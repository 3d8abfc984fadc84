/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Random operations on a device and on its model at a time, for test_random.c.
 *
 * A run has all of its state, so that lcores execute runs in parallel.
 */

#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H

#include <rte_ticketlock.h>

#include "fixture.h"
#include "key_log.h"
#include "model.h"

#define NB_FORMER   64u
#define NB_DOMAINS  2u
#define NB_COUNTERS 2u
#define NB_OTHERS   8u /* objects that other lcores may make or release at a time */

/* a is in domain 0; b in domain 0 or 1. */
struct pair {
	struct fx_side a;
	struct fx_side b;
	unsigned int pd_b;
};

/* Of all runs on a device: which keys were ever valid, and whose they were. */
struct random_keys {
	rte_ticketlock_t lock;
	struct key_log log;
	uint32_t nb_owners;
};

struct random_run {
	struct model model;
	struct random_keys *keys;
	struct rmem_pd *pds[NB_DOMAINS];
	struct pair pairs[NB_DOMAINS];
	struct rmem_fast_reg_page_list *list;
	struct rmem_counter *counters[NB_COUNTERS];
	uint64_t counts[NB_COUNTERS]; /* what they should be */
	uint8_t *arena;
	uint32_t on_demand;         /* RMEM_ACCESS_ON_DEMAND, where the device has it, or 0 */
	uint32_t former[NB_FORMER]; /* keys that were given out at some time */
	uint64_t random;
	uint64_t nb_succeeded;
	uint64_t nb_refused;
	uint64_t nb_bound; /* windows and lists that were bound */
	struct model_span local;
	struct model_span remote;
	char what[160]; /* the operation, for failure messages */
};

/* One operation; not 0 when the device does what the model does not allow. */
int random_op(struct random_run *run);

/* Release the objects of the operations, and report failures. */
int random_end(struct random_run *run);

/* Shared by random_ops.c, random_key.c and random_bind.c. */
uint32_t random_below(struct random_run *run, uint32_t limit);
bool random_one_in(struct random_run *run, uint32_t n);
/* A released key. */
void random_remember(struct random_run *run, uint32_t key);
/* Note that the rkey of a region is valid; not 0 when it was another's at any time. */
int random_note_key(struct random_run *run, const struct model_region *region);
/* Whether all MRs, or all windows, of the device are in use. */
bool random_is_full(struct random_run *run, bool is_window);
struct model_region *random_region(struct random_run *run);
/* Mostly one of these kinds (bits 1 << enum model_kind), open or not. */
struct model_region *random_of_kind(struct random_run *run, uint32_t kinds, bool is_valid);
/* A place that no region has, or NULL. */
struct model_region *random_place(struct random_run *run);
/* Mostly one that opens something for these rights in this domain. */
struct model_region *random_fitting(
		struct random_run *run, unsigned int pd, uint32_t need, bool is_local);
/* Mostly the key of a region, else one of the past, one of the wrong kind, or noise. */
uint32_t random_key(struct random_run *run, const struct model_region *region, bool is_lkey);
/* Address of so many bytes, which are mostly inside the region. */
uint64_t random_addr(struct random_run *run, const struct model_region *region, uint32_t length);
/* Rights that an MR may have. */
uint32_t random_access(struct random_run *run);
/* A side of a pair, mostly of that domain, or the one with that QP. */
struct fx_side *random_side(struct random_run *run, unsigned int pd, const struct rmem_qp *qp,
		struct pair **pair, struct model_side *who);
/* Post one request on a side; its status or -errno. A failed pair is connected again. */
int random_send(struct random_run *run, struct pair *pair, struct fx_side *side,
		const struct rmem_send_wr *wr);
/* The same for a completion that is to come. */
int random_wait(struct random_run *run, struct pair *pair, struct fx_side *side);
int random_reconnect(struct pair *pair);

/* Operations. */
int random_reg(struct random_run *run);
int random_alloc(struct random_run *run);
int random_release(struct random_run *run);
int random_rereg(struct random_run *run);
int random_enable(struct random_run *run);
int random_count(struct random_run *run);
int random_reg_mr(struct random_run *run);
int random_umr(struct random_run *run);
int random_bind(struct random_run *run);
int random_unbind(struct random_run *run);
int random_local_inv(struct random_run *run);
int random_send_inv(struct random_run *run);

#endif /* RANDOM_OPS_H */
