/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Rules of chaos=, as the files of this folder have them. */

#ifndef RSOFT_CHAOS_RULE_H
#define RSOFT_CHAOS_RULE_H

#include "rsoft_chaos.h"

/* First line of a log, with the version of its format. */
#define RSOFT_CHAOS_LOG_HEAD "# rmem chaos log 1"

/* A bit of the tag of a key. */
#define RSOFT_CHAOS_OTHER_TAG UINT32_C(0x40)

#define RSOFT_CHAOS_TEXT   96 /* of a rule */
#define RSOFT_CHAOS_ALWAYS (UINT64_C(1) << 32)

/* The subject of a rule. */
enum rsoft_chaos_kind {
	RSOFT_CHAOS_SEND,      /* the completion of a send request */
	RSOFT_CHAOS_POST_SEND, /* a send request that a post refuses */
	RSOFT_CHAOS_POST_RECV, /* a receive that a post refuses */
	RSOFT_CHAOS_QP_MODIFY, /* a call that changes a QP */
	RSOFT_CHAOS_CALL,      /* another call, of the device */
	RSOFT_CHAOS_EVENT,     /* an asynchronous event in place of a send request */
	RSOFT_CHAOS_LATE,      /* a completion that polls do not return yet */
	RSOFT_CHAOS_REORDER,   /* a completion that those of other QPs overtake */
	RSOFT_CHAOS_RNR,       /* a message that does not get a receive yet */
	RSOFT_CHAOS_RECV,      /* a receive that fails */
	RSOFT_CHAOS_PORT,      /* the port, or the device */
	RSOFT_CHAOS_CM,        /* a connection of rdma_cm */
};

/* Of a CM rule, the step and the fault in rsoft_chaos_rule::what. */
#define RSOFT_CHAOS_CM_WHAT(step, type) ((uint32_t)(step) << 8 | (uint32_t)(type))

/* Milliseconds that a port is down, or until a timeout of rdma_cm, by default. */
#define RSOFT_CHAOS_PORT_MS 1000

struct rsoft_chaos_rule {
	uint32_t kind; /* enum rsoft_chaos_kind */
	/* SEND, RECV: enum rmem_wc_status; EVENT: RMEM_ASYNC_*; PORT: enum
	 * rsoft_chaos_port; CM: RSOFT_CHAOS_CM_WHAT(); else an errno or 0.
	 */
	uint32_t what;
	uint32_t opcodes; /* SEND, EVENT, POST_SEND: bits of the opcodes */
	uint32_t call;    /* CALL: enum rsoft_chaos_call */
	uint32_t thread;  /* the only one that causes events, in the order of the first; 0: each */
	uint32_t at_ms;   /* PORT: since the device was created; 0: by packets */
	uint32_t object;  /* the only one, in the order of creation; 0: each */
	uint64_t nth;     /* the only event of an object; 0: all */
	uint64_t every;   /* each so many-th event; 0: all */
	uint64_t share;   /* of 2^32, of the events: RSOFT_CHAOS_ALWAYS: all */
	uint64_t times;   /* hits for each object */
	uint32_t delay;   /* LATE, REORDER: polls; RNR: attempts; PORT, CM: ms */
	uint32_t reason;  /* CM: of a rejection (IBTA 12.6.7.2) */
	uint64_t nb_events;          /* CALL, PORT, CM: of the device; atomic */
	uint64_t nb_hits;            /* the same */
	char text[RSOFT_CHAOS_TEXT]; /* SITE:WHAT */
};

struct rsoft_chaos {
	uint64_t seed;
	bool has_wire;
	bool has_seed;
	uint32_t nb_cqs; /* created so far; atomic */
	uint32_t nb_qps; /* created so far; atomic */
	uint32_t nb_rules;
	struct rsoft_chaos_rule *rules;
	int log_fd;        /* -1: none */
	uint64_t started;  /* CLOCK_MONOTONIC, ns */
	char log[256];     /* path; empty: none */
	char packets[128]; /* items on packets, as fault= has them; or empty */
};

/* Parse the items of a device argument into chaos; 0, -EINVAL after a log line, or -ENOMEM. */
int rsoft_chaos_parse(struct rsoft_chaos *chaos, const char *text);

/*
 * Set kind, what, opcodes and call of a rule from the words of SITE:WHAT. False after a log line
 * that has the permitted words.
 */
bool rsoft_chaos_find(
		struct rsoft_chaos_rule *rule, const char *site, const char *what, bool has_wire);
/* Whether a rejection by a rule of rdma_cm may have the reason; if not, after a log line. */
bool rsoft_chaos_is_reason(
		const struct rsoft_chaos_rule *rule, const char *reason, uint64_t number);
/* Whether a QP of the type may get the status: RC any, UC and UD only errors of the requester. */
bool rsoft_chaos_is_of_type(const struct rsoft_chaos_rule *rule, uint32_t qp_type);

/* Whether the rule counts events per QP. */
static inline bool
rsoft_chaos_is_of_qp(const struct rsoft_chaos_rule *rule)
{
	return rule->kind != RSOFT_CHAOS_CALL && rule->kind != RSOFT_CHAOS_LATE &&
			rule->kind != RSOFT_CHAOS_REORDER && rule->kind != RSOFT_CHAOS_PORT &&
			rule->kind != RSOFT_CHAOS_CM;
}

/* Open the log, if one is requested; 0 or -EINVAL after a log line. */
int rsoft_chaos_log_open(struct rsoft_chaos *chaos);
void rsoft_chaos_log_close(struct rsoft_chaos *chaos);
/* Whether a rule with that number of hits hits the nth event of an object that it matches. */
bool rsoft_chaos_hits(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		uint64_t nb_hits, uint32_t ordinal, uint64_t nth);

/* Milliseconds since the device was created. */
uint64_t rsoft_chaos_now_ms(const struct rsoft_chaos *chaos);

/* Log one injected fault, of the device: the filter "nth" or "at", and its value. */
void rsoft_chaos_log_at(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		const char *filter, uint64_t value, const char *detail);
/* Log one injected fault: where is the object as a filter, such as "qp:1". */
void rsoft_chaos_log(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		const char *where, uint64_t nth, const char *detail);

#endif /* RSOFT_CHAOS_RULE_H */
