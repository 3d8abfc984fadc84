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

#define EXIT_USAGE 1 /* bad options, or it could not start */
#define EXIT_CHECK 2 /* a check did not hold, or a value was wrong */

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

/* Clients on the worker lcores, the server on this one. */
static int
run(struct kv_server *server, struct kv_client **clients)
{
	unsigned int lcore, i = 0;
	int ret = 0;

	RTE_LCORE_FOREACH_WORKER(lcore)
		rte_eal_remote_launch(kv_client_run, clients[i++], lcore);
	kv_server_run(server);
	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (rte_eal_wait_lcore(lcore) != 0)
			ret = EXIT_CHECK;
	}
	return ret;
}

static int
open_and_run(const struct kv_conf *conf, struct rmem_dev *dev, uint32_t nb)
{
	struct kv_client **clients = calloc(nb, sizeof(void *));
	struct kv_conn *conns = calloc(nb, sizeof(*conns));
	struct kv_server *server = NULL;
	int ret = -ENOMEM, code = EXIT_USAGE;
	uint32_t i;

	if (clients != NULL && conns != NULL)
		ret = kv_server_open(conf, dev, conns, nb, &server);
	for (i = 0; i < nb && ret == 0; i++)
		ret = kv_client_open(conf, dev, &conns[i], i + 1, &clients[i]);
	if (ret == 0)
		code = run(server, clients);
	ret = kv_server_close(server);
	for (i = 0; clients != NULL && i < nb; i++)
		ret |= kv_client_close(clients[i]);
	if (ret != 0)
		KV_ERR("something on '%s' is still in use", conf->dev);
	free(conns);
	free(clients);
	return ret == 0 ? code : RTE_MAX(code, EXIT_CHECK);
}

static int
start(const struct kv_conf *conf)
{
	struct rmem_dev *dev;
	unsigned int lcore;
	uint32_t nb = 0;
	int code;

	/* Not rte_lcore_count(): that has service lcores in it. */
	RTE_LCORE_FOREACH_WORKER(lcore)
		nb++;
	if (nb == 0) {
		KV_ERR("%s",
				"it takes 2 lcores, there is 1: give EAL --lcores 0,1, or on one CPU"
				" --lcores '(0,1)@0'");
		return EXIT_USAGE;
	}
	if (open_dev(conf->dev, &dev) != 0)
		return EXIT_USAGE;
	code = open_and_run(conf, dev, nb);
	if (rmem_dev_close(dev) != 0)
		code = RTE_MAX(code, EXIT_CHECK);
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
		return EXIT_USAGE;
	if (conf.is_help) {
		kv_option_usage(argv[0]);
		return 0;
	}
	rte_set_application_usage_hook(kv_option_usage);
	if (rte_eal_init(argc, argv) < 0) {
		KV_ERR("%s",
				"EAL does not start, see its log. EAL options that help: without"
				" hugepages --no-huge -m 256, without a mounted hugetlbfs --in-memory,"
				" with another DPDK program running --file-prefix=NAME");
		return EXIT_USAGE;
	}
	catch_signals();
	code = start(&conf);
	rte_eal_cleanup();
	return code;
}
