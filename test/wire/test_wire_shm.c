/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A device with port=shm refuses peers of another version and memory that is not a sealed ring, and
 * survives a peer that writes anything into its ring or shrinks its regions.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <rmem_cq.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>

#include <rte_memzone.h>

#include "soft/wire/rwire.h"
#include "soft/wire/port/rwire_shm.h"

#include "../rc.h"
#include "../send_fds.h"

#define ADDRESS      "127.0.16.1"
#define PEER_ADDRESS "127.0.16.2"
#define SIZE         16384
#define NB_POLLS     20000

/* A device that shares its memory, and a QP of it. */
struct sharer {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
};

static struct sharer own;
static uint8_t memory[SIZE];
static char name[SHM_MAX_NAME + 1];
static struct rwire_addr address, peer_address;

static void
sharer_open(struct sharer *of, const char *dev_name, const char *ip, const char *more,
		uint8_t *bytes)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 8};
	struct rmem_qp_conf conf;
	char args[96];

	snprintf(args, sizeof(args), "ip=%s,port=shm:%s,progress=poll,share=1%s", ip, name, more);
	TEST_OK(rmem_dev_create(dev_name, args, &of->dev));
	TEST_OK(rmem_pd_alloc(of->dev, &of->pd));
	TEST_OK(rmem_cq_create(of->dev, &cq_conf, &of->cq));
	conf = rc_conf(of->cq, 4, 4);
	TEST_OK(rmem_qp_create(of->pd, &conf, &of->qp));
	TEST_OK(rmem_mr_reg(of->pd, bytes, SIZE, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE, &of->mr));
}

static void
sharer_close(const struct sharer *of)
{
	TEST_OK(rmem_qp_destroy(of->qp));
	TEST_OK(rmem_mr_dereg(of->mr));
	TEST_OK(rmem_cq_destroy(of->cq));
	TEST_OK(rmem_pd_dealloc(of->pd));
	TEST_OK(rmem_dev_close(of->dev));
}

static void
setup(void)
{
	struct rmem_qp_conn conn = {.remote.qp_num = 5, .timeout = 8, .retry_cnt = 7};
	struct rlimit limit;

	/* Channels of one device, and the peers' ends of them. */
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = RTE_MAX(limit.rlim_cur, RTE_MIN(limit.rlim_max, 4u * SHM_MAX_PEERS));
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	snprintf(name, sizeof(name), "hostile-%d", (int)getpid());
	TEST_ASSERT(rwire_addr_parse(ADDRESS, &address) &&
			rwire_addr_parse(PEER_ADDRESS, &peer_address));
	memset(memory, 0, SIZE);
	sharer_open(&own, "soft0", ADDRESS, "", memory);
	memcpy(conn.remote.gid, peer_address.gid, sizeof(conn.remote.gid));
	TEST_OK(rmem_qp_connect(own.qp, &conn));
}

static void
teardown(void)
{
	sharer_close(&own);
}

/* Poll, and so receive. The device checks its connections each millisecond. */
static void
make_progress(void)
{
	struct rmem_wc wc;

	(void)rmem_poll_cq(own.cq, &wc, 1);
}

/* A connection to the device without a message. */
static int
open_socket(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len = snprintf(
			un.sun_path + 1, sizeof(un.sun_path) - 1, "rmem-shm/%s/%s", name, ADDRESS);

	if (fd >= 0 &&
			connect(fd, (const struct sockaddr *)&un,
					(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
							(size_t)len)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct shm_hello
make_hello(uint32_t version)
{
	struct shm_hello hello = {.magic = "rmemshm", .version = version};

	memcpy(hello.gid, peer_address.gid, sizeof(hello.gid));
	return hello;
}

/* Send a message on a new connection, and expect a refusal and the end of the connection. */
static void
expect_refusal_of(const void *data, size_t len, int passed, size_t nb, uint32_t reason)
{
	struct shm_hello reply = {0};
	int fd = open_socket();
	ssize_t n;

	TEST_ASSERT(fd >= 0);
	TEST_EQ(send_fds(fd, data, len, 0, passed, nb), len);
	do {
		make_progress();
		n = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	TEST_EQ(n, sizeof(reply));
	TEST_EQ(reply.reason, reason);
	TEST_EQ(reply.version, SHM_VERSION);
	TEST_EQ(recv(fd, &reply, sizeof(reply), 0), 0);
	close(fd);
}

static void
expect_refusal(const void *data, size_t len, int passed, uint32_t reason)
{
	expect_refusal_of(data, len, passed, passed >= 0, reason);
}

/* Handle connections now; make_progress() does each millisecond. */
static void
service(void)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(own.dev)->priv)->wire;

	(void)wire->port->ops->rx_sleep(wire->port);
}

/* As a child between vfork() and exec() has it. */
TEST(wire_shm, refused_connection_that_a_child_has_too_is_freed_once)
{
	int copy, fd = open_socket(), accepted = test_free_fd();

	TEST_ASSERT(fd >= 0);
	while (fcntl(accepted, F_GETFD) < 0)
		service();
	copy = fcntl(accepted, F_DUPFD_CLOEXEC, 0);
	TEST_ASSERT(copy >= 0);
	TEST_EQ(send_fds(fd, "", 1, 0, -1, 0), 1);
	while (fcntl(accepted, F_GETFD) >= 0)
		service();
	TEST_EQ(send_fds(fd, "", 1, 0, -1, 0), 1);
	service();
	close(fd);
	service();
	close(copy);
}

TEST(wire_shm, peer_of_another_version_is_refused)
{
	struct shm_hello hello = make_hello(SHM_VERSION + 1);

	expect_refusal(&hello, sizeof(hello), -1, SHM_BAD_VERSION);
	hello = make_hello(SHM_VERSION);
	hello.magic[0] ^= 1;
	expect_refusal(&hello, sizeof(hello), -1, SHM_BAD_VERSION);
}

TEST(wire_shm, message_of_another_size_is_refused)
{
	uint8_t data[2 * sizeof(struct shm_hello)] = {0};
	struct shm_hello hello = make_hello(SHM_VERSION);
	size_t len;

	memcpy(data, &hello, sizeof(hello));
	for (len = 1; len <= sizeof(data); len += 5) {
		if (len != sizeof(hello))
			expect_refusal(data, len, -1, SHM_BAD_VERSION);
	}
	/* A multicast address is that of no peer. */
	memset(hello.gid, 0xff, sizeof(hello.gid));
	expect_refusal(&hello, sizeof(hello), -1, SHM_BAD_VERSION);
}

/* Pass a memfd of a size, with seals. */
static void
refuse_memory(size_t size, int seals)
{
	struct shm_hello hello = make_hello(SHM_VERSION);
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	TEST_ASSERT(fd >= 0);
	TEST_EQ(ftruncate(fd, (off_t)size), 0);
	if (seals != 0)
		TEST_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
	expect_refusal(&hello, sizeof(hello), fd, SHM_BAD_MEMORY);
	close(fd);
}

TEST(wire_shm, memory_that_can_shrink_or_has_another_size_is_refused)
{
	struct shm_hello hello = make_hello(SHM_VERSION);
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	expect_refusal(&hello, sizeof(hello), -1, SHM_BAD_MEMORY);
	expect_refusal(&hello, sizeof(hello), fd, SHM_BAD_MEMORY);
	close(fd);
	refuse_memory(sizeof(struct rwire_ring), 0);
	refuse_memory(sizeof(struct rwire_ring), F_SEAL_GROW);
	refuse_memory(sizeof(struct rwire_ring) - 1, F_SEAL_SHRINK);
	refuse_memory(0, F_SEAL_SHRINK);
	/* As if the memory were missing, at any time. */
	refuse_memory(sizeof(struct rwire_ring) + 4096, F_SEAL_SHRINK);
}

/* Channels of peers that write packets which are of no QP, and count as of wrong peers. */
static struct {
	struct rwire_ring_end end;
	int fd;
} many[SHM_MAX_PEERS + 1];

static void
open_many(uint32_t first, uint32_t nb)
{
	struct rwire_addr from = peer_address;
	uint32_t i, uid;
	int ret;

	for (i = first; i < first + nb; i++) {
		from.gid[15] = (uint8_t)i;
		from.gid[14] = (uint8_t)(100 + i / 256);
		many[i].end = (struct rwire_ring_end){0};
		do {
			ret = rwire_shm_connect(name, &from, &address, &many[i].fd,
					&many[i].end.ring, &uid, NULL);
			make_progress();
		} while (ret == -EAGAIN);
		TEST_OK(ret);
	}
}

static void
close_many(uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		close(many[i].fd);
		rwire_shm_unmap(many[i].end.ring);
	}
}

static uint32_t
nb_channels(void)
{
	struct shm_users users;

	rwire_shm_users_open(&users);
	return users.nb_free;
}

static uint64_t
nb_wrong(void)
{
	struct rmem_dev_stats stats;

	TEST_OK(rmem_dev_stats_get(own.dev, &stats));
	return stats.wire_wrong_peers;
}

/* Each peer sends one packet, and a doorbell if the device sleeps there. */
static void
send_many(uint32_t nb)
{
	const uint64_t before = nb_wrong();
	struct rwire_pkt pkt = {.opcode = RWIRE_SEND_ONLY, .qpn = own.qp->qp_num};
	struct rwire_slot *slot;
	uint32_t i;

	for (i = 0; i < nb; i++) {
		slot = rwire_ring_get(&many[i].end);
		TEST_ASSERT(slot != NULL);
		rwire_ring_put(&many[i].end, rwire_pkt_build(slot->data, &pkt), RWIRE_SLOT_PLAIN);
		if (rwire_ring_must_wake(&many[i].end))
			TEST_EQ(send(many[i].fd, "", 1, MSG_NOSIGNAL), 1);
	}
	while (nb_wrong() - before < nb)
		make_progress();
	TEST_EQ(nb_wrong() - before, nb);
}

/* As many as a quarter of the descriptors; 4096 if those suffice. */
TEST(wire_shm, one_channel_too_many_is_refused)
{
	const uint32_t nb = nb_channels();
	char byte;
	int n;

	open_many(0, nb);
	send_many(nb);
	open_many(nb, 1);
	do {
		make_progress();
		n = (int)recv(many[nb].fd, &byte, 1, MSG_DONTWAIT);
		/* ECONNRESET precedes the reply: the ring was not received. */
	} while (n < 0 && (errno == EAGAIN || errno == ECONNRESET));
	close_many(nb + 1);
	TEST_EQ(n, 1);
}

static uint32_t
nb_asleep(uint32_t nb)
{
	uint32_t i, nb_found = 0;

	for (i = 0; i < nb; i++)
		nb_found += __atomic_load_n(&many[i].end.ring->is_asleep, __ATOMIC_RELAXED) != 0;
	return nb_found;
}

TEST(wire_shm, silent_channels_beyond_64_sleep_until_a_doorbell)
{
	const uint32_t nb = nb_channels();
	int i;

	open_many(0, nb);
	for (i = 0; i < 3; i++) {
		send_many(nb);
		while (nb_asleep(nb) < nb - SHM_MIN_PEERS)
			make_progress();
	}
	close_many(nb);
}

/* Write a packet that WRITEs 8 bytes to offset of the MR. */
static void
put_write(struct rwire_ring_end *end, uint32_t psn, uint32_t offset)
{
	struct rwire_pkt pkt = {.opcode = RWIRE_WRITE_ONLY,
			.qpn = own.qp->qp_num,
			.psn = psn,
			.addr = own.mr->iova + offset,
			.rkey = own.mr->rkey,
			.dma_len = 8,
			.payload_len = 8};
	struct rwire_slot *slot = rwire_ring_get(end);

	memset(slot->data + rwire_hdr_len(rwire_opcode_info[RWIRE_WRITE_ONLY]), 0xab, 8);
	rwire_ring_put(end, rwire_pkt_build(slot->data, &pkt), RWIRE_SLOT_PLAIN);
}

static uint32_t
expected_psn(void)
{
	return ((const struct rsoft_qp *)own.qp)->wire->rsp.psn;
}

TEST(wire_shm, packets_left_in_a_ring_of_an_ended_peer_are_executed)
{
	struct rwire_ring_end end = {0};
	uint32_t uid, psn = expected_psn();
	int fd;

	TEST_OK(rwire_shm_connect(name, &peer_address, &address, &fd, &end.ring, &uid, NULL));
	put_write(&end, psn, 0);
	put_write(&end, psn + 1, SIZE - 8);
	close(fd);
	while (expected_psn() != rwire_psn_add(psn, 2))
		make_progress();
	rwire_shm_unmap(end.ring);
	TEST_EQ(memory[0], 0xab);
	TEST_EQ(memory[8], 0);
	TEST_EQ(memory[SIZE - 1], 0xab);
}

/* Pass a memfd of file_size bytes as a region of size bytes: the memfd. */
static int
pass_region(int fd, uint32_t id, uint64_t file_size, uint64_t size)
{
	const struct shm_region region = {.id = id, .size = size};
	int memory_fd = memfd_create("region", MFD_CLOEXEC);

	if (memory_fd < 0)
		return -1;
	if (ftruncate(memory_fd, (off_t)file_size) != 0 ||
			!rwire_shm_pass_region(fd, &region, memory_fd)) {
		close(memory_fd);
		return -1;
	}
	return memory_fd;
}

static void
wait_mapped(const struct rwire_ring *ring, uint32_t id)
{
	while ((__atomic_load_n(&ring->mapped, __ATOMIC_ACQUIRE) >> id & 1) == 0)
		make_progress();
}

/* Put a WRITE of len bytes to the MR, with its payload in a region. */
static void
put_shared(struct rwire_ring_end *end, uint8_t opcode, uint32_t psn, struct rwire_shared shared)
{
	struct rwire_pkt pkt = {.opcode = opcode,
			.qpn = own.qp->qp_num,
			.psn = psn,
			.addr = own.mr->iova,
			.rkey = own.mr->rkey,
			.dma_len = shared.len};
	struct rwire_slot *slot = rwire_ring_get(end);
	uint32_t len = rwire_pkt_build(slot->data, &pkt);

	memcpy(slot->data + RWIRE_SHARED_AT, &shared, sizeof(shared));
	rwire_ring_put(end, len, RWIRE_SLOT_SHARED);
}

static uint64_t
nb_malformed(void)
{
	struct rmem_dev_stats stats;

	(void)rmem_dev_stats_get(own.dev, &stats);
	return stats.wire_malformed;
}

/* A channel with a region of SIZE bytes, all of them a byte: the memfd. */
static int
open_region(struct rwire_ring_end *end, int *fd, int byte)
{
	uint8_t data[SIZE];
	uint32_t uid;
	int memory_fd;

	memset(end, 0, sizeof(*end));
	memset(memory, 0, SIZE);
	if (rwire_shm_connect(name, &peer_address, &address, fd, &end->ring, &uid, NULL) != 0)
		return -1;
	memory_fd = pass_region(*fd, 3, SIZE, SIZE);
	memset(data, byte, SIZE);
	if (pwrite(memory_fd, data, SIZE, 0) != SIZE)
		return -1;
	wait_mapped(end->ring, 3);
	return memory_fd;
}

static void
close_region(struct rwire_ring_end *end, int fd, int memory_fd)
{
	close(memory_fd);
	close(fd);
	rwire_shm_unmap(end->ring);
}

TEST(wire_shm, payload_in_a_region_uses_the_psns_of_its_length)
{
	uint32_t psn = expected_psn();
	struct rwire_ring_end end;
	int fd, memory_fd = open_region(&end, &fd, 0xcd);

	TEST_ASSERT(memory_fd >= 0);
	put_shared(&end, RWIRE_WRITE_ONLY, psn, (struct rwire_shared){3, SIZE - 1, 1});
	while (expected_psn() != rwire_psn_add(psn, SIZE / RWIRE_MAX_MTU))
		make_progress();
	close_region(&end, fd, memory_fd);
	TEST_EQ(memory[0], 0xcd);
	TEST_EQ(memory[SIZE - 2], 0xcd);
	TEST_EQ(memory[SIZE - 1], 0);
}

TEST(wire_shm, payload_outside_a_region_is_malformed)
{
	static const struct rwire_shared bad[] = {
			{2, 8, 0},
			{64, 8, 0},
			{UINT32_MAX, 8, 0},
			{3, 0, 0},
			{3, 1, SIZE},
			{3, SIZE, 1},
			{3, 8, UINT64_MAX - 3},
			{3, RWIRE_MAX_SHARED + 1, 0},
			{3, UINT32_MAX, 0},
	};
	static const uint8_t opcodes[] = {RWIRE_READ_REQUEST, RWIRE_FETCH_ADD, RWIRE_ACKNOWLEDGE};
	uint64_t before = nb_malformed();
	uint32_t i, psn = expected_psn();
	struct rwire_ring_end end;
	int fd, memory_fd = open_region(&end, &fd, 0xcd);

	TEST_ASSERT(memory_fd >= 0);
	for (i = 0; i < RTE_DIM(bad); i++)
		put_shared(&end, RWIRE_WRITE_ONLY, psn, bad[i]);
	for (i = 0; i < RTE_DIM(opcodes); i++)
		put_shared(&end, opcodes[i], psn, (struct rwire_shared){3, 8, 0});
	put_write(&end, psn, SIZE - 8);
	while (expected_psn() == psn)
		make_progress();
	close_region(&end, fd, memory_fd);
	TEST_EQ(memory[0], 0);
	TEST_EQ(nb_malformed() - before, RTE_DIM(bad) + RTE_DIM(opcodes));
}

TEST(wire_shm, first_payload_in_a_region_is_shorter_than_its_message)
{
	struct rwire_ring_end end;
	int fd, memory_fd = open_region(&end, &fd, 0xcd);

	TEST_ASSERT(memory_fd >= 0);
	put_shared(&end, RWIRE_WRITE_FIRST, expected_psn(), (struct rwire_shared){3, SIZE, 0});
	while (((const struct rsoft_qp *)own.qp)->state != RMEM_QPS_ERR && memory[0] == 0)
		make_progress();
	close_region(&end, fd, memory_fd);
	TEST_EQ(memory[0], 0);
}

TEST(wire_shm, read_of_a_truncated_region_is_a_lost_packet)
{
	uint32_t psn = expected_psn();
	struct rwire_ring_end end;
	int fd, memory_fd = open_region(&end, &fd, 0xcd);

	TEST_ASSERT(memory_fd >= 0);
	TEST_EQ(ftruncate(memory_fd, 0), 0);
	put_shared(&end, RWIRE_WRITE_ONLY, psn, (struct rwire_shared){3, SIZE, 0});
	put_shared(&end, RWIRE_WRITE_ONLY, psn, (struct rwire_shared){3, 64, 0});
	put_write(&end, psn, SIZE - 8);
	while (expected_psn() == psn)
		make_progress();
	close_region(&end, fd, memory_fd);
	TEST_EQ(memory[0], 0);
	TEST_EQ(memory[SIZE - 1], 0xab);
}

TEST(wire_shm, region_of_the_wrong_kind_or_size_is_not_mapped)
{
	struct shm_region region = {.id = 1, .size = 4096};
	int fd, i, huge, fds[6], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct rwire_ring *ring;
	uint32_t uid;

	TEST_OK(rwire_shm_connect(name, &peer_address, &address, &fd, &ring, &uid, NULL));
	TEST_ASSERT(rwire_shm_pass_region(fd, &region, file));
	fds[0] = pass_region(fd, 1, 4096, 0);
	fds[1] = pass_region(fd, 1, 4096, 8192);
	fds[2] = pass_region(fd, 1, UINT64_C(1) << 40, UINT64_C(1) << 40);
	fds[3] = pass_region(fd, 64, 4096, 4096);
	/* A part of a page. */
	huge = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	if (huge >= 0 && ftruncate(huge, 1 << 30) == 0)
		TEST_ASSERT(rwire_shm_pass_region(fd, &(struct shm_region){2, 0, 4096}, huge));
	close(huge);
	/* A second one with its number. */
	fds[4] = pass_region(fd, 3, 4096, 4096);
	fds[5] = pass_region(fd, 3, 8192, 8192);
	TEST_ASSERT(rwire_shm_pass_region(fd, &(struct shm_region){.id = 4, .size = 8192}, fds[5]));
	wait_mapped(ring, 4);
	TEST_EQ(ring->mapped, 1 << 3 | 1 << 4);
	for (i = 0; i < 6; i++)
		close(fds[i]);
	close(file);
	close(fd);
	rwire_shm_unmap(ring);
}

TEST(wire_shm, message_with_two_descriptors_leaks_none)
{
	const struct shm_region region = {.id = 2, .size = 4096};
	struct shm_hello hello = make_hello(SHM_VERSION);
	int fd, memory_fd, expected = test_free_fd(), file = open("/dev/zero", O_RDWR | O_CLOEXEC);
	struct rwire_ring *ring;
	uint32_t uid;

	expect_refusal_of(&hello, sizeof(hello), file, 2, SHM_BAD_MEMORY);
	expect_refusal_of(&hello, 1, file, 2, SHM_BAD_VERSION);
	close(file);
	TEST_EQ(test_free_fd(), expected);
	TEST_OK(rwire_shm_connect(name, &peer_address, &address, &fd, &ring, &uid, NULL));
	memory_fd = pass_region(fd, 0, 4096, 4096);
	wait_mapped(ring, 0);
	expected = test_free_fd();
	TEST_EQ(send_fds(fd, &region, sizeof(region), 0, memory_fd, 2), sizeof(region));
	TEST_ASSERT(rwire_shm_pass_region(
			fd, &(struct shm_region){.id = 1, .size = 4096}, memory_fd));
	wait_mapped(ring, 1);
	TEST_EQ(ring->mapped, 1 << 0 | 1 << 1);
	TEST_EQ(test_free_fd(), expected);
	close(memory_fd);
	close(fd);
	rwire_shm_unmap(ring);
}

struct attack {
	struct rwire_ring *ring;
	uint32_t stop; /* atomic */
};

/* Change bytes of valid packets, lengths and numbers while the device receives them. */
static void *
attack_main(void *arg)
{
	struct attack *attack = arg;
	struct rwire_ring *ring = attack->ring;
	unsigned int seed = 7;

	while (__atomic_load_n(&attack->stop, __ATOMIC_RELAXED) == 0) {
		struct rwire_slot *slot = &ring->slot[(uint32_t)rand_r(&seed) % RWIRE_RING_SLOTS];
		volatile uint8_t *data = slot->data;

		data[(uint32_t)rand_r(&seed) % 64] = (uint8_t)rand_r(&seed);
		*(volatile uint16_t *)&slot->len = (uint16_t)rand_r(&seed);
		*(volatile uint16_t *)&slot->kind = (uint16_t)(rand_r(&seed) % 4);
		*(volatile uint32_t *)&slot->number += RWIRE_RING_SLOTS;
		ring->head = (uint32_t)rand_r(&seed);
	}
	return NULL;
}

TEST(wire_shm, peer_that_changes_its_ring_writes_nothing_without_a_key)
{
	struct rwire_ring_end end = {0};
	struct attack attack = {0};
	uint32_t uid, i, version = 0;
	pthread_t thread;
	int fd, region_fd;

	TEST_EQ(rmem_mr_dereg(own.mr), 0);
	own.mr = NULL;
	TEST_OK(rwire_shm_connect(name, &peer_address, &address, &fd, &end.ring, &uid, NULL));
	for (i = 0; i < RWIRE_RING_SLOTS; i++) {
		struct rwire_pkt pkt = {.opcode = (uint8_t)(i % RWIRE_OPCODE_NB),
				.qpn = own.qp->qp_num,
				.psn = expected_psn(),
				.addr = (uintptr_t)memory,
				.dma_len = 64,
				.payload_len = 64};

		(void)rwire_pkt_build(end.ring->slot[i].data, &pkt);
		end.ring->slot[i].len = 128;
		end.ring->slot[i].number = i + 1;
	}
	/* A part of the packets has a payload in a region, within or without it. */
	region_fd = pass_region(fd, 0, SIZE, SIZE);
	attack.ring = end.ring;
	TEST_EQ(pthread_create(&thread, NULL, attack_main, &attack), 0);
	for (i = 0; i < NB_POLLS; i++)
		make_progress();
	__atomic_store_n(&attack.stop, 1, __ATOMIC_RELAXED);
	TEST_EQ(pthread_join(thread, NULL), 0);
	/* The connection remains open: only the data was wrong. */
	TEST_ASSERT(recv(fd, &version, sizeof(version), MSG_DONTWAIT) < 0);
	close(fd);
	close(region_fd);
	rwire_shm_unmap(end.ring);
	for (i = 0; i < SIZE; i++)
		TEST_EQ(memory[i], 0);
	TEST_OK(rmem_mr_reg(own.pd, memory, SIZE, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE, &own.mr));
}

static void
sharer_connect(const struct sharer *from, const struct sharer *to, uint8_t traffic_class)
{
	const struct rmem_qp_conn conn = {
			.timeout = 10, .retry_cnt = 3, .traffic_class = traffic_class};

	rc_connect(from->qp, to->qp, conn);
}

static uint64_t
nb_sent(const struct sharer *of)
{
	struct rmem_dev_stats stats;

	TEST_OK(rmem_dev_stats_get(of->dev, &stats));
	return stats.wire_tx_packets;
}

/* WRITE all bytes with an immediate: the longest headers of a packet with a shared payload. */
static int
sharer_write(const struct sharer *from, const struct sharer *to)
{
	const struct rmem_sge sge = {
			.addr = from->mr->iova, .length = SIZE, .lkey = from->mr->lkey};
	const struct rmem_send_wr wr =
			rc_rdma(RMEM_WR_RDMA_WRITE_WITH_IMM, &sge, to->mr->iova, to->mr->rkey);
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_wc wc, received;

	TEST_EQ(rmem_post_recv(to->qp, &recv, 1), 1);
	TEST_EQ(rmem_post_send(from->qp, &wr, 1), 1);
	do
		(void)rmem_poll_cq(to->cq, &received, 1);
	while (rmem_poll_cq(from->cq, &wc, 1) == 0);
	return wc.status;
}

TEST(wire_shm, payload_in_a_region_has_any_traffic_class)
{
	/* Not rte_malloc(), which AddressSanitizer replaces by memory that EAL does not share. */
	const struct rte_memzone *mz = rte_memzone_reserve("wire_shm", SIZE, SOCKET_ID_ANY, 0);
	struct sharer from, to;
	uint8_t *bytes;
	uint64_t before, nb = 0;
	int i;

	TEST_ASSERT(mz != NULL);
	bytes = mz->addr;
	sharer_open(&from, "soft1", "127.0.16.3", ",loop=1", bytes);
	sharer_open(&to, "soft2", "127.0.16.4", ",loop=1", memory);
	sharer_connect(&from, &to, 4);
	sharer_connect(&to, &from, 0);
	/* Packets have the payload until the peer has mapped the region. */
	for (i = 0; i < NB_POLLS && nb != 1; i++) {
		memset(bytes, 1 + i % 255, SIZE);
		before = nb_sent(&from);
		TEST_STATUS(sharer_write(&from, &to), RMEM_WC_SUCCESS);
		TEST_MEM(memory, bytes, SIZE);
		nb = nb_sent(&from) - before;
	}
	TEST_EQ(nb, 1);
	sharer_close(&from);
	sharer_close(&to);
	TEST_OK(rte_memzone_free(mz));
}

TEST_SUITE(wire_shm, setup, teardown);
