/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A port that wraps another port and writes sent and received packets to a file, in libpcap format
 * with raw IP packets (LINKTYPE_RAW). Fields that a socket does not report, such as the IPv4 id,
 * are 0 in the file.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_spinlock.h>
#include <rte_udp.h>

#include "../../base/rsoft.h"
#include "rwire_port.h"

#define PCAP_MAGIC        UINT32_C(0xa1b2c3d4) /* microseconds */
#define PCAP_LINKTYPE_RAW 101
#define PCAP_SNAPLEN      65535

struct pcap_file_header {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t zone;
	uint32_t sigfigs;
	uint32_t snaplen;
	uint32_t linktype;
};

struct pcap_packet_header {
	uint32_t seconds;
	uint32_t microseconds;
	uint32_t len;
	uint32_t original_len;
};

struct pcap_port {
	struct rwire_port port;
	struct rwire_port *inner;
	rte_spinlock_t lock; /* protects the file: both directions write */
	FILE *file;
};

static uint32_t
pcap_put_ip(const struct rwire_frame *frame, uint8_t *ip)
{
	uint16_t udp_len = (uint16_t)(sizeof(struct rte_udp_hdr) + frame->len);
	rte_be32_t vtc_flow = rsoft_grh_vtc_flow(&frame->grh);

	if (rwire_addr_is_ipv4(&frame->flow.dst)) {
		struct rte_ipv4_hdr four = {.version_ihl = RTE_IPV4_VHL_DEF,
				.type_of_service = frame->grh.traffic_class,
				.total_length = rte_cpu_to_be_16(
						(uint16_t)(sizeof(four) + udp_len)),
				.packet_id = rte_cpu_to_be_16(frame->flow.ip_id),
				.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
				.time_to_live = 64,
				.next_proto_id = IPPROTO_UDP};

		memcpy(&four.src_addr, frame->flow.src.gid + 12, 4);
		memcpy(&four.dst_addr, frame->flow.dst.gid + 12, 4);
		four.hdr_checksum = rte_ipv4_cksum(&four);
		memcpy(ip, &four, sizeof(four));
		return sizeof(four);
	}
	memset(ip, 0, 40);
	memcpy(ip, &vtc_flow, sizeof(vtc_flow));
	ip[4] = (uint8_t)(udp_len >> 8);
	ip[5] = (uint8_t)udp_len;
	ip[6] = IPPROTO_UDP;
	ip[7] = 64;
	memcpy(ip + 8, frame->flow.src.gid, 16);
	memcpy(ip + 24, frame->flow.dst.gid, 16);
	return 40;
}

static void
pcap_write(struct pcap_port *port, const struct rwire_frame *frame, const uint8_t *data)
{
	uint8_t head[40 + sizeof(struct rte_udp_hdr)];
	struct rte_udp_hdr udp = {.src_port = rte_cpu_to_be_16(frame->flow.src_port),
			.dst_port = rte_cpu_to_be_16(RWIRE_UDP_PORT),
			.dgram_len = rte_cpu_to_be_16((uint16_t)(sizeof(udp) + frame->len))};
	uint32_t len = pcap_put_ip(frame, head);
	struct pcap_packet_header packet;
	struct timespec now;

	memcpy(head + len, &udp, sizeof(udp));
	len += (uint32_t)sizeof(udp);
	clock_gettime(CLOCK_REALTIME, &now);
	packet.seconds = (uint32_t)now.tv_sec;
	packet.microseconds = (uint32_t)(now.tv_nsec / 1000);
	packet.len = packet.original_len = len + frame->len;
	rte_spinlock_lock(&port->lock);
	/* An error, such as a full disk, must not stop traffic. */
	if (fwrite(&packet, sizeof(packet), 1, port->file) == 1 &&
			fwrite(head, len, 1, port->file) == 1)
		(void)!fwrite(data, frame->len, 1, port->file);
	rte_spinlock_unlock(&port->lock);
}

static void
pcap_close(struct rwire_port *base)
{
	struct pcap_port *port = (struct pcap_port *)base;

	port->inner->ops->close(port->inner);
	fclose(port->file);
	free(port);
}

static uint32_t
pcap_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct pcap_port *port = (struct pcap_port *)base;
	uint32_t i, nb = port->inner->ops->rx_burst(port->inner, frames, n);

	for (i = 0; i < nb; i++)
		pcap_write(port, frames[i], frames[i]->data);
	return nb;
}

static void
pcap_tx_flush(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct pcap_port *)base)->inner;

	inner->ops->tx_flush(inner);
}

static void
pcap_rx_release(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct pcap_port *)base)->inner;

	inner->ops->rx_release(inner);
}

static bool
pcap_rx_sleep(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct pcap_port *)base)->inner;

	return inner->ops->rx_sleep(inner);
}

static bool
pcap_tx_count(const struct rwire_port *base, const struct rwire_addr *dst, uint32_t *sent,
		uint32_t *taken)
{
	struct rwire_port *inner = ((const struct pcap_port *)base)->inner;

	rwire_port_set_tx_slot(inner, base->tx_slot);
	return inner->ops->tx_count(inner, dst, sent, taken);
}

static struct rwire_frame *
pcap_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct rwire_port *inner = ((struct pcap_port *)base)->inner;

	return rwire_port_tx_get(inner, base->tx_slot, dst);
}

static void
pcap_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct pcap_port *port = (struct pcap_port *)base;

	pcap_write(port, frame, frame->bth);
	port->inner->ops->tx_put(port->inner, frame);
}

static void
pcap_tx_idle(struct rwire_port *base)
{
	struct rwire_port *inner = ((struct pcap_port *)base)->inner;

	inner->ops->tx_idle(inner);
}

static bool
pcap_tx_is_late(struct rwire_port *base, uint64_t now, uint64_t wait, uint64_t deadline)
{
	struct rwire_port *inner = ((struct pcap_port *)base)->inner;

	return inner->ops->tx_is_late(inner, now, wait, deadline);
}

static const struct rwire_port_ops pcap_ops = {
		.close = pcap_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = NULL, /* the innermost port's are called */
		.mcast_leave = NULL,
		.mcast_members = NULL,
		.rx_burst = pcap_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = pcap_rx_release,
		.rx_sleep = pcap_rx_sleep,
		.tx_count = pcap_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = pcap_tx_flush,
		.tx_get = pcap_tx_get,
		.tx_idle = pcap_tx_idle,
		.tx_is_late = pcap_tx_is_late,
		.tx_put = pcap_tx_put,
		.tx_share = rwire_port_tx_share,
};

int
rwire_port_pcap_open(const char *path, struct rwire_port **io)
{
	const struct pcap_file_header header = {.magic = PCAP_MAGIC,
			.major = 2,
			.minor = 4,
			.snaplen = PCAP_SNAPLEN,
			.linktype = PCAP_LINKTYPE_RAW};
	struct pcap_port *port = calloc(1, sizeof(*port));
	int rc;

	if (port == NULL)
		return -ENOMEM;
	port->file = fopen(path, "we");
	if (port->file == NULL || fwrite(&header, sizeof(header), 1, port->file) != 1) {
		rc = errno == EACCES ? -EPERM : errno == ENOENT ? -ENODEV : -EIO;
		RSOFT_LOG(ERR, "pcap=%s: %s", path, strerror(errno));
		if (port->file != NULL)
			fclose(port->file);
		free(port);
		return rc;
	}
	rte_spinlock_init(&port->lock);
	port->inner = *io;
	port->port.ops = &pcap_ops;
	port->port.addr = port->inner->addr;
	port->port.max_mtu = port->inner->max_mtu;
	port->port.has_icrc = port->inner->has_icrc;
	port->port.fd = port->inner->fd;
	*io = &port->port;
	return 0;
}
