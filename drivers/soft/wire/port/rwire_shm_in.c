/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Channels from peers of port=shm; see rwire_shm_in.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_common.h>

#include "../../base/rsoft.h"
#include "../../base/rsoft_fork.h"
#include "rwire_shm_in.h"

#define SHM_EVENTS   64
#define SHM_BELLS    16  /* doorbells consumed per call */
#define SHM_AWAY     100 /* checks before the listener is used again, after it had no descriptor */
#define SHM_HELLO_MS 200 /* time for a connection to pass its ring */
#define SHM_CHECKS   64  /* channels checked per call */
#define SHM_BELLS_MS 16  /* services per millisecond while channels are asleep */
#define SHM_ASLEEP   UINT32_MAX
#define SHM_LISTENER UINT32_MAX /* epoll data of the listening socket */

/* Start polling a channel that has a ring. */
static void
shm_in_activate(struct shm_ins *ins, struct shm_in *in)
{
	if (in->active_at != SHM_ASLEEP)
		return;
	in->active_at = ins->nb_active;
	ins->active[ins->nb_active++] = in;
}

static void
shm_in_deactivate(struct shm_ins *ins, struct shm_in *in)
{
	struct shm_in *last;

	if (in->active_at == SHM_ASLEEP)
		return;
	last = ins->active[--ins->nb_active];
	ins->active[in->active_at] = last;
	last->active_at = in->active_at;
	in->active_at = SHM_ASLEEP;
}

static void
shm_in_close(struct shm_in *in)
{
	struct rwire_ring *ring = in->end.ring;
	int state = rsoft_fork_begin();

	close(in->fd);
	in->fd = -1;
	rsoft_fork_end(state);
	rwire_regions_unmap(&in->regions);
	in->end.ring = NULL;
	rwire_shm_unmap(ring);
}

static void
shm_in_free(struct shm_ins *ins, struct shm_in *in)
{
	bool is_held = in->is_held;

	in->is_held = false;
	if (in->direct != NULL)
		rsoft_grant_close(in->direct);
	shm_in_deactivate(ins, in);
	/* A child of this process may have a copy of the descriptor, which would stay watched. */
	(void)epoll_ctl(ins->epoll, EPOLL_CTL_DEL, in->fd, NULL);
	shm_in_close(in);
	if (is_held)
		rwire_owners_put(ins->owners, &in->addr);
	rwire_shm_users_remove(&ins->users, in->uid);
	in->next_free = ins->free;
	ins->free = in;
}

/* Get a free channel; NULL: no memory. The limits of users bound their number. */
static struct shm_in *
shm_in_new(struct shm_ins *ins)
{
	struct shm_in *in = ins->free;

	if (in == NULL && ins->nb < ins->max) {
		in = calloc(1, sizeof(*in));
		if (in == NULL)
			return NULL;
		in->number = ins->nb;
		ins->in[ins->nb++] = in;
	} else if (in != NULL) {
		ins->free = in->next_free;
	}
	return in;
}

/* Log the first refusal of each kind. */
static void
shm_log_refusal(struct shm_ins *ins, int reason, uint32_t version)
{
	if ((ins->logged_reasons & 1u << reason) != 0)
		return;
	ins->logged_reasons |= 1u << reason;
	if (reason == SHM_BAD_VERSION)
		RSOFT_LOG(ERR, "port=shm:%s: peer refused: version %u (expected %u)", ins->name,
				version, SHM_VERSION);
	else if (reason == SHM_NO_FILES)
		RSOFT_LOG(ERR, "port=shm:%s: peer not accepted: no file descriptor left",
				ins->name);
	else
		RSOFT_LOG(ERR, "port=shm:%s: peer refused: %s", ins->name,
				rwire_shm_reason_text(reason));
}

/* Stop watching the listener: without a free descriptor it stays readable, and would keep the
 * thread awake. */
static void
shm_ignore(struct shm_ins *ins, uint64_t now)
{
	shm_log_refusal(ins, SHM_NO_FILES, 0);
	ins->is_listener_off = epoll_ctl(ins->epoll, EPOLL_CTL_DEL, ins->listener, NULL) == 0;
	ins->listener_off_at = now;
}

static void
shm_listen_again(struct shm_ins *ins, uint64_t now)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = SHM_LISTENER};

	if (now - ins->listener_off_at >= SHM_AWAY * ins->check_cycles)
		ins->is_listener_off =
				epoll_ctl(ins->epoll, EPOLL_CTL_ADD, ins->listener, &event) != 0;
}

/* Add a channel of a user; false if the user may not have another one. */
static bool
shm_in_add(struct shm_ins *ins, int fd, uint32_t uid, uint64_t now)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct shm_in *in;

	if (!rwire_shm_users_add(&ins->users, uid))
		return false;
	in = shm_in_new(ins);
	if (in == NULL) {
		rwire_shm_users_remove(&ins->users, uid);
		return false;
	}
	*in = (struct shm_in){.number = in->number,
			.active_at = SHM_ASLEEP,
			.fd = fd,
			.uid = uid,
			.opened_at = now};
	event.data.u32 = in->number;
	if (epoll_ctl(ins->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
		return true;
	in->fd = -1;
	shm_in_free(ins, in);
	return false;
}

/* Accept a connection, and add its channel: as rwire_shm_accept(), or -ENOSPC if it is refused. */
static int
shm_accept(struct shm_ins *ins, uint64_t now)
{
	int fd, state = rsoft_fork_begin();
	uint32_t uid = 0;

	fd = rwire_shm_accept(ins->name, ins->listener, &uid);
	if (fd >= 0 && !shm_in_add(ins, fd, uid, now)) {
		rwire_shm_refuse(fd, SHM_NO_SPACE, &ins->addr);
		close(fd);
		fd = -ENOSPC;
	}
	rsoft_fork_end(state);
	return fd;
}

static void
shm_accept_all(struct shm_ins *ins, uint64_t now)
{
	unsigned int n;
	int fd;

	for (n = 0; n < SHM_CHECKS; n++) {
		fd = shm_accept(ins, now);
		if (fd == -EPERM)
			shm_log_refusal(ins, SHM_BAD_USER, 0);
		else if (fd == -ENOSPC)
			shm_log_refusal(ins, SHM_NO_SPACE, 0);
		else if (fd == -ENFILE)
			shm_ignore(ins, now);
		if (fd < 0 && fd != -EPERM && fd != -ENOSPC)
			return;
	}
}

/* Receive the ring of a new connection. */
static void
shm_in_open(struct shm_ins *ins, struct shm_in *in)
{
	uint32_t version = 0;
	int rc = rwire_shm_receive(in->fd, &in->addr, &in->end.ring, &version);

	if (rc == SHM_OK) {
		in->is_held = rwire_shm_may_claim(ins->name, in->fd, &in->addr, ins->owners);
		rc = in->is_held ? SHM_OK : SHM_BAD_USER;
	}
	if (rc == SHM_OK) {
		__atomic_store_n(&in->end.ring->accepts, ins->is_sharing, __ATOMIC_RELAXED);
		shm_in_activate(ins, in);
	}
	if (rc == SHM_OK || rc == -EAGAIN)
		return;
	if (rc > SHM_OK) {
		shm_log_refusal(ins, rc, version);
		rwire_shm_refuse(in->fd, rc, &ins->addr);
	}
	shm_in_free(ins, in);
}

/* Handle a readable connection: a ring, doorbells, regions, or its end. */
static void
shm_in_event(struct shm_ins *ins, struct shm_in *in)
{
	struct shm_region region;
	unsigned int i;
	ssize_t n = 1;
	int memory;

	if (in->end.ring == NULL) {
		shm_in_open(ins, in);
		return;
	}
	shm_in_activate(ins, in);
	for (i = 0; i < SHM_BELLS && n > 0; i++) {
		n = rwire_shm_next(in->fd, &region, &memory);
		if (memory >= 0 && ins->is_sharing)
			rwire_regions_map(&in->regions, in->end.ring, &region, memory);
		else if (memory >= 0)
			close(memory);
	}
	if (n > 0 || n == -EAGAIN)
		return;
	/* Packets sent before the peer ended are still received. */
	(void)epoll_ctl(ins->epoll, EPOLL_CTL_DEL, in->fd, NULL);
	in->is_closed = true;
	in->left = RWIRE_RING_SLOTS;
}

/* Whether a process of this user has taken over the address of a peer. */
static bool
shm_in_has_lost(const struct shm_ins *ins, const struct shm_in *in)
{
	return in->uid != ins->uid && ins->owners != NULL &&
			rwire_owners_get(ins->owners, &in->addr) != in->uid;
}

/*
 * Close connections whose peers stay silent, or have lost their address. A message may already
 * wait: a call handles few events, and the device may have got no CPU time.
 */
static void
shm_drop_invalid(struct shm_ins *ins, uint64_t now)
{
	struct shm_in *in;
	bool is_late;
	uint32_t i;

	for (i = 0; i < RTE_MIN(ins->nb, SHM_CHECKS); i++) {
		in = ins->in[ins->next++ % ins->nb];
		is_late = now - in->opened_at >= SHM_HELLO_MS * ins->check_cycles;
		if (in->fd >= 0 && in->end.ring == NULL && is_late)
			shm_in_open(ins, in);
		if (in->fd >= 0 && (in->end.ring != NULL ? shm_in_has_lost(ins, in) : is_late))
			shm_in_free(ins, in);
	}
}

/* Put channels without packets to sleep, if there are many channels. */
static void
shm_rest(struct shm_ins *ins, uint64_t now)
{
	uint32_t i;

	if (now - ins->rested_at < ins->check_cycles)
		return;
	ins->rested_at = now;
	for (i = ins->nb_active; i > 0 && ins->nb_active > SHM_IN_POLLED; i--) {
		struct shm_in *in = ins->active[i - 1];

		if (in->end.pos == in->seen_pos && !in->is_closed && rwire_ring_sleep(&in->end))
			shm_in_deactivate(ins, in);
		in->seen_pos = in->end.pos;
	}
}

/* Privileges were dropped: peers compare the connecting user with the listening one. */
static void
shm_follow_user(struct shm_ins *ins)
{
	uint32_t uid = geteuid();

	if (uid == ins->uid)
		return;
	ins->uid = uid;
	rwire_shm_listen_as(ins->listener);
}

void
rwire_shm_ins_service(struct shm_ins *ins, uint64_t now)
{
	struct epoll_event events[SHM_EVENTS];
	int i, n;

	shm_follow_user(ins);
	if (ins->is_listener_off)
		shm_listen_again(ins, now);
	n = epoll_wait(ins->epoll, events, SHM_EVENTS, 0);
	for (i = 0; i < n; i++) {
		if (events[i].data.u32 == SHM_LISTENER)
			shm_accept_all(ins, now);
		else
			shm_in_event(ins, ins->in[events[i].data.u32]);
	}
	ins->serviced_at = now;
	shm_drop_invalid(ins, now);
	shm_rest(ins, now);
	ins->pause = ins->check_cycles / (ins->nb_active < SHM_IN_POLLED ? 1 : SHM_BELLS_MS);
}

void
rwire_shm_ins_release(struct shm_ins *ins)
{
	uint32_t i;
	int state;

	/* The last channel is moved to the entry of a freed one. */
	for (i = ins->nb_active; i > 0; i--) {
		struct shm_in *in = ins->active[i - 1];

		rwire_ring_release(&in->end);
		if (likely(!in->is_closed) || (in->left != 0 && rwire_ring_is_ready(&in->end)))
			continue;
		state = rsoft_cancel_disable();
		shm_in_free(ins, in);
		rsoft_cancel_restore(state);
	}
}

int
rwire_shm_ins_open(struct shm_ins *ins, int listener)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = SHM_LISTENER};

	rwire_shm_users_open(&ins->users);
	ins->max = ins->users.nb_free;
	ins->listener = listener;
	ins->uid = geteuid();
	ins->in = calloc(ins->max, sizeof(struct shm_in *));
	ins->active = calloc(ins->max, sizeof(struct shm_in *));
	ins->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ins->in != NULL && ins->active != NULL && ins->epoll >= 0 &&
			epoll_ctl(ins->epoll, EPOLL_CTL_ADD, listener, &event) == 0)
		return 0;
	RSOFT_LOG(ERR, "port=shm: no channels: %s", strerror(errno));
	if (ins->epoll >= 0)
		close(ins->epoll);
	free(ins->active);
	free(ins->in);
	return -ENOMEM;
}

void
rwire_shm_ins_close(struct shm_ins *ins)
{
	uint32_t i;

	for (i = 0; i < ins->nb; i++) {
		if (ins->in[i]->fd >= 0)
			shm_in_close(ins->in[i]);
		free(ins->in[i]);
	}
	free(ins->active);
	free(ins->in);
	rwire_shm_users_close(&ins->users);
	close(ins->listener);
	close(ins->epoll);
}
