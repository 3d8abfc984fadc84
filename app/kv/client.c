/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Client: request leases of values in bursts, READ the values, release the leases.
 * The server's CPU has no part in the READs.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "client.h"

#define PROBE   UINT64_MAX /* wr_id */
#define PROBE_S 1

int
client_connect(struct kv_client *client)
{
	return kv_conn_connect(client->conf, client->conn, client->qp);
}

/* A refused request has ended both QPs, and rdma_cm may reject the number of a QP used before. */
int
client_reconnect(struct kv_client *client)
{
	int ret;

	kv_conn_lose(client->conf, client->conn);
	kv_qp_destroy(&client->cq, &client->qp);
	client->is_probing = false;
	ret = kv_qp_create(client->pd, RMEM_ACCESS_REMOTE_WRITE, &client->cq, &client->qp);
	if (ret != 0) {
		KV_ERR("client %" PRIu32 ": no QP for a connection: %s", client->number,
				rte_strerror(-ret));
		return ret;
	}
	return client_connect(client);
}

/*
 * Test the connection, once a second while an answer does not arrive, by an RDMA READ of no bytes:
 * a server that was killed ends no connection, and has acknowledged the request.
 */
static int
probe(struct kv_client *client)
{
	const struct rmem_send_wr wr = {
			.wr_id = PROBE, .opcode = RMEM_WR_RDMA_READ, .flags = RMEM_SEND_SIGNALED};
	uint64_t now = rte_rdtsc();
	int ret;

	if (client->probe_tsc == 0)
		client->probe_tsc = now + PROBE_S * rte_get_tsc_hz();
	if (client->is_probing || now < client->probe_tsc)
		return 0;
	client->probe_tsc = now + PROBE_S * rte_get_tsc_hz();
	ret = rmem_post_send(client->qp, &wr, 1);
	client->is_probing = ret == 1;
	return ret < 0 ? ret : 0;
}

/* Nothing has completed: 0 to continue, or the reason to end. After Ctrl-C, end is the deadline. */
static int
check_wait(struct kv_client *client, bool is_sent, uint64_t *end)
{
	int ret;

	/* A SEND always completes; an answer may not arrive. */
	if (is_sent && !kv_conn_is_up(client->conf, client->conn))
		return -ECONNRESET;
	ret = is_sent ? probe(client) : 0;
	if (ret != 0)
		return ret;
	if (!kv_is_interrupted(client->conf))
		return 0;
	if (*end == 0)
		*end = rte_rdtsc() + rte_get_tsc_hz();
	return rte_rdtsc() < *end ? 0 : -EINTR;
}

/* Wait for a signaled request, and for the given number of answers. */
static int
wait_for(struct kv_client *client, bool is_sent, uint32_t nb_answers)
{
	struct rmem_wc wc[KV_BURST];
	uint32_t nb_arrived = 0;
	uint64_t end = 0;
	int i, n, ret;

	client->probe_tsc = 0;
	while (!is_sent || nb_arrived < nb_answers) {
		n = rmem_poll_cq(client->cq, wc, KV_BURST);
		if (n < 0)
			return n;
		ret = n == 0 ? check_wait(client, is_sent, &end) : 0;
		if (ret != 0)
			return ret;
		for (i = 0; i < n; i++) {
			if (wc[i].status != RMEM_WC_SUCCESS)
				return wc[i].status;
			if (wc[i].opcode & RMEM_WC_RECV)
				client->arrived[nb_arrived++] = (uint32_t)wc[i].wr_id;
			else if (wc[i].wr_id == PROBE)
				client->is_probing = false;
			else
				is_sent = true;
		}
	}
	return 0;
}

/* Post receives for n answers, then n requests, the last one signaled; wait for all of it. */
static int
post(struct kv_client *client, struct rmem_send_wr *wr, uint32_t n, uint32_t nb_answers)
{
	struct rmem_recv_wr recv[KV_BURST];
	struct rmem_sge sge[KV_BURST];
	uint32_t i;
	int ret;

	if (n == 0)
		return 0;
	for (i = 0; i < nb_answers; i++) {
		sge[i] = (struct rmem_sge){(uintptr_t)&client->answers[i], sizeof(struct kv_answer),
				client->mr->lkey};
		recv[i] = (struct rmem_recv_wr){.wr_id = i, .sg_list = &sge[i], .num_sge = 1};
	}
	ret = nb_answers == 0 ? 0 : rmem_post_recv(client->qp, recv, (uint16_t)nb_answers);
	if (ret != (int)nb_answers)
		return ret < 0 ? ret : -EIO;
	wr[n - 1].flags |= RMEM_SEND_SIGNALED;
	ret = rmem_post_send(client->qp, wr, (uint16_t)n);
	if (ret != (int)n)
		return ret < 0 ? ret : -EIO;
	return wait_for(client, false, nb_answers);
}

/* Eight bytes of a value; the first are different for each key and version. */
static inline uint64_t
value_word(uint64_t key, uint32_t version, size_t at)
{
	return (key + 1) * UINT64_C(0x9e3779b97f4a7c15) + version + at;
}

bool
client_has(const struct kv_client *client, uint32_t i, uint64_t key, uint32_t version)
{
	size_t size = client->conf->value_size, at;
	const uint8_t *value = client->values + i * size;

	for (at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = value_word(key, version, at);

		if (memcmp(value + at, &word, RTE_MIN(size - at, sizeof(word))) != 0)
			return false;
	}
	return true;
}

static void
fill_request(struct kv_request *request, uint32_t op, uint32_t tag, uint64_t key)
{
	request->op = rte_cpu_to_be_32(op);
	request->tag = rte_cpu_to_be_32(tag);
	request->key = rte_cpu_to_be_64(key);
}

/* The -errno of an answer; no server has an error above those of the kernel. */
static int
error_of(const struct kv_answer *answer)
{
	uint32_t error = rte_be_to_cpu_32(answer->error);

	return error < 4096 ? -(int)error : -EBADMSG;
}

int
client_put(struct kv_client *client, uint64_t key, uint32_t version, uint32_t *nb_revoked)
{
	const struct rmem_sge sge = {(uintptr_t)client->put,
			(uint32_t)(sizeof(*client->put) + client->conf->value_size),
			client->mr->lkey};
	struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND, .sg_list = &sge, .num_sge = 1};
	size_t size = client->conf->value_size, at;
	uint8_t *value = (uint8_t *)(client->put + 1);
	int ret;

	fill_request(client->put, KV_PUT, 0, key);
	for (at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = value_word(key, version, at);

		memcpy(value + at, &word, RTE_MIN(size - at, sizeof(word)));
	}
	ret = post(client, &wr, 1, 1);
	if (ret != 0)
		return ret;
	*nb_revoked = rte_be_to_cpu_32(client->answers[0].nb_revoked);
	return error_of(&client->answers[0]);
}

int
client_open_desc(const struct kv_client *client, const struct kv_answer *answer,
		struct rmem_lease_desc *desc)
{
	uint32_t size = RTE_MIN(rte_be_to_cpu_32(answer->desc_size), sizeof(answer->desc));
	const struct kv_seal_with *with = &client->conn->qps;
	int ret;

	if (client->sealer == NULL)
		ret = rmem_lease_desc_unpack(answer->desc, size, desc, NULL);
	else
		ret = rmem_lease_unseal(client->sealer, answer->desc, size, with, sizeof(*with),
				desc, NULL, NULL);
	if (ret < 0)
		return ret;
	return desc->length == client->conf->value_size ? 0 : -EBADMSG;
}

static int
take_lease(struct kv_client *client, const struct kv_answer *answer)
{
	uint32_t tag = rte_be_to_cpu_32(answer->tag);
	int ret = error_of(answer);

	if (ret != 0)
		return ret;
	if (tag >= KV_BURST)
		return -EBADMSG;
	ret = client_open_desc(client, answer, &client->desc[tag]);
	client->half_time[tag] = rte_rdtsc() +
			(uint64_t)((double)client->desc[tag].left_ns / 2e9 *
					(double)rte_get_tsc_hz());
	return ret;
}

int
client_get(struct kv_client *client, const uint64_t *keys, uint32_t n)
{
	struct kv_request request[KV_BURST];
	struct rmem_send_wr wr[KV_BURST];
	struct rmem_sge sge[KV_BURST];
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		fill_request(&request[i], KV_GET, i, keys[i]);
		sge[i] = (struct rmem_sge){(uintptr_t)&request[i], sizeof(request[i]), 0};
		wr[i] = (struct rmem_send_wr){.opcode = RMEM_WR_SEND,
				.sg_list = &sge[i],
				.num_sge = 1,
				.flags = RMEM_SEND_INLINE};
	}
	ret = post(client, wr, n, n);
	for (i = 0; i < n && ret == 0; i++)
		ret = take_lease(client, &client->answers[client->arrived[i]]);
	return ret;
}

int
client_read(struct kv_client *client, uint32_t n)
{
	uint32_t size = (uint32_t)client->conf->value_size, i;
	struct rmem_send_wr wr[KV_BURST];
	struct rmem_sge sge[KV_BURST];

	for (i = 0; i < n; i++) {
		sge[i] = (struct rmem_sge){(uintptr_t)(client->values + (size_t)i * size), size,
				client->mr->lkey};
		wr[i] = (struct rmem_send_wr){.opcode = RMEM_WR_RDMA_READ,
				.sg_list = &sge[i],
				.num_sge = 1,
				.rdma = {.remote_addr = client->desc[i].remote_addr,
						.rkey = client->desc[i].rkey}};
	}
	return post(client, wr, n, 0);
}

/*
 * SEND_WITH_INV saves the server an invalidation. It must not cross the server's own at the end of
 * the lease, which would break the connection: in the second half of its duration a lease is left
 * to expire.
 */
int
client_release(struct kv_client *client, uint32_t n)
{
	struct rmem_send_wr wr[KV_BURST];
	struct kv_request request;
	const struct rmem_sge sge = {(uintptr_t)&request, sizeof(request), 0};
	uint64_t now = rte_rdtsc();
	uint32_t i, nb = 0;

	fill_request(&request, KV_DONE, 0, 0);
	for (i = 0; i < n; i++) {
		if (now < client->half_time[i])
			wr[nb++] = (struct rmem_send_wr){.opcode = RMEM_WR_SEND_WITH_INV,
					.sg_list = &sge,
					.num_sge = 1,
					.flags = RMEM_SEND_INLINE,
					.invalidate_rkey = client->desc[i].rkey};
	}
	client->nb_released += nb;
	client->nb_left += n - nb;
	return post(client, wr, nb, 0);
}

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
