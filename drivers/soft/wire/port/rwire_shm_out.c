/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Channels to peers of port=shm; see rwire_shm_out.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../base/rsoft.h"
#include "../../base/rsoft_fork.h"
#include "rwire_shm_out.h"

#define SHM_REFUSED 1000 /* checks before a peer that refused is tried again */
#define SHM_STRANGE (-1) /* reason: the peer is of a user that this device refuses */
#define SHM_IDLE    100  /* checks before the pages of an empty ring are freed */
#define SHM_LOOKS   4    /* channels checked for an unused one */
#define SHM_SWEEP   64   /* and for the next one whose peer may have ended */

static_assert(RWIRE_RING_SLOTS / SHM_OUT_GROUP <= 32, "a bit for each group");

static void
shm_out_end(struct shm_out *out)
{
	struct rwire_ring *ring = out->end.ring;
	int state = rsoft_fork_begin();

	close(out->fd);
	out->fd = -1;
	rsoft_fork_end(state);
	rwire_maps_close(&out->peer.maps);
	out->end.ring = NULL;
	rwire_shm_unmap(ring);
}

static void
shm_out_close(struct shm_outs *outs, struct shm_out *out)
{
	rwire_copy_wait(&out->peer);
	shm_out_end(out);
	rwire_owners_put(outs->owners, &out->addr);
	rwire_shm_users_remove(&outs->users, out->uid);
}

/* Log a refusal, once until its reason changes. */
static void
shm_out_log(struct shm_outs *outs, struct shm_out *out, int reason, uint32_t number)
{
	char text[RWIRE_ADDR_TEXT];

	if (out->logged_reason == reason)
		return;
	out->logged_reason = reason;
	rwire_addr_text(&out->addr, text);
	if (reason == SHM_BAD_VERSION)
		RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: version %u (expected %u)",
				outs->name, text, number, SHM_VERSION);
	else if (reason == SHM_STRANGE)
		RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: process of user %u (expected %u)",
				outs->name, text, number,
				rwire_owners_get(outs->owners, &out->addr));
	else
		RSOFT_LOG(ERR, "port=shm:%s: peer %s refused: %s", outs->name, text,
				rwire_shm_reason_text(reason));
}

/* The user of the peer has as many channels as remain free. */
static void
shm_out_deny(struct shm_outs *outs, struct shm_out *out)
{
	char text[RWIRE_ADDR_TEXT];

	shm_out_end(out);
	rwire_owners_put(outs->owners, &out->addr);
	out->pause += SHM_REFUSED * outs->check_cycles;
	if (outs->is_share_logged)
		return;
	outs->is_share_logged = true;
	RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: user %u has its share of the channels",
			outs->name, rwire_addr_text(&out->addr, text), out->uid);
}

static void
shm_out_connect(struct shm_outs *outs, struct shm_out *out)
{
	char text[RWIRE_ADDR_TEXT];
	uint32_t uid = 0;
	int rc, fd, state;

	memset(&out->end, 0, sizeof(out->end));
	memset(&out->peer, 0, sizeof(out->peer));
	memset(&out->regions, 0, sizeof(out->regions));
	out->full_at = 0;
	out->ready = 0;
	out->empty_at = out->checked_at;
	out->empty_pos = 0;
	state = rsoft_fork_begin();
	rc = rwire_shm_connect(outs->name, &outs->addr, &out->addr, &fd, &out->end.ring, &uid,
			outs->owners);
	if (rc == 0)
		out->fd = fd;
	rsoft_fork_end(state);
	if (rc == 0) {
		out->uid = uid;
		rwire_copy_connect(&out->peer, rwire_shm_pid(fd), uid);
		out->peer.maps.is_refused = !outs->is_mapping;
		if (!rwire_shm_users_add(&outs->users, uid))
			shm_out_deny(outs, out);
	}
	if (rc == -EPERM)
		shm_out_log(outs, out, SHM_STRANGE, uid);
	if (rc != -ENOMEM || outs->is_memory_logged)
		return;
	outs->is_memory_logged = true;
	RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: no memory or file descriptor left",
			outs->name, rwire_addr_text(&out->addr, text));
}

/* Whether the peer still has its end of the connection. */
static bool
shm_out_is_alive(struct shm_outs *outs, struct shm_out *out)
{
	struct shm_hello hello;
	ssize_t n = recv(out->fd, &hello, sizeof(hello), MSG_DONTWAIT);

	/* A refusal may follow the error that reports unread doorbells. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(out->fd, &hello, sizeof(hello), MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(hello)) {
		shm_out_log(outs, out,
				hello.reason < SHM_REASON_NB ? (int)hello.reason : SHM_REASON_NB,
				hello.version);
		out->pause += SHM_REFUSED * outs->check_cycles;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/*
 * Free the pages of a ring that stays empty. The numbers of its slots are then zero, which must not
 * be the next number.
 */
static void
shm_out_trim(const struct shm_outs *outs, struct shm_out *out, uint64_t now)
{
	uint32_t pos = out->end.pos;

	if (pos != out->empty_pos ||
			pos != __atomic_load_n(&out->end.ring->head, __ATOMIC_ACQUIRE)) {
		out->empty_pos = pos;
		out->empty_at = now;
	} else if (out->ready != 0 && now - out->empty_at >= SHM_IDLE * outs->check_cycles &&
			pos < UINT32_MAX - RWIRE_RING_SLOTS && rwire_shm_trim(out->end.ring)) {
		out->ready = 0;
	}
}

struct rwire_slot *
rwire_shm_out_get(struct shm_out *out)
{
	struct rwire_slot *slot = rwire_ring_get(&out->end);
	uint32_t group = out->end.pos % RWIRE_RING_SLOTS / SHM_OUT_GROUP;

	if (likely((out->ready >> group & 1) != 0))
		return slot;
	/* Writing to a page that is not allocated could raise SIGBUS. */
	if (!rwire_shm_populate(out->end.ring, group * SHM_OUT_GROUP, SHM_OUT_GROUP))
		return NULL;
	out->ready |= UINT32_C(1) << group;
	return slot;
}

void
rwire_shm_out_check(struct shm_outs *outs, struct shm_out *out, uint64_t now)
{
	out->checked_at = now;
	out->pause = outs->check_cycles;
	if (out->fd >= 0 && !shm_out_is_alive(outs, out)) {
		if (rwire_maps_release(&out->peer.maps))
			shm_out_close(outs, out);
		else
			out->pause = 0; /* the next call continues */
		return;
	}
	if (out->fd < 0) {
		shm_out_connect(outs, out);
		return;
	}
	rwire_copy_check(&out->peer, &out->end.ring->direct);
	shm_out_trim(outs, out, now);
}

void
rwire_shm_outs_sweep(struct shm_outs *outs, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < RTE_MIN(outs->nb, SHM_SWEEP); i++) {
		struct shm_out *out = outs->out[outs->next++ % outs->nb];

		if (out->fd >= 0)
			rwire_shm_out_check(outs, out, now);
		if (out->fd >= 0)
			return;
	}
}

/* List of an address, hashed by its last bytes. */
static struct shm_out **
shm_outs_list(struct shm_outs *outs, const struct rwire_addr *addr)
{
	const uint8_t *gid = addr->gid;

	return &outs->list[(gid[15] ^ gid[14] ^ gid[13] ^ gid[7]) % SHM_OUT_LISTS];
}

struct shm_out *
rwire_shm_out_find(const struct shm_outs *outs, const struct rwire_addr *addr)
{
	struct shm_out *out = *shm_outs_list((struct shm_outs *)(uintptr_t)outs, addr);

	while (out != NULL && !rwire_addr_is_equal(&out->addr, addr))
		out = out->next;
	return out;
}

/* Find a channel whose peer has ended when all channels are connected; NULL if there is none. */
static struct shm_out *
shm_outs_clean(struct shm_outs *outs, const struct rwire_addr *addr, uint64_t now)
{
	struct shm_out *unused = NULL;
	char text[RWIRE_ADDR_TEXT];
	uint32_t i;

	/* Don't search for each dropped packet. */
	if (now - outs->cleaned_at < outs->check_cycles)
		return NULL;
	outs->cleaned_at = now;
	for (i = 0; i < outs->nb; i++) {
		rwire_shm_out_check(outs, outs->out[i], now);
		if (outs->out[i]->fd < 0)
			unused = outs->out[i];
	}
	if (unused == NULL && !outs->is_full_logged) {
		outs->is_full_logged = true;
		RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: channels to %u peers, which is the limit for this number of file descriptors (ulimit -n)",
				outs->name, rwire_addr_text(addr, text), outs->nb);
	}
	return unused;
}

/* Add a channel; NULL if there are as many as users may have, or no memory. */
static struct shm_out *
shm_outs_add(struct shm_outs *outs)
{
	struct shm_out *out;

	if (outs->nb == outs->max)
		return NULL;
	out = calloc(1, sizeof(*out));
	if (out == NULL)
		return NULL;
	out->fd = -1;
	outs->out[outs->nb] = out;
	/* A child of fork() closes the descriptors of the first nb. */
	__atomic_store_n(&outs->nb, outs->nb + 1, __ATOMIC_RELEASE);
	return out;
}

/* Find one among a few channels that is not connected and need not pause; NULL if there is none. */
static struct shm_out *
shm_outs_unused(struct shm_outs *outs, uint64_t now)
{
	struct shm_out *out;
	uint32_t i;

	for (i = 0; i < RTE_MIN(outs->nb, SHM_LOOKS); i++) {
		out = outs->out[outs->next_unused++ % outs->nb];
		if (out->fd < 0 && now - out->checked_at >= out->pause)
			return out;
	}
	return NULL;
}

/* Reuse a channel that is not connected for another address. */
static void
shm_out_rename(struct shm_outs *outs, struct shm_out *out, const struct rwire_addr *addr)
{
	const struct shm_out keep = {
			.fd = -1, .next_dirty = out->next_dirty, .is_dirty = out->is_dirty};
	struct shm_out **at;

	for (at = shm_outs_list(outs, &out->addr); *at != NULL; at = &(*at)->next) {
		if (*at == out) {
			*at = out->next;
			break;
		}
	}
	*out = keep;
	out->addr = *addr;
	at = shm_outs_list(outs, addr);
	out->next = *at;
	*at = out;
}

struct shm_out *
rwire_shm_out_of(struct shm_outs *outs, const struct rwire_addr *addr, uint64_t now)
{
	struct shm_out *out = rwire_shm_out_find(outs, addr);

	if (likely(out != NULL))
		return out;
	out = shm_outs_unused(outs, now);
	if (out == NULL)
		out = shm_outs_add(outs);
	if (out == NULL)
		out = shm_outs_clean(outs, addr, now);
	if (out != NULL)
		shm_out_rename(outs, out, addr);
	return out;
}

int
rwire_shm_outs_open(struct shm_outs *outs)
{
	rwire_shm_users_open(&outs->users);
	outs->max = outs->users.nb_free;
	outs->out = calloc(outs->max, sizeof(struct shm_out *));
	return outs->out == NULL ? -ENOMEM : 0;
}

void
rwire_shm_outs_close(struct shm_outs *outs)
{
	uint32_t i;

	for (i = 0; i < outs->nb; i++) {
		if (outs->out[i]->fd >= 0)
			shm_out_end(outs->out[i]);
		free(outs->out[i]);
	}
	free(outs->out);
	rwire_shm_users_close(&outs->users);
}
