/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rdma_cm: the work of a command does not grow with the number of channels, IDs and events. */

#include <sys/resource.h>

#include "../steps.h"
#include "cm_cmd.h"

#define ADDRESS      "127.0.29.9"
#define MANY         2048u
#define NB_HANDLES   8192u
#define MANY_FDS     320u /* channels, of two descriptors each */
#define FEW          16u
#define NB_CREATED   3
#define MAX_QPS      65536u /* of the device */
#define MEASUREMENTS 2

static uint32_t ids[NB_HANDLES];
static int nb_failed;
static int channel, closing;
static uint32_t id;

static void
open_channel(void)
{
	closing = cm_open();
}

static void
close_channel(void)
{
	HOLDS(close(closing) == 0);
}

static void
create(void)
{
	id = cm_create(channel, RDMA_PS_TCP);
}

static void
bind_any(void)
{
	HOLDS(cm_bind(channel, id, ADDRESS, 0) == 0);
}

static void
destroy(void)
{
	HOLDS(cm_destroy(channel, id) == 0);
}

/* The least of several measurements: the agent may have the lock in one of them. */
static uint64_t
least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* The work does not grow, as it did by the objects that were visited, MANY of them. */
static void
expect(const char *what, uint64_t few, uint64_t many)
{
	printf("%s: %llu instructions, with many %llu\n", what, (unsigned long long)few,
			(unsigned long long)many);
	HOLDS(few != UINT64_MAX);
	nb_failed += many > few + few / 2;
}

/* The work to open a channel, and to close one that has an ID. */
static void
measure_channel(uint64_t *opening, uint64_t *ending)
{
	int i;

	*opening = *ending = UINT64_MAX;
	for (i = 0; i < MEASUREMENTS; i++) {
		*opening = least(*opening, steps_of(open_channel));
		(void)cm_create(closing, RDMA_PS_TCP);
		*ending = least(*ending, steps_of(close_channel));
	}
}

static void
channels_are_independent(void)
{
	uint64_t few_open, few_close, many_open, many_close;
	static int fds[MANY_FDS];
	uint32_t i;

	for (i = 0; i < FEW; i++)
		fds[i] = cm_open();
	measure_channel(&few_open, &few_close);
	for (; i < MANY_FDS; i++)
		fds[i] = cm_open();
	measure_channel(&many_open, &many_close);
	expect("open a channel", few_open, many_open);
	/* A path is found without visiting the QPs, whose sums sysfs has. */
	HOLDS(few_open < MAX_QPS);
	expect("close a channel", few_close, many_close);
	for (i = 0; i < MANY_FDS; i++)
		HOLDS(close(fds[i]) == 0);
}

/* Of the IDs created after one was destroyed, the second has a handle above all others. */
static uint64_t
measure_create(void)
{
	uint32_t created[NB_CREATED];
	uint64_t nb, most = 0;
	int i;

	HOLDS(cm_destroy(channel, ids[0]) == 0);
	for (i = 0; i < NB_CREATED; i++) {
		nb = steps_of(create);
		most = nb > most ? nb : most;
		created[i] = id;
	}
	ids[0] = created[0];
	for (i = 1; i < NB_CREATED; i++)
		HOLDS(cm_destroy(channel, created[i]) == 0);
	return most;
}

/* The work to bind an ID to any port, and to destroy one that has an event. */
static void
measure_bound(uint64_t *binding, uint64_t *ending)
{
	int i;

	*binding = *ending = UINT64_MAX;
	for (i = 0; i < MEASUREMENTS; i++) {
		create();
		*binding = least(*binding, steps_of(bind_any));
		HOLDS(cm_resolve_addr(channel, id, ADDRESS, 1) == 0);
		*ending = least(*ending, steps_of(destroy));
	}
}

/* An ID that is bound, and has an event that the program has not got. */
static void
add(uint32_t i)
{
	ids[i] = cm_create(channel, RDMA_PS_TCP);
	HOLDS(cm_bind(channel, ids[i], ADDRESS, 0) == 0);
	HOLDS(cm_resolve_addr(channel, ids[i], ADDRESS, 1) == 0);
}

static void
ids_are_independent(void)
{
	uint64_t few_create, few_bind, few_destroy, many_create, many_bind, many_destroy;
	uint64_t opening, few_close, many_close;
	uint32_t i;

	channel = cm_open();
	for (i = 0; i < FEW; i++)
		add(i);
	few_create = least(measure_create(), measure_create());
	measure_bound(&few_bind, &few_destroy);
	measure_channel(&opening, &few_close);
	for (; i < MANY; i++)
		add(i);
	many_create = least(measure_create(), measure_create());
	measure_bound(&many_bind, &many_destroy);
	measure_channel(&opening, &many_close);
	expect("create an ID", few_create, many_create);
	expect("bind an ID", few_bind, many_bind);
	expect("destroy an ID", few_destroy, many_destroy);
	expect("close a channel", few_close, many_close);
	HOLDS(close(channel) == 0);
}

/* Handles are the lowest free ones, and each of them can be used. */
static void
handles_are_reused(void)
{
	uint32_t i, more;

	channel = cm_open();
	for (i = 0; i < NB_HANDLES; i++) {
		ids[i] = cm_create(channel, RDMA_PS_TCP);
		HOLDS(ids[i] == i);
	}
	for (i = 5; i < NB_HANDLES; i += 64)
		HOLDS(cm_destroy(channel, i) == 0);
	for (i = 5; i < NB_HANDLES; i += 64)
		HOLDS(cm_create(channel, RDMA_PS_TCP) == i);
	more = cm_create(channel, RDMA_PS_TCP);
	HOLDS(more == NB_HANDLES);
	HOLDS(close(channel) == 0);
}

int
main(void)
{
	struct rlimit limit;

	HOLDS(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (!STEPS_CAN_COUNT || limit.rlim_cur < 1024) {
		printf("skipped: needs x86-64 and 1024 descriptors\n");
		return 77;
	}
	handles_are_reused();
	channels_are_independent();
	ids_are_independent();
	HOLDS(nb_failed == 0);
	return 0;
}
