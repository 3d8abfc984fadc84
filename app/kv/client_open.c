/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Creation and release of the objects of a client. */

#include <stdlib.h>

#include "client.h"

/* One MR for all messages of a client, with memory allocated by the library. */
static int
open_memory(struct kv_client *client)
{
	size_t answers = KV_BURST * sizeof(struct kv_answer);
	size_t values = KV_BURST * client->conf->value_size;
	size_t put = sizeof(struct kv_request) + client->conf->value_size;
	uint8_t *addr;
	int ret;

	put = RTE_ALIGN_CEIL(put, RTE_CACHE_LINE_SIZE);
	ret = rmem_mr_reg(client->pd, NULL, put + answers + values, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ALLOCATE_MR, &client->mr);
	if (ret != 0)
		return ret;
	addr = client->mr->addr;
	client->put = (struct kv_request *)addr;
	client->answers = (struct kv_answer *)(addr + put);
	client->values = addr + put + answers;
	return 0;
}

int
kv_client_open(const struct kv_conf *conf, struct rmem_dev *dev, struct kv_conn *conn,
		uint32_t number, struct kv_client **client)
{
	struct kv_client *new_client = calloc(1, sizeof(*new_client));
	int ret;

	*client = new_client;
	if (new_client == NULL)
		return -ENOMEM;
	new_client->conf = conf;
	new_client->conn = conn;
	new_client->number = number;
	/* A PD of its own, as it would have on another host. */
	ret = rmem_pd_alloc(dev, &new_client->pd);
	if (ret == 0)
		ret = open_memory(new_client);
	if (ret == 0)
		ret = kv_qp_create(new_client->pd, RMEM_ACCESS_REMOTE_WRITE, &new_client->cq,
				&new_client->qp);
	if (ret == 0 && conf->seal != NULL)
		ret = rmem_lease_sealer_create(conf->seal_key, &new_client->sealer);
	if (ret != 0)
		KV_ERR("no client %" PRIu32 ", values of %" PRIu64 " bytes, on '%s': %s", number,
				conf->value_size, conf->dev, rte_strerror(-ret));
	return ret;
}

int
kv_client_close(struct kv_client *client)
{
	int ret;

	if (client == NULL)
		return 0;
	rmem_lease_sealer_destroy(client->sealer);
	kv_qp_destroy(&client->cq, &client->qp);
	ret = rmem_mr_dereg(client->mr);
	if (ret == 0 && client->pd != NULL)
		ret = rmem_pd_dealloc(client->pd);
	free(client);
	return ret;
}
