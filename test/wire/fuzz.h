/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A fuzzer: run by libFuzzer, or by fuzz_main.c. */

#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* End the fuzzer, unless the condition holds. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of fuzz_main.c: */
#define FUZZ_MAX_STEP (8 + 2048u)
/* Draw a step of an input, of up to FUZZ_MAX_STEP bytes; its length. */
size_t fuzz_step(uint8_t *to, uint64_t *state);
/* Print what the inputs reached; 0 if it was all that they should. */
int fuzz_report(void);
void fuzz_close(void);

#endif /* FUZZ_H */
