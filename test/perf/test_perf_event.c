/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Cost of an event of a completion channel: to arm, to generate, to get and to acknowledge it. */

#include <sys/eventfd.h>
#include <unistd.h>

#include <rmem_driver.h>

#include "perf_row.h"
#include "test.h"

#define EVENTS 20000u

struct event_job {
	struct perf_pair pair;
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq;
	int fd;
};

PERF_LOOP(run_eventfd, EVENTS, 1)
{
	struct event_job *job = arg;
	uint64_t value = 1;

	return write(job->fd, &value, sizeof(value)) != sizeof(value) ||
			read(job->fd, &value, sizeof(value)) != sizeof(value);
}

PERF_LOOP(run_event, EVENTS, 1)
{
	struct event_job *job = arg;
	struct rmem_cq *cq;

	if (rmem_cq_req_notify(job->cq, false) != 0)
		return -1;
	rmem_cq_notify(job->cq, false);
	if (rmem_comp_channel_get_event(job->channel, &cq, NULL) != 0)
		return -1;
	return rmem_cq_ack_events(cq, 1);
}

PERF_TEST(channel_event)
{
	struct perf_row row = PERF_ROW(
			"channel_event", "ns", "write and read of an eventfd", "ratio <= 1.5");
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
