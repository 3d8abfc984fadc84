/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Sessions: assignment of lcores, pairs and devices. Pairs are numbered over all lcores, and
 * number p uses device p modulo their number.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "param.h"
#include "latency.h"
#include "remote.h"

static void
close_pairs(struct testrmem_session *session, struct testrmem_worker *worker)
{
	uint32_t i;

	for (i = 0; worker->pairs != NULL && i < worker->nb_pairs; i++) {
		struct testrmem_pair *pair = &worker->pairs[i];

		if (session->engine->disconnect != NULL)
			session->engine->disconnect(pair);
		testrmem_remote_disconnect(pair);
		/* Destroy the QPs first: then no request is in flight. */
		testrmem_pair_close(pair);
		session->engine->teardown(pair);
		testrmem_remote_free(pair);
		rte_free(pair->targets);
	}
	rte_free(worker->pairs);
	rte_free(worker->latency);
}

void
testrmem_session_close(struct testrmem_session *session)
{
	uint32_t i;

	if (session == NULL)
		return;
	for (i = 0; session->workers != NULL && i < session->nb_workers; i++)
		close_pairs(session, &session->workers[i]);
	for (i = 0; i < session->nb_devs; i++)
		testrmem_dev_teardown(&session->devs[i]);
	if (session->engine->close != NULL)
		session->engine->close(session);
	testrmem_remote_close(session);
	rte_free(session->workers);
	rte_free(session);
}

/* Select the worker lcores; the main lcore only if there is no other. */
static int
alloc_workers(struct testrmem_session *session)
{
	unsigned int lcore_id;
	uint32_t nb_workers = 0;
	uint32_t i = 0;

	/* Not rte_lcore_count(): it includes service lcores. */
	RTE_LCORE_FOREACH_WORKER(lcore_id)
		nb_workers++;
	session->nb_workers = RTE_MAX(nb_workers, 1u);
	session->workers = testrmem_alloc(session->nb_workers, sizeof(*session->workers));
	if (session->workers == NULL)
		return -ENOMEM;
	session->workers[0].lcore_id = rte_get_main_lcore();
	RTE_LCORE_FOREACH_WORKER(lcore_id)
		session->workers[i++].lcore_id = lcore_id;
	for (i = 0; i < session->nb_workers; i++) {
		struct testrmem_worker *worker = &session->workers[i];

		worker->session = session;
		if (!session->conf.is_latency)
			continue;
		worker->latency = testrmem_alloc(1, sizeof(*worker->latency));
		if (worker->latency == NULL)
			return -ENOMEM;
	}
	session->nb_pairs = session->nb_workers * (uint32_t)session->conf.qps;
	session->is_warm = session->conf.warm_up_ms == 0;
	if (session->nb_pairs >= session->nb_devs)
		return 0;
	testrmem_err("%" PRIu32 " devices but only %" PRIu32
		     " QP pairs to use them: raise qps or use more lcores",
			session->nb_devs, session->nb_pairs);
	return -EINVAL;
}

static uint64_t
ops_limit(const struct testrmem_conf *conf, uint32_t index)
{
	uint64_t nb = conf->qps * testrmem_nb_directions(conf);

	if (conf->ops == 0)
		return UINT64_MAX;
	return conf->ops / nb + (index < conf->ops % nb ? 1 : 0);
}

static int
alloc_pairs(struct testrmem_session *session)
{
	const uint32_t nb_directions = testrmem_nb_directions(&session->conf);
	const uint32_t nb_pairs = (uint32_t)session->conf.qps * nb_directions;
	uint32_t id = 0;
	uint32_t i, j;

	for (i = 0; i < session->nb_workers; i++) {
		struct testrmem_worker *worker = &session->workers[i];

		worker->pairs = testrmem_alloc(nb_pairs, sizeof(*worker->pairs));
		if (worker->pairs == NULL)
			return -ENOMEM;
		worker->nb_pairs = nb_pairs;
		for (j = 0; j < worker->nb_pairs; j++, id++) {
			struct testrmem_pair *pair = &worker->pairs[j];

			pair->worker = worker;
			pair->id = id;
			pair->seed = UINT64_C(0x9e3779b97f4a7c15) * (id + 1);
			pair->dev = &session->devs[id / nb_directions % session->nb_devs];
			pair->is_reverse = j % nb_directions != 0;
			if (nb_directions != 1)
				pair->twin = &worker->pairs[j ^ 1];
			pair->dev_index = pair->dev->nb_pairs++;
			pair->ops_limit = ops_limit(&session->conf, j);
			pair->is_done = pair->ops_limit == 0;
		}
	}
	return 0;
}

static int
setup_pair(struct testrmem_session *session, struct testrmem_pair *pair)
{
	int ret;

	ret = testrmem_pair_open(pair, session);
	if (ret == 0 && session->engine->target_access != 0)
		ret = testrmem_dev_targets(pair->dev, pair);
	if (ret == 0 && session->engine->fill != NULL)
		ret = session->engine->fill(pair);
	if (ret == 0 && testrmem_is_remote(session))
		ret = testrmem_remote_connect(pair, session);
	return ret != 0 ? ret : session->engine->setup(pair);
}

static int
setup(struct testrmem_session *session)
{
	uint32_t i, j;
	int ret;

	if (session->engine->open != NULL) {
		ret = session->engine->open(session);
		if (ret != 0)
			return ret;
	}
	ret = alloc_workers(session);
	if (ret == 0)
		ret = alloc_pairs(session);
	for (i = 0; i < session->nb_devs && ret == 0; i++)
		ret = testrmem_dev_check(&session->devs[i], session);
	for (i = 0; i < session->nb_devs && ret == 0; i++)
		ret = testrmem_dev_setup(&session->devs[i], session);
	for (i = 0; i < session->nb_workers; i++) {
		for (j = 0; ret == 0 && j < session->workers[i].nb_pairs; j++)
			ret = setup_pair(session, &session->workers[i].pairs[j]);
	}
	return ret;
}

int
testrmem_session_open(const struct testrmem_conf *conf, struct testrmem_dev *devs,
		struct testrmem_session **session)
{
	struct testrmem_session *new;
	int ret;

	new = testrmem_alloc(1, sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	new->engine = conf->engine;
	new->devs = devs;
	new->nb_devs = conf->nb_devs;
	ret = param_resolve(conf, &new->conf);
	if (ret == 0 && testrmem_is_remote(new))
		ret = testrmem_remote_open(new);
	if (ret == 0)
		ret = setup(new);
	if (ret != 0) {
		testrmem_session_close(new);
		return ret;
	}
	*session = new;
	return 0;
}

static int
verify_worker(struct testrmem_worker *worker)
{
	const struct testrmem_engine *engine = worker->session->engine;
	/* The verification does not count. */
	struct testrmem_counters cnt = worker->cnt;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < worker->nb_pairs && ret == 0; i++)
		ret = engine->verify(&worker->pairs[i]);
	cnt.errors = worker->cnt.errors;
	worker->cnt = cnt;
	return ret;
}

int
testrmem_session_verify(struct testrmem_session *session)
{
	const struct testrmem_engine *engine = session->engine;
	uint32_t i;
	int ret = 0;

	if (engine->verify != NULL) {
		for (i = 0; i < session->nb_workers && ret == 0; i++)
			ret = verify_worker(&session->workers[i]);
	}
	if (ret == 0 && engine->finish != NULL)
		ret = engine->finish(session);
	return ret;
}
