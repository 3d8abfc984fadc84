/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The command line: options after "--". */

#include <arpa/inet.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

static const char *const backends[] = {"auto", "fast_reg", "mw", "umr"};

static const struct number {
	const char *name, *help;
	size_t offset;
	uint64_t min, max, def;
} numbers[] = {
		{"keys", "values that each client stores and reads", offsetof(struct kv_conf, keys),
				1, 1000000, 1000},
		{"value-size", "bytes of a value", offsetof(struct kv_conf, value_size), 8, 65536,
				64},
		{"gets", "GETs of each client; 0 until Ctrl-C", offsetof(struct kv_conf, gets), 0,
				INT64_MAX, 1000000},
		{"lease-ms", "duration of a lease in milliseconds",
				offsetof(struct kv_conf, lease_ms), 1, 3600000, 1000},
		{"clients", "with --listen: maximum number of clients connected",
				offsetof(struct kv_conf, clients), 1, 64, 4},
		{"wait-s", "with --connect: seconds that a client waits for a connection",
				offsetof(struct kv_conf, wait_s), 0, 3600, 10},
};

enum {
	DEV = RTE_DIM(numbers),
	BACKEND,
	SEAL,
	LISTEN,
	CONNECT,
	HELP,
	NB_OPTIONS
};

static const struct option texts[] = {
		{"dev", required_argument, NULL, DEV},
		{"backend", required_argument, NULL, BACKEND},
		{"seal", required_argument, NULL, SEAL},
		{"listen", required_argument, NULL, LISTEN},
		{"connect", required_argument, NULL, CONNECT},
		{"help", no_argument, NULL, HELP},
};

void
kv_option_usage(const char *program)
{
	const char *name = strrchr(program, '/');
	uint32_t i;

	name = name != NULL ? name + 1 : program;
	printf("\nUsage: %s [EAL options] -- [options]\n\n"
	       "A key-value server on the main lcore, and a client on each worker lcore. Clients\n"
	       "get leases of values and READ them. With --listen only the server runs, with\n"
	       "--connect each lcore is a client.\n\n"
	       "  --dev NAME[,KEY=VALUE...]  RDMA device (default soft0)\n"
	       "  --backend NAME  backend of the leases: auto, fast_reg, mw, umr (default auto)\n"
	       "  --seal FILE     seal descriptors with the %d bytes of this file\n"
	       "  --listen ADDR   run only the server, at this IPv4 or IPv6 address\n"
	       "  --connect ADDR  run only clients of the server at this address\n"
	       "  --help          print the options\n",
			name, RMEM_LEASE_SEAL_KEY_SIZE);
	for (i = 0; i < RTE_DIM(numbers); i++)
		printf("  --%s N  %s\n      %" PRIu64 " to %" PRIu64 " (default %" PRIu64 ")\n",
				numbers[i].name, numbers[i].help, numbers[i].min, numbers[i].max,
				numbers[i].def);
	printf("\nExit status: 0 if each check passed and each value was correct, 1 for invalid\n"
	       "options or a failed start, 2 otherwise.\n\n"
	       "Example, without hugepages, root and RDMA:\n"
	       "  %s --no-huge -m 256 --no-pci --lcores 0,1 -- --gets 1000000\n",
			name);
}

static int
set_number(struct kv_conf *conf, const struct number *number, const char *text)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < number->min ||
			value > number->max) {
		KV_ERR("bad value '%s' for %s: a number from %" PRIu64 " to %" PRIu64, text,
				number->name, number->min, number->max);
		return -EINVAL;
	}
	memcpy((char *)conf + number->offset, &value, sizeof(value));
	return 0;
}

static int
set_backend(struct kv_conf *conf, const char *text)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(backends); i++) {
		if (strcmp(text, backends[i]) == 0) {
			conf->backend = i;
			return 0;
		}
	}
	KV_ERR("bad value '%s' for backend: auto, fast_reg, mw or umr", text);
	return -EINVAL;
}

/* The key is in a file, since all users can read a command line. */
static int
set_seal(struct kv_conf *conf, const char *name)
{
	uint8_t bytes[RMEM_LEASE_SEAL_KEY_SIZE + 1];
	FILE *file = fopen(name, "re");
	size_t nb = 0;
	int error = errno;

	if (file != NULL) {
		nb = fread(bytes, 1, sizeof(bytes), file);
		error = ferror(file) ? errno : 0;
		fclose(file);
	}
	if (error != 0) {
		KV_ERR("cannot read '%s': %s", name, strerror(error));
		return -EINVAL;
	}
	if (nb != RMEM_LEASE_SEAL_KEY_SIZE) {
		KV_ERR("seal '%s' has %s%zu bytes: a key has %d", name,
				nb < sizeof(bytes) ? "" : "more than ",
				RTE_MIN(nb, sizeof(bytes) - 1), RMEM_LEASE_SEAL_KEY_SIZE);
		return -EINVAL;
	}
	conf->seal = name;
	memcpy(conf->seal_key, bytes, RMEM_LEASE_SEAL_KEY_SIZE);
	return 0;
}

/* The address of --listen or --connect, with the port. */
static int
set_addr(struct kv_conf *conf, const char **to)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&conf->addr;
	struct sockaddr_in *four = (struct sockaddr_in *)&conf->addr;

	*to = optarg;
	if (conf->listen != NULL && conf->connect != NULL) {
		KV_ERR("%s", "one of --listen and --connect, not both");
		return -EINVAL;
	}
	memset(&conf->addr, 0, sizeof(conf->addr));
	if (inet_pton(AF_INET, optarg, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(KV_PORT);
		return 0;
	}
	if (inet_pton(AF_INET6, optarg, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(KV_PORT);
		return 0;
	}
	KV_ERR("'%s' is not an IPv4 or IPv6 address", optarg);
	return -EINVAL;
}

static int
set(struct kv_conf *conf, int option, char **argv)
{
	switch (option) {
	case DEV:
		conf->dev = optarg;
		return 0;
	case BACKEND:
		return set_backend(conf, optarg);
	case SEAL:
		return set_seal(conf, optarg);
	case LISTEN:
		return set_addr(conf, &conf->listen);
	case CONNECT:
		return set_addr(conf, &conf->connect);
	case HELP:
		conf->is_help = true;
		return 0;
	case ':':
		KV_ERR("option %s needs a value; --help lists the options", argv[optind - 1]);
		return -EINVAL;
	case '?':
		KV_ERR("unknown option '%s'; --help lists the options", argv[optind - 1]);
		return -EINVAL;
	default:
		return set_number(conf, &numbers[option], optarg);
	}
}

int
kv_option_parse(int argc, char **argv, struct kv_conf *conf)
{
	struct option options[NB_OPTIONS + 1] = {0};
	int option, ret = 0;
	uint32_t i;

	for (i = 0; i < RTE_DIM(numbers); i++) {
		options[i] = (struct option){numbers[i].name, required_argument, NULL, (int)i};
		memcpy((char *)conf + numbers[i].offset, &numbers[i].def, sizeof(uint64_t));
	}
	memcpy(&options[DEV], texts, sizeof(texts));
	conf->dev = "soft0";
	opterr = 0;
	optind = 1;
	while (argc > 0 && ret == 0 && (option = getopt_long(argc, argv, ":", options, NULL)) != -1)
		ret = set(conf, option, argv);
	if (argc > 0 && ret == 0 && optind < argc) {
		KV_ERR("unknown argument '%s'; --help lists the options", argv[optind]);
		ret = -EINVAL;
	}
	return ret;
}
