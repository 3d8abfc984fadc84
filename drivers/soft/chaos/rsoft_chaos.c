/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Decisions of rules; see rsoft_chaos.h. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rsoft_chaos_rule.h"

int
rsoft_chaos_open(const char *text, bool has_wire, struct rsoft_chaos **out)
{
	struct rsoft_chaos *chaos = calloc(1, sizeof(*chaos));
	int ret;

	if (chaos == NULL)
		return -ENOMEM;
	chaos->seed = 1;
	chaos->log_fd = -1;
	chaos->has_wire = has_wire;
	ret = rsoft_chaos_parse(chaos, text);
	if (ret == 0)
		ret = rsoft_chaos_log_open(chaos);
	if (ret != 0) {
		rsoft_chaos_close(chaos);
		return ret;
	}
	*out = chaos;
	return 0;
}

void
rsoft_chaos_close(struct rsoft_chaos *chaos)
{
	if (chaos == NULL)
		return;
	rsoft_chaos_log_close(chaos);
	free(chaos->rules);
	free(chaos);
}

void
rsoft_chaos_packets(const struct rsoft_chaos *chaos, char *fault, size_t size)
{
	fault[0] = '\0';
	if (chaos->packets[0] != '\0' || rsoft_chaos_has_port(chaos))
		snprintf(fault, size, "%sseed:%u", chaos->packets, (uint32_t)chaos->seed);
}

/* The finalizer of splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom generators". */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

bool
rsoft_chaos_hits(const struct rsoft_chaos *chaos, const struct rsoft_chaos_rule *rule,
		uint64_t nb_hits, uint32_t ordinal, uint64_t nth)
{
	uint64_t random;

	if (nb_hits >= rule->times || (rule->nth != 0 && nth != rule->nth) ||
			(rule->every != 0 && nth % rule->every != 0))
		return false;
	if (rule->share == RSOFT_CHAOS_ALWAYS)
		return true;
	random = mix(chaos->seed + UINT64_C(0x9e3779b97f4a7c15));
	random = mix(random ^ ((uint64_t)(rule - chaos->rules) << 32 | ordinal));
	return mix(random ^ nth) >> 32 < rule->share;
}

static bool
applies(const struct rsoft_chaos_rule *rule, uint32_t ordinal, uint32_t qp_type)
{
	return rsoft_chaos_is_of_qp(rule) && (rule->object == 0 || rule->object == ordinal) &&
			rsoft_chaos_is_of_type(rule, qp_type);
}

int
rsoft_chaos_qp_init(struct rsoft_chaos *chaos, const struct rmem_qp *base, uint32_t nb_slots,
		struct rsoft_chaos_qp **out)
{
	uint32_t i, nb = 0, ordinal = __atomic_add_fetch(&chaos->nb_qps, 1, __ATOMIC_RELAXED);
	struct rsoft_chaos_qp *qp;

	*out = NULL;
	for (i = 0; i < chaos->nb_rules; i++)
		nb += applies(&chaos->rules[i], ordinal, base->type);
	if (nb == 0)
		return 0;
	qp = calloc(1, sizeof(*qp) + nb * sizeof(qp->uses[0]));
	if (qp == NULL)
		return -ENOMEM;
	qp->plan = calloc(nb_slots, sizeof(*qp->plan));
	if (qp->plan == NULL) {
		free(qp);
		return -ENOMEM;
	}
	qp->chaos = chaos;
	qp->qp = base;
	qp->mask = nb_slots - 1;
	qp->ordinal = ordinal;
	for (i = 0; i < chaos->nb_rules; i++) {
		if (!applies(&chaos->rules[i], ordinal, base->type))
			continue;
		qp->uses[qp->nb_uses++].rule = &chaos->rules[i];
		qp->opcodes |= chaos->rules[i].opcodes;
		qp->has_recv |= chaos->rules[i].kind == RSOFT_CHAOS_RNR ||
				chaos->rules[i].kind == RSOFT_CHAOS_RECV;
	}
	*out = qp;
	return 0;
}

void
rsoft_chaos_qp_fini(struct rsoft_chaos_qp *qp)
{
	if (qp == NULL)
		return;
	free(qp->plan);
	free(qp);
}

void
rsoft_chaos_qp_reset(struct rsoft_chaos_qp *qp, uint32_t base)
{
	uint32_t i;

	for (i = 0; i <= qp->mask; i++)
		qp->plan[i].status = RMEM_WC_SUCCESS;
	qp->nb_planned = 0;
	qp->base = base;
	/* No message arrives from here on. */
	qp->is_late = false;
	qp->rnr_left = 0;
}

/* Number of this thread, in the order in which threads first evaluate a rule with thread:. */
static uint32_t
thread_ordinal(void)
{
	static uint32_t nb_threads;
	static __thread uint32_t ordinal;

	if (ordinal == 0)
		ordinal = __atomic_add_fetch(&nb_threads, 1, __ATOMIC_RELAXED);
	return ordinal;
}

/* Whether actions of this thread are events of the rule. */
static bool
is_of_thread(const struct rsoft_chaos_rule *rule)
{
	return likely(rule->thread == 0) || rule->thread == thread_ordinal();
}

/* Whether a request that this thread posts is an event of the rule. */
static bool
matches(const struct rsoft_chaos_rule *rule, const struct rmem_send_wr *wr)
{
	return (rule->opcodes & rsoft_chaos_opcode(wr)) != 0 && is_of_thread(rule);
}

/* Whether the rule hits the last counted event of a QP; a hit is counted. */
static bool
use_hits(const struct rsoft_chaos_qp *qp, struct rsoft_chaos_use *use)
{
	if (!rsoft_chaos_hits(qp->chaos, use->rule, use->nb_hits, qp->ordinal, use->nb_events))
		return false;
	use->nb_hits++;
	return true;
}

static uint32_t
status_of(const struct rsoft_chaos_rule *rule)
{
	return rule->kind == RSOFT_CHAOS_SEND             ? rule->what
			: rule->kind == RSOFT_CHAOS_EVENT ? RSOFT_CHAOS_EVENTS + rule->what
							  : 0;
}

uint32_t
rsoft_chaos_next(struct rsoft_chaos_qp *qp, const struct rmem_send_wr *wr, uint32_t n,
		struct rsoft_chaos_hit *hit)
{
	uint32_t i, j;

	hit->use = NULL;
	for (i = 0; i < n && hit->use == NULL; i++) {
		for (j = 0; j < qp->nb_uses; j++) {
			struct rsoft_chaos_use *use = &qp->uses[j];

			if (!matches(use->rule, &wr[i]))
				continue;
			use->nb_events++;
			if (hit->use == NULL && use_hits(qp, use)) {
				hit->use = use;
				hit->status = status_of(use->rule);
			}
		}
	}
	return hit->use != NULL ? i - 1 : n;
}

void
rsoft_chaos_uncount(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr, uint32_t n)
{
	uint32_t i, j;

	if (n != 0 && hit->use != NULL)
		hit->use->nb_hits--;
	for (i = 0; i < n; i++) {
		for (j = 0; j < qp->nb_uses; j++)
			qp->uses[j].nb_events -= matches(qp->uses[j].rule, &wr[i]);
	}
}

void
rsoft_chaos_plan(struct rsoft_chaos_qp *qp, uint32_t pos, const struct rsoft_chaos_hit *hit)
{
	struct rsoft_chaos_plan *plan = &qp->plan[pos & qp->mask];

	plan->nth = hit->use->nb_events;
	plan->rule = (uint32_t)(hit->use->rule - qp->chaos->rules);
	__atomic_store_n(&plan->status, hit->status, __ATOMIC_RELAXED);
	__atomic_fetch_add(&qp->nb_planned, 1, __ATOMIC_RELEASE);
}

void
rsoft_chaos_unplan(struct rsoft_chaos_qp *qp, uint32_t pos)
{
	__atomic_store_n(&qp->plan[pos & qp->mask].status, RMEM_WC_SUCCESS, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&qp->nb_planned, 1, __ATOMIC_RELEASE);
}

/* Log a fault of a QP; request is the name of wr_id in the line, or NULL. */
static void
log_of_qp(const struct rsoft_chaos_qp *qp, const struct rsoft_chaos_rule *rule, uint64_t nth,
		const char *request, uint64_t wr_id)
{
	char where[32], detail[64];

	snprintf(where, sizeof(where), "@qp:%u", qp->ordinal);
	if (request == NULL)
		snprintf(detail, sizeof(detail), "QP 0x%06x", qp->qp->qp_num);
	else
		snprintf(detail, sizeof(detail), "QP 0x%06x, %s 0x%" PRIx64, qp->qp->qp_num,
				request, wr_id);
	rsoft_chaos_log(qp->chaos, rule, where, nth, detail);
}

int
rsoft_chaos_inject(struct rsoft_chaos_qp *qp, uint32_t pos, const struct rmem_send_wr *wr)
{
	const struct rsoft_chaos_plan plan = qp->plan[pos & qp->mask];

	log_of_qp(qp, &qp->chaos->rules[plan.rule], plan.nth, "request", wr->wr_id);
	rsoft_chaos_unplan(qp, pos);
	return (int)plan.status;
}

void
rsoft_chaos_log_hit(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr)
{
	log_of_qp(qp, hit->use->rule, hit->use->nb_events, "request", wr->wr_id);
}

int
rsoft_chaos_refuse(struct rsoft_chaos_qp *qp, const struct rsoft_chaos_hit *hit,
		const struct rmem_send_wr *wr)
{
	uint32_t i;

	for (i = 0; i < qp->nb_uses; i++) {
		if (qp->uses[i].rule->kind != RSOFT_CHAOS_POST_SEND &&
				matches(qp->uses[i].rule, wr))
			qp->uses[i].nb_events--;
	}
	rsoft_chaos_log_hit(qp, hit, wr);
	return -(int)hit->use->rule->what;
}

/* Count an event of a kind; return the rule's use that hits it, or NULL. */
static struct rsoft_chaos_use *
count(struct rsoft_chaos_qp *qp, enum rsoft_chaos_kind kind)
{
	struct rsoft_chaos_use *hit = NULL;
	uint32_t i;

	for (i = 0; i < qp->nb_uses; i++) {
		struct rsoft_chaos_use *use = &qp->uses[i];

		if (use->rule->kind != kind || !is_of_thread(use->rule))
			continue;
		use->nb_events++;
		if (hit == NULL && use_hits(qp, use))
			hit = use;
	}
	return hit;
}

int
rsoft_chaos_recv(struct rsoft_chaos_qp *qp, const struct rmem_recv_wr *wr)
{
	const struct rsoft_chaos_use *use = count(qp, RSOFT_CHAOS_POST_RECV);

	if (use == NULL)
		return 0;
	log_of_qp(qp, use->rule, use->nb_events, "receive", wr->wr_id);
	return -(int)use->rule->what;
}

int
rsoft_chaos_qp_modify(struct rsoft_chaos_qp *qp)
{
	const struct rsoft_chaos_use *use = count(qp, RSOFT_CHAOS_QP_MODIFY);

	if (use == NULL)
		return 0;
	log_of_qp(qp, use->rule, use->nb_events, NULL, 0);
	return -(int)use->rule->what;
}

/* Count an event of a device rule. Return its number if it hits and no other rule has hit, else
 * 0. */
static uint64_t
count_of_dev(const struct rsoft_chaos *chaos, struct rsoft_chaos_rule *rule, bool is_hit)
{
	uint64_t nth = __atomic_add_fetch(&rule->nb_events, 1, __ATOMIC_RELAXED);
	uint64_t nb_hits = __atomic_load_n(&rule->nb_hits, __ATOMIC_RELAXED);

	if (is_hit || !rsoft_chaos_hits(chaos, rule, nb_hits, 0, nth))
		return 0;
	__atomic_add_fetch(&rule->nb_hits, 1, __ATOMIC_RELAXED);
	return nth;
}

int
rsoft_chaos_call(struct rsoft_chaos *chaos, enum rsoft_chaos_call call)
{
	uint64_t nth;
	int ret = 0;
	uint32_t i;

	for (i = 0; i < chaos->nb_rules; i++) {
		struct rsoft_chaos_rule *rule = &chaos->rules[i];

		if (rule->kind != RSOFT_CHAOS_CALL || rule->call != (uint32_t)call ||
				!is_of_thread(rule))
			continue;
		nth = count_of_dev(chaos, rule, ret != 0);
		if (nth == 0)
			continue;
		rsoft_chaos_log(chaos, rule, "", nth, "call");
		ret = -(int)rule->what;
	}
	return ret;
}

int
rsoft_chaos_rdma_cm(struct rsoft_chaos *chaos, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault)
{
	char detail[32];
	uint64_t nth;
	int ret = 0;
	uint32_t i;

	if (step == RMEM_RDMA_CM_HAPPENS) {
		snprintf(detail, sizeof(detail), "rdma_cm ID %u", number);
		rsoft_chaos_log(chaos, &chaos->rules[fault->rule], "", fault->nth, detail);
		return 0;
	}
	for (i = 0; i < chaos->nb_rules; i++) {
		struct rsoft_chaos_rule *rule = &chaos->rules[i];

		if (rule->kind != RSOFT_CHAOS_CM || rule->what >> 8 != (uint32_t)step)
			continue;
		nth = count_of_dev(chaos, rule, ret != 0);
		if (nth == 0)
			continue;
		*fault = (struct rmem_rdma_cm_fault){.type = rule->what & 0xff,
				.reason = rule->reason,
				.delay_ms = rule->delay,
				.rule = i,
				.nth = nth};
		ret = 1;
	}
	return ret;
}

bool
rsoft_chaos_no_recv(struct rsoft_chaos_qp *qp)
{
	const struct rsoft_chaos_use *use;

	if (qp->rnr_left != 0) {
		qp->rnr_left--;
		return true;
	}
	/* The message was delayed by a hit, and already counted. */
	if (qp->is_late) {
		qp->is_late = false;
		return false;
	}
	use = count(qp, RSOFT_CHAOS_RNR);
	if (use == NULL)
		return false;
	log_of_qp(qp, use->rule, use->nb_events, NULL, 0);
	/* An unreliable message has one attempt. */
	if (qp->qp->type == RMEM_QPT_UC || qp->qp->type == RMEM_QPT_UD)
		return true;
	qp->is_late = true;
	qp->rnr_left = use->rule->delay - 1;
	return true;
}

void
rsoft_chaos_break_recv(struct rsoft_chaos_qp *qp, struct rsoft_rqe *rqe)
{
	const struct rsoft_chaos_use *use = count(qp, RSOFT_CHAOS_RECV);
	uint32_t i;

	if (use == NULL)
		return;
	log_of_qp(qp, use->rule, use->nb_events, "receive", rqe->wr_id);
	if (use->rule->what == RMEM_WC_LOC_LEN_ERR)
		rqe->num_sge = 0;
	/* Inverts a bit of the tag, so that no MR has this lkey and no key has it as rkey. */
	for (i = 0; i < rqe->num_sge; i++)
		rqe->sge[i].lkey ^= RSOFT_CHAOS_OTHER_TAG;
}

/* Whether a rule applies to the port; with `what`, a rule with this fault. */
static bool
has_port(const struct rsoft_chaos *chaos, enum rsoft_chaos_port what)
{
	const struct rsoft_chaos_rule *rule;
	uint32_t i;

	for (i = 0; i < chaos->nb_rules; i++) {
		rule = &chaos->rules[i];
		if (rule->kind == RSOFT_CHAOS_PORT && (what == 0 || rule->what == (uint32_t)what))
			return true;
	}
	return false;
}

bool
rsoft_chaos_has_port(const struct rsoft_chaos *chaos)
{
	return has_port(chaos, 0);
}

bool
rsoft_chaos_has_gid(const struct rsoft_chaos *chaos)
{
	return has_port(chaos, RSOFT_CHAOS_GID);
}

uint32_t
rsoft_chaos_max_port(const struct rsoft_chaos *chaos)
{
	uint32_t i, max = 1;

	for (i = 0; i < chaos->nb_rules; i++) {
		if (chaos->rules[i].kind == RSOFT_CHAOS_PORT)
			max = RTE_MAX(max, chaos->rules[i].object);
	}
	return max;
}

/* Execute a rule of a port; return its fault. */
static enum rsoft_chaos_port
hit_port(struct rsoft_chaos *chaos, struct rsoft_chaos_rule *rule, const char *where, uint64_t n,
		struct rsoft_chaos_port_hit *hit)
{
	char detail[16];

	hit->port_num = RTE_MAX(rule->object, 1u);
	hit->ms = rule->delay;
	rule->nb_hits++;
	snprintf(detail, sizeof(detail), "port %u", hit->port_num);
	rsoft_chaos_log_at(chaos, rule, where, n, detail);
	return (enum rsoft_chaos_port)rule->what;
}

enum rsoft_chaos_port
rsoft_chaos_packet(struct rsoft_chaos *chaos, uint32_t port_num, struct rsoft_chaos_port_hit *hit)
{
	enum rsoft_chaos_port what = 0;
	uint32_t i;

	for (i = 0; i < chaos->nb_rules; i++) {
		struct rsoft_chaos_rule *rule = &chaos->rules[i];

		if (rule->kind != RSOFT_CHAOS_PORT || rule->at_ms != 0 ||
				(rule->object != 0 && rule->object != port_num))
			continue;
		rule->nb_events++;
		if (what == 0 && rsoft_chaos_hits(chaos, rule, rule->nb_hits, 0, rule->nb_events))
			what = hit_port(chaos, rule, "nth", rule->nb_events, hit);
	}
	return what;
}

enum rsoft_chaos_port
rsoft_chaos_time(struct rsoft_chaos *chaos, struct rsoft_chaos_port_hit *hit, uint64_t *next_ms)
{
	uint64_t now = rsoft_chaos_now_ms(chaos);
	enum rsoft_chaos_port what = 0;
	uint32_t i;

	*next_ms = UINT64_MAX;
	for (i = 0; i < chaos->nb_rules; i++) {
		struct rsoft_chaos_rule *rule = &chaos->rules[i];

		if (rule->kind != RSOFT_CHAOS_PORT || rule->at_ms == 0 || rule->nb_hits != 0)
			continue;
		if (what == 0 && now >= rule->at_ms)
			what = hit_port(chaos, rule, "at", rule->at_ms, hit);
		else
			*next_ms = RTE_MIN(*next_ms, (uint64_t)rule->at_ms);
	}
	return what;
}
