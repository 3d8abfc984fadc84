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

#include "../../base/rsoft.h"
#include "../codec/rsoft_grh.h"
#include "rwire_copy.h"
#include "../codec/rwire_icrc.h"
#include "rwire_owner.h"

#define RWIRE_RX_BURST    32
#define RWIRE_MAX_SHARED  (64 * 1024)
#define RWIRE_MAX_MEMBERS 64

/*
 * A packet. The RWIRE_HEADROOM bytes before its BTH are writable. In a received burst, headrooms
 * may overlap the preceding packet.
 */
struct rwire_frame {
	uint8_t *bth;
	uint8_t *data; /* received: start of a packet with the payload; headers are at bth */
	uint32_t len;  /* from the BTH to the ICRC */
	bool is_id_known;
	bool has_icrc; /* received: the ICRC must be checked */
	/* Received: if shared_len is not 0, the payload is in memory that a peer may change or
	 * unmap. */
	uint8_t *shared;
	uint32_t shared_len;
	bool is_grant_requested; /* the requester requests direct copies with this rkey */
	/*
	 * flow.dst is a multicast group. For sending: set for tx_put() only; hop is the address
	 * that was passed to tx_get().
	 */
	bool is_mcast;
	struct rwire_addr hop;
	struct rwire_flow flow;
	struct rsoft_grh grh; /* for sending: 0 after tx_get(), set by the sender */
};

struct rwire_port;

struct rwire_port_ops {
	/* Must be fork-safe: takes no lock of another object. */
	void (*close)(struct rwire_port *port);
	/* Whether there is a link, for a port without has_interface. */
	bool (*link_is_up)(const struct rwire_port *port);
	/*
	 * Join or leave a multicast group: 0, or -ENOMEM, -EIO; logged. Control path, under
	 * rx_lock.
	 */
	int (*mcast_join)(struct rwire_port *port, const struct rwire_addr *group);
	void (*mcast_leave)(struct rwire_port *port, const struct rwire_addr *group);
	/*
	 * Devices in a group, to each of which a packet must be sent: return their number, up to
	 * RWIRE_MAX_MEMBERS; or -1 if one packet to the group reaches all. Under tx_lock.
	 */
	int (*mcast_members)(struct rwire_port *port, const struct rwire_addr *group,
			struct rwire_addr members[RWIRE_MAX_MEMBERS]);
	uint32_t (*rx_burst)(struct rwire_port *port, struct rwire_frame *frames[], uint32_t n);
	/* Report that the frames of the last rx_burst() are received, before the next call. */
	void (*rx_release)(struct rwire_port *port);
	/* Prepare for a sleep until fd is readable; false if packets have already arrived. */
	bool (*rx_sleep)(struct rwire_port *port);
	/* Send the frames passed to tx_put(). */
	void (*tx_flush)(struct rwire_port *port);
	/* Housekeeping; called periodically while the port is idle. */
	void (*tx_idle)(struct rwire_port *port);
	/*
	 * Get the number of packets sent from tx_slot to an address, and how many of them its
	 * device has received according to its own report, both modulo 2^32. False: not known.
	 */
	bool (*tx_count)(const struct rwire_port *port, const struct rwire_addr *dst,
			uint32_t *sent, uint32_t *taken);
	/*
	 * Direct copy between the two processes, without packets; for ports with has_direct.
	 * tx_direct starts one, from tx_slot. rx_grant permits it to the sender of a received
	 * frame, from inside of rsoft_grace_enter().
	 */
	enum rwire_copy_result (*tx_direct)(struct rwire_port *port, const struct rwire_addr *dst,
			struct rwire_copy_link *direct);
	void (*rx_grant)(struct rwire_port *port, const struct rwire_frame *frame,
			struct rsoft_qp *qp, uint32_t rkey);
	/* Get a frame to fill, from tx_slot to an address; NULL: the port is full. */
	struct rwire_frame *(*tx_get)(struct rwire_port *port, const struct rwire_addr *dst);
	/*
	 * After tx_get() returned NULL: whether packets for that address which may be lost have
	 * already waited for `wait` cycles, and need not wait again. deadline: end of the wait of
	 * the first packet.
	 */
	bool (*tx_is_late)(struct rwire_port *port, uint64_t now, uint64_t wait, uint64_t deadline);
	/*
	 * Send the frame of the last tx_get(), at the latest with the next flush. Its ICRC is set
	 * if the port needs it.
	 */
	void (*tx_put)(struct rwire_port *port, struct rwire_frame *frame);
	/*
	 * Let the receiver of the frame of the last tx_get() copy the payload, len bytes at data,
	 * up to RWIRE_MAX_SHARED. False: not possible. For ports with has_share.
	 */
	bool (*tx_share)(struct rwire_port *port, const uint8_t *data, uint32_t len);
};

/* Each counter is written by the holder of its direction's lock; atomic. */
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
	const struct rwire_addr *srcs; /* addresses by GID slot; NULL: only addr */
	uint32_t max_mtu;              /* largest payload of a packet: 256 to 4096 */
	bool has_icrc;                 /* packets may be lost or altered, and need an ICRC */
	bool has_syscall;              /* receiving needs a system call */
	bool has_interface;            /* the address belongs to a network interface of the host */
	bool has_direct;               /* receivers permit direct copies */
	bool has_share;                /* receivers may copy payloads from the sender's memory */
	bool has_gids;                 /* supports rwire_port_udp_gid() */
	int fd;                        /* readable when packets wait, after rx_sleep(); -1: none */
	uint8_t tx_slot;               /* rwire_port_set_tx_slot(); by the sender */
	uint32_t nb_parts;             /* rwire_port_links_open(): number of ports, else 0 */
	struct rwire_port *parts[RSOFT_MAX_PORTS];
	uint64_t now; /* of the innermost port: rwire::now; 0: not known; atomic */
	struct rwire_port_stats stats;
};

/*
 * Open a UDP socket at the address. Return 0, -ENODEV (not an address of this host), -EEXIST (in
 * use), -EPERM, -ENOMEM or -EIO; logged.
 */
int rwire_port_udp_open(const struct rwire_addr *addr, struct rwire_port **port);
/*
 * Add a further address at a slot from 1 to RSOFT_GID_SLOTS - 1, or remove it (NULL). Errors as
 * above. Under rx_lock and tx_lock.
 */
int rwire_port_udp_gid(struct rwire_port *port, uint32_t slot, const struct rwire_addr *addr);

/*
 * Open the shared memory port of the devices with the name. has_icrc: faults are injected;
 * is_sharing: payloads may stay in the memory of their sender (rwire_region.h). Return 0, -EINVAL
 * (not a name), -EEXIST (the address is in use), -EPERM or -ENOMEM; logged.
 */
int rwire_port_shm_open(const struct rwire_addr *addr, const char *name, bool has_icrc,
		bool is_sharing, struct rwire_port **port);

/*
 * Open the shared memory port of all devices of this host with ip=host, at a free address.
 * is_direct: memory of peers may be accessed directly; is_mapping: it may also be mapped. Errors as
 * of rwire_port_shm_open().
 */
int rwire_port_shm_open_host(bool has_icrc, bool is_direct, bool is_mapping,
		struct rwire_owners *owners, struct rwire_port **port);

/*
 * Open an ethdev port, given by its number as text, with static neighbours (rwire_neighs_init()).
 * Its MTU is raised for packets of path_mtu if possible, unless path_mtu is 0. Return 0, -EINVAL
 * (not a number, or not neighbours), -ENODEV (no such port), -EEXIST (started already), -EPERM,
 * -ENOMEM or -EIO; logged.
 */
int rwire_port_eth_open(const struct rwire_addr *addr, const char *text, const char *neighs,
		uint32_t path_mtu, struct rwire_port **port);

/*
 * Make one port of nb ports, at most RSOFT_MAX_PORTS, all of one kind: each is a port of the
 * device, with its own address and link. They are closed with it. Return 0, or -ENOMEM.
 */
int rwire_port_links_open(struct rwire_port *const parts[], uint32_t nb, struct rwire_port **port);

/* The port that has the link of a port of the device. */
static inline struct rwire_port *
rwire_port_part(struct rwire_port *port, uint32_t port_num)
{
	return port->nb_parts != 0 ? port->parts[port_num - 1] : port;
}

/* Set the GID slot that tx_count, tx_direct and tx_get send from. */
static inline void
rwire_port_set_tx_slot(struct rwire_port *port, uint8_t slot)
{
	/* The receiver reads the same cache line. */
	if (unlikely(port->tx_slot != slot))
		port->tx_slot = slot;
}

/* Get a frame to send from a GID slot. */
static inline struct rwire_frame *
rwire_port_tx_get(struct rwire_port *port, uint8_t slot, const struct rwire_addr *dst)
{
	rwire_port_set_tx_slot(port, slot);
	return port->ops->tx_get(port, dst);
}

/* For a port whose network has multicast. */
static inline int
rwire_port_mcast_members(struct rwire_port *port, const struct rwire_addr *group,
		struct rwire_addr members[RWIRE_MAX_MEMBERS])
{
	RTE_SET_USED(port);
	RTE_SET_USED(group);
	RTE_SET_USED(members);
	return -1;
}

/* For a port whose senders learn nothing. */
static inline void
rwire_port_rx_release(struct rwire_port *port)
{
	RTE_SET_USED(port);
}

/* For a port whose descriptor is readable while packets wait. */
static inline bool
rwire_port_rx_sleep(struct rwire_port *port)
{
	RTE_SET_USED(port);
	return true;
}

/* For a port that has nothing to release. */
static inline void
rwire_port_tx_idle(struct rwire_port *port)
{
	RTE_SET_USED(port);
}

/* For a port whose receivers report nothing. */
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

/* For a port that always has a link. */
static inline bool
rwire_port_link_is_up(const struct rwire_port *port)
{
	RTE_SET_USED(port);
	return true;
}

/* For a port with one queue for all addresses. */
static inline bool
rwire_port_tx_is_late(struct rwire_port *port, uint64_t now, uint64_t wait, uint64_t deadline)
{
	RTE_SET_USED(port);
	RTE_SET_USED(wait);
	return (int64_t)(deadline - now) <= 0;
}

/* For ports without has_direct. */
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

/* For a port without has_share. */
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

/* Configuration of a port with faults. fail is called for faults of the device, PORT_ERR and
 * PORT_ACTIVE, under rx_lock. */
struct rwire_fault_conf {
	const char *faults;        /* items of fault=; or empty */
	struct rsoft_chaos *chaos; /* with rules about the port, or NULL */
	rwire_fail_t fail;
	void (*shut)(struct rwire *wire, uint32_t port_num, bool is_down);
	void (*change_gid)(struct rwire *wire, bool is_removed);
	struct rwire *wire;
};

/*
 * Wrap a port, which is closed with the new one. Return 0, or an error that is logged: -EINVAL (the
 * faults are not valid, see doc/wire.md), -ENOMEM; for pcap also -EPERM, -ENODEV (no such
 * directory), -EIO.
 */
int rwire_port_fault_open(const struct rwire_fault_conf *conf, struct rwire_port **io);
/* With faults ("" for none): drop all packets of a port of the device, in both directions; or fail
 * the device at the next burst. */
void rwire_port_fault_shut(struct rwire_port *port, uint32_t port_num, bool is_shut);
/* End current effects of rules on a port of the device: PORT_ERR if is_down, else FREEZE. Under
 * rx_lock. */
void rwire_port_fault_end(struct rwire_port *port, uint32_t port_num, bool is_down);
void rwire_port_fault_fail(struct rwire_port *port);
int rwire_port_pcap_open(const char *path, struct rwire_port **io);

#endif /* RWIRE_PORT_H */
