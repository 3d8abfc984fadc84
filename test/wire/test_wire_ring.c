/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The ring of port=shm delivers each packet once and in order between two threads, and a peer that
 * writes any bytes into it, at any time, causes no access out of bounds.
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "soft/wire/port/rwire_ring.h"

#include "../test.h"

#define NB_PACKETS 200000u
#define NB_HOSTILE 20000u /* packets */

struct ring_job {
	struct rwire_ring *ring;
	uint32_t stop; /* atomic */
	uint32_t pos;  /* of the reader; atomic */
};

/* A ring of its own allocation, so that a sanitizer finds accesses beyond it. */
static struct rwire_ring *
ring_alloc(void)
{
	struct rwire_ring *ring = NULL;

	if (posix_memalign((void **)&ring, RWIRE_RING_LINE, sizeof(*ring)) != 0)
		return NULL;
	memset(ring, 0, sizeof(*ring));
	return ring;
}

/* Packet n: its length, and its bytes. */
static uint32_t
packet_len(uint32_t n)
{
	return n % 3 == 0 ? RWIRE_MAX_PKT : 16 + n % 100;
}

static void *
write_packets(void *arg)
{
	struct ring_job *job = arg;
	struct rwire_ring_end end = {.ring = job->ring};
	struct rwire_slot *slot;
	uint32_t n;

	for (n = 0; n < NB_PACKETS; n++) {
		while ((slot = rwire_ring_get(&end)) == NULL)
			sched_yield();
		memset(slot->data, (uint8_t)n, 64);
		slot->data[packet_len(n) - 1] = (uint8_t)n;
		rwire_ring_put(&end, packet_len(n), n % 2 != 0);
	}
	return NULL;
}

static void
read_packets(struct rwire_ring *ring)
{
	struct rwire_ring_end end = {.ring = ring};
	struct rwire_slot *slot;
	uint32_t n, len = 0;

	for (n = 0; n < NB_PACKETS; n++) {
		while ((slot = rwire_ring_take(&end, &len)) == NULL) {
			rwire_ring_release(&end);
			sched_yield();
		}
		TEST_EQ(len, packet_len(n));
		TEST_EQ(slot->kind, n % 2);
		TEST_EQ(slot->data[0], (uint8_t)n);
		TEST_EQ(slot->data[len - 1], (uint8_t)n);
		if (n % 7 == 0)
			rwire_ring_release(&end);
	}
	TEST_ASSERT(!rwire_ring_is_ready(&end));
}

TEST(wire_ring, packets_arrive_once_and_in_order)
{
	struct ring_job job = {.ring = ring_alloc()};
	pthread_t writer;

	TEST_ASSERT(job.ring != NULL);
	TEST_EQ(pthread_create(&writer, NULL, write_packets, &job), 0);
	read_packets(job.ring);
	TEST_EQ(pthread_join(writer, NULL), 0);
	free(job.ring);
}

TEST(wire_ring, full_ring_refuses_packets_until_one_is_released)
{
	struct rwire_ring *ring = ring_alloc();
	struct rwire_ring_end writer = {.ring = ring}, reader = {.ring = ring};
	uint32_t i, len;

	TEST_ASSERT(ring != NULL);
	for (i = 0; i < RWIRE_RING_SLOTS; i++) {
		TEST_ASSERT(rwire_ring_get(&writer) != NULL);
		rwire_ring_put(&writer, 16, RWIRE_SLOT_PLAIN);
	}
	TEST_ASSERT(rwire_ring_get(&writer) == NULL);
	TEST_ASSERT(rwire_ring_take(&reader, &len) != NULL);
	TEST_ASSERT(rwire_ring_get(&writer) == NULL);
	rwire_ring_release(&reader);
	TEST_ASSERT(rwire_ring_get(&writer) != NULL);
	free(ring);
}

/* A doorbell for a reader that sleeps, one, and none for one that is awake. */
TEST(wire_ring, sleeping_reader_gets_one_doorbell)
{
	struct rwire_ring *ring = ring_alloc();
	struct rwire_ring_end writer = {.ring = ring}, reader = {.ring = ring};
	uint32_t len;

	TEST_ASSERT(ring != NULL);
	TEST_ASSERT(rwire_ring_get(&writer) != NULL);
	rwire_ring_put(&writer, 16, RWIRE_SLOT_PLAIN);
	TEST_ASSERT(!rwire_ring_must_wake(&writer));
	TEST_ASSERT(!rwire_ring_sleep(&reader));
	TEST_ASSERT(rwire_ring_take(&reader, &len) != NULL);
	TEST_ASSERT(rwire_ring_sleep(&reader));
	TEST_ASSERT(rwire_ring_must_wake(&writer));
	TEST_ASSERT(!rwire_ring_must_wake(&writer));
	free(ring);
}

/* Positions wrap at 2^32. */
TEST(wire_ring, ring_positions_wrap)
{
	struct rwire_ring *ring = ring_alloc();
	struct rwire_ring_end writer = {.ring = ring}, reader;
	uint32_t i, len;

	TEST_ASSERT(ring != NULL);
	ring->head = writer.pos = writer.head = UINT32_MAX - 5;
	for (i = 0; i < RWIRE_RING_SLOTS; i++) /* as if packets had been there */
		ring->slot[(writer.pos + i) % RWIRE_RING_SLOTS].number =
				writer.pos + i + 1 - RWIRE_RING_SLOTS;
	reader = writer;
	for (i = 0; i < 3 * RWIRE_RING_SLOTS; i++) {
		TEST_ASSERT(rwire_ring_get(&writer) != NULL);
		TEST_ASSERT(!rwire_ring_is_ready(&reader));
		rwire_ring_put(&writer, 16, RWIRE_SLOT_PLAIN);
		TEST_ASSERT(rwire_ring_take(&reader, &len) != NULL);
		rwire_ring_release(&reader);
	}
	free(ring);
}

/*
 * Change the ring as a hostile process may: each word atomically, as the test is one process. Most
 * of the numbers are those that the reader waits for.
 */
static void *
change_ring(void *arg)
{
	struct ring_job *job = arg;
	struct rwire_ring *ring = job->ring;
	unsigned int seed = 1;

	while (__atomic_load_n(&job->stop, __ATOMIC_RELAXED) == 0) {
		uint32_t pos = __atomic_load_n(&job->pos, __ATOMIC_RELAXED) +
				(uint32_t)rand_r(&seed) % 8;
		struct rwire_slot *slot = &ring->slot[pos % RWIRE_RING_SLOTS];
		uint32_t number = rand_r(&seed) % 8 == 0 ? (uint32_t)rand_r(&seed) : pos + 1;

		__atomic_store_n(&slot->len, (uint16_t)rand_r(&seed), __ATOMIC_RELAXED);
		__atomic_store_n(&slot->number, number, __ATOMIC_RELEASE);
		__atomic_store_n(&ring->head, (uint32_t)rand_r(&seed), __ATOMIC_RELEASE);
		__atomic_store_n(&ring->is_asleep, (uint32_t)rand_r(&seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void
check_slot(const struct rwire_ring *ring, const struct rwire_slot *slot)
{
	TEST_ASSERT(slot >= ring->slot && slot < ring->slot + RWIRE_RING_SLOTS);
	TEST_EQ(((uintptr_t)slot - (uintptr_t)ring->slot) % sizeof(*slot), 0);
}

/* Both ends of a ring whose words change: slots lie in the ring, lengths in the slots. */
TEST(wire_ring, hostile_peer_causes_no_access_out_of_bounds)
{
	struct ring_job job = {.ring = ring_alloc()};
	struct rwire_ring_end reader = {.ring = job.ring}, writer = {.ring = job.ring};
	uint8_t copy[RWIRE_MAX_PKT];
	struct rwire_slot *slot;
	struct rwire_pkt pkt;
	uint32_t len = 0, nb = 0;
	pthread_t peer;

	TEST_ASSERT(job.ring != NULL);
	TEST_EQ(pthread_create(&peer, NULL, change_ring, &job), 0);
	while (nb < NB_HOSTILE) {
		slot = rwire_ring_take(&reader, &len);
		if (slot != NULL) {
			nb++;
			check_slot(job.ring, slot);
			TEST_ASSERT(len <= RWIRE_MAX_PKT);
			memcpy(copy, slot->data, len);
			(void)rwire_pkt_parse(copy, len, &pkt);
			__atomic_store_n(&job.pos, reader.pos, __ATOMIC_RELAXED);
		} else {
			sched_yield();
		}
		rwire_ring_release(&reader);
		slot = rwire_ring_get(&writer);
		if (slot != NULL) {
			check_slot(job.ring, slot);
			rwire_ring_put(&writer, RWIRE_MAX_PKT, RWIRE_SLOT_PLAIN);
			(void)rwire_ring_must_wake(&writer);
		}
	}
	__atomic_store_n(&job.stop, 1, __ATOMIC_RELAXED);
	TEST_EQ(pthread_join(peer, NULL), 0);
	free(job.ring);
}

static void
setup(void)
{
}

TEST_SUITE(wire_ring, setup, setup);
