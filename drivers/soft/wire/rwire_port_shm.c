/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over shared memory: the devices of one user on this host that have the same name, or all
 * of those with ip=host.
 *
 * A channel (rwire_shm.h) is opened when the first packet for an address is sent. The receiver
 * reads payloads in place and copies headers, so a peer that changes a packet while it is received
 * only changes its own data.
 *
 * - struct shm_out and all of the send side are protected by rwire::tx_lock.
 * - struct shm_in and all of the receive side are protected by rwire::rx_lock.
 *
 * A peer that ended is detected by the end of its connection, within SHM_CHECK_MS. Packets for an
 * address without a device are dropped, as by a network; the engine's timers do the rest.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "../rsoft.h"
#include "rwire_port.h"
#include "rwire_shm.h"

#define SHM_MAX_PEERS 64
#define SHM_EVENTS    16
#define SHM_BELLS     16 /* doorbells that one call consumes, at most */
#define SHM_CHECK_MS  1
#define SHM_REFUSED   1000 /* checks until a peer that refused is tried again */
#define SHM_COPY      (RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN)
#define SHM_LISTENER  SHM_MAX_PEERS /* the event of the listening socket */

/* A channel to a peer. */
struct shm_out {
	struct rwire_addr addr;
	int fd; /* -1: not connected */
	struct rwire_ring_end end;
	uint64_t checked_at; /* connection checked, or attempt to connect, TSC */
	uint64_t pause;      /* from then to the next one; 0: now */
	int told;            /* reason of the last refusal that was logged */
};

/* A channel from a peer. */
struct shm_in {
	int fd;                    /* -1: free */
	struct rwire_ring_end end; /* without a ring until its message is there */
	struct rwire_addr addr;
	bool is_closed;
	uint32_t left; /* is_closed: packets that may still be received */
};

struct shm_port {
	struct rwire_port port;
	char name[SHM_MAX_NAME + 1];
	uint64_t check_cycles;

	struct shm_out out[SHM_MAX_PEERS];
	uint32_t nb_out;
	uint64_t dirty;     /* bit n: out[n] has packets since the last flush */
	struct shm_out *to; /* of the frame of tx_get(); NULL: it is dropped */
	struct rwire_slot *slot;
	struct rwire_frame tx;
	uint8_t tx_data[RWIRE_HEADROOM + RWIRE_MAX_PKT]; /* of a packet with an ICRC, or dropped */

	int listener;
	struct shm_in in[SHM_MAX_PEERS];
	uint32_t nb_in;       /* those from there on were never used */
	uint32_t first_in;    /* to receive from first */
	uint64_t serviced_at; /* TSC */
	uint32_t told;        /* bit n: refusals with reason n are logged */
	struct rwire_frame rx[RWIRE_RX_BURST];
	uint8_t rx_data[RWIRE_RX_BURST][RWIRE_HEADROOM + RWIRE_MAX_PKT];
};

static_assert(SHM_MAX_PEERS <= 64, "a bit for each peer");
static_assert(SHM_COPY <= RWIRE_MAX_PKT, "a slot has the bytes of the longest headers");

static const char *
shm_reason_text(int reason)
{
	static const char *const texts[SHM_REASON_NB] = {
			[SHM_BAD_VERSION] = "it has another version of port=shm",
			[SHM_BAD_USER] = "it belongs to another user, or its address does",
			[SHM_BAD_MEMORY] = "its memory is not a sealed ring",
			[SHM_NO_SPACE] = "it has channels from 64 devices already",
	};

	return reason > 0 && reason < SHM_REASON_NB ? texts[reason] : "it sent no valid reason";
}

/* The receive side. */

static void
shm_in_free(struct shm_in *in)
{
	close(in->fd);
	in->fd = -1;
	shm_unmap(in->end.ring);
	in->end.ring = NULL;
}

/* Log the first refusal of each kind. */
static void
shm_tell_refusal(struct shm_port *port, int reason, uint32_t version)
{
	if ((port->told & 1u << reason) != 0)
		return;
	port->told |= 1u << reason;
	if (reason == SHM_BAD_VERSION)
		RSOFT_LOG(ERR, "port=shm:%s: peer refused: version %u (expected %u)", port->name,
				version, SHM_VERSION);
	else
		RSOFT_LOG(ERR, "port=shm:%s: peer refused: %s", port->name,
				shm_reason_text(reason));
}

static void
shm_accept_all(struct shm_port *port, int epoll)
{
	unsigned int i, n;
	int fd;

	for (n = 0; n < SHM_MAX_PEERS; n++) {
		struct epoll_event event = {.events = EPOLLIN};

		fd = shm_accept(port->name, port->listener);
		if (fd == -EPERM)
			shm_tell_refusal(port, SHM_BAD_USER, 0);
		if (fd < 0)
			return;
		for (i = 0; i < SHM_MAX_PEERS && port->in[i].fd >= 0; i++)
			;
		event.data.u32 = i;
		if (i == SHM_MAX_PEERS || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
			shm_tell_refusal(port, SHM_NO_SPACE, 0);
			shm_refuse(fd, SHM_NO_SPACE, &port->port.addr);
			close(fd);
			continue;
		}
		memset(&port->in[i], 0, sizeof(port->in[i]));
		port->in[i].fd = fd;
		port->nb_in = RTE_MAX(port->nb_in, i + 1);
	}
}

/* Receive the ring of a new connection. */
static void
shm_in_open(struct shm_port *port, struct shm_in *in)
{
	uint32_t version = 0;
	int rc = shm_receive(in->fd, &in->addr, &in->end.ring, &version);

	if (rc == SHM_OK && !shm_may_claim(port->name, in->fd, &in->addr))
		rc = SHM_BAD_USER;
	if (rc == SHM_OK || rc == -EAGAIN)
		return;
	if (rc > SHM_OK) {
		shm_tell_refusal(port, rc, version);
		shm_refuse(in->fd, rc, &port->port.addr);
	}
	shm_in_free(in);
}

/* A connection is readable: a ring, doorbells, or its end. */
static void
shm_in_event(struct shm_port *port, struct shm_in *in, int epoll)
{
	uint8_t bell[2];
	unsigned int i;
	ssize_t n = 1;

	if (in->end.ring == NULL) {
		shm_in_open(port, in);
		return;
	}
	for (i = 0; i < SHM_BELLS && n > 0; i++)
		n = recv(in->fd, bell, sizeof(bell), MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	/* Packets of a peer that has ended were sent earlier. */
	(void)epoll_ctl(epoll, EPOLL_CTL_DEL, in->fd, NULL);
	in->is_closed = true;
	in->left = RWIRE_RING_SLOTS;
}

/* Connections, doorbells and ends of peers. */
static void
shm_service(struct shm_port *port)
{
	struct epoll_event events[SHM_EVENTS];
	int i, n;

	n = epoll_wait(port->port.fd, events, SHM_EVENTS, 0);
	for (i = 0; i < n; i++) {
		if (events[i].data.u32 == SHM_LISTENER)
			shm_accept_all(port, port->port.fd);
		else
			shm_in_event(port, &port->in[events[i].data.u32], port->port.fd);
	}
	port->serviced_at = rte_rdtsc();
}

/* Return the slots of the last burst; free the channels whose packets were all received. */
static void
shm_release(struct shm_port *port)
{
	unsigned int i;

	for (i = 0; i < port->nb_in; i++) {
		struct shm_in *in = &port->in[i];

		if (in->end.ring == NULL)
			continue;
		rwire_ring_release(&in->end);
		if (in->is_closed && (in->left == 0 || !rwire_ring_is_ready(&in->end)))
			shm_in_free(in);
	}
}

/* Describe a packet in a slot. All that is checked later is copied now. */
static void
shm_fill(struct shm_port *port, const struct shm_in *in, struct rwire_slot *slot, uint32_t len,
		struct rwire_frame *frame)
{
	/* The ICRC is calculated over a copy, with writable headroom. */
	frame->has_icrc = slot->has_icrc != 0;
	memcpy(frame->bth, slot->data, SHM_COPY);
	frame->data = slot->data;
	if (frame->has_icrc) {
		memcpy(frame->bth, slot->data, len);
		frame->data = frame->bth;
	}
	frame->len = len;
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
		frames[nb] = &port->rx[nb];
		nb++;
	}
	return nb;
}

static uint32_t
shm_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct shm_port *port = (struct shm_port *)base;
	uint32_t i, nb = 0;

	shm_release(port);
	/* The difference is also large if the clock was set back. */
	if (rte_rdtsc() - port->serviced_at >= port->check_cycles)
		shm_service(port);
	/* Each time from another one, so that no peer keeps the others waiting. */
	for (i = 0; i < port->nb_in && nb < n; i++) {
		struct shm_in *in = &port->in[(port->first_in + i) % port->nb_in];

		if (in->end.ring != NULL)
			nb = shm_in_burst(port, in, frames, nb, n);
	}
	port->first_in++;
	return nb;
}

static bool
shm_rx_sleep(struct rwire_port *base)
{
	struct shm_port *port = (struct shm_port *)base;
	bool is_empty = true;
	unsigned int i;

	shm_release(port);
	shm_service(port);
	for (i = 0; i < port->nb_in; i++) {
		if (port->in[i].end.ring != NULL && !rwire_ring_sleep(&port->in[i].end))
			is_empty = false;
	}
	return is_empty;
}

/* The send side. */

static void
shm_out_close(struct shm_out *out)
{
	if (out->fd < 0)
		return;
	close(out->fd);
	out->fd = -1;
	shm_unmap(out->end.ring);
	out->end.ring = NULL;
}

/* Log a refusal, once until another one. */
static void
shm_out_tell(struct shm_port *port, struct shm_out *out, int reason, uint32_t number)
{
	char text[RWIRE_ADDR_TEXT];

	if (out->told == reason)
		return;
	out->told = reason;
	rwire_addr_text(&out->addr, text);
	if (reason == SHM_BAD_VERSION)
		RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: version %u (expected %u)",
				port->name, text, number, SHM_VERSION);
	else if (reason == SHM_BAD_USER)
		RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: process of user %u (expected %u)",
				port->name, text, number, (unsigned int)geteuid());
	else
		RSOFT_LOG(ERR, "port=shm:%s: peer %s refused: %s", port->name, text,
				shm_reason_text(reason));
}

static void
shm_out_connect(struct shm_port *port, struct shm_out *out)
{
	uint32_t uid = 0;
	int rc, fd;

	memset(&out->end, 0, sizeof(out->end));
	rc = shm_connect(port->name, &port->port.addr, &out->addr, &fd, &out->end.ring, &uid);
	if (rc == 0)
		out->fd = fd;
	else if (rc == -EPERM)
		shm_out_tell(port, out, SHM_BAD_USER, uid);
}

/* Whether the peer still has its end of the connection. */
static bool
shm_out_is_alive(struct shm_port *port, struct shm_out *out)
{
	struct shm_hello hello;
	ssize_t n = recv(out->fd, &hello, sizeof(hello), MSG_DONTWAIT);

	/* A refusal may follow the error that reports its unread doorbells. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(out->fd, &hello, sizeof(hello), MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(hello)) {
		shm_out_tell(port, out,
				hello.reason < SHM_REASON_NB ? (int)hello.reason : SHM_REASON_NB,
				hello.version);
		out->pause += SHM_REFUSED * port->check_cycles;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Connect, reconnect, and detect the end of the peer. Periodically. */
static void
shm_out_check(struct shm_port *port, struct shm_out *out, uint64_t now)
{
	out->checked_at = now;
	out->pause = port->check_cycles;
	if (out->fd >= 0 && !shm_out_is_alive(port, out)) {
		shm_out_close(out);
		return;
	}
	if (out->fd < 0)
		shm_out_connect(port, out);
}

/* The channel to an address; NULL: all of them are in use. */
static struct shm_out *
shm_out_of(struct shm_port *port, const struct rwire_addr *addr)
{
	struct shm_out *out, *unused = NULL;

	for (out = port->out; out < port->out + port->nb_out; out++) {
		if (rwire_addr_is_equal(&out->addr, addr))
			return out;
		if (out->fd < 0)
			unused = out;
	}
	if (port->nb_out < SHM_MAX_PEERS)
		unused = &port->out[port->nb_out++];
	if (unused == NULL)
		return NULL;
	memset(unused, 0, sizeof(*unused));
	unused->addr = *addr;
	unused->fd = -1;
	return unused;
}

static struct rwire_frame *
shm_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct shm_port *port = (struct shm_port *)base;
	struct shm_out *out = port->to;
	uint64_t now = rte_rdtsc();

	if (out == NULL || !rwire_addr_is_equal(&out->addr, dst))
		out = shm_out_of(port, dst);
	if (out != NULL && now - out->checked_at >= out->pause)
		shm_out_check(port, out, now);
	port->to = out;
	port->slot = NULL;
	port->tx.bth = port->tx_data + RWIRE_HEADROOM;
	port->tx.flow.dst = *dst;
	if (out != NULL && out->fd >= 0) {
		port->slot = rwire_ring_get(&out->end);
		if (port->slot == NULL)
			return NULL;
		if (!base->has_icrc)
			port->tx.bth = port->slot->data;
	}
	return &port->tx;
}

static void
shm_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct shm_port *port = (struct shm_port *)base;

	if (port->slot == NULL) {
		RSOFT_COUNT(base->stats.tx_dropped, 1);
		return;
	}
	if (base->has_icrc)
		memcpy(port->slot->data, frame->bth, frame->len);
	rwire_ring_put(&port->to->end, frame->len, base->has_icrc);
	port->slot = NULL;
	port->dirty |= UINT64_C(1) << (port->to - port->out);
	RSOFT_COUNT(base->stats.tx_packets, 1);
	RSOFT_COUNT(base->stats.tx_bytes, frame->len);
}

/* Packets are there already: ring the doorbells of receivers that sleep. */
static void
shm_tx_flush(struct rwire_port *base)
{
	struct shm_port *port = (struct shm_port *)base;

	for (; port->dirty != 0; port->dirty &= port->dirty - 1) {
		struct shm_out *out = &port->out[__builtin_ctzll(port->dirty)];

		if (out->fd >= 0 && rwire_ring_must_wake(&out->end))
			(void)!send(out->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void
shm_close(struct rwire_port *base)
{
	struct shm_port *port = (struct shm_port *)base;
	unsigned int i;

	for (i = 0; i < port->nb_out; i++)
		shm_out_close(&port->out[i]);
	for (i = 0; i < port->nb_in; i++) {
		if (port->in[i].fd >= 0)
			shm_in_free(&port->in[i]);
	}
	close(port->listener);
	close(base->fd);
	free(port);
}

static const struct rwire_port_ops shm_ops = {
		.close = shm_close,
		.rx_burst = shm_rx_burst,
		.rx_sleep = shm_rx_sleep,
		.tx_flush = shm_tx_flush,
		.tx_get = shm_tx_get,
		.tx_put = shm_tx_put,
};

static void
shm_init(struct shm_port *port, const struct rwire_addr *addr, bool has_icrc)
{
	unsigned int i;

	port->port.ops = &shm_ops;
	port->port.addr = *addr;
	port->port.max_mtu = RWIRE_MAX_MTU;
	port->port.has_icrc = has_icrc;
	port->check_cycles = rte_get_tsc_hz() / 1000 * SHM_CHECK_MS;
	port->tx.flow.src = *addr;
	port->tx.flow.src_port = RWIRE_UDP_PORT;
	for (i = 0; i < SHM_MAX_PEERS; i++)
		port->in[i].fd = -1;
	for (i = 0; i < RWIRE_RX_BURST; i++) {
		port->rx[i].bth = port->rx_data[i] + RWIRE_HEADROOM;
		port->rx[i].is_id_known = true;
		port->rx[i].flow.dst = *addr;
		port->rx[i].flow.src_port = RWIRE_UDP_PORT;
	}
}

/* The descriptor that is readable when the thread must wake up. */
static int
shm_epoll(int listener)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = SHM_LISTENER};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, listener, &event) == 0)
		return fd;
	RSOFT_LOG(ERR, "port=shm: epoll: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -ENOMEM;
}

/* Takes over the listener. */
static int
shm_open_port(int listener, const struct rwire_addr *addr, const char *name, bool has_icrc,
		struct rwire_port **out)
{
	struct shm_port *port = calloc(1, sizeof(*port));
	int rc = -ENOMEM;

	if (port == NULL)
		goto close;
	shm_init(port, addr, has_icrc);
	memcpy(port->name, name, strlen(name));
	port->listener = listener;
	rc = port->port.fd = shm_epoll(listener);
	if (rc < 0)
		goto free;
	*out = &port->port;
	return 0;
free:
	free(port);
close:
	close(listener);
	return rc;
}

int
rwire_port_shm_open(const struct rwire_addr *addr, const char *name, bool has_icrc,
		struct rwire_port **out)
{
	int listener;

	if (!shm_name_is_valid(name)) {
		RSOFT_LOG(ERR,
				"port=shm:%s: the name is not 1 to %u letters, digits, '.', '_' or "
				"'-'",
				name, SHM_MAX_NAME);
		return -EINVAL;
	}
	listener = shm_listen(name, addr);
	return listener < 0 ? listener : shm_open_port(listener, addr, name, has_icrc, out);
}

int
rwire_port_shm_open_host(bool has_icrc, struct rwire_port **out)
{
	struct rwire_addr addr;
	int listener = shm_listen_host(&addr);

	return listener < 0 ? listener : shm_open_port(listener, &addr, SHM_HOST, has_icrc, out);
}
