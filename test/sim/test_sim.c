/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The simulator agrees with what can be computed without it: the rate of a link, the packets that
 * go-back-N sends again, the time of its timer. sim_run() checks in each run that no packet and no
 * byte is lost.
 */

#include <inttypes.h>
#include <string.h>

#include "../test.h"
#include "sim_flow.h"
#include "soft/wire/rwire.h"

#define MS UINT64_C(1000000)

/* The packet that is lost once. */
static struct {
	uint32_t psn;
	bool is_back;
	bool is_lost;
} chosen;

static bool
is_chosen(const struct net_packet *packet)
{
	if (chosen.is_lost || packet->psn != chosen.psn || packet->is_back != chosen.is_back)
		return false;
	chosen.is_lost = true;
	return true;
}

/* Write one message of so many packets, of which one is lost. */
static void
lose(uint32_t nb_packets, uint32_t at, bool is_back, struct sim_result *result)
{
	struct sim_conf conf = sim_conf(SIM_INCAST, 2);

	conf.msg_size = nb_packets * conf.mtu;
	conf.depth = 1;
	conf.nb_msgs = 1;
	conf.net.is_chosen = is_chosen;
	memset(&chosen, 0, sizeof(chosen));
	chosen.psn = rwire_psn_add(SIM_FIRST_PSN, at);
	chosen.is_back = is_back;
	sim_run(&conf, result);
	TEST_EQ(result->counts.lost, 1);
	TEST_EQ(result->nb_checked, 1);
	TEST_EQ(result->nb_failed, 0);
}

TEST(sim, lost_packet_and_those_after_it_are_sent_again)
{
	static const uint32_t lengths[] = {2, 16, 33, SIM_WINDOW};
	struct sim_result result;
	uint32_t at, resent;
	bool is_last;
	size_t i;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		for (at = 0; at < lengths[i]; at++) {
			lose(lengths[i], at, false, &result);
			is_last = at + 1 == lengths[i];
			/* A NAK acknowledges the packets before the gap. After the last packet no
			 * other one shows the gap, and the timer repeats one packet, which the
			 * responder has or not. */
			resent = is_last ? 1 + (at % RWIRE_ACK_EVERY != 0) : lengths[i] - at;
			TEST_EQ(result.resent, resent);
			TEST_EQ(result.sent, lengths[i] + resent);
			TEST_EQ(result.timeouts, is_last);
			TEST_EQ(result.rewinds, 1);
		}
	}
}

/* Each 16th packet requests an acknowledgement. */
TEST(sim, lost_last_acknowledgement_repeats_one_packet)
{
	struct sim_result result;

	lose(RWIRE_ACK_EVERY, RWIRE_ACK_EVERY - 1, true, &result);
	TEST_EQ(result.resent, 1);
	TEST_EQ(result.timeouts, 1);
	lose(2 * RWIRE_ACK_EVERY, 2 * RWIRE_ACK_EVERY - 1, true, &result);
	TEST_EQ(result.resent, 1);
	TEST_EQ(result.timeouts, 1);
	/* The next one acknowledges its packets too. */
	lose(2 * RWIRE_ACK_EVERY, RWIRE_ACK_EVERY - 1, true, &result);
	TEST_EQ(result.resent, 0);
	TEST_EQ(result.timeouts, 0);
}

/*
 * A packet needs 0.9 us on each of two links and 1 us of latency for each, 16 packets 17 us; a NAK
 * 3 us.
 */
TEST(sim, lost_packet_costs_a_round_trip_and_the_last_one_a_timeout)
{
	struct sim_result result;
	uint32_t at;

	for (at = 0; at < RWIRE_ACK_EVERY; at++) {
		lose(RWIRE_ACK_EVERY, at, false, &result);
		test_note("packet %u of 16 lost: %" PRIu64 " ns", at, result.done_ns);
		if (at + 1 < RWIRE_ACK_EVERY)
			TEST_ASSERT(result.done_ns > 20000 && result.done_ns < 60000);
		else
			TEST_ASSERT(result.done_ns > 67 * MS && result.done_ns < 68 * MS);
	}
}

static void
run_clean(enum sim_pattern pattern, uint32_t nb_hosts, bool is_read, bool is_model)
{
	struct sim_conf conf = sim_conf(pattern, nb_hosts);
	struct sim_result result;

	conf.duration_ns = 20 * MS;
	conf.is_read = is_read;
	conf.is_model = is_model;
	sim_run(&conf, &result);
	test_note("%u hosts: %.2f Gbit/s, %.2f %%, Jain %.4f", nb_hosts, result.goodput,
			100 * result.share, result.jain);
	TEST_ASSERT(result.share >= 0.95 && result.share <= 1);
	TEST_ASSERT(result.jain >= 0.999);
	TEST_EQ(result.resent, 0);
	TEST_EQ(result.timeouts, 0);
	TEST_EQ(result.counts.sent, result.counts.delivered);
	TEST_ASSERT(is_model || result.nb_checked != 0);
}

TEST(sim, flows_without_loss_reach_the_rate_of_the_links)
{
	run_clean(SIM_INCAST, 2, false, false);
	run_clean(SIM_RING, 10, false, false);
	run_clean(SIM_RING, 10, true, false);
	run_clean(SIM_RING, 10, false, true);
	/* The windows of three flows fit in the queue of the switch. */
	run_clean(SIM_INCAST, 4, false, false);
	run_clean(SIM_INCAST, 4, false, true);
}

static void
run_bad(uint64_t seed, bool is_model, struct sim_result *result)
{
	struct sim_conf conf = sim_conf(SIM_INCAST, 20);

	conf.duration_ns = 20 * MS;
	conf.timeout = 8;
	conf.is_model = is_model;
	conf.net.seed = seed;
	conf.net.loss = 0.01;
	conf.net.reorder = 0.01;
	conf.net.reorder_ns = 10000;
	sim_run(&conf, result);
	TEST_ASSERT(result->counts.lost != 0 && result->counts.queue != 0);
	TEST_ASSERT(result->resent != 0 && result->timeouts != 0);
}

TEST(sim, seed_repeats_a_run)
{
	struct sim_result first, second, other;
	int i;

	for (i = 0; i < 2; i++) {
		run_bad(1, i == 1, &first);
		run_bad(1, i == 1, &second);
		run_bad(2, i == 1, &other);
		TEST_MEM(&first, &second, sizeof(first));
		TEST_ASSERT(first.counts.events != other.counts.events);
	}
}

TEST(sim, selective_repeat_sends_only_lost_packets_again)
{
	struct sim_conf conf = sim_conf(SIM_INCAST, 2);
	struct sim_result result;

	conf.is_model = true;
	conf.msg_size = conf.mtu * SIM_WINDOW;
	conf.nb_msgs = 1;
	conf.net.is_chosen = is_chosen;
	memset(&chosen, 0, sizeof(chosen));
	chosen.psn = 20;
	sim_run(&conf, &result);
	TEST_EQ(result.counts.lost, 1);
	TEST_EQ(result.resent, 1);
	TEST_EQ(result.sent, SIM_WINDOW + 1);
	TEST_EQ(result.acked, SIM_WINDOW);
	TEST_EQ(result.timeouts, 0);
}

/* A flap of the link of a host that all send to. */
static void
run_flap(uint64_t ms, struct sim_result *result)
{
	struct sim_conf conf = sim_conf(SIM_INCAST, 4);

	conf.timeout = 10; /* 4.2 ms */
	conf.net.down_ns = 5 * MS;
	conf.net.up_ns = (5 + ms) * MS;
	conf.duration_ns = conf.net.up_ns + 50 * MS;
	sim_run(&conf, result);
	TEST_ASSERT(result->counts.down != 0);
	test_note("down for %" PRIu64 " ms: all flows after %" PRIu64 " us, %u failed", ms,
			result->up_last_ns / 1000, result->nb_failed);
}

TEST(sim, flows_continue_within_a_timeout_of_a_link_flap)
{
	static const uint64_t lengths_ms[] = {1, 10, 28};
	struct sim_result result;
	size_t i;

	for (i = 0; i < RTE_DIM(lengths_ms); i++) {
		run_flap(lengths_ms[i], &result);
		TEST_EQ(result.nb_failed, 0);
		TEST_EQ(result.nb_not_up, 0);
		TEST_ASSERT(result.up_last_ns <= 6 * MS);
	}
	/* Longer than all timeouts, and a quarter of each. */
	run_flap(45, &result);
	TEST_EQ(result.nb_failed, 3);
	TEST_EQ(result.nb_not_up, 3);
}

/* The windows of all hosts exceed the queue of the switch by far. */
static void
run_incast(uint32_t nb_hosts, uint8_t timeout, uint64_t ms, struct sim_result *result)
{
	struct sim_conf conf = sim_conf(SIM_INCAST, nb_hosts);

	conf.timeout = timeout;
	conf.duration_ns = ms * MS;
	sim_run(&conf, result);
	test_note("%u hosts, timeout %u: %.1f %% of the link, %.1f %% sent again, Jain %.3f, %u failed",
			nb_hosts, timeout, 100 * result->share,
			100 * (double)result->resent / (double)result->sent, result->jain,
			result->nb_failed);
}

TEST(sim, incast_of_many_hosts_is_fair_and_fails_none)
{
	struct sim_result result;

	run_incast(100, 10, 300, &result);
	TEST_EQ(result.nb_failed, 0);
	TEST_ASSERT(result.jain >= 0.9);
	TEST_ASSERT(result.share >= 0.7);
	TEST_ASSERT(result.resent * 100 < result.sent * 35);
}

/* More hosts than packets that the queue holds: one packet of each is too much. */
TEST(sim, hosts_that_lose_packets_together_do_not_send_together)
{
	struct sim_result result;

	run_incast(600, 12, 200, &result);
	TEST_ASSERT(result.nb_failed * 50 < result.nb_flows);
	TEST_ASSERT(result.share >= 0.7);
}

static void
setup(void)
{
}

TEST_SUITE(sim, setup, setup);
