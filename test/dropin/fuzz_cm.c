/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A fuzzer of rdma_cm's commands: an input is a list of steps of a program, which writes commands
 * to several channels, with addresses and IDs that exist or not, and with lengths and pointers that
 * are valid or not. It duplicates and closes channels at any time. Its IDs connect to each other by
 * sockets of the host and, with a second device, by MADs.
 *
 * After each step the IDs of the library are those that the program knows from its responses and
 * events, a channel is readable if and only if it has an event, and no byte but those of the
 * response is changed. At the end no ID, connection, timer or descriptor is left.
 *
 * The agent's thread is not started, and the time is the fuzzer's: an input is repeatable.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "verbs/ribv.h"
#include "fuzz_cm.h"
#include "../wire/xorshift.h"

#define NS_PER_MS UINT64_C(1000000)

struct fuzz_cm fz;

/* Of libFuzzer. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t __attribute__((weak)) LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Open descriptors, except pipes: AddressSanitizer opens two at any time. */
static uint32_t
nb_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[8];
	uint32_t n = 0;
	ssize_t len;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));
		n += len > 0 && strncmp(target, "pipe:", 5) != 0;
	}
	closedir(dir);
	return n;
}

static void
run_agent(uint32_t n)
{
	for (; n != 0; n--) {
		rcm_lock();
		(void)rcm_agent_run();
		rcm_unlock();
	}
}

static void
forget(uint32_t handle)
{
	uint32_t i;

	CHECK(handle < MAX_IDS && fz.ids[handle].is_used);
	fz.ids[handle].is_used = false;
	fz.nb_ids--;
	for (i = 0; i < fz.nb_groups;) {
		if (fz.groups[i].id == handle)
			fz.groups[i] = fz.groups[--fz.nb_groups];
		else
			i++;
	}
}

static void
learn(uint32_t handle, uint8_t channel, uint64_t uid)
{
	CHECK(handle < MAX_IDS && !fz.ids[handle].is_used);
	fz.ids[handle] = (struct known){.is_used = true, .channel = channel, .uid = uid};
	fz.nb_ids++;
	fz.end_id = RTE_MAX(fz.end_id, handle + 1);
}

static struct known *
known_of(uint32_t handle)
{
	CHECK(handle < MAX_IDS && fz.ids[handle].is_used);
	return &fz.ids[handle];
}

static struct group *
group_of(uint32_t handle)
{
	uint32_t i;

	for (i = 0; i < fz.nb_groups && fz.groups[i].handle != handle; i++)
		;
	return i < fz.nb_groups ? &fz.groups[i] : NULL;
}

int
fuzz_cm_fd(uint32_t channel)
{
	const int *fds = fz.channels[channel].fds;

	return fds[0] >= 0 ? fds[0] : fds[1];
}

static void
channel_open(uint32_t channel)
{
	fz.channels[channel].fds[0] = rcm_core_ops.open(O_RDWR | O_CLOEXEC | O_NONBLOCK);
	CHECK(fz.channels[channel].fds[0] >= 0);
}

static void
forget_channel(uint32_t channel)
{
	uint32_t i;

	for (i = 0; i < fz.end_id; i++) {
		if (fz.ids[i].is_used && fz.ids[i].channel == channel)
			forget(i);
	}
}

/* Close a descriptor; with the last one, the channel. */
static void
channel_close(uint32_t channel, bool is_lost)
{
	int *fds = fz.channels[channel].fds;
	int *fd = fds[0] >= 0 ? &fds[0] : &fds[1];

	if (*fd < 0)
		return;
	CHECK((is_lost ? close(*fd) : rcm_core_ops.close(*fd, close)) == 0);
	*fd = -1;
	if (fuzz_cm_fd(channel) < 0)
		forget_channel(channel);
}

static void
step_lost(const struct step *step, uint32_t channel)
{
	channel_close(channel, true);
	/* A new channel may get the number. */
	if (step->value % 2 != 0 && fuzz_cm_fd(channel) < 0)
		channel_open(channel);
	rcm_lock();
	rcm_channels_check();
	rcm_unlock();
}

static void
step_copy(uint32_t channel)
{
	int *fds = fz.channels[channel].fds;

	if (fds[0] < 0 || fds[1] >= 0)
		return;
	fds[1] = dup(fds[0]);
	CHECK(fds[1] >= 0 && rcm_core_ops.adopt(fds[1]) != 0);
}

/* A request: its ID is new. It is counted for the listener, of which only the uid is known. */
static void
on_request(const struct rdma_ucm_event_resp *event, uint8_t channel)
{
	struct known *listener = NULL;
	uint32_t i, nb = 0;

	for (i = 0; i < fz.end_id; i++) {
		if (!fz.ids[i].is_used || fz.ids[i].channel != channel ||
				fz.ids[i].uid != event->uid)
			continue;
		listener = &fz.ids[i];
		listener->is_uncertain |= nb++ != 0;
	}
	CHECK(listener != NULL && event->status == 0);
	listener->nb_events++;
	for (i = 0; i < fz.end_id && nb > 1; i++)
		fz.ids[i].is_uncertain |= fz.ids[i].uid == event->uid;
	learn(event->id, channel, 0);
}

static void
on_event(const struct rdma_ucm_event_resp *event, uint8_t channel)
{
	struct group *group;
	struct known *id;

	CHECK(event->event < RTE_DIM(fz.nb_events));
	CHECK((int32_t)event->status > -4096 && (int32_t)event->status < 256);
	fz.nb_events[event->event]++;
	switch (event->event) {
	case RCM_CONNECT_REQUEST_EVENT:
		on_request(event, channel);
		return;
	case RCM_MULTICAST_JOIN_EVENT:
		group = group_of(event->id);
		CHECK(group != NULL && group->uid == event->uid);
		group->nb_events++;
		id = known_of(group->id);
		break;
	default:
		id = known_of(event->id);
		CHECK(id->uid == event->uid && id->uid != 0);
		break;
	}
	CHECK(id->channel == channel && event->event != RCM_CONNECT_ERROR_EVENT);
	id->nb_events++;
}

static uint32_t
answer32(const struct command *command)
{
	uint32_t value;

	CHECK(command->answer != NULL);
	memcpy(&value, command->answer, sizeof(value));
	return value;
}

static void
on_leave(const struct command *command, int err)
{
	struct group *group = group_of(command->in.destroy_id.id);

	CHECK(group != NULL && (err != 0 || answer32(command) == group->nb_events));
	*group = fz.groups[--fz.nb_groups];
}

static void
on_migrate(const struct command *command, uint8_t channel)
{
	struct known *id = known_of(command->in.migrate_id.id);

	CHECK(id->is_uncertain || answer32(command) == id->nb_events);
	id->channel = channel;
}

static void
on_join(uint64_t uid, uint32_t id, uint32_t handle, uint8_t channel)
{
	CHECK(known_of(id)->channel == channel && group_of(handle) == NULL &&
			fz.nb_groups < MAX_IDS);
	fz.groups[fz.nb_groups++] = (struct group){.handle = handle, .id = id, .uid = uid};
}

/* An ID is destroyed also if its response can't be written. */
static void
on_destroy(const struct command *command, uint8_t channel, int err)
{
	const struct known *id = known_of(command->in.destroy_id.id);

	CHECK(id->channel == channel);
	CHECK(err != 0 || id->is_uncertain || answer32(command) == id->nb_events);
	forget(command->in.destroy_id.id);
}

static void
on_success(const struct command *command, uint8_t channel)
{
	struct rdma_ucm_event_resp event = {.event = 0};

	switch (command->number) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		learn(answer32(command), channel, command->in.create_id.uid);
		break;
	case RDMA_USER_CM_CMD_DESTROY_ID:
		on_destroy(command, channel, 0);
		break;
	case RDMA_USER_CM_CMD_GET_EVENT:
		memcpy(&event, command->answer, RTE_MIN(sizeof(event), (size_t)command->out_len));
		on_event(&event, channel);
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		if (command->in.accept.conn_param.valid != 0)
			known_of(command->in.accept.id)->uid = command->in.accept.uid;
		break;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		on_join(command->in.join_ip_mcast.uid, command->in.join_ip_mcast.id,
				answer32(command), channel);
		break;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		on_join(command->in.join_mcast.uid, command->in.join_mcast.id, answer32(command),
				channel);
		break;
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		on_leave(command, 0);
		break;
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		on_migrate(command, channel);
		break;
	default:
		break;
	}
}

static void
run_command(struct command *command, const struct step *step, uint8_t channel, const uint8_t *bytes,
		uint32_t n)
{
	const bool is_resp = step->bad >= BAD_RESP_NULL && step->bad <= BAD_RESP_WILD;
	int err = fuzz_cm_write(fuzz_cm_fd(channel), command, step, bytes, n);

	if (command->number < STEP_DUE) {
		fz.nb_done[command->number] += err == 0;
		fz.nb_refused[command->number] += err != 0;
	}
	if (err == 0)
		on_success(command, channel);
	else if (err == EFAULT && is_resp && command->number == RDMA_USER_CM_CMD_DESTROY_ID)
		on_destroy(command, channel, err);
	else if (err == EFAULT && is_resp && command->number == RDMA_USER_CM_CMD_LEAVE_MCAST)
		on_leave(command, err);
}

static bool
has_event(uint8_t channel)
{
	struct pollfd one = {.fd = fuzz_cm_fd(channel), .events = POLLIN};

	run_agent(1);
	return poll(&one, 1, 0) == 1;
}

/* A command as its kind fills it. */
static void
step_command(const struct step *step, uint8_t channel, const uint8_t *bytes, uint32_t n)
{
	struct command command = {.number = step->kind % STEP_NB};
	uint32_t handle = fuzz_cm_pick(channel, step->bad == BAD_ID_OTHER, step->which);

	if (step->bad == BAD_ID_NONE)
		handle = step->value % 2 == 0 ? step->value : UINT32_MAX - step->value;
	if (command.number == STEP_DUE)
		command.number = has_event(channel) && step->value % 16 != 0
				? RDMA_USER_CM_CMD_GET_EVENT
				: fuzz_cm_due(handle, step->value);
	fuzz_cm_fill(&command, step, handle);
	run_command(&command, step, channel, bytes, n);
}

static void
step_raw(const struct step *step, uint8_t channel, const uint8_t *bytes, uint32_t n)
{
	struct command command = {
			.number = step->which % 32, .in_len = (uint16_t)n, .out_len = step->value};

	memcpy(command.bytes, bytes, n);
	run_command(&command, step, channel, NULL, 0);
}

static void
step_time(const struct step *step)
{
	static const uint32_t ms[] = {1, 5, 100, 1000, 4000, 20000, 60000, 600000};

	fuzz_cm_now += ms[step->what % RTE_DIM(ms)] * NS_PER_MS;
	run_agent(2);
}

static void
run_step(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	const uint8_t channel = (step->channel & 0x7f) % MAX_CHANNELS;

	switch (step->kind % STEP_NB) {
	case STEP_OPEN:
		if (fuzz_cm_fd(channel) < 0)
			channel_open(channel);
		break;
	case STEP_CLOSE:
		channel_close(channel, false);
		break;
	case STEP_LOST:
		step_lost(step, channel);
		break;
	case STEP_COPY:
		step_copy(channel);
		break;
	case STEP_RUN:
		run_agent(1);
		break;
	case STEP_DROP:
		fuzz_cm_drop(step->value);
		break;
	case STEP_FAULT:
		fuzz_cm_fault(step->what, step->value);
		break;
	case STEP_TIME:
		step_time(step);
		break;
	default:
		if (fuzz_cm_fd(channel) < 0)
			channel_open(channel);
		if (step->kind % STEP_NB == STEP_RAW)
			step_raw(step, channel, bytes, n);
		else
			step_command(step, channel, bytes, n);
		break;
	}
}

/* The IDs of the library are the known ones. */
static void
check_ids(void)
{
	struct rcm_channel *channels[MAX_CHANNELS];
	const struct rcm_id *id;
	uint32_t handle = 0, nb = 0, i;

	for (i = 0; i < MAX_CHANNELS; i++)
		channels[i] = rcm_channel_of(fuzz_cm_fd(i));
	for (; (id = rcm_id_next(&handle)) != NULL; handle++) {
		CHECK(id->handle == handle && id->state <= RCM_ENDED);
		if (id->is_queued)
			continue;
		CHECK(known_of(handle)->uid == id->uid);
		CHECK(channels[fz.ids[handle].channel] == id->channel);
		nb++;
	}
	CHECK(nb == fz.nb_ids);
}

static void
check(void)
{
	struct pollfd fds[MAX_CHANNELS];
	bool has_event[MAX_CHANNELS];
	const struct rcm_channel *channel;
	uint32_t i;

	rcm_lock();
	check_ids();
	for (i = 0; i < MAX_CHANNELS; i++) {
		channel = rcm_channel_of(fuzz_cm_fd(i));
		CHECK((channel != NULL) == (fuzz_cm_fd(i) >= 0));
		has_event[i] = channel != NULL && !TAILQ_EMPTY(&channel->events);
		fds[i] = (struct pollfd){.fd = fuzz_cm_fd(i), .events = POLLIN};
	}
	rcm_unlock();
	CHECK(poll(fds, MAX_CHANNELS, 0) >= 0);
	for (i = 0; i < MAX_CHANNELS; i++)
		CHECK((fds[i].revents == POLLIN) == has_event[i]);
}

/* The program closes its channels; time passes, and nothing is left. */
static void
end(void)
{
	uint32_t i, handle = 0;

	for (i = 0; i < 2 * MAX_CHANNELS; i++)
		channel_close(i / 2, false);
	for (i = 0; i < 64 && (i < 3 || rcm_mad_next() != IBCM_NEVER); i++) {
		fuzz_cm_now += 100000 * NS_PER_MS;
		run_agent(4);
	}
	check();
	CHECK(fz.nb_ids == 0 && fz.nb_groups == 0);
	CHECK(rcm_id_next(&handle) == NULL && rcm_mad_next() == IBCM_NEVER);
	CHECK(fuzz_cm == NULL || ibcm_nb_ids(fuzz_cm) == 0);
	CHECK(fz.nb_fds == 0 || nb_open() == fz.nb_fds);
}

/* An ID of TCP and one of UDP listen at an address, and two others resolve it. */
static void
begin(uint8_t addr)
{
	const struct step steps[] = {{.kind = RDMA_USER_CM_CMD_CREATE_ID},
			{.kind = RDMA_USER_CM_CMD_BIND_IP, .what = addr},
			{.kind = RDMA_USER_CM_CMD_LISTEN},
			{.kind = RDMA_USER_CM_CMD_CREATE_ID, .channel = 1},
			{.kind = RDMA_USER_CM_CMD_BIND_IP, .channel = 1, .what = addr},
			{.kind = RDMA_USER_CM_CMD_RESOLVE_IP, .channel = 1, .what = 1, .value = 1},
			{.kind = RDMA_USER_CM_CMD_CREATE_ID, .what = 3},
			{.kind = RDMA_USER_CM_CMD_BIND_IP, .which = 1, .what = addr},
			{.kind = RDMA_USER_CM_CMD_LISTEN, .which = 1},
			{.kind = RDMA_USER_CM_CMD_CREATE_ID, .channel = 1, .what = 3},
			{.kind = RDMA_USER_CM_CMD_BIND_IP, .channel = 1, .which = 1, .what = addr},
			{.kind = RDMA_USER_CM_CMD_RESOLVE_IP,
					.channel = 1,
					.which = 1,
					.what = 1,
					.value = 1}};
	uint32_t i;

	memset(fz.channels, 0xff, sizeof(fz.channels));
	fuzz_cm_wrap_reset();
	fz.last_uid = 0;
	fz.end_id = 0;
	for (i = 0; i < 2; i++)
		channel_open(i);
	for (i = 0; i < RTE_DIM(steps); i++)
		run_step(&steps[i], NULL, 0);
}

/* libibverbs is not used. */
static void (*no_function(const char *name))(void)
{
	RTE_SET_USED(name);
	return NULL;
}

/* Both devices have listened, so that they have their descriptors. */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t addr;

	RTE_SET_USED(argc);
	RTE_SET_USED(argv);
	CHECK(setenv("RMEM_IBV", "soft0|soft1,ip=" FUZZ_IP, 1) == 0);
	ribv_obj_init(no_function);
	CHECK(ribv_device(1) != NULL);
	fuzz_cm_memory();
	for (addr = 0; addr < 2; addr++) {
		begin(addr);
		end();
	}
	CHECK(fz.nb_done[RDMA_USER_CM_CMD_LISTEN] == 4);
	fz.nb_fds = nb_open();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;
	size_t at = 0, n;

	begin(size > 1 && data[1] >= 0x80);
	while (size - at >= sizeof(step)) {
		memcpy(&step, data + at, sizeof(step));
		step.bad %= BAD_NB;
		at += sizeof(step);
		n = RTE_MIN(step.len, size - at);
		run_step(&step, data + at, (uint32_t)n);
		at += n;
		fz.nb_steps++;
		check();
	}
	end();
	return 0;
}

/* Most steps are the ones for which an ID waits, and events. */
static size_t
draw_step(uint8_t *to, uint64_t *state)
{
	struct step step = {.kind = STEP_DUE,
			.channel = (uint8_t)(xorshift32(state) & 0x81),
			.which = (uint8_t)xorshift32(state),
			.what = (uint8_t)xorshift32(state),
			.value = (uint16_t)xorshift32(state)};
	uint32_t draw = xorshift32(state) % 16, i;

	if (draw < 2)
		step.kind = RDMA_USER_CM_CMD_GET_EVENT;
	else if (draw < 5)
		step.kind = (uint8_t)(xorshift32(state) % STEP_NB);
	if (xorshift32(state) % 8 == 0)
		step.bad = (uint8_t)(xorshift32(state) % BAD_NB);
	if (xorshift32(state) % 16 == 0)
		step.channel = (uint8_t)xorshift32(state);
	if (step.kind == STEP_RAW)
		step.len = (uint8_t)xorshift32(state);
	else if (xorshift32(state) % 16 == 0)
		step.len = (uint8_t)(1 + xorshift32(state) % 4);
	memcpy(to, &step, sizeof(step));
	for (i = 0; i < step.len; i++)
		to[sizeof(step) + i] = (uint8_t)xorshift32(state);
	return sizeof(step) + step.len;
}

/* Several: a connection takes more of them than an input of other fuzzers has. */
size_t
fuzz_step(uint8_t *to, uint64_t *state)
{
	size_t size = 0, i;

	for (i = 0; i < 4; i++)
		size += draw_step(to + size, state);
	return size;
}

/* Replace the end of an input by steps as they are likely, or change it anywhere. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	uint64_t state = xorshift_state(seed);
	uint8_t drawn[FUZZ_MAX_STEP];
	size_t n, nb_steps;

	if (xorshift32(&state) % 2 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	if (xorshift32(&state) % 2 == 0)
		size = size / sizeof(struct step) * (xorshift32(&state) % 256) / 256 *
				sizeof(struct step);
	for (nb_steps = 1 + xorshift32(&state) % 8; nb_steps != 0; nb_steps--) {
		n = fuzz_step(drawn, &state);
		if (size + n > max_size)
			break;
		memcpy(data + size, drawn, n);
		size += n;
	}
	return size;
}

/* Whether random inputs lead to events of the type. */
static bool
is_expected(uint32_t type)
{
	return type <= RCM_ROUTE_RESOLVED_EVENT || type == RCM_CONNECT_REQUEST_EVENT ||
			type == RCM_CONNECT_RESPONSE_EVENT ||
			(type >= RCM_UNREACHABLE_EVENT && type <= RCM_DISCONNECTED_EVENT) ||
			type == RCM_MULTICAST_JOIN_EVENT || type == RCM_TIMEWAIT_EXIT_EVENT;
}

/* Print what the inputs reached; 0 if it was each command, and each event but two. */
int
fuzz_report(void)
{
	uint32_t i;
	int ret = 0;

	printf("%" PRIu64 " steps\n", fz.nb_steps);
	for (i = 0; i < RTE_DIM(fz.nb_done); i++) {
		printf("command %u: %" PRIu64 ", refused %" PRIu64 "\n", i, fz.nb_done[i],
				fz.nb_refused[i]);
		ret |= fz.nb_done[i] == 0 && i != RDMA_USER_CM_CMD_GET_OPTION;
	}
	for (i = 0; i < RTE_DIM(fz.nb_events); i++) {
		printf("event %u: %" PRIu64 "\n", i, fz.nb_events[i]);
		ret |= is_expected(i) && fz.nb_events[i] == 0;
	}
	return ret;
}

void
fuzz_close(void)
{
}
