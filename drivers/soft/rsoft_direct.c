/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The owner's half of direct access; see rsoft_direct.h. */

#include <poll.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "rsoft_direct.h"
#include "rsoft_grace.h"
#include "rsoft_ids.h"
#include "rsoft_inline.h"
#include "rsoft_key.h"

#define NB_GRANTS (RSOFT_GRANT_SETS * RSOFT_GRANT_WAYS)

/* A grant as the owner knows it. */
struct granted {
	struct rsoft_qp *qp; /* NULL: none */
	const struct rsoft_key *key;
	uint64_t word; /* of the key */
	uint32_t rights;
};

struct rsoft_direct_peer {
	const struct rsoft_dev *dev;
	struct rsoft_direct *shared;
	int fd;
	uint64_t proof; /* the peer reads it to be sure that it has the right process */
	uint32_t next_way;
	struct granted granted[NB_GRANTS];
	LIST_ENTRY(rsoft_direct_peer) next;
};

/* Of the list and of all grants; innermost. */
static rte_ticketlock_t direct_lock;
static LIST_HEAD(direct_list, rsoft_direct_peer) direct_peers;

/* Replace a grant; one without rights is none. */
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
	__atomic_store_n(&grant->version, version + 1, __ATOMIC_RELEASE);
}

static void
peer_revoke(struct rsoft_direct_peer *peer, uint32_t i)
{
	const struct rsoft_grant none = {0};

	peer->granted[i].qp = NULL;
	grant_store(&peer->shared->grant[i], &none);
}

/* Whether the QP responds to requests with these rights. */
static bool
qp_permits(const struct rsoft_qp *qp, uint32_t rights)
{
	return rsoft_state_is_responding(__atomic_load_n(&qp->state, __ATOMIC_SEQ_CST)) &&
			(__atomic_load_n(&qp->access, __ATOMIC_RELAXED) &
					(rights | RSOFT_QP_INLINE)) == rights;
}

/* Revoke the grants of a peer that are not valid any more. Under direct_lock. */
static void
peer_sweep(struct rsoft_direct_peer *peer)
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

/* Revoke all grants that are not valid any more. */
static void
direct_revoke(void)
{
	struct rsoft_direct_peer *peer;

	rsoft_lock(&direct_lock);
	LIST_FOREACH(peer, &direct_peers, next)
		peer_sweep(peer);
	rte_ticketlock_unlock(&direct_lock);
}

static bool
peer_has_ended(const struct rsoft_direct_peer *peer)
{
	struct pollfd fd = {.fd = peer->fd};

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP) != 0;
}

static bool
peer_is_over(struct rsoft_direct_peer *peer, uint64_t token)
{
	struct rsoft_direct *shared = peer->shared;
	uint32_t i;

	peer_sweep(peer);
	if (__atomic_load_n(&shared->token, __ATOMIC_RELAXED) < token)
		__atomic_store_n(&shared->token, token, __ATOMIC_RELEASE);
	rte_smp_mb();
	for (i = 0; i < RSOFT_DIRECT_THREADS; i++) {
		uint64_t seen = __atomic_load_n(&shared->inside[i].token, __ATOMIC_ACQUIRE);

		if (seen != 0 && seen < token)
			return peer_has_ended(peer);
	}
	return true;
}

/* As rsoft_grace_peers_are_over(). */
static bool
direct_is_over(uint64_t token)
{
	struct rsoft_direct_peer *peer;
	bool is_over = true;

	rsoft_lock(&direct_lock);
	LIST_FOREACH(peer, &direct_peers, next)
		is_over &= peer_is_over(peer, token);
	rte_ticketlock_unlock(&direct_lock);
	return is_over;
}

struct rsoft_direct_peer *
rsoft_direct_open(const struct rsoft_dev *dev, struct rsoft_direct *shared, int fd)
{
	struct rsoft_grace *grace = &rsoft_domain->grace;
	struct rsoft_direct_peer *peer = calloc(1, sizeof(*peer));

	if (peer == NULL)
		return NULL;
	peer->dev = dev;
	peer->shared = shared;
	peer->fd = fd;
	peer->proof = (uint64_t)rsoft_random() << 32 | rsoft_random();
	__atomic_store_n(&shared->proof, peer->proof, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->proof_addr, (uintptr_t)&peer->proof, __ATOMIC_RELAXED);
	rsoft_lock(&direct_lock);
	LIST_INSERT_HEAD(&direct_peers, peer, next);
	/* It counts as an lcore: grace periods wait for it. */
	rsoft_grace_peers_are_over = direct_is_over;
	__atomic_fetch_add(&grace->nb_peers, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&grace->nb_lcores, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&shared->token, __atomic_load_n(&grace->token, __ATOMIC_RELAXED),
			__ATOMIC_RELEASE);
	rte_ticketlock_unlock(&direct_lock);
	return peer;
}

/* Under direct_lock. */
static void
peer_free(struct rsoft_direct_peer *peer)
{
	uint32_t i;

	for (i = 0; i < NB_GRANTS; i++) {
		if (peer->granted[i].qp != NULL)
			peer_revoke(peer, i);
	}
	LIST_REMOVE(peer, next);
	__atomic_fetch_sub(&rsoft_domain->grace.nb_lcores, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&rsoft_domain->grace.nb_peers, 1, __ATOMIC_RELAXED);
	free(peer);
}

void
rsoft_direct_close(struct rsoft_direct_peer *peer)
{
	rsoft_lock(&direct_lock);
	peer_free(peer);
	rte_ticketlock_unlock(&direct_lock);
}

void
rsoft_direct_close_all(const struct rsoft_dev *dev)
{
	struct rsoft_direct_peer *peer, *next;

	rsoft_lock(&direct_lock);
	for (peer = LIST_FIRST(&direct_peers); peer != NULL; peer = next) {
		next = LIST_NEXT(peer, next);
		if (peer->dev == dev)
			peer_free(peer);
	}
	rte_ticketlock_unlock(&direct_lock);
}

/* The entry for a grant: the same one, a free one, or one of the others in turn. */
static uint32_t
peer_entry(struct rsoft_direct_peer *peer, uint32_t qp_num, uint32_t rkey)
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

/* Under direct_lock. */
static void
peer_grant(struct rsoft_direct_peer *peer, struct rsoft_qp *qp, uint32_t rkey)
{
	const struct rsoft_key *key = rsoft_key_at(qp->dev, rkey);
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	uint32_t rights = rsoft_word_rights(word), i;
	struct rsoft_grant value = {.qp_num = qp->qp.qp_num, .rkey = rkey};

	if (rsoft_word_rkey(word) != rkey || key->pd != qp->pd || key->kind != RSOFT_KIND_BASE ||
			(rights & (RSOFT_VALID | RSOFT_SLOW | RSOFT_BUSY)) != RSOFT_VALID)
		return;
	rights &= __atomic_load_n(&qp->access, __ATOMIC_RELAXED) &
			(RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_WRITE);
	if (rights == 0 || !qp_permits(qp, rights))
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
	grant_store(&peer->shared->grant[i], &value);
}

void
rsoft_direct_grant(struct rsoft_direct_peer *peer, struct rsoft_qp *qp, uint32_t rkey)
{
	/* A QP that fails stores its state, then loads this; qp_permits() loads the state. */
	__atomic_store_n(&qp->revoke, direct_revoke, __ATOMIC_SEQ_CST);
	rsoft_lock(&direct_lock);
	peer_grant(peer, qp, rkey);
	rte_ticketlock_unlock(&direct_lock);
}
