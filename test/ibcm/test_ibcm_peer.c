/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A peer that restarts, floods, lies, or is another one: limits hold, and connections stay. */

#include <string.h>

#include "../test.h"
#include "pair.h"

#define MAX_IDS       16
#define MAX_HALF_OPEN 4
#define BACKLOG       3

static struct pair pair;

static void
set_up(void)
{
	pair_open(&pair, MAX_IDS, MAX_HALF_OPEN);
	TEST_OK(pair_listen(&pair, 1, BACKLOG));
}

static void
tear_down(void)
{
	pair_close(&pair);
}

TEST_SUITE(ibcm_peer, set_up, tear_down);

/* A message to side 1 that side 0 did not send. */
static void
forge(const struct ibcm_msg *msg, const struct ibcm_path *path)
{
	uint8_t mad[IBCM_MAD_LEN];

	if (ibcm_mad_encode(msg, mad))
		ibcm_input(pair.side[1].cm, pair.side[1].now, path, mad);
}

/* The path of side 1 to side 0. */
static struct ibcm_path
path_back(void)
{
	return pair_req(&pair, 1).path;
}

/* A REQ of side 0 as side 1 receives it. */
static struct ibcm_msg
valid_req(uint32_t comm_id, uint32_t qpn)
{
	const struct ibcm_path path = path_back();
	struct ibcm_msg msg = {.type = IBCM_REQ,
			.tid = comm_id,
			.local_id = comm_id,
			.service_id = PAIR_SERVICE,
			.ca_guid = 1,
			.qpn = qpn,
			.mtu = 1,
			.pkey = IBCM_PKEY,
			.local_timeout = PAIR_TIMEOUT,
			.max_cm_retries = PAIR_RETRIES};

	memcpy(msg.local_gid, path.remote_gid, sizeof(msg.local_gid));
	memcpy(msg.remote_gid, path.local_gid, sizeof(msg.remote_gid));
	return msg;
}

/* The reason with which side 1 rejects a REQ that it has not reported; 0: it does not. */
static uint16_t
reason_of(const struct ibcm_msg *req)
{
	const struct ibcm_path path = path_back();
	uint32_t nb_events = pair.side[1].nb_events, nb_ids = ibcm_nb_ids(pair.side[1].cm);
	struct ibcm_msg rej;

	pair.nb_net = 0;
	forge(req, &path);
	if (pair.nb_net != 1 || pair.side[1].nb_events != nb_events ||
			ibcm_nb_ids(pair.side[1].cm) != nb_ids)
		return 0;
	rej = pair_msg(&pair, 0);
	return rej.type == IBCM_REJ && rej.remote_id == req->local_id && rej.tid == req->tid &&
					rej.subject == IBCM_OF_REQ
			? rej.reason
			: 0;
}

TEST(ibcm_peer, invalid_request_is_rejected_without_an_id)
{
	struct ibcm_msg req;

	req = valid_req(1, 2);
	req.pkey = 0x7ffe;
	TEST_EQ(reason_of(&req), IBCM_REJ_UNSUPPORTED);
	req = valid_req(1, 2);
	req.service = IBCM_RD;
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_TRANSPORT);
	req.service = IBCM_EXTENDED;
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_TRANSPORT);
	req = valid_req(1, 2);
	req.mtu = 0;
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_MTU);
	req.mtu = 6;
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_MTU);
	req = valid_req(1, 2);
	req.service_id++;
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_SERVICE_ID);
	req = valid_req(1, 2);
	req.local_gid[15] ^= 1; /* the QP would send to another host */
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_GID);
	req = valid_req(1, 2);
	req.remote_gid[15] ^= 8;
	TEST_EQ(reason_of(&req), IBCM_REJ_INVALID_GID);
	TEST_EQ(ibcm_stats(pair.side[1].cm)->refused, 8);
}

TEST(ibcm_peer, backlog_and_source_limit_the_requests)
{
	const struct ibcm_path path = path_back();
	struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_msg req;
	struct ibcm_id *id = NULL;
	uint32_t i;

	for (i = 0; i < BACKLOG; i++) {
		req = valid_req(i, 2 + i);
		forge(&req, &path);
		id = pair_last(&pair, 1)->id;
	}
	TEST_EQ(pair.side[1].nb_events, BACKLOG);
	for (i = 100; i < 10100; i++) {
		req = valid_req(i, 2 + i);
		TEST_EQ(reason_of(&req), IBCM_REJ_CONSUMER);
	}
	TEST_OK(ibcm_accept(id, 0, &qp, NULL)); /* leaves the backlog, but is half-open */
	pair.nb_net = 0;
	req = valid_req(50, 52);
	forge(&req, &path);
	TEST_EQ(pair.side[1].nb_events, BACKLOG + 1);
	TEST_OK(ibcm_accept(pair_last(&pair, 1)->id, 0, &qp, NULL));
	req = valid_req(51, 53);
	TEST_EQ(reason_of(&req), IBCM_REJ_NO_RESOURCES);
	TEST_OK(ibcm_reject(id, 0, IBCM_REJ_CONSUMER, NULL));
	pair.nb_net = 0;
	forge(&req, &path);
	TEST_EQ(pair.side[1].nb_events, BACKLOG + 2);
}

TEST(ibcm_peer, ids_are_limited)
{
	struct ibcm_id *ids[MAX_IDS], *id;
	struct ibcm_msg req = valid_req(1, 2);
	struct ibcm_req_conf conf = pair_req(&pair, 1);
	uint32_t i;

	for (i = 0; i < MAX_IDS; i++)
		TEST_OK(ibcm_connect(pair.side[1].cm, 0, &conf, &ids[i]));
	TEST_ERR(ibcm_connect(pair.side[1].cm, 0, &conf, &id), ENOSPC);
	TEST_EQ(reason_of(&req), IBCM_REJ_NO_RESOURCES);
	for (i = 0; i < MAX_IDS; i++)
		ibcm_release(ids[i], 0);
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 0);
	TEST_EQ(ibcm_next(pair.side[1].cm), IBCM_NEVER);
}

/* Reject, or answer, requests until all IDs are in time-wait, and twice as many. */
static void
fill_with_ended(uint32_t type)
{
	const struct ibcm_path path = path_back();
	struct ibcm_msg req;
	struct ibcm_id *id;
	uint32_t i;

	for (i = 1; i <= 2 * MAX_IDS; i++) {
		req = valid_req(i, 1 + i);
		req.type = type;
		forge(&req, &path);
		TEST_EQ(pair.side[1].nb_events, i);
		id = pair_last(&pair, 1)->id;
		if (type == IBCM_SIDR_REQ)
			TEST_OK(ibcm_answer(id, 0, IBCM_SIDR_VALID, 2, 0, NULL));
		ibcm_release(id, 0);
		TEST_ASSERT(ibcm_nb_ids(pair.side[1].cm) <= MAX_IDS);
	}
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), MAX_IDS);
}

TEST(ibcm_peer, ended_requests_take_no_id_from_others)
{
	struct ibcm_id *ids[2], *more;
	uint32_t i;

	fill_with_ended(IBCM_REQ);
	pair.side[1].nb_events = 0;
	pair.nb_net = 0;
	fill_with_ended(IBCM_SIDR_REQ);
	pair.nb_net = 0;
	TEST_OK(pair_establish(&pair, ids));
	for (i = 1; i < MAX_IDS; i++)
		TEST_OK(pair_connect(&pair, 1, &more));
	TEST_ERR(pair_connect(&pair, 1, &more), ENOSPC);
}

/* It had a QP: its number must not be used again. */
TEST(ibcm_peer, time_wait_of_a_connection_keeps_its_id)
{
	struct ibcm_id *ids[2], *more;
	uint32_t i;

	TEST_OK(pair_establish(&pair, ids));
	ibcm_release(ids[1], 0);
	pair_deliver_all(&pair);
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 1);
	for (i = 1; i < MAX_IDS; i++)
		TEST_OK(pair_connect(&pair, 1, &more));
	TEST_ERR(pair_connect(&pair, 1, &more), ENOSPC);
}

TEST(ibcm_peer, forged_end_without_the_ids_changes_nothing)
{
	struct ibcm_path path = path_back();
	struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_msg good, bad;
	struct ibcm_id *ids[2];
	uint32_t i, k, nb_events;
	static const uint32_t types[] = {IBCM_DREQ, IBCM_REJ, IBCM_RTU, IBCM_DREP, IBCM_MRA};

	TEST_OK(pair_establish(&pair, ids));
	TEST_OK(ibcm_disconnect(ids[0], 0, NULL));
	good = pair_msg(&pair, 0); /* has both comm IDs */
	pair.nb_net = 0;
	nb_events = pair.side[1].nb_events;
	for (i = 0; i < RTE_DIM(types); i++) {
		for (k = 0; k < 4; k++) {
			bad = good;
			bad.type = types[i];
			bad.data_len = 0;
			bad.local_id ^= k == 0;
			bad.remote_id ^= k == 1;
			bad.qpn ^= k == 2;
			path = path_back();
			path.remote_gid[15] ^= k == 3 ? 8 : 0;
			if (k != 2 || types[i] == IBCM_DREQ)
				forge(&bad, &path);
		}
	}
	TEST_EQ(pair.side[1].nb_events, nb_events);
	TEST_EQ(ibcm_state(ids[1]), IBCM_ESTABLISHED);
	TEST_ERR(ibcm_accept(ids[1], 0, &qp, NULL), EBUSY);
	path = path_back();
	forge(&good, &path);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_DISCONNECTED);
}

TEST(ibcm_peer, forged_answer_without_the_tid_changes_nothing)
{
	struct ibcm_path path = path_back();
	struct ibcm_msg req, rep;
	struct ibcm_id *a;

	TEST_OK(pair_connect(&pair, 1, &a));
	req = pair_msg(&pair, 0);
	rep = (struct ibcm_msg){.type = IBCM_REP,
			.tid = req.tid + 1,
			.local_id = 1,
			.remote_id = req.local_id,
			.qpn = 2};
	forge(&rep, &path);
	rep.type = IBCM_REJ;
	forge(&rep, &path);
	rep.type = IBCM_MRA;
	forge(&rep, &path);
	TEST_EQ(ibcm_state(a), IBCM_REQ_SENT);
	TEST_EQ(ibcm_stats(pair.side[1].cm)->unknown_id, 3);
	rep.tid--;
	rep.type = IBCM_REP;
	forge(&rep, &path);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_REP);
}

/* As the kernel, to which they are numbers as others: that of rdma_connect() without a QP is 0. */
TEST(ibcm_peer, numbers_of_special_qps_are_accepted)
{
	const struct ibcm_path path = path_back();
	const struct ibcm_qp_conf qp = {.qpn = 0};
	struct ibcm_msg req = valid_req(1, 0), rep = {.type = IBCM_REP, .local_id = 3, .qpn = 1};
	struct ibcm_qp_attr attr;
	struct ibcm_id *id;

	forge(&req, &path);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_REQ);
	TEST_OK(ibcm_accept(pair_last(&pair, 1)->id, 0, &qp, NULL));
	pair.nb_net = 0;
	TEST_OK(pair_connect(&pair, 1, &id));
	req = pair_msg(&pair, 0);
	rep.tid = req.tid;
	rep.remote_id = req.local_id;
	forge(&rep, &path);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_REP);
	ibcm_qp_attr(id, &attr);
	TEST_EQ(attr.peer_qpn, 1);
}

/* As the kernel rounds 4.096 us * 2^timeout + 4.096 us * 2^delay. */
TEST(ibcm_peer, ack_delay_of_the_reply_extends_the_timeout)
{
	static const uint8_t cases[][3] = {{14, 0, 14}, {14, 12, 14}, {14, 13, 15}, {14, 14, 15},
			{14, 15, 16}, {14, 16, 16}, {0, 31, 0}, {31, 31, 31}, {1, 0, 2}};
	const struct ibcm_path path = path_back();
	struct ibcm_req_conf conf = pair_req(&pair, 1);
	struct ibcm_msg rep = {.type = IBCM_REP, .local_id = 1};
	struct ibcm_qp_attr attr;
	struct ibcm_id *id;
	uint32_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		conf.ack_timeout = cases[i][0];
		TEST_OK(ibcm_connect(pair.side[1].cm, 0, &conf, &id));
		rep.remote_id = pair_msg(&pair, 0).local_id;
		rep.tid = pair_msg(&pair, 0).tid;
		rep.ack_delay = cases[i][1];
		rep.qpn = 2 + i;
		pair.nb_net = 0;
		forge(&rep, &path);
		ibcm_qp_attr(id, &attr);
		TEST_EQ(attr.ack_timeout, cases[i][2]);
	}
}

TEST(ibcm_peer, messages_of_unknown_connections_are_answered_once)
{
	static const uint32_t answers[IBCM_NB_TYPES] = {
			[IBCM_REP - IBCM_REQ] = IBCM_REJ, [IBCM_DREQ - IBCM_REQ] = IBCM_DREP};
	const struct ibcm_path path = path_back();
	struct ibcm_msg msg = {.local_id = 1, .remote_id = 2, .tid = 3, .qpn = 4}, answer;

	for (msg.type = IBCM_MRA; msg.type < IBCM_SIDR_REQ; msg.type++) {
		pair.nb_net = 0;
		forge(&msg, &path);
		TEST_EQ(pair.nb_net, answers[msg.type - IBCM_REQ] != 0);
		if (pair.nb_net == 0)
			continue;
		answer = pair_msg(&pair, 0);
		TEST_EQ(answer.type, answers[msg.type - IBCM_REQ]);
		TEST_EQ(answer.local_id, 2);
		TEST_EQ(answer.remote_id, 1);
		TEST_EQ(answer.tid, 3);
		if (answer.type == IBCM_REJ)
			TEST_EQ(answer.reason, IBCM_REJ_INVALID_COMM_ID);
	}
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 0);
	TEST_EQ(ibcm_stats(pair.side[1].cm)->unknown_id, 6);
}

/* Of another message; then of the longest time, once. */
TEST(ibcm_peer, mra_delays_its_message_up_to_a_limit)
{
	const struct ibcm_path path = path_back();
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_msg req = valid_req(1, 2), mra;
	uint64_t next;

	forge(&req, &path);
	TEST_OK(ibcm_accept(pair_last(&pair, 1)->id, 0, &qp, NULL));
	next = ibcm_next(pair.side[1].cm);
	mra = (struct ibcm_msg){.type = IBCM_MRA,
			.tid = req.tid,
			.local_id = 1,
			.remote_id = pair_msg(&pair, 0).local_id,
			.service_timeout = IBCM_MAX_TIME};
	forge(&mra, &path);
	TEST_EQ(ibcm_stats(pair.side[1].cm)->wrong_state, 1);
	TEST_EQ(ibcm_next(pair.side[1].cm), next);
	mra.subject = IBCM_OF_REP;
	forge(&mra, &path);
	TEST_EQ(ibcm_next(pair.side[1].cm), UINT64_C(4096) << 24);
	pair.side[1].now = 1000;
	forge(&mra, &path);
	TEST_EQ(ibcm_next(pair.side[1].cm), UINT64_C(4096) << 24);
	TEST_EQ(ibcm_stats(pair.side[1].cm)->duplicates[IBCM_MRA - IBCM_REQ], 1);
}

TEST(ibcm_peer, repeated_request_is_answered_at_once)
{
	const struct ibcm_path path = path_back();
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_msg req = valid_req(1, 2);

	forge(&req, &path);
	TEST_OK(ibcm_accept(pair_last(&pair, 1)->id, 0, &qp, NULL));
	forge(&req, &path);
	TEST_EQ(pair.nb_net, 2);
	TEST_MEM(pair.net[1].mad, pair.net[0].mad, IBCM_MAD_LEN);
}

/* Deliver the only MAD in flight twice: the duplicates of its type that its receiver counts. */
static uint64_t
deliver_twice(uint16_t type)
{
	const struct pair_mad mad = pair.net[0];
	const struct pair_side *side = &pair.side[mad.to];

	TEST_EQ(pair.nb_net, 1);
	TEST_EQ(pair_msg(&pair, 0).type, type);
	pair_deliver(&pair, 0);
	ibcm_input(side->cm, side->now, &mad.path, mad.mad);
	pair.nb_net = 0;
	return ibcm_stats(side->cm)->duplicates[type - IBCM_REQ];
}

TEST(ibcm_peer, repeated_messages_are_counted_by_type)
{
	const struct ibcm_sidr_conf sidr = {.path = pair_req(&pair, 0).path,
			.service_id = PAIR_SERVICE,
			.cm_timeout = PAIR_TIMEOUT};
	struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_id *id;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		qp.qpn += i; /* that of the first connection is in TIMEWAIT */
		TEST_OK(pair_connect(&pair, 0, &id));
		TEST_EQ(deliver_twice(IBCM_REQ), i + 1);
		TEST_OK(ibcm_accept(pair_last(&pair, 1)->id, 0, &qp, NULL));
		TEST_EQ(deliver_twice(IBCM_REP), i + 1);
		if (i == 0) {
			TEST_OK(ibcm_ready(id, NULL));
			TEST_EQ(deliver_twice(IBCM_RTU), 1);
			TEST_OK(ibcm_disconnect(id, 0, NULL));
			TEST_EQ(deliver_twice(IBCM_DREQ), 1);
		} else {
			TEST_OK(ibcm_reject(id, 0, IBCM_REJ_CONSUMER, NULL));
			TEST_EQ(deliver_twice(IBCM_REJ), 1);
		}
	}
	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &sidr, &id));
	TEST_EQ(deliver_twice(IBCM_SIDR_REQ), 1);
}

/* The peer decides when it uses its QP number again. */
TEST(ibcm_peer, qp_number_of_the_peer_in_time_wait_is_accepted)
{
	const struct ibcm_path path = path_back();
	struct ibcm_msg req = valid_req(1, 2);
	struct ibcm_id *id;

	forge(&req, &path);
	id = pair_last(&pair, 1)->id;
	TEST_OK(ibcm_reject(id, 0, IBCM_REJ_CONSUMER, NULL));
	TEST_EQ(ibcm_state(id), IBCM_TIMEWAIT);
	req.local_id = req.tid = 3;
	forge(&req, &path);
	TEST_EQ(pair.side[1].nb_events, 2);
	TEST_ASSERT(pair_last(&pair, 1)->id != id);
}

TEST(ibcm_peer, forged_resolution_without_the_tid_changes_nothing)
{
	const struct ibcm_path path = path_back();
	const struct ibcm_sidr_conf conf = {
			.path = path, .service_id = PAIR_SERVICE, .cm_timeout = PAIR_TIMEOUT};
	struct ibcm_msg rep;
	struct ibcm_id *id;

	TEST_OK(ibcm_resolve(pair.side[1].cm, 0, &conf, &id));
	rep = pair_msg(&pair, 0);
	rep.type = IBCM_SIDR_REP;
	rep.data_len = 0;
	rep.tid++;
	forge(&rep, &path);
	TEST_EQ(ibcm_state(id), IBCM_SIDR_REQ_SENT);
	rep.tid--;
	rep.service_id++;
	forge(&rep, &path);
	TEST_EQ(ibcm_state(id), IBCM_SIDR_REQ_SENT);
	rep.service_id--;
	forge(&rep, &path);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_SIDR_REP);
}

/* Its QP number, then its comm ID, in a REQ that is not the one of the connection. */
TEST(ibcm_peer, peer_that_restarted_ends_the_stale_connection)
{
	const struct ibcm_path path = path_back();
	struct ibcm_msg req, dreq;
	struct ibcm_id *ids[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		TEST_OK(pair_establish(&pair, ids));
		req = valid_req(0x1234, PAIR_QPN);
		req.ca_guid = UINT64_C(0x0200000000000001);
		if (i == 1) {
			TEST_OK(ibcm_disconnect(ids[0], 0, NULL));
			req.local_id = pair_msg(&pair, 0).local_id;
			pair.nb_net = 0;
			req.qpn++;
		}
		forge(&req, &path);
		TEST_EQ(pair.nb_net, 2);
		TEST_EQ(pair_msg(&pair, 0).type, IBCM_REJ);
		TEST_EQ(pair_msg(&pair, 0).reason, IBCM_REJ_STALE_CONN);
		dreq = pair_msg(&pair, 1);
		TEST_EQ(dreq.type, IBCM_DREQ);
		pair_drop(&pair, 0);
		ibcm_release(ids[0], 0);
		pair_deliver_all(&pair);
		TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_DISCONNECTED);
		while (pair_expire(&pair, 0) || pair_expire(&pair, 1))
			pair_deliver_all(&pair);
		ibcm_release(ids[1], 0);
	}
	TEST_EQ(ibcm_nb_ids(pair.side[0].cm), 0);
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 0);
}

TEST(ibcm_peer, peers_cannot_choose_the_times)
{
	const struct ibcm_path path = path_back();
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_msg req = valid_req(1, 2);
	struct ibcm_id *id;

	req.local_timeout = 0;
	req.ack_timeout = 31;
	forge(&req, &path);
	id = pair_last(&pair, 1)->id;
	TEST_OK(ibcm_accept(id, 0, &qp, NULL));
	TEST_EQ(ibcm_next(pair.side[1].cm), UINT64_C(4096) << 12);
	TEST_OK(ibcm_reject(id, 0, IBCM_REJ_CONSUMER, NULL));
	TEST_EQ(ibcm_next(pair.side[1].cm), UINT64_C(4096) << 21);
}

TEST(ibcm_peer, requests_outlive_their_listener)
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	ibcm_unlisten(pair.side[1].listener);
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	pair_deliver_all(&pair);
	TEST_OK(ibcm_ready(a, NULL));
	pair_deliver_all(&pair);
	TEST_EQ(ibcm_state(b), IBCM_ESTABLISHED);
}
