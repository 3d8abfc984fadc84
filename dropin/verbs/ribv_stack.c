/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Call stacks, by backtrace(), and their functions and lines, by addr2line (binutils). */

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "ribv_finding.h"

static __thread pid_t own_thread;

pid_t
ribv_thread(void)
{
	if (own_thread == 0)
		own_thread = gettid();
	return own_thread;
}

/*
 * Record an event in memory of the caller, without a lock. The first backtrace() allocates memory,
 * so it must not be in a signal handler. Names are looked up when the event is reported
 * (ribv_calls_find()).
 */
void
ribv_event_now(struct ribv_event *event)
{
	memset(event, 0, sizeof(*event));
	event->stack.n = backtrace(event->stack.frames, RIBV_MAX_FRAMES);
	event->thread = ribv_thread();
	event->tsc = rte_rdtsc();
}

/* Compares the file name: a library may be loaded from any path. */
bool
ribv_is_in(const void *address, const char *library)
{
	const char *name;
	Dl_info info;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name != NULL ? name + 1 : info.dli_fname;
	return strncmp(name, library, strlen(library)) == 0;
}

/* Skip the frames of this library, and of libc. */
int
ribv_first_frame(const struct ribv_stack *stack)
{
	int i;

	for (i = 0; i < stack->n &&
			(ribv_is_in(stack->frames[i], "librmem_ibv") ||
					ribv_is_in(stack->frames[i], "libc.so"));
			i++)
		;
	return i;
}

/* The environment without preloaded libraries; NULL: no memory. */
static char **
plain_environ(void)
{
	size_t i, n = 0;
	char **plain;

	while (environ[n] != NULL)
		n++;
	plain = calloc(n + 1, sizeof(*plain));
	for (i = n = 0; plain != NULL && environ[i] != NULL; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			plain[n++] = environ[i];
	}
	return plain;
}

/*
 * Run addr2line for an address in a file; return its output, or "" if it is not installed.
 * posix_spawn() runs no fork() handlers and does not copy the program's memory. Both ends of the
 * pipe are close-on-exec, so the read ends with addr2line, and does not wait for another child.
 */
static void
find_lines(const char *file, uintptr_t at, char *text, size_t size)
{
	const char *argv[] = {"addr2line", "-Cfpie", file, NULL, NULL};
	char **env = plain_environ();
	posix_spawn_file_actions_t actions;
	char address[32];
	int fds[2];
	ssize_t n = 0;
	pid_t pid;

	text[0] = '\0';
	if (env == NULL || pipe2(fds, O_CLOEXEC) != 0) {
		free(env);
		return;
	}
	snprintf(address, sizeof(address), "%#lx", (unsigned long)at);
	argv[3] = address;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, env) != 0)
		pid = -1;
	close(fds[1]);
	if (pid > 0) {
		n = read(fds[0], text, size - 1); /* the output is written at once */
		waitpid(pid, NULL, 0);
	}
	posix_spawn_file_actions_destroy(&actions);
	close(fds[0]);
	free(env);
	text[n > 0 ? n : 0] = '\0';
}

static struct ribv_call *
add(struct ribv_calls *calls, const char *function, const char *module, uintptr_t at)
{
	struct ribv_call *call = &calls->calls[calls->n];

	if (calls->n == RIBV_MAX_CALLS)
		return NULL;
	calls->n++;
	memset(call, 0, sizeof(*call));
	call->function = function != NULL ? strdup(function) : NULL;
	call->module = module != NULL ? strdup(module) : NULL;
	call->at = at;
	return call;
}

/* Parse a line of addr2line, e.g. "(inlined by) main at leak.c:5 (discriminator 2)". */
static void
add_line(struct ribv_calls *calls, char *line, const char *module, uintptr_t at)
{
	static const char inlined[] = " (inlined by) ";
	bool is_outer = strncmp(line, inlined, sizeof(inlined) - 1) == 0;
	char *source = strstr(line, " at "), *number, *next;
	struct ribv_call *call;

	if (is_outer)
		line += sizeof(inlined) - 1;
	for (next = source; next != NULL; next = strstr(source + 1, " at "))
		source = next;
	number = source != NULL ? strrchr(source, ':') : NULL;
	if (number == NULL)
		return;
	*source = *number = '\0';
	call = add(calls, line, module, at);
	if (call == NULL)
		return;
	call->is_outer = is_outer;
	call->source = strdup(source + 4);
	call->line = strtoul(number + 1, NULL, 10);
}

static void
add_frame(struct ribv_calls *calls, const void *frame)
{
	uintptr_t pc = (uintptr_t)frame - 1; /* the call, not the instruction after it */
	char text[4096], path[PATH_MAX], *line, *rest = text;
	const ElfW(Ehdr) * elf;
	const char *file;
	Dl_info info;
	ssize_t n;

	if (dladdr((void *)pc, &info) == 0 || info.dli_fname == NULL) {
		add(calls, NULL, NULL, (uintptr_t)frame);
		return;
	}
	elf = info.dli_fbase;
	file = info.dli_fname;
	/* dladdr() returns argv[0] for the program, which may not be a path. */
	if (access(file, R_OK) != 0) {
		n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		file = path;
	}
	/* addr2line needs the address in the file: for a library, relative to its start. */
	pc -= elf->e_type == ET_EXEC ? 0 : (uintptr_t)elf;
	find_lines(file, pc, text, sizeof(text));
	if (strstr(text, "?") == NULL && text[0] != '\0') {
		while ((line = strsep(&rest, "\n")) != NULL && line[0] != '\0')
			add_line(calls, line, file, pc);
		return;
	}
	text[strcspn(text, " ")] = '\0'; /* the function, from the symbol table */
	add(calls, text[0] != '\0' && text[0] != '?' ? text : info.dli_sname, file, pc);
}

void
ribv_calls_find(struct ribv_calls *calls, const struct ribv_stack *stack)
{
	int i;

	calls->n = 0;
	for (i = ribv_first_frame(stack); i < stack->n && !ribv_is_in(stack->frames[i], "libc.so");
			i++)
		add_frame(calls, stack->frames[i]);
}

void
ribv_calls_print(FILE *to, const struct ribv_calls *calls)
{
	uint32_t i, number = 0;

	for (i = 0; i < calls->n; i++) {
		const struct ribv_call *call = &calls->calls[i];

		if (call->is_outer)
			fprintf(to, "       (inlined by) ");
		else
			fprintf(to, "    #%u ", number++);
		if (call->module == NULL)
			fprintf(to, "%#lx\n", (unsigned long)call->at);
		else if (call->source != NULL)
			fprintf(to, "%s at %s:%lu\n", call->function, call->source, call->line);
		else
			fprintf(to, "%s (%s+%#lx)\n",
					call->function != NULL ? call->function : "??",
					call->module, (unsigned long)call->at);
	}
}

void
ribv_calls_free(struct ribv_calls *calls)
{
	uint32_t i;

	for (i = 0; i < calls->n; i++) {
		free(calls->calls[i].function);
		free(calls->calls[i].source);
		free(calls->calls[i].module);
	}
	calls->n = 0;
}
