/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Creation and release of the objects of the server. */

#include <stdlib.h>

#include <rte_jhash.h>

#include "server.h"

/* A PUT takes one more buffer until the leases of the previous value have ended. */
#define BUFS_PER_PEER (2 * KV_RECVS)

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
	ret = peer_open_qp(peer);
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
	int ret = peer_close_qp(peer);

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
