/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pairs whose QPs are on two hosts: with --listen there is the peer QP b and its targets, with
 * --connect the requester QP a. The answer to a connection tells where the targets are. Pairs
 * connect in the order of their ids.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <rmem_cm.h>

#include "testrmem.h"

#define REMOTE_PORT    7174
#define ACCEPT_MS      200
#define CONNECT_MS     10000
#define SERVE_MS       10
#define VERIFY_SECONDS 10
#define MAX_MODE       8

/* What the listening side answers. */
struct answer {
	rte_be64_t addr; /* Of the first target. */
	rte_be64_t step; /* To the next. */
	rte_be64_t size;
	rte_be32_t nb_targets;
	rte_be32_t rkey;
	char mode[MAX_MODE];
};

static int
parse(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *four = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(REMOTE_PORT);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(REMOTE_PORT);
		return 0;
	}
	testrmem_err("'%s' is no IP address", text);
	return -EINVAL;
}

static int
read_setup(struct testrmem_pair *pair)
{
	return testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_READ);
}

/* Until the peer ends the connection. */
static int
serve_burst(struct testrmem_pair *pair, bool is_draining)
{
	int ret;

	if (is_draining || pair->is_done)
		return 0;
	ret = rmem_cm_wait_end(pair->conn, SERVE_MS);
	if (ret == -ETIMEDOUT)
		return 1;
	pair->is_done = true;
	return ret == 0 ? 0 : testrmem_pair_refused(pair, "wait for the peer", ret);
}

static int
serve_setup(struct testrmem_pair *pair)
{
	RTE_SET_USED(pair);
	return 0;
}

static void
serve_teardown(struct testrmem_pair *pair)
{
	RTE_SET_USED(pair);
}

/* The bytes of a target that mode read is to find, as both sides know them. */
static void
fill_target(const struct testrmem_pair *pair, void *bytes, uint32_t target)
{
	testrmem_fill(bytes, pair->size, ~(((uint64_t)pair->id << 32) + target));
}

static int
serve_read_setup(struct testrmem_pair *pair)
{
	uint32_t i;

	for (i = 0; i < pair->nb_targets; i++)
		fill_target(pair, testrmem_ptr(pair->targets[i].addr), i);
	return 0;
}

static int
differs(struct testrmem_pair *pair, const struct rmem_send_wr *wr)
{
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": %" PRIu32 " bytes at the peer's 0x%" PRIx64
			" are not as they must be",
			pair->id, pair->size, wr->rdma.remote_addr);
	return -EIO;
}

/* The request before the next one; NULL when there was none. */
static struct rmem_send_wr *
last_request(struct testrmem_pair *pair)
{
	return pair->posted == 0 ? NULL : &pair->wr[(pair->slot + pair->depth - 1) % pair->depth];
}

static int
read_verify(struct testrmem_pair *pair)
{
	const struct rmem_send_wr *wr = last_request(pair);
	uint32_t i = 0;
	uint8_t *want;
	int ret = 0;

	if (wr == NULL)
		return 0;
	want = testrmem_alloc(1, pair->size);
	if (want == NULL)
		return -ENOMEM;
	while (pair->targets[i].addr != wr->rdma.remote_addr)
		i++;
	fill_target(pair, want, i);
	if (memcmp(want, testrmem_ptr(wr->sg_list->addr), pair->size) != 0)
		ret = differs(pair, wr);
	rte_free(want);
	return ret;
}

/* Read a target into the buffer of a request. */
static int
read_back(struct testrmem_pair *pair, struct rmem_send_wr *wr)
{
	uint64_t end = rte_get_timer_cycles() + VERIFY_SECONDS * rte_get_timer_hz();
	struct rmem_wc wc;
	int ret;

	wr->opcode = RMEM_WR_RDMA_READ;
	wr->flags |= RMEM_SEND_SIGNALED;
	ret = rmem_post_send(pair->qp_a, wr, 1);
	if (ret != 1)
		return testrmem_pair_refused(pair, "post of a READ", ret);
	do {
		ret = rmem_poll_cq(pair->cq_a, &wc, 1);
	} while (ret == 0 && rte_get_timer_cycles() < end);
	if (ret != 1)
		return testrmem_pair_refused(pair, "poll of a READ", ret < 0 ? ret : -ETIMEDOUT);
	return wc.status == RMEM_WC_SUCCESS ? 0 : testrmem_pair_failed(pair, "READ", &wc);
}

static int
write_verify(struct testrmem_pair *pair)
{
	struct rmem_send_wr *wr = last_request(pair);
	uint8_t *want;
	void *got;
	int ret;

	if (wr == NULL)
		return 0;
	want = testrmem_alloc(1, pair->size);
	if (want == NULL)
		return -ENOMEM;
	got = testrmem_ptr(wr->sg_list->addr);
	memcpy(want, got, pair->size);
	memset(got, 0, pair->size);
	ret = read_back(pair, wr);
	if (ret == 0 && memcmp(want, got, pair->size) != 0)
		ret = differs(pair, wr);
	rte_free(want);
	return ret;
}

static int
open_listen(struct testrmem_session *session)
{
	struct testrmem_engine *engine = &session->remote_engine;
	struct sockaddr_storage addr;
	int ret;

	engine->setup = session->conf.engine == &testrmem_engine_read ? serve_read_setup
								      : serve_setup;
	engine->burst = serve_burst;
	engine->verify = NULL;
	engine->verified = "the peers ended all connections";
	engine->teardown = serve_teardown;
	engine->target_access |= RMEM_ACCESS_REMOTE_READ;
	session->conf.run_ms = 0;
	session->conf.ops = 0;
	ret = parse(session->conf.listen, &addr);
	if (ret != 0)
		return ret;
	ret = rmem_cm_listen((struct sockaddr *)&addr, &session->listener);
	if (ret != 0)
		testrmem_err("cannot listen at %s: %s", session->conf.listen, rte_strerror(-ret));
	return ret;
}

int
testrmem_remote_open(struct testrmem_session *session)
{
	struct testrmem_engine *engine = &session->remote_engine;

	*engine = *session->engine;
	session->engine = engine;
	if (session->conf.listen[0] != '\0')
		return open_listen(session);
	engine->target_access = 0;
	if (session->conf.engine == &testrmem_engine_read) {
		engine->setup = read_setup;
		engine->verify = read_verify;
		engine->verified = "the last READ of each QP pair is what the peer's target holds";
	} else {
		engine->verify = write_verify;
		engine->verified = "the last WRITE of each QP pair was read back";
	}
	return 0;
}

void
testrmem_remote_close(struct testrmem_session *session)
{
	rmem_cm_unlisten(session->listener);
	session->listener = NULL;
}

static int
accept_pair(struct testrmem_pair *pair, struct testrmem_session *session,
		const struct rmem_cm_conf *common)
{
	const struct testrmem_target *targets = pair->targets;
	struct rmem_cm_conf conf = *common;
	struct answer answer;
	int ret;

	memset(&answer, 0, sizeof(answer));
	answer.addr = rte_cpu_to_be_64(targets[0].addr);
	answer.step = rte_cpu_to_be_64(
			pair->nb_targets > 1 ? targets[1].addr - targets[0].addr : 0);
	answer.size = rte_cpu_to_be_64(pair->size);
	answer.nb_targets = rte_cpu_to_be_32(pair->nb_targets);
	answer.rkey = rte_cpu_to_be_32(targets[0].rkey);
	snprintf(answer.mode, sizeof(answer.mode), "%s", session->engine->name);
	conf.qp = pair->qp_b;
	conf.data = &answer;
	conf.data_size = sizeof(answer);
	conf.timeout_ms = ACCEPT_MS;
	do {
		ret = rmem_cm_accept(session->listener, &conf, NULL, &pair->conn);
	} while ((ret == -ETIMEDOUT || ret == -EBADMSG || ret == -ECONNREFUSED) &&
			!testrmem_is_interrupted());
	if (ret != 0)
		testrmem_err("no peer at %s: %s", session->conf.listen, rte_strerror(-ret));
	return ret;
}

static int
take_targets(struct testrmem_pair *pair, const struct testrmem_session *session,
		const struct rmem_cm_peer *peer)
{
	struct answer answer;
	uint32_t i;

	memcpy(&answer, peer->data, sizeof(answer));
	answer.mode[MAX_MODE - 1] = '\0';
	pair->nb_targets = rte_be_to_cpu_32(answer.nb_targets);
	if (peer->data_size != sizeof(answer) || pair->nb_targets == 0 ||
			strcmp(answer.mode, session->engine->name) != 0 ||
			rte_be_to_cpu_64(answer.size) != pair->size) {
		testrmem_err("%s serves mode '%s' with size %" PRIu64 ", not '%s' with %" PRIu32,
				session->conf.connect, answer.mode, rte_be_to_cpu_64(answer.size),
				session->engine->name, pair->size);
		return -EINVAL;
	}
	pair->targets = testrmem_alloc(pair->nb_targets, sizeof(*pair->targets));
	if (pair->targets == NULL)
		return -ENOMEM;
	for (i = 0; i < pair->nb_targets; i++) {
		pair->targets[i].addr =
				rte_be_to_cpu_64(answer.addr) + i * rte_be_to_cpu_64(answer.step);
		pair->targets[i].rkey = rte_be_to_cpu_32(answer.rkey);
	}
	return 0;
}

static int
connect_pair(struct testrmem_pair *pair, const struct testrmem_session *session,
		struct rmem_cm_conf *conf)
{
	struct sockaddr_storage addr;
	struct rmem_cm_peer peer;
	int ret;

	ret = parse(session->conf.connect, &addr);
	if (ret != 0)
		return ret;
	conf->qp = pair->qp_a;
	conf->timeout_ms = CONNECT_MS;
	ret = rmem_cm_connect((struct sockaddr *)&addr, conf, &peer, &pair->conn);
	if (ret == 0)
		return take_targets(pair, session, &peer);
	testrmem_err("cannot connect to %s: %s", session->conf.connect, rte_strerror(-ret));
	return ret;
}

int
testrmem_remote_connect(struct testrmem_pair *pair, struct testrmem_session *session)
{
	struct rmem_cm_conf conf;

	memset(&conf, 0, sizeof(conf));
	conf.timeout = 14; /* 67 ms */
	conf.retry_cnt = 7;
	conf.rnr_retry = 7;
	conf.min_rnr_timer = 12; /* 0.64 ms */
	return session->listener != NULL ? accept_pair(pair, session, &conf)
					 : connect_pair(pair, session, &conf);
}

void
testrmem_remote_disconnect(struct testrmem_pair *pair)
{
	rmem_cm_close(pair->conn);
	pair->conn = NULL;
}
