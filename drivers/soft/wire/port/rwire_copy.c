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

enum rwire_copy_result
rwire_copy_begin(struct rwire_copy_peer *peer, struct rsoft_grants *shared,
		struct rwire_copy_link *link)
{
	uint32_t used = __atomic_load_n(&peer->used, __ATOMIC_RELAXED);

	if (peer->pid == 0 || __atomic_load_n(&peer->is_refused, __ATOMIC_RELAXED))
		return RWIRE_COPY_NO;
	if (__atomic_load_n(&shared->token, __ATOMIC_ACQUIRE) == 0)
		return RWIRE_COPY_ASK;
	if (used == (1u << RSOFT_GRANT_THREADS) - 1)
		return RWIRE_COPY_RETRY;
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

/* Address of the range in the target's process, if the target grants it; otherwise 0. */
static uint64_t
copy_find(struct rsoft_grants *shared, const struct rwire_copy *copy,
		const struct rwire_range *range)
{
	const struct rsoft_grant *grant = rsoft_grant_set(shared, copy->qp_num, range->rkey);
	const struct rsoft_grant *end = grant + RSOFT_GRANT_WAYS;

	for (; grant < end; grant++) {
		uint32_t version = __atomic_load_n(&grant->version, __ATOMIC_ACQUIRE);
		uint32_t rights = __atomic_load_n(&grant->rights, __ATOMIC_RELAXED);
		uint64_t size = __atomic_load_n(&grant->length, __ATOMIC_RELAXED);
		uint64_t base = __atomic_load_n(&grant->base, __ATOMIC_RELAXED);
		uint64_t offset = range->addr - __atomic_load_n(&grant->iova, __ATOMIC_RELAXED);

		if (__atomic_load_n(&grant->rkey, __ATOMIC_RELAXED) != range->rkey ||
				__atomic_load_n(&grant->qp_num, __ATOMIC_RELAXED) != copy->qp_num)
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (version % 2 != 0 ||
				__atomic_load_n(&grant->version, __ATOMIC_RELAXED) != version)
			return 0;
		if ((rights & copy->right) == 0 || offset > size || range->length > size - offset)
			return 0;
		return base + offset;
	}
	return 0;
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

/* Find the addresses of the ranges before the first without a grant; return their total length. */
static uint64_t
copy_resolve(struct rsoft_grants *shared, const struct rwire_copy *copy, struct iovec *remote,
		uint32_t *nb)
{
	uint64_t length = 0, addr;

	for (*nb = 0; *nb < copy->nb; ++*nb) {
		addr = copy_find(shared, copy, &copy->range[*nb]);
		if (addr == 0)
			break;
		remote[*nb].iov_base = (void *)(uintptr_t)addr;
		remote[*nb].iov_len = copy->range[*nb].length;
		length += copy->range[*nb].length;
	}
	return length;
}

enum rwire_copy_result
rwire_copy_run(const struct rwire_copy_link *link, struct rwire_copy *copy)
{
	struct iovec remote[1 + RWIRE_COPY_WRS];
	struct rsoft_grants *shared = link->shared;
	uint64_t length = 0, sentinel;
	uint32_t nb = 0;
	ssize_t n = 0;

	copy_enter(shared, link->i);
	sentinel = __atomic_load_n(&shared->sentinel, __ATOMIC_ACQUIRE);
	remote[0].iov_base = (void *)(uintptr_t)sentinel;
	remote[0].iov_len = 1;
	if (sentinel != 0)
		length = copy_resolve(shared, copy, remote + 1, &nb);
	if (nb != 0)
		n = copy_move(link->peer->pid, copy, remote, 1 + nb);
	__atomic_store_n(&shared->inside[link->i].token, 0, __ATOMIC_RELEASE);
	copy->copied = n > 0 ? (uint64_t)n - 1 : 0;
	if (copy->copied == length)
		return nb == copy->nb ? RWIRE_COPY_DONE : RWIRE_COPY_ASK;
	/* Unmapped memory is reported by the target, or by the requester. */
	if (n < 0 && n != -ENOMEM &&
			__atomic_load_n(&shared->sentinel, __ATOMIC_RELAXED) == sentinel)
		__atomic_store_n(&link->peer->is_refused, true, __ATOMIC_RELAXED);
	return RWIRE_COPY_NO;
}
