/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Event channels: descriptors, queues of events, and waiting for them. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "rcm.h"
#include "ribv.h"

static struct rcm_channel **channels; /* by descriptor */
static uint64_t marked[RCM_MAX_FDS / 64];
static int nb_marked;
static pid_t owner; /* the process that has the channels, not its child of vfork() */

static void
mark(int fd, struct rcm_channel *channel)
{
	uint64_t bit = UINT64_C(1) << (fd % 64);

	nb_marked += (channel != NULL) - (channels[fd] != NULL);
	channels[fd] = channel;
	if (channel != NULL)
		__atomic_or_fetch(&marked[fd / 64], bit, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(&marked[fd / 64], ~bit, __ATOMIC_RELEASE);
}

int
rcm_watch(const struct rcm_channel *channel, int fd, uint32_t handle, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = handle};

	if (epoll_ctl(channel->fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	if (errno == EEXIST && epoll_ctl(channel->fd, EPOLL_CTL_MOD, fd, &event) == 0)
		return 0;
	return -errno;
}

void
rcm_unwatch(const struct rcm_channel *channel, int fd)
{
	epoll_ctl(channel->fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Whether the descriptor is that of the channel or a duplicate, and not another file. */
static bool
is_of(int fd, const struct rcm_channel *channel)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = RCM_WAKE};

	return epoll_ctl(fd, EPOLL_CTL_MOD, channel->event_fd, &event) == 0;
}

/*
 * Free a channel, of which no descriptor is left. If they were not closed by close(), the others of
 * the channel may not be open either, and their numbers those of other files.
 */
static void
channel_free(struct rcm_channel *channel, bool is_lost)
{
	struct rcm_event *event;
	uint32_t handle = 0;
	struct rcm_id *id;

	while ((id = rcm_id_next(&handle)) != NULL) {
		/* Those of requests are freed with the listening ID. */
		if (id->channel == channel && !id->is_queued) {
			id->fd = is_lost ? -1 : id->fd;
			rcm_id_free(id);
		}
		handle++;
	}
	while ((event = channel->first) != NULL) {
		channel->first = event->next;
		free(event);
	}
	if (!is_lost) {
		rcm_close(channel->event_fd);
		if (channel->timer_fd >= 0)
			rcm_close(channel->timer_fd);
	}
	free(channel);
}

static void
leave(int fd, bool is_lost)
{
	struct rcm_channel *channel = channels[fd];
	int other;

	mark(fd, NULL);
	if (--channel->nb_fds == 0) {
		channel_free(channel, is_lost);
		return;
	}
	for (other = 0; channels[other] != channel; other++)
		;
	channel->fd = other;
}

struct rcm_channel *
rcm_channel_of(int fd)
{
	if (channels == NULL || fd < 0 || fd >= RCM_MAX_FDS || channels[fd] == NULL)
		return NULL;
	if (is_of(fd, channels[fd]))
		return channels[fd];
	/* Closed without rcm_close(), as by dup2(). */
	leave(fd, true);
	return NULL;
}

static int
open_locked(int flags)
{
	struct rcm_channel *channel = calloc(1, sizeof(*channel));

	if (channels == NULL)
		channels = calloc(RCM_MAX_FDS, sizeof(struct rcm_channel *));
	if (channel == NULL || channels == NULL) {
		free(channel);
		return -ENOMEM;
	}
	channel->last = &channel->first;
	channel->nb_fds = 1;
	channel->timer_fd = -1;
	channel->fd = epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0);
	channel->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (channel->fd < 0 || channel->event_fd < 0 || channel->fd >= RCM_MAX_FDS ||
			rcm_watch(channel, channel->event_fd, RCM_WAKE, EPOLLIN) != 0 ||
			((flags & O_NONBLOCK) != 0 &&
					fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)) {
		if (channel->fd >= 0)
			rcm_close(channel->fd);
		if (channel->event_fd >= 0)
			rcm_close(channel->event_fd);
		free(channel);
		return -EMFILE;
	}
	if (channels[channel->fd] != NULL)
		leave(channel->fd, true);
	owner = getpid();
	mark(channel->fd, channel);
	return channel->fd;
}

static int
channel_open(int flags)
{
	int fd, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rcm_lock();
	fd = open_locked(flags);
	rcm_unlock();
	pthread_setcancelstate(state, NULL);
	return fd < 0 ? ribv_minus_one(-fd) : fd;
}

int
rcm_is_channel(int fd)
{
	int ret;

	if (getpid() != owner)
		return 0;
	rcm_lock();
	ret = rcm_channel_of(fd) != NULL;
	rcm_unlock();
	return ret;
}

static int
channel_close(int fd)
{
	int ret, state;

	if (getpid() != owner)
		return rcm_close(fd);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rcm_lock();
	if (rcm_channel_of(fd) != NULL)
		leave(fd, false);
	ret = rcm_close(fd);
	rcm_unlock();
	pthread_setcancelstate(state, NULL);
	return ret;
}

/* Called for each write() that fails with EINVAL, also by handlers of signals. */
static int
channel_adopt(int fd)
{
	int i, left, ret = 0;

	if (fd < 0 || fd >= RCM_MAX_FDS || getpid() != owner || !rcm_trylock())
		return 0;
	for (i = 0, left = nb_marked; left > 0 && ret == 0; i++) {
		if (channels[i] == NULL)
			continue;
		left--;
		if (is_of(fd, channels[i])) {
			channels[i]->nb_fds++;
			mark(fd, channels[i]);
			ret = 1;
		}
	}
	rcm_unlock();
	return ret;
}

const struct rcm_ops rcm_core_ops = {
		.open = channel_open,
		.write = rcm_write,
		.close = channel_close,
		.adopt = channel_adopt,
		.is_channel = rcm_is_channel,
		.fds = marked,
};

struct rcm_event *
rcm_event_new(struct rcm_id *id, enum rcm_event_type type, int status)
{
	struct rcm_event *event = calloc(1, sizeof(*event));

	if (event == NULL)
		return NULL;
	event->id = id;
	event->resp.uid = id->uid;
	event->resp.id = id->handle;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

void
rcm_event_queue(struct rcm_channel *channel, struct rcm_event *event)
{
	event->next = NULL;
	*channel->last = event;
	channel->last = &event->next;
	eventfd_write(channel->event_fd, 1);
}

void
rcm_event_post(struct rcm_id *id, enum rcm_event_type type, int status)
{
	struct rcm_event *event = rcm_event_new(id, type, status);

	if (event != NULL)
		rcm_event_queue(id->channel, event);
}

/* Remove the events of the ID from the queue, in order. */
static struct rcm_event *
events_take(struct rcm_id *id)
{
	struct rcm_channel *channel = id->channel;
	struct rcm_event *taken = NULL, **taken_last = &taken;
	struct rcm_event **at = &channel->first, *event;
	eventfd_t count;

	while ((event = *at) != NULL) {
		if (event->id != id) {
			at = &event->next;
			continue;
		}
		*at = event->next;
		event->next = NULL;
		*taken_last = event;
		taken_last = &event->next;
	}
	channel->last = at;
	if (channel->first == NULL)
		eventfd_read(channel->event_fd, &count);
	return taken;
}

void
rcm_events_drop(struct rcm_id *id)
{
	struct rcm_event *event = events_take(id), *next;

	for (; event != NULL; event = next) {
		next = event->next;
		if (event->child != NULL)
			rcm_id_free(event->child);
		free(event);
	}
}

uint64_t
rcm_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void
rcm_timer_set(struct rcm_channel *channel)
{
	struct itimerspec when = {0};
	const struct rcm_id *id;
	uint64_t first = 0;
	uint32_t handle = 0;

	for (; (id = rcm_id_next(&handle)) != NULL; handle++) {
		if (id->channel == channel && id->wake_ns != 0 &&
				(first == 0 || id->wake_ns < first))
			first = id->wake_ns;
	}
	if (first != 0 && channel->timer_fd < 0) {
		channel->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (channel->timer_fd >= 0)
			(void)rcm_watch(channel, channel->timer_fd, RCM_TIME, EPOLLIN);
	}
	when.it_value.tv_sec = (time_t)(first / 1000000000);
	when.it_value.tv_nsec = (long)(first % 1000000000);
	if (channel->timer_fd >= 0)
		timerfd_settime(channel->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Check the connections whose time has come. */
static void
run_timer(struct rcm_channel *channel)
{
	uint64_t now = rcm_now();
	uint32_t handle = 0;
	struct rcm_id *id;

	for (; (id = rcm_id_next(&handle)) != NULL; handle++) {
		if (id->channel == channel && id->wake_ns != 0 && id->wake_ns <= now)
			rcm_conn_time(id, now);
	}
	rcm_timer_set(channel);
}

/* Do what the ready descriptors of a channel need. */
static void
run_ready(struct rcm_channel *channel)
{
	struct epoll_event ready[16];
	struct rcm_id *id;
	int i, n = epoll_wait(channel->fd, ready, RTE_DIM(ready), 0);

	for (i = 0; i < n; i++) {
		if (ready[i].data.u32 == RCM_HUB)
			rcm_hub_run();
		else if (ready[i].data.u32 == RCM_TIME)
			run_timer(channel);
		else if (ready[i].data.u32 != RCM_WAKE &&
				(id = rcm_id_get(ready[i].data.u32)) != NULL)
			rcm_conn_ready(id);
	}
}

/* The first event, to the program's memory. */
static int
pop(struct rcm_channel *channel, const struct rcm_cmd *cmd)
{
	struct rcm_event *event = channel->first;
	eventfd_t count;
	int ret;

	ret = rcm_respond(cmd, cmd->in.get_event.response, &event->resp,
			RTE_MIN(sizeof(event->resp), (size_t)cmd->out_len));
	if (ret != 0)
		return ret;
	channel->first = event->next;
	if (channel->first == NULL) {
		channel->last = &channel->first;
		eventfd_read(channel->event_fd, &count);
	}
	event->id->nb_reported++;
	if (event->child != NULL) {
		event->child->is_queued = false;
		event->id->nb_requests--;
	}
	free(event);
	return 0;
}

/* An event, if there is one: -EAGAIN if not; *is_blocking: the program waits for one. */
static int
get_event(int fd, const struct rcm_cmd *cmd, bool *is_blocking)
{
	struct rcm_channel *channel = rcm_channel_of(fd);

	if (channel == NULL)
		return -EBADF;
	if (channel->first == NULL)
		run_ready(channel);
	if (channel->first != NULL)
		return pop(channel, cmd);
	*is_blocking = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
	return -EAGAIN;
}

int
rcm_get_event(int fd, const struct rcm_cmd *cmd)
{
	struct epoll_event event;
	bool is_blocking = false;
	int n, ret, state;

	if (cmd->out_len < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	for (;;) {
		rcm_lock();
		ret = get_event(fd, cmd, &is_blocking);
		rcm_unlock();
		if (ret != -EAGAIN || !is_blocking)
			return ret;
		pthread_setcancelstate(cmd->cancel_state, &state);
		n = epoll_wait(fd, &event, 1, -1);
		pthread_setcancelstate(state, NULL);
		if (n < 0)
			return -errno;
	}
}

int
rcm_migrate_id(const struct rcm_cmd *cmd)
{
	struct rcm_channel *from = rcm_channel_of((int)cmd->in.migrate_id.fd);
	struct rcm_channel *to = cmd->channel;
	struct rcm_cmd source = {.channel = from};
	struct rdma_ucm_migrate_resp resp;
	struct rcm_event *event, *next;
	struct rcm_id *id;
	int ret;

	if (from == NULL)
		return -EINVAL;
	id = rcm_id_of(&source, cmd->in.migrate_id.id, &ret);
	if (id == NULL)
		return ret;
	resp.events_reported = id->nb_reported;
	ret = rcm_respond(cmd, cmd->in.migrate_id.response, &resp, sizeof(resp));
	if (ret != 0 || from == to)
		return ret;
	event = events_take(id);
	rcm_conn_move(id, to);
	for (; event != NULL; event = next) {
		next = event->next;
		if (event->child != NULL)
			rcm_conn_move(event->child, to);
		rcm_event_queue(to, event);
	}
	return 0;
}
