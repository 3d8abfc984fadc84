/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Two connected hosts. Each sends the other its settings, so that both detect a mismatch;
 * the answer to a connection has the addresses of the targets and the report.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_cycles.h>
#include <rte_errno.h>

#include <rmem_cm.h>

#include "remote.h"

#define HELLO_MAGIC 0x7401 /* "t", version 1 */
#define ACCEPT_MS   1000
#define CONNECT_MS  10000
#define WATCH_MS    10
#define MAX_TARGETS 65536

/* The settings of a host. */
struct hello {
	rte_be16_t magic;
	uint8_t mode; /* Place in testrmem_engines. */
	uint8_t reserved;
	rte_be32_t pair;
	rte_be32_t size;
	rte_be32_t depth;
	rte_be16_t burst;
	rte_be16_t qps;
	rte_be16_t lcores;
	uint8_t zero[2];
};

static_assert(sizeof(struct hello) <= RMEM_CM_MAX_REQUEST, "fits a request");

/* Answer of the listening host. */
struct answer {
	struct hello hello;
	rte_be64_t addr; /* Of the first target. */
	rte_be64_t step; /* To the next. */
	rte_be32_t nb_targets;
	rte_be32_t rkey;
	rte_be64_t report_addr;
	rte_be32_t report_rkey;
	rte_be32_t reserved;
};

static const char *
why(int ret)
{
	switch (ret) {
	case -EEXIST:
		return "its port is in use";
	case -ENODEV:
		return "the device has no such address, or no route to it";
	case -ECONNREFUSED:
		return "no listener, or connection refused";
	case -EHOSTUNREACH:
		return "no such host";
	case -ETIMEDOUT:
		return "no answer: no such process, or port= is another one there";
	case -EBADMSG:
		return "the listener is not this program";
	default:
		return rte_strerror(-ret);
	}
}

static uint8_t
mode_index(const struct testrmem_session *session)
{
	uint8_t i = 0;

	while (testrmem_engines[i] != session->conf.engine)
		i++;
	return i;
}

static const char *
mode_name(uint8_t index)
{
	uint8_t i = 0;

	while (i < index && testrmem_engines[i] != NULL)
		i++;
	return testrmem_engines[i] != NULL ? testrmem_engines[i]->name : "unknown";
}

static struct hello
make_hello(const struct testrmem_pair *pair, const struct testrmem_session *session)
{
	const struct testrmem_conf *conf = &session->conf;

	return (struct hello){
			.magic = rte_cpu_to_be_16(HELLO_MAGIC),
			.mode = mode_index(session),
			.pair = rte_cpu_to_be_32(pair->id),
			.size = rte_cpu_to_be_32((uint32_t)conf->size),
			.depth = rte_cpu_to_be_32((uint32_t)conf->depth),
			.burst = rte_cpu_to_be_16((uint16_t)conf->burst),
			.qps = rte_cpu_to_be_16((uint16_t)conf->qps),
			.lcores = rte_cpu_to_be_16((uint16_t)session->nb_workers),
	};
}

/* Compare the settings that must be the same on both hosts; reports the first mismatch. */
static int
compare(const struct testrmem_session *session, const struct hello *mine, const struct hello *peer)
{
	const struct testrmem_engine *engine = session->conf.engine;
	/* Whether both have a ring of requests of the same size. */
	bool is_ring = (engine->flags & ENGINE_RECV) || engine->grant != NULL;
	const struct {
		const char *name;
		uint32_t here;
		uint32_t there;
	} table[] = {
			{"size", rte_be_to_cpu_32(mine->size), rte_be_to_cpu_32(peer->size)},
			{"qps", rte_be_to_cpu_16(mine->qps), rte_be_to_cpu_16(peer->qps)},
			{"worker lcores", rte_be_to_cpu_16(mine->lcores),
					rte_be_to_cpu_16(peer->lcores)},
			{"QP pair", rte_be_to_cpu_32(mine->pair), rte_be_to_cpu_32(peer->pair)},
			{"depth", rte_be_to_cpu_32(mine->depth), rte_be_to_cpu_32(peer->depth)},
			{"burst", rte_be_to_cpu_16(mine->burst), rte_be_to_cpu_16(peer->burst)},
	};
	size_t i, nb = is_ring ? RTE_DIM(table) : RTE_DIM(table) - 2;

	if (mine->mode != peer->mode) {
		testrmem_err("the hosts do not match: mode %s here, %s on the other",
				mode_name(mine->mode), mode_name(peer->mode));
		return -EINVAL;
	}
	for (i = 0; i < nb; i++) {
		if (table[i].here == table[i].there)
			continue;
		testrmem_err("the hosts do not match: %s %" PRIu32 " here, %" PRIu32
			     " on the other",
				table[i].name, table[i].here, table[i].there);
		return -EINVAL;
	}
	return 0;
}

/* Get the settings of the other host from the start of its message. */
static int
check_hello(const struct testrmem_session *session, const struct hello *mine,
		const struct rmem_cm_peer *peer, size_t size)
{
	struct hello hello;

	memcpy(&hello, peer->data, sizeof(hello));
	if (peer->data_size != size || hello.magic != rte_cpu_to_be_16(HELLO_MAGIC)) {
		testrmem_err("the peer is not this program, or of another version: it sent %" PRIu32
			     " bytes, not %zu, or other ones",
				peer->data_size, size);
		return -EINVAL;
	}
	return compare(session, mine, &hello);
}

int
testrmem_remote_open(struct testrmem_session *session)
{
	const struct testrmem_engine *mode = session->conf.engine;
	struct testrmem_conf *conf = &session->conf;
	struct sockaddr_storage addr;
	int ret;

	if (conf->listen[0] == '\0') {
		session->engine = mode->connector;
		return 0;
	}
	session->engine = mode->listener;
	/* The other host decides. */
	conf->run_ms = 0;
	conf->ops = 0;
	ret = testrmem_addr_parse(conf->listen, &addr);
	if (ret != 0)
		return ret;
	ret = rmem_cm_listener_create((struct sockaddr *)&addr, &session->listener);
	if (ret != 0)
		testrmem_err("cannot listen at %s port %d: %s", conf->listen, REMOTE_PORT,
				why(ret));
	else
		printf("listening at %s port %d\n", conf->listen, REMOTE_PORT);
	return ret;
}

void
testrmem_remote_close(struct testrmem_session *session)
{
	rmem_cm_listener_destroy(session->listener);
	session->listener = NULL;
}

static struct rmem_cm_conf
make_conf(struct rmem_qp *qp, const void *data, uint32_t data_size, uint32_t timeout_ms)
{
	return (struct rmem_cm_conf){
			.qp = qp,
			.data = data,
			.data_size = data_size,
			.timeout_ms = timeout_ms,
			.timeout = 17,  /* 0.54 s, for hosts that are busy */
			.retry_cnt = 6, /* rdma_rxe treats 7 as unlimited */
			.rnr_retry = 7,
			.min_rnr_timer = 12, /* 0.64 ms */
	};
}

static int
accept_pair(struct testrmem_pair *pair, struct testrmem_session *session)
{
	uint64_t end = rte_rdtsc() + CONNECT_MS / 1000 * rte_get_tsc_hz();
	const struct testrmem_target *targets = pair->targets;
	struct answer answer = {.hello = make_hello(pair, session)};
	struct testrmem_remote *remote = pair->remote;
	struct rmem_cm_conf conf;
	struct rmem_cm_peer peer;
	int ret;

	if (pair->nb_targets != 0) {
		answer.addr = rte_cpu_to_be_64(targets[0].addr);
		answer.step = rte_cpu_to_be_64(
				pair->nb_targets > 1 ? targets[1].addr - targets[0].addr : 0);
		answer.nb_targets = rte_cpu_to_be_32(pair->nb_targets);
		answer.rkey = rte_cpu_to_be_32(targets[0].rkey);
	}
	answer.report_addr = rte_cpu_to_be_64(remote->mr->iova);
	answer.report_rkey = rte_cpu_to_be_32(remote->mr->rkey);
	conf = make_conf(pair->qp_b, &answer, sizeof(answer), ACCEPT_MS);
	/* The wait for the first pair is unlimited; the others follow immediately. */
	do {
		ret = rmem_cm_accept(session->listener, &conf, &peer, &remote->conn);
	} while ((ret == -ETIMEDOUT || ret == -EBADMSG || ret == -ECONNREFUSED) &&
			!testrmem_is_interrupted() && (pair->id == 0 || rte_rdtsc() < end));
	if (ret != 0) {
		testrmem_err("no peer for QP pair %" PRIu32 " at %s: %s", pair->id,
				session->conf.listen,
				testrmem_is_interrupted() ? "interrupted" : rte_strerror(-ret));
		return ret;
	}
	return check_hello(session, &answer.hello, &peer, sizeof(answer.hello));
}

static int
take_answer(struct testrmem_pair *pair, const struct answer *answer)
{
	bool has_targets = pair->worker->session->conf.engine->target_access != 0;
	uint32_t i, nb = rte_be_to_cpu_32(answer->nb_targets);

	pair->remote->peer.addr = rte_be_to_cpu_64(answer->report_addr);
	pair->remote->peer.rkey = rte_be_to_cpu_32(answer->report_rkey);
	if (nb < has_targets || nb > (has_targets ? MAX_TARGETS : 0)) {
		testrmem_err("the peer reports %" PRIu32 " targets, not %d to %d", nb, has_targets,
				has_targets ? MAX_TARGETS : 0);
		return -EINVAL;
	}
	if (nb == 0)
		return 0;
	pair->targets = testrmem_alloc(nb, sizeof(*pair->targets));
	if (pair->targets == NULL)
		return -ENOMEM;
	pair->nb_targets = nb;
	for (i = 0; i < nb; i++) {
		pair->targets[i].addr =
				rte_be_to_cpu_64(answer->addr) + i * rte_be_to_cpu_64(answer->step);
		pair->targets[i].rkey = rte_be_to_cpu_32(answer->rkey);
	}
	return 0;
}

static int
connect_pair(struct testrmem_pair *pair, const struct testrmem_session *session)
{
	struct hello hello = make_hello(pair, session);
	struct sockaddr_storage addr;
	struct rmem_cm_conf conf;
	struct rmem_cm_peer peer;
	struct answer answer;
	int ret;

	ret = testrmem_addr_parse(session->conf.connect, &addr);
	if (ret != 0)
		return ret;
	conf = make_conf(pair->qp_a, &hello, sizeof(hello), CONNECT_MS);
	ret = rmem_cm_connect((struct sockaddr *)&addr, &conf, &peer, &pair->remote->conn);
	if (ret != 0) {
		testrmem_err("cannot connect to %s port %d: %s", session->conf.connect, REMOTE_PORT,
				why(ret));
		return ret;
	}
	ret = check_hello(session, &hello, &peer, sizeof(answer));
	if (ret != 0)
		return ret;
	memcpy(&answer, peer.data, sizeof(answer));
	return take_answer(pair, &answer);
}

int
testrmem_remote_connect(struct testrmem_pair *pair, struct testrmem_session *session)
{
	int ret = testrmem_remote_make(pair);

	if (ret != 0)
		return ret;
	return session->listener != NULL ? accept_pair(pair, session) : connect_pair(pair, session);
}

void
testrmem_remote_disconnect(struct testrmem_pair *pair)
{
	if (pair->remote == NULL)
		return;
	rmem_cm_disconnect(pair->remote->conn);
	pair->remote->conn = NULL;
}

int
testrmem_remote_watch(struct testrmem_pair *pair)
{
	struct testrmem_session *session = pair->worker->session;
	struct testrmem_remote *remote = pair->remote;
	uint64_t now = rte_rdtsc();
	int ret;

	if (pair->is_done || now < remote->watch_tsc)
		return 0;
	remote->watch_tsc = now + WATCH_MS * rte_get_tsc_hz() / 1000;
	ret = rmem_cm_wait_disconnect(remote->conn, 0);
	if (ret == -ETIMEDOUT)
		return testrmem_remote_probe(pair);
	if (ret != 0)
		return testrmem_pair_refused(pair, "the connection", ret);
	if (session->listener != NULL) {
		testrmem_remote_ended(pair);
		return 0;
	}
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(session, "QP pair %" PRIu32 ": the other host ended the connection",
			pair->id);
	return -ECONNRESET;
}
