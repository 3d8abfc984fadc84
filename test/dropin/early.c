/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A library whose constructor is that of test_loader.c. */

void run_early(void);

__attribute__((constructor)) static void
start(void)
{
	run_early();
}
