/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Cost of an event of a completion channel: to arm, to generate, to get and to acknowledge it. */

#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>

#include <rmem_driver.h>

#include "perf.h"
#include "test.h"

#define EVENTS 20000u

struct event_job {
	struct perf_pair pair;
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq;
	int fd;
};

/* Nanoseconds for a write and a read of an eventfd. */
static double
run_eventfd(void *arg)
{
	struct event_job *job = arg;
	uint64_t value = 1, begin = rte_rdtsc();
	unsigned int i;

	for (i = 0; i < EVENTS; i++) {
		if (write(job->fd, &value, sizeof(value)) != sizeof(value) ||
				read(job->fd, &value, sizeof(value)) != sizeof(value))
			return -1;
	}
	return perf_ns(rte_rdtsc() - begin, EVENTS);
}

/* Nanoseconds for an event. */
static double
run_event(void *arg)
{
	struct event_job *job = arg;
	uint64_t begin = rte_rdtsc();
	struct rmem_cq *cq;
	unsigned int i;

	for (i = 0; i < EVENTS; i++) {
		if (rmem_cq_req_notify(job->cq, false) != 0)
			return -1;
		rmem_cq_notify(job->cq, false);
		if (rmem_comp_channel_get_event(job->channel, &cq, NULL) != 0 ||
				rmem_cq_ack_events(cq, 1) != 0)
			return -1;
	}
	return perf_ns(rte_rdtsc() - begin, EVENTS);
}

static void
test_channel_event(void)
{
	struct perf_row row = {.name = "channel_event",
			.unit = "ns",
			.yardstick = "write and read of an eventfd",
			.bar = "ratio <= 1.5"};
	struct rmem_cq_conf conf = {.nb_cqe = 1};
	struct event_job job;

	perf_pair_open(&job.pair, NULL);
	TEST_OK(rmem_comp_channel_create(job.pair.dev, &job.channel));
	conf.channel = job.channel;
	TEST_OK(rmem_cq_create(job.pair.dev, &conf, &job.cq));
	job.fd = eventfd(0, EFD_CLOEXEC);
	TEST_ASSERT(job.fd >= 0);
	perf_measure(&row, run_eventfd, run_event, &job);
	close(job.fd);
	TEST_OK(rmem_cq_destroy(job.cq));
	TEST_OK(rmem_comp_channel_destroy(job.channel));
	perf_pair_close(&job.pair);
}

REGISTER_RMEM_TEST(channel_event_perf_autotest, test_channel_event);
