/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * dpdk-test-rmem-conformance: tests the rules for all devices on one. See doc/conformance.md.
 *
 * Exit status: 0 all passed, 1 a case failed, 2 wrong usage or no such device, 77 all skipped.
 */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "conf.h"

#define EXIT_USAGE 2

static struct {
	char *name;        /* of the device */
	char *args;        /* after its name, or NULL */
	char *known;       /* --known, or NULL */
	char *against;     /* --against, or NULL */
	uint64_t seed;     /* --seed */
	uint32_t nb_ops;   /* --ops */
	bool is_list;      /* --list */
	bool is_self_test; /* --self-test */
} options;

static void
print_usage(FILE *f)
{
	fprintf(f,
			"usage: dpdk-test-rmem-conformance [EAL options] -- [options] [PATTERN...]\n"
			"  PATTERN: a subject (mr), or a pattern of cases (mw2.*right*); all without one\n"
			"  --dev NAME[,ARGS]  device to try; soft0 without it\n"
			"  --known PROFILE    accept the known deviations of that device (rxe), or none;\n"
			"                     without it: rxe for a device whose ibdev is rxe*\n"
			"  --faults LOG       accept a failure of a case into which the rules of the device\n"
			"                     inject a fault (chaos=...+log:LOG), if all is released\n"
			"  --list             print the cases and the rules that they prove\n"
			"  --self-test        show that devices with injected faults fail\n"
			"  --help             print this\n");
}

static const struct option known_options[] = {{"dev", required_argument, NULL, 'd'},
		{"known", required_argument, NULL, 'k'}, {"against", required_argument, NULL, 'a'},
		{"faults", required_argument, NULL, 'f'}, {"seed", required_argument, NULL, 'e'},
		{"ops", required_argument, NULL, 'o'}, {"list", no_argument, NULL, 'l'},
		{"self-test", no_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};

static int
parse(int argc, char **argv)
{
	static char soft[] = "soft0";
	int option;

	options.name = soft;
	options.seed = rte_rdtsc();
	options.nb_ops = 5000;
	optind = 1;
	while ((option = getopt_long(argc, argv, "", known_options, NULL)) != -1) {
		switch (option) {
		case 'd':
			options.name = optarg;
			break;
		case 'k':
			options.known = optarg;
			break;
		case 'a':
			options.against = optarg;
			break;
		case 'f':
			conf.faults = optarg;
			break;
		case 'e':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			options.nb_ops = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'l':
			options.is_list = true;
			break;
		case 's':
			options.is_self_test = true;
			break;
		case 'h':
			print_usage(stdout);
			exit(EXIT_SUCCESS);
		default:
			print_usage(stderr);
			return -1;
		}
	}
	options.args = strchr(options.name, ',');
	if (options.args != NULL)
		*options.args++ = '\0';
	return optind;
}

/* Set the profile of expected deviations; false for an unknown name. */
static bool
choose_profile(void)
{
	const char *ibdev = options.args != NULL ? strstr(options.args, "ibdev=") : NULL;

	conf.profile = options.known;
	if (conf.profile == NULL && ibdev != NULL && strncmp(ibdev, "ibdev=rxe", 9) == 0)
		conf.profile = "rxe";
	if (conf.profile != NULL && strcmp(conf.profile, "none") == 0)
		conf.profile = NULL;
	if (conf.profile == NULL || conf_has_profile(conf.profile))
		return true;
	fprintf(stderr, "--known %s: no deviations are known of that\n", conf.profile);
	return false;
}

/* A human-readable summary, and a line for programs. */
static int
print_counts(const struct conf_counts *counts)
{
	struct utsname system;

	conf_print_deviations();
	printf("%u passed, %u passed but for known deviations, %u failed, %u skipped\n",
			counts->passed, counts->deviated, counts->failed, counts->skipped);
	if (conf.faults != NULL)
		printf("%u ended by injected faults\n", counts->faulted);
	if (uname(&system) != 0)
		strcpy(system.release, "unknown");
	printf("conformance: dev=%s driver=%s kernel=%s passed=%u deviated=%u failed=%u "
	       "skipped=%u\n",
			options.name, conf.info.driver_name, system.release, counts->passed,
			counts->deviated, counts->failed, counts->skipped);
	if (counts->failed != 0)
		return EXIT_FAILURE;
	return counts->passed + counts->deviated == 0 ? TEST_SKIPPED : EXIT_SUCCESS;
}

static int
run(char *const *patterns, int nb_patterns)
{
	struct conf_counts counts;
	int result;

	if (test_serve_lcore(options.args) != 0)
		return EXIT_USAGE;
	if (conf_open_dev(options.name, options.args) != 0)
		return EXIT_USAGE;
	conf_run(patterns, nb_patterns, &counts);
	result = print_counts(&counts);
	if (counts.passed + counts.deviated + counts.failed + counts.skipped == 0) {
		fprintf(stderr, "no case matches\n");
		result = EXIT_USAGE;
	}
	if (conf_close_dev() != 0) {
		fprintf(stderr, "the device can't be closed\n");
		result = EXIT_FAILURE;
	}
	return result;
}

/* Compare the device with another one. */
static int
run_against(void)
{
	char *args = strchr(options.against, ',');
	struct rmem_dev *reference = NULL;
	int result;

	if (args != NULL)
		*args++ = '\0';
	if (test_serve_lcore(options.args) != 0 || test_serve_lcore(args) != 0)
		return EXIT_USAGE;
	if (conf_open_dev(options.name, options.args) != 0)
		return EXIT_USAGE;
	result = rmem_dev_create(options.against, args, &reference);
	if (result != 0) {
		fprintf(stderr, "device %s: %s\n", options.against, strerror(-result));
		conf_close_dev();
		return EXIT_USAGE;
	}
	result = TEST_TRY(conf_diff(reference, options.seed, options.nb_ops));
	conf_print_deviations();
	printf("differential: dev=%s against=%s seed=0x%" PRIx64 " ops=%u result=%s\n",
			options.name, options.against, options.seed, options.nb_ops,
			result == TEST_SUCCESS ? "same" : "different");
	if (conf_close_dev() != 0 || rmem_dev_close(reference) != 0)
		return EXIT_FAILURE;
	return result == TEST_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	int nb_eal, first, result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	nb_eal = test_start_eal(argc, argv);
	if (nb_eal < 0) {
		fprintf(stderr, "EAL does not start: %s\n", rte_strerror(rte_errno));
		return EXIT_FAILURE;
	}
	argc -= nb_eal;
	argv += nb_eal;
	first = parse(argc, argv);
	if (first < 0 || !choose_profile()) {
		result = EXIT_USAGE;
	} else if (options.is_list) {
		conf_list(argv + first, argc - first);
		result = EXIT_SUCCESS;
	} else if (options.is_self_test) {
		result = conf_self_test();
	} else if (options.against != NULL) {
		result = run_against();
	} else {
		result = run(argv + first, argc - first);
	}
	rte_eal_cleanup();
	return result;
}
