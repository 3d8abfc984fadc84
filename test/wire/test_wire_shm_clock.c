/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The port over shared memory when the clock is set forward or back, and as peers come and go. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_cycles.h>

#define HZ UINT64_C(2000000000)

static uint64_t virtual_tsc;

/* A port with a virtual clock, in addition to that of the drivers. */
#define rte_rdtsc()              virtual_tsc
#define rte_get_tsc_hz()         HZ
#define rwire_port_shm_open      clock_shm_open
#define rwire_port_shm_open_host clock_shm_open_host
#include "soft/wire/port/rwire_port_shm.c" /* NOLINT(bugprone-suspicious-include) */

#include "../send_fds.h"
#include "../test.h"

#define NB_PORTS 3

static struct rwire_port *ports[NB_PORTS];

static void
setup(void)
{
	char name[32], text[32];
	struct rwire_addr addr;
	int i;

	virtual_tsc = HZ * 100000;
	snprintf(name, sizeof(name), "clock-%d", (int)getpid());
	for (i = 0; i < NB_PORTS; i++) {
		snprintf(text, sizeof(text), "127.0.21.%d", i + 1);
		TEST_ASSERT(rwire_addr_parse(text, &addr));
		TEST_OK(clock_shm_open(&addr, name, false, false, &ports[i]));
	}
}

static void
teardown(void)
{
	int i;

	for (i = 0; i < NB_PORTS; i++)
		ports[i]->ops->close(ports[i]);
}

static uint32_t
receive(struct rwire_port *port)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];

	return port->ops->rx_burst(port, frames, RWIRE_RX_BURST);
}

/* The milliseconds until a packet of a port is received by another one; at most 100. */
static int
talk(struct rwire_port *from, struct rwire_port *to)
{
	struct rwire_frame *out;
	int ms;

	for (ms = 0; ms < 100; ms++) {
		out = from->ops->tx_get(from, &to->addr);
		if (out != NULL) {
			memset(out->bth, 0, RWIRE_BTH_LEN);
			out->len = RWIRE_BTH_LEN;
			from->ops->tx_put(from, out);
			from->ops->tx_flush(from);
		}
		if (receive(to) != 0)
			break;
		virtual_tsc += HZ / 1000;
	}
	return ms;
}

/* A new channel, and those that are there. */
static void
talk_after(uint64_t cycles)
{
	TEST_ASSERT(talk(ports[0], ports[1]) < 5);
	virtual_tsc += cycles;
	TEST_ASSERT(talk(ports[2], ports[1]) < 5);
	TEST_ASSERT(talk(ports[0], ports[1]) < 5);
	TEST_ASSERT(talk(ports[1], ports[0]) < 5);
}

TEST_CALL(wire_shm_clock, channels_are_opened_after_the_clock_was_set_forward,
		talk_after(3600 * HZ));
TEST_CALL(wire_shm_clock, channels_are_opened_after_the_clock_was_set_back,
		talk_after(-(3600 * HZ)));

/* With the packet that sets them, and not with the next one. */
TEST(wire_shm_clock, fields_of_the_grh_arrive)
{
	const struct rsoft_grh grh = {.flow_label = 0xabcde, .traffic_class = 0xfd, .hop_limit = 3};
	struct rwire_frame *frames[RWIRE_RX_BURST], *out;
	int i;

	TEST_ASSERT(talk(ports[0], ports[1]) < 5);
	for (i = 0; i < 2; i++) {
		out = ports[0]->ops->tx_get(ports[0], &ports[1]->addr);
		TEST_ASSERT(out != NULL);
		if (i == 0)
			out->grh = grh;
		memset(out->bth, 0, RWIRE_BTH_LEN);
		out->bth[0] = RWIRE_UD | RWIRE_SEND_ONLY;
		out->len = RWIRE_BTH_LEN;
		ports[0]->ops->tx_put(ports[0], out);
	}
	ports[0]->ops->tx_flush(ports[0]);
	TEST_EQ(ports[1]->ops->rx_burst(ports[1], frames, RWIRE_RX_BURST), 2);
	TEST_MEM(&frames[0]->grh, &grh, sizeof(grh));
	TEST_EQ(frames[1]->grh.flow_label, 0);
	TEST_EQ(frames[1]->grh.traffic_class, 0);
	TEST_EQ(frames[1]->grh.hop_limit, 0);
}

/* Put a packet of a length, which is one to a group if that is not NULL; the frame received. */
static const struct rwire_frame *
send_long(uint8_t opcode, uint32_t len, const struct rwire_addr *group)
{
	static struct rwire_frame *frames[RWIRE_RX_BURST];
	struct rwire_frame *out = ports[0]->ops->tx_get(ports[0], &ports[1]->addr);

	TEST_ASSERT(out != NULL);
	out->grh.hop_limit = 3;
	memset(out->bth, 0, RWIRE_BTH_LEN);
	out->bth[0] = opcode;
	out->len = len;
	out->is_mcast = group != NULL;
	if (group != NULL)
		out->flow.dst = *group;
	ports[0]->ops->tx_put(ports[0], out);
	out->is_mcast = false;
	ports[0]->ops->tx_flush(ports[0]);
	TEST_EQ(ports[1]->ops->rx_burst(ports[1], frames, RWIRE_RX_BURST), 1);
	TEST_EQ(frames[0]->len, len);
	return frames[0];
}

TEST(wire_shm_clock, longest_datagram_has_its_grh_and_group)
{
	const uint32_t largest =
			RWIRE_BTH_LEN + RWIRE_DETH_LEN + 4 + RWIRE_MAX_MTU + RWIRE_ICRC_LEN;
	const struct rwire_frame *frame;
	struct rwire_addr group;

	TEST_ASSERT(rwire_addr_from_text("239.7.0.1", &group));
	TEST_ASSERT(talk(ports[0], ports[1]) < 5);
	frame = send_long(RWIRE_UD | RWIRE_SEND_ONLY_WITH_IMM, largest, NULL);
	TEST_EQ(frame->grh.hop_limit, 3);
	frame = send_long(RWIRE_UD | RWIRE_SEND_ONLY_WITH_IMM, largest, &group);
	TEST_EQ(frame->grh.hop_limit, 3);
	TEST_ASSERT(frame->is_mcast && rwire_addr_is_equal(&frame->flow.dst, &group));
}

/* As if the receiver changed the opcode in the ring. */
TEST(wire_shm_clock, grh_does_not_exceed_a_slot_whose_packet_becomes_a_datagram)
{
	const struct shm_port *port = (const struct shm_port *)ports[0];
	const struct rwire_ring *ring;

	TEST_ASSERT(talk(ports[0], ports[1]) < 5);
	ring = rwire_shm_out_find(&port->outs, &ports[1]->addr)->end.ring;
	TEST_EQ(send_long(RWIRE_UD | RWIRE_SEND_ONLY, RWIRE_MAX_PKT, NULL)->grh.hop_limit, 0);
	TEST_EQ(ring->slot[(port->to->end.pos - 1) % RWIRE_RING_SLOTS].kind, RWIRE_SLOT_PLAIN);
}

static int
connect_to(const struct rwire_port *port)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char text[RWIRE_ADDR_TEXT];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "rmem-shm/clock-%d/%s",
			(int)getpid(), rwire_addr_text(&port->addr, text));

	TEST_ASSERT(fd >= 0);
	TEST_OK(connect(fd, (const struct sockaddr *)&un,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)));
	return fd;
}

TEST(wire_shm_clock, refused_connections_of_another_user_do_not_delay_the_next)
{
	const struct shm_ins *ins = &((const struct shm_port *)ports[0])->ins;
	const uint32_t before = ins->nb;
	int fds[8], i;

	TEST_SKIP_IF(geteuid() != 0, "only root has connections of another user");
	TEST_OK(seteuid(65534));
	for (i = 0; i < 7; i++)
		fds[i] = connect_to(ports[0]);
	TEST_OK(seteuid(0));
	fds[7] = connect_to(ports[0]);
	virtual_tsc += HZ / 1000;
	(void)receive(ports[0]);
	for (i = 0; i < 8; i++)
		close(fds[i]);
	TEST_EQ(ins->nb, before + 1);
}

/* The lowest free descriptor that is not below first. */
static int
free_fd_from(int first)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, first);

	close(fd);
	/* cppcheck-suppress deallocret */
	return fd;
}

/* The connection itself gets the lowest one. */
TEST(wire_shm_clock, descriptor_of_an_empty_message_is_closed)
{
	int fd = connect_to(ports[0]), expected = free_fd_from(test_free_fd() + 1);
	char byte;

	TEST_EQ(send_fds(fd, NULL, 0, 0, fd, 1), 0);
	do {
		virtual_tsc += HZ / 1000;
		(void)receive(ports[0]);
	} while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	TEST_EQ(free_fd_from(test_free_fd() + 1), expected);
	close(fd);
}

/* As by a process that has taken the name of the peer. */
TEST(wire_shm_clock, address_of_another_user_gets_no_packets)
{
	struct rwire_addr addr;
	char name[32];
	int listener;

	TEST_SKIP_IF(geteuid() != 0, "only root has listeners of another user");
	snprintf(name, sizeof(name), "clock-%d", (int)getpid());
	TEST_ASSERT(rwire_addr_parse("127.0.22.99", &addr));
	TEST_OK(seteuid(65534));
	listener = rwire_shm_listen(name, &addr);
	TEST_OK(seteuid(0));
	TEST_ASSERT(listener >= 0);
	TEST_ASSERT(ports[0]->ops->tx_get(ports[0], &addr) != NULL);
	TEST_EQ(rwire_shm_out_find(&((const struct shm_port *)ports[0])->outs, &addr)->fd, -1);
	close(listener);
}

/* Limit the descriptors of this process: the limit of before. */
static rlim_t
set_nb_files(rlim_t nb)
{
	struct rlimit limit;
	rlim_t before;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	before = limit.rlim_cur;
	limit.rlim_cur = nb;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return before;
}

/* The port number i of those that come and go, or NULL. */
static struct rwire_port *
open_peer(int i)
{
	struct rwire_port *port = NULL;
	char name[32], text[32];
	struct rwire_addr addr;

	snprintf(name, sizeof(name), "clock-%d", (int)getpid());
	snprintf(text, sizeof(text), "127.0.22.%d", i + 1);
	if (!rwire_addr_parse(text, &addr) || clock_shm_open(&addr, name, false, false, &port) != 0)
		return NULL;
	return port;
}

/* A port that has the fewest channels. */
static struct rwire_port *
open_small_peer(int i)
{
	rlim_t before = set_nb_files(4 * SHM_MIN_PEERS);
	struct rwire_port *port = open_peer(i);

	set_nb_files(before);
	return port;
}

static uint32_t
nb_connected(const struct rwire_port *base)
{
	const struct shm_outs *outs = &((const struct shm_port *)base)->outs;
	uint32_t i, nb = 0;

	for (i = 0; i < outs->nb; i++)
		nb += outs->out[i]->fd >= 0;
	return nb;
}

TEST(wire_shm_clock, channels_to_ended_peers_are_closed)
{
	struct rwire_port *peer;
	int i;

	for (i = 0; i < 2 * SHM_MIN_PEERS; i++) {
		peer = open_peer(i);
		TEST_ASSERT(peer != NULL);
		TEST_ASSERT(talk(ports[0], peer) < 5);
		peer->ops->close(peer);
	}
	for (i = 0; i < 2 * SHM_MIN_PEERS; i++) {
		TEST_ASSERT(talk(ports[0], ports[1]) < 5);
		virtual_tsc += HZ / 1000;
	}
	TEST_EQ(nb_connected(ports[0]), 1);
}

TEST(wire_shm_clock, channel_of_an_ended_peer_is_reused_when_all_are_in_use)
{
	struct rwire_port *peers[SHM_MIN_PEERS + 1], *from = open_small_peer(100);
	int i;

	TEST_ASSERT(from != NULL);
	for (i = 0; i <= SHM_MIN_PEERS; i++) {
		peers[i] = open_peer(i);
		TEST_ASSERT(peers[i] != NULL);
		TEST_ASSERT(i == SHM_MIN_PEERS || talk(from, peers[i]) < 5);
	}
	TEST_EQ(nb_connected(from), SHM_MIN_PEERS);
	TEST_EQ(talk(from, peers[SHM_MIN_PEERS]), 100);
	TEST_ASSERT(((struct shm_port *)from)->outs.is_full_logged);
	peers[7]->ops->close(peers[7]);
	TEST_ASSERT(talk(from, peers[SHM_MIN_PEERS]) < 5);
	TEST_EQ(nb_connected(from), SHM_MIN_PEERS);
	for (i = 0; i <= SHM_MIN_PEERS; i++) {
		if (i != 7)
			peers[i]->ops->close(peers[i]);
	}
	from->ops->close(from);
}

/* Pages of a ring that are in memory. */
static uint32_t
nb_pages(const struct shm_out *out)
{
	unsigned char pages[sizeof(struct rwire_ring) / 4096 + 1];
	uint32_t i, nb = 0, nb_all = (uint32_t)(sizeof(struct rwire_ring) / (size_t)getpagesize());

	TEST_OK(mincore(out->end.ring, sizeof(struct rwire_ring), pages));
	for (i = 0; i < nb_all; i++)
		nb += pages[i] & 1;
	return nb;
}

TEST(wire_shm_clock, ring_has_few_pages_until_it_is_used_and_after_a_pause)
{
	const struct shm_out *out;
	int i, j;

	TEST_SKIP_IF(!rwire_shm_is_lazy(), "rings are allocated as a whole");
	for (i = 0; i < 2; i++) {
		TEST_ASSERT(talk(ports[0], ports[1]) < 5);
		out = ((struct shm_port *)ports[0])->outs.out[0];
		TEST_ASSERT(nb_pages(out) < 12);
		for (j = 0; j < 2 * (int)RWIRE_RING_SLOTS; j++)
			TEST_ASSERT(talk(ports[0], ports[1]) < 5);
		TEST_ASSERT(nb_pages(out) > 100);
		/* The other channels are checked, and this one with them. */
		for (j = 0; j < 150; j++) {
			TEST_ASSERT(talk(ports[0], ports[2]) < 5);
			virtual_tsc += HZ / 1000;
			(void)receive(ports[1]);
		}
		TEST_ASSERT(nb_pages(out) < 4);
	}
}

/* Connect a peer, and leave its ring to be received. */
static bool
connect_peer(struct rwire_port *peer, const struct rwire_port *to)
{
	return peer != NULL && peer->ops->tx_get(peer, &to->addr) != NULL &&
			nb_connected(peer) == 1;
}

TEST(wire_shm_clock, rings_that_wait_while_the_device_has_no_cpu_are_received)
{
	struct rwire_port *peers[SHM_MIN_PEERS], *to = open_peer(SHM_MIN_PEERS);
	const struct shm_ins *ins = &((struct shm_port *)to)->ins;
	int i, nb = 0;

	TEST_ASSERT(to != NULL);
	for (i = 0; i < SHM_MIN_PEERS; i++) {
		peers[i] = open_peer(i);
		TEST_ASSERT(connect_peer(peers[i], to));
	}
	(void)receive(to);
	TEST_EQ(ins->nb, SHM_MIN_PEERS);
	virtual_tsc += HZ;
	(void)receive(to);
	for (i = 0; i < SHM_MIN_PEERS; i++) {
		nb += ins->in[i]->end.ring != NULL;
		peers[i]->ops->close(peers[i]);
	}
	to->ops->close(to);
	TEST_EQ(nb, SHM_MIN_PEERS);
}

TEST(wire_shm_clock, listener_without_descriptors_pauses_for_100_ms)
{
	struct rwire_port *from = open_peer(0), *to = open_peer(1);
	struct epoll_event event;
	rlim_t before;

	TEST_ASSERT(from != NULL && to != NULL);
	/* A connection waits, for which there is no descriptor. */
	(void)from->ops->tx_get(from, &to->addr);
	TEST_EQ(nb_connected(from), 1);
	TEST_EQ(epoll_wait(to->fd, &event, 1, 0), 1);
	before = set_nb_files(0);
	(void)receive(to);
	TEST_EQ(epoll_wait(to->fd, &event, 1, 0), 0);
	virtual_tsc += 99 * HZ / 1000;
	(void)receive(to);
	TEST_EQ(epoll_wait(to->fd, &event, 1, 0), 0);
	set_nb_files(before);
	TEST_ASSERT(talk(from, to) < 5);
	from->ops->close(from);
	to->ops->close(to);
}

TEST(wire_shm_clock, ring_without_a_free_descriptor_is_refused_with_its_cause)
{
	struct rwire_port *from = open_peer(0), *to = open_peer(1);
	int i, unused;
	struct shm_out *out;
	rlim_t before;

	TEST_ASSERT(from != NULL && to != NULL);
	(void)from->ops->tx_get(from, &to->addr);
	TEST_EQ(nb_connected(from), 1);
	/* The remaining descriptor is that of the connection. */
	unused = dup(STDIN_FILENO);
	close(unused);
	before = set_nb_files((rlim_t)unused + 1);
	for (i = 0; i < 3; i++) {
		virtual_tsc += HZ / 1000;
		(void)receive(to);
	}
	set_nb_files(before);
	out = ((struct shm_port *)from)->outs.out[0];
	virtual_tsc += HZ / 1000;
	(void)from->ops->tx_get(from, &to->addr);
	TEST_EQ(out->fd, -1);
	TEST_EQ(out->logged_reason, SHM_NO_FILES);
	from->ops->close(from);
	to->ops->close(to);
}

TEST_SUITE(wire_shm_clock, setup, teardown);
