/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Two engines connect, reject, disconnect and resolve as doc/ibcm.md states. */

#include <string.h>

#include "../test.h"
#include "pair.h"

static struct pair pair;

static void
set_up(void)
{
	pair_open(&pair, 16, 8);
	TEST_OK(pair_listen(&pair, 1, 4));
}

static void
tear_down(void)
{
	pair_close(&pair);
}

TEST_SUITE(ibcm, set_up, tear_down);

#define TEST_EVENT(no, kind)  TEST_EQ(pair_last(&pair, no)->type, IBCM_EVENT_##kind)
#define TEST_STATE(id, state) TEST_EQ(ibcm_state(id), IBCM_##state)
#define TEST_SENT(at, kind)   TEST_EQ(pair_msg(&pair, at).type, IBCM_##kind)

/* Release both, and let time pass until nothing is left. */
static void
check_end(struct ibcm_id *a, struct ibcm_id *b)
{
	if (a != NULL)
		ibcm_release(a, pair.side[0].now);
	if (b != NULL)
		ibcm_release(b, pair.side[1].now);
	do
		pair_deliver_all(&pair);
	while (pair_expire(&pair, 0) || pair_expire(&pair, 1));
	TEST_EQ(ibcm_nb_ids(pair.side[0].cm), 0);
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 0);
}

TEST(ibcm, connection_has_the_attributes_of_both_sides)
{
	struct ibcm_qp_attr attr[2];
	struct ibcm_id *ids[2];
	uint32_t i;

	TEST_OK(pair_establish(&pair, ids));
	for (i = 0; i < 2; i++)
		ibcm_qp_attr(ids[i], &attr[i]);
	for (i = 0; i < 2; i++) {
		TEST_EQ(attr[i].qpn, pair_qp(i).qpn);
		TEST_EQ(attr[i].psn, pair_qp(i).psn);
		TEST_EQ(attr[i].peer_qpn, pair_qp(!i).qpn);
		TEST_EQ(attr[i].peer_psn, pair_qp(!i).psn);
		TEST_EQ(attr[i].peer_has_srq, pair_qp(!i).has_srq);
		TEST_EQ(attr[i].rnr_retry_count, pair_qp(!i).rnr_retry_count);
		TEST_EQ(attr[i].mtu, 3);
		TEST_EQ(attr[i].retry_count, 7);
		TEST_EQ(attr[i].ack_timeout, PAIR_ACK);
		/* 16 and 4 of side 0, 8 and 12 of side 1 */
		TEST_EQ(attr[i].responder_resources, i == 0 ? 12 : 4);
		TEST_EQ(attr[i].initiator_depth, i == 0 ? 4 : 12);
	}
	TEST_EVENT(0, REP);
	TEST_EVENT(1, ESTABLISHED);
	TEST_EQ(ibcm_path(ids[1])->remote_gid[15], 1);
	check_end(ids[0], ids[1]);
}

TEST(ibcm, private_data_is_that_of_each_message)
{
	const struct ibcm_data req_data = {"request", 7}, rep_data = {"reply", 5},
			       rtu_data = {"ready", 5}, dreq_data = {"bye", 3};
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_req_conf conf = pair_req(&pair, 0);
	struct ibcm_id *a, *b;

	conf.data = req_data;
	TEST_OK(ibcm_connect(pair.side[0].cm, 0, &conf, &a));
	pair_deliver_all(&pair);
	TEST_EVENT(1, REQ);
	TEST_EQ(pair_last(&pair, 1)->data_len, 92);
	TEST_MEM(pair_last(&pair, 1)->data, "request", 8);
	b = pair_last(&pair, 1)->id;
	TEST_OK(ibcm_accept(b, 0, &qp, &rep_data));
	pair_deliver_all(&pair);
	TEST_MEM(pair_last(&pair, 0)->data, "reply", 6);
	TEST_OK(ibcm_ready(a, &rtu_data));
	pair_deliver_all(&pair);
	TEST_MEM(pair_last(&pair, 1)->data, "ready", 6);
	TEST_OK(ibcm_disconnect(b, 0, &dreq_data));
	pair_deliver_all(&pair);
	TEST_EVENT(0, DISCONNECTED);
	TEST_MEM(pair_last(&pair, 0)->data, "bye", 4);
	check_end(a, b);
}

TEST(ibcm, rejection_has_its_reason_and_data)
{
	const struct ibcm_data why = {"full", 4};
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_reject(b, 0, IBCM_REJ_CONSUMER, &why));
	pair_deliver_all(&pair);
	TEST_EVENT(0, REJECTED);
	TEST_EQ(pair_last(&pair, 0)->reason, IBCM_REJ_CONSUMER);
	TEST_MEM(pair_last(&pair, 0)->data, "full", 5);
	TEST_STATE(a, IDLE);
	TEST_STATE(b, TIMEWAIT);
	check_end(a, b);
}

TEST(ibcm, reply_can_be_rejected)
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	pair_deliver_all(&pair);
	TEST_OK(ibcm_reject(a, 0, IBCM_REJ_NO_RESOURCES, NULL));
	TEST_EQ(pair_msg(&pair, 0).subject, IBCM_OF_REP);
	pair_drop(&pair, 0);
	TEST_ASSERT(pair_expire(&pair, 1)); /* the REP is repeated, and so is the REJ */
	pair_deliver_all(&pair);
	TEST_EVENT(1, REJECTED);
	TEST_EQ(pair_last(&pair, 1)->reason, IBCM_REJ_NO_RESOURCES);
	check_end(a, b);
}

/* A peer without the REP has the comm ID of this side from no other message. */
TEST(ibcm, rejection_answers_a_repeated_request)
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	const struct ibcm_data why = {"late", 4};
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	TEST_OK(ibcm_reject(b, 0, IBCM_REJ_CONSUMER, &why));
	TEST_EQ(pair_msg(&pair, 1).subject, IBCM_OF_OTHER);
	pair_drop(&pair, 0); /* REP and REJ */
	pair_drop(&pair, 0);
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver(&pair, 0); /* REQ */
	TEST_SENT(0, REJ);
	TEST_EQ(pair_msg(&pair, 0).subject, IBCM_OF_REQ);
	pair_deliver_all(&pair);
	TEST_EVENT(0, REJECTED);
	TEST_MEM(pair_last(&pair, 0)->data, "late", 5);
	check_end(a, b);
}

/* Neither a REP has arrived, nor the REJ of its timeout. */
TEST(ibcm, request_that_is_repeated_in_time_wait_is_rejected)
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_id *a, *b;
	uint32_t i;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	for (i = 0; i <= PAIR_RETRIES; i++)
		TEST_ASSERT(pair_expire(&pair, 1));
	TEST_EVENT(1, UNREACHABLE);
	while (pair.nb_net != 0)
		pair_drop(&pair, 0);
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver(&pair, 0); /* REQ */
	TEST_SENT(0, REJ);
	TEST_EQ(pair_msg(&pair, 0).subject, IBCM_OF_REQ);
	pair_deliver_all(&pair);
	TEST_EVENT(0, REJECTED);
	TEST_EQ(pair_last(&pair, 0)->reason, IBCM_REJ_STALE_CONN);
	check_end(a, b);
}

TEST(ibcm, rejection_with_reason_timeout_has_the_ca_guid)
{
	struct ibcm_id *a, *b;
	struct ibcm_msg rej;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_OK(ibcm_reject(b, 0, IBCM_REJ_TIMEOUT, NULL));
	rej = pair_msg(&pair, 0);
	TEST_EQ(rej.ari_len, 8);
	TEST_EQ(rej.ari[0], 2);
	TEST_EQ(rej.ari[7], 2); /* of side 1: 0x0200000000000002 */
	pair_deliver_all(&pair);
	TEST_EVENT(0, REJECTED);
	check_end(a, b);
}

TEST(ibcm, request_without_a_listener_is_rejected)
{
	struct ibcm_id *a;

	ibcm_unlisten(pair.side[1].listener);
	TEST_OK(pair_connect(&pair, 0, &a));
	pair_deliver_all(&pair);
	TEST_EVENT(0, REJECTED);
	TEST_EQ(pair_last(&pair, 0)->reason, IBCM_REJ_INVALID_SERVICE_ID);
	TEST_EQ(ibcm_nb_ids(pair.side[1].cm), 0);
	check_end(a, NULL);
}

/* AddressSanitizer sees it, and ibcm_nb_ids() until then. */
TEST(ibcm, engine_frees_an_id_that_has_ended)
{
	struct ibcm_id *a;

	ibcm_unlisten(pair.side[1].listener);
	TEST_OK(pair_connect(&pair, 0, &a));
	pair_deliver_all(&pair);
	TEST_EVENT(0, REJECTED);
	while (pair_expire(&pair, 0))
		;
	TEST_STATE(a, IDLE);
	TEST_EQ(ibcm_nb_ids(pair.side[0].cm), 1);
}

TEST(ibcm, request_without_an_answer_is_sent_again_and_ends)
{
	struct ibcm_id *a;
	uint32_t i;

	TEST_OK(pair_connect(&pair, 0, &a));
	for (i = 0; i <= PAIR_RETRIES; i++) {
		TEST_EQ(pair.nb_net, 1);
		TEST_SENT(0, REQ);
		pair_drop(&pair, 0);
		TEST_EQ(ibcm_next(pair.side[0].cm), (i + 1) * (UINT64_C(4096) << PAIR_TIMEOUT));
		TEST_ASSERT(pair_expire(&pair, 0));
	}
	TEST_EVENT(0, UNREACHABLE);
	TEST_STATE(a, IDLE);
	TEST_SENT(0, REJ); /* a REQ may have arrived */
	TEST_EQ(pair_msg(&pair, 0).reason, IBCM_REJ_TIMEOUT);
	TEST_EQ(pair.side[0].nb_events, 1);
	TEST_EQ(ibcm_stats(pair.side[0].cm)->retries[0], PAIR_RETRIES);
	check_end(a, NULL);
}

TEST(ibcm, peer_learns_that_a_request_timed_out)
{
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	ibcm_release(a, 0);
	pair_deliver_all(&pair);
	TEST_EVENT(1, REJECTED);
	TEST_EQ(pair_last(&pair, 1)->reason, IBCM_REJ_TIMEOUT);
	check_end(NULL, b);
}

TEST(ibcm, lost_messages_are_repeated)
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_id *a, *b;

	TEST_OK(pair_connect(&pair, 0, &a));
	pair_drop(&pair, 0); /* REQ */
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver_all(&pair);
	b = pair_last(&pair, 1)->id;
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	pair_drop(&pair, 0); /* REP */
	TEST_ASSERT(pair_expire(&pair, 1));
	pair_deliver_all(&pair);
	TEST_EVENT(0, REP);
	TEST_OK(ibcm_ready(a, NULL));
	pair_drop(&pair, 0); /* RTU */
	TEST_ASSERT(pair_expire(&pair, 1));
	pair_deliver_all(&pair);
	TEST_EVENT(1, ESTABLISHED);
	TEST_OK(ibcm_disconnect(a, pair.side[0].now, NULL));
	pair_drop(&pair, 0); /* DREQ */
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver(&pair, 0);
	TEST_EVENT(1, DISCONNECTED);
	pair_drop(&pair, 0); /* DREP */
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver_all(&pair);
	TEST_EVENT(0, DISCONNECTED);
	TEST_STATE(a, TIMEWAIT);
	TEST_STATE(b, TIMEWAIT);
	check_end(a, b);
}

TEST(ibcm, slow_consumer_delays_the_peer_with_mra)
{
	const uint64_t mra_ns = UINT64_C(4096) << 24;
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver(&pair, 0); /* REQ */
	TEST_SENT(0, MRA);
	TEST_EQ(pair_msg(&pair, 0).service_timeout, 24);
	pair_deliver_all(&pair);
	TEST_EQ(ibcm_next(pair.side[0].cm), pair.side[0].now + mra_ns);
	TEST_EQ(pair.side[1].nb_events, 1); /* one REQ */
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver_all(&pair); /* a second MRA does not delay it further */
	TEST_EQ(ibcm_next(pair.side[0].cm), pair.side[0].now + mra_ns);
	TEST_ASSERT(pair_expire(&pair, 0));
	TEST_EVENT(0, UNREACHABLE);
	check_end(a, b);
}

TEST(ibcm, data_before_the_rtu_establishes)
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_id *a, *b;

	TEST_OK(pair_request(&pair, &a, &b));
	TEST_ERR(ibcm_notify(b), EBUSY);
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	pair_deliver_all(&pair);
	TEST_OK(ibcm_notify(b));
	TEST_STATE(b, ESTABLISHED);
	TEST_EQ(ibcm_next(pair.side[1].cm), IBCM_NEVER);
	TEST_OK(ibcm_ready(a, NULL));
	pair_deliver_all(&pair);
	TEST_EQ(pair.side[1].nb_events, 1);
	/* A DREQ before the RTU, too. */
	TEST_OK(ibcm_disconnect(b, 0, NULL));
	pair_deliver_all(&pair);
	TEST_EVENT(0, DISCONNECTED);
	check_end(a, b);
}

TEST(ibcm, crossing_disconnects_end_once)
{
	struct ibcm_id *ids[2];
	uint32_t i;

	TEST_OK(pair_establish(&pair, ids));
	for (i = 0; i < 2; i++)
		TEST_OK(ibcm_disconnect(ids[i], 0, NULL));
	pair_deliver_all(&pair);
	for (i = 0; i < 2; i++) {
		TEST_EVENT(i, DISCONNECTED);
		TEST_EQ(pair.side[i].nb_events, i == 0 ? 2 : 3);
		TEST_STATE(ids[i], TIMEWAIT);
		TEST_ASSERT(pair_expire(&pair, i));
		TEST_EVENT(i, TIMEWAIT_EXIT);
		TEST_STATE(ids[i], IDLE);
	}
	check_end(ids[0], ids[1]);
}

TEST(ibcm, crossing_requests_are_two_connections)
{
	struct ibcm_id *a[2], *b[2];
	struct ibcm_qp_conf qp;
	uint32_t i;

	TEST_OK(pair_listen(&pair, 0, 4));
	for (i = 0; i < 2; i++)
		TEST_OK(pair_connect(&pair, i, &a[i]));
	pair_deliver_all(&pair);
	for (i = 0; i < 2; i++) {
		TEST_EVENT(i, REQ);
		b[i] = pair_last(&pair, i)->id;
		qp = pair_qp(i);
		qp.qpn++;
		TEST_OK(ibcm_accept(b[i], 0, &qp, NULL));
	}
	pair_deliver_all(&pair);
	for (i = 0; i < 2; i++)
		TEST_OK(ibcm_ready(a[i], NULL));
	pair_deliver_all(&pair);
	for (i = 0; i < 2; i++) {
		TEST_STATE(a[i], ESTABLISHED);
		TEST_STATE(b[i], ESTABLISHED);
		ibcm_release(a[i], 0);
	}
	pair_deliver_all(&pair);
	for (i = 0; i < 2; i++)
		TEST_EVENT(i, DISCONNECTED);
	check_end(b[0], b[1]);
}

TEST(ibcm, one_engine_connects_to_itself)
{
	struct ibcm_req_conf conf = pair_req(&pair, 1);
	const struct ibcm_qp_conf qp = pair_qp(0);
	struct ibcm_id *a, *b;

	memcpy(conf.path.remote_gid, conf.path.local_gid, sizeof(conf.path.local_gid));
	TEST_OK(ibcm_connect(pair.side[1].cm, 0, &conf, &a));
	pair_deliver_all(&pair);
	b = pair_last(&pair, 1)->id;
	TEST_OK(ibcm_accept(b, 0, &qp, NULL));
	pair_deliver_all(&pair);
	TEST_OK(ibcm_ready(a, NULL));
	pair_deliver_all(&pair);
	TEST_STATE(b, ESTABLISHED);
	ibcm_release(a, 0);
	pair_deliver_all(&pair);
	TEST_EVENT(1, DISCONNECTED);
	check_end(NULL, b);
}

TEST(ibcm, listener_is_found_by_its_address)
{
	static const uint8_t addr4[16] = {[12] = 192, 0, 2, 1}, addr6[16] = {0xfd, [15] = 1};
	struct ibcm_listen_conf listen = {
			.service_id = 7, .family = IBCM_IP_V4, .backlog = 4, .arg = &pair};
	struct ibcm_req_conf conf = pair_req(&pair, 0);
	struct ibcm_listener *v4, *v6;
	struct ibcm_ip ip = {.version = 4, .src_port = 1234};
	struct ibcm_id *a;
	uint32_t i;

	ibcm_unlisten(pair.side[1].listener);
	memcpy(listen.addr, addr4, sizeof(addr4));
	TEST_OK(ibcm_listen(pair.side[1].cm, &listen, &v4));
	TEST_ERR(ibcm_listen(pair.side[1].cm, &listen, &v4), EEXIST);
	memcpy(listen.addr, addr6, sizeof(addr6));
	TEST_ERR(ibcm_listen(pair.side[1].cm, &listen, &v6), EINVAL);
	listen.family = IBCM_IP_V6;
	TEST_OK(ibcm_listen(pair.side[1].cm, &listen, &v6));
	conf.service_id = 7;
	conf.ip = &ip;
	conf.data = (struct ibcm_data){"x", 1};
	for (i = 0; i < 4; i++) {
		ip.version = i < 2 ? 4 : 6;
		memcpy(ip.dst, i < 2 ? addr4 : addr6, sizeof(ip.dst));
		ip.dst[15] = (uint8_t)(1 + i % 2); /* of 1 and 3: another address */
		conf.qp.qpn = PAIR_QPN + i;
		TEST_OK(ibcm_connect(pair.side[0].cm, 0, &conf, &a));
		pair_deliver_all(&pair);
		if (i % 2 == 0) {
			TEST_EVENT(1, REQ);
			TEST_ASSERT(pair_last(&pair, 1)->has_ip);
			TEST_EQ(pair_last(&pair, 1)->ip.src_port, 1234);
			TEST_EQ(pair_last(&pair, 1)->data_len, 56);
			TEST_EQ(pair_last(&pair, 1)->data[0], 'x');
			ibcm_release(pair_last(&pair, 1)->id, 0);
			pair_deliver_all(&pair);
		} else {
			TEST_EQ(pair_last(&pair, 0)->reason, IBCM_REJ_INVALID_SERVICE_ID);
		}
		ibcm_release(a, 0);
		pair_deliver_all(&pair);
	}
}

TEST(ibcm, listener_of_all_addresses_has_both_versions)
{
	const struct ibcm_listen_conf listen = {
			.service_id = 7, .family = IBCM_IP_ANY, .backlog = 4, .arg = &pair};
	struct ibcm_req_conf conf = pair_req(&pair, 0);
	struct ibcm_listener *any;
	struct ibcm_ip ip = {.version = 4, .dst = {[15] = 1}};
	struct ibcm_id *a;

	TEST_OK(ibcm_listen(pair.side[1].cm, &listen, &any));
	conf.service_id = 7;
	TEST_OK(ibcm_connect(pair.side[0].cm, 0, &conf, &a));
	pair_deliver_all(&pair);
	TEST_EQ(pair_last(&pair, 0)->reason, IBCM_REJ_INVALID_SERVICE_ID); /* no addresses */
	ibcm_release(a, 0);
	conf.ip = &ip;
	conf.data = (struct ibcm_data){&pair, 57};
	TEST_ERR(ibcm_connect(pair.side[0].cm, 0, &conf, &a), EINVAL);
	conf.data.len = 56;
	for (ip.version = 4; ip.version <= 6; ip.version += 2) {
		conf.qp.qpn++;
		TEST_OK(ibcm_connect(pair.side[0].cm, 0, &conf, &a));
		pair_deliver_all(&pair);
		TEST_EVENT(1, REQ);
		TEST_EQ(pair_last(&pair, 1)->ip.version, ip.version);
		ibcm_release(pair_last(&pair, 1)->id, 0);
		pair_deliver_all(&pair);
		TEST_EVENT(0, REJECTED);
		check_end(a, NULL);
	}
	ip.version = 5;
	TEST_ERR(ibcm_connect(pair.side[0].cm, 0, &conf, &a), EINVAL);
}

TEST(ibcm, service_id_is_resolved)
{
	struct ibcm_sidr_conf conf = {.path = pair_req(&pair, 0).path,
			.service_id = PAIR_SERVICE,
			.cm_timeout = PAIR_TIMEOUT,
			.max_cm_retries = PAIR_RETRIES,
			.data = {"ud", 2}};
	const struct ibcm_data answer = {"here", 4};
	struct ibcm_id *a, *b;

	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &conf, &a));
	pair_drop(&pair, 0);
	TEST_ASSERT(pair_expire(&pair, 0));
	pair_deliver_all(&pair);
	TEST_EVENT(1, SIDR_REQ);
	TEST_MEM(pair_last(&pair, 1)->data, "ud", 3);
	b = pair_last(&pair, 1)->id;
	TEST_OK(ibcm_answer(b, 0, IBCM_SIDR_VALID, 0x123, 0x01234567, &answer));
	TEST_ERR(ibcm_answer(b, 0, IBCM_SIDR_VALID, 0x123, 0x01234567, &answer), EBUSY);
	pair_drop(&pair, 0);
	TEST_ASSERT(pair_expire(&pair, 0)); /* a duplicate has the same answer */
	pair_deliver_all(&pair);
	TEST_EQ(pair.side[1].nb_events, 1);
	TEST_EVENT(0, SIDR_REP);
	TEST_EQ(pair_last(&pair, 0)->msg.status, IBCM_SIDR_VALID);
	TEST_EQ(pair_last(&pair, 0)->msg.qpn, 0x123);
	TEST_EQ(pair_last(&pair, 0)->msg.qkey, 0x01234567);
	TEST_MEM(pair_last(&pair, 0)->data, "here", 5);
	TEST_STATE(a, IDLE);
	ibcm_release(a, 0);
	/* No such service, and a consumer that does not answer. */
	conf.service_id++;
	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &conf, &a));
	pair_deliver_all(&pair);
	TEST_EQ(pair_last(&pair, 0)->msg.status, IBCM_SIDR_NO_SERVICE);
	ibcm_release(a, 0);
	conf.service_id--;
	TEST_OK(ibcm_resolve(pair.side[0].cm, 0, &conf, &a));
	pair_deliver_all(&pair);
	ibcm_release(pair_last(&pair, 1)->id, 0);
	pair_deliver_all(&pair);
	TEST_EQ(pair_last(&pair, 0)->msg.status, IBCM_SIDR_REJECTED);
	check_end(a, b);
}

TEST(ibcm, wrong_arguments_and_states_are_refused)
{
	const struct ibcm_data large = {&pair, IBCM_MAX_DATA + 1};
	struct ibcm_qp_conf qp = pair_qp(1);
	struct ibcm_req_conf conf;
	struct ibcm_id *ids[2], *a;
	uint32_t i;

	for (i = 1; i < 9; i++) {
		conf = pair_req(&pair, 0);
		conf.qp.qpn = i == 1 ? IBCM_QPN_MASK + 1 : conf.qp.qpn;
		conf.qp.psn = i == 2 ? IBCM_PSN_MASK + 1 : conf.qp.psn;
		conf.service = i == 3 ? IBCM_RD : IBCM_RC;
		conf.mtu = i == 4 ? 6 : i == 5 ? 0 : 5;
		conf.retry_count = i == 6 ? 8 : 7;
		conf.max_cm_retries = i == 7 ? IBCM_MAX_RETRY + 1 : 1;
		conf.data.len = i == 8 ? 93 : 0;
		conf.data.data = conf.data.len != 0 ? &pair : NULL;
		TEST_ERR(ibcm_connect(pair.side[0].cm, 0, &conf, &a), EINVAL);
	}
	TEST_OK(pair_establish(&pair, ids));
	TEST_ERR(ibcm_accept(ids[1], 0, &qp, NULL), EBUSY);
	TEST_ERR(ibcm_accept(ids[1], 0, &qp, &large), EINVAL);
	TEST_ERR(ibcm_ready(ids[0], NULL), EBUSY);
	TEST_ERR(ibcm_ready(ids[0], &large), EINVAL);
	TEST_ERR(ibcm_reject(ids[0], 0, IBCM_REJ_CONSUMER, NULL), EBUSY);
	TEST_ERR(ibcm_reject(ids[0], 0, IBCM_REJ_CONSUMER, &large), EINVAL);
	TEST_ERR(ibcm_disconnect(ids[0], 0, &large), EINVAL);
	TEST_ERR(ibcm_notify(ids[1]), EBUSY);
	TEST_ERR(ibcm_answer(ids[1], 0, IBCM_SIDR_VALID, 2, 0, NULL), EBUSY);
	TEST_OK(ibcm_disconnect(ids[0], 0, NULL));
	TEST_ERR(ibcm_disconnect(ids[0], 0, NULL), EBUSY);
	check_end(ids[0], ids[1]);
}
