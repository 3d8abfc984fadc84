/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Copies between processes; see rwire_copy.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv() */
#endif
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_branch_prediction.h>

#include "rwire_copy.h"

/* Thread id; 0: not known. A target does not wait for a thread that does not exist. */
static __thread uint32_t copy_tid;

static void
copy_forked(void)
{
	copy_tid = 0;
}

RTE_INIT(rwire_copy_init)
{
	pthread_atfork(NULL, NULL, copy_forked);
}

void
rwire_copy_connect(struct rwire_copy_peer *peer, pid_t pid, uint32_t uid)
{
	memset(peer, 0, sizeof(*peer));
	if (uid == geteuid())
		peer->pid = pid;
}

void
rwire_copy_check(struct rwire_copy_peer *peer, const struct rsoft_grants *shared)
{
	if (unlikely(rwire_maps_are_old(&peer->maps, shared)))
		rwire_maps_update(&peer->maps, shared, peer->pid,
				__atomic_load_n(&peer->used, __ATOMIC_ACQUIRE) != 0);
}

enum rwire_copy_result
rwire_copy_begin(struct rwire_copy_peer *peer, struct rsoft_grants *shared,
		struct rwire_copy_link *link)
{
	uint32_t used = __atomic_load_n(&peer->used, __ATOMIC_ACQUIRE);

	if (peer->pid == 0 || __atomic_load_n(&peer->is_refused, __ATOMIC_RELAXED))
		return RWIRE_COPY_NO;
	if (__atomic_load_n(&shared->token, __ATOMIC_ACQUIRE) == 0)
		return RWIRE_COPY_ASK;
	if (used == (1u << RSOFT_GRANT_THREADS) - 1)
		return RWIRE_COPY_RETRY;
	rwire_copy_check(peer, shared);
	link->peer = peer;
	link->shared = shared;
	link->i = (uint32_t)__builtin_ctz(~used);
	/* Bits are set only under tx_lock. */
	__atomic_fetch_or(&peer->used, 1u << link->i, __ATOMIC_ACQUIRE);
	return RWIRE_COPY_DONE;
}

void
rwire_copy_end(const struct rwire_copy_link *link)
{
	__atomic_fetch_and(&link->peer->used, ~(1u << link->i), __ATOMIC_RELEASE);
}

void
rwire_copy_wait(struct rwire_copy_peer *peer)
{
	unsigned int spins = 0;

	while (__atomic_load_n(&peer->used, __ATOMIC_ACQUIRE) != 0)
		rsoft_relax(&spins);
}

/* A grant, as it was loaded inside: the target waits for this thread after it has revoked it. */
struct copy_grant {
	uint32_t rkey;
	uint64_t iova;
	uint64_t length;
	uint64_t base; /* in the target's process */
	uint8_t *map;  /* in this process; NULL: not mapped */
};

/* The entry of the grant for an rkey; NULL: none. */
static const struct rsoft_grant *
copy_entry(struct rsoft_grants *shared, uint32_t qp_num, uint32_t rkey)
{
	const struct rsoft_grant *grant = rsoft_grant_set(shared, qp_num, rkey);
	const struct rsoft_grant *end = grant + RSOFT_GRANT_WAYS;

	for (; grant < end; grant++) {
		if (__atomic_load_n(&grant->rkey, __ATOMIC_RELAXED) == rkey &&
				__atomic_load_n(&grant->qp_num, __ATOMIC_RELAXED) == qp_num)
			return grant;
	}
	return NULL;
}

/* Load the target's grant for an rkey, if it has the right. */
static bool
copy_find(struct rsoft_grants *shared, const struct rwire_copy *copy, uint32_t rkey,
		struct rwire_maps *maps, struct copy_grant *out)
{
	const struct rsoft_grant *grant = copy_entry(shared, copy->qp_num, rkey);
	struct rwire_map_range file;
	uint32_t version, rights;

	if (grant == NULL)
		return false;
	version = __atomic_load_n(&grant->version, __ATOMIC_ACQUIRE);
	rights = __atomic_load_n(&grant->rights, __ATOMIC_RELAXED);
	out->rkey = rkey;
	out->iova = __atomic_load_n(&grant->iova, __ATOMIC_RELAXED);
	out->length = __atomic_load_n(&grant->length, __ATOMIC_RELAXED);
	out->base = __atomic_load_n(&grant->base, __ATOMIC_RELAXED);
	file.id = __atomic_load_n(&grant->file_id, __ATOMIC_RELAXED);
	file.offset = __atomic_load_n(&grant->file_offset, __ATOMIC_RELAXED);
	file.length = out->length;
	if (__atomic_load_n(&grant->rkey, __ATOMIC_RELAXED) != rkey ||
			__atomic_load_n(&grant->qp_num, __ATOMIC_RELAXED) != copy->qp_num)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (version % 2 != 0 || __atomic_load_n(&grant->version, __ATOMIC_RELAXED) != version)
		return false;
	if ((rights & copy->right) == 0)
		return false;
	out->map = rwire_maps_find(maps, &file, copy->right == RMEM_ACCESS_REMOTE_WRITE);
	return true;
}

/* Copy by the kernel, the sentinel first. Return the bytes copied including the sentinel, or a
 * negative errno. */
static ssize_t
copy_move(pid_t pid, struct rwire_copy *copy, const struct iovec *remote, uint32_t nb)
{
	uint8_t byte = 0;
	ssize_t n;

	copy->local[0].iov_base = &byte;
	copy->local[0].iov_len = 1;
	if (copy->right == RMEM_ACCESS_REMOTE_WRITE)
		n = process_vm_writev(pid, copy->local, copy->nb_local, remote, nb, 0);
	else
		n = process_vm_readv(pid, copy->local, copy->nb_local, remote, nb, 0);
	copy->local[0].iov_base = NULL;
	return n < 0 ? -errno : n;
}

static void
copy_enter(struct rsoft_grants *shared, uint32_t i)
{
	if (unlikely(copy_tid == 0))
		copy_tid = (uint32_t)syscall(SYS_gettid);
	__atomic_store_n(&shared->inside[i].tid, copy_tid, __ATOMIC_RELAXED);
	/* Like rsoft_grace_enter(), for the grace periods of the target. */
	__atomic_store_n(&shared->inside[i].token,
			__atomic_load_n(&shared->token, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	rte_smp_mb();
}

/* Where the ranges of a copy are. */
struct copy_places {
	struct iovec remote[1 + RWIRE_COPY_WRS]; /* in the target's process; the sentinel first */
	uint8_t *map[RWIRE_COPY_WRS];            /* in this process, if is_mapped */
	bool is_mapped;
	uint32_t nb;     /* before the first range without a grant */
	uint64_t length; /* their total length */
};

/* Find the ranges before the first without a grant. */
static void
copy_resolve(struct rwire_maps *maps, struct rsoft_grants *shared, const struct rwire_copy *copy,
		struct copy_places *at)
{
	struct copy_grant grant;
	uint64_t offset;
	uint32_t i;

	at->is_mapped = true;
	at->length = 0;
	for (i = 0; i < copy->nb; i++) {
		const struct rwire_range *range = &copy->range[i];

		if ((i == 0 || range->rkey != grant.rkey) &&
				!copy_find(shared, copy, range->rkey, maps, &grant))
			break;
		offset = range->addr - grant.iova;
		if (offset > grant.length || range->length > grant.length - offset)
			break;
		at->remote[1 + i].iov_base = (void *)(uintptr_t)(grant.base + offset);
		at->remote[1 + i].iov_len = range->length;
		at->length += range->length;
		at->is_mapped = at->is_mapped && grant.map != NULL;
		if (likely(at->is_mapped))
			at->map[i] = grant.map + offset;
	}
	at->nb = i;
}

/* Copy by the mappings; return the number of bytes copied. */
static uint64_t
copy_by_maps(const struct rsoft_gate *gate, const struct rwire_copy *copy,
		const struct copy_places *at)
{
	const struct iovec *local = copy->local + 1;
	bool is_written = copy->right == RMEM_ACCESS_REMOTE_WRITE;
	uint64_t copied = 0, used = 0, done, n, end;
	uint32_t i;

	for (i = 0; i < at->nb; i++) {
		end = copy->range[i].length;
		for (done = 0; done < end; done += n, used += n) {
			uint8_t *near, *far = at->map[i] + done;
			uint64_t moved;

			if (used == local->iov_len) {
				local++;
				used = 0;
			}
			near = (uint8_t *)local->iov_base + used;
			n = RTE_MIN(end - done, local->iov_len - used);
			moved = is_written ? rsoft_gate_copy(gate, far, near, n)
					   : rsoft_gate_copy(gate, near, far, n);
			copied += moved;
			if (unlikely(moved != n))
				return copied;
		}
	}
	return copied;
}

/* Copy by the mappings if all ranges are mapped, and this thread can; false: it can't. */
static bool
copy_mapped(const struct rwire_copy_link *link, uint64_t sentinel, struct rwire_copy *copy,
		const struct copy_places *at)
{
	struct rsoft_gate gate;

	if (!at->is_mapped || !rwire_maps_gate(&link->peer->maps, &link->shared->sentinel, &gate) ||
			!rsoft_gate_begin(&gate))
		return false;
	gate.open_value = sentinel;
	copy->copied = copy_by_maps(&gate, copy, at);
	rsoft_gate_end(&gate);
	return true;
}

enum rwire_copy_result
rwire_copy_run(const struct rwire_copy_link *link, struct rwire_copy *copy)
{
	struct rsoft_grants *shared = link->shared;
	struct copy_places at;
	uint64_t sentinel;
	ssize_t n = 0;

	at.nb = 0;
	at.length = 0;
	at.is_mapped = false;
	copy_enter(shared, link->i);
	sentinel = __atomic_load_n(&shared->sentinel, __ATOMIC_ACQUIRE);
	at.remote[0].iov_base = (void *)(uintptr_t)sentinel;
	at.remote[0].iov_len = 1;
	if (sentinel != 0)
		copy_resolve(&link->peer->maps, shared, copy, &at);
	copy->copied = 0;
	copy->is_mapped = at.nb != 0 && copy_mapped(link, sentinel, copy, &at);
	/* Request the grant again. */
	if (!copy->is_mapped && at.is_mapped && rwire_maps_are_orphaned(&link->peer->maps))
		at.nb = at.length = 0;
	if (at.nb != 0 && !copy->is_mapped) {
		n = copy_move(link->peer->pid, copy, at.remote, 1 + at.nb);
		copy->copied = n > 0 ? (uint64_t)n - 1 : 0;
	}
	__atomic_store_n(&shared->inside[link->i].token, 0, __ATOMIC_RELEASE);
	if (copy->copied == at.length)
		return at.nb == copy->nb ? RWIRE_COPY_DONE : RWIRE_COPY_ASK;
	/* Unmapped memory is reported by the target, or by the requester. */
	if (n < 0 && n != -ENOMEM &&
			__atomic_load_n(&shared->sentinel, __ATOMIC_RELAXED) == sentinel)
		__atomic_store_n(&link->peer->is_refused, true, __ATOMIC_RELAXED);
	return RWIRE_COPY_NO;
}
