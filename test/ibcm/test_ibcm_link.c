/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Links, each to one peer: they need no address of it, carry only their own IDs, and end. */

#include <string.h>

#include "../test.h"
#include "pair.h"

#define LINK  UINT64_C(0x100000005)
#define OTHER 6

static struct pair pair;

static void
set_up(void)
{
	pair_open(&pair, 16, 16);
	TEST_OK(pair_listen(&pair, 1, 16));
}

static void
tear_down(void)
{
	pair_close(&pair);
}

TEST_SUITE(ibcm_link, set_up, tear_down);

/* Request a connection by the link, without the address of the peer. */
static struct ibcm_id *
request(void)
{
	struct ibcm_req_conf conf = pair_req(&pair, 0);
	struct ibcm_id *id = NULL;

	conf.path.link = LINK;
	memset(conf.path.remote_gid, 0, sizeof(conf.path.remote_gid));
	TEST_OK(ibcm_connect(pair.side[0].cm, pair.side[0].now, &conf, &id));
	return id;
}

/* The ID of side 1 for that request. */
static struct ibcm_id *
requested(void)
{
	pair_deliver_all(&pair);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_REQ);
	return pair_last(&pair, 1)->id;
}

/* Of a request that is not delivered yet. */
static void
accept_request(struct ibcm_id *ids[2])
{
	const struct ibcm_qp_conf qp = pair_qp(1);

	ids[1] = requested();
	TEST_OK(ibcm_accept(ids[1], 0, &qp, NULL));
	pair_deliver_all(&pair);
	TEST_OK(ibcm_ready(ids[0], NULL));
	pair_deliver_all(&pair);
	TEST_EQ(ibcm_state(ids[1]), IBCM_ESTABLISHED);
}

static void
establish(struct ibcm_id *ids[2])
{
	ids[0] = request();
	accept_request(ids);
}

TEST(ibcm_link, answer_has_the_address_of_the_peer)
{
	static const uint8_t unknown[16];
	struct ibcm_id *ids[2];

	ids[0] = request();
	TEST_EQ(memcmp(ibcm_path(ids[0])->remote_gid, unknown, 16), 0);
	ibcm_release(ids[0], 0);
	pair.nb_net = 0;
	establish(ids);
	TEST_EQ(memcmp(ibcm_path(ids[0])->remote_gid, pair.side[1].gid, 16), 0);
	TEST_EQ(memcmp(ibcm_path(ids[1])->remote_gid, pair.side[0].gid, 16), 0);
	TEST_EQ(ibcm_path(ids[1])->link, LINK);
}

TEST(ibcm_link, resolution_has_the_address_of_the_peer)
{
	struct ibcm_sidr_conf conf = {.service_id = PAIR_SERVICE, .cm_timeout = 20};
	struct ibcm_id *id;

	conf.path = pair_req(&pair, 0).path;
	conf.path.link = LINK;
	memset(conf.path.remote_gid, 0, sizeof(conf.path.remote_gid));
	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &conf, &id));
	pair_deliver_all(&pair);
	TEST_OK(ibcm_answer(pair_last(&pair, 1)->id, 0, IBCM_SIDR_VALID, 5, 6, NULL));
	pair_deliver_all(&pair);
	TEST_EQ(pair_last(&pair, 0)->type, IBCM_EVENT_SIDR_REP);
	TEST_EQ(memcmp(ibcm_path(id)->remote_gid, pair.side[1].gid, 16), 0);
}

/* A peer that knows both comm IDs can't send by the link of another one. */
TEST(ibcm_link, message_of_another_link_changes_nothing)
{
	struct ibcm_id *ids[2];
	uint32_t side;

	establish(ids);
	for (side = 0; side < 2; side++) {
		TEST_OK(ibcm_disconnect(ids[side], 0, NULL));
		TEST_EQ(pair.nb_net, 1);
		pair.net[0].path.link = OTHER;
		pair_deliver(&pair, 0);
		TEST_EQ(ibcm_stats(pair.side[!side].cm)->unknown_id, 1);
		TEST_EQ(ibcm_state(ids[!side]), side == 0 ? IBCM_ESTABLISHED : IBCM_DREQ_SENT);
	}
	/* The link has another number now. */
	ibcm_link_set(ids[1], OTHER);
	TEST_OK(pair_expire(&pair, 0) ? 0 : -1);
	pair.net[0].path.link = OTHER;
	pair_deliver(&pair, 0);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_DISCONNECTED);
}

/* A REQ with the GID, GUID and comm ID of a connection, but another TID and QP: a new one. */
TEST(ibcm_link, request_of_another_link_changes_nothing)
{
	struct ibcm_id *ids[2];
	struct pair_mad req;

	ids[0] = request();
	req = pair.net[0];
	accept_request(ids);
	req.mad[15] ^= 1;
	req.mad[58] ^= 1; /* of the QP number */
	req.path.link = OTHER;
	pair.net[pair.nb_net++] = req;
	pair_deliver(&pair, 0);
	TEST_EQ(pair.nb_net, 0);
	TEST_EQ(ibcm_state(ids[1]), IBCM_ESTABLISHED);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_REQ);
	TEST_ASSERT(pair_last(&pair, 1)->id != ids[1]);
	TEST_EQ(ibcm_path(pair_last(&pair, 1)->id)->link, OTHER);
}

/* The same of a resolution: its answer is sent by the link of the first one alone. */
TEST(ibcm_link, resolution_of_another_link_is_another)
{
	struct ibcm_sidr_conf conf = {.service_id = PAIR_SERVICE, .cm_timeout = 20};
	struct pair_mad req;
	struct ibcm_id *id;

	conf.path = pair_req(&pair, 0).path;
	conf.path.link = LINK;
	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &conf, &id));
	req = pair.net[0];
	pair_deliver_all(&pair);
	TEST_OK(ibcm_answer(pair_last(&pair, 1)->id, 0, IBCM_SIDR_VALID, 5, 6, NULL));
	pair_deliver_all(&pair);
	req.path.link = OTHER;
	pair.net[pair.nb_net++] = req;
	pair_deliver(&pair, 0);
	TEST_EQ(pair.nb_net, 0);
	TEST_EQ(pair_last(&pair, 1)->type, IBCM_EVENT_SIDR_REQ);
	TEST_EQ(ibcm_path(pair_last(&pair, 1)->id)->link, OTHER);
}

/* In each state; nothing is sent, reported or left. */
TEST(ibcm_link, dropped_id_leaves_nothing)
{
	struct ibcm_id *ids[2];
	uint32_t step, nb_events;

	for (step = 0; step < 5; step++) {
		if (step < 2) {
			ids[0] = request();
			ids[1] = step == 1 ? requested() : NULL;
		} else {
			establish(ids);
		}
		if (step == 3)
			TEST_OK(ibcm_disconnect(ids[0], 0, NULL));
		if (step == 4)
			ibcm_release(ids[0], 0); /* DREQ_SENT */
		pair.nb_net = 0;
		nb_events = pair.side[0].nb_events + pair.side[1].nb_events;
		ibcm_drop(ids[0]);
		if (ids[1] != NULL)
			ibcm_drop(ids[1]);
		TEST_EQ(pair.nb_net, 0);
		TEST_EQ(pair.side[0].nb_events + pair.side[1].nb_events, nb_events);
		TEST_EQ(ibcm_nb_ids(pair.side[0].cm) + ibcm_nb_ids(pair.side[1].cm), 0);
		TEST_EQ(ibcm_next(pair.side[0].cm), IBCM_NEVER);
		TEST_EQ(ibcm_next(pair.side[1].cm), IBCM_NEVER);
	}
}

struct count {
	uint32_t nb_sent;
	uint32_t nb_events;
};

static void
count_send(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	RTE_SET_USED(path);
	RTE_SET_USED(mad);
	((struct count *)arg)->nb_sent++;
}

static void
count_event(void *arg, const struct ibcm_event *event)
{
	RTE_SET_USED(event);
	((struct count *)arg)->nb_events++;
}

static uint64_t
count_random(void *arg)
{
	static uint64_t last;

	RTE_SET_USED(arg);
	return ++last;
}

/* The message of one link may overtake the end of another, whose QP number the peer uses again. */
TEST(ibcm_link, qp_number_is_not_stale_if_ends_are_seen)
{
	struct count count = {0};
	const struct ibcm_conf conf = {.max_ids = 4,
			.max_half_open = 4,
			.is_end_seen = true,
			.arg = &count,
			.send = count_send,
			.event = count_event,
			.random = count_random};
	const struct ibcm_listen_conf listen = {.service_id = PAIR_SERVICE, .backlog = 4};
	struct ibcm_listener *listener;
	struct ibcm_path path = {.link = 1};
	struct ibcm *cm;

	TEST_OK(ibcm_create(&conf, &cm));
	TEST_OK(ibcm_listen(cm, &listen, &listener));
	for (; path.link < 3; path.link++) {
		(void)request();
		memcpy(path.remote_gid, pair.side[0].gid, 16);
		ibcm_input(cm, 0, &path, pair.net[0].mad);
		pair.nb_net = 0;
	}
	TEST_EQ(count.nb_events, 2);
	TEST_EQ(count.nb_sent, 0);
	ibcm_destroy(cm);
}
