/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Faults that rules of chaos= inject (doc/chaos.md).
 *
 * Inside: the grammar of rules, which statuses each opcode may have, the decision whether a rule
 *   hits, and the log.
 * Callers: queue, wire and drivers/soft.
 * Not known here: queues, completions, packets and how a fault is executed.
 *
 * Invariants:
 * - A decision depends on the seed, the rule, the number of the object in order of creation, and
 *   the number of the event among the object's events that the rule matches. It does not depend on
 *   other threads.
 * - A decision on a request is made by the posting thread, at the post. The executor finds it in
 *   plan[] by the position of the request. Each entry has one writer and one reader, ordered by the
 *   queue.
 * - A device without chaos= has no rules and uses the common fast path functions; an executor then
 *   only loads one NULL pointer per burst.
 */

#ifndef RSOFT_CHAOS_H
#define RSOFT_CHAOS_H

#include "../base/rsoft.h"

struct rsoft_chaos;
struct rsoft_chaos_rule;

/* The planned failure of a request that a rule hits. */
struct rsoft_chaos_plan {
	uint64_t nth;    /* number of the event, for the log */
	uint32_t rule;   /* index of the rule */
	uint32_t status; /* enum rmem_wc_status, or an event; 0: none; atomic */
};

/* A rule that applies to an object, with the number of matching events of the object. */
struct rsoft_chaos_use {
	const struct rsoft_chaos_rule *rule;
	uint64_t nb_events;
	uint64_t nb_hits;
};

/* Values of rsoft_chaos_plan::status and rsoft_chaos_hit::status from here on are this +
 * RMEM_ASYNC_*. */
#define RSOFT_CHAOS_EVENTS 64

/* The rules of a QP, in memory of this process. */
struct rsoft_chaos_qp {
	struct rsoft_chaos *chaos;
	const struct rmem_qp *qp;
	uint32_t opcodes;    /* opcodes that a rule matches, as bits */
	uint32_t nb_planned; /* entries of plan[] in use; atomic */
	uint32_t base;       /* queue position of the first request after the last reset */
	uint32_t mask;
	bool has_recv;     /* a rule applies to its receives */
	bool is_late;      /* the message of the next attempt was delayed; under rq.lock */
	uint32_t rnr_left; /* attempts still to fail; under rq.lock */
	uint32_t ordinal;  /* number of the QP in the order of creation, from 1 on */
	struct rsoft_chaos_plan *plan; /* by position since the last reset & mask */
	uint32_t nb_uses;
	struct rsoft_chaos_use uses[];
};

/* Bit of rsoft_chaos_cq::drain. */
#define RSOFT_CHAOS_DRAIN (UINT64_C(1) << 32)

/*
 * The rules of a CQ; used by the polling thread.
 * Invariant: is_late: the next completion is late; is_held: one is taken from the CQ into `held`,
 * and not returned yet. At most one of them is set; left, pos and is_recv refer to that completion.
 */
struct rsoft_chaos_cq {
	struct rsoft_chaos *chaos;
	uint32_t ordinal;  /* number of the CQ in the order of creation, from 1 on */
	uint32_t left;     /* polls until it is returned */
	uint32_t pos;      /* its position */
	bool is_late;      /* returned first, with those after it */
	bool is_held;      /* overtaken by others */
	bool is_recv;      /* held; it is a receive that is late */
	uint64_t nb;       /* completions taken from the CQ so far */
	uint64_t nb_recvs; /* those of receives among them */
	/* RSOFT_CHAOS_DRAIN + position: completions before it are returned at once; 0: none;
	 * atomic. */
	uint64_t drain;
	struct rmem_wc held;
	uint64_t held_time; /* timestamp of held */
	uint32_t nb_uses;
	struct rsoft_chaos_use uses[];
};

/* A request that a rule hits. */
struct rsoft_chaos_hit {
	struct rsoft_chaos_use *use;
	uint32_t status; /* enum rmem_wc_status, or an event; 0: the post is refused */
};

/* Calls that rules apply to; names are without rmem_. */
enum rsoft_chaos_call {
	RSOFT_CHAOS_AH_CREATE,
	RSOFT_CHAOS_CQ_CREATE,
	RSOFT_CHAOS_CQ_RESIZE,
	RSOFT_CHAOS_FAST_REG_MR_ALLOC,
	RSOFT_CHAOS_MKEY_ALLOC,
	RSOFT_CHAOS_MR_REG,
	RSOFT_CHAOS_MR_REREG,
	RSOFT_CHAOS_MW_ALLOC,
	RSOFT_CHAOS_PD_ALLOC,
	RSOFT_CHAOS_QP_CREATE,
	RSOFT_CHAOS_SRQ_CREATE,
	RSOFT_CHAOS_SRQ_MODIFY,
	RSOFT_CHAOS_SRQ_POST_RECV,
	RSOFT_CHAOS_CALL_NB,
};

/* Faults of a port or a device. */
enum rsoft_chaos_port {
	RSOFT_CHAOS_DOWN = 1, /* PORT_ERR; all packets are lost */
	RSOFT_CHAOS_FREEZE,   /* all packets are lost */
	RSOFT_CHAOS_FATAL,
	RSOFT_CHAOS_GID, /* a GID other than GID 0 is removed, and added again */
};

/* Parse the value of chaos=. Return 0, -EINVAL after a log line, or -ENOMEM. has_wire: with ip=. */
int rsoft_chaos_open(const char *text, bool has_wire, struct rsoft_chaos **chaos);
void rsoft_chaos_close(struct rsoft_chaos *chaos);
/* Format its items on packets as a value of fault=; empty if there are none and no rules for the
 * port. */
void rsoft_chaos_packets(const struct rsoft_chaos *chaos, char *fault, size_t size);

/*
 * Number a new QP, and collect the rules that apply to it; *qp is NULL if there are none. nb_slots
 * is the size of its queue, a power of two.
 */
int rsoft_chaos_qp_init(struct rsoft_chaos *chaos, const struct rmem_qp *base, uint32_t nb_slots,
		struct rsoft_chaos_qp **qp);
void rsoft_chaos_qp_fini(struct rsoft_chaos_qp *qp);

/* Drop all requests; the next request has position `base` in the queue. */
void rsoft_chaos_qp_reset(struct rsoft_chaos_qp *qp, uint32_t base);

/*
 * Count requests up to and including the first that a rule hits; return its index, or n. Called by
 * the posting thread.
 */
uint32_t rsoft_chaos_next(struct rsoft_chaos_qp *qp, const struct rmem_send_wr *wr, uint32_t n,
		struct rsoft_chaos_hit *hit);
/*
 * Undo the count of the last n requests, and the hit of one of them, because they were not
 * accepted. n may be 0.
 */
void rsoft_chaos_uncount(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr, uint32_t n);

/* Plan the failure of the request at a position since the last reset, which is about to be
 * posted. */
void rsoft_chaos_plan(struct rsoft_chaos_qp *qp, uint32_t pos, const struct rsoft_chaos_hit *hit);
/* Remove the plan of a request that was not accepted, or is flushed. */
void rsoft_chaos_unplan(struct rsoft_chaos_qp *qp, uint32_t pos);
/* Log the planned failure of a request that fails now; return its status. */
int rsoft_chaos_inject(struct rsoft_chaos_qp *qp, uint32_t pos, const struct rmem_send_wr *wr);
/* Log the failure of a request that is not planned in advance. */
void rsoft_chaos_log_hit(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr);

/* Bit of an opcode; 0 for an unknown opcode. */
static inline uint32_t
rsoft_chaos_opcode(const struct rmem_send_wr *wr)
{
	return wr->opcode < RMEM_WR_OPCODE_NB ? UINT32_C(1) << wr->opcode : 0;
}

/* Refuse a request, which then counts only for rules of posts; return the errno. */
int rsoft_chaos_refuse(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr);
/* Count a posted receive; 0, or the errno to refuse it with. */
int rsoft_chaos_recv(struct rsoft_chaos_qp *qp, const struct rmem_recv_wr *wr);
/* Count a call that changes a QP, or another call of a device; 0, or the errno to fail with. */
int rsoft_chaos_qp_modify(struct rsoft_chaos_qp *qp);
int rsoft_chaos_call(struct rsoft_chaos *chaos, enum rsoft_chaos_call call);

/* Count a step of a connection of rdma_cm; 1 with its fault, or 0. */
int rsoft_chaos_rdma_cm(struct rsoft_chaos *chaos, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault);

/* Whether a message gets no receive at this attempt. Under rq.lock. */
bool rsoft_chaos_no_recv(struct rsoft_chaos_qp *qp);
/* Make the receive of a message with data fail, if a rule hits it. Under rq.lock. */
void rsoft_chaos_break_recv(struct rsoft_chaos_qp *qp, struct rsoft_rqe *rqe);

/* Whether rules apply to the port or device, or to its GIDs. */
bool rsoft_chaos_has_port(const struct rsoft_chaos *chaos);
bool rsoft_chaos_has_gid(const struct rsoft_chaos *chaos);
/* The highest number of a port in a rule. */
uint32_t rsoft_chaos_max_port(const struct rsoft_chaos *chaos);

/* Which port a fault is about, and how long. */
struct rsoft_chaos_port_hit {
	uint32_t port_num;
	uint32_t ms;
};

/* Count a packet that a port sends; return a fault with its hit, or 0. One thread at a time. */
enum rsoft_chaos_port rsoft_chaos_packet(
		struct rsoft_chaos *chaos, uint32_t port_num, struct rsoft_chaos_port_hit *hit);
/*
 * The same for rules with a time. *next_ms: when to call again, in ms since the creation of the
 * device, or UINT64_MAX.
 */
enum rsoft_chaos_port rsoft_chaos_time(
		struct rsoft_chaos *chaos, struct rsoft_chaos_port_hit *hit, uint64_t *next_ms);

/* Number a new CQ, and collect the rules that apply to it; *cq is NULL if there are none. */
int rsoft_chaos_cq_init(struct rsoft_chaos *chaos, struct rsoft_chaos_cq **cq);
void rsoft_chaos_cq_fini(struct rsoft_chaos_cq *cq);
/*
 * The rule that delays the next completion, which is at a position of the CQ; NULL, after counting
 * it, if it is returned now. For the polling thread, as all of these but rsoft_chaos_cq_drain().
 */
struct rsoft_chaos_use *rsoft_chaos_cq_next(struct rsoft_chaos_cq *cq, uint32_t pos, bool is_recv);
/* Begin the delay by that rule; true: take the completion into `held`, others overtake it. */
bool rsoft_chaos_cq_begin(
		struct rsoft_chaos_cq *cq, struct rsoft_chaos_use *use, uint32_t pos, bool is_recv);
/* Whether this poll does not return the completion that is delayed, if there is one. */
bool rsoft_chaos_cq_waits(struct rsoft_chaos_cq *cq);
/*
 * A QP of the CQ, whose last completion is before position `end`, is reset or destroyed: no
 * completion before it is delayed any more. By any thread; cq may be NULL.
 */
void rsoft_chaos_cq_drain(struct rsoft_chaos_cq *cq, uint32_t end);
/* The device has failed: polls return all completions at once, and then an error. */
void rsoft_chaos_fail(struct rsoft_chaos *chaos);

/* Whether the failure of a posted request is planned. */
static inline bool
rsoft_chaos_has_planned(const struct rsoft_chaos_qp *qp)
{
	return __atomic_load_n(&qp->nb_planned, __ATOMIC_RELAXED) != 0;
}

/* Whether the failure of the request at a position since the last reset is planned. */
static inline bool
rsoft_chaos_is_planned(const struct rsoft_chaos_qp *qp, uint32_t pos)
{
	return rsoft_chaos_has_planned(qp) &&
			__atomic_load_n(&qp->plan[pos & qp->mask].status, __ATOMIC_RELAXED) != 0;
}

/* The same for a position in the queue of a QP that queues all of its requests. */
static inline bool
rsoft_chaos_is_planned_at(const struct rsoft_qp *qp, uint32_t pos)
{
	return unlikely(qp->chaos != NULL) &&
			rsoft_chaos_is_planned(qp->chaos, pos - qp->chaos->base);
}

#endif /* RSOFT_CHAOS_H */
