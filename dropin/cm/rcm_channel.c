/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Event channels: their descriptors, and threads that wait for events.
 *
 * Invariant: channels[] and all channels are protected by rcm_lock(). A bit of rcm_channel_fds is
 * set if and only if channels[] has the descriptor; only the bits are read without the lock.
 * Invariant: nb_fds is the number of entries of a channel in channels[]; the channel is freed with
 * the last entry.
 * Invariant: a pointer to a channel is valid until the lock is released: afterwards
 * rcm_channel_of() may find that the program has closed the descriptor, and free the channel.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define CHECK_MIN 64

static struct rcm_channel **channels; /* by descriptor */
RMEM_ENV_KEPT uint64_t rcm_channel_fds[RCM_MAX_FDS / 64];
static RMEM_ENV_KEPT pid_t child; /* this child of fork(), which has the bits of its parent */
static int nb_marked;
static int check_at = CHECK_MIN; /* number of entries at which rcm_channel_open() checks all */
static pid_t owner;

/*
 * write() and close() of any descriptor read the bits without the lock (rcm_preload.c). A set bit
 * only leads to a check under the lock, where channels[] decides. The entry is stored before the
 * bit.
 */
static void
mark(int fd, struct rcm_channel *channel)
{
	uint64_t bit = UINT64_C(1) << (fd % 64);

	nb_marked += (channel != NULL) - (channels[fd] != NULL);
	channels[fd] = channel;
	if (channel != NULL)
		__atomic_or_fetch(&rcm_channel_fds[fd / 64], bit, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(&rcm_channel_fds[fd / 64], ~bit, __ATOMIC_RELEASE);
}

/* Whether the descriptor, possibly a duplicate, refers to the channel and not to another file. */
static bool
is_of(int fd, const struct rcm_channel *channel)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(fd, EPOLL_CTL_MOD, channel->event_fd, &event) == 0;
}

/* Free a channel that has no descriptor left. Its events are freed with their IDs. */
static void
channel_free(struct rcm_channel *channel)
{
	struct rcm_id *id;

	while ((id = TAILQ_FIRST(&channel->ids)) != NULL) {
		/* An ID of a request is freed with its listener, which is in this list too. */
		if (id->is_queued) {
			TAILQ_REMOVE(&channel->ids, id, of_channel);
			TAILQ_INSERT_TAIL(&channel->ids, id, of_channel);
		} else {
			rcm_destroy(id);
		}
	}
	rcm_events_forget(channel);
	if (rcm_agent_is_same_file(channel->event_fd)) {
		rcm_agent_unwatch(channel->event_fd);
		rcm_close(channel->event_fd);
	}
	free(channel);
}

static void
leave(int fd)
{
	struct rcm_channel *channel = channels[fd];
	int other;

	mark(fd, NULL);
	if (--channel->nb_fds == 0) {
		channel_free(channel);
		return;
	}
	/* The search ends: nb_fds counts the remaining entries. */
	for (other = 0; channels[other] != channel; other++)
		;
	channel->fd = other;
}

struct rcm_channel *
rcm_channel_of(int fd)
{
	struct rcm_channel *channel;

	if (channels == NULL || fd < 0 || fd >= RCM_MAX_FDS || channels[fd] == NULL)
		return NULL;
	channel = channels[fd];
	/*
	 * Check once each time the lock is taken. close() waits for the lock; a descriptor closed
	 * without close() is found the next time.
	 */
	if (channel->checked == rcm_nb_locked() && channel->checked_fd == fd)
		return channel;
	if (is_of(fd, channel)) {
		channel->checked = rcm_nb_locked();
		channel->checked_fd = fd;
		return channel;
	}
	/* The descriptor was closed without rcm_close(), for example by dup2(). */
	leave(fd);
	return NULL;
}

void
rcm_channels_check(void)
{
	int fd, left;

	for (fd = 0, left = nb_marked; left > 0 && fd < RCM_MAX_FDS; fd++) {
		left -= channels[fd] != NULL;
		(void)rcm_channel_of(fd);
	}
}

/*
 * Open the descriptors of a channel; 0 or a negative errno. The program gets an epoll descriptor,
 * which is readable when event_fd is, and which it may poll. is_of() recognises it, and its
 * duplicates with other numbers, by event_fd.
 */
static int
open_fds(struct rcm_channel *channel, int flags)
{
	struct epoll_event event = {.events = EPOLLIN};

	channel->fd = epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0);
	channel->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (channel->fd >= 0 && channel->event_fd >= 0 && channel->fd < RCM_MAX_FDS &&
			epoll_ctl(channel->fd, EPOLL_CTL_ADD, channel->event_fd, &event) == 0 &&
			rcm_agent_record(channel->event_fd) == 0 &&
			((flags & O_NONBLOCK) == 0 || fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0))
		return 0;
	if (channel->fd >= 0)
		rcm_close(channel->fd);
	if (channel->event_fd >= 0)
		rcm_close(channel->event_fd);
	return -EMFILE;
}

void
rcm_channels_forked(void)
{
	child = getpid();
}

bool
rcm_is_inherited(int fd)
{
	return child != 0 && child == getpid() && fd >= 0 && fd < RCM_MAX_FDS &&
			(rcm_channel_fds[fd / 64] >> (fd % 64) & 1) != 0 &&
			(channels == NULL || channels[fd] == NULL);
}

/*
 * Free channels that were closed without rcm_close(), once the number of entries has doubled since
 * the last check, because each check is a system call.
 */
static void
free_closed(void)
{
	if (nb_marked < check_at)
		return;
	rcm_channels_check();
	check_at = RTE_MAX(2 * nb_marked, CHECK_MIN);
}

static int
open_locked(int flags)
{
	struct rcm_channel *channel;
	int ret;

	free_closed();
	if (channels == NULL)
		channels = calloc(RCM_MAX_FDS, sizeof(struct rcm_channel *));
	channel = channels != NULL ? calloc(1, sizeof(*channel)) : NULL;
	if (channel == NULL)
		return -ENOMEM;
	TAILQ_INIT(&channel->events);
	TAILQ_INIT(&channel->ids);
	channel->nb_fds = 1;
	ret = open_fds(channel, flags);
	if (ret != 0) {
		free(channel);
		return ret;
	}
	owner = getpid();
	/* Free an old channel at this number, which must have been closed without rcm_close(). */
	(void)rcm_channel_of(channel->fd);
	mark(channel->fd, channel);
	return channel->fd;
}

int
rcm_channel_open(int flags)
{
	int fd, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rcm_lock();
	fd = open_locked(flags);
	rcm_unlock();
	pthread_setcancelstate(state, NULL);
	return fd < 0 ? ribv_minus_one(-fd) : fd;
}

bool
rcm_is_owner(void)
{
	return getpid() == owner;
}

int
rcm_is_channel(int fd)
{
	int ret;

	if (!rcm_is_owner())
		return 0;
	rcm_lock();
	ret = rcm_channel_of(fd) != NULL;
	rcm_unlock();
	return ret;
}

/*
 * Close the descriptor under the lock, so that a new channel can't get its number before its entry
 * is removed. In a child of vfork() only the child's descriptor is closed, and the parent's entry
 * remains.
 */
int
rcm_channel_close(int fd, rcm_close_t next)
{
	int ret, state;

	if (rcm_is_inherited(fd))
		__atomic_and_fetch(&rcm_channel_fds[fd / 64], ~(UINT64_C(1) << (fd % 64)),
				__ATOMIC_RELEASE);
	if (getpid() != owner)
		return next(fd);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rcm_lock();
	if (rcm_channel_of(fd) != NULL)
		leave(fd);
	ret = next(fd);
	rcm_unlock();
	pthread_setcancelstate(state, NULL);
	return ret;
}

/*
 * Recognise a duplicate of a channel's descriptor, for example by dup(), and add an entry for it.
 * Don't wait for the lock: the caller may be a signal handler that interrupted its holder.
 */
int
rcm_channel_adopt(int fd)
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

/* Copy the first event to the program's memory and remove it. */
static int
pop(struct rcm_channel *channel, const struct rcm_cmd *cmd)
{
	struct rcm_event *event = TAILQ_FIRST(&channel->events);
	int ret;

	/* Copy before removing: if the copy fails, the event stays first in the queue. */
	ret = rcm_respond(cmd, cmd->in.get_event.response, &event->resp,
			RTE_MIN(sizeof(event->resp), (size_t)cmd->out_len));
	if (ret != 0)
		return ret;
	(void)rcm_event_pop(channel);
	event->id->nb_reported++;
	if (event->mcast != NULL)
		rcm_mcast_reported(event->mcast);
	if (event->child != NULL) {
		event->child->is_queued = false;
		event->id->nb_requests--;
	}
	free(event);
	return 0;
}

/* Return the first event, or -EAGAIN if there is none; *is_blocking: the program waits for one. */
static int
get_event(int fd, const struct rcm_cmd *cmd, bool *is_blocking)
{
	struct rcm_channel *channel = rcm_channel_of(fd);

	if (channel == NULL)
		return -EBADF;
	/* Read messages that the agent has not read yet; this saves a thread switch. */
	if (TAILQ_EMPTY(&channel->events))
		(void)rcm_agent_run();
	if (!TAILQ_EMPTY(&channel->events))
		return pop(channel, cmd);
	*is_blocking = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
	return -EAGAIN;
}

/* Clean up after a thread that is cancelled while it leads. ThreadSanitizer ignores calls of a
 * thread whose poll() has not returned, so it misses the lock here and would report a race. */
static void
stop_leading(void *arg)
{
	rcm_lock();
	rcm_agent_unlead(*(uintptr_t *)arg);
	rcm_unlock();
}

/*
 * Wait without the lock for an event, or for work of the agent; 0 or a negative errno. The channel
 * may be freed and its descriptor reused during the wait, so get_event() looks the channel up again
 * and nothing of it is used here afterwards.
 */
static int
wait_event(int fd, int cancel_state)
{
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	uintptr_t number = rcm_agent_lead(&fds[1].fd);
	int ret, state;

	rcm_unlock();
	pthread_cleanup_push(stop_leading, &number);
	pthread_setcancelstate(cancel_state, &state);
	ret = poll(fds, RTE_DIM(fds), -1) < 0 ? -errno : 0;
	pthread_setcancelstate(state, NULL);
	pthread_cleanup_pop(0);
	rcm_lock();
	rcm_agent_unlead(number);
	return ret;
}

/*
 * Another thread has closed the channel during the wait. As in the kernel, this thread is not
 * woken: it waits for a signal, for its cancellation, or for the end of the program.
 */
static int
wait_closed(int cancel_state)
{
	int state;

	rcm_unlock();
	pthread_setcancelstate(cancel_state, &state);
	pause();
	pthread_setcancelstate(state, NULL);
	rcm_lock();
	return -EINTR;
}

int
rcm_get_event(int fd, const struct rcm_cmd *cmd)
{
	bool is_blocking = false;
	int ret;

	if (cmd->out_len < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	do {
		ret = get_event(fd, cmd, &is_blocking);
		if (ret == -EBADF && is_blocking)
			return wait_closed(cmd->cancel_state);
		if (ret != -EAGAIN || !is_blocking)
			return ret;
		ret = wait_event(fd, cmd->cancel_state);
	} while (ret == 0);
	return ret;
}

int
rcm_migrate_id(const struct rcm_cmd *cmd)
{
	struct rcm_channel *from = rcm_channel_of((int)cmd->in.migrate_id.fd);
	struct rcm_channel *to = cmd->channel;
	struct rcm_cmd source = {.channel = from};
	struct rdma_ucm_migrate_resp resp;
	struct rcm_events taken;
	struct rcm_event *event;
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
	/*
	 * Move the events in order, and the IDs of requests with their events: no event may refer
	 * to the old channel.
	 */
	rcm_events_take(id, &taken);
	rcm_id_move(id, to);
	while ((event = TAILQ_FIRST(&taken)) != NULL) {
		TAILQ_REMOVE(&taken, event, own);
		if (event->child != NULL)
			rcm_id_move(event->child, to);
		rcm_event_queue(to, event);
	}
	return 0;
}
