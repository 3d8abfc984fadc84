/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The server, on one lcore: a hash of values, each in the buffer of the pool that received its PUT,
 * and their leases. A value that was replaced keeps its buffer until the last of its leases has
 * ended; then its PUT is answered and the buffer is used again.
 */

#include <stdlib.h>
#include <sys/queue.h>

#include <rte_cycles.h>
#include <rte_hash.h>
#include <rte_jhash.h>

#include <rmem_pool.h>

#include "kv.h"

/* A client that was killed ends no connection: it is detected as one that does not answer. */
#define PROBE_S 1
/* Keys for each lease; some are quarantined (doc/lease.md). */
#define KEYS_PER_LEASE 4
/* A PUT takes one more buffer until the leases of the previous value have ended. */
#define BUFS_PER_PEER (2 * KV_RECVS)

/* A lease of a value. */
struct grant {
	LIST_ENTRY(grant) entry; /* in the list of the value, or of unused grants */
	struct rmem_lease *lease;
	struct item *item;
	struct peer *peer;
	rte_be32_t tag; /* of the request */
};

LIST_HEAD(grants, grant);

/* Head of a buffer of the pool. A value follows its request. */
struct item {
	struct grants grants;
	struct peer *putter; /* client that replaced it, or NULL */
	uint32_t put_conn;   /* connection and request of that PUT */
	rte_be32_t put_tag;
	uint32_t nb_revoked;
	uint32_t length; /* bytes of the value */
	struct kv_request request;
};

/* The server's side of a connection. */
struct peer {
	struct kv_server *server;
	struct kv_conn *conn;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_lease_ctx *ctx; /* NULL: there is no QP */
	uint32_t nb_conns;          /* number of connections so far */
	uint64_t probe_tsc;         /* time of the next test of the connection */
	uint32_t nb_gets, nb_answers;
	struct rmem_lease_req gets[KV_BURST]; /* to grant */
	struct kv_answer answers[KV_BURST];   /* to post */
	struct item *recvs[KV_RECVS];         /* posted, by their wr_id */
	struct grants spare;
	struct grant grants[KV_LEASES];
};

struct kv_server {
	const struct kv_conf *conf;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_pool *pool;
	struct rte_hash *hash; /* key as in the request -> struct item */
	struct rmem_lease_sealer *sealer;
	struct peer *peers;
	uint32_t nb_peers;
	struct rmem_lease_stats sum; /* of the lease contexts that were destroyed */
	uint64_t nb_puts;
	bool has_run;
};

/* The connection is lost: the client must connect again. */
static void
drop(struct peer *peer)
{
	kv_conn_move(peer->conn, KV_UP, KV_LOST);
}

/* Post the receives of these numbers. */
static void
post_recvs(struct peer *peer, const uint32_t *slots, uint32_t nb)
{
	struct rmem_recv_wr wr[KV_RECVS];
	struct rmem_sge sge[KV_RECVS];
	uint32_t i;

	for (i = 0; i < nb; i++) {
		struct item *item = peer->recvs[slots[i]];

		sge[i].addr = rmem_pool_iova(peer->server->pool, &item->request);
		sge[i].length = sizeof(item->request) + (uint32_t)peer->server->conf->value_size;
		sge[i].lkey = rmem_pool_lkey(peer->server->pool, item);
		wr[i] = (struct rmem_recv_wr){.wr_id = slots[i], .sg_list = &sge[i], .num_sge = 1};
	}
	if (nb != 0 && rmem_post_recv(peer->qp, wr, (uint16_t)nb) != (int)nb)
		drop(peer);
}

/* Post the leases that are prepared and the answers that are ready: the peer sees them in order. */
static void
post_answers(struct peer *peer)
{
	struct rmem_send_wr wr[KV_BURST];
	struct rmem_sge sge[KV_BURST];
	uint32_t i, nb = peer->nb_answers;

	if (nb == 0)
		return;
	for (i = 0; i < nb; i++) {
		sge[i] = (struct rmem_sge){
				(uintptr_t)&peer->answers[i], sizeof(struct kv_answer), 0};
		wr[i] = (struct rmem_send_wr){.opcode = RMEM_WR_SEND,
				.sg_list = &sge[i],
				.num_sge = 1,
				.flags = RMEM_SEND_INLINE};
	}
	wr[nb - 1].flags |= RMEM_SEND_SIGNALED;
	peer->nb_answers = 0;
	/* The queue is full only if a client does not read its answers. */
	if (rmem_lease_post(peer->ctx, wr, (uint16_t)nb) != (int)nb)
		drop(peer);
}

static struct kv_answer *
add_answer(struct peer *peer, rte_be32_t tag, int error)
{
	struct kv_answer *answer;

	if (peer->nb_answers == KV_BURST)
		post_answers(peer);
	answer = &peer->answers[peer->nb_answers++];
	*answer = (struct kv_answer){.tag = tag, .error = rte_cpu_to_be_32((uint32_t)error)};
	return answer;
}

/* Write the descriptor of a lease for the client: bytes, or -errno. */
static int
describe(const struct peer *peer, const struct rmem_lease *lease, uint8_t *buf)
{
	const struct kv_seal_with *with = &peer->conn->qps;
	struct rmem_lease_desc desc;
	int ret;

	ret = rmem_lease_desc_get(lease, &desc);
	if (ret != 0)
		return ret;
	if (peer->server->sealer == NULL)
		return rmem_lease_desc_pack(&desc, buf, RMEM_LEASE_SEALED_SIZE);
	return rmem_lease_seal(peer->server->sealer, &desc, with, sizeof(*with), buf,
			RMEM_LEASE_SEALED_SIZE);
}

/* Grant the leases requested by a burst of GETs, and answer. */
static void
grant_burst(struct peer *peer)
{
	struct rmem_lease *lease[KV_BURST];
	struct kv_answer *answer;
	int i, n, ret;

	n = rmem_lease_prepare(peer->ctx, peer->gets, (uint16_t)peer->nb_gets, lease);
	for (i = 0; i < (int)peer->nb_gets; i++) {
		struct grant *grant = peer->gets[i].user;

		if (i >= n) {
			LIST_INSERT_HEAD(&peer->spare, grant, entry);
			add_answer(peer, grant->tag, n < 0 ? -n : ENOSPC);
			continue;
		}
		grant->lease = lease[i];
		LIST_INSERT_HEAD(&grant->item->grants, grant, entry);
		answer = add_answer(peer, grant->tag, 0);
		ret = describe(peer, lease[i], answer->desc);
		answer->desc_size = rte_cpu_to_be_32((uint32_t)RTE_MAX(ret, 0));
		if (ret >= 0)
			continue;
		answer->error = rte_cpu_to_be_32((uint32_t)-ret);
		rmem_lease_revoke(peer->ctx, &lease[i], 1);
	}
	peer->nb_gets = 0;
	post_answers(peer);
}

static void
get(struct peer *peer, const struct kv_request *request)
{
	const struct kv_server *server = peer->server;
	struct grant *grant = LIST_FIRST(&peer->spare);
	void *found;

	if (rte_hash_lookup_data(server->hash, &request->key, &found) < 0) {
		add_answer(peer, request->tag, ENOENT);
		return;
	}
	if (grant == NULL) {
		add_answer(peer, request->tag, ENOSPC);
		return;
	}
	LIST_REMOVE(grant, entry);
	grant->item = found;
	grant->tag = request->tag;
	peer->gets[peer->nb_gets++] = (struct rmem_lease_req){
			.mr = rmem_pool_mr(server->pool, found),
			.addr = grant->item + 1,
			.length = grant->item->length,
			.access = RMEM_ACCESS_REMOTE_READ,
			.deadline = rte_rdtsc() + server->conf->lease_ms * rte_get_tsc_hz() / 1000,
			.user = grant,
	};
}

/* A replaced value without leases: answer its PUT, and reuse the buffer. */
static void
end_item(struct kv_server *server, struct item *item)
{
	struct peer *putter = item->putter;

	if (putter == NULL || !LIST_EMPTY(&item->grants))
		return;
	if (putter->nb_conns == item->put_conn)
		add_answer(putter, item->put_tag, 0)->nb_revoked =
				rte_cpu_to_be_32(item->nb_revoked);
	rte_mempool_put(server->pool->mp, item);
}

/* The buffer that was received into becomes the value; the receive gets another one. */
static void
put(struct peer *peer, uint32_t slot, uint32_t length)
{
	struct kv_server *server = peer->server;
	struct item *item = peer->recvs[slot];
	void *spare, *found = NULL;
	struct grant *grant;
	struct item *old;

	if (rte_mempool_get(server->pool->mp, &spare) != 0) {
		add_answer(peer, item->request.tag, ENOMEM);
		return;
	}
	grant_burst(peer); /* of before it */
	rte_hash_lookup_data(server->hash, &item->request.key, &found);
	if (rte_hash_add_key_data(server->hash, &item->request.key, item) < 0) {
		rte_mempool_put(server->pool->mp, spare);
		add_answer(peer, item->request.tag, ENOSPC);
		return;
	}
	LIST_INIT(&item->grants);
	item->putter = NULL;
	item->length = length;
	peer->recvs[slot] = spare;
	server->nb_puts++;
	if (found == NULL) {
		add_answer(peer, item->request.tag, 0);
		return;
	}
	old = found;
	old->putter = peer;
	old->put_conn = peer->nb_conns;
	old->put_tag = item->request.tag;
	old->nb_revoked = 0;
	LIST_FOREACH(grant, &old->grants, entry)
		rmem_lease_revoke(grant->peer->ctx, &grant->lease, 1);
	end_item(server, old);
}

static void
take_request(struct peer *peer, const struct rmem_wc *wc)
{
	const struct kv_request *request = &peer->recvs[wc->wr_id]->request;
	uint32_t length = wc->byte_len - (uint32_t)sizeof(*request);

	if (wc->byte_len < sizeof(*request))
		drop(peer); /* not a client of this program */
	else if (request->op == RTE_BE32(KV_GET))
		get(peer, request);
	else if (request->op == RTE_BE32(KV_PUT) && length != 0)
		put(peer, (uint32_t)wc->wr_id, length);
	else if (request->op != RTE_BE32(KV_DONE)) /* the context detects the end of the lease */
		add_answer(peer, request->tag, EINVAL);
}

/* Reclaim leases that have ended, for any reason; returns their number. */
static int
reclaim(struct peer *peer)
{
	struct rmem_lease *lease[KV_BURST];
	int i, n;

	n = rmem_lease_reclaim(peer->ctx, lease, KV_BURST);
	for (i = 0; i < n; i++) {
		struct grant *grant = lease[i]->user;

		LIST_REMOVE(grant, entry);
		LIST_INSERT_HEAD(&peer->spare, grant, entry);
		grant->item->nb_revoked += lease[i]->end == RMEM_LEASE_END_REVOKED;
		end_item(peer->server, grant->item);
	}
	return n;
}

/* Test the connection by an RDMA WRITE of no bytes, which needs no key. */
static void
probe(struct peer *peer)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	uint64_t now = rte_rdtsc();
	int ret;

	if (now < peer->probe_tsc)
		return;
	peer->probe_tsc = now + PROBE_S * rte_get_tsc_hz();
	ret = rmem_lease_post(peer->ctx, &wr, 1);
	if (ret < 0 && ret != -ENOSPC) /* a full queue has requests to test it */
		drop(peer);
}

/* One round of the poll loop, for one client. */
static void
serve(struct peer *peer)
{
	uint32_t slots[KV_BURST], nb_slots = 0;
	struct rmem_wc wc[KV_BURST];
	int i, n;

	n = rmem_lease_poll(peer->ctx, wc, KV_BURST); /* also revokes overdue leases */
	for (i = 0; i < n && wc[i].status == RMEM_WC_SUCCESS; i++) {
		if ((wc[i].opcode & RMEM_WC_RECV) == 0)
			continue; /* completion of an answer, or of a probe */
		take_request(peer, &wc[i]);
		slots[nb_slots++] = (uint32_t)wc[i].wr_id;
	}
	if (n < 0 || i < n)
		drop(peer);
	post_recvs(peer, slots, nb_slots);
	grant_burst(peer);
	while (reclaim(peer) > 0)
		;
	post_answers(peer);
}

/* Create the QP, its CQ and its lease context, with the QP in RESET. */
static int
open_qp(struct peer *peer)
{
	const struct kv_server *server = peer->server;
	const struct rmem_lease_conf conf = {
			.backend = server->conf->backend,
			.max_leases = KEYS_PER_LEASE * KV_LEASES,
			.min_leases = KV_LEASES,
			.max_length = (uint32_t)server->conf->value_size,
			.socket_id = SOCKET_ID_ANY,
	};
	int ret;

	ret = kv_qp_create(server->pd, RMEM_ACCESS_REMOTE_READ, &peer->cq, &peer->qp);
	if (ret == 0)
		ret = rmem_lease_ctx_create(peer->qp, &conf, &peer->ctx);
	peer->conn->server_qp = peer->qp;
	return ret;
}

/* The requests of the connection are dropped. */
static int
end_leases(struct peer *peer)
{
	struct rmem_wc wc[KV_BURST];
	int ret;

	ret = rmem_qp_reset(peer->qp);
	if (ret == 0)
		ret = rmem_lease_recover(peer->ctx);
	while (rmem_lease_poll(peer->ctx, wc, KV_BURST) > 0)
		;
	peer->nb_conns++;
	while (reclaim(peer) > 0)
		;
	peer->nb_answers = 0;
	return ret;
}

/* End all leases, so that the client can't reach any value, and destroy the QP. */
static int
close_qp(struct peer *peer)
{
	struct rmem_lease_stats stats, *sum;
	int ret;

	if (peer->ctx != NULL) { /* else it was not created */
		ret = end_leases(peer);
		rmem_lease_stats_get(peer->ctx, &stats);
		if (ret == 0)
			ret = rmem_lease_ctx_destroy(peer->ctx);
		if (ret != 0)
			return ret;
		sum = &peer->server->sum;
		sum->granted += stats.granted;
		sum->revoked += stats.revoked;
		sum->expired += stats.expired;
		sum->peer_invs += stats.peer_invs;
		sum->failed += stats.failed;
		peer->ctx = NULL;
	}
	kv_qp_destroy(&peer->cq, &peer->qp);
	return 0;
}

/* Offer a new QP in place of the QP of a lost connection. */
static void
offer(struct peer *peer)
{
	int ret;

	ret = close_qp(peer);
	if (ret == 0)
		ret = open_qp(peer);
	if (ret == 0) {
		kv_conn_move(peer->conn, KV_LOST, KV_OFFERED);
		return;
	}
	KV_ERR("server: no QP for a connection: %s", rte_strerror(-ret));
	kv_conn_set_closed(peer->conn);
}

/* The first round of a connection. */
static void
start(struct peer *peer)
{
	uint32_t i, slots[KV_RECVS];

	for (i = 0; i < KV_RECVS; i++)
		slots[i] = i;
	post_recvs(peer, slots, KV_RECVS);
	peer->probe_tsc = 0;
	kv_conn_move(peer->conn, KV_MADE, KV_UP);
}

/* One round for a connection, by its state; returns whether it is closed. */
static bool
serve_conn(struct peer *peer)
{
	int state = kv_conn_state(peer->conn);

	if (state == KV_OFFERED) /* the QP is the connector's */
		return false;
	if (state == KV_MADE)
		start(peer);
	/* Also for requests received before the end: they may have released leases. */
	if (peer->ctx != NULL)
		serve(peer);
	if (state == KV_UP)
		probe(peer);
	if (state == KV_LOST)
		offer(peer);
	return state == KV_CLOSED;
}

void
kv_server_run(struct kv_server *server)
{
	uint32_t i, nb_closed;

	server->has_run = true;
	do {
		nb_closed = 0;
		for (i = 0; i < server->nb_peers; i++)
			nb_closed += serve_conn(&server->peers[i]);
	} while (nb_closed != server->nb_peers);
}

static int
open_store(struct kv_server *server)
{
	/* Each client has one more, for its checks. */
	uint32_t nb_checks = server->conf->listen != NULL ? KV_CHECK_KEYS : server->nb_peers;
	uint32_t nb_items = (uint32_t)server->conf->keys + nb_checks;
	const struct rte_hash_parameters hash_conf = {
			.name = "kv",
			.entries = RTE_MAX(nb_items, 8u),
			.key_len = sizeof(rte_be64_t),
			.hash_func = rte_jhash,
			.socket_id = SOCKET_ID_ANY,
			.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE, /* takes all entries */
	};
	struct rmem_pool_conf pool_conf = {
			.name = "kv",
			.nb_bufs = nb_items + BUFS_PER_PEER * server->nb_peers,
			.buf_size = (uint32_t)(sizeof(struct item) + server->conf->value_size),
			.cache_size = KV_BURST,
			/* No remote rights: leases grant them. */
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY,
	};
	struct rmem_dev_info info;
	int ret;

	server->hash = rte_hash_create(&hash_conf);
	if (server->hash == NULL)
		return -rte_errno;
	ret = rmem_dev_info_get(server->dev, &info);
	if (ret != 0)
		return ret;
	pool_conf.access |= info.access & RMEM_ACCESS_MW_BIND; /* for leases made of windows */
	return rmem_pool_create(server->pd, &pool_conf, &server->pool);
}

static int
open_peer(struct kv_server *server, struct peer *peer, struct kv_conn *conn)
{
	uint32_t i;
	int ret;

	peer->server = server;
	peer->conn = conn;
	for (i = 0; i < KV_LEASES; i++) {
		peer->grants[i].peer = peer;
		LIST_INSERT_HEAD(&peer->spare, &peer->grants[i], entry);
	}
	ret = open_qp(peer);
	if (ret != 0)
		return ret;
	conn->state = KV_OFFERED;
	return rte_mempool_get_bulk(server->pool->mp, (void **)peer->recvs, KV_RECVS);
}

int
kv_server_open(const struct kv_conf *conf, struct rmem_dev *dev, struct kv_conn *conns,
		uint32_t nb_conns, struct kv_server **server)
{
	struct kv_server *new_server = calloc(1, sizeof(*new_server));
	uint32_t i;
	int ret = -ENOMEM;

	*server = new_server;
	if (new_server == NULL)
		return ret;
	new_server->conf = conf;
	new_server->dev = dev;
	new_server->nb_peers = nb_conns;
	new_server->peers = calloc(nb_conns, sizeof(*new_server->peers));
	if (new_server->peers != NULL)
		ret = rmem_pd_alloc(dev, &new_server->pd);
	if (ret == 0)
		ret = open_store(new_server);
	if (ret == 0 && conf->seal != NULL)
		ret = rmem_lease_sealer_create(conf->seal_key, &new_server->sealer);
	for (i = 0; i < nb_conns && ret == 0; i++)
		ret = open_peer(new_server, &new_server->peers[i], &conns[i]);
	if (ret != 0)
		KV_ERR("no server for %" PRIu64 " keys of %u clients, values of %" PRIu64
		       " bytes, on '%s': %s",
				conf->keys, nb_conns, conf->value_size, conf->dev,
				rte_strerror(-ret));
	return ret;
}

static int
close_peer(struct kv_server *server, struct peer *peer)
{
	int ret = close_qp(peer);

	if (peer->recvs[0] != NULL)
		rte_mempool_put_bulk(server->pool->mp, (void **)peer->recvs, KV_RECVS);
	return ret;
}

static void
print_counts(const struct kv_server *server)
{
	const struct rmem_lease_stats *sum = &server->sum;

	printf("server: %" PRIu64 " PUTs; %" PRIu64 " leases: %" PRIu64
	       " released by clients, %" PRIu64 " revoked, %" PRIu64 " expired, %" PRIu64
	       " lost with their connection\n",
			server->nb_puts, sum->granted, sum->peer_invs, sum->revoked, sum->expired,
			sum->failed);
}

int
kv_server_close(struct kv_server *server)
{
	uint32_t i, next = 0;
	const void *key;
	void *item;
	int ret = 0;

	if (server == NULL)
		return 0;
	for (i = 0; server->peers != NULL && i < server->nb_peers; i++)
		ret |= close_peer(server, &server->peers[i]);
	if (server->has_run)
		print_counts(server);
	while (server->hash != NULL && rte_hash_iterate(server->hash, &key, &item, &next) >= 0)
		rte_mempool_put(server->pool->mp, item);
	rte_hash_free(server->hash);
	rmem_lease_sealer_destroy(server->sealer);
	ret |= rmem_pool_destroy(server->pool);
	if (ret == 0 && server->pd != NULL)
		ret = rmem_pd_dealloc(server->pd);
	free(server->peers);
	free(server);
	return ret;
}
