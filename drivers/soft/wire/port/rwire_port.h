/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Ports send and receive packets as bytes with an address.
 *
 * Inside: ports: UDP, shared memory, ethdev; capture and faults; direct copies; neighbours.
 * Callers: wire, by struct rwire_port_ops; env, which has no ethdev port.
 * Not known here: QPs, queues, requests and the protocol in the packets.
 *
 * One thread at a time sends (rwire::tx_lock) and one receives (rwire::rx_lock), concurrently. A
 * port owns its frames: one to send is filled between tx_get() and tx_put(); received ones are
 * valid until the next rx_burst().
 */

#ifndef RWIRE_PORT_H
#define RWIRE_PORT_H

#include <rte_common.h>

#include "../codec/rsoft_grh.h"
#include "rwire_copy.h"
#include "../codec/rwire_icrc.h"
#include "rwire_owner.h"

#define RWIRE_RX_BURST    32
#define RWIRE_MAX_SHARED  (64 * 1024)
#define RWIRE_MAX_MEMBERS 64

/*
 * A packet; RWIRE_HEADROOM bytes that precede its BTH are writable. In a received burst, headrooms
 * may overlap the preceding packet.
 */
struct rwire_frame {
	uint8_t *bth;
	uint8_t *data; /* received: where the payload is, from the BTH; bth has all headers */
	uint32_t len;  /* from the BTH to the ICRC */
	bool is_id_known;
	bool has_icrc; /* received: it must match */
	/* Received: shared_len bytes are the payload instead, which a peer may change or unmap. */
	uint8_t *shared;
	uint32_t shared_len;
	bool is_grant_requested; /* by the requester: direct copies with this rkey */
	/*
	 * flow.dst is a multicast group. To send: set by the sender for tx_put() alone, with the
	 * address that it called tx_get() with.
	 */
	bool is_mcast;
	struct rwire_addr hop;
	struct rwire_flow flow;
	struct rsoft_grh grh; /* to send: 0 after tx_get(), set by the sender */
};

struct rwire_port;

struct rwire_port_ops {
	/* Must be fork-safe: takes no lock of another object. */
	void (*close)(struct rwire_port *port);
	/* Whether it has a link, of a port without has_interface. */
	bool (*link_is_up)(const struct rwire_port *port);
	/*
	 * Receive the packets of a multicast group, and no longer: 0, or -ENOMEM, -EIO; logged.
	 * Control path, under rx_lock.
	 */
	int (*mcast_join)(struct rwire_port *port, const struct rwire_addr *group);
	void (*mcast_leave)(struct rwire_port *port, const struct rwire_addr *group);
	/*
	 * The devices in a group, to which a packet is sent one by one: their number, up to
	 * RWIRE_MAX_MEMBERS. -1: a packet to the group reaches them. Under tx_lock.
	 */
	int (*mcast_members)(struct rwire_port *port, const struct rwire_addr *group,
			struct rwire_addr members[RWIRE_MAX_MEMBERS]);
	uint32_t (*rx_burst)(struct rwire_port *port, struct rwire_frame *frames[], uint32_t n);
	/* Before a thread sleeps until fd is readable. False: packets are there already. */
	bool (*rx_sleep)(struct rwire_port *port);
	/* Send the frames of tx_put(). */
	void (*tx_flush)(struct rwire_port *port);
	/* Housekeeping; called periodically while the port is idle. */
	void (*tx_idle)(struct rwire_port *port);
	/*
	 * How many packets were sent to an address, and how many of these its device has received,
	 * both modulo 2^32. False: the port does not know. The second is what the peer reports.
	 */
	bool (*tx_count)(const struct rwire_port *port, const struct rwire_addr *dst,
			uint32_t *sent, uint32_t *taken);
	/*
	 * Direct copy between the two processes, without packets; with has_direct. tx_direct: begin
	 * one. rx_grant: permit it to the sender of a received frame, from inside of
	 * rsoft_grace_enter().
	 */
	enum rwire_copy_result (*tx_direct)(struct rwire_port *port, const struct rwire_addr *dst,
			struct rwire_copy_link *direct);
	void (*rx_grant)(struct rwire_port *port, const struct rwire_frame *frame,
			struct rsoft_qp *qp, uint32_t rkey);
	/* A frame to fill, for an address; NULL: the port is full. */
	struct rwire_frame *(*tx_get)(struct rwire_port *port, const struct rwire_addr *dst);
	/*
	 * After tx_get() returned NULL: whether packets for that address, which may be lost, have
	 * waited for that many cycles already, so that they need not wait again. deadline: the end
	 * of the wait of the first of them.
	 */
	bool (*tx_is_late)(struct rwire_port *port, uint64_t now, uint64_t wait, uint64_t deadline);
	/*
	 * Send the frame of the last tx_get(), at the next flush at the latest. Its ICRC is set if
	 * the port needs it.
	 */
	void (*tx_put)(struct rwire_port *port, struct rwire_frame *frame);
	/*
	 * The receiver of the frame of the last tx_get() copies its payload, len bytes at data, up
	 * to RWIRE_MAX_SHARED. False: it can't. With has_share.
	 */
	bool (*tx_share)(struct rwire_port *port, const uint8_t *data, uint32_t len);
};

/* Written by the holder of the lock of that direction; atomic. */
struct rwire_port_stats {
	uint64_t tx_packets;
	uint64_t tx_bytes;
	uint64_t tx_dropped; /* the host refused to send */
	uint64_t rx_packets;
	uint64_t rx_bytes;
};

/* First member of each port. */
struct rwire_port {
	const struct rwire_port_ops *ops;
	struct rwire_addr addr;
	const struct rwire_addr *srcs; /* by index of the GID; NULL: addr is the only one */
	uint32_t max_mtu;              /* payload of a packet: 256 to 4096 */
	bool has_icrc;                 /* packets may be lost or altered */
	bool has_syscall;              /* to receive is one */
	bool has_interface;            /* of the host, which has the address */
	bool has_direct;               /* receivers permit direct copies */
	bool has_share;                /* receivers may copy payloads from the sender's memory */
	bool has_gids;                 /* rwire_port_udp_gid() */
	int fd;                        /* readable when packets wait, after rx_sleep(); -1: none */
	uint64_t now;                  /* rwire::now, of the innermost port; 0: not known; atomic */
	struct rwire_port_stats stats;
};

/*
 * A UDP socket at the address. 0, or: -ENODEV (not of this host), -EEXIST (in use), -EPERM,
 * -ENOMEM, -EIO; logged.
 */
int rwire_port_udp_open(const struct rwire_addr *addr, struct rwire_port **port);
/*
 * Have a further address at an index from 1 to RSOFT_MAX_GIDS - 1; NULL: none any more. The same
 * errors. Under rx_lock and tx_lock.
 */
int rwire_port_udp_gid(struct rwire_port *port, uint32_t index, const struct rwire_addr *addr);

/*
 * Shared memory of the devices with the name. has_icrc: faults are injected; is_sharing: payloads
 * may stay in the memory of their sender (rwire_region.h). 0, or: -EINVAL (not a name), -EEXIST
 * (the address is in use), -EPERM, -ENOMEM; logged.
 */
int rwire_port_shm_open(const struct rwire_addr *addr, const char *name, bool has_icrc,
		bool is_sharing, struct rwire_port **port);

/*
 * Shared memory of all devices of this host with ip=host, at an address that is free. is_direct:
 * peers copy memory themselves. As rwire_port_shm_open().
 */
int rwire_port_shm_open_host(bool has_icrc, bool is_direct, struct rwire_owners *owners,
		struct rwire_port **port);

/*
 * An ethdev port, by its number as text, with static neighbours; see rwire_neighs_init(). Its MTU
 * is raised to that of packets of path_mtu, if it can be; 0: it is not. 0, or:
 * -EINVAL (not a number, not neighbours), -ENODEV (no such port), -EEXIST (it is started), -EPERM,
 * -ENOMEM, -EIO; logged.
 */
int rwire_port_eth_open(const struct rwire_addr *addr, const char *text, const char *neighs,
		uint32_t path_mtu, struct rwire_port **port);

/* A port whose network has multicast. */
static inline int
rwire_port_mcast_members(struct rwire_port *port, const struct rwire_addr *group,
		struct rwire_addr members[RWIRE_MAX_MEMBERS])
{
	RTE_SET_USED(port);
	RTE_SET_USED(group);
	RTE_SET_USED(members);
	return -1;
}

/* A port with a descriptor that is readable while packets wait. */
static inline bool
rwire_port_rx_sleep(struct rwire_port *port)
{
	RTE_SET_USED(port);
	return true;
}

/* A port that has nothing to release. */
static inline void
rwire_port_tx_idle(struct rwire_port *port)
{
	RTE_SET_USED(port);
}

/* A port whose receivers report nothing. */
static inline bool
rwire_port_tx_count(const struct rwire_port *port, const struct rwire_addr *dst, uint32_t *sent,
		uint32_t *taken)
{
	RTE_SET_USED(port);
	RTE_SET_USED(dst);
	RTE_SET_USED(sent);
	RTE_SET_USED(taken);
	return false;
}

/* A port that always has a link. */
static inline bool
rwire_port_link_is_up(const struct rwire_port *port)
{
	RTE_SET_USED(port);
	return true;
}

/* A port whose addresses have one queue. */
static inline bool
rwire_port_tx_is_late(struct rwire_port *port, uint64_t now, uint64_t wait, uint64_t deadline)
{
	RTE_SET_USED(port);
	RTE_SET_USED(wait);
	return (int64_t)(deadline - now) <= 0;
}

/* Ports without has_direct. */
static inline enum rwire_copy_result
rwire_port_tx_direct(struct rwire_port *port, const struct rwire_addr *dst,
		struct rwire_copy_link *direct)
{
	RTE_SET_USED(port);
	RTE_SET_USED(dst);
	RTE_SET_USED(direct);
	return RWIRE_COPY_NO;
}

static inline void
rwire_port_rx_grant(struct rwire_port *port, const struct rwire_frame *frame, struct rsoft_qp *qp,
		uint32_t rkey)
{
	RTE_SET_USED(port);
	RTE_SET_USED(frame);
	RTE_SET_USED(qp);
	RTE_SET_USED(rkey);
}

/* A port without has_share. */
static inline bool
rwire_port_tx_share(struct rwire_port *port, const uint8_t *data, uint32_t len)
{
	RTE_SET_USED(port);
	RTE_SET_USED(data);
	RTE_SET_USED(len);
	return false;
}

struct rwire;
typedef void (*rwire_fail_t)(struct rwire *wire, unsigned int lcore);

/* Its faults, and calls for those of the device, PORT_ERR and PORT_ACTIVE, under rx_lock. */
struct rwire_fault_conf {
	const char *faults;        /* the items of fault=; or empty */
	struct rsoft_chaos *chaos; /* with rules about the port, or NULL */
	rwire_fail_t fail;
	void (*shut)(struct rwire *wire, bool is_down);
	void (*change_gid)(struct rwire *wire, bool is_removed);
	struct rwire *wire;
};

/*
 * Wrap a port, which is closed with the new one. 0, or an error that is logged: -EINVAL: faults are
 * not those of doc/wire.md; -ENOMEM; of pcap, also -EPERM, -ENODEV (no such directory), -EIO.
 */
int rwire_port_fault_open(const struct rwire_fault_conf *conf, struct rwire_port **io);
/* Of a port with faults, "" for none: lose all packets, sent and received; fail at the next burst. */
void rwire_port_fault_shut(struct rwire_port *port, bool is_shut);
/* End what rules do now: PORT_ERR with is_down, else FREEZE. Under rx_lock. */
void rwire_port_fault_end(struct rwire_port *port, bool is_down);
void rwire_port_fault_fail(struct rwire_port *port);
int rwire_port_pcap_open(const char *path, struct rwire_port **io);

#endif /* RWIRE_PORT_H */
