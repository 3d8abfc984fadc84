/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Channels to the peers of port=shm; see rwire_shm_out.h. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../base/rsoft.h"
#include "rwire_shm_out.h"

#define SHM_REFUSED 1000 /* checks until a peer that refused is tried again */
#define SHM_STRANGE (-1) /* reason: the peer is of a user that this device refuses */

/* Each is cleared first: a child of fork() must not end it again. */
static void
shm_out_end(struct shm_out *out)
{
	struct rwire_ring *ring = out->end.ring;
	int fd = out->fd;

	out->fd = -1;
	close(fd);
	out->end.ring = NULL;
	rwire_shm_unmap(ring);
}

static void
shm_out_close(struct shm_outs *outs, struct shm_out *out)
{
	rwire_copy_wait(&out->peer);
	shm_out_end(out);
	rwire_owners_put(outs->owners, &out->addr);
}

/* Log a refusal, once until another one. */
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

/* As shm_has_share() of those from peers. */
static bool
shm_outs_has_share(const struct shm_outs *outs, uint32_t uid)
{
	uint32_t i, nb_free = SHM_MAX_PEERS, nb_used = 0;

	for (i = 0; i < outs->nb; i++) {
		nb_free -= outs->out[i].fd >= 0;
		nb_used += outs->out[i].fd >= 0 && outs->out[i].uid == uid;
	}
	return nb_free > (uid == geteuid() ? 0 : nb_used);
}

/* Its user has as many channels as remain free. */
static void
shm_out_deny(struct shm_outs *outs, struct shm_out *out)
{
	char text[RWIRE_ADDR_TEXT];

	shm_out_close(outs, out);
	out->pause += SHM_REFUSED * outs->check_cycles;
	if (outs->is_share_logged)
		return;
	outs->is_share_logged = true;
	RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: user %u has its share of the %u channels",
			outs->name, rwire_addr_text(&out->addr, text), out->uid, SHM_MAX_PEERS);
}

static void
shm_out_connect(struct shm_outs *outs, struct shm_out *out)
{
	char text[RWIRE_ADDR_TEXT];
	bool has_share = true;
	uint32_t uid = 0;
	int rc, fd;

	memset(&out->end, 0, sizeof(out->end));
	memset(&out->peer, 0, sizeof(out->peer));
	memset(&out->regions, 0, sizeof(out->regions));
	out->full_at = 0;
	rc = rwire_shm_connect(outs->name, &outs->addr, &out->addr, &fd, &out->end.ring, &uid,
			outs->owners);
	if (rc == 0) {
		has_share = shm_outs_has_share(outs, uid);
		out->fd = fd;
		out->uid = uid;
		rwire_copy_connect(&out->peer, rwire_shm_pid(fd), uid);
	}
	if (!has_share)
		shm_out_deny(outs, out);
	else if (rc == -EPERM)
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

	/* A refusal may follow the error that reports its unread doorbells. */
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

void
rwire_shm_out_check(struct shm_outs *outs, struct shm_out *out, uint64_t now)
{
	out->checked_at = now;
	out->pause = outs->check_cycles;
	if (out->fd >= 0 && !shm_out_is_alive(outs, out)) {
		shm_out_close(outs, out);
		return;
	}
	if (out->fd < 0)
		shm_out_connect(outs, out);
}

void
rwire_shm_outs_sweep(struct shm_outs *outs, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < outs->nb; i++) {
		struct shm_out *out = &outs->out[outs->next++ % outs->nb];

		if (out->fd >= 0)
			rwire_shm_out_check(outs, out, now);
		if (out->fd >= 0)
			return;
	}
}

/* All channels are connected: one whose peer has ended, or NULL. */
static struct shm_out *
shm_outs_clean(struct shm_outs *outs, const struct rwire_addr *addr, uint64_t now)
{
	struct shm_out *out, *unused = NULL;
	char text[RWIRE_ADDR_TEXT];

	/* Not for each packet that is dropped. */
	if (now - outs->cleaned_at < outs->check_cycles)
		return NULL;
	outs->cleaned_at = now;
	for (out = outs->out; out < outs->out + outs->nb; out++) {
		rwire_shm_out_check(outs, out, now);
		if (out->fd < 0)
			unused = out;
	}
	if (unused == NULL && !outs->is_full_logged) {
		outs->is_full_logged = true;
		RSOFT_LOG(ERR, "port=shm:%s: peer %s not reachable: channels to %u peers (limit %u)",
				outs->name, rwire_addr_text(addr, text), outs->nb, SHM_MAX_PEERS);
	}
	return unused;
}

struct shm_out *
rwire_shm_out_of(struct shm_outs *outs, const struct rwire_addr *addr, uint64_t now)
{
	struct shm_out *out, *unused = NULL;

	for (out = outs->out; out < outs->out + outs->nb; out++) {
		if (rwire_addr_is_equal(&out->addr, addr))
			return out;
		if (out->fd < 0)
			unused = out;
	}
	if (outs->nb < SHM_MAX_PEERS)
		unused = &outs->out[outs->nb++];
	if (unused == NULL)
		unused = shm_outs_clean(outs, addr, now);
	if (unused == NULL)
		return NULL;
	memset(unused, 0, sizeof(*unused));
	unused->addr = *addr;
	unused->fd = -1;
	return unused;
}

void
rwire_shm_outs_close(struct shm_outs *outs)
{
	uint32_t i;

	for (i = 0; i < outs->nb; i++) {
		if (outs->out[i].fd >= 0)
			shm_out_end(&outs->out[i]);
	}
}
