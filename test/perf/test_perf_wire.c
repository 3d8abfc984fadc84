/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Throughput of the wire between two devices, each polled by an lcore of its own: over shared
 * memory compared with memcpy, and over UDP sockets compared with the same packets without them.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sendmmsg() */
#endif
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "perf_floor.h"
#include "perf_two.h"
#include "perf_wire.h"
#include "test.h"

#define SINK      "wire_shm_two_sink_perf_autotest"  /* the second process */
#define HOST_SINK "wire_host_two_sink_perf_autotest" /* and with ip=host */
#define BURST     PERF_WIRE_BURST
#define MAX_POSTS 4u /* bursts in flight */
#define NB_RECVS  256u
#define NB_BUFS   16u
#define PORT      4790
#define WINDOW    64u /* packets of the bare sockets in flight, as on the wire */
#define HEADERS   16u /* BTH and ICRC */
#define RETH      16u

/* Poll b, and post receives again, until the end. */
static int
serve(void *arg)
{
	struct wire_job *job = arg;
	struct rmem_wc wc[BURST];
	uint32_t nb = 0;
	int i, n;

	while (__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE) == 0 && job->failure == 0) {
		n = rmem_poll_cq(job->pair.cq_b, wc, BURST);
		for (i = 0; i < n; i++) {
			if (wc[i].status != RMEM_WC_SUCCESS)
				job->failure = -1;
		}
		nb += n > 0 ? (uint32_t)n : 0;
		if (nb < BURST)
			continue;
		nb -= BURST;
		if (rmem_post_recv(job->pair.b, job->recv, BURST) != BURST)
			job->failure = -1;
	}
	return 0;
}

/* Post bursts, the last request of each signaled, and wait for all. */
static int
post_all(struct wire_job *job)
{
	uint32_t posted = 0, done = 0;
	struct rmem_wc wc;
	int n;

	while (done != job->nb_bursts) {
		if (posted != job->nb_bursts && posted - done < MAX_POSTS) {
			if (rmem_post_send(job->pair.a, job->wr, BURST) != BURST)
				return -1;
			posted++;
		}
		n = rmem_poll_cq(job->pair.cq_a, &wc, 1);
		if (n < 0 || (n == 1 && wc.status != RMEM_WC_SUCCESS))
			return -1;
		done += (uint32_t)n;
	}
	return 0;
}

static double
run_wire(void *arg)
{
	struct wire_job *job = arg;
	uint64_t start;
	int ret;

	__atomic_store_n(&job->stop, 0, __ATOMIC_RELEASE);
	if (rte_eal_remote_launch(serve, job, job->lcore) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	ret = post_all(job);
	start = rte_rdtsc_precise() - start;
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(job->lcore);
	return ret == 0 && job->failure == 0 ? perf_ns(start, (double)job->nb_bursts * BURST)
					     : -1.0;
}

static double
run_memcpy(void *arg)
{
	const struct wire_job *job = arg;
	uint64_t start = rte_rdtsc_precise();
	uint32_t burst, i;

	for (burst = 0; burst < job->nb_bursts; burst++) {
		for (i = 0; i < BURST; i++) {
			size_t offset = (size_t)i * job->size;

			memcpy((uint8_t *)job->dst->addr + offset,
					(uint8_t *)job->src->addr + offset, job->size);
		}
		rte_compiler_barrier();
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * BURST);
}

/* Messages of packets of one size. */
struct packets {
	struct mmsghdr msg[BURST];
	struct iovec iov[BURST];
	uint8_t data[BURST][8192];
};

static void
packets_init(struct packets *packets, uint32_t size)
{
	uint32_t i;

	memset(packets, 0, sizeof(*packets));
	for (i = 0; i < BURST; i++) {
		packets->iov[i].iov_base = packets->data[i];
		packets->iov[i].iov_len = size;
		packets->msg[i].msg_hdr.msg_iov = &packets->iov[i];
		packets->msg[i].msg_hdr.msg_iovlen = 1;
	}
}

static int
receive_packets(void *arg)
{
	struct wire_job *job = arg;
	static struct packets packets;
	uint64_t end = (uint64_t)job->nb_bursts * BURST, nb = 0;
	int n;

	packets_init(&packets, sizeof(packets.data[0]));
	while (nb != end) {
		n = recvmmsg(job->sockets[1], packets.msg, BURST, MSG_DONTWAIT, NULL);
		if (n > 0)
			__atomic_store_n(&job->received, nb += (uint64_t)n, __ATOMIC_RELEASE);
	}
	return 0;
}

/* The same packets, without acknowledgements: a counter in memory limits those in flight. */
static double
run_bare(void *arg)
{
	struct wire_job *job = arg;
	static struct packets packets;
	uint64_t end = (uint64_t)job->nb_bursts * BURST, sent = 0, start;
	int n;

	packets_init(&packets, job->packet);
	job->received = 0;
	if (rte_eal_remote_launch(receive_packets, job, job->lcore) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	while (sent != end) {
		while (sent - __atomic_load_n(&job->received, __ATOMIC_ACQUIRE) > WINDOW - BURST)
			rte_compiler_barrier();
		n = sendmmsg(job->sockets[0], packets.msg,
				(unsigned int)RTE_MIN(end - sent, (uint64_t)BURST), 0);
		sent += n > 0 ? (uint64_t)n : 0;
	}
	rte_eal_wait_lcore(job->lcore);
	return perf_ns(rte_rdtsc_precise() - start, (double)end);
}

static void
open_sockets(struct wire_job *job)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	const int size = 4 * 1024 * 1024;
	int i;

	TEST_EQ(inet_pton(AF_INET, "127.0.9.5", &in.sin_addr), 1);
	for (i = 0; i < 2; i++) {
		job->sockets[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		TEST_ASSERT(job->sockets[i] >= 0);
		(void)setsockopt(job->sockets[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	TEST_EQ(bind(job->sockets[1], (struct sockaddr *)&in, sizeof(in)), 0);
	TEST_EQ(connect(job->sockets[0], (struct sockaddr *)&in, sizeof(in)), 0);
}

/* Requests for the target of a, from the buffers of src. */
static void
fill_requests(struct wire_job *job, uint64_t iova, uint32_t rkey)
{
	uint32_t i;

	for (i = 0; i < BURST; i++) {
		uint64_t offset = (uint64_t)(i % NB_BUFS) * job->size;

		job->sge[i] = (struct rmem_sge){job->src->iova + offset, job->size, job->src->lkey};
		job->wr[i].sg_list = &job->sge[i];
		job->wr[i].num_sge = 1;
		job->wr[i].opcode = job->opcode;
		if (job->opcode == RMEM_WR_RDMA_WRITE || job->opcode == RMEM_WR_RDMA_READ) {
			job->wr[i].rdma.remote_addr = iova + offset;
			job->wr[i].rdma.rkey = rkey;
		}
	}
	job->wr[BURST - 1].flags = RMEM_SEND_SIGNALED;
}

void
perf_wire_open(struct wire_job *job, const char *args, const char *args_b)
{
	uint32_t i;

	job->lcore = perf_peer_lcore();
	job->sockets[0] = job->sockets[1] = -1;
	perf_pair_open_two(&job->pair, args, args_b);
	job->src = perf_mr(job->pair.pd, (size_t)job->size * NB_BUFS);
	job->dst = perf_mr(job->pair.pd_b, (size_t)job->size * NB_BUFS);
	fill_requests(job, job->dst->iova, job->dst->rkey);
	job->recv_sge = (struct rmem_sge){job->dst->iova, job->size, job->dst->lkey};
	for (i = 0; i < BURST; i++)
		job->recv[i] = (struct rmem_recv_wr){.sg_list = &job->recv_sge, .num_sge = 1};
	for (i = 0; i < NB_RECVS; i += BURST)
		TEST_EQ(rmem_post_recv(job->pair.b, job->recv, BURST), BURST);
}

static void
job_close(struct wire_job *job)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (job->sockets[i] >= 0)
			close(job->sockets[i]);
	}
	TEST_OK(rmem_mr_dereg(job->src));
	TEST_OK(rmem_mr_dereg(job->dst));
	perf_pair_close(&job->pair);
}

void
perf_wire_report(struct wire_job *job, perf_func_t yardstick, struct perf_row *row)
{
	perf_compare(row, yardstick, job, run_wire, job);
	row->ratio = row->baseline / row->value;
	perf_report(row);
	job_close(job);
}

PERF_TEST(wire_shm_write64k)
{
	static struct wire_job job = {
			.size = 65536, .nb_bursts = 100, .opcode = RMEM_WR_RDMA_WRITE};
	struct perf_row row = PERF_ROW("wire_shm_write64k", "ns", "memcpy", "ratio >= 0.6");

	perf_wire_open(&job, "ip=127.0.9.1,port=shm:perf,loop=1,share=1",
			"ip=127.0.9.2,port=shm:perf,loop=1,share=1");
	perf_wire_report(&job, run_memcpy, &row);
}

/* The same with a second process as the target. */
struct two_job {
	struct wire_job wire; /* for memcpy, dst is memory of this process */
	struct perf_two two;
};

static double
run_two(void *arg)
{
	struct two_job *job = arg;
	uint64_t start;
	int ret = perf_two_send(&job->two, PERF_TWO_GO);

	start = rte_rdtsc_precise();
	if (ret == 0)
		ret = post_all(&job->wire);
	start = rte_rdtsc_precise() - start;
	if (ret != 0 || perf_two_send(&job->two, PERF_TWO_STOP) != 0 ||
			perf_two_recv(&job->two) != PERF_TWO_DONE)
		return -1.0;
	return perf_ns(start, (double)job->wire.nb_bursts * BURST);
}

static void
serve_two(const char *args)
{
	struct perf_two two;
	struct rmem_mr *mr;
	struct rmem_wc wc;
	uint32_t i;

	perf_two_join(&two, args);
	mr = perf_mr(two.pair.pd, (size_t)65536 * NB_BUFS);
	perf_two_connect(&two, mr);
	while (perf_two_recv(&two) == PERF_TWO_GO) {
		for (i = 0; i % 1024 != 0 || !perf_two_is_called(&two); i++)
			TEST_EQ(rmem_poll_cq(two.pair.cq_a, &wc, 1), 0);
		TEST_EQ(perf_two_recv(&two), PERF_TWO_STOP);
		TEST_EQ(perf_two_send(&two, PERF_TWO_DONE), 0);
	}
	TEST_OK(rmem_mr_dereg(mr));
	perf_two_close(&two);
}

PERF_TEST(wire_shm_two_sink)
{
	serve_two("ip=127.0.9.2,port=shm:two,progress=poll,share=1");
}

PERF_TEST(wire_host_two_sink)
{
	serve_two("ip=host,progress=poll");
}

/* Only the check of the key, a fence for each burst, and the bytes. */
static struct perf_floor_key floor_keys[PERF_FLOOR_KEYS];

static double
run_floor(void *arg)
{
	const struct wire_job *job = arg;
	uint64_t start = rte_rdtsc_precise();
	uint32_t burst, i;

	for (burst = 0; burst < job->nb_bursts; burst++) {
		rte_smp_mb();
		for (i = 0; i < BURST; i++) {
			const struct rmem_send_wr *wr = &job->wr[i];
			uint8_t *near = (uint8_t *)(uintptr_t)wr->sg_list[0].addr;
			uint8_t *far = perf_floor_access(floor_keys, wr->rdma.rkey,
					wr->rdma.remote_addr, job->size, 1);
			bool is_read = wr->opcode == RMEM_WR_RDMA_READ;

			if (far == NULL)
				return -1.0;
			perf_floor_copy(is_read ? near : far, is_read ? far : near, job->size);
		}
		rte_compiler_barrier();
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * BURST);
}

/* To memory that is shared, like that of the other process. */
static void
report_floor(const struct perf_row *row, struct wire_job *job, uint64_t iova, uint32_t rkey)
{
	size_t size = (size_t)job->size * NB_BUFS;
	struct rmem_mr shared = {.iova = iova, .length = size};
	char name[64];
	struct perf_row of = PERF_ROW(name, row->unit, row->yardstick, "none");

	shared.addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(shared.addr != MAP_FAILED);
	memset(shared.addr, 0x5a, size);
	perf_floor_key_set(floor_keys, &shared, rkey);
	snprintf(name, sizeof(name), "%s_floor", row->name);
	perf_compare(&of, run_memcpy, job, run_floor, job);
	of.ratio = of.baseline / of.value;
	perf_report(&of);
	munmap(shared.addr, size);
}

/* Requests of one size to a second process. */
static void
compare_two_by(struct perf_row *row, const char *sink, const char *args, struct wire_job *of)
{
	struct two_job job = {.wire = *of};
	struct wire_job *wire = &job.wire;
	bool is_host = strcmp(sink, HOST_SINK) == 0;

	perf_peer_lcore();
	perf_two_open(&job.two, sink, args);
	wire->pair = job.two.pair;
	wire->src = perf_mr(wire->pair.pd, (size_t)wire->size * NB_BUFS);
	wire->dst = perf_mr(wire->pair.pd, (size_t)wire->size * NB_BUFS);
	perf_two_connect(&job.two, NULL);
	fill_requests(wire, job.two.peer.iova, job.two.peer.rkey);
	perf_compare(row, run_memcpy, wire, run_two, &job);
	row->ratio = row->baseline / row->value;
	perf_report(row);
	if (is_host)
		report_floor(row, wire, job.two.peer.iova, job.two.peer.rkey);
	TEST_OK(rmem_mr_dereg(wire->src));
	TEST_OK(rmem_mr_dereg(wire->dst));
	perf_two_close(&job.two);
}

static void
compare_two(const char *name, const char *bar, uint32_t size, uint32_t nb_bursts)
{
	struct perf_row row = PERF_ROW(name, "ns", "memcpy", bar);
	struct wire_job job = {.size = size, .nb_bursts = nb_bursts, .opcode = RMEM_WR_RDMA_WRITE};

	compare_two_by(&row, SINK, "ip=127.0.9.1,port=shm:two,progress=poll,share=1", &job);
}

/* The same by direct access to memory that both map. */
static void
compare_host(const char *name, const char *bar, uint8_t opcode, uint32_t size, uint32_t nb_bursts)
{
	struct perf_row row = PERF_ROW(name, "ns", "memcpy", bar);
	struct wire_job job = {.size = size, .nb_bursts = nb_bursts, .opcode = opcode};

	compare_two_by(&row, HOST_SINK, "ip=host,progress=poll", &job);
}

PERF_CALL(wire_shm_two_write64k, compare_two, "ratio >= 0.6", 65536, 100);

PERF_TEST(wire_shm_two_sizes)
{
	char name[32];
	uint32_t size;

	for (size = 8; size <= 65536; size *= 2) {
		snprintf(name, sizeof(name), "wire_shm_two_size_%u", size);
		compare_two(name, "none", size, size <= 4096 ? 1000 : 200);
	}
}

PERF_CALL(wire_host_two_write64k, compare_host, "ratio >= 0.95", RMEM_WR_RDMA_WRITE, 65536, 100);
PERF_CALL(wire_host_two_read64k, compare_host, "ratio >= 0.95", RMEM_WR_RDMA_READ, 65536, 100);

PERF_TEST(wire_host_two_sizes)
{
	char name[32];
	uint32_t size;

	for (size = 8; size <= 65536; size *= 2) {
		snprintf(name, sizeof(name), "wire_host_two_size_%u", size);
		compare_host(name, "none", RMEM_WR_RDMA_WRITE, size, size <= 4096 ? 1000 : 200);
	}
}

static void
compare_udp(struct wire_job *job, struct perf_row *row)
{
	perf_wire_open(job, "ip=127.0.9.3,loop=1", "ip=127.0.9.4,loop=1");
	open_sockets(job);
	perf_wire_report(job, run_bare, row);
}

PERF_TEST(wire_udp_send64_pps)
{
	static struct wire_job job = {.size = 64,
			.nb_bursts = 1000,
			.opcode = RMEM_WR_SEND,
			.packet = HEADERS + 64};
	struct perf_row row = PERF_ROW("wire_udp_send64_pps", "ns", "bare sockets", "ratio >= 0.7");

	compare_udp(&job, &row);
}

PERF_TEST(wire_udp_write4k)
{
	static struct wire_job job = {.size = 4096,
			.nb_bursts = 1000,
			.opcode = RMEM_WR_RDMA_WRITE,
			.packet = HEADERS + RETH + 4096};
	struct perf_row row = PERF_ROW("wire_udp_write4k", "ns", "bare sockets", "ratio >= 0.8");

	compare_udp(&job, &row);
}
