/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Rules of chaos=: structures shared by the files of this folder. */

#ifndef RSOFT_CHAOS_RULE_H
#define RSOFT_CHAOS_RULE_H

#include "rsoft_chaos.h"

/* First line of a log, with the version of its format. */
#define RSOFT_CHAOS_LOG_HEAD "# rmem chaos log 1"

/* A bit of the tag of a key. */
#define RSOFT_CHAOS_OTHER_TAG UINT32_C(0x40)

#define RSOFT_CHAOS_TEXT   96 /* bytes of the text of a rule */
#define RSOFT_CHAOS_ALWAYS (UINT64_C(1) << 32)

/* Kinds of rules, by the event that they match. */
enum rsoft_chaos_kind {
	RSOFT_CHAOS_SEND,      /* the completion of a send request fails */
	RSOFT_CHAOS_POST_SEND, /* a send request that a post refuses */
	RSOFT_CHAOS_POST_RECV, /* a receive that a post refuses */
	RSOFT_CHAOS_QP_MODIFY, /* a call that changes a QP */
	RSOFT_CHAOS_CALL,      /* another call, of the device */
	RSOFT_CHAOS_EVENT,     /* an asynchronous event in place of a send request */
	RSOFT_CHAOS_LATE,      /* a completion that polls do not return yet */
	RSOFT_CHAOS_REORDER,   /* a completion that completions of other QPs overtake */
	RSOFT_CHAOS_LATE_RECV, /* a completion of a receive that those of other queues overtake */
	RSOFT_CHAOS_RNR,       /* a message that finds no receive */
	RSOFT_CHAOS_RECV,      /* a receive that fails */
	RSOFT_CHAOS_PORT,      /* the port, or the device */
	RSOFT_CHAOS_CM,        /* a connection of rdma_cm */
};

/* rsoft_chaos_rule::what of a CM rule: step and fault. */
#define RSOFT_CHAOS_CM_WHAT(step, type) ((uint32_t)(step) << 8 | (uint32_t)(type))

/* Default duration in ms that a port is down, or until a timeout of rdma_cm. */
#define RSOFT_CHAOS_PORT_MS 1000

struct rsoft_chaos_rule {
	uint32_t kind; /* enum rsoft_chaos_kind */
	/* SEND, RECV: enum rmem_wc_status; EVENT: RMEM_ASYNC_*; PORT: enum
	 * rsoft_chaos_port; CM: RSOFT_CHAOS_CM_WHAT(); else an errno or 0.
	 */
	uint32_t what;
	uint32_t opcodes;   /* SEND, EVENT, POST_SEND: bits of the opcodes */
	uint32_t call;      /* CALL: enum rsoft_chaos_call */
	uint32_t thread;    /* only events of this thread (thread_ordinal()); 0: of all */
	uint32_t at_ms;     /* PORT: ms since the creation of the device; 0: by packets */
	uint32_t object;    /* only this object, in order of creation, or port; 0: all */
	uint64_t nth;       /* only this event of an object; 0: all */
	uint64_t every;     /* every n-th event of an object; 0: all */
	uint64_t share;     /* probability in units of 2^-32; RSOFT_CHAOS_ALWAYS: all */
	uint64_t times;     /* maximum hits per object */
	uint32_t delay;     /* LATE, REORDER, LATE_RECV: polls; RNR: attempts; PORT, CM: ms */
	uint32_t reason;    /* CM: reason of a REJ (IBTA 12.6.7.2) */
	uint64_t nb_events; /* CALL, PORT, CM: events of the device; atomic */
	uint64_t nb_hits;   /* hits of the device; atomic */
	char text[RSOFT_CHAOS_TEXT]; /* SITE:WHAT */
	const char *clause;          /* that permits the fault */
};

struct rsoft_chaos {
	uint64_t seed;
	bool has_wire;
	bool has_seed;
	bool has_failed; /* the device; atomic */
	uint32_t nb_cqs; /* created so far; atomic */
	uint32_t nb_qps; /* created so far; atomic */
	uint32_t nb_rules;
	struct rsoft_chaos_rule *rules;
	int log_fd;        /* -1: none */
	uint64_t started;  /* CLOCK_MONOTONIC, ns */
	char log[256];     /* path; empty: none */
	char packets[128]; /* items for packets, as a value of fault=; or empty */
};

/* Parse the items of a device argument into chaos; 0, -EINVAL after a log line, or -ENOMEM. */
int rsoft_chaos_parse(struct rsoft_chaos *chaos, const char *text);

/*
 * Set kind, what, opcodes and call of a rule from SITE:WHAT. Return false after a log line that
 * lists the permitted words.
 */
bool rsoft_chaos_find(
		struct rsoft_chaos_rule *rule, const char *site, const char *what, bool has_wire);
/* Whether a rule of rdma_cm may reject with the reason; if not, log it. */
bool rsoft_chaos_is_reason(
		const struct rsoft_chaos_rule *rule, const char *reason, uint64_t number);
/* Whether a QP type may get the status: RC any, UC and UD only errors of the requester. */
bool rsoft_chaos_is_of_type(const struct rsoft_chaos_rule *rule, uint32_t qp_type);

/* Whether the rule counts events per QP. */
static inline bool
rsoft_chaos_is_of_qp(const struct rsoft_chaos_rule *rule)
{
	return rule->kind != RSOFT_CHAOS_CALL && rule->kind != RSOFT_CHAOS_LATE &&
			rule->kind != RSOFT_CHAOS_REORDER && rule->kind != RSOFT_CHAOS_LATE_RECV &&
			rule->kind != RSOFT_CHAOS_PORT && rule->kind != RSOFT_CHAOS_CM;
}

/* Open the log, if requested; 0, or -EINVAL after a log line. */
int rsoft_chaos_log_open(struct rsoft_chaos *chaos);
void rsoft_chaos_log_close(struct rsoft_chaos *chaos);
/* Whether a rule with nb_hits so far hits the nth event of an object. */
bool rsoft_chaos_hits(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		uint64_t nb_hits, uint32_t ordinal, uint64_t nth);

/* Milliseconds since the device was created. */
uint64_t rsoft_chaos_now_ms(const struct rsoft_chaos *chaos);

/* Log an injected fault of the device; filter is "nth" or "at", with its value. */
void rsoft_chaos_log_at(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		const char *filter, uint64_t value, const char *detail);
/* Log an injected fault of an object; where is a filter for it, such as "qp:1". */
void rsoft_chaos_log(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		const char *where, uint64_t nth, const char *detail);

#endif /* RSOFT_CHAOS_RULE_H */
