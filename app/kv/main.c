/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* dpdk-rmem-kv: a server of values that clients READ through leases; see doc/kv.md. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "kv.h"

static volatile sig_atomic_t is_interrupted;

static void
on_signal(int number)
{
	RTE_SET_USED(number);
	is_interrupted = 1;
}

static void
catch_signals(void)
{
	/* The second one ends the program. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int
open_dev(const char *spec, struct rmem_dev **dev)
{
	size_t length = strcspn(spec, ",");
	char name[RMEM_NAME_SIZE];
	int ret;

	snprintf(name, sizeof(name), "%.*s", (int)RTE_MIN(length, sizeof(name)), spec);
	ret = length < sizeof(name) ? 0 : -EINVAL;
	if (ret == 0)
		ret = rmem_dev_create(name, spec[length] == ',' ? &spec[length + 1] : NULL, dev);
	if (ret != 0)
		KV_ERR("cannot create device '%s': %s", spec, rte_strerror(-ret));
	return ret;
}

/* The clients of other processes, until Ctrl-C. */
static int
run_listen(const struct kv_conf *conf, struct kv_conn *conns, struct kv_server *server)
{
	struct kv_listener *listener;

	if (kv_listen(conf, conns, (uint32_t)conf->clients, &listener) != 0)
		return KV_EXIT_START;
	kv_server_run(server);
	return kv_unlisten(listener) == 0 ? 0 : KV_EXIT_CHECK;
}

/* Clients on the worker lcores; the server, or else one more client, on this one. */
static int
run(struct kv_server *server, struct kv_client **clients)
{
	unsigned int lcore, i = 0;
	int code = 0;

	RTE_LCORE_FOREACH_WORKER(lcore)
		rte_eal_remote_launch(kv_client_run, clients[i++], lcore);
	if (server != NULL)
		kv_server_run(server);
	else
		code = kv_client_run(clients[i]);
	RTE_LCORE_FOREACH_WORKER(lcore) {
		int ret = rte_eal_wait_lcore(lcore);

		code = RTE_MAX(code, ret);
	}
	return code;
}

static int
open_and_run(const struct kv_conf *conf, struct rmem_dev *dev, uint32_t nb)
{
	struct kv_client **clients = calloc(nb, sizeof(void *));
	struct kv_conn *conns = calloc(nb, sizeof(*conns));
	int ret = clients != NULL && conns != NULL ? 0 : -ENOMEM;
	struct kv_server *server = NULL;
	int code = KV_EXIT_START;
	uint32_t i;

	for (i = 0; i < nb && ret == 0 && conf->connect == NULL; i++)
		conns[i].number = i + 1;
	if (ret == 0 && conf->connect == NULL)
		ret = kv_server_open(conf, dev, conns, nb, &server);
	for (i = 0; i < nb && ret == 0 && conf->listen == NULL; i++)
		ret = kv_client_open(conf, dev, &conns[i], i + 1, &clients[i]);
	if (ret == 0)
		code = conf->listen != NULL ? run_listen(conf, conns, server)
					    : run(server, clients);
	ret = kv_server_close(server);
	for (i = 0; clients != NULL && i < nb; i++)
		ret |= kv_client_close(clients[i]);
	if (ret != 0)
		KV_ERR("objects of '%s' are still in use", conf->dev);
	free(conns);
	free(clients);
	return ret == 0 ? code : RTE_MAX(code, KV_EXIT_CHECK);
}

/* The number of connections; 0 without a lcore for a client. */
static uint32_t
count_conns(const struct kv_conf *conf)
{
	uint32_t nb = conf->connect != NULL; /* the main lcore */
	unsigned int lcore;

	if (conf->listen != NULL)
		return (uint32_t)conf->clients;
	/* Not rte_lcore_count(): that has service lcores in it. */
	RTE_LCORE_FOREACH_WORKER(lcore)
		nb++;
	return nb;
}

static int
start(const struct kv_conf *conf)
{
	uint32_t nb = count_conns(conf);
	struct rmem_dev *dev;
	int code;

	if (nb == 0) {
		KV_ERR("%s",
				"it takes 2 lcores, there is 1: give EAL --lcores 0,1, or on one CPU"
				" --lcores '(0,1)@0'");
		return KV_EXIT_START;
	}
	if (open_dev(conf->dev, &dev) != 0)
		return KV_EXIT_START;
	code = open_and_run(conf, dev, nb);
	if (rmem_dev_close(dev) != 0)
		code = RTE_MAX(code, KV_EXIT_CHECK);
	return code;
}

int
main(int argc, char **argv)
{
	struct kv_conf conf = {.is_interrupted = &is_interrupted};
	int code, nb = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (nb < argc && strcmp(argv[nb], "--") != 0)
		nb++;
	if (kv_option_parse(argc - nb, &argv[nb], &conf) != 0)
		return KV_EXIT_START;
	if (conf.is_help) {
		kv_option_usage(argv[0]);
		return 0;
	}
	rte_set_application_usage_hook(kv_option_usage);
	if (rte_eal_init(argc, argv) < 0) {
		KV_ERR("%s",
				"EAL does not start, see its log. EAL options that help: without"
				" hugepages --no-huge -m 256, without a mounted hugetlbfs --in-memory,"
				" with another DPDK program running --file-prefix=NAME,"
				" if it cannot create its runtime directory --no-shconf");
		return KV_EXIT_START;
	}
	catch_signals();
	code = start(&conf);
	rte_eal_cleanup();
	return code;
}
