/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A peer of rdma_cm of a kernel: an engine whose packets of QP 1 a UDP socket sends and receives.
 * Its other QPs do not exist; connections are established, and then disconnected. See
 * test/guest/ibcm.sh.
 *
 * usage: dpdk-test-ibcm-peer LOCAL PEER accept|hold|reject|connect|resolve PORT COUNT
 * LOCAL and PEER are IPv4 addresses. Prints each event, and ends after COUNT connections.
 */

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include <rte_common.h>

#include "ibcm.h"

#define UDP_PORT   4791
#define BTH_LEN    12
#define HDR_LEN    20 /* BTH and DETH */
#define PACKET_LEN (HDR_LEN + IBCM_MAD_LEN + 4)
#define IP_UDP_LEN 28
#define QKEY       0x80010000u /* of QP 1 */
#define UDP_QKEY   0x01234567u /* of rdma_cm's datagrams */
#define PS_TCP     (UINT64_C(0x0106) << 16)
#define PS_UDP     (UINT64_C(0x0111) << 16)

static struct {
	int fd;
	struct sockaddr_in local, peer;
	struct ibcm *cm;
	const char *mode;
	uint64_t service;
	uint32_t nb_left; /* connections to end */
	uint32_t next_qpn;
	uint32_t psn;
} host;

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t
on_random(void *arg)
{
	uint64_t value = 0;

	RTE_SET_USED(arg);
	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		abort();
	return value;
}

static void
put32(uint8_t *p, uint32_t value)
{
	value = htonl(value);
	memcpy(p, &value, sizeof(value));
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return ntohl(value);
}

static uint32_t
crc32_add(uint32_t crc, const uint8_t *p, size_t n)
{
	int bit;

	while (n-- != 0) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
	}
	return crc;
}

/* IBTA annex A17: what routers change counts as ones. The socket sends ID 0, and "don't fragment". */
static uint32_t
icrc(const struct sockaddr_in *src, const struct sockaddr_in *dst, const uint8_t *packet)
{
	uint8_t head[8 + IP_UDP_LEN + BTH_LEN];
	uint8_t *ip = head + 8, *udp = ip + 20, *bth = udp + 8;
	uint32_t crc;

	memset(head, 0xff, sizeof(head));
	put32(ip, 0x45ff0000 | (IP_UDP_LEN + PACKET_LEN));
	put32(ip + 4, 0x4000);
	put32(ip + 8, 0xff11ffff);
	memcpy(ip + 12, &src->sin_addr, 4);
	memcpy(ip + 16, &dst->sin_addr, 4);
	memcpy(udp, &src->sin_port, 2);
	memcpy(udp + 2, &dst->sin_port, 2);
	put32(udp + 4, (8 + PACKET_LEN) << 16 | 0xffff);
	memcpy(bth, packet, BTH_LEN);
	bth[4] = 0xff;
	crc = crc32_add(UINT32_MAX, head, sizeof(head));
	return ~crc32_add(crc, packet + BTH_LEN, PACKET_LEN - BTH_LEN - 4);
}

static void
on_send(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	uint8_t packet[PACKET_LEN];
	uint32_t crc, i;

	RTE_SET_USED(arg);
	RTE_SET_USED(path);
	put32(packet, 0x6400ffff); /* UD SEND only, P_Key 0xffff */
	put32(packet + 4, 1);
	put32(packet + 8, host.psn++ & IBCM_PSN_MASK);
	put32(packet + 12, QKEY);
	put32(packet + 16, 1);
	memcpy(packet + HDR_LEN, mad, IBCM_MAD_LEN);
	crc = icrc(&host.local, &host.peer, packet);
	for (i = 0; i < 4; i++)
		packet[HDR_LEN + IBCM_MAD_LEN + i] = (uint8_t)(crc >> (8 * i));
	if (sendto(host.fd, packet, sizeof(packet), 0, (struct sockaddr *)&host.peer,
			    sizeof(host.peer)) != sizeof(packet))
		perror("sendto");
}

static struct ibcm_path
path_of(void)
{
	struct ibcm_path path = {.hop_limit = 64};

	path.local_gid[10] = path.local_gid[11] = 0xff;
	path.remote_gid[10] = path.remote_gid[11] = 0xff;
	memcpy(path.local_gid + 12, &host.local.sin_addr, 4);
	memcpy(path.remote_gid + 12, &host.peer.sin_addr, 4);
	return path;
}

static struct ibcm_qp_conf
next_qp(void)
{
	return (struct ibcm_qp_conf){.qpn = host.next_qpn++, .psn = 1, .rnr_retry_count = 7};
}

static void
on_request(struct ibcm_id *id)
{
	const struct ibcm_data why = {"no", 2};
	const struct ibcm_qp_conf qp = next_qp();

	if (strcmp(host.mode, "accept") == 0)
		(void)ibcm_accept(id, now_ns(), &qp, NULL);
	else if (strcmp(host.mode, "reject") == 0)
		(void)ibcm_reject(id, now_ns(), IBCM_REJ_CONSUMER, &why);
}

/* Time-wait has ended, or there was none. */
static void
on_end(struct ibcm_id *id)
{
	host.nb_left--;
	ibcm_release(id, now_ns());
}

static void
on_event(void *arg, const struct ibcm_event *event)
{
	static const char *const names[] = {"REQ", "REP", "ESTABLISHED", "REJECTED", "UNREACHABLE",
			"DISCONNECTED", "TIMEWAIT_EXIT", "SIDR_REQ", "SIDR_REP"};

	RTE_SET_USED(arg);
	printf("%s", names[event->type]);
	if (event->type == IBCM_EVENT_REJECTED)
		printf(" %u", event->reason);
	if (event->type == IBCM_EVENT_SIDR_REP)
		printf(" %u", event->msg->status);
	printf("\n");
	switch (event->type) {
	case IBCM_EVENT_REQ:
		on_request(event->id);
		break;
	case IBCM_EVENT_REP:
		(void)ibcm_ready(event->id, NULL);
		(void)ibcm_disconnect(event->id, now_ns(), NULL);
		break;
	case IBCM_EVENT_ESTABLISHED:
		(void)ibcm_disconnect(event->id, now_ns(), NULL);
		break;
	case IBCM_EVENT_SIDR_REQ:
		(void)ibcm_answer(event->id, now_ns(), IBCM_SIDR_VALID, host.next_qpn++, UDP_QKEY,
				NULL);
		break;
	default:
		if (ibcm_state(event->id) == IBCM_IDLE)
			on_end(event->id);
		break;
	}
}

static void
receive(void)
{
	const struct ibcm_path path = path_of();
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint8_t packet[PACKET_LEN];
	ssize_t n = recvfrom(host.fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &len);

	if (n == PACKET_LEN && from.sin_addr.s_addr == host.peer.sin_addr.s_addr &&
			packet[0] == 0x64 && get32(packet + 4) == 1 && get32(packet + 12) == QKEY)
		ibcm_input(host.cm, now_ns(), &path, packet + HDR_LEN);
}

static int
request(void)
{
	struct ibcm_ip ip = {.version = 4, .src_port = 1};
	struct ibcm_id *id;

	memcpy(ip.src + 12, &host.local.sin_addr, 4);
	memcpy(ip.dst + 12, &host.peer.sin_addr, 4);
	if (strcmp(host.mode, "connect") == 0) {
		const struct ibcm_req_conf conf = {.path = path_of(),
				.service_id = host.service,
				.qp = next_qp(),
				.mtu = 3,
				.retry_count = 7,
				.ack_timeout = 14,
				.cm_timeout = 20,
				.max_cm_retries = 15,
				.ip = &ip};

		return ibcm_connect(host.cm, now_ns(), &conf, &id);
	} else {
		const struct ibcm_sidr_conf conf = {.path = path_of(),
				.service_id = host.service,
				.cm_timeout = 20,
				.max_cm_retries = 15,
				.ip = &ip};

		return ibcm_resolve(host.cm, now_ns(), &conf, &id);
	}
}

static int
start(const char *port)
{
	const struct ibcm_conf conf = {.ca_guid = 0x0200000000000001,
			.max_ids = 64,
			.max_half_open = 64,
			.send = on_send,
			.event = on_event,
			.random = on_random};
	struct ibcm_listen_conf listens[2] = {{.family = IBCM_IP_ANY, .backlog = 64},
			{.family = IBCM_IP_ANY, .backlog = 64}};
	struct ibcm_listener *listener;
	uint32_t i, number = (uint32_t)strtoul(port, NULL, 0);
	int ret = ibcm_create(&conf, &host.cm);

	if (ret != 0)
		return ret;
	host.service = (strcmp(host.mode, "resolve") == 0 ? PS_UDP : PS_TCP) | number;
	host.next_qpn = 0x1000;
	listens[0].service_id = PS_TCP | number;
	listens[1].service_id = PS_UDP | number;
	if (strcmp(host.mode, "connect") != 0 && strcmp(host.mode, "resolve") != 0) {
		for (i = 0; i < 2 && ret == 0; i++)
			ret = ibcm_listen(host.cm, &listens[i], &listener);
		return ret;
	}
	for (i = host.nb_left; i != 0 && ret == 0; i--)
		ret = request();
	return ret;
}

static int
open_socket(const char *local, const char *peer)
{
	const int value = IP_PMTUDISC_DO;

	host.local.sin_family = host.peer.sin_family = AF_INET;
	host.local.sin_port = host.peer.sin_port = htons(UDP_PORT);
	if (inet_pton(AF_INET, local, &host.local.sin_addr) != 1 ||
			inet_pton(AF_INET, peer, &host.peer.sin_addr) != 1)
		return -1;
	host.fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (host.fd < 0 || setsockopt(host.fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, sizeof(value)))
		return -1;
	return bind(host.fd, (struct sockaddr *)&host.local, sizeof(host.local));
}

static void
wait_for_packet(void)
{
	struct pollfd fd = {.fd = host.fd, .events = POLLIN};
	uint64_t next = ibcm_next(host.cm), now = now_ns();
	int timeout = -1;

	if (next != IBCM_NEVER)
		timeout = next > now ? (int)((next - now) / 1000000 + 1) : 0;
	if (poll(&fd, 1, timeout) == 1)
		receive();
	ibcm_timeout(host.cm, now_ns());
}

int
main(int argc, char **argv)
{
	if (argc != 6 || open_socket(argv[1], argv[2]) != 0) {
		fprintf(stderr, "usage: LOCAL PEER accept|hold|reject|connect|resolve PORT COUNT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	host.mode = argv[3];
	host.nb_left = (uint32_t)strtoul(argv[5], NULL, 0);
	if (start(argv[4]) != 0)
		return 1;
	printf("ready\n");
	while (host.nb_left != 0)
		wait_for_packet();
	printf("malformed %" PRIu64 ", unknown %" PRIu64 ", wrong state %" PRIu64 "\n",
			ibcm_stats(host.cm)->malformed, ibcm_stats(host.cm)->unknown_id,
			ibcm_stats(host.cm)->wrong_state);
	ibcm_destroy(host.cm);
	return 0;
}
