/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The codec: fields are where IBTA tables 106 to 120 have them, and any bytes can be decoded. */

#include <string.h>

#include "../test.h"
#include "../wire/xorshift.h"
#include "ibcm_mad.h"

static void
setup(void)
{
}

TEST_SUITE(ibcm_mad, setup, setup);

/* A value with all bits of its width differs from any other in the place that it has. */
static void
check_bytes(const struct ibcm_msg *msg, uint32_t byte, const uint8_t *want, uint32_t n)
{
	uint8_t mad[IBCM_MAD_LEN];
	struct ibcm_msg back;

	TEST_ASSERT(ibcm_mad_encode(msg, mad));
	TEST_MEM(mad + IBCM_HDR_LEN + byte, want, n);
	TEST_ASSERT(ibcm_mad_decode(mad, &back));
	back.data_len = 0;
	back.data = NULL;
	TEST_MEM(&back, msg, sizeof(back));
}

#define AT(kind, member, value, byte, ...)                                                         \
	do {                                                                                       \
		static const uint8_t want_[] = {__VA_ARGS__};                                      \
		struct ibcm_msg msg_;                                                              \
		memset(&msg_, 0, sizeof(msg_));                                                    \
		msg_.type = IBCM_##kind;                                                           \
		msg_.member = (value);                                                             \
		check_bytes(&msg_, byte, want_, sizeof(want_));                                    \
	} while (0)

TEST(ibcm_mad, req_is_that_of_table_106)
{
	AT(REQ, local_id, 0x01020304, 0, 1, 2, 3, 4);
	AT(REQ, ece_vendor[0], 0xa5, 4, 0, 0xa5, 0, 0);
	AT(REQ, ece_vendor[2], 0xa5, 4, 0, 0, 0, 0xa5);
	AT(REQ, service_id, UINT64_C(0x0106000000001234), 8, 1, 6, 0, 0, 0, 0, 0x12, 0x34);
	AT(REQ, ca_guid, UINT64_C(0x0102030405060708), 16, 1, 2, 3, 4, 5, 6, 7, 8);
	AT(REQ, qkey, 0x80010000, 28, 0x80, 1, 0, 0);
	AT(REQ, qpn, 0xabcdef, 32, 0xab, 0xcd, 0xef, 0);
	AT(REQ, responder_resources, 0xa5, 35, 0xa5);
	AT(REQ, initiator_depth, 0xa5, 39, 0xa5);
	AT(REQ, remote_timeout, 20, 43, 20 << 3);
	AT(REQ, service, IBCM_UC, 43, 1 << 1);
	AT(REQ, has_flow_control, true, 43, 1);
	AT(REQ, psn, 0xabcdef, 44, 0xab, 0xcd, 0xef, 0);
	AT(REQ, local_timeout, 20, 47, 20 << 3);
	AT(REQ, retry_count, 7, 47, 7);
	AT(REQ, pkey, 0x8001, 48, 0x80, 1);
	AT(REQ, mtu, 5, 50, 5 << 4);
	AT(REQ, rnr_retry_count, 7, 50, 7);
	AT(REQ, max_cm_retries, 15, 51, 0xf0);
	AT(REQ, has_srq, true, 51, 8);
	AT(REQ, ext_service, 1, 51, 1);
	AT(REQ, local_lid, 0xfffe, 52, 0xff, 0xfe, 0, 0);
	AT(REQ, remote_lid, 0xfffe, 52, 0, 0, 0xff, 0xfe);
	AT(REQ, local_gid[15], 0xa5, 70, 0, 0xa5, 0);
	AT(REQ, remote_gid[0], 0xa5, 71, 0, 0xa5, 0);
	AT(REQ, flow_label, 0xabcde, 88, 0xab, 0xcd, 0xe0, 0);
	AT(REQ, rate, 0x3f, 91, 0x3f);
	AT(REQ, traffic_class, 0xa5, 92, 0xa5);
	AT(REQ, hop_limit, 64, 93, 64);
	AT(REQ, sl, 15, 94, 0xf0);
	AT(REQ, is_subnet_local, true, 94, 8);
	AT(REQ, ack_timeout, 19, 95, 19 << 3);
}

TEST(ibcm_mad, rep_is_that_of_table_110)
{
	AT(REP, local_id, 0x01020304, 0, 1, 2, 3, 4, 0);
	AT(REP, remote_id, 0x01020304, 3, 0, 1, 2, 3, 4);
	AT(REP, qkey, 0x80010000, 8, 0x80, 1, 0, 0);
	AT(REP, qpn, 0xabcdef, 12, 0xab, 0xcd, 0xef, 0);
	AT(REP, ece_vendor[0], 0xa5, 14, 0, 0xa5, 0);
	AT(REP, ece_vendor[1], 0xa5, 18, 0, 0xa5, 0);
	AT(REP, ece_vendor[2], 0xa5, 22, 0, 0xa5, 0);
	AT(REP, psn, 0xabcdef, 20, 0xab, 0xcd, 0xef, 0);
	AT(REP, responder_resources, 16, 24, 16, 0);
	AT(REP, initiator_depth, 16, 24, 0, 16);
	AT(REP, ack_delay, 15, 26, 15 << 3);
	AT(REP, failover, 1, 26, 1 << 1);
	AT(REP, has_flow_control, true, 26, 1);
	AT(REP, rnr_retry_count, 7, 27, 7 << 5);
	AT(REP, has_srq, true, 27, 1 << 4);
	AT(REP, ca_guid, UINT64_C(0x0102030405060708), 28, 1, 2, 3, 4, 5, 6, 7, 8);
}

TEST(ibcm_mad, other_messages_are_those_of_the_tables)
{
	AT(MRA, remote_id, 0x01020304, 3, 0, 1, 2, 3, 4);
	AT(MRA, subject, IBCM_OF_OTHER, 8, 0x80, 0);
	AT(MRA, service_timeout, 24, 8, 0, 24 << 3);
	AT(REJ, subject, IBCM_OF_REP, 8, 0x40, 0, 0, 0);
	AT(REJ, reason, IBCM_REJ_CONSUMER, 8, 0, 0, 0, 28);
	AT(REJ, ari_len, IBCM_MAX_ARI, 9, IBCM_MAX_ARI << 1);
	AT(RTU, remote_id, 0x01020304, 3, 0, 1, 2, 3, 4, 0);
	AT(DREQ, qpn, 0xabcdef, 8, 0xab, 0xcd, 0xef, 0);
	AT(DREP, remote_id, 0x01020304, 3, 0, 1, 2, 3, 4, 0);
	AT(SIDR_REQ, local_id, 0x01020304, 0, 1, 2, 3, 4, 0);
	AT(SIDR_REQ, pkey, 0x8001, 4, 0x80, 1);
	AT(SIDR_REQ, service_id, 0x1234, 8, 0, 0, 0, 0, 0, 0, 0x12, 0x34);
	AT(SIDR_REP, local_id, 0x01020304, 0, 1, 2, 3, 4, 0);
	AT(SIDR_REP, status, IBCM_SIDR_NO_QP, 4, 3);
	AT(SIDR_REP, qpn, 0xabcdef, 8, 0xab, 0xcd, 0xef, 0);
	AT(SIDR_REP, service_id, 0x1234, 12, 0, 0, 0, 0, 0, 0, 0x12, 0x34);
	AT(SIDR_REP, qkey, 0x01234567, 20, 1, 0x23, 0x45, 0x67);
}

TEST(ibcm_mad, header_is_of_class_7)
{
	static const uint8_t want[IBCM_HDR_LEN] = {
			1, 7, 2, 3, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, IBCM_RTU};
	const struct ibcm_msg rtu = {.type = IBCM_RTU, .tid = UINT64_C(0x0102030405060708)};
	uint8_t mad[IBCM_MAD_LEN];
	struct ibcm_msg back;
	uint32_t i, bad[] = {0, 1, 2, 3, 16, 17};

	TEST_ASSERT(ibcm_mad_encode(&rtu, mad));
	TEST_MEM(mad, want, sizeof(want));
	for (i = 0; i < RTE_DIM(bad); i++) {
		mad[bad[i]] ^= 0x20;
		TEST_ASSERT(!ibcm_mad_decode(mad, &back));
		mad[bad[i]] ^= 0x20;
	}
	for (i = 0; i < 0x30; i++) {
		mad[17] = (uint8_t)i;
		TEST_EQ(ibcm_mad_decode(mad, &back), i >= IBCM_REQ && i < IBCM_TYPE_END);
	}
}

TEST(ibcm_mad, private_data_has_the_length_of_its_type)
{
	static const uint8_t sizes[IBCM_NB_TYPES] = {92, 222, 148, 196, 224, 220, 224, 216, 136};
	static const uint8_t offsets[IBCM_NB_TYPES] = {140, 10, 84, 36, 8, 12, 8, 16, 96};
	uint8_t data[IBCM_MAX_DATA + 1], mad[IBCM_MAD_LEN];
	struct ibcm_msg msg = {.data = data}, back;
	uint32_t i;

	memset(data, 0xa5, sizeof(data));
	for (i = 0; i < IBCM_NB_TYPES; i++) {
		msg.type = IBCM_REQ + i;
		TEST_EQ(ibcm_data_len(msg.type), sizes[i]);
		msg.data_len = sizes[i] + 1u;
		TEST_ASSERT(!ibcm_mad_encode(&msg, mad));
		msg.data_len = sizes[i];
		TEST_ASSERT(ibcm_mad_encode(&msg, mad));
		TEST_ASSERT(ibcm_mad_decode(mad, &back));
		TEST_ASSERT(back.data == mad + IBCM_HDR_LEN + offsets[i]);
		TEST_EQ(back.data_len, sizes[i]);
		TEST_MEM(back.data, data, sizes[i]);
	}
	TEST_EQ(ibcm_data_len(IBCM_TYPE_END), 0);
	msg.type = IBCM_REP;
	msg.data_len = 0;
	msg.ari_len = 1;
	TEST_ASSERT(!ibcm_mad_encode(&msg, mad));
}

/* A message decoded of any bytes is the same after it was encoded and decoded again. */
TEST(ibcm_mad, random_bytes_are_decoded_and_encoded)
{
	uint64_t state = xorshift_state(1);
	uint8_t mad[IBCM_MAD_LEN], other[IBCM_MAD_LEN];
	struct ibcm_msg msg, back;
	uint32_t i, k;

	for (i = 0; i < 20000; i++) {
		for (k = 0; k < sizeof(mad); k++)
			mad[k] = (uint8_t)xorshift32(&state);
		memcpy(mad, (const uint8_t[]){1, 7, 2, 3}, 4);
		mad[16] = 0;
		mad[17] = (uint8_t)(IBCM_REQ + i % IBCM_NB_TYPES);
		TEST_ASSERT(ibcm_mad_decode(mad, &msg));
		TEST_ASSERT(msg.ari_len <= IBCM_MAX_ARI);
		TEST_ASSERT(ibcm_mad_encode(&msg, other));
		TEST_ASSERT(ibcm_mad_decode(other, &back));
		TEST_MEM(back.data, msg.data, msg.data_len);
		back.data = msg.data;
		TEST_MEM(&back, &msg, sizeof(msg));
	}
}

TEST(ibcm_mad, addresses_are_those_of_annex_a11)
{
	static const uint8_t v4[IBCM_IP_LEN] = {
			0, 0x40, 0x12, 0x34, [16] = 192, 0, 2, 1, [32] = 192, 0, 2, 2};
	uint8_t data[IBCM_IP_LEN];
	struct ibcm_ip ip;

	TEST_ASSERT(ibcm_ip_decode(v4, sizeof(v4), &ip));
	TEST_EQ(ip.version, 4);
	TEST_EQ(ip.src_port, 0x1234);
	TEST_MEM(ip.src + 12, ((const uint8_t[]){192, 0, 2, 1}), 4);
	TEST_MEM(ip.dst + 12, ((const uint8_t[]){192, 0, 2, 2}), 4);
	ibcm_ip_encode(&ip, data);
	TEST_MEM(data, v4, sizeof(v4));
	TEST_ASSERT(!ibcm_ip_decode(v4, sizeof(v4) - 1, &ip));
	memcpy(data, v4, sizeof(v4));
	data[5] = 0xa5; /* not of the IPv4 address */
	TEST_ASSERT(ibcm_ip_decode(data, sizeof(data), &ip));
	TEST_EQ(ip.src[1], 0);
	data[1] = 0x60;
	TEST_ASSERT(ibcm_ip_decode(data, sizeof(data), &ip));
	TEST_EQ(ip.src[1], 0xa5);
	data[1] = 0x50;
	TEST_ASSERT(!ibcm_ip_decode(data, sizeof(data), &ip));
	data[1] = 0x40;
	data[0] = 1;
	TEST_ASSERT(!ibcm_ip_decode(data, sizeof(data), &ip));
}

TEST(ibcm_mad, types_have_names)
{
	TEST_ASSERT(strcmp(ibcm_type_name(IBCM_REQ), "REQ") == 0);
	TEST_ASSERT(strcmp(ibcm_type_name(IBCM_SIDR_REP), "SIDR_REP") == 0);
	TEST_ASSERT(strcmp(ibcm_type_name(IBCM_TYPE_END), "?") == 0);
}
