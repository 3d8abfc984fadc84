/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The codec. A table lists each field of each message once, with its bits; both encoding and
 * decoding use it, so they can't differ.
 */

#include <stddef.h>
#include <string.h>

#include "ibcm_mad.h"

#define BASE_VERSION  1
#define CLASS_VERSION 2
#define METHOD_SEND   3

struct field {
	uint16_t member; /* offset in struct ibcm_msg */
	uint8_t size;    /* bytes of the member: 1, 2, 4 or 8; 16: a GID */
	uint8_t byte;    /* first byte, after the header of the MAD */
	uint8_t bit;     /* first bit of that byte; 0 is the most significant */
	uint8_t width;   /* width in bits; 0: a GID */
};

#define FIELD(name, byte_no, bit_no, nb_bits)                                                      \
	{                                                                                          \
		.member = offsetof(struct ibcm_msg, name),                                         \
		.size = sizeof(((struct ibcm_msg *)NULL)->name), .byte = (byte_no),                \
		.bit = (bit_no), .width = (nb_bits)                                                \
	}
#define COMM_IDS FIELD(local_id, 0, 0, 32), FIELD(remote_id, 4, 0, 32)
#define ECE_VENDOR(high, middle, low)                                                              \
	FIELD(ece_vendor[0], high, 0, 8), FIELD(ece_vendor[1], middle, 0, 8),                      \
			FIELD(ece_vendor[2], low, 0, 8)

/* IBTA table 106; the alternate path is 0. */
static const struct field req_fields[] = {
		FIELD(local_id, 0, 0, 32),
		ECE_VENDOR(5, 6, 7),
		FIELD(service_id, 8, 0, 64),
		FIELD(ca_guid, 16, 0, 64),
		FIELD(qkey, 28, 0, 32),
		FIELD(qpn, 32, 0, 24),
		FIELD(responder_resources, 35, 0, 8),
		FIELD(initiator_depth, 39, 0, 8),
		FIELD(remote_timeout, 43, 0, 5),
		FIELD(service, 43, 5, 2),
		FIELD(has_flow_control, 43, 7, 1),
		FIELD(psn, 44, 0, 24),
		FIELD(local_timeout, 47, 0, 5),
		FIELD(retry_count, 47, 5, 3),
		FIELD(pkey, 48, 0, 16),
		FIELD(mtu, 50, 0, 4),
		FIELD(rnr_retry_count, 50, 5, 3),
		FIELD(max_cm_retries, 51, 0, 4),
		FIELD(has_srq, 51, 4, 1),
		FIELD(ext_service, 51, 5, 3),
		FIELD(local_lid, 52, 0, 16),
		FIELD(remote_lid, 54, 0, 16),
		FIELD(local_gid, 56, 0, 0),
		FIELD(remote_gid, 72, 0, 0),
		FIELD(flow_label, 88, 0, 20),
		FIELD(rate, 91, 2, 6),
		FIELD(traffic_class, 92, 0, 8),
		FIELD(hop_limit, 93, 0, 8),
		FIELD(sl, 94, 0, 4),
		FIELD(is_subnet_local, 94, 4, 1),
		FIELD(ack_timeout, 95, 0, 5),
};

static const struct field mra_fields[] = {
		COMM_IDS,
		FIELD(subject, 8, 0, 2),
		FIELD(service_timeout, 9, 0, 5),
};

static const struct field rej_fields[] = {
		COMM_IDS,
		FIELD(subject, 8, 0, 2),
		FIELD(ari_len, 9, 0, 7),
		FIELD(reason, 10, 0, 16),
};

static const struct field rep_fields[] = {
		COMM_IDS,
		FIELD(qkey, 8, 0, 32),
		FIELD(qpn, 12, 0, 24),
		ECE_VENDOR(15, 19, 23),
		FIELD(psn, 20, 0, 24),
		FIELD(responder_resources, 24, 0, 8),
		FIELD(initiator_depth, 25, 0, 8),
		FIELD(ack_delay, 26, 0, 5),
		FIELD(failover, 26, 5, 2),
		FIELD(has_flow_control, 26, 7, 1),
		FIELD(rnr_retry_count, 27, 0, 3),
		FIELD(has_srq, 27, 3, 1),
		FIELD(ca_guid, 28, 0, 64),
};

static const struct field rtu_fields[] = {COMM_IDS}; /* also for DREP */

static const struct field dreq_fields[] = {
		COMM_IDS,
		FIELD(qpn, 8, 0, 24),
};

static const struct field sidr_req_fields[] = {
		FIELD(local_id, 0, 0, 32),
		FIELD(pkey, 4, 0, 16),
		FIELD(service_id, 8, 0, 64),
};

static const struct field sidr_rep_fields[] = {
		FIELD(local_id, 0, 0, 32),
		FIELD(status, 4, 0, 8),
		FIELD(qpn, 8, 0, 24),
		FIELD(service_id, 12, 0, 64),
		FIELD(qkey, 20, 0, 32),
};

struct layout {
	const char *name;
	const struct field *fields;
	uint8_t nb_fields;
	uint8_t ari;  /* offset of the additional reject information; 0: none */
	uint8_t data; /* offset of the private data, which extends to the end */
	uint8_t data_len;
};

#define FIELDS(table) .fields = (table), .nb_fields = sizeof(table) / sizeof(*(table))

static const struct layout layouts[IBCM_NB_TYPES] = {
		{.name = "REQ", FIELDS(req_fields), .data = 140, .data_len = 92},
		{.name = "MRA", FIELDS(mra_fields), .data = 10, .data_len = 222},
		{.name = "REJ", FIELDS(rej_fields), .ari = 12, .data = 84, .data_len = 148},
		{.name = "REP", FIELDS(rep_fields), .data = 36, .data_len = 196},
		{.name = "RTU", FIELDS(rtu_fields), .data = 8, .data_len = 224},
		{.name = "DREQ", FIELDS(dreq_fields), .data = 12, .data_len = 220},
		{.name = "DREP", FIELDS(rtu_fields), .data = 8, .data_len = 224},
		{.name = "SIDR_REQ", FIELDS(sidr_req_fields), .data = 16, .data_len = 216},
		{.name = "SIDR_REP", FIELDS(sidr_rep_fields), .data = 96, .data_len = 136},
};

static const struct layout *
layout_of(uint32_t type)
{
	return type - IBCM_REQ < IBCM_NB_TYPES ? &layouts[type - IBCM_REQ] : NULL;
}

/* Get the bits [bit, bit + width) of big-endian bytes; they span up to 8 bytes. */
static uint64_t
get_bits(const uint8_t *p, uint32_t bit, uint32_t width)
{
	uint32_t i, nb_bytes = (bit + width + 7) / 8;
	uint64_t value = 0;

	for (i = 0; i < nb_bytes; i++)
		value = value << 8 | p[i];
	value >>= nb_bytes * 8 - bit - width;
	return width == 64 ? value : value & ((UINT64_C(1) << width) - 1);
}

/* Set the bits [bit, bit + width) of big-endian bytes, which must be 0. */
static void
put_bits(uint8_t *p, uint32_t bit, uint32_t width, uint64_t value)
{
	uint32_t i, nb_bytes = (bit + width + 7) / 8;

	if (width != 64)
		value &= (UINT64_C(1) << width) - 1;
	value <<= nb_bytes * 8 - bit - width;
	for (i = nb_bytes; i-- != 0; value >>= 8)
		p[i] |= (uint8_t)value;
}

static uint64_t
member_get(const struct ibcm_msg *msg, const struct field *field)
{
	const uint8_t *at = (const uint8_t *)msg + field->member;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (field->size) {
	case sizeof(v16):
		memcpy(&v16, at, sizeof(v16));
		return v16;
	case sizeof(v32):
		memcpy(&v32, at, sizeof(v32));
		return v32;
	case sizeof(v64):
		memcpy(&v64, at, sizeof(v64));
		return v64;
	default:
		return *at;
	}
}

static void
member_set(struct ibcm_msg *msg, const struct field *field, uint64_t value)
{
	uint8_t *at = (uint8_t *)msg + field->member;
	uint16_t v16 = (uint16_t)value;
	uint32_t v32 = (uint32_t)value;

	switch (field->size) {
	case sizeof(v16):
		memcpy(at, &v16, sizeof(v16));
		break;
	case sizeof(v32):
		memcpy(at, &v32, sizeof(v32));
		break;
	case sizeof(value):
		memcpy(at, &value, sizeof(value));
		break;
	default:
		*at = (uint8_t)value;
		break;
	}
}

uint32_t
ibcm_data_len(uint32_t type)
{
	const struct layout *layout = layout_of(type);

	return layout != NULL ? layout->data_len : 0;
}

const char *
ibcm_type_name(uint32_t type)
{
	const struct layout *layout = layout_of(type);

	return layout != NULL ? layout->name : "?";
}

static bool
has_ece(uint32_t type)
{
	return type == IBCM_REQ || type == IBCM_REP;
}

bool
ibcm_mad_decode(const uint8_t mad[IBCM_MAD_LEN], struct ibcm_msg *msg)
{
	const uint8_t *body = mad + IBCM_HDR_LEN;
	uint32_t type = (uint32_t)get_bits(mad + 16, 0, 16);
	const struct layout *layout = layout_of(type);
	uint32_t i;

	if (layout == NULL || mad[0] != BASE_VERSION || mad[1] != IBCM_MAD_CLASS ||
			mad[2] != CLASS_VERSION || mad[3] != METHOD_SEND)
		return false;
	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->tid = get_bits(mad + 8, 0, 64);
	if (has_ece(type))
		msg->ece_options = (uint32_t)get_bits(mad + 20, 0, 32);
	for (i = 0; i < layout->nb_fields; i++) {
		const struct field *field = &layout->fields[i];

		if (field->width == 0)
			memcpy((uint8_t *)msg + field->member, body + field->byte, field->size);
		else
			member_set(msg, field,
					get_bits(body + field->byte, field->bit, field->width));
	}
	if (msg->ari_len > IBCM_MAX_ARI)
		msg->ari_len = IBCM_MAX_ARI;
	memcpy(msg->ari, body + layout->ari, msg->ari_len);
	msg->data = body + layout->data;
	msg->data_len = layout->data_len;
	return true;
}

bool
ibcm_mad_encode(const struct ibcm_msg *msg, uint8_t mad[IBCM_MAD_LEN])
{
	const struct layout *layout = layout_of(msg->type);
	uint8_t *body = mad + IBCM_HDR_LEN;
	uint32_t i;

	if (layout == NULL || msg->data_len > layout->data_len ||
			msg->ari_len > (layout->ari != 0 ? IBCM_MAX_ARI : 0))
		return false;
	memset(mad, 0, IBCM_MAD_LEN);
	mad[0] = BASE_VERSION;
	mad[1] = IBCM_MAD_CLASS;
	mad[2] = CLASS_VERSION;
	mad[3] = METHOD_SEND;
	put_bits(mad + 8, 0, 64, msg->tid);
	put_bits(mad + 16, 0, 16, msg->type);
	if (has_ece(msg->type))
		put_bits(mad + 20, 0, 32, msg->ece_options);
	for (i = 0; i < layout->nb_fields; i++) {
		const struct field *field = &layout->fields[i];

		if (field->width == 0)
			memcpy(body + field->byte, (const uint8_t *)msg + field->member,
					field->size);
		else
			put_bits(body + field->byte, field->bit, field->width,
					member_get(msg, field));
	}
	memcpy(body + layout->ari, msg->ari, msg->ari_len);
	if (msg->data_len != 0)
		memcpy(body + layout->data, msg->data, msg->data_len);
	return true;
}

bool
ibcm_ip_decode(const uint8_t *data, uint32_t len, struct ibcm_ip *ip)
{
	if (len < IBCM_IP_LEN || data[0] != 0 || (data[1] >> 4 != 4 && data[1] >> 4 != 6))
		return false;
	ip->version = data[1] >> 4;
	ip->src_port = (uint16_t)get_bits(data + 2, 0, 16);
	memcpy(ip->src, data + 4, sizeof(ip->src));
	memcpy(ip->dst, data + 20, sizeof(ip->dst));
	if (ip->version == 4) { /* the kernel does not set the other bytes */
		memset(ip->src, 0, 12);
		memset(ip->dst, 0, 12);
	}
	return true;
}

void
ibcm_ip_encode(const struct ibcm_ip *ip, uint8_t data[IBCM_IP_LEN])
{
	memset(data, 0, IBCM_IP_LEN);
	data[1] = (uint8_t)(ip->version << 4);
	put_bits(data + 2, 0, 16, ip->src_port);
	memcpy(data + 4, ip->src, sizeof(ip->src));
	memcpy(data + 20, ip->dst, sizeof(ip->dst));
}
