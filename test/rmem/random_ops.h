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

#define NB_FORMER       64u
#define NB_DOMAINS      2u
#define NB_COUNTERS     2u
#define RANDOM_MAX_SGE  3u
#define RANDOM_MAX_RECV 16u
#define NB_OTHERS       8u /* objects that other lcores may create or release concurrently */
#define RANDOM_QKEY     7u

/* Pairs of other services than RC. */
enum random_link {
	RANDOM_UC,
	RANDOM_UD,
	RANDOM_XRC,
	NB_LINKS,
};

/*
 * a is in domain 0; b in domain 0 or 1. Sides of links have no buffer. Of XRC, b has the domain of
 * its SRQ.
 */
struct pair {
	struct fx_side a;
	struct fx_side b;
	unsigned int pd_b;
	uint8_t type;         /* RMEM_QPT_*, of a */
	uint32_t srq_num;     /* XRC */
	struct rmem_srq *srq; /* XRC */
	struct rmem_ah *ah;   /* UD: path to b */
	bool is_armed;        /* the CQ of a has a channel, and its next completion is an event */
};

/* All keys that were ever valid on a device, and their owners; shared by its runs. */
struct random_keys {
	rte_ticketlock_t lock;
	struct key_log log;
	uint32_t nb_owners;
};

struct random_recv {
	uint64_t wr_id;
	struct rmem_sge sge[RANDOM_MAX_SGE];
	uint16_t nb;
};

/* The SRQ of a run, of which all of its QPs take receives; srq is NULL without. */
struct random_srq {
	struct rmem_srq *srq;
	struct rmem_async_channel *channel; /* of its limit */
	unsigned int pd;
	struct random_recv recv[RANDOM_MAX_RECV]; /* posted, the oldest first */
	uint32_t nb;
	uint32_t max_wr;
	uint32_t limit;
	uint64_t next_id;
};

struct random_run {
	struct model model;
	struct random_srq srq;
	struct random_keys *keys;
	struct rmem_pd *pds[NB_DOMAINS];
	struct pair pairs[NB_DOMAINS]; /* of RC */
	struct pair links[NB_LINKS];
	struct rmem_fast_reg_page_list *list;
	struct rmem_counter *counters[NB_COUNTERS];
	uint64_t counts[NB_COUNTERS]; /* expected values */
	uint8_t *arena;
	uint32_t on_demand;         /* RMEM_ACCESS_ON_DEMAND, where the device has it, or 0 */
	uint32_t former[NB_FORMER]; /* earlier keys */
	uint64_t random;
	uint64_t nb_succeeded;
	uint64_t nb_refused;
	uint64_t nb_bound;           /* windows and lists that were bound */
	uint64_t nb_taken[NB_LINKS]; /* messages that had a receive */
	uint64_t nb_injected;        /* requests that chaos= failed, and that were repeated */
	bool has_chaos;
	/* The last receive that a reset of its QP drops, and this QP. */
	struct random_recv posted;
	struct rmem_qp *posted_to;
	struct leases *leases; /* random_lease.c */
	uint64_t nb_leased;
	struct model_span local;
	struct model_span remote;
	char what[160]; /* the operation, for failure messages */
};

/* Operations of another library, if it is linked; number is that of the run. */
struct random_extra {
	void (*open)(struct random_run *run, unsigned int number);
	int (*op)(struct random_run *run);
	int (*close)(struct random_run *run);
};

extern struct random_extra random_extra;

/* Run one operation; not 0 if the device deviates from the model. */
int random_op(struct random_run *run);

/* Release the objects of the operations, and report failures. */
int random_end(struct random_run *run);

/* Shared by random_ops.c, random_key.c, random_bind.c and random_link.c. */
uint32_t random_below(struct random_run *run, uint32_t limit);
bool random_one_in(struct random_run *run, uint32_t n);
void random_remember(struct random_run *run, uint32_t key);
/* Record a valid rkey; not 0 if another owner ever had it. */
int random_note_key(struct random_run *run, const struct model_region *region);
/* Whether all MRs, or all windows, of the device are in use. */
bool random_is_full(struct random_run *run, bool is_window);
struct model_region *random_region(struct random_run *run);
/* A region, mostly of one of these kinds (bits 1 << enum model_kind). */
struct model_region *random_of_kind(struct random_run *run, uint32_t kinds, bool is_valid);
/* An unused entry of the model, or NULL. */
struct model_region *random_place(struct random_run *run);
/* A region, mostly one that grants these rights in this PD. */
struct model_region *random_fitting(
		struct random_run *run, unsigned int pd, uint32_t need, bool is_local);
/* Mostly the key of the region, else an earlier key, its other key, or a random number. */
uint32_t random_key(struct random_run *run, const struct model_region *region, bool is_lkey);
/* Address of length bytes that are mostly inside the region. */
uint64_t random_addr(struct random_run *run, const struct model_region *region, uint32_t length);
/* Random valid access rights of an MR. */
uint32_t random_access(struct random_run *run);
/* A side of a pair, mostly of that PD, or the one with that QP. */
struct fx_side *random_side(struct random_run *run, unsigned int pd, const struct rmem_qp *qp,
		struct pair **pair, struct model_side *who);
/*
 * Post one request on a side; its status or -errno. A failed pair is connected again. A request
 * that a rule of chaos= fails has no effect, and is repeated.
 */
int random_send(struct random_run *run, struct pair *pair, struct fx_side *side,
		const struct rmem_send_wr *wr);
/* The same for the completion of a posted request. */
int random_wait(struct random_run *run, struct pair *pair, struct fx_side *side);
int random_reconnect(struct pair *pair);
/* Whether a rule of chaos= failed a request. */
bool random_is_injected(const struct random_run *run, const struct rmem_wc *wc);
/* Post a receive to the receive queue of a QP; 1 or -errno. */
int random_post_recv(struct random_run *run, struct rmem_qp *qp, const struct random_recv *recv);

/* SGEs that mostly fit these rights; how many. */
uint16_t random_sges(struct random_run *run, struct rmem_sge *sge, unsigned int pd, uint32_t need);

/* Create the SRQ, and QPs that use it. */
void random_srq_open(struct random_run *run);
/*
 * Ensure that a receive is posted. The one that the next message to that QP takes; NULL: the post
 * failed.
 */
const struct random_recv *random_recv_post(
		struct random_run *run, struct rmem_qp *qp, const struct random_recv *recv);
/* A message took it; not 0 if the device deviates from the model. */
int random_recv_taken(struct random_run *run);

/* Create the links; and whether a completion of a side was an event as the model has it. */
void random_links_open(struct random_run *run);
bool random_event_matches(struct pair *pair, const struct fx_side *side);
/* Remove the bytes of a message. */
void random_clear(struct model_span *span);

/* Operations. */
int random_message(struct random_run *run);
int random_resize(struct random_run *run);
int random_arm(struct random_run *run);
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
int random_srq(struct random_run *run);

#endif /* RANDOM_OPS_H */
