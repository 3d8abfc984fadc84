/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Faults that the rules of chaos= inject (doc/chaos.md).
 *
 * Inside: the grammar of rules, which statuses each opcode may have, the decision whether a rule
 *   hits, and the log.
 * Callers: queue, wire and drivers/soft.
 * Not known here: queues, completions, packets and how a fault is executed.
 *
 * Invariants:
 * - A decision depends on the seed, the rule, the number of the object in the order of creation,
 *   and the number of the event among those of the object that the rule matches. It depends on
 *   nothing that another thread does.
 * - A decision on a request is made when it is posted, by the thread that posts. The executor finds
 *   it in plan[], by the position of the request: one writer and one reader, ordered by the queue.
 * - A device without chaos= has no rules and the functions of the fast path that others have; an
 *   executor then loads one pointer, which is NULL, for each burst.
 */

#ifndef RSOFT_CHAOS_H
#define RSOFT_CHAOS_H

#include "../base/rsoft.h"

struct rsoft_chaos;
struct rsoft_chaos_rule;

/* The failure of a request that a rule hits. */
struct rsoft_chaos_plan {
	uint64_t nth;    /* number of the event, for the log */
	uint32_t rule;   /* index of the rule */
	uint32_t status; /* enum rmem_wc_status, or an event; 0: none; atomic */
};

/* A rule that applies to an object, and the events of the object that it matched. */
struct rsoft_chaos_use {
	const struct rsoft_chaos_rule *rule;
	uint64_t nb_events;
	uint64_t nb_hits;
};

/* Of rsoft_chaos_plan::status, and rsoft_chaos_hit::status, from here on: RMEM_ASYNC_* + this. */
#define RSOFT_CHAOS_EVENTS 64

/* The rules of a QP, in the memory of the process. */
struct rsoft_chaos_qp {
	struct rsoft_chaos *chaos;
	const struct rmem_qp *qp;
	uint32_t opcodes;    /* bits of those that a rule matches */
	uint32_t nb_planned; /* entries of plan[] in use; atomic */
	uint32_t base;       /* position in the queue of the first request since the last reset */
	uint32_t mask;
	bool has_recv;     /* a rule of its receives */
	bool is_late;      /* the next attempt is of a message that had such; under rq.lock */
	uint32_t rnr_left; /* attempts of a message without a receive; under rq.lock */
	uint32_t ordinal;  /* number of the QP in the order of creation, from 1 on */
	struct rsoft_chaos_plan *plan; /* by position since the last reset & mask */
	uint32_t nb_uses;
	struct rsoft_chaos_use uses[];
};

/* The rules of a CQ, for the thread that polls it. */
struct rsoft_chaos_cq {
	struct rsoft_chaos *chaos;
	uint32_t ordinal; /* number of the CQ in the order of creation, from 1 on */
	uint32_t pos;     /* of the completion that is late */
	uint32_t left;    /* polls that do not return it */
	bool is_passed;   /* it was late */
	bool is_held;     /* held was taken from the CQ and is not returned yet */
	uint32_t held_left;
	struct rmem_wc held;
	uint64_t held_time; /* its timestamp */
	uint32_t nb_uses;
	struct rsoft_chaos_use uses[];
};

/* A request that a rule hits. */
struct rsoft_chaos_hit {
	struct rsoft_chaos_use *use;
	uint32_t status; /* enum rmem_wc_status, or an event; 0: the post refuses it */
};

/* Calls that rules are about, with their names without rmem_. */
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
	RSOFT_CHAOS_DOWN = 1, /* PORT_ERR, and all packets are lost */
	RSOFT_CHAOS_FREEZE,   /* all packets are lost */
	RSOFT_CHAOS_FATAL,
	RSOFT_CHAOS_GID, /* a further GID is removed, and added again */
};

/* Parse the value of chaos=: 0, -EINVAL after a log line, or -ENOMEM. With has_wire, of ip=. */
int rsoft_chaos_open(const char *text, bool has_wire, struct rsoft_chaos **chaos);
void rsoft_chaos_close(struct rsoft_chaos *chaos);
/* Its items on packets, as the value of fault=; empty without any, and rules about the port. */
void rsoft_chaos_packets(const struct rsoft_chaos *chaos, char *fault, size_t size);

/*
 * Number a new QP, and collect the rules that apply to it; *qp is NULL if there are none. nb_slots
 * is the size of its queue, a power of two.
 */
int rsoft_chaos_qp_init(struct rsoft_chaos *chaos, const struct rmem_qp *base, uint32_t nb_slots,
		struct rsoft_chaos_qp **qp);
void rsoft_chaos_qp_fini(struct rsoft_chaos_qp *qp);

/* All requests are dropped; the next one has position base in the queue. */
void rsoft_chaos_qp_reset(struct rsoft_chaos_qp *qp, uint32_t base);

/*
 * Count n requests up to the first that a rule hits, included: its index, or n. For the thread that
 * posts.
 */
uint32_t rsoft_chaos_next(struct rsoft_chaos_qp *qp, const struct rmem_send_wr *wr, uint32_t n,
		struct rsoft_chaos_hit *hit);
/*
 * The last n of the requests counted were not accepted: they, and the hit of one, are not counted.
 * With n 0 nothing changes.
 */
void rsoft_chaos_uncount(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr, uint32_t n);

/* The request at a position since the last reset, about to be posted, fails when it executes. */
void rsoft_chaos_plan(struct rsoft_chaos_qp *qp, uint32_t pos, const struct rsoft_chaos_hit *hit);
/* It was not accepted, or is flushed. */
void rsoft_chaos_unplan(struct rsoft_chaos_qp *qp, uint32_t pos);
/* The planned request at a position fails now: log it, and return its status. */
int rsoft_chaos_inject(struct rsoft_chaos_qp *qp, uint32_t pos, const struct rmem_send_wr *wr);
/* Log the failure of a request that the hit itself causes. */
void rsoft_chaos_log_hit(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr);

/* The bit of an opcode; none for an unknown one. */
static inline uint32_t
rsoft_chaos_opcode(const struct rmem_send_wr *wr)
{
	return wr->opcode < RMEM_WR_OPCODE_NB ? UINT32_C(1) << wr->opcode : 0;
}

/* The post refuses the request of that hit, which is an event of refusals alone: the errno. */
int rsoft_chaos_refuse(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr);
/* Count a receive that is posted: 0, or the errno with which the post refuses it. */
int rsoft_chaos_recv(struct rsoft_chaos_qp *qp, const struct rmem_recv_wr *wr);
/* Count a call that changes a QP, or another one of a device: 0, or the errno of its failure. */
int rsoft_chaos_qp_modify(struct rsoft_chaos_qp *qp);
int rsoft_chaos_call(struct rsoft_chaos *chaos, enum rsoft_chaos_call call);

/* Count a step of a connection of rdma_cm: 1 with its fault, or 0. */
int rsoft_chaos_rdma_cm(struct rsoft_chaos *chaos, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault);

/* Whether a message of a QP gets no receive at this attempt. Under rq.lock. */
bool rsoft_chaos_no_recv(struct rsoft_chaos_qp *qp);
/* Let the receive of a message with data fail, if a rule hits it. Under rq.lock. */
void rsoft_chaos_break_recv(struct rsoft_chaos_qp *qp, struct rsoft_rqe *rqe);

/* Whether rules are about the port or the device, and about its GIDs. */
bool rsoft_chaos_has_port(const struct rsoft_chaos *chaos);
bool rsoft_chaos_has_gid(const struct rsoft_chaos *chaos);
/*
 * Count a packet that is sent: what happens to the port, and for how many ms; or 0. For one thread
 * at a time.
 */
enum rsoft_chaos_port rsoft_chaos_packet(struct rsoft_chaos *chaos, uint32_t *ms);
/*
 * The same that happens by time; *next_ms is the time since the device was created, at which to
 * call again, or UINT64_MAX.
 */
enum rsoft_chaos_port rsoft_chaos_time(struct rsoft_chaos *chaos, uint32_t *ms, uint64_t *next_ms);

/* Number a new CQ, and collect the rules that apply to it; *cq is NULL if there are none. */
int rsoft_chaos_cq_init(struct rsoft_chaos *chaos, struct rsoft_chaos_cq **cq);
void rsoft_chaos_cq_fini(struct rsoft_chaos_cq *cq);
/* The number of completions, up to n, that a poll may return; the first, at pos, is in the CQ. */
uint32_t rsoft_chaos_poll(struct rsoft_chaos_cq *cq, uint32_t pos, uint32_t n);
/* Whether the completion at pos is overtaken: it is kept in held, for held_left polls. */
bool rsoft_chaos_hold(struct rsoft_chaos_cq *cq, uint32_t pos);

/* Whether a request that is posted and has not ended fails. */
static inline bool
rsoft_chaos_has_planned(const struct rsoft_chaos_qp *qp)
{
	return __atomic_load_n(&qp->nb_planned, __ATOMIC_RELAXED) != 0;
}

/* Whether the request at a position since the last reset fails. */
static inline bool
rsoft_chaos_is_planned(const struct rsoft_chaos_qp *qp, uint32_t pos)
{
	return rsoft_chaos_has_planned(qp) &&
			__atomic_load_n(&qp->plan[pos & qp->mask].status, __ATOMIC_RELAXED) != 0;
}

/* The same for a position in the queue, of a QP all of whose requests are queued. */
static inline bool
rsoft_chaos_is_planned_at(const struct rsoft_qp *qp, uint32_t pos)
{
	return unlikely(qp->chaos != NULL) &&
			rsoft_chaos_is_planned(qp->chaos, pos - qp->chaos->base);
}

#endif /* RSOFT_CHAOS_H */
