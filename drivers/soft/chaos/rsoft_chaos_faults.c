/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The faults that the standard permits, which rules may inject; doc/chaos.md lists the clauses. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rsoft_chaos_rule.h"

#define BIT(status) (UINT32_C(1) << RMEM_WC_##status)

/*
 * Statuses of completions of the send queue by opcode, IBTA 11.6.2. Here a READ or an atomic gets
 * no RNR NAK, and only requests that are answered by a response fail with BAD_RESP_ERR, though the
 * standard permits more.
 */
#define REQUESTER (BIT(LOC_LEN_ERR) | BIT(LOC_QP_OP_ERR) | BIT(LOC_PROT_ERR))
#define RESPONDER (BIT(REM_OP_ERR) | BIT(RETRY_EXC_ERR))
#define MEMORY    (BIT(REM_INV_REQ_ERR) | BIT(REM_ACCESS_ERR))
#define NO_PACKET (BIT(LOC_QP_OP_ERR) | BIT(MW_BIND_ERR))

struct legal_opcode {
	const char *name;
	uint32_t statuses;
};

static const struct legal_opcode opcodes[RMEM_WR_OPCODE_NB] = {
		[RMEM_WR_RDMA_WRITE] = {"RDMA_WRITE", REQUESTER | RESPONDER | MEMORY},
		[RMEM_WR_RDMA_WRITE_WITH_IMM] = {"RDMA_WRITE_WITH_IMM",
				REQUESTER | RESPONDER | MEMORY | BIT(RNR_RETRY_EXC_ERR)},
		[RMEM_WR_SEND] = {"SEND", REQUESTER | RESPONDER | BIT(RNR_RETRY_EXC_ERR)},
		[RMEM_WR_SEND_WITH_IMM] = {"SEND_WITH_IMM",
				REQUESTER | RESPONDER | BIT(RNR_RETRY_EXC_ERR)},
		[RMEM_WR_RDMA_READ] = {"RDMA_READ",
				REQUESTER | RESPONDER | MEMORY | BIT(BAD_RESP_ERR)},
		[RMEM_WR_ATOMIC_CMP_AND_SWP] = {"ATOMIC_CMP_AND_SWP",
				REQUESTER | RESPONDER | MEMORY | BIT(BAD_RESP_ERR)},
		[RMEM_WR_ATOMIC_FETCH_AND_ADD] = {"ATOMIC_FETCH_AND_ADD",
				REQUESTER | RESPONDER | MEMORY | BIT(BAD_RESP_ERR)},
		[RMEM_WR_LOCAL_INV] = {"LOCAL_INV", NO_PACKET},
		[RMEM_WR_SEND_WITH_INV] = {"SEND_WITH_INV",
				REQUESTER | RESPONDER | BIT(RNR_RETRY_EXC_ERR)},
		[RMEM_WR_REG_MR] = {"REG_MR", NO_PACKET},
		[RMEM_WR_RDMA_READ_WITH_INV] = {"RDMA_READ_WITH_INV",
				REQUESTER | RESPONDER | MEMORY | BIT(BAD_RESP_ERR) |
						BIT(MW_BIND_ERR)},
		[RMEM_WR_BIND_MW] = {"BIND_MW", NO_PACKET},
		[RMEM_WR_UMR] = {"UMR", NO_PACKET},
		[RMEM_WR_FLUSH] = {"FLUSH",
				BIT(LOC_QP_OP_ERR) | RESPONDER | MEMORY | BIT(BAD_RESP_ERR)},
		[RMEM_WR_ATOMIC_WRITE] = {"ATOMIC_WRITE",
				REQUESTER | RESPONDER | MEMORY | BIT(BAD_RESP_ERR)},
};

/* Statuses decided without an answer of the peer. */
#define EACH_SERVICE (REQUESTER | BIT(MW_BIND_ERR))

/* Statuses for which the peer also fails; only for peers in this process, not with ip=. */
#define SAME_PROCESS (BIT(REM_OP_ERR) | BIT(REM_INV_REQ_ERR))

/*
 * Calls fail for lack of resources: IBTA 11.2, output modifier "insufficient resources to complete
 * request". Verbs returns ENOMEM, or EAGAIN if they may be available later. A post returns ENOMEM, as
 * with a full queue, which is ENOSPC in the class. EINVAL is an invalid argument.
 */
struct legal_call {
	const char *name;
	uint32_t kind;
	uint32_t call;
};

static const struct legal_call calls[] = {
		{"post_send", RSOFT_CHAOS_POST_SEND, 0},
		{"post_recv", RSOFT_CHAOS_POST_RECV, 0},
		{"qp_modify", RSOFT_CHAOS_QP_MODIFY, 0},
		{"ah_create", RSOFT_CHAOS_CALL, RSOFT_CHAOS_AH_CREATE},
		{"cq_create", RSOFT_CHAOS_CALL, RSOFT_CHAOS_CQ_CREATE},
		{"cq_resize", RSOFT_CHAOS_CALL, RSOFT_CHAOS_CQ_RESIZE},
		{"fast_reg_mr_alloc", RSOFT_CHAOS_CALL, RSOFT_CHAOS_FAST_REG_MR_ALLOC},
		{"mkey_alloc", RSOFT_CHAOS_CALL, RSOFT_CHAOS_MKEY_ALLOC},
		{"mr_reg", RSOFT_CHAOS_CALL, RSOFT_CHAOS_MR_REG},
		{"mr_rereg", RSOFT_CHAOS_CALL, RSOFT_CHAOS_MR_REREG},
		{"mw_alloc", RSOFT_CHAOS_CALL, RSOFT_CHAOS_MW_ALLOC},
		{"pd_alloc", RSOFT_CHAOS_CALL, RSOFT_CHAOS_PD_ALLOC},
		{"qp_create", RSOFT_CHAOS_CALL, RSOFT_CHAOS_QP_CREATE},
		{"srq_create", RSOFT_CHAOS_CALL, RSOFT_CHAOS_SRQ_CREATE},
		{"srq_modify", RSOFT_CHAOS_CALL, RSOFT_CHAOS_SRQ_MODIFY},
		{"srq_post_recv", RSOFT_CHAOS_CALL, RSOFT_CHAOS_SRQ_POST_RECV},
};

/* Clauses of rules about requests and calls. */
#define CLAUSE_STATUS "IBTA 11.6.2"
#define CLAUSE_CALL   "IBTA 11.2"
#define CLAUSE_POST   "IBTA 11.4.1" /* immediate errors */
#define CLAUSE_EVENT  "IBTA 11.6.3.2"

/* Events in place of a request: the QP fails, or the CQ fails and loses the completion. */
static const uint32_t events[] = {RMEM_ASYNC_QP_FATAL, RMEM_ASYNC_CQ_ERR};

#define CM(step, type) RSOFT_CHAOS_CM, RSOFT_CHAOS_CM_WHAT(RMEM_RDMA_CM_##step, RMEM_RDMA_CM_##type)

/* Other sites of rules, and their faults. */
static const struct {
	const char *site;
	const char *what;
	uint32_t kind;
	uint32_t value; /* rsoft_chaos_rule::what */
	bool is_of_wire;
	const char *clause;
} others[] = {
		{"recv", "RNR_NAK", RSOFT_CHAOS_RNR, 0, false, "IBTA 9.7.5.2.8"},
		/* NAK invalid request. */
		{"recv", "LOC_LEN_ERR", RSOFT_CHAOS_RECV, RMEM_WC_LOC_LEN_ERR, false,
				"IBTA 11.6.2, 9.9.3"},
		/* NAK remote operational error. */
		{"recv", "LOC_PROT_ERR", RSOFT_CHAOS_RECV, RMEM_WC_LOC_PROT_ERR, false,
				"IBTA 11.6.2, 9.9.3"},
		/* No order between receives and the completions of other queues. */
		{"recv", "LATE", RSOFT_CHAOS_LATE_RECV, 0, false, "IBTA 10.8"},
		{"cq", "LATE", RSOFT_CHAOS_LATE, 0, false, "ibv_poll_cq(3)"}, /* it may return 0 */
		/* No order between the completions of different queues. */
		{"cq", "REORDER", RSOFT_CHAOS_REORDER, 0, false, "IBTA 10.8"},
		{"port", "PORT_ERR", RSOFT_CHAOS_PORT, RSOFT_CHAOS_DOWN, true, "IBTA 11.6.3.4"},
		/* As any lost packet. */
		{"port", "FREEZE", RSOFT_CHAOS_PORT, RSOFT_CHAOS_FREEZE, true, "IBTA 9.7.6.1.3"},
		/* The table of GIDs has changed. */
		{"port", "GID_CHANGE", RSOFT_CHAOS_PORT, RSOFT_CHAOS_GID, true,
				"ibv_get_async_event(3)"},
		{"device", "DEVICE_FATAL", RSOFT_CHAOS_PORT, RSOFT_CHAOS_FATAL, true,
				"IBTA 11.6.3.4"},
		/* timeout_ms has passed. */
		{"cm_resolve_addr", "TIMEOUT", CM(RESOLVE_ADDR, TIMEOUT), false,
				"rdma_resolve_addr(3)"},
		{"cm_resolve_route", "TIMEOUT", CM(RESOLVE_ROUTE, TIMEOUT), false,
				"rdma_resolve_route(3)"},
		/* cma_process_remove() of the kernel: at any time. */
		{"cm_resolve_route", "DEVICE_REMOVAL", CM(RESOLVE_ROUTE, DEVICE_REMOVAL), false,
				"rdma_get_cm_event(3)"},
		/* A REJ answers the REQ. */
		{"cm_connect", "REJECT", CM(CONNECT, REJECT), false, "IBTA 12.6.7"},
		/* cm_process_send_error() of the kernel: no answer to the REQ. */
		{"cm_connect", "UNREACHABLE", CM(CONNECT, UNREACHABLE), false,
				"rdma_get_cm_event(3)"},
		{"cm_connect", "TIMEOUT", CM(CONNECT, TIMEOUT), false, "rdma_get_cm_event(3)"},
		{"cm_connect", "DEVICE_REMOVAL", CM(CONNECT, DEVICE_REMOVAL), false,
				"rdma_get_cm_event(3)"},
		/* A REJ answers the REP. */
		{"cm_accept", "REJECT", CM(ACCEPT, REJECT), false, "IBTA 12.6.7"},
		/* cm_process_send_error(): no RTU answers the REP. */
		{"cm_accept", "TIMEOUT", CM(ACCEPT, TIMEOUT), false, "IBTA 12.6.7.2"},
		/* cm_dreq_handler(): the RTU is lost, and a DREQ arrives. */
		{"cm_accept", "DISCONNECTED", CM(ACCEPT, DISCONNECTED), false, "IBTA 12.6.10"},
		{"cm_accept", "DEVICE_REMOVAL", CM(ACCEPT, DEVICE_REMOVAL), false,
				"rdma_get_cm_event(3)"},
		/* A DREQ arrives. */
		{"cm_established", "DISCONNECTED", CM(ESTABLISHED, DISCONNECTED), false,
				"IBTA 12.6.10"},
		{"cm_established", "DEVICE_REMOVAL", CM(ESTABLISHED, DEVICE_REMOVAL), false,
				"rdma_get_cm_event(3)"},
};

/*
 * Reasons of a REJ (IBTA 12.6.7.2) to a REQ of this connection: without reasons for EE contexts,
 * for other messages, and for redirection, which has more fields. A REP is rejected by the
 * consumer, or for a stale connection.
 */
static const uint64_t req_reasons = UINT64_C(1) << 1 | UINT64_C(1) << 3 | UINT64_C(1) << 5 |
		UINT64_C(1) << 8 | UINT64_C(1) << 9 | UINT64_C(1) << 10 | UINT64_C(1) << 12 |
		UINT64_C(1) << 26 | UINT64_C(1) << 28 | UINT64_C(1) << 35;
static const uint64_t rep_reasons = UINT64_C(1) << 10 | UINT64_C(1) << 28;

bool
rsoft_chaos_is_reason(const struct rsoft_chaos_rule *rule, const char *reason, uint64_t number)
{
	bool is_rep = rule->what >> 8 == RMEM_RDMA_CM_ACCEPT;

	if (number < 64 && ((is_rep ? rep_reasons : req_reasons) & UINT64_C(1) << number) != 0)
		return true;
	RSOFT_LOG(ERR, "chaos=: 'reason:%s': not a reason of a rejected %s (%s; IBTA 12.6.7.2)",
			reason, is_rep ? "reply" : "request",
			is_rep ? "10, 28" : "1, 3, 5, 8, 9, 10, 12, 26, 28, 35");
	return false;
}

/* Append words to a list, for a log line. */
static void
add_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used == 0 ? "" : ", ", word);
}

static void
log_statuses(const char *site, const char *what, uint32_t statuses)
{
	char list[256] = "";
	int i;

	for (i = 0; i < 32; i++) {
		if ((statuses & UINT32_C(1) << i) != 0)
			add_word(list, sizeof(list), rmem_wc_status_str(i));
	}
	for (i = 0; i < (int)RTE_DIM(events); i++)
		add_word(list, sizeof(list), rmem_async_event_type_str(events[i]));
	RSOFT_LOG(ERR, "chaos=: '%s:%s': no status of %s here (%s; IBTA 11.6.2)", site, what, site,
			list);
}

static void
log_sites(const char *site)
{
	bool is_opcode = isupper((unsigned char)site[0]) != 0;
	char list[400] = "";
	unsigned int i;

	for (i = 0; i < RTE_DIM(opcodes) && is_opcode; i++)
		add_word(list, sizeof(list), opcodes[i].name);
	for (i = 0; i < RTE_DIM(calls) && !is_opcode; i++)
		add_word(list, sizeof(list), calls[i].name);
	for (i = 0; i < RTE_DIM(others) && !is_opcode; i++) {
		if (i == 0 || strcmp(others[i].site, others[i - 1].site) != 0)
			add_word(list, sizeof(list), others[i].site);
	}
	RSOFT_LOG(ERR, "chaos=: '%s': no %s that a rule can be about (%s%s)", site,
			is_opcode ? "opcode" : "call", list, is_opcode ? ", any" : "");
}

static int
status_of(const char *what)
{
	int i;

	for (i = RMEM_WC_SUCCESS + 1; i <= RMEM_WC_GENERAL_ERR; i++) {
		if (strcmp(rmem_wc_status_str(i), what) == 0)
			return i;
	}
	return RMEM_WC_SUCCESS;
}

static const struct legal_call *
find_call(const char *site)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(calls); i++) {
		if (strcmp(calls[i].name, site) == 0)
			return &calls[i];
	}
	return NULL;
}

/* Set the errno of a call. */
static bool
legal_errno(struct rsoft_chaos_rule *rule, const struct legal_call *call, const char *what)
{
	bool is_post = call->kind == RSOFT_CHAOS_POST_SEND || call->kind == RSOFT_CHAOS_POST_RECV ||
			call->call == RSOFT_CHAOS_SRQ_POST_RECV;

	rule->kind = call->kind;
	rule->call = call->call;
	rule->clause = is_post ? CLAUSE_POST : CLAUSE_CALL;
	rule->opcodes = call->kind == RSOFT_CHAOS_POST_SEND ? (UINT32_C(1) << RMEM_WR_OPCODE_NB) - 1
							    : 0;
	rule->what = is_post ? ENOSPC : ENOMEM;
	if (strcmp(what, "ENOMEM") == 0)
		return true;
	rule->what = EAGAIN;
	if (strcmp(what, "EAGAIN") == 0 && !is_post)
		return true;
	RSOFT_LOG(ERR, "chaos=: '%s:%s': no errno of %s here (ENOMEM%s; %s)", call->name, what,
			call->name, is_post ? "" : ", EAGAIN",
			is_post ? "as a full queue" : "IBTA 11.2");
	return false;
}

/* Set an event in place of a request. */
static bool
is_event(struct rsoft_chaos_rule *rule, const char *site, const char *what)
{
	bool is_any = strcmp(site, "any") == 0;
	unsigned int i;

	rule->opcodes = 0;
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		if (is_any || strcmp(opcodes[i].name, site) == 0)
			rule->opcodes |= UINT32_C(1) << i;
	}
	rule->kind = RSOFT_CHAOS_EVENT;
	rule->clause = CLAUSE_EVENT;
	for (i = 0; i < RTE_DIM(events) && rule->opcodes != 0; i++) {
		rule->what = events[i];
		if (strcmp(rmem_async_event_type_str(events[i]), what) == 0)
			return true;
	}
	return false;
}

/* Set a fault of another site. */
static bool
legal_other(struct rsoft_chaos_rule *rule, const char *site, const char *what, bool has_wire)
{
	char list[64] = "";
	unsigned int i;

	for (i = 0; i < RTE_DIM(others); i++) {
		if (strcmp(site, others[i].site) != 0)
			continue;
		add_word(list, sizeof(list), others[i].what);
		if (strcmp(what, others[i].what) != 0)
			continue;
		rule->kind = others[i].kind;
		rule->what = others[i].value;
		rule->clause = others[i].clause;
		rule->opcodes = 0;
		if (!others[i].is_of_wire || has_wire)
			return true;
		RSOFT_LOG(ERR, "chaos=: '%s:%s': no packets without ip=", site, what);
		return false;
	}
	RSOFT_LOG(ERR, "chaos=: '%s:%s': no fault of %s (%s)", site, what, site, list);
	return false;
}

/* Set the status of a request. */
static bool
legal_status(struct rsoft_chaos_rule *rule, const char *site, const char *what, bool has_wire)
{
	uint32_t refused = has_wire ? SAME_PROCESS : 0, statuses = 0;
	bool is_any = strcmp(site, "any") == 0, is_known = is_any;
	unsigned int i;

	rule->kind = RSOFT_CHAOS_SEND;
	rule->clause = CLAUSE_STATUS;
	rule->what = (uint32_t)status_of(what);
	rule->opcodes = 0;
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		if (!is_any && strcmp(opcodes[i].name, site) != 0)
			continue;
		is_known = true;
		statuses |= opcodes[i].statuses & ~refused;
		if ((opcodes[i].statuses & ~refused & UINT32_C(1) << rule->what) != 0)
			rule->opcodes |= UINT32_C(1) << i;
	}
	if (!is_known)
		log_sites(site);
	else if (rule->opcodes == 0)
		log_statuses(site, what, statuses);
	return rule->opcodes != 0;
}

bool
rsoft_chaos_find(struct rsoft_chaos_rule *rule, const char *site, const char *what, bool has_wire)
{
	const struct legal_call *call = find_call(site);
	unsigned int i;

	for (i = 0; i < RTE_DIM(others); i++) {
		if (strcmp(site, others[i].site) == 0)
			return legal_other(rule, site, what, has_wire);
	}
	if (is_event(rule, site, what))
		return true;
	return call != NULL ? legal_errno(rule, call, what)
			    : legal_status(rule, site, what, has_wire);
}

bool
rsoft_chaos_is_of_type(const struct rsoft_chaos_rule *rule, uint32_t qp_type)
{
	if (qp_type == RMEM_QPT_RC)
		return true;
	if (rule->kind == RSOFT_CHAOS_RECV)
		return false;
	return rule->kind != RSOFT_CHAOS_SEND || (EACH_SERVICE & UINT32_C(1) << rule->what) != 0;
}
