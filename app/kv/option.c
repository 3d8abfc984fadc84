/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The command line: options after "--". */

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
		{"lease-ms", "milliseconds that a lease lasts", offsetof(struct kv_conf, lease_ms),
				1, 3600000, 1000},
};

enum {
	DEV = RTE_DIM(numbers),
	BACKEND,
	SEAL,
	HELP,
	NB_OPTIONS
};

static const struct option texts[] = {
		{"dev", required_argument, NULL, DEV},
		{"backend", required_argument, NULL, BACKEND},
		{"seal", required_argument, NULL, SEAL},
		{"help", no_argument, NULL, HELP},
};

void
kv_option_usage(const char *program)
{
	const char *name = strrchr(program, '/');
	uint32_t i;

	name = name != NULL ? name + 1 : program;
	printf("\nUsage: %s [EAL options] -- [options]\n\n"
	       "A server of values, on the main lcore, and a client of it on each worker lcore.\n"
	       "Clients get leases of the values and READ them.\n\n"
	       "  --dev NAME[,KEY=VALUE...]  RDMA device (default soft0)\n"
	       "  --backend NAME  what leases are made of: auto, fast_reg, mw, umr (default auto)\n"
	       "  --seal FILE     seal descriptors by the %d bytes of this file\n"
	       "  --help          print this\n",
			name, RMEM_LEASE_SEAL_KEY_SIZE);
	for (i = 0; i < RTE_DIM(numbers); i++)
		printf("  --%s N  %s\n      %" PRIu64 " to %" PRIu64 " (default %" PRIu64 ")\n",
				numbers[i].name, numbers[i].help, numbers[i].min, numbers[i].max,
				numbers[i].def);
	printf("\nExit status: 0 each check held and each value was right, 1 bad options or could\n"
	       "not start, 2 otherwise.\n\n"
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

/* The key is in a file: a command line is for all to read. */
static int
set_seal(struct kv_conf *conf, const char *name)
{
	uint8_t bytes[RMEM_LEASE_SEAL_KEY_SIZE + 1];
	FILE *file = fopen(name, "re");
	size_t nb;

	if (file == NULL) {
		KV_ERR("cannot read '%s': %s", name, strerror(errno));
		return -EINVAL;
	}
	nb = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
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
