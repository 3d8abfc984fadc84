/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Messages of the communication manager in 256 bytes: IBTA volume 1, 12.6, and the header of annex
 * A11 in their private data. No state and no allocation. Any 256 bytes are safe to decode.
 *
 * Names of fields are as in the message: "local" is the sender.
 */

#ifndef IBCM_MAD_H
#define IBCM_MAD_H

#include <stdbool.h>
#include <stdint.h>

#define IBCM_MAD_LEN   256
#define IBCM_MAD_CLASS 0x07 /* management class, byte 1 of a MAD */
#define IBCM_HDR_LEN   24   /* the header of a MAD */
#define IBCM_MAX_DATA  224  /* largest private data, of RTU and DREP */
#define IBCM_MAX_ARI   72   /* additional reject information (ARI) */
#define IBCM_IP_LEN    36   /* the header of annex A11 */
#define IBCM_QPN_MASK  0xffffffu
#define IBCM_PSN_MASK  0xffffffu
#define IBCM_MAX_RETRY 15 /* max_cm_retries */
#define IBCM_MAX_TIME  31 /* exponent of a time: 4.096 us * 2^n */
#define IBCM_PKEY      0xffff
#define IBCM_ANY_LID   0xffff /* permissive LID */

/* Attribute IDs. */
enum ibcm_type {
	IBCM_REQ = 0x10,
	IBCM_MRA,
	IBCM_REJ,
	IBCM_REP,
	IBCM_RTU,
	IBCM_DREQ,
	IBCM_DREP,
	IBCM_SIDR_REQ,
	IBCM_SIDR_REP,
	IBCM_TYPE_END,
};

#define IBCM_NB_TYPES (IBCM_TYPE_END - IBCM_REQ)

/* The message that an MRA delays, or a REJ refuses. */
enum ibcm_subject {
	IBCM_OF_REQ,
	IBCM_OF_REP,
	IBCM_OF_OTHER,
};

/* Transport services of a REQ. */
enum ibcm_service {
	IBCM_RC,
	IBCM_UC,
	IBCM_RD,
	IBCM_EXTENDED,
};

/* Reasons of a REJ (IBTA table 109). */
enum ibcm_reason {
	IBCM_REJ_NO_QP = 1,
	IBCM_REJ_NO_EEC,
	IBCM_REJ_NO_RESOURCES,
	IBCM_REJ_TIMEOUT,
	IBCM_REJ_UNSUPPORTED,
	IBCM_REJ_INVALID_COMM_ID,
	IBCM_REJ_INVALID_COMM_INSTANCE,
	IBCM_REJ_INVALID_SERVICE_ID,
	IBCM_REJ_INVALID_TRANSPORT,
	IBCM_REJ_STALE_CONN,
	IBCM_REJ_INVALID_GID = 12,
	IBCM_REJ_INVALID_MTU = 26,
	IBCM_REJ_CONSUMER = 28,
};

#define IBCM_NB_REASONS 36 /* reasons in the table, and 0 */

/* Status of a SIDR_REP. */
enum ibcm_sidr_status {
	IBCM_SIDR_VALID,
	IBCM_SIDR_NO_SERVICE,
	IBCM_SIDR_REJECTED,
	IBCM_SIDR_NO_QP,
};

/* A message. Fields that its type does not have are 0. */
struct ibcm_msg {
	uint64_t tid;
	uint32_t type;      /* enum ibcm_type */
	uint32_t local_id;  /* comm ID of the sender; SIDR: the request ID */
	uint32_t remote_id; /* comm ID of the receiver */

	/* For REQ; partly also for REP and SIDR. */
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	uint32_t qpn; /* QP of the sender; DREQ: of the receiver */
	uint32_t psn; /* first packet that the sender of the message receives */
	uint16_t pkey;
	uint8_t responder_resources; /* READs and atomics the sender answers concurrently */
	uint8_t initiator_depth;     /* READs and atomics the sender has in flight */
	uint8_t service;             /* enum ibcm_service */
	uint8_t ext_service;
	uint8_t mtu;             /* 1 for 256 bytes to 5 for 4096 */
	uint8_t retry_count;     /* for the receiver's QP */
	uint8_t rnr_retry_count; /* for the receiver's QP */
	uint8_t ack_timeout;     /* exponent; ACK timeout of the receiver's QP */
	uint8_t ack_delay;       /* REP: exponent */
	uint8_t failover;        /* REP: alternate path; 0: accepted, 1: not supported */
	bool has_srq;
	bool has_flow_control; /* end-to-end flow control */
	uint8_t ece_vendor[3]; /* enhanced connection establishment (A19): the OUI */
	uint32_t ece_options;  /* in the attribute modifier */

	/* REQ: exponents of the times in which each side answers messages of the other. */
	uint8_t remote_timeout;
	uint8_t local_timeout;
	uint8_t max_cm_retries;

	/* REQ: the primary path. */
	uint16_t local_lid;
	uint16_t remote_lid;
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	uint32_t flow_label;
	uint8_t rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	bool is_subnet_local;

	uint8_t subject;         /* MRA and REJ: enum ibcm_subject */
	uint8_t service_timeout; /* MRA: exponent */
	uint8_t status;          /* SIDR_REP: enum ibcm_sidr_status */
	uint16_t reason;         /* REJ: enum ibcm_reason */
	uint8_t ari_len;         /* REJ: up to IBCM_MAX_ARI */
	uint8_t ari[IBCM_MAX_ARI];

	/*
	 * Private data. After decoding it points into the MAD, and its length is that of its type.
	 */
	const uint8_t *data;
	uint32_t data_len;
};

/* The header of annex A11, at the start of the private data of REQ and SIDR_REQ. */
struct ibcm_ip {
	uint8_t version; /* 4 or 6 */
	uint16_t src_port;
	uint8_t src[16]; /* an IPv4 address is in the last four bytes */
	uint8_t dst[16];
};

/* Bytes of private data of a type; 0: not a type. */
uint32_t ibcm_data_len(uint32_t type);

/* "REQ", "SIDR_REP"; "?" if it is not a type. */
const char *ibcm_type_name(uint32_t type);

/*
 * Decode a MAD. False: another class, version or method, or an attribute that is not in enum
 * ibcm_type, such as LAP and APR.
 */
bool ibcm_mad_decode(const uint8_t mad[IBCM_MAD_LEN], struct ibcm_msg *msg);

/*
 * Encode a message; fields are truncated to their widths. Shorter private data is padded with
 * zeros. False: not a type, or too much private data or ARI.
 */
bool ibcm_mad_encode(const struct ibcm_msg *msg, uint8_t mad[IBCM_MAD_LEN]);

/* Decode the header of annex A11. False: another version of the header or of IP, or too short. */
bool ibcm_ip_decode(const uint8_t *data, uint32_t len, struct ibcm_ip *ip);
void ibcm_ip_encode(const struct ibcm_ip *ip, uint8_t data[IBCM_IP_LEN]);

#endif /* IBCM_MAD_H */
