/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A DPDK primary process and its secondary ones, for test programs.
 *
 * Without hugepages EAL of a secondary process ends while it attaches the memory: then the process
 * maps the memory of the primary by its descriptor, at the same addresses, and takes its first
 * lcore id. The type of the process and the channel between processes are set by then.
 */

#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <sys/types.h>

#define PROC_MAX_ARGS 8

/*
 * Whether the processes can share memory: not on hugepages (RMEM_TEST_HUGE) if there are none.
 * To be called first, by the process that starts the primary.
 */
bool proc_can_start(void);

/* Start EAL of the primary with these lcores. */
int proc_start_primary(const char *program, unsigned int first, unsigned int last);

/*
 * Run this program as a secondary process: its arguments are "secondary", those of EAL, and the
 * given ones up to NULL. Returns its pid.
 */
pid_t proc_spawn(const char *const *args);

/* Whether this is a secondary process, from the arguments of main(). */
bool proc_is_secondary(int argc, char **argv);

/* Start EAL of a secondary process with this lcore; the first of the arguments for it, or NULL. */
char **proc_start_secondary(char **argv, unsigned int lcore);

#endif /* PROC_H */
