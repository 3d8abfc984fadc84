/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Findings of the sanitizer for verbs programs. ribv_sanitize.c, ribv_watch.c and log lines of the
 * devices create them, ribv_finding.c reports them, and ribv_stack.c finds the calls that led to
 * them.
 */

#ifndef RIBV_FINDING_H
#define RIBV_FINDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define RIBV_MAX_FRAMES 32
#define RIBV_MAX_CALLS  64 /* including inlined calls */

/* Kinds of findings; names are in ribv_finding.c and doc/soft_debug.md. */
enum ribv_kind {
	RIBV_FOUND_CHANGED,
	RIBV_FOUND_DEAD,
	RIBV_FOUND_DEREG,
	RIBV_FOUND_EVENT,
	RIBV_FOUND_FREED,
	RIBV_FOUND_FULL,
	RIBV_FOUND_KEY,
	RIBV_FOUND_LEAK,
	RIBV_FOUND_POISON,
	RIBV_FOUND_RECV_OVERLAP,
	RIBV_FOUND_RECV_WRITTEN,
	RIBV_FOUND_THREADS,
	RIBV_FOUND_UNMAPPED,
	RIBV_FOUND_UNPOLLED,
	RIBV_FOUND_WRITE_OVERLAP,
	RIBV_NB_KINDS,
};

/* Return addresses, the innermost first, then NULL. */
struct ribv_stack {
	void *frames[RIBV_MAX_FRAMES];
	int n;
};

/* A call of the program: place, time (TSC) and thread. */
struct ribv_event {
	struct ribv_stack stack;
	uint64_t tsc;
	pid_t thread;
};

/* A call, with function, file, line and module as far as they are known. */
struct ribv_call {
	char *function; /* or NULL */
	char *source;   /* or NULL */
	char *module;   /* or NULL */
	uintptr_t at;   /* in the module */
	unsigned long line;
	bool is_outer; /* the previous call is inlined in this one */
};

struct ribv_calls {
	struct ribv_call calls[RIBV_MAX_CALLS];
	uint32_t n;
};

struct ribv_finding {
	enum ribv_kind kind;
	const char *what;
	const char *how; /* verb for the event, e.g. "posted" */
	const struct ribv_event *event;
	bool has_finder; /* also report the calls of the current thread */
};

/* ribv_stack.c */
/* Record place, time and thread of the caller; the first call in a process loads a library. */
void ribv_event_now(struct ribv_event *event);
pid_t ribv_thread(void);
/* Whether an address is in a library whose file name is, or begins with, that name. */
bool ribv_is_in(const void *address, const char *library);
/* Index of the first frame outside of this library, and of libc called by it. */
int ribv_first_frame(const struct ribv_stack *stack);
/* Look up the calls, except those of this library and of libc before main() or a thread's start. */
void ribv_calls_find(struct ribv_calls *calls, const struct ribv_stack *stack);
void ribv_calls_print(FILE *to, const struct ribv_calls *calls);
void ribv_calls_free(struct ribv_calls *calls);

/* ribv_finding.c */
/* Read RMEM_IBV_SANITIZE; return an error text, or NULL. */
const char *ribv_finding_start(void);
/* Whether the item poison is set. */
bool ribv_finding_has_poison(void);
/* Report a finding, unless it is suppressed; does not return if the item abort is set. */
void ribv_find(const struct ribv_finding *finding);
/* Stream to which the device logs its findings; NULL: stderr. */
FILE *ribv_finding_log(void);

#endif /* RIBV_FINDING_H */
