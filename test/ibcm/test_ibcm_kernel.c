/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Messages recorded from the kernel (kernel_mads.h): the codec decodes and encodes each, and an
 * engine in the place of either host receives those of the other, and sends the same bytes.
 */

#include <string.h>

#include "../test.h"
#include "ibcm.h"
#include "kernel_mads.h"

#define MAX_SENT 4u

/* Where the kernel and the engine differ, from the end of the header of the MAD. */
#define REP_DELAY 26 /* target ACK delay and failover */

static struct {
	struct ibcm *cm;
	uint64_t now;
	uint64_t random[2]; /* transaction ID and comm ID of the next ID */
	uint32_t nb_random;
	uint8_t sent[MAX_SENT][IBCM_MAD_LEN];
	uint32_t nb_sent;
	struct ibcm_event event; /* the last one */
	struct ibcm_msg msg;
	struct ibcm_ip ip;
	uint8_t data[IBCM_MAX_DATA];
} side;

static void
on_send(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	RTE_SET_USED(arg);
	RTE_SET_USED(path);
	memcpy(side.sent[side.nb_sent++ % MAX_SENT], mad, IBCM_MAD_LEN);
}

static void
on_event(void *arg, const struct ibcm_event *event)
{
	RTE_SET_USED(arg);
	side.event = *event;
	if (event->msg != NULL)
		side.msg = *event->msg;
	if (event->ip != NULL)
		side.ip = *event->ip;
	memcpy(side.data, event->data, event->data_len);
}

static uint64_t
on_random(void *arg)
{
	RTE_SET_USED(arg);
	return side.random[side.nb_random++ % 2];
}

static void
nothing(void)
{
	memset(&side, 0, sizeof(side));
}

static void
tear_down(void)
{
	if (side.cm != NULL)
		ibcm_destroy(side.cm);
	side.cm = NULL;
}

TEST_SUITE(ibcm_kernel, nothing, tear_down);

/* The engine of host 1 or 2, whose next ID has the transaction ID and comm ID of its message. */
static void
be_host(uint32_t host, const uint8_t *mad)
{
	const struct ibcm_conf conf = {
			.ca_guid = UINT64_C(0x505400fffe000200) + host,
			.max_ids = 4,
			.max_half_open = 4,
			.send = on_send,
			.event = on_event,
			.random = on_random,
	};
	struct ibcm_msg msg;

	TEST_OK(ibcm_create(&conf, &side.cm));
	TEST_ASSERT(ibcm_mad_decode(mad, &msg));
	side.random[0] = msg.tid;
	side.random[1] = msg.local_id;
	side.nb_random = 0;
}

/* The path of a host to the other, with the traffic class and the flow label of a REQ. */
static struct ibcm_path
path_of(uint32_t host, bool is_ipv6, const struct ibcm_msg *req)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2},
			     ipv6[16] = {0x20, 0x01, 0x0d, 0xb8};
	struct ibcm_path path = {.hop_limit = 64,
			.traffic_class = req->traffic_class,
			.flow_label = req->flow_label};

	memcpy(path.local_gid, is_ipv6 ? ipv6 : ipv4, sizeof(path.local_gid));
	memcpy(path.remote_gid, path.local_gid, sizeof(path.local_gid));
	path.local_gid[15] = (uint8_t)host;
	path.remote_gid[15] = (uint8_t)(3 - host);
	return path;
}

static void
input(uint32_t host, const uint8_t *mad)
{
	const struct ibcm_msg none = {.type = 0};
	const struct ibcm_path path = path_of(host, false, &none);

	memset(&side.event, 0xff, sizeof(side.event));
	ibcm_input(side.cm, side.now, &path, mad);
}

#define TEST_EVENT(kind) TEST_EQ(side.event.type, IBCM_EVENT_##kind)

/* The last message sent is that of the kernel, but for some bytes. */
static void
check_sent(const uint8_t *want, uint32_t byte, uint32_t n)
{
	uint8_t mad[IBCM_MAD_LEN];

	TEST_ASSERT(side.nb_sent != 0);
	memcpy(mad, side.sent[(side.nb_sent - 1) % MAX_SENT], IBCM_MAD_LEN);
	memcpy(mad + IBCM_HDR_LEN + byte, want + IBCM_HDR_LEN + byte, n);
	TEST_MEM(mad, want, IBCM_MAD_LEN);
}

/* Host 2 connects with the values of a REQ. */
static struct ibcm_id *
connect_as(const uint8_t *mad)
{
	struct ibcm_req_conf conf = {.cm_timeout = 20, .max_cm_retries = 15};
	struct ibcm_id *id;
	struct ibcm_msg req;
	struct ibcm_ip ip;

	be_host(2, mad);
	TEST_ASSERT(ibcm_mad_decode(mad, &req));
	TEST_ASSERT(ibcm_ip_decode(req.data, req.data_len, &ip));
	conf.path = path_of(2, ip.version == 6, &req);
	conf.service_id = req.service_id;
	conf.qp = (struct ibcm_qp_conf){.qpn = req.qpn,
			.psn = req.psn,
			.responder_resources = req.responder_resources,
			.initiator_depth = req.initiator_depth,
			.rnr_retry_count = req.rnr_retry_count};
	conf.mtu = req.mtu;
	conf.retry_count = req.retry_count;
	conf.ack_timeout = req.ack_timeout;
	conf.ip = &ip;
	conf.data = (struct ibcm_data){req.data + IBCM_IP_LEN, req.data_len - IBCM_IP_LEN};
	TEST_OK(ibcm_connect(side.cm, side.now, &conf, &id));
	return id;
}

/* Host 1 listens for a service ID, and receives a request. */
static struct ibcm_id *
request_as(const uint8_t *req, const uint8_t *answer, uint64_t service_id)
{
	const struct ibcm_listen_conf conf = {
			.service_id = service_id, .family = IBCM_IP_ANY, .backlog = 4};
	struct ibcm_listener *listener;

	be_host(1, answer);
	TEST_OK(ibcm_listen(side.cm, &conf, &listener));
	input(1, req);
	return side.event.id;
}

static const struct {
	const uint8_t *mad;
	uint32_t type, local_id, remote_id;
	uint64_t tid;
} mads[] = {
		{rping_req, IBCM_REQ, 0x7b36254d, 0, 0x24d25367b},
		{rping_rep, IBCM_REP, 0x9dc7492a, 0x7b36254d, 0x24d25367b},
		{rping_rtu, IBCM_RTU, 0x7b36254d, 0x9dc7492a, 0x24d25367b},
		{rping_dreq, IBCM_DREQ, 0x7b36254d, 0x9dc7492a, 0x24d25367b},
		{rping_drep, IBCM_DREP, 0x9dc7492a, 0x7b36254d, 0x24d25367b},
		{refused_req, IBCM_REQ, 0x7a36254d, 0, 0x24d25367a},
		{refused_rej, IBCM_REJ, 0, 0x7a36254d, 0x24d25367a},
		{udaddy_req, IBCM_SIDR_REQ, 0x7936254d, 0, 0x24d253679},
		{udaddy_rep, IBCM_SIDR_REP, 0x7936254d, 0, 0x24d253679},
		{udaddy_none_req, IBCM_SIDR_REQ, 0x7836254d, 0, 0x24d253678},
		{udaddy_none_rep, IBCM_SIDR_REP, 0x7836254d, 0, 0x24d253678},
		{slow_req, IBCM_REQ, 0x7f36254d, 0, 0x24d25367f},
		{slow_mra, IBCM_MRA, 0x9bc7492a, 0x7f36254d, 0x24d25367f},
		{slow_rep, IBCM_REP, 0x9bc7492a, 0x7f36254d, 0x24d25367f},
		{rejected_req, IBCM_REQ, 0x7e36254d, 0, 0x24d25367e},
		{rejected_rej, IBCM_REJ, 0x95c7492a, 0x7e36254d, 0x24d25367e},
		{ipv6_req, IBCM_REQ, 0x7d36254d, 0, 0x24d25367d},
		{nvme_req, IBCM_REQ, 0x7336254d, 0, 0x24d253673},
};

/* None of the fields that a kernel sets is left out. */
TEST(ibcm_kernel, messages_are_encoded_to_the_same_bytes)
{
	uint8_t mad[IBCM_MAD_LEN];
	struct ibcm_msg msg;
	uint32_t i;

	for (i = 0; i < RTE_DIM(mads); i++) {
		TEST_ASSERT(ibcm_mad_decode(mads[i].mad, &msg));
		TEST_EQ(msg.type, mads[i].type);
		TEST_EQ(msg.local_id, mads[i].local_id);
		TEST_EQ(msg.remote_id, mads[i].remote_id);
		TEST_EQ(msg.tid, mads[i].tid);
		TEST_ASSERT(ibcm_mad_encode(&msg, mad));
		TEST_MEM(mad, mads[i].mad, IBCM_MAD_LEN);
	}
}

TEST(ibcm_kernel, req_has_the_values_of_rping)
{
	struct ibcm_path path;
	struct ibcm_msg req;
	struct ibcm_ip ip;

	TEST_ASSERT(ibcm_mad_decode(rping_req, &req));
	path = path_of(2, false, &req);
	TEST_EQ(req.service_id, 0x01060000 | 7174);
	TEST_EQ(req.ca_guid, 0x505400fffe000202);
	TEST_EQ(req.qpn, 0x11);
	TEST_EQ(req.psn, 0x569ec9);
	TEST_EQ(req.pkey, IBCM_PKEY);
	TEST_EQ(req.mtu, 5);
	TEST_EQ(req.responder_resources, 1);
	TEST_EQ(req.initiator_depth, 1);
	TEST_EQ(req.retry_count, 7);
	TEST_EQ(req.rnr_retry_count, 7);
	TEST_EQ(req.ack_timeout, 19);
	TEST_EQ(req.local_timeout, 20);
	TEST_EQ(req.remote_timeout, 20);
	TEST_EQ(req.max_cm_retries, 15);
	TEST_EQ(req.hop_limit, 64);
	TEST_EQ(req.flow_label, 0xfe359);
	TEST_EQ(req.local_lid, 0xffff);
	TEST_EQ(req.remote_lid, 0xffff);
	TEST_ASSERT(!req.is_subnet_local && !req.has_srq && !req.has_flow_control);
	TEST_MEM(req.local_gid, path.local_gid, sizeof(req.local_gid));
	TEST_MEM(req.remote_gid, path.remote_gid, sizeof(req.remote_gid));
	TEST_ASSERT(ibcm_ip_decode(req.data, req.data_len, &ip));
	TEST_EQ(ip.version, 4);
	TEST_EQ(ip.src_port, 0x824d);
	TEST_MEM(ip.src + 12, path.local_gid + 12, 4);
	TEST_MEM(ip.dst + 12, path.remote_gid + 12, 4);
}

TEST(ibcm_kernel, other_messages_have_the_values_of_their_programs)
{
	struct ibcm_msg msg;

	TEST_ASSERT(ibcm_mad_decode(rping_rep, &msg));
	TEST_EQ(msg.ca_guid, 0x505400fffe000201);
	TEST_EQ(msg.qpn, 0x11);
	TEST_EQ(msg.psn, 0xcee3d3);
	TEST_EQ(msg.ack_delay, 15);
	TEST_EQ(msg.rnr_retry_count, 7);
	TEST_ASSERT(ibcm_mad_decode(slow_rep, &msg));
	TEST_EQ(msg.responder_resources, 3);
	TEST_EQ(msg.initiator_depth, 2);
	TEST_EQ(msg.rnr_retry_count, 5);
	TEST_MEM(msg.data, "reply", 6);
	TEST_ASSERT(ibcm_mad_decode(slow_req, &msg));
	TEST_EQ(msg.traffic_class, 0x20);
	TEST_EQ(msg.retry_count, 6);
	TEST_MEM(msg.data + IBCM_IP_LEN, "hello", 6);
	TEST_ASSERT(ibcm_mad_decode(slow_mra, &msg));
	TEST_EQ(msg.subject, IBCM_OF_REQ);
	TEST_EQ(msg.service_timeout, 24);
	TEST_ASSERT(ibcm_mad_decode(rping_dreq, &msg));
	TEST_EQ(msg.qpn, 0x11);
	TEST_ASSERT(ibcm_mad_decode(rejected_rej, &msg));
	TEST_EQ(msg.reason, IBCM_REJ_CONSUMER);
	TEST_EQ(msg.subject, IBCM_OF_REQ);
	TEST_EQ(msg.ari_len, 0);
	TEST_MEM(msg.data, "no thanks", 10);
	TEST_ASSERT(ibcm_mad_decode(udaddy_req, &msg));
	TEST_EQ(msg.service_id, 0x01110000 | 7174);
	TEST_EQ(msg.pkey, IBCM_PKEY);
	TEST_ASSERT(ibcm_mad_decode(nvme_req, &msg));
	TEST_EQ(msg.service_id, 0x01060000 | 4420);
	TEST_EQ(msg.responder_resources, 128);
	TEST_EQ(msg.initiator_depth, 0);
	TEST_ASSERT(msg.has_flow_control);
}

TEST(ibcm_kernel, engine_is_the_active_side_of_rping)
{
	struct ibcm_qp_attr attr;
	struct ibcm_id *id = connect_as(rping_req);

	check_sent(rping_req, 0, 0);
	input(2, rping_rep);
	TEST_EVENT(REP);
	ibcm_qp_attr(id, &attr);
	TEST_EQ(attr.peer_qpn, 0x11);
	TEST_EQ(attr.peer_psn, 0xcee3d3);
	TEST_EQ(attr.responder_resources, 1);
	TEST_EQ(attr.initiator_depth, 1);
	TEST_EQ(attr.rnr_retry_count, 7);
	TEST_EQ(attr.ack_timeout, 19); /* and 15, the ACK delay */
	TEST_OK(ibcm_ready(id, NULL));
	check_sent(rping_rtu, 0, 0);
	TEST_OK(ibcm_disconnect(id, side.now, NULL));
	check_sent(rping_dreq, 0, 0);
	input(2, rping_drep);
	TEST_EVENT(DISCONNECTED);
	TEST_EQ(side.nb_sent, 3);
}

TEST(ibcm_kernel, engine_is_the_passive_side_of_rping)
{
	const struct ibcm_qp_conf qp = {.qpn = 0x11,
			.psn = 0xcee3d3,
			.responder_resources = 1,
			.initiator_depth = 1,
			.rnr_retry_count = 7};
	struct ibcm_id *id = request_as(rping_req, rping_rep, 0x01060000 | 7174);
	struct ibcm_qp_attr attr;

	TEST_EVENT(REQ);
	TEST_EQ(side.ip.src_port, 0x824d);
	TEST_EQ(side.event.data_len, 56);
	TEST_OK(ibcm_accept(id, side.now, &qp, NULL));
	check_sent(rping_rep, REP_DELAY, 1);
	ibcm_qp_attr(id, &attr);
	TEST_EQ(attr.peer_psn, 0x569ec9);
	TEST_EQ(attr.mtu, 5);
	TEST_EQ(attr.ack_timeout, 19);
	TEST_EQ(ibcm_next(side.cm), side.now + (UINT64_C(4096) << 20));
	input(1, rping_rtu);
	TEST_EVENT(ESTABLISHED);
	input(1, rping_dreq);
	TEST_EVENT(DISCONNECTED);
	check_sent(rping_drep, 0, 0);
}

TEST(ibcm_kernel, engine_waits_for_a_slow_server)
{
	struct ibcm_id *id = connect_as(slow_req);
	struct ibcm_qp_attr attr;

	check_sent(slow_req, 0, 0);
	side.now = ibcm_next(side.cm);
	ibcm_timeout(side.cm, side.now);
	check_sent(slow_req, 0, 0);
	input(2, slow_mra);
	TEST_EQ(ibcm_next(side.cm), side.now + (UINT64_C(4096) << 24));
	side.now += UINT64_C(5000000000);
	input(2, slow_rep);
	TEST_EVENT(REP);
	TEST_MEM(side.data, "reply", 6);
	ibcm_qp_attr(id, &attr);
	TEST_EQ(attr.initiator_depth, 3);
	TEST_EQ(attr.responder_resources, 2);
	TEST_EQ(attr.rnr_retry_count, 5);
	TEST_OK(ibcm_ready(id, NULL));
	TEST_EQ(ibcm_next(side.cm), IBCM_NEVER);
}

TEST(ibcm_kernel, engine_is_a_slow_server)
{
	const struct ibcm_qp_conf qp = {.qpn = 0x13,
			.psn = 0xa2f2fa,
			.responder_resources = 3,
			.initiator_depth = 2,
			.rnr_retry_count = 5};
	const struct ibcm_data data = {"reply", 5};
	struct ibcm_id *id = request_as(slow_req, slow_rep, 0x01060000 | 7200);

	TEST_EVENT(REQ);
	TEST_MEM(side.data, "hello", 6);
	input(1, slow_req);
	check_sent(slow_mra, 0, 0);
	TEST_OK(ibcm_accept(id, side.now, &qp, &data));
	check_sent(slow_rep, REP_DELAY, 1);
}

TEST(ibcm_kernel, rejections_are_those_of_the_kernel)
{
	const struct ibcm_data data = {"no thanks", 9};
	struct ibcm_id *id = connect_as(refused_req);

	input(2, refused_rej);
	TEST_EVENT(REJECTED);
	TEST_EQ(side.event.reason, IBCM_REJ_INVALID_SERVICE_ID);
	TEST_EQ(ibcm_state(id), IBCM_IDLE);
	tear_down();
	request_as(refused_req, refused_rej, 0x01060000 | 7200);
	check_sent(refused_rej, 0, 0);
	tear_down();
	connect_as(rejected_req);
	check_sent(rejected_req, 0, 0);
	input(2, rejected_rej);
	TEST_EVENT(REJECTED);
	TEST_EQ(side.event.reason, IBCM_REJ_CONSUMER);
	TEST_MEM(side.data, "no thanks", 10);
	tear_down();
	id = request_as(rejected_req, rejected_rej, 0x01060000 | 7200);
	TEST_OK(ibcm_reject(id, side.now, IBCM_REJ_CONSUMER, &data));
	check_sent(rejected_rej, 0, 0);
}

/* Host 2 resolves with the values of a SIDR_REQ. */
static void
resolve_as(const uint8_t *mad)
{
	struct ibcm_sidr_conf conf = {.cm_timeout = 20, .max_cm_retries = 15};
	struct ibcm_id *id;
	struct ibcm_msg req;
	struct ibcm_ip ip;

	be_host(2, mad);
	TEST_ASSERT(ibcm_mad_decode(mad, &req));
	TEST_ASSERT(ibcm_ip_decode(req.data, req.data_len, &ip));
	conf.path = path_of(2, false, &req);
	conf.service_id = req.service_id;
	conf.ip = &ip;
	TEST_OK(ibcm_resolve(side.cm, side.now, &conf, &id));
	check_sent(mad, 0, 0);
}

TEST(ibcm_kernel, engine_is_both_sides_of_udaddy)
{
	struct ibcm_id *id;

	resolve_as(udaddy_req);
	input(2, udaddy_rep);
	TEST_EVENT(SIDR_REP);
	TEST_EQ(side.msg.status, IBCM_SIDR_VALID);
	TEST_EQ(side.msg.qpn, 0x12);
	TEST_EQ(side.msg.qkey, 0x01234567);
	tear_down();
	resolve_as(udaddy_none_req);
	input(2, udaddy_none_rep);
	TEST_EVENT(SIDR_REP);
	TEST_EQ(side.msg.status, IBCM_SIDR_NO_SERVICE);
	tear_down();
	id = request_as(udaddy_req, udaddy_rep, 0x01110000 | 7174);
	TEST_EVENT(SIDR_REQ);
	TEST_EQ(side.ip.src_port, 0xe1da);
	TEST_OK(ibcm_answer(id, side.now, IBCM_SIDR_VALID, 0x12, 0x01234567, NULL));
	check_sent(udaddy_rep, 0, 0);
	tear_down();
	request_as(udaddy_none_req, udaddy_none_rep, 0x01110000 | 7200);
	check_sent(udaddy_none_rep, 0, 0);
}

TEST(ibcm_kernel, requests_of_ipv6_and_of_nvme_are_reported)
{
	static const uint8_t host_2[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};
	const struct ibcm_listen_conf conf = {
			.service_id = 0x01060000 | 7200, .family = IBCM_IP_V6, .backlog = 4};
	const struct ibcm_msg none = {.type = 0};
	const struct ibcm_path path = path_of(1, true, &none);
	struct ibcm_listener *listener;
	struct ibcm_qp_attr attr;
	struct ibcm_id *id = request_as(nvme_req, rping_rep, 0x01060000 | 4420);

	TEST_EVENT(REQ);
	ibcm_qp_attr(id, &attr);
	TEST_EQ(attr.initiator_depth, 128);
	TEST_EQ(attr.responder_resources, 0);
	side.random[1]++;
	TEST_OK(ibcm_listen(side.cm, &conf, &listener));
	ibcm_input(side.cm, side.now, &path, ipv6_req);
	TEST_EVENT(REQ);
	TEST_EQ(side.ip.version, 6);
	TEST_MEM(side.ip.src, host_2, sizeof(host_2));
	TEST_MEM(side.data, "hello", 6);
	tear_down();
	connect_as(ipv6_req);
	check_sent(ipv6_req, 0, 0);
}
