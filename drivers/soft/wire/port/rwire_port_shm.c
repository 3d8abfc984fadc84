/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over shared memory, between the devices of one user on this host that have the same
 * name, or between all devices with ip=host.
 *
 * A channel (rwire_shm.h) is opened when the first packet for an address is sent. The receiver
 * reads payloads in place and copies headers, so a peer that changes a packet during its reception
 * only changes its own data. With share=1 payloads may stay in the memory of the sender
 * (rwire_region.h).
 *
 * Invariant: struct shm_out and all of the send side are protected by rwire::tx_lock, struct shm_in
 * and all of the receive side by rwire::rx_lock.
 *
 * The end of a peer is detected by the end of its connection, within SHM_CHECK_MS. Packets for an
 * address without a device are dropped, as on a network; the timers of the engine handle that. A
 * process of another user that takes over its address gets no packets, and its own are refused
 * (rwire_owner.h).
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "../../base/rsoft.h"
#include "rwire_port.h"
#include "rwire_region.h"
#include "rwire_shm_in.h"
#include "rwire_shm_out.h"

#define SHM_CHECK_MS 1
#define SHM_NEWS_MS  10
#define SHM_COPY     RWIRE_MAX_HDR

/* A multicast group that the device has joined. */
struct shm_group {
	struct rwire_addr addr;
	int fd; /* socket whose name contains the group */
};

/* Members of a group, as last read. */
struct shm_news {
	struct rwire_addr group;
	uint64_t read_at; /* time of reading, TSC */
	uint64_t pause;   /* time until the next reading */
	uint32_t nb;
	struct rwire_addr members[RWIRE_MAX_MEMBERS];
};

struct shm_port {
	struct rwire_port port;
	char name[SHM_MAX_NAME + 1];
	bool is_direct; /* peers of this user may copy directly; rwire_copy.h */
	struct shm_group *groups;
	uint32_t nb_groups;
	struct shm_news news; /* used by the send side */

	struct shm_outs outs;
	struct shm_out *to; /* channel of the frame of tx_get(); NULL: drop it */
	struct rwire_slot *slot;
	struct rwire_shared shared; /* its shared payload, unless len is 0 */
	struct rwire_frame tx;
	uint8_t tx_data[RWIRE_HEADROOM + RWIRE_MAX_PKT]; /* packet with an ICRC, or to drop */

	struct shm_ins ins;
	uint32_t first_in; /* channel to receive from first */
	struct rwire_frame rx[RWIRE_RX_BURST];
	struct shm_in *rx_in[RWIRE_RX_BURST]; /* channels of these frames */
	uint8_t rx_data[RWIRE_RX_BURST][RWIRE_HEADROOM + RWIRE_MAX_PKT];
};

static_assert(SHM_COPY <= RWIRE_MAX_PKT, "a slot has the bytes of the longest headers");

/* TSC as of the last attempt to receive. */
static uint64_t
shm_now(const struct rwire_port *base)
{
	uint64_t now = __atomic_load_n(&base->now, __ATOMIC_RELAXED);

	return now != 0 ? now : rte_rdtsc();
}

/* Receive side. */

/* The payload of a packet is in the memory of its sender. */
static void
shm_fill_shared(struct shm_port *port, const struct shm_in *in, const struct rwire_slot *slot,
		struct rwire_frame *frame)
{
	struct rwire_shared shared;

	memcpy(&shared, slot->data + RWIRE_SHARED_AT, sizeof(shared));
	rte_compiler_barrier();
	frame->shared = rwire_regions_find(&in->regions, &shared);
	frame->shared_len = shared.len;
	if (frame->shared == NULL)
		frame->len = 0; /* malformed */
	else
		RSOFT_COUNT(port->port.stats.rx_bytes, shared.len);
}

/* Get the GRH fields that follow a datagram; their values are not trusted. */
static void
shm_fill_grh(const struct rwire_slot *slot, uint32_t len, uint16_t kind, struct rwire_frame *frame)
{
	struct rwire_addr group;

	if (len > RWIRE_SLOT_DATA - RWIRE_SLOT_GRH)
		return;
	memcpy(&frame->grh, slot->data + len, sizeof(frame->grh));
	frame->grh.gid_slot = 0;
	if ((kind & RWIRE_SLOT_HAS_GROUP) == 0)
		return;
	memcpy(&group, slot->data + len + sizeof(frame->grh), sizeof(group));
	if (!rwire_addr_is_mcast(&group))
		return;
	frame->is_mcast = true;
	frame->flow.dst = group;
}

/* Describe a packet in a slot. Everything that is checked later is copied now. */
static void
shm_fill(struct shm_port *port, const struct shm_in *in, struct rwire_slot *slot, uint32_t len,
		struct rwire_frame *frame)
{
	uint16_t kind = __atomic_load_n(&slot->kind, __ATOMIC_RELAXED);

	/* The payload of a short message ends in the next line, which only the copy will load. */
	rte_prefetch0((const uint8_t *)slot + RWIRE_RING_LINE);
	if (unlikely(frame->is_mcast)) {
		frame->is_mcast = false;
		frame->flow.dst = port->port.addr;
	}
	frame->is_grant_requested = (kind & RWIRE_SLOT_REQUESTS_GRANT) != 0 && port->is_direct;
	frame->grh = (struct rsoft_grh){0};
	if (unlikely((kind & RWIRE_SLOT_HAS_GRH) != 0))
		shm_fill_grh(slot, len, kind, frame);
	kind &= (uint16_t) ~(RWIRE_SLOT_REQUESTS_GRANT | RWIRE_SLOT_HAS_GRH | RWIRE_SLOT_HAS_GROUP);
	frame->has_icrc = kind == RWIRE_SLOT_ICRC;
	frame->shared = NULL;
	frame->len = len;
	memcpy(frame->bth, slot->data, SHM_COPY);
	frame->data = slot->data;
	/* Calculate the ICRC over a copy, with writable headroom. */
	if (frame->has_icrc) {
		memcpy(frame->bth, slot->data, len);
		frame->data = frame->bth;
	} else if (kind == RWIRE_SLOT_SHARED) {
		shm_fill_shared(port, in, slot, frame);
	}
	frame->flow.src = in->addr;
	RSOFT_COUNT(port->port.stats.rx_packets, 1);
	RSOFT_COUNT(port->port.stats.rx_bytes, len);
}

static uint32_t
shm_in_burst(struct shm_port *port, struct shm_in *in, struct rwire_frame *frames[], uint32_t nb,
		uint32_t n)
{
	struct rwire_slot *slot;
	uint32_t len;

	while (nb < n && (!in->is_closed || in->left != 0)) {
		slot = rwire_ring_take(&in->end, &len);
		if (slot == NULL)
			break;
		in->left -= in->is_closed;
		shm_fill(port, in, slot, len, &port->rx[nb]);
		port->rx_in[nb] = in;
		frames[nb] = &port->rx[nb];
		nb++;
	}
	return nb;
}

static uint32_t
shm_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct shm_port *port = (struct shm_port *)base;
	uint64_t now = shm_now(base);
	uint32_t i, at, nb = 0;
	int state;

	rwire_shm_ins_release(&port->ins);
	/* The difference is also large if the clock was set back. */
	if (now - port->ins.serviced_at >= port->ins.pause) {
		state = rsoft_cancel_disable();
		rwire_shm_ins_service(&port->ins, now);
		rsoft_cancel_restore(state);
	}
	/* Start with another channel each time, so that no peer starves the others. */
	at = port->first_in < port->ins.nb_active ? port->first_in : 0;
	port->first_in = at + 1;
	for (i = 0; i < port->ins.nb_active && nb < n; i++) {
		nb = shm_in_burst(port, port->ins.active[at], frames, nb, n);
		at = at + 1 < port->ins.nb_active ? at + 1 : 0;
	}
	return nb;
}

static void
shm_rx_release(struct rwire_port *base)
{
	rwire_shm_ins_release(&((struct shm_port *)base)->ins);
}

static bool
shm_rx_sleep(struct rwire_port *base)
{
	struct shm_port *port = (struct shm_port *)base;
	bool is_empty = true;
	unsigned int i;

	rwire_shm_ins_release(&port->ins);
	rwire_shm_ins_service(&port->ins, shm_now(base));
	for (i = 0; i < port->ins.nb_active; i++) {
		if (!rwire_ring_sleep(&port->ins.active[i]->end))
			is_empty = false;
	}
	return is_empty;
}

static void
shm_rx_grant(struct rwire_port *base, const struct rwire_frame *frame, struct rsoft_qp *qp,
		uint32_t rkey)
{
	struct shm_port *port = (struct shm_port *)base;
	struct shm_in *in = port->rx_in[frame - port->rx];
	int state;

	if (in->uid != geteuid() || in->is_closed)
		return;
	state = rsoft_cancel_disable();
	if (in->direct == NULL)
		in->direct = rsoft_grant_open(qp->dev, &in->end.ring->direct, in->fd);
	if (in->direct != NULL)
		rsoft_grant_add(in->direct, qp, rkey);
	rsoft_cancel_restore(state);
}

/* Send side. */

static bool
shm_tx_count(const struct rwire_port *base, const struct rwire_addr *dst, uint32_t *sent,
		uint32_t *taken)
{
	const struct shm_port *port = (const struct shm_port *)base;
	const struct shm_out *out = rwire_shm_out_find(&port->outs, dst);

	if (out == NULL || out->fd < 0)
		return false;
	*sent = out->end.pos;
	*taken = __atomic_load_n(&out->end.ring->head, __ATOMIC_RELAXED);
	return true;
}

/* Find the channel to an address, or prepare one; NULL as of rwire_shm_out_of(). */
static struct shm_out *
shm_tx_channel(struct shm_port *port, const struct rwire_addr *dst, uint64_t now)
{
	struct shm_out *out = rwire_shm_out_find(&port->outs, dst);
	int state;

	if (likely(out != NULL))
		return out;
	state = rsoft_cancel_disable();
	out = rwire_shm_out_of(&port->outs, dst, now);
	rsoft_cancel_restore(state);
	return out;
}

/* Check the channel for the next frame, and another one. */
static void
shm_tx_check(struct shm_port *port, struct shm_out *out, uint64_t now)
{
	int state = rsoft_cancel_disable();

	rwire_shm_out_check(&port->outs, out, now);
	rwire_shm_outs_sweep(&port->outs, now);
	rsoft_cancel_restore(state);
}

static struct rwire_frame *
shm_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct shm_port *port = (struct shm_port *)base;
	struct shm_out *out = port->to;
	uint64_t now = shm_now(base);

	if (out == NULL || !rwire_addr_is_equal(&out->addr, dst))
		out = shm_tx_channel(port, dst, now);
	if (out != NULL && now - out->checked_at >= out->pause)
		shm_tx_check(port, out, now);
	port->to = out;
	port->slot = NULL;
	port->shared.len = 0;
	port->tx.bth = port->tx_data + RWIRE_HEADROOM;
	port->tx.flow.dst = *dst;
	port->tx.is_grant_requested = false;
	port->tx.grh = (struct rsoft_grh){0};
	if (out != NULL && out->fd >= 0) {
		port->slot = rwire_shm_out_get(out);
		if (port->slot == NULL)
			return NULL;
		if (!base->has_icrc)
			port->tx.bth = port->slot->data;
	}
	return &port->tx;
}

/*
 * Datagrams wait again after half a ring was sent, because the peer has then read at least that.
 * The position that the peer writes is not trusted.
 */
static bool
shm_tx_is_late(struct rwire_port *base, uint64_t now, uint64_t wait, uint64_t deadline)
{
	struct shm_out *out = ((struct shm_port *)base)->to;

	RTE_SET_USED(deadline);
	if (out->full_at == 0 || out->end.pos - out->full_pos >= RWIRE_RING_SLOTS / 2) {
		out->full_at = now;
		out->full_pos = out->end.pos;
	}
	return (int64_t)(now - out->full_at - wait) >= 0;
}

static bool
shm_tx_share(struct rwire_port *base, const uint8_t *data, uint32_t len)
{
	struct shm_port *port = (struct shm_port *)base;
	bool is_shared;
	int state;

	if (port->slot == NULL || !port->ins.is_sharing || base->has_icrc)
		return false;
	state = rsoft_cancel_disable();
	is_shared = rwire_regions_share(&port->to->regions, port->to->fd, port->to->end.ring, data,
			len, &port->shared);
	rsoft_cancel_restore(state);
	return is_shared;
}

/*
 * Only for datagrams, which are shorter than the slot and have no shared payload. The BTH may be in
 * the slot, where the peer can change it: the length is checked, too.
 */
static unsigned int
shm_put_grh(struct rwire_slot *slot, const struct rwire_frame *frame)
{
	const struct rsoft_grh *grh = &frame->grh;

	if (likely((grh->flow_label | grh->traffic_class | grh->hop_limit | frame->is_mcast) == 0 ||
			    (frame->bth[0] & RWIRE_SERVICE_MASK) != RWIRE_UD) ||
			frame->len > RWIRE_SLOT_DATA - RWIRE_SLOT_GRH)
		return 0;
	memcpy(slot->data + frame->len, grh, sizeof(*grh));
	if (!frame->is_mcast)
		return RWIRE_SLOT_HAS_GRH;
	memcpy(slot->data + frame->len + sizeof(*grh), &frame->flow.dst, sizeof(frame->flow.dst));
	return RWIRE_SLOT_HAS_GRH | RWIRE_SLOT_HAS_GROUP;
}

static void
shm_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct shm_port *port = (struct shm_port *)base;
	unsigned int kind = base->has_icrc ? RWIRE_SLOT_ICRC : RWIRE_SLOT_PLAIN;

	if (port->slot == NULL) {
		RSOFT_COUNT(base->stats.tx_dropped, 1);
		return;
	}
	if (base->has_icrc)
		memcpy(port->slot->data, frame->bth, frame->len);
	if (port->shared.len != 0) {
		memcpy(port->slot->data + RWIRE_SHARED_AT, &port->shared, sizeof(port->shared));
		kind = RWIRE_SLOT_SHARED;
	}
	if (frame->is_grant_requested)
		kind |= RWIRE_SLOT_REQUESTS_GRANT;
	kind |= shm_put_grh(port->slot, frame);
	rwire_ring_put(&port->to->end, frame->len, kind);
	port->slot = NULL;
	if (!port->to->is_dirty) {
		port->to->is_dirty = true;
		port->to->next_dirty = port->outs.dirty;
		port->outs.dirty = port->to;
	}
	RSOFT_COUNT(base->stats.tx_packets, 1);
	RSOFT_COUNT(base->stats.tx_bytes, frame->len + port->shared.len);
}

static void
shm_wake(const struct shm_out *out)
{
	int state = rsoft_cancel_disable();

	(void)!send(out->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	rsoft_cancel_restore(state);
}

/* The packets are already visible: ring the doorbells of receivers that sleep. */
static void
shm_tx_flush(struct rwire_port *base)
{
	struct shm_port *port = (struct shm_port *)base;
	struct shm_out *out;

	for (; port->outs.dirty != NULL; port->outs.dirty = out->next_dirty) {
		out = port->outs.dirty;
		out->is_dirty = false;
		if (out->fd >= 0 && rwire_ring_must_wake(&out->end))
			shm_wake(out);
	}
}

static enum rwire_copy_result
shm_tx_begin_copy(
		struct shm_port *port, const struct rwire_addr *dst, struct rwire_copy_link *direct)
{
	uint64_t now = shm_now(&port->port);
	struct shm_out *out = port->to;

	if (out == NULL || !rwire_addr_is_equal(&out->addr, dst))
		out = rwire_shm_out_of(&port->outs, dst, now);
	if (out != NULL && out->fd >= 0 && now - out->checked_at >= out->pause)
		rwire_shm_out_check(&port->outs, out, now);
	/* The first packet opens the connection. */
	if (out == NULL || out->fd < 0)
		return RWIRE_COPY_ASK;
	return rwire_copy_begin(&out->peer, &out->end.ring->direct, direct);
}

static enum rwire_copy_result
shm_tx_direct(struct rwire_port *base, const struct rwire_addr *dst, struct rwire_copy_link *direct)
{
	struct shm_port *port = (struct shm_port *)base;
	enum rwire_copy_result result;
	int state;

	if (!port->is_direct || base->has_icrc)
		return RWIRE_COPY_NO;
	state = rsoft_cancel_disable();
	result = shm_tx_begin_copy(port, dst, direct);
	rsoft_cancel_restore(state);
	return result;
}

static void
shm_tx_idle(struct rwire_port *base)
{
	int state = rsoft_cancel_disable();

	rwire_shm_outs_sweep(&((struct shm_port *)base)->outs, shm_now(base));
	rsoft_cancel_restore(state);
}

static int
shm_mcast_join(struct rwire_port *base, const struct rwire_addr *group)
{
	struct shm_port *port = (struct shm_port *)base;
	struct shm_group *groups =
			reallocarray(port->groups, port->nb_groups + 1, sizeof(port->groups[0]));
	int fd;

	if (groups == NULL)
		return -ENOMEM;
	port->groups = groups;
	fd = rwire_shm_join(port->name, &base->addr, group);
	if (fd < 0)
		return fd;
	groups[port->nb_groups++] = (struct shm_group){.addr = *group, .fd = fd};
	return 0;
}

static void
shm_mcast_leave(struct rwire_port *base, const struct rwire_addr *group)
{
	struct shm_port *port = (struct shm_port *)base;
	uint32_t i;

	for (i = 0; !rwire_addr_is_equal(&port->groups[i].addr, group); i++)
		;
	close(port->groups[i].fd);
	port->groups[i] = port->groups[--port->nb_groups];
}

/*
 * Get the members of a group from the names of their sockets in the kernel. They are read again
 * after SHM_NEWS_MS, or 20 times as long as reading takes.
 */
static int
shm_mcast_members(struct rwire_port *base, const struct rwire_addr *group,
		struct rwire_addr members[RWIRE_MAX_MEMBERS])
{
	struct shm_port *port = (struct shm_port *)base;
	struct shm_news *news = &port->news;
	uint64_t now = rte_rdtsc();
	int state;

	if (now - news->read_at >= news->pause || !rwire_addr_is_equal(&news->group, group)) {
		/* A thread cancelled in a system call would keep the locks. */
		state = rsoft_cancel_disable();
		news->nb = rwire_shm_members(port->name, group, news->members, RWIRE_MAX_MEMBERS);
		rsoft_cancel_restore(state);
		news->group = *group;
		news->read_at = rte_rdtsc();
		news->pause = RTE_MAX(
				20 * (news->read_at - now), rte_get_tsc_hz() / 1000 * SHM_NEWS_MS);
	}
	memcpy(members, news->members, news->nb * sizeof(members[0]));
	return (int)news->nb;
}

static void
shm_close(struct rwire_port *base)
{
	struct shm_port *port = (struct shm_port *)base;
	uint32_t i;

	for (i = 0; i < port->nb_groups; i++)
		close(port->groups[i].fd);
	free(port->groups);

	rwire_shm_outs_close(&port->outs);
	rwire_shm_ins_close(&port->ins);
	if (port->ins.is_sharing)
		rwire_regions_end();
	free(port);
}

static const struct rwire_port_ops shm_ops = {
		.close = shm_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = shm_mcast_join,
		.mcast_leave = shm_mcast_leave,
		.mcast_members = shm_mcast_members,
		.rx_burst = shm_rx_burst,
		.rx_grant = shm_rx_grant,
		.rx_release = shm_rx_release,
		.rx_sleep = shm_rx_sleep,
		.tx_count = shm_tx_count,
		.tx_direct = shm_tx_direct,
		.tx_flush = shm_tx_flush,
		.tx_get = shm_tx_get,
		.tx_idle = shm_tx_idle,
		.tx_is_late = shm_tx_is_late,
		.tx_put = shm_tx_put,
		.tx_share = shm_tx_share,
};

static void
shm_init(struct shm_port *port, const struct rwire_addr *addr, bool has_icrc)
{
	unsigned int i;

	port->port.ops = &shm_ops;
	port->port.addr = *addr;
	port->port.max_mtu = RWIRE_MAX_MTU;
	port->port.has_icrc = has_icrc;
	port->port.has_direct = port->port.has_share = true;
	port->outs.addr = *addr;
	port->outs.name = port->name;
	port->outs.check_cycles = port->ins.check_cycles = rte_get_tsc_hz() / 1000 * SHM_CHECK_MS;
	port->tx.flow.src = *addr;
	port->tx.flow.src_port = RWIRE_UDP_PORT;
	for (i = 0; i < RWIRE_RX_BURST; i++) {
		port->rx[i].bth = port->rx_data[i] + RWIRE_HEADROOM;
		port->rx[i].is_id_known = true;
		port->rx[i].flow.dst = *addr;
		port->rx[i].flow.src_port = RWIRE_UDP_PORT;
	}
}

/* Take over the listener. */
static int
shm_open_port(int listener, const struct rwire_addr *addr, const char *name, bool has_icrc,
		struct rwire_port **out)
{
	struct shm_port *port = calloc(1, sizeof(*port));
	int rc = -ENOMEM;

	if (port == NULL)
		goto close;
	shm_init(port, addr, has_icrc);
	memcpy(port->name, name, strlen(name) + 1);
	port->ins.name = port->name;
	port->ins.addr = *addr;
	rc = rwire_shm_outs_open(&port->outs);
	if (rc == 0)
		rc = rwire_shm_ins_open(&port->ins, listener);
	if (rc == 0) {
		port->port.fd = port->ins.epoll;
		*out = &port->port;
		return 0;
	}
	rwire_shm_outs_close(&port->outs);
	free(port);
close:
	close(listener);
	return rc;
}

int
rwire_port_shm_open(const struct rwire_addr *addr, const char *name, bool has_icrc, bool is_sharing,
		struct rwire_port **out)
{
	int listener, rc;

	if (!rwire_shm_name_is_valid(name)) {
		RSOFT_LOG(ERR,
				"port=shm:%s: the name is not 1 to %u letters, digits, '.', '_' or "
				"'-'",
				name, SHM_MAX_NAME);
		return -EINVAL;
	}
	listener = rwire_shm_listen(name, addr);
	if (listener < 0)
		return listener;
	rc = shm_open_port(listener, addr, name, has_icrc, out);
	if (rc == 0)
		((struct shm_port *)*out)->ins.is_sharing =
				is_sharing && !has_icrc && rwire_regions_begin(name);
	return rc;
}

int
rwire_port_shm_open_host(bool has_icrc, bool is_direct, bool is_mapping,
		struct rwire_owners *owners, struct rwire_port **out)
{
	struct rwire_addr addr;
	int rc, listener = rwire_shm_listen_host(&addr);

	if (listener < 0)
		return listener;
	rc = shm_open_port(listener, &addr, SHM_HOST, has_icrc, out);
	if (rc == 0) {
		((struct shm_port *)*out)->is_direct = is_direct && !has_icrc;
		((struct shm_port *)*out)->outs.is_mapping = is_mapping;
		((struct shm_port *)*out)->outs.owners = owners;
		((struct shm_port *)*out)->ins.owners = owners;
	}
	return rc;
}
