/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A fuzzer of the port over shared memory: an input is a list of steps of hostile processes of this
 * host, of which some may have another user. They connect, pass messages, memory and regions of any
 * kind and size, write any bytes into their rings and into that of the device, truncate regions,
 * and end at any time. Bytes that a step keeps for later are written when the device has taken
 * packets from a ring but not read them, and between the building and the sending of a packet. A
 * thread may write at the same time, too.
 *
 * After each step no byte outside the registered memory is changed, no packet that is sent has a
 * byte of it or exceeds its slot, a burst has no more packets than requested, and the QP is in a
 * state that is one of verbs. At the end all peers have ended: the device closes all descriptors,
 * and serves the next peer.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include "soft/base/rsoft.h"
#include "../send_fds.h"
#include "fuzz_eal.h"
#include "fuzz_port.h"
#include "fuzz_shm.h"
#include "xorshift.h"

#define PAGE       4096u
#define OTHER_USER 12345u

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
peer_close(struct peer *peer)
{
	close_fd(&peer->fd);
	rwire_shm_unmap(peer->end.ring);
	memset(&peer->end, 0, sizeof(peer->end));
}

static void
peer_open(struct peer *peer)
{
	uint32_t uid;

	peer_close(peer);
	if (rwire_shm_connect(fuzz_shm_name(), &fz.addrs[fz.dev], &fz.inner[fz.dev]->addr,
			    &peer->fd, &peer->end.ring, &uid, NULL) != 0) {
		peer->fd = -1;
		peer->end.ring = NULL;
		return;
	}
	fz.nb_rings++;
}

static void
peer_connect(struct peer *peer)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char text[RWIRE_ADDR_TEXT];
	int len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "rmem-shm/%s/%s",
			fuzz_shm_name(), rwire_addr_text(&fz.inner[fz.dev]->addr, text));

	peer_close(peer);
	peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(peer->fd >= 0);
	if (connect(peer->fd, (const struct sockaddr *)&un,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					    (size_t)len)) != 0)
		close_fd(&peer->fd);
}

/* Memory of a kind: its descriptor, or -1; a ring is also mapped for *ring, if that is not NULL. */
static int
make_memory(uint32_t kind, uint32_t nb_pages, struct rwire_ring **ring)
{
	static const char *const files[] = {"/dev/zero", "/proc/self/exe", "/dev/null"};
	off_t size = kind < 3       ? (off_t)(sizeof(**ring) - (kind == 2 ? 1 : 0))
			: kind == 3 ? (off_t)1 << 40
				    : (off_t)nb_pages * PAGE;
	int fd;

	if (kind >= 5 && kind < 5 + RTE_DIM(files))
		return open(files[kind - 5], O_RDONLY | O_CLOEXEC);
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
	if (kind == 0 || kind == 2)
		CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	if (kind == 0 && ring != NULL) {
		*ring = mmap(NULL, sizeof(**ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(*ring != MAP_FAILED);
	}
	return fd;
}

static void
change(void *message, size_t size, const uint8_t *bytes, uint32_t n)
{
	uint8_t *to = message;
	uint32_t i;

	for (i = 0; i < RTE_MIN(n, size); i++)
		to[i] ^= bytes[i];
}

static size_t
nb_passed(const struct step *step)
{
	if (fz.memory_fd < 0)
		return 0;
	return (step->sel & 6) == 6 ? 0 : (step->sel & 6) == 4 ? 2 : 1;
}

static void
step_hello(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	struct shm_hello hello[2] = {{.magic = "rmemshm", .version = SHM_VERSION}};
	size_t len = step->sel & 1 ? step->value % sizeof(hello) : sizeof(hello[0]);
	struct rwire_ring *ring = NULL;

	if (peer->fd < 0)
		return;
	memcpy(hello[0].gid, fz.addrs[fz.dev].gid, sizeof(hello[0].gid));
	change(hello, sizeof(hello), bytes, n);
	close_fd(&fz.memory_fd);
	fz.memory_fd = make_memory(
			step->what % 9, step->value % 8, peer->end.ring == NULL ? &ring : NULL);
	if (ring != NULL)
		peer->end = (struct rwire_ring_end){.ring = ring};
	(void)send_fds(peer->fd, hello, len, MSG_DONTWAIT, fz.memory_fd, nb_passed(step));
}

static void
step_region(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	struct shm_region region = {.id = step->value % 4};

	if (peer->fd < 0)
		return;
	region.size = (uint64_t)(1 + step->value / 4 % 4) * PAGE;
	change(&region, sizeof(region), bytes, n);
	close_fd(&fz.memory_fd);
	fz.memory_fd = make_memory(
			step->what % 2 ? 4 : step->what / 2 % 9, step->value / 4 % 8 + 1, NULL);
	(void)send_fds(peer->fd, &region,
			step->sel & 1 ? step->value % sizeof(region) : sizeof(region), MSG_DONTWAIT,
			fz.memory_fd, nb_passed(step));
	fz.nb_regions++;
}

static void
step_cut(const struct step *step)
{
	const off_t at = (off_t)(step->value % 8) * PAGE;

	if (fz.memory_fd >= 0 && step->what % 2)
		(void)!fallocate(fz.memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
				(off_t)(1 + step->len) * PAGE);
	else if (fz.memory_fd >= 0)
		(void)!ftruncate(fz.memory_fd, at);
}

/* Addresses at both ends of the memory, and beyond. */
static uint64_t
address(const struct step *step)
{
	uint64_t base = (uintptr_t)fz.memory + GUARD;

	if (step->sel & 0x40)
		base += TARGET;
	return step->sel & 0x80 ? base - (step->value & 0xff) : base + step->value % TARGET;
}

static struct rwire_pkt
packet_of(const struct step *step, uint32_t n)
{
	const struct rmem_qp *qp = step->sel & 1 ? devs[fz.dev].ud : devs[fz.dev].rc;
	const struct rwire_qp *q = ((const struct rsoft_qp *)qp)->wire;
	const uint32_t bad = step->peer & STEP_BAD_KEY ? 1u << step->value % 32 : 0;
	struct rwire_pkt pkt = {.service = q->service,
			.opcode = step->what % RWIRE_OPCODE_NB,
			.qpn = step->sel & 8 ? RMEM_MCAST_QPN : qp->qp_num,
			.psn = rwire_psn_add(step->peer & STEP_RESPONSE ? q->req.una : q->rsp.psn,
					(uint32_t)(int32_t)step->psn & RWIRE_PSN_MASK),
			.syndrome = (uint8_t)(step->value >> 8),
			.msn = step->value,
			.addr = address(step),
			.rkey = devs[fz.dev].mr->rkey ^ bad,
			.dma_len = n,
			.imm = step->value,
			.qkey = QKEY ^ bad,
			.src_qp = step->value,
			.compare = step->value,
			.is_ack_req = (step->value & 0x8000) != 0};

	if (pkt.service == RWIRE_UD)
		pkt.opcode = RWIRE_SEND_ONLY + (step->what & 1);
	if ((rwire_opcode_info[pkt.opcode] & RWIRE_HAS_PAYLOAD) != 0 &&
			(step->peer & STEP_SHARED) == 0)
		pkt.payload_len = n;
	return pkt;
}

static void
step_packet(const struct step *step, struct peer *peer, const uint8_t *bytes, uint32_t n)
{
	struct rwire_shared shared = {
			.region = step->value % 5, .len = step->value / 4, .offset = n};
	unsigned int kind = step->sel & 2 ? RWIRE_SLOT_ICRC : RWIRE_SLOT_PLAIN;
	struct rwire_slot *slot;
	struct rwire_pkt pkt;
	uint32_t len;

	if (peer->end.ring == NULL)
		return;
	peer->end.head = peer->end.pos;
	slot = rwire_ring_get(&peer->end);
	pkt = packet_of(step, step->sel & 0x10 ? RWIRE_MAX_MTU : n);
	if (step->peer & STEP_SHARED) {
		change(&shared, sizeof(shared), bytes, RTE_MIN(n, sizeof(shared)));
		pkt.dma_len = shared.len;
	} else if (pkt.payload_len == n && n != 0) {
		memcpy(slot->data + rwire_hdr_len(rwire_pkt_info(&pkt)), bytes, n);
	}
	len = rwire_pkt_build(slot->data, &pkt);
	if (step->peer & STEP_SHARED) {
		kind = RWIRE_SLOT_SHARED;
		memcpy(slot->data + RWIRE_SHARED_AT, &shared, sizeof(shared));
	}
	if (step->sel & 4)
		kind |= RWIRE_SLOT_HAS_GRH;
	if (step->sel & 8 && len <= RWIRE_SLOT_DATA - RWIRE_SLOT_GRH) {
		kind |= RWIRE_SLOT_HAS_GROUP;
		memcpy(slot->data + len + sizeof(struct rsoft_grh), fz.group.gid, 16);
	}
	if (step->sel & 0x20)
		kind |= RWIRE_SLOT_REQUESTS_GRANT;
	rwire_ring_put(&peer->end, len, kind);
}

static struct rmem_sge
sge_of(const struct step *step)
{
	uint32_t offset = step->value % TARGET, len = step->len * 32u;

	return (struct rmem_sge){.addr = (uintptr_t)fz.memory + GUARD + offset,
			.length = RTE_MIN(len, TARGET - offset),
			.lkey = devs[fz.dev].mr->lkey};
}

static void
step_send(const struct step *step)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_SEND,
			RMEM_WR_RDMA_WRITE_WITH_IMM};
	struct rmem_sge sge = sge_of(step);
	struct rmem_send_wr wr = {.opcode = opcodes[step->what % RTE_DIM(opcodes)],
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.rdma = {.remote_addr = 4096, .rkey = 1}};

	if ((step->sel & 1) == 0) {
		(void)rmem_post_send(devs[fz.dev].rc, &wr, 1);
		return;
	}
	sge.length = RTE_MIN(sge.length, (uint32_t)RWIRE_MAX_MTU);
	wr.opcode = step->what & 1 ? RMEM_WR_SEND : RMEM_WR_SEND_WITH_IMM;
	wr.ud.ah = devs[fz.dev].ahs[step->sel >> 1 & 1];
	wr.ud.remote_qpn = step->sel & 2 ? RMEM_MCAST_QPN : 2;
	wr.ud.remote_qkey = step->value;
	(void)rmem_post_send(devs[fz.dev].ud, &wr, 1);
}

static void
step_recv(const struct step *step)
{
	struct rmem_sge sge = sge_of(step);
	struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	(void)rmem_post_recv(step->sel & 1 ? devs[fz.dev].ud : devs[fz.dev].rc, &wr, 1);
}

static void
accept_dev(void)
{
	int fd = __real_accept4(fz.listeners[fz.dev], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rwire_addr from;
	uint32_t version;

	if (fd < 0)
		return;
	fz.taken.fd = fd;
	memset(&fz.taken.end, 0, sizeof(fz.taken.end));
	if (rwire_shm_receive(fd, &from, &fz.taken.end.ring, &version) != SHM_OK)
		peer_close(&fz.taken);
}

/* Accept the connection of the device; or receive packets and messages from it, or its end. */
static void
step_take(const struct step *step)
{
	struct shm_region region;
	uint32_t i, len;
	ssize_t n = 1;
	int memory;

	if (fz.taken.fd < 0) {
		accept_dev();
		return;
	}
	for (i = 0; i <= step->len && rwire_ring_take(&fz.taken.end, &len) != NULL; i++)
		fz.nb_taken++;
	rwire_ring_release(&fz.taken.end);
	if (step->what % 4 == 0)
		(void)rwire_ring_sleep(&fz.taken.end);
	for (i = 0; i < 8 && n > 0; i++) {
		n = rwire_shm_next(fz.taken.fd, &region, &memory);
		close_fd(&memory);
	}
	if (n == 0)
		peer_close(&fz.taken);
}

static void
step_answer(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	struct shm_hello hello = {.magic = "rmemshm", .version = SHM_VERSION};

	if (fz.taken.fd < 0)
		return;
	if (step->what % 4 == 0) {
		peer_close(&fz.taken);
		return;
	}
	change(&hello, sizeof(hello), bytes, n);
	(void)send_fds(fz.taken.fd, &hello,
			step->sel & 1 ? step->value % sizeof(hello) : sizeof(hello), MSG_DONTWAIT,
			-1, 0);
}

static void
step_name(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	int *fd = &fz.names[step->peer % MAX_NAMES];
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char *text = un.sun_path + 1;
	uint32_t i, len;

	if (*fd >= 0) {
		close_fd(fd);
		return;
	}
	len = (uint32_t)snprintf(text, sizeof(un.sun_path) - 1, "rmem-mc/%s/", fuzz_shm_name());
	for (i = 0; i < 32; i++)
		len += (uint32_t)snprintf(text + len, sizeof(un.sun_path) - 1 - len, "%02x%s",
				i < 16 ? fz.group.gid[i] : fz.addrs[fz.dev].gid[i - 16],
				i == 15 ? "/" : "");
	for (i = 0; i < n && step->value % len + i < len; i++)
		text[step->value % len + i] = (char)bytes[i];
	*fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(*fd, (const struct sockaddr *)&un,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0)
		close_fd(fd);
}

static void
end_children(void)
{
	while (fz.nb_copies != 0)
		close(fz.copies[--fz.nb_copies]);
	fz.nb_children = 0;
}

static void *
race_main(void *arg)
{
	const struct step *step = arg;

	while (__atomic_load_n(&fz.stop, __ATOMIC_RELAXED) == 0)
		fuzz_shm_write(step, fz.later_bytes, step->len);
	return NULL;
}

static void
step_race(struct step step, const uint8_t *bytes, uint32_t n)
{
	pthread_t thread;
	int i;

	memcpy(fz.later_bytes, bytes, n);
	fz.has_later = false;
	fz.is_racing = true;
	fz.stop = 0;
	step.len = (uint8_t)n;
	CHECK(pthread_create(&thread, NULL, race_main, &step) == 0);
	for (i = 0; i < 32; i++)
		fuzz_shm_poll(100);
	__atomic_store_n(&fz.stop, 1, __ATOMIC_RELAXED);
	CHECK(pthread_join(thread, NULL) == 0);
	fz.is_racing = false;
}

static void
step_later(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	fz.later = *step;
	fz.later.len = (uint8_t)n;
	memcpy(fz.later_bytes, bytes, n);
	fz.has_later = true;
}

static void
step_socket(const struct step *step, struct peer *peer)
{
	if (peer->fd >= 0 && step->what % 2)
		peer_close(peer);
	else
		peer_connect(peer);
}

static void
step_peer(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	struct peer *peer = &fz.peers[step->peer % MAX_PEERS];

	switch (step->kind % STEP_NB) {
	case STEP_OPEN:
		peer_open(peer);
		break;
	case STEP_SOCKET:
		step_socket(step, peer);
		break;
	case STEP_HELLO:
		step_hello(step, peer, bytes, n);
		break;
	case STEP_REGION:
		step_region(step, peer, bytes, n);
		break;
	case STEP_CUT:
		step_cut(step);
		break;
	case STEP_PACKET:
		step_packet(step, peer, bytes, n);
		break;
	default:
		if (peer->fd >= 0)
			(void)send_fds(peer->fd, bytes, n, MSG_DONTWAIT, -1, 0);
		break;
	}
}

static void
run_step(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	switch (step->kind % STEP_NB) {
	case STEP_WRITE:
		fuzz_shm_write(step, bytes, n);
		break;
	case STEP_LATER:
		step_later(step, bytes, n);
		break;
	case STEP_RACE:
		step_race(*step, bytes, n);
		break;
	case STEP_SEND:
		step_send(step);
		break;
	case STEP_RECV:
		step_recv(step);
		break;
	case STEP_TAKE:
		step_take(step);
		break;
	case STEP_ANSWER:
		step_answer(step, bytes, n);
		break;
	case STEP_NAME:
		step_name(step, bytes, n);
		break;
	case STEP_TIME:
		if (step->what & 1)
			(void)fz.ports[fz.dev].ops->rx_sleep(&fz.ports[fz.dev]);
		fuzz_shm_poll(step->value * 100u);
		break;
	case STEP_CHILD:
		if (step->what & 1)
			end_children();
		else
			fz.nb_children++;
		break;
	case STEP_USER:
		fz.users[0] = step->sel & 1 ? OTHER_USER + step->what % 2 : 0;
		fz.users[1] = step->sel & 2 ? OTHER_USER + step->what % 2 : 0;
		break;
	default:
		step_peer(step, bytes, n);
		break;
	}
}

/* All peers end. */
static void
end_peers(void)
{
	uint32_t i;

	for (i = 0; i < MAX_PEERS; i++)
		peer_close(&fz.peers[i]);
	for (i = 0; i < MAX_NAMES; i++)
		close_fd(&fz.names[i]);
	peer_close(&fz.taken);
	close_fd(&fz.memory_fd);
	end_children();
	fz.has_later = false;
	fz.users[0] = fz.users[1] = 0;
}

/* The device closes all channels. */
static void
check_descriptors(void)
{
	uint32_t i;
	int fd;

	fuzz_shm_reset();
	for (i = 0; fuzz_nb_open() != fz.nb_open; i++) {
		CHECK(i < 1000);
		while ((fd = __real_accept4(fz.listeners[fz.dev], NULL, NULL, SOCK_CLOEXEC)) >= 0)
			close(fd);
		fuzz_shm_poll(10000);
	}
}

/* A peer that does as it should is served. */
static void
check_service(void)
{
	const struct step step = {.len = 8};
	const uint64_t before = fz.inner[fz.dev]->stats.rx_packets;
	uint32_t i;

	peer_open(&fz.peers[0]);
	CHECK(fz.peers[0].end.ring != NULL);
	fuzz_shm_connect();
	step_packet(&step, &fz.peers[0], NULL, 0);
	for (i = 0; fz.inner[fz.dev]->stats.rx_packets == before; i++) {
		CHECK(i < 100);
		fuzz_shm_poll(1000);
	}
	peer_close(&fz.peers[0]);
}

static void
check_guards(void)
{
	uint32_t i;

	for (i = 0; i < GUARD; i++)
		CHECK(fz.memory[i] == SECRET && fz.memory[GUARD + TARGET + i] == SECRET);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	RTE_SET_USED(argc);
	fuzz_eal_init((*argv)[0]);
	fuzz_shm_open();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;
	uint32_t n;
	size_t at = 0;

	/* The last byte selects the device. */
	fz.dev = size != 0 ? data[size - 1] % 2 : 0;
	fz.nb_users = 0;
	fuzz_shm_connect();
	while (size - at >= sizeof(step)) {
		memcpy(&step, data + at, sizeof(step));
		at += sizeof(step);
		n = (uint32_t)RTE_MIN((size_t)step.len, size - at);
		run_step(&step, data + at, n);
		at += n;
		fuzz_shm_poll(step.kind / STEP_NB % 4 * 400u);
		fuzz_shm_check();
	}
	end_peers();
	check_service();
	check_descriptors();
	check_guards();
	return 0;
}

/* Most messages and packets are accepted. */
size_t
fuzz_step(uint8_t *to, uint64_t *state)
{
	static const uint8_t kinds[] = {STEP_OPEN, STEP_OPEN, STEP_SOCKET, STEP_HELLO, STEP_REGION,
			STEP_REGION, STEP_CUT, STEP_BELL, STEP_PACKET, STEP_PACKET, STEP_PACKET,
			STEP_PACKET, STEP_PACKET, STEP_WRITE, STEP_WRITE, STEP_LATER, STEP_LATER,
			STEP_SEND, STEP_SEND, STEP_RECV, STEP_TAKE, STEP_TAKE, STEP_ANSWER,
			STEP_NAME, STEP_TIME, STEP_CHILD, STEP_USER};
	uint8_t kind = kinds[xorshift32(state) % RTE_DIM(kinds)];
	struct step step = {.peer = (uint8_t)(xorshift32(state) % MAX_PEERS),
			.what = (uint8_t)xorshift32(state),
			.len = (uint8_t)(xorshift32(state) % 16),
			.value = (uint16_t)xorshift32(state)};
	uint32_t i;

	if (xorshift32(state) % 256 == 0)
		kind = STEP_RACE;
	step.kind = (uint8_t)(kind + STEP_NB * (xorshift32(state) % 4));
	if (xorshift32(state) % 4 == 0)
		step.peer |= (uint8_t)(xorshift32(state) & 0xf0);
	if (xorshift32(state) % 4 == 0)
		step.sel = (uint8_t)xorshift32(state);
	if (xorshift32(state) % 8 == 0)
		step.psn = (int8_t)(xorshift32(state) % 5 - 2);
	if ((kind == STEP_HELLO || kind == STEP_REGION) && xorshift32(state) % 4 != 0) {
		step.len = step.what = 0;
		step.value = 12; /* region 0, 16 KiB */
	}
	if (xorshift32(state) % 4 != 0)
		step.peer &= 0xf0; /* the first one */
	if (kind == STEP_PACKET && xorshift32(state) % 2 == 0) {
		step.what = RWIRE_WRITE_ONLY;
		step.peer = xorshift32(state) % 2 == 0 ? STEP_SHARED : 0;
		step.len = step.psn = 0;
		step.value = (uint16_t)(20 * (1 + step.value % 100)); /* in region 0 */
	}
	memcpy(to, &step, sizeof(step));
	for (i = 0; i < step.len; i++)
		to[sizeof(step) + i] = (uint8_t)xorshift32(state);
	return sizeof(step) + step.len;
}

/* Print what the inputs reached; 0 if it was each part of the port. */
int
fuzz_report(void)
{
	printf("%" PRIu64 " requests and %" PRIu64 " receives succeeded\n", fz.nb_done[0],
			fz.nb_done[1]);
	printf("%" PRIu64 " rings and %" PRIu64 " regions were passed, %" PRIu64
	       " packets had their payload in one\n",
			fz.nb_rings, fz.nb_regions, fz.nb_shared);
	printf("%" PRIu64 " packets were taken, %" PRIu64 " times bytes were changed in use\n",
			fz.nb_taken, fz.nb_later);
	return fz.nb_done[1] == 0 || fz.nb_rings == 0 || fz.nb_shared == 0 || fz.nb_taken == 0 ||
			fz.nb_later == 0;
}

void
fuzz_close(void)
{
	fuzz_shm_close();
	rte_eal_cleanup();
}
