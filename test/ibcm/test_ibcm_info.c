/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Reports of IDs: while they exist, why they ended, and of each change of their state. */

#include <string.h>

#include "../test.h"
#include "ibcm_report.h"
#include "pair.h"

#define MAX_TRACE 8

/* Changes of the state of side 0. */
struct trace {
	struct ibcm_info infos[MAX_TRACE];
	enum ibcm_state from[MAX_TRACE];
	uint32_t nb;
};

static struct pair pair;
static struct ibcm_log logs[2];
static struct trace trace;

static void
add_trace(void *arg, const struct ibcm_info *info, enum ibcm_state from)
{
	if (arg != &pair.side[0] || trace.nb == MAX_TRACE)
		return;
	trace.infos[trace.nb] = *info;
	trace.from[trace.nb++] = from;
}

static void
set_up(void)
{
	memset(logs, 0, sizeof(logs));
	memset(&trace, 0, sizeof(trace));
	pair_hooks = (struct pair_hooks){.trace = add_trace, .logs = logs};
	pair_open(&pair, 64, 8);
	TEST_OK(pair_listen(&pair, 1, 4));
}

static void
tear_down(void)
{
	pair_close(&pair);
	pair_hooks = (struct pair_hooks){0};
}

TEST_SUITE(ibcm_info, set_up, tear_down);

/* Let time pass until no ID is left. */
static void
pass_time(void)
{
	do
		pair_deliver_all(&pair);
	while (pair_expire(&pair, 0) || pair_expire(&pair, 1));
}

/* The last of the IDs that are visited, and their number. */
struct found {
	struct ibcm_info info;
	uint32_t nb;
};

static void
find(void *arg, const struct ibcm_info *info)
{
	struct found *found = arg;

	found->info = *info;
	found->nb++;
}

static struct ibcm_info
the_id(uint32_t side)
{
	struct found found = {.nb = 0};

	ibcm_visit(pair.side[side].cm, find, &found);
	TEST_EQ(found.nb, 1);
	return found.info;
}

/* The only ID of a side that has ended. */
static struct ibcm_info
the_ended(uint32_t side)
{
	struct found found = {.nb = 0};

	ibcm_log_visit(&logs[side], find, &found);
	TEST_EQ(found.nb, 1);
	TEST_EQ(found.info.state, IBCM_IDLE);
	return found.info;
}

#define TEST_END(no, cause) TEST_EQ(the_ended(no).end, IBCM_END_##cause)

TEST(ibcm_info, both_sides_of_a_connection)
{
	struct ibcm_info info[2];
	struct ibcm_id *ids[2];
	uint32_t i;

	TEST_OK(pair_establish(&pair, ids));
	for (i = 0; i < 2; i++)
		info[i] = the_id(i);
	for (i = 0; i < 2; i++) {
		TEST_EQ(info[i].state, IBCM_ESTABLISHED);
		TEST_EQ(info[i].end, IBCM_END_NONE);
		TEST_EQ(info[i].is_passive, i == 1);
		TEST_ASSERT(info[i].local_id != 0);
		TEST_EQ(info[i].remote_id, info[!i].local_id);
		TEST_EQ(info[i].qpn, pair_qp(i).qpn);
		TEST_EQ(info[i].peer_qpn, pair_qp(!i).qpn);
		TEST_EQ(info[i].service_id, PAIR_SERVICE);
		TEST_MEM(info[i].local_gid, pair.side[i].gid, 16);
		TEST_MEM(info[i].remote_gid, pair.side[!i].gid, 16);
	}
}

TEST(ibcm_info, disconnected)
{
	struct ibcm_id *ids[2];

	TEST_OK(pair_establish(&pair, ids));
	ibcm_release(ids[0], 0);
	pair_deliver_all(&pair);
	TEST_EQ(the_id(0).state, IBCM_TIMEWAIT);
	TEST_EQ(the_id(0).end, IBCM_END_DREQ);
	ibcm_release(ids[1], 0);
	pass_time();
	TEST_END(0, DREQ);
	TEST_END(1, PEER_DREQ);
}

/* Each of the two has sent a DREQ. */
TEST(ibcm_info, disconnected_by_both)
{
	struct ibcm_id *ids[2];

	TEST_OK(pair_establish(&pair, ids));
	ibcm_release(ids[0], 0);
	ibcm_release(ids[1], 0);
	pass_time();
	TEST_END(0, DREQ);
	TEST_END(1, DREQ);
}

TEST(ibcm_info, rejected)
{
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_reject(b, 0, 29, NULL));
	pair_deliver_all(&pair);
	ibcm_release(a, 0);
	ibcm_release(b, 0);
	pass_time();
	TEST_END(0, PEER_REJ);
	TEST_EQ(the_ended(0).reason, 29);
	TEST_END(1, REJ);
	TEST_EQ(the_ended(1).reason, 29);
	TEST_EQ(logs[0].stats.rej_rx[29], 1);
	TEST_EQ(logs[1].stats.rej_tx[29], 1);
}

/* A REQ without a listener has no ID there, but its REJ is counted. */
TEST(ibcm_info, rejected_without_listener)
{
	struct ibcm_id *a;

	ibcm_unlisten(pair.side[1].listener);
	TEST_OK(pair_connect(&pair, 0, &a));
	pair_deliver_all(&pair);
	ibcm_release(a, 0);
	TEST_END(0, PEER_REJ);
	TEST_EQ(the_ended(0).reason, IBCM_REJ_INVALID_SERVICE_ID);
	TEST_EQ(logs[1].nb_ended, 0);
	TEST_EQ(logs[1].stats.rej_tx[IBCM_REJ_INVALID_SERVICE_ID], 1);
	TEST_EQ(logs[1].stats.refused, 1);
}

/* A reason that the table does not have is counted as 0. */
TEST(ibcm_info, rejected_for_an_unknown_reason)
{
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_reject(b, 0, 0xffff, NULL));
	pair_deliver_all(&pair);
	TEST_EQ(logs[0].stats.rej_rx[0], 1);
	TEST_EQ(the_id(0).reason, 0xffff);
}

TEST(ibcm_info, no_answer)
{
	struct ibcm_id *a;

	TEST_OK(pair_connect(&pair, 0, &a));
	do {
		while (pair.nb_net != 0)
			pair_drop(&pair, 0);
	} while (pair_expire(&pair, 0));
	TEST_EQ(the_id(0).retries, PAIR_RETRIES);
	ibcm_release(a, 0);
	TEST_END(0, NO_ANSWER);
	TEST_EQ(logs[0].stats.timeouts[0], 1);
	TEST_EQ(logs[0].stats.retries[0], PAIR_RETRIES);
}

TEST(ibcm_info, released_without_an_answer)
{
	struct ibcm_id *a;

	TEST_OK(pair_connect(&pair, 0, &a));
	ibcm_release(a, 0);
	TEST_END(0, RELEASED);
}

/* The peer has begun again, with the QP number that it had. */
TEST(ibcm_info, peer_restarted)
{
	struct ibcm_id *ids[2], *again;

	TEST_OK(pair_establish(&pair, ids));
	TEST_OK(pair_connect(&pair, 0, &again));
	pair_deliver(&pair, 0); /* REQ */
	TEST_EQ(the_id(1).state, IBCM_DREQ_SENT);
	TEST_EQ(the_id(1).end, IBCM_END_STALE);
	ibcm_release(ids[0], 0);
	ibcm_release(ids[1], 0);
	ibcm_release(again, 0);
	pass_time();
	TEST_END(1, STALE);
}

TEST(ibcm_info, service_id_resolved)
{
	const struct ibcm_req_conf req = pair_req(&pair, 0);
	const struct ibcm_sidr_conf conf = {.path = req.path,
			.service_id = PAIR_SERVICE,
			.cm_timeout = PAIR_TIMEOUT,
			.max_cm_retries = PAIR_RETRIES};
	struct ibcm_id *a, *b;

	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &conf, &a));
	pair_deliver_all(&pair);
	b = pair_last(&pair, 1)->id;
	TEST_EQ(the_id(1).is_sidr, true);
	TEST_EQ(the_id(1).is_passive, true);
	TEST_OK(ibcm_answer(b, 0, IBCM_SIDR_VALID, 9, 9, NULL));
	pair_deliver_all(&pair);
	ibcm_release(a, 0);
	ibcm_release(b, 0);
	pass_time();
	TEST_END(0, SIDR);
	TEST_END(1, SIDR);
}

/* The last ones are kept, the oldest first, also after the engine. */
TEST(ibcm_info, log_is_bounded_and_outlives_the_engine)
{
	struct ibcm_info last = {0};
	struct found found = {.nb = 0};
	struct ibcm_id *a;
	uint32_t i;

	for (i = 0; i <= IBCM_LOG_LEN; i++) {
		TEST_OK(pair_connect(&pair, 0, &a));
		last = the_id(0);
		if (i < IBCM_LOG_LEN)
			ibcm_release(a, 0);
		while (pair.nb_net != 0)
			pair_drop(&pair, 0);
	}
	pair_close(&pair);
	ibcm_log_visit(&logs[0], find, &found);
	TEST_EQ(logs[0].nb_ended, IBCM_LOG_LEN + 1);
	TEST_EQ(found.nb, IBCM_LOG_LEN);
	TEST_EQ(found.info.local_id, last.local_id);
	TEST_EQ(found.info.end, IBCM_END_DESTROYED);
	pair_open(&pair, 16, 8);
	TEST_EQ(logs[0].stats.tx[0], IBCM_LOG_LEN + 1);
	TEST_EQ(ibcm_stats(pair.side[0].cm), &logs[0].stats);
}

TEST(ibcm_info, changes_of_the_state_are_traced)
{
	static const enum ibcm_state states[] = {IBCM_IDLE, IBCM_REQ_SENT, IBCM_REP_RCVD,
			IBCM_ESTABLISHED, IBCM_DREQ_SENT, IBCM_TIMEWAIT, IBCM_IDLE};
	struct ibcm_id *ids[2];
	uint32_t i;

	TEST_OK(pair_establish(&pair, ids));
	ibcm_release(ids[0], 0);
	ibcm_release(ids[1], 0);
	pass_time();
	TEST_EQ(trace.nb, RTE_DIM(states) - 1);
	for (i = 0; i < trace.nb; i++) {
		TEST_EQ(trace.from[i], states[i]);
		TEST_EQ(trace.infos[i].state, states[i + 1]);
		TEST_EQ(trace.infos[i].qpn, PAIR_QPN);
	}
	TEST_EQ(trace.infos[4].end, IBCM_END_DREQ);
}

/* A sink that has the value of one name. */
struct wanted {
	const char *name;
	char text[64];
	uint64_t number;
	uint32_t nb;
};

static void
want_text(void *arg, const char *name, const char *text)
{
	struct wanted *wanted = arg;

	if (strcmp(name, wanted->name) != 0)
		return;
	snprintf(wanted->text, sizeof(wanted->text), "%s", text);
	wanted->nb++;
}

static void
want_number(void *arg, const char *name, uint64_t number)
{
	struct wanted *wanted = arg;

	if (strcmp(name, wanted->name) != 0)
		return;
	wanted->number = number;
	wanted->nb++;
}

static struct wanted
of_info(const struct ibcm_info *info, const char *name)
{
	struct wanted wanted = {.name = name};
	const struct ibcm_sink sink = {&wanted, want_text, want_number};

	ibcm_report_info(&sink, info);
	TEST_EQ(wanted.nb, 1);
	return wanted;
}

static uint64_t
of_stats(const struct ibcm_stats *stats, const char *name)
{
	struct wanted wanted = {.name = name};
	const struct ibcm_sink sink = {&wanted, want_text, want_number};

	ibcm_report_stats(&sink, stats);
	TEST_EQ(wanted.nb, 1);
	return wanted.number;
}

static void
check_text(const struct ibcm_info *info, const char *name, const char *text)
{
	const struct wanted wanted = of_info(info, name);

	TEST_MEM(wanted.text, text, strlen(text) + 1);
}

TEST(ibcm_info, report_has_names_and_texts)
{
	static const uint8_t six[16] = {0xfe, 0x80, [15] = 1};
	struct ibcm_info info = {.state = IBCM_REP_SENT,
			.end = IBCM_END_PEER_REJ,
			.reason = 28,
			.service_id = UINT64_C(0x01061c07)};
	struct ibcm_stats stats = {.rx = {1, 2, 3}};

	memcpy(info.local_gid, pair.side[0].gid, 16);
	memcpy(info.remote_gid, six, 16);
	check_text(&info, "state", "REP_SENT");
	check_text(&info, "end", "rejected by peer");
	check_text(&info, "local", "127.0.0.1");
	check_text(&info, "peer", "fe80::1");
	check_text(&info, "port_space", "TCP");
	TEST_EQ(of_info(&info, "port").number, 7175);
	TEST_EQ(of_info(&info, "reason").number, 28);
	stats.retries[3] = 5;
	stats.retries[0] = 2;
	stats.rej_tx[8] = 4;
	TEST_EQ(of_stats(&stats, "rx_rej"), 3);
	TEST_EQ(of_stats(&stats, "retries"), 7);
	TEST_EQ(of_stats(&stats, "retries_rep"), 5);
	TEST_EQ(of_stats(&stats, "tx_rej_reason_8"), 4);
}
