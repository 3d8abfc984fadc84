/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Run a fuzzer's inputs without libFuzzer: the files given, or random ones (RMEM_SEED,
 * RMEM_TEST_FUZZ_RUNS).
 */

#include <inttypes.h>
#include <time.h>

#include "fuzz.h"
#include "xorshift.h"

#define MAX_STEPS 32u
#define MAX_INPUT (MAX_STEPS * FUZZ_MAX_STEP)

static uint8_t input[MAX_INPUT];
static uint64_t state;

static int
run_file(const char *name)
{
	FILE *file = fopen(name, "rb");
	size_t size;

	if (file == NULL) {
		perror(name);
		return 1;
	}
	size = fread(input, 1, sizeof(input), file);
	fclose(file);
	return LLVMFuzzerTestOneInput(input, size);
}

static uint64_t
env_or(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static int
run_random(void)
{
	uint64_t seed = env_or("RMEM_SEED", (uint64_t)time(NULL));
	uint64_t i, runs = env_or("RMEM_TEST_FUZZ_RUNS", 50000);
	uint32_t nb_steps;
	size_t size;
	int rc = 0;

	printf("RMEM_SEED=%" PRIu64 ", %" PRIu64 " runs\n", seed, runs);
	fflush(stdout);
	state = xorshift_state(seed);
	for (i = 0; i < runs && rc == 0; i++) {
		size = 0;
		for (nb_steps = 1 + xorshift32(&state) % MAX_STEPS; nb_steps != 0; nb_steps--)
			size += fuzz_step(input + size, &state);
		rc = LLVMFuzzerTestOneInput(input, size);
	}
	return rc != 0 ? rc : fuzz_report();
}

int
main(int argc, char **argv)
{
	int arg, rc = 0;

	LLVMFuzzerInitialize(&argc, &argv);
	for (arg = 1; arg < argc; arg++)
		rc |= run_file(argv[arg]);
	if (argc == 1)
		rc = run_random();
	fuzz_close();
	return rc;
}
