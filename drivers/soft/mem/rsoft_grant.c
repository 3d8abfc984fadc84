/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The owner's part of direct access; see rsoft_grant.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred, MAP_FIXED_NOREPLACE */
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsoft_grant_file.h"
#include "rsoft_grace.h"
#include "../base/rsoft_ids.h"
#include "rsoft_key.h"

#define NB_GRANTS (RSOFT_GRANT_SETS * RSOFT_GRANT_WAYS)
/* The sentinel is at an address from 2^n on; smaller n are for smaller address spaces. */
#define SENTINEL_MAX_BITS 45
#define SENTINEL_MIN_BITS 36

/* A grant, as the owner stores it. */
struct granted {
	struct rsoft_qp *qp; /* NULL: none */
	const struct rsoft_key *key;
	uint64_t word; /* word of the key when it was granted */
	uint32_t rights;
	uint64_t file_id; /* 0: none */
};

struct rsoft_grant_peer {
	const struct rsoft_dev *dev;
	struct rsoft_grants *shared;
	int fd;
	pid_t pid;                           /* 0: in another PID namespace */
	void *sentinel;                      /* NULL: none */
	bool is_halted[RSOFT_GRANT_THREADS]; /* found stopped while there is no sentinel */
	uint32_t next_way;
	struct granted granted[NB_GRANTS];
	uint32_t nb_file_grants[RSOFT_GRANT_FILES];
	LIST_ENTRY(rsoft_grant_peer) next;
};

/* Protects the list and all grants; taken last. */
static rte_ticketlock_t grant_lock;
static LIST_HEAD(grant_list, rsoft_grant_peer) grant_peers;

/* Replace a grant; rights 0 revoke it. */
static void
grant_store(struct rsoft_grant *grant, const struct rsoft_grant *value)
{
	uint32_t version = __atomic_load_n(&grant->version, __ATOMIC_RELAXED) | 1;

	__atomic_store_n(&grant->version, version, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&grant->rights, value->rights, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->qp_num, value->qp_num, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->rkey, value->rkey, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->iova, value->iova, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->length, value->length, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->base, value->base, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->file_id, value->file_id, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->file_offset, value->file_offset, __ATOMIC_RELAXED);
	__atomic_store_n(&grant->version, version + 1, __ATOMIC_RELEASE);
}

/* Publish a file; id 0 ends it. */
static void
file_store(struct rsoft_grant_file *file, const struct rsoft_grant_file *value)
{
	__atomic_store_n(&file->id, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&file->dev, value->dev, __ATOMIC_RELAXED);
	__atomic_store_n(&file->ino, value->ino, __ATOMIC_RELAXED);
	__atomic_store_n(&file->size, value->size, __ATOMIC_RELAXED);
	__atomic_store_n(&file->fd, value->fd, __ATOMIC_RELAXED);
	__atomic_store_n(&file->id, value->id, __ATOMIC_RELEASE);
}

/* A grant does not use a file any more. Peers unmap a file without grants. */
static void
peer_put_file(struct rsoft_grant_peer *peer, uint64_t id)
{
	const struct rsoft_grant_file none = {0};

	if (id == 0)
		return;
	rsoft_grant_file_put(id);
	if (--peer->nb_file_grants[id % RSOFT_GRANT_FILES] != 0)
		return;
	file_store(&peer->shared->file[id % RSOFT_GRANT_FILES], &none);
	__atomic_fetch_add(&peer->shared->files_ended, 1, __ATOMIC_RELEASE);
}

/*
 * Let the peer map the memory of a grant, if that is possible. Accesses through its mapping succeed
 * also after this process has unmapped or protected the memory, so a program that handles or debugs
 * such faults has all accesses in its own address space.
 */
static void
peer_get_file(struct rsoft_grant_peer *peer, struct granted *granted, struct rsoft_grant *value)
{
	const struct rsoft_args *args = &peer->dev->args;
	const struct rsoft_grant_file *alive, *file;
	struct rsoft_grant_file *shared;
	bool is_written = (value->rights & RMEM_ACCESS_REMOTE_WRITE) != 0;

	if (args->odp_guard == 0 || args->sanitize != 0)
		return;
	file = rsoft_grant_file_get((const void *)(uintptr_t)value->base, value->length, is_written,
			&value->file_offset);
	if (file == NULL)
		return;
	alive = rsoft_grant_file_alive();
	if (alive == NULL) {
		rsoft_grant_file_put(file->id);
		return;
	}
	if (__atomic_load_n(&peer->shared->alive.id, __ATOMIC_RELAXED) != alive->id)
		file_store(&peer->shared->alive, alive);
	granted->file_id = value->file_id = file->id;
	peer->nb_file_grants[file->id % RSOFT_GRANT_FILES]++;
	shared = &peer->shared->file[file->id % RSOFT_GRANT_FILES];
	if (__atomic_load_n(&shared->id, __ATOMIC_RELAXED) != file->id)
		file_store(shared, file);
	else
		__atomic_store_n(&shared->fd, file->fd, __ATOMIC_RELAXED);
}

static void
peer_revoke(struct rsoft_grant_peer *peer, uint32_t i)
{
	const struct rsoft_grant none = {0};

	peer->granted[i].qp = NULL;
	grant_store(&peer->shared->grant[i], &none);
	peer_put_file(peer, peer->granted[i].file_id);
	peer->granted[i].file_id = 0;
}

/* Whether the QP accepts requests with these rights, and need not count them. */
static bool
qp_permits(const struct rsoft_qp *qp, uint32_t rights)
{
	return rsoft_state_is_responding(__atomic_load_n(&qp->state, __ATOMIC_SEQ_CST)) &&
			(__atomic_load_n(&qp->access, __ATOMIC_RELAXED) &
					(rights | RSOFT_QP_NO_RIGHTS)) == rights;
}

/* Revoke the grants of a peer that are no longer valid. Under grant_lock. */
static void
peer_sweep(struct rsoft_grant_peer *peer)
{
	uint32_t i;

	for (i = 0; i < NB_GRANTS; i++) {
		const struct granted *granted = &peer->granted[i];

		if (granted->qp != NULL &&
				(__atomic_load_n(&granted->key->word, __ATOMIC_ACQUIRE) !=
								granted->word ||
						!qp_permits(granted->qp, granted->rights)))
			peer_revoke(peer, i);
	}
}

/* Revoke all grants that are no longer valid. */
static void
grant_revoke(void)
{
	struct rsoft_grant_peer *peer;

	rsoft_lock(&grant_lock);
	LIST_FOREACH(peer, &grant_peers, next)
		peer_sweep(peer);
	rte_ticketlock_unlock(&grant_lock);
}

static bool
peer_has_ended(const struct rsoft_grant_peer *peer)
{
	struct pollfd fd = {.fd = peer->fd};

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP) != 0;
}

/* Map the sentinel. If that fails, the peer can't copy. */
static void
peer_map(struct rsoft_grant_peer *peer)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int bits;

	for (bits = SENTINEL_MAX_BITS; bits >= SENTINEL_MIN_BITS && peer->sentinel == NULL;
			bits--) {
		uint64_t random = (uint64_t)rsoft_random() << 32 | rsoft_random();
		uint64_t addr = (UINT64_C(1) << bits | random >> (64 - bits)) & ~(page - 1);
		void *map = mmap((void *)(uintptr_t)addr, page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (map == (void *)(uintptr_t)addr)
			peer->sentinel = map;
		else if (map != MAP_FAILED)
			munmap(map, page);
	}
	__atomic_store_n(&peer->shared->sentinel, (uintptr_t)peer->sentinel, __ATOMIC_RELEASE);
}

static void
peer_unmap(struct rsoft_grant_peer *peer)
{
	__atomic_store_n(&peer->shared->sentinel, 0, __ATOMIC_RELAXED);
	if (peer->sentinel != NULL)
		munmap(peer->sentinel, (size_t)sysconf(_SC_PAGESIZE));
	peer->sentinel = NULL;
}

/* Map a sentinel again when no thread of the peer is inside; false if the peer has none. */
static bool
peer_resume(struct rsoft_grant_peer *peer)
{
	uint32_t i;

	if (peer->sentinel != NULL)
		return true;
	for (i = 0; i < RSOFT_GRANT_THREADS; i++) {
		if (__atomic_load_n(&peer->shared->inside[i].token, __ATOMIC_ACQUIRE) != 0)
			return false;
	}
	memset(peer->is_halted, 0, sizeof(peer->is_halted));
	peer_map(peer);
	return peer->sentinel != NULL;
}

/* Whether the kernel reports a thread of the peer as stopped or ended. A child of clone() may still
 * have the socket of an ended peer open. */
static bool
peer_is_stopped(const struct rsoft_grant_peer *peer, uint32_t tid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)peer->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return syscall(SYS_tgkill, peer->pid, tid, 0) != 0 && errno == ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[RTE_MAX(n, 0)] = '\0';
	/* The name is in parentheses, and may contain any characters. */
	state = strrchr(text, ')');
	return state != NULL && state[1] == ' ' && state[2] != '\0' &&
			strchr("TtZX", state[2]) != NULL;
}

/* Whether the thread inside is stopped, so that it can't copy. */
static bool
peer_halt(struct rsoft_grant_peer *peer, uint32_t i)
{
	const struct rsoft_grant_inside *inside = &peer->shared->inside[i];
	uint32_t tid = __atomic_load_n(&inside->tid, __ATOMIC_ACQUIRE);

	if (peer->is_halted[i])
		return true;
	if (!peer_is_stopped(peer, tid))
		return false;
	peer_unmap(peer);
	/* If another thread has entered since then, it finds no sentinel. */
	peer->is_halted[i] = peer_is_stopped(peer, tid) &&
			__atomic_load_n(&inside->tid, __ATOMIC_ACQUIRE) == tid;
	return peer->is_halted[i];
}

static bool
peer_is_over(struct rsoft_grant_peer *peer, uint64_t token)
{
	struct rsoft_grants *shared = peer->shared;
	uint32_t i;

	peer_sweep(peer);
	if (__atomic_load_n(&shared->token, __ATOMIC_RELAXED) < token)
		__atomic_store_n(&shared->token, token, __ATOMIC_RELEASE);
	rte_smp_mb();
	for (i = 0; i < RSOFT_GRANT_THREADS; i++) {
		uint64_t seen = __atomic_load_n(&shared->inside[i].token, __ATOMIC_ACQUIRE);

		if (seen != 0 && seen < token && !peer_halt(peer, i))
			return peer_has_ended(peer);
	}
	return true;
}

/* Implements rsoft_grace_peers_are_over(). */
static bool
grant_is_over(uint64_t token)
{
	struct rsoft_grant_peer *peer;
	bool is_over = true;
	int state;

	/* A thread cancelled in a system call would keep the lock. */
	state = rsoft_cancel_disable();
	rsoft_lock(&grant_lock);
	LIST_FOREACH(peer, &grant_peers, next)
		is_over &= peer_is_over(peer, token);
	rte_ticketlock_unlock(&grant_lock);
	rsoft_cancel_restore(state);
	return is_over;
}

struct rsoft_grant_peer *
rsoft_grant_open(const struct rsoft_dev *dev, struct rsoft_grants *shared, int fd)
{
	struct rsoft_grace *grace = &rsoft_domain->grace;
	struct rsoft_grant_peer *peer = calloc(1, sizeof(*peer));
	struct ucred owner = {0};
	socklen_t size = sizeof(owner);

	if (peer == NULL)
		return NULL;
	peer->dev = dev;
	peer->shared = shared;
	peer->fd = fd;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0)
		peer->pid = owner.pid;
	peer_map(peer);
	rsoft_lock(&grant_lock);
	LIST_INSERT_HEAD(&grant_peers, peer, next);
	/* The peer counts as an lcore: grace periods wait for it. */
	rsoft_grace_peers_are_over = grant_is_over;
	__atomic_fetch_add(&grace->nb_peers, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&grace->nb_lcores, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&shared->token, __atomic_load_n(&grace->token, __ATOMIC_RELAXED),
			__ATOMIC_RELEASE);
	rte_ticketlock_unlock(&grant_lock);
	return peer;
}

/* Under grant_lock. */
static void
peer_free(struct rsoft_grant_peer *peer)
{
	uint32_t i;

	for (i = 0; i < NB_GRANTS; i++) {
		if (peer->granted[i].qp != NULL)
			peer_revoke(peer, i);
	}
	peer_unmap(peer);
	LIST_REMOVE(peer, next);
	__atomic_fetch_sub(&rsoft_domain->grace.nb_lcores, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&rsoft_domain->grace.nb_peers, 1, __ATOMIC_RELAXED);
	free(peer);
}

void
rsoft_grant_close(struct rsoft_grant_peer *peer)
{
	rsoft_lock(&grant_lock);
	peer_free(peer);
	rte_ticketlock_unlock(&grant_lock);
}

void
rsoft_grant_close_all(const struct rsoft_dev *dev)
{
	struct rsoft_grant_peer *peer, *next;

	rsoft_lock(&grant_lock);
	for (peer = LIST_FIRST(&grant_peers); peer != NULL; peer = next) {
		next = LIST_NEXT(peer, next);
		if (peer->dev == dev)
			peer_free(peer);
	}
	rte_ticketlock_unlock(&grant_lock);
}

/* Choose the entry for a grant: the same grant, a free entry, or one of the others in turn. */
static uint32_t
peer_entry(struct rsoft_grant_peer *peer, uint32_t qp_num, uint32_t rkey)
{
	struct rsoft_grant *set = rsoft_grant_set(peer->shared, qp_num, rkey);
	uint32_t first = (uint32_t)(set - peer->shared->grant), i, way = RSOFT_GRANT_WAYS;

	for (i = 0; i < RSOFT_GRANT_WAYS; i++) {
		const struct granted *granted = &peer->granted[first + i];

		if (granted->qp == NULL)
			way = i;
		else if (granted->qp->qp.qp_num == qp_num && rsoft_word_rkey(granted->word) == rkey)
			return first + i;
	}
	return first + (way != RSOFT_GRANT_WAYS ? way : peer->next_way++ % RSOFT_GRANT_WAYS);
}

/* Under grant_lock. */
static void
peer_grant(struct rsoft_grant_peer *peer, struct rsoft_qp *qp, uint32_t rkey)
{
	const struct rsoft_key *key = rsoft_key_at(qp->dev, rkey);
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	uint32_t rights = rsoft_word_rights(word), i;
	struct rsoft_grant value = {.qp_num = qp->qp.qp_num, .rkey = rkey};
	uint64_t previous;

	if (rsoft_word_rkey(word) != rkey || key->pd != qp->pd || key->kind != RSOFT_KIND_BASE ||
			(rights & (RSOFT_VALID | RSOFT_SLOW | RSOFT_BUSY)) != RSOFT_VALID)
		return;
	rights &= __atomic_load_n(&qp->access, __ATOMIC_RELAXED) &
			(RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_WRITE);
	if (rights == 0 || !qp_permits(qp, rights) || !peer_resume(peer))
		return;
	i = peer_entry(peer, qp->qp.qp_num, rkey);
	peer->granted[i].qp = qp;
	peer->granted[i].key = key;
	peer->granted[i].word = word;
	peer->granted[i].rights = rights;
	value.rights = rights;
	value.iova = key->iova;
	value.length = key->length;
	value.base = (uintptr_t)key->base;
	previous = peer->granted[i].file_id;
	peer->granted[i].file_id = 0;
	peer_get_file(peer, &peer->granted[i], &value);
	grant_store(&peer->shared->grant[i], &value);
	peer_put_file(peer, previous);
}

void
rsoft_grant_add(struct rsoft_grant_peer *peer, struct rsoft_qp *qp, uint32_t rkey)
{
	/* A failing QP stores its state, then loads revoke; qp_permits() loads the state after this
	 * store. */
	__atomic_store_n(&qp->revoke, grant_revoke, __ATOMIC_SEQ_CST);
	rsoft_lock(&grant_lock);
	peer_grant(peer, qp, rkey);
	rte_ticketlock_unlock(&grant_lock);
}
