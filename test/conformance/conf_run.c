/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Creates the device, selects, runs and counts the cases. */

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "conf.h"

struct conf_dev conf;

/* Names of the capabilities that a case may lack. */
static const struct {
	uint64_t capa;
	uint32_t access;
	const char *what;
} needs[] = {
		{RMEM_DEV_CAPA_FAST_REG, 0, "fast registration (RMEM_DEV_CAPA_FAST_REG)"},
		{RMEM_DEV_CAPA_LOCAL_INV, 0, "LOCAL_INV (RMEM_DEV_CAPA_LOCAL_INV)"},
		{RMEM_DEV_CAPA_SEND_WITH_INV, 0, "SEND_WITH_INV (RMEM_DEV_CAPA_SEND_WITH_INV)"},
		{RMEM_DEV_CAPA_READ_WITH_INV, 0, "READ_WITH_INV (RMEM_DEV_CAPA_READ_WITH_INV)"},
		{RMEM_DEV_CAPA_ATOMIC, 0, "atomics (RMEM_DEV_CAPA_ATOMIC)"},
		{RMEM_DEV_CAPA_MW_TYPE_1, 0, "windows of type 1 (RMEM_DEV_CAPA_MW_TYPE_1)"},
		{RMEM_DEV_CAPA_MW_TYPE_2B, 0, "windows of type 2B (RMEM_DEV_CAPA_MW_TYPE_2B)"},
		{RMEM_DEV_CAPA_UMR, 0, "indirect keys (RMEM_DEV_CAPA_UMR)"},
		{RMEM_DEV_CAPA_SHARED_MR, 0, "shared MRs (RMEM_DEV_CAPA_SHARED_MR)"},
		{RMEM_DEV_CAPA_INLINE_RECV, 0, "inline receive (RMEM_DEV_CAPA_INLINE_RECV)"},
		{RMEM_DEV_CAPA_REQUESTED_KEY, 0, "requested keys (RMEM_DEV_CAPA_REQUESTED_KEY)"},
		{RMEM_DEV_CAPA_MR_ENABLE, 0, "disabled MRs (RMEM_DEV_CAPA_MR_ENABLE)"},
		{RMEM_DEV_CAPA_UC, 0, "QPs of UC (RMEM_DEV_CAPA_UC)"},
		{RMEM_DEV_CAPA_UD, 0, "QPs of UD (RMEM_DEV_CAPA_UD)"},
		{RMEM_DEV_CAPA_MCAST, 0, "multicast (RMEM_DEV_CAPA_MCAST)"},
		{RMEM_DEV_CAPA_MR_COUNTER, 0, "counters of MRs (RMEM_DEV_CAPA_MR_COUNTER)"},
		{RMEM_DEV_CAPA_RATE_LIMIT, 0, "rate limits (RMEM_DEV_CAPA_RATE_LIMIT)"},
		{RMEM_DEV_CAPA_QP_COUNTER, 0, "counters of QPs (RMEM_DEV_CAPA_QP_COUNTER)"},
		{RMEM_DEV_CAPA_SRQ, 0, "shared receive queues (RMEM_DEV_CAPA_SRQ)"},
		{RMEM_DEV_CAPA_SRQ_RESIZE, 0, "resize of SRQs (RMEM_DEV_CAPA_SRQ_RESIZE)"},
		{RMEM_DEV_CAPA_CQ_RESIZE, 0, "resize of CQs (RMEM_DEV_CAPA_CQ_RESIZE)"},
		{RMEM_DEV_CAPA_COMP_CHANNEL, 0, "completion channels (RMEM_DEV_CAPA_COMP_CHANNEL)"},
		{RMEM_DEV_CAPA_ASYNC_EVENT, 0, "asynchronous events (RMEM_DEV_CAPA_ASYNC_EVENT)"},
		{RMEM_DEV_CAPA_SANITIZE, 0, "logs of wrong uses (RMEM_DEV_CAPA_SANITIZE)"},
		{RMEM_DEV_CAPA_CQ_TIMESTAMP, 0, "timestamps (RMEM_DEV_CAPA_CQ_TIMESTAMP)"},
		{RMEM_DEV_CAPA_XRC, 0, "XRC (RMEM_DEV_CAPA_XRC)"},
		{RMEM_DEV_CAPA_DM, 0, "device memory (RMEM_DEV_CAPA_DM)"},
		{RMEM_DEV_CAPA_CQ_MODERATION, 0, "moderation (RMEM_DEV_CAPA_CQ_MODERATION)"},
		{RMEM_DEV_CAPA_FLUSH, 0, "FLUSH (RMEM_DEV_CAPA_FLUSH)"},
		{RMEM_DEV_CAPA_ATOMIC_WRITE, 0, "ATOMIC_WRITE (RMEM_DEV_CAPA_ATOMIC_WRITE)"},
		{RMEM_DEV_CAPA_MR_FD, 0, "memory of an fd (RMEM_DEV_CAPA_MR_FD)"},
		{RMEM_DEV_CAPA_NULL_MR, 0, "null MRs (RMEM_DEV_CAPA_NULL_MR)"},
		{0, RMEM_ACCESS_REMOTE_ATOMIC, "the right REMOTE_ATOMIC"},
		{0, RMEM_ACCESS_MW_BIND, "the right MW_BIND"},
		{0, RMEM_ACCESS_ON_DEMAND, "the right ON_DEMAND"},
		{0, RMEM_ACCESS_ZERO_BASED, "the right ZERO_BASED"},
};

int
conf_open_dev(const char *name, const char *args)
{
	int ret = rmem_dev_create(name, args, &conf.dev);

	if (ret != 0) {
		fprintf(stderr, "device %s%s%s: %s\n", name, args != NULL ? "," : "",
				args != NULL ? args : "", strerror(-ret));
		return ret;
	}
	if (conf.faults != NULL)
		conf_oracle_open();
	return rmem_dev_info_get(conf.dev, &conf.info);
}

int
conf_close_dev(void)
{
	int ret = rmem_dev_close(conf.dev);

	conf.dev = NULL;
	return ret;
}

/* Size of the log of injected faults. */
static off_t
faults_size(void)
{
	struct stat st;

	return conf.faults != NULL && stat(conf.faults, &st) == 0 ? st.st_size : 0;
}

/* Of the log, before the case in progress. */
static off_t faults_before;

/* Whether a fault was injected into the case in progress. */
static bool
is_faulted(void)
{
	return conf.is_excused || faults_size() != faults_before;
}

/*
 * A completion that a fault prevented never arrives. A case of --self-test that waits too briefly
 * fails, as it must.
 */
double
conf_deadline_s(void)
{
	if (conf.faults != NULL && is_faulted())
		return 0.01;
	return conf.is_wrong ? 1 : 30;
}

static void
full_name(const struct test_suite *subject, const struct test_case *test, char *name, size_t size)
{
	snprintf(name, size, "%s.%s", subject->name, test->name);
}

/* A shell pattern over "subject.case", or a subject. */
static bool
is_wanted(const char *subject, const char *name, char *const *patterns, int nb_patterns)
{
	int i;

	for (i = 0; i < nb_patterns; i++) {
		if (strcmp(patterns[i], subject) == 0 || fnmatch(patterns[i], name, 0) == 0)
			return true;
	}
	return nb_patterns == 0;
}

void
conf_list(char *const *patterns, int nb_patterns)
{
	char name[128];
	const struct test_command *subject;
	const struct test_case *test;

	for (subject = test_commands(); subject != NULL; subject = subject->next) {
		for (test = *subject->suite.cases; test != NULL; test = test->next) {
			full_name(&subject->suite, test, name, sizeof(name));
			if (is_wanted(subject->suite.name, name, patterns, nb_patterns))
				printf("%s: %s\n", name, test->rule);
		}
	}
}

/* The first requirement of the case that the device lacks, or NULL. */
static const char *
lacking(const struct test_case *test)
{
	const uint64_t keys = RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_UMR;
	size_t i;

	if ((test->capa & keys) != 0 && (conf.info.capa & RMEM_DEV_CAPA_REG_ZERO_BASED) != 0)
		return "keys with an iova (it has RMEM_DEV_CAPA_REG_ZERO_BASED)";
	for (i = 0; i < RTE_DIM(needs); i++) {
		if ((test->capa & needs[i].capa & ~conf.info.capa) != 0 ||
				(test->access & needs[i].access & ~conf.info.access) != 0)
			return needs[i].what;
	}
	return NULL;
}

/*
 * The tear-down also runs after a failed case, to release its objects: a failure of that, or of the
 * oracle, is never caused by a fault.
 */
static int
run_case(const struct test_suite *subject, const struct test_case *test, bool *is_released)
{
	bool is_right;
	int result;

	faults_before = faults_size();
	conf_oracle_begin();
	result = TEST_TRY(subject->setup());
	if (result == TEST_SUCCESS)
		result = TEST_TRY(test->func());
	else if (result != TEST_SKIPPED)
		test_note("set-up failed");
	fx_is_cut_short = is_faulted();
	is_right = conf_oracle_end();
	*is_released = TEST_TRY(subject->teardown()) == TEST_SUCCESS && is_right;
	fx_is_cut_short = false;
	return *is_released ? result : TEST_FAILED;
}

static void
run_one(const struct test_suite *subject, const struct test_case *test, const char *name,
		struct conf_counts *counts)
{
	const char *lack = lacking(test);
	unsigned int nb_deviations;
	bool is_released = true;
	int result;

	test_set_running(name);
	result = lack != NULL ? TEST_SKIPPED : run_case(subject, test, &is_released);
	nb_deviations = conf_deviations_taken();
	if (result == TEST_SKIPPED) {
		counts->skipped++;
		if (lack != NULL)
			printf("SKIP %s: the device lacks %s\n", name, lack);
		else
			printf("SKIP %s\n", name);
	} else if (result != TEST_SUCCESS && is_released && is_faulted()) {
		counts->faulted++;
		printf("CHAO %s\n", name);
	} else if (result != TEST_SUCCESS) {
		counts->failed++;
		printf("FAIL %s: %s\n", name, test->rule);
	} else if (nb_deviations != 0) {
		counts->deviated++;
		printf("DEVI %s\n", name);
	} else {
		counts->passed++;
		printf("PASS %s\n", name);
	}
}

void
conf_run(char *const *patterns, int nb_patterns, struct conf_counts *counts)
{
	char name[128];
	const struct test_command *subject;
	const struct test_case *test;

	memset(counts, 0, sizeof(*counts));
	for (subject = test_commands(); subject != NULL; subject = subject->next) {
		for (test = *subject->suite.cases; test != NULL; test = test->next) {
			full_name(&subject->suite, test, name, sizeof(name));
			if (is_wanted(subject->suite.name, name, patterns, nb_patterns))
				run_one(&subject->suite, test, name, counts);
		}
	}
}
