/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Of the library count_calls.c. */

#ifndef COUNT_CALLS_H
#define COUNT_CALLS_H

/* Calls of a function since the last reset, and of all functions. */
unsigned int count_of(const char *name);
unsigned int count_all(void);
void count_reset(void);

/* The caller of the last one of dlopen(). */
extern void *count_caller;

#endif /* COUNT_CALLS_H */
