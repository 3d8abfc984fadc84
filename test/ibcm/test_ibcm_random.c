/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Hundreds of connections both ways at the same time, with loss, duplicates and reordering, and
 * consumers that call anything: only what the state permits succeeds, the sides agree, and nothing
 * is left. RMEM_SEED repeats a run.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "../wire/xorshift.h"
#include "pair.h"

#define MAX_IDS   600u /* the tables grow */
#define NB_STEPS  300000u
#define MAX_CONNS 400u

/* An ID of a consumer. */
struct conn {
	struct ibcm_id *id; /* NULL: free */
	bool has_ended;
};

static struct pair pair;
static struct conn conns[2][MAX_CONNS];
static uint32_t next_qpn[2];
static uint64_t nb_events[IBCM_EVENT_SIDR_REP + 1];
static uint64_t state;
static bool has_failed;

static uint32_t
draw(uint32_t n)
{
	return xorshift32(&state) % n;
}

static struct conn *
conn_add(uint32_t no, struct ibcm_id *id)
{
	uint32_t i;

	for (i = 0; i < MAX_CONNS; i++) {
		struct conn *conn = &conns[no][i];

		if (conn->id != NULL)
			continue;
		*conn = (struct conn){.id = id};
		if (id != NULL)
			ibcm_arg_set(id, conn);
		return conn;
	}
	return NULL;
}

static void
on_event(struct pair_side *side, const struct ibcm_event *event)
{
	uint32_t no = side == &pair.side[1];
	struct conn *conn;

	nb_events[event->type]++;
	if (event->type == IBCM_EVENT_REQ) {
		if (conn_add(no, event->id) == NULL)
			ibcm_release(event->id, side->now); /* from inside of the event */
		return;
	}
	conn = ibcm_arg(event->id);
	has_failed |= conn == NULL || conn->id != event->id;
	has_failed |= conn->has_ended && event->type != IBCM_EVENT_TIMEWAIT_EXIT;
	switch (event->type) {
	case IBCM_EVENT_REJECTED:
	case IBCM_EVENT_UNREACHABLE:
	case IBCM_EVENT_DISCONNECTED:
		conn->has_ended = true;
		break;
	default:
		break;
	}
	if (draw(16) == 0 && event->type != IBCM_EVENT_REP) {
		conn->id = NULL;
		ibcm_release(event->id, side->now);
	}
}

static void
connect_one(uint32_t no)
{
	struct ibcm_req_conf conf = pair_req(&pair, no);
	struct conn *conn = conn_add(no, NULL);

	if (conn == NULL)
		return;
	conf.qp.qpn = next_qpn[no]++;
	conf.qp.psn = conf.qp.qpn * 3 & IBCM_PSN_MASK;
	conf.arg = conn;
	conf.max_cm_retries = (uint8_t)draw(5);
	if (ibcm_connect(pair.side[no].cm, pair.side[no].now, &conf, &conn->id) != 0)
		conn->id = NULL;
}

/* Call any function: 0 in the states that its description has, else -EBUSY. */
static void
call_any(uint32_t no, struct conn *conn)
{
	uint64_t now = pair.side[no].now;
	struct ibcm_id *id = conn->id;
	enum ibcm_state was = ibcm_state(id);
	struct ibcm_qp_conf qp = pair_qp(no);
	bool is_permitted;
	int ret;

	switch (draw(8)) {
	case 0:
	case 1:
		qp.qpn = next_qpn[no]++;
		qp.psn = qp.qpn * 3 & IBCM_PSN_MASK;
		ret = ibcm_accept(id, now, &qp, NULL);
		is_permitted = was == IBCM_REQ_RCVD;
		break;
	case 2:
	case 3:
		ret = ibcm_ready(id, NULL);
		is_permitted = was == IBCM_REP_RCVD;
		break;
	case 4:
		ret = draw(4) == 0 ? ibcm_disconnect(id, now, NULL) : -EBUSY;
		is_permitted = ret == 0 && was == IBCM_ESTABLISHED;
		break;
	case 5:
		ret = draw(4) == 0 ? ibcm_reject(id, now, IBCM_REJ_CONSUMER, NULL) : -EBUSY;
		is_permitted = ret == 0 &&
				(was == IBCM_REQ_RCVD || was == IBCM_REP_SENT ||
						was == IBCM_REP_RCVD);
		break;
	default:
		if (draw(8) != 0 && was != IBCM_IDLE)
			return;
		conn->id = NULL;
		ibcm_release(id, now);
		return;
	}
	TEST_EQ(ret, is_permitted ? 0 : -EBUSY);
}

/* Two established IDs that have each other's QP have each other's PSN. */
static void
check_all(void)
{
	struct ibcm_qp_attr a, b;
	uint32_t i, k, nb = 0;

	for (i = 0; i < MAX_CONNS; i++) {
		if (conns[0][i].id == NULL || ibcm_state(conns[0][i].id) != IBCM_ESTABLISHED)
			continue;
		ibcm_qp_attr(conns[0][i].id, &a);
		TEST_EQ(a.psn, a.qpn * 3 & IBCM_PSN_MASK);
		TEST_EQ(a.peer_psn, a.peer_qpn * 3 & IBCM_PSN_MASK);
		for (k = 0; k < MAX_CONNS; k++) {
			if (conns[1][k].id == NULL)
				continue;
			ibcm_qp_attr(conns[1][k].id, &b);
			if (b.qpn != a.peer_qpn)
				continue;
			TEST_EQ(b.peer_qpn, a.qpn);
			nb++;
		}
	}
	TEST_ASSERT(nb <= MAX_CONNS);
}

static void
step(void)
{
	uint32_t no = draw(2), at = pair.nb_net != 0 ? draw(pair.nb_net) : 0;
	struct conn *conn = &conns[no][draw(MAX_CONNS)];
	uint32_t what = draw(100);

	if (what < 10) {
		connect_one(no);
	} else if (what < 15) {
		pair_expire(&pair, no);
	} else if (what < 60) {
		if (conn->id != NULL)
			call_any(no, conn);
	} else if (pair.nb_net != 0) {
		if (what < 65 && pair.nb_net < PAIR_MAX_NET)
			pair.net[pair.nb_net++] = pair.net[at];
		if (what < 70)
			pair_drop(&pair, at);
		else
			pair_deliver(&pair, what < 85 ? 0 : at);
	}
}

static void
set_up(void)
{
	pair_open(&pair, MAX_IDS, MAX_IDS);
	pair.side[0].event = pair.side[1].event = on_event;
	memset(conns, 0, sizeof(conns));
	memset(nb_events, 0, sizeof(nb_events));
	next_qpn[0] = 2;
	next_qpn[1] = 0x800000;
	has_failed = false;
	TEST_OK(pair_listen(&pair, 0, MAX_CONNS / 4));
	TEST_OK(pair_listen(&pair, 1, MAX_CONNS / 4));
}

static void
tear_down(void)
{
	pair_close(&pair);
}

TEST_SUITE(ibcm_random, set_up, tear_down);

TEST(ibcm_random, connections_agree_and_end)
{
	const char *text = getenv("RMEM_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;
	uint32_t i, no;

	test_note("RMEM_SEED=%" PRIu64, seed);
	state = xorshift_state(seed);
	for (i = 0; i < NB_STEPS; i++) {
		step();
		TEST_ASSERT(!has_failed);
		if (i % 1000 == 0)
			check_all();
	}
	for (i = 0; i <= IBCM_EVENT_TIMEWAIT_EXIT; i++)
		TEST_ASSERT(nb_events[i] != 0);
	for (no = 0; no < 2; no++) {
		for (i = 0; i < MAX_CONNS; i++) {
			struct ibcm_id *id = conns[no][i].id;

			conns[no][i].id = NULL;
			if (id != NULL)
				ibcm_release(id, pair.side[no].now);
		}
	}
	do
		pair_deliver_all(&pair);
	while (pair_expire(&pair, 0) || pair_expire(&pair, 1));
	for (no = 0; no < 2; no++) {
		for (i = 0; i < MAX_CONNS; i++) { /* requests that arrived after that */
			if (conns[no][i].id != NULL)
				ibcm_release(conns[no][i].id, pair.side[no].now);
			conns[no][i].id = NULL;
		}
	}
	do
		pair_deliver_all(&pair);
	while (pair_expire(&pair, 0) || pair_expire(&pair, 1));
	TEST_EQ(ibcm_nb_ids(pair.side[0].cm), 0);
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 0);
	TEST_ASSERT(!has_failed);
}
