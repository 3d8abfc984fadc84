/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * With sanitize=1: objects that a program has not destroyed when it exits, with the calls that made
 * them, calls that wait for events that are not acknowledged, and reports of ribv_watch.c. The
 * kernel releases objects too, so a report is no error of the process, but of its code.
 *
 * The stack of a slot is written by the thread that makes the object, before the slot has a type
 * (release), and read after its type (acquire).
 */

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ribv.h"

#define MAX_FRAMES 16
#define MAX_PLACES 64 /* that are counted */
#define MAX_SHOWN  10
#define WAIT_S     1

struct stack {
	void *frames[MAX_FRAMES];
	int n;
};

/* Objects of a type that were made by the same calls. */
struct place {
	enum ribv_type type;
	const struct stack *stack;
	uint32_t nb_objs;
};

static const char *const type_names[] = {
		[RIBV_CONTEXT] = "context",
		[RIBV_PD] = "PD",
		[RIBV_MR] = "MR",
		[RIBV_MW] = "MW",
		[RIBV_CQ] = "CQ",
		[RIBV_QP] = "QP",
		[RIBV_SRQ] = "SRQ",
		[RIBV_TD] = "thread domain",
		[RIBV_CHANNEL] = "completion channel",
		[RIBV_AH] = "AH",
		[RIBV_DM] = "device memory",
};

static struct stack *stacks; /* by slot */

/* The stack of the caller; what it does not fill is zero. */
static void
stack_get(struct stack *stack)
{
	memset(stack, 0, sizeof(*stack));
	stack->n = backtrace(stack->frames, MAX_FRAMES);
}

static void
stack_keep(uint32_t slot)
{
	stack_get(&stacks[slot]);
}

/* Whether an address is in a library whose file has that name, or begins with it. */
static bool
is_in(void *address, const char *library)
{
	const char *name;
	Dl_info info;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name != NULL ? name + 1 : info.dli_fname;
	return strncmp(name, library, strlen(library)) == 0;
}

/* The first frame that is not of this library. */
static int
first_frame(const struct stack *stack)
{
	int i;

	for (i = 0; i < stack->n && is_in(stack->frames[i], "librmem_ibv"); i++)
		;
	return i;
}

/* The program's environment without the libraries that are preloaded; NULL: no memory. */
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

/* Run addr2line for an address of a file; its output, or "" if it is not installed. */
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
		n = read(fds[0], text, size - 1); /* written at once */
		waitpid(pid, NULL, 0);
	}
	posix_spawn_file_actions_destroy(&actions);
	close(fds[0]);
	free(env);
	text[n > 0 ? n : 0] = '\0';
}

/* A call: function and line, with the functions that it is inlined in, or what is known of it. */
static void
print_frame(int number, const void *frame)
{
	uintptr_t pc = (uintptr_t)frame - 1; /* of the call, not after it */
	char text[4096], path[PATH_MAX], *line, *rest = text;
	const ElfW(Ehdr) * elf;
	const char *file;
	Dl_info info;
	ssize_t n;

	if (dladdr((void *)pc, &info) == 0 || info.dli_fname == NULL) {
		fprintf(stderr, "    #%d %p\n", number, frame);
		return;
	}
	elf = info.dli_fbase;
	file = info.dli_fname;
	/* The program's is as it was started, which may be no path. */
	if (access(file, R_OK) != 0) {
		n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		file = path;
	}
	pc -= elf->e_type == ET_EXEC ? 0 : (uintptr_t)elf;
	find_lines(file, pc, text, sizeof(text));
	if (strstr(text, "?") == NULL && text[0] != '\0') {
		fprintf(stderr, "    #%d ", number);
		while ((line = strsep(&rest, "\n")) != NULL && line[0] != '\0')
			fprintf(stderr, "%s%s\n", line != text ? "      " : "", line);
		return;
	}
	text[strcspn(text, " ")] = '\0'; /* the function, of the symbols */
	if (text[0] == '\0' || text[0] == '?')
		snprintf(text, sizeof(text), "%s", info.dli_sname != NULL ? info.dli_sname : "??");
	fprintf(stderr, "    #%d %s (%s+%#lx)\n", number, text, file, (unsigned long)pc);
}

/* Without this library, and without the functions of libc that call main() or the thread. */
static void
print_stack(const struct stack *stack)
{
	const int first = first_frame(stack);
	int i;

	for (i = first; i < stack->n && !is_in(stack->frames[i], "libc.so"); i++)
		print_frame(i - first, stack->frames[i]);
}

static void
print_place(const struct place *place)
{
	fprintf(stderr, "rmem_ibv: sanitize: process %d exits with %u %s%s not destroyed, made by\n",
			(int)getpid(), place->nb_objs, type_names[place->type],
			place->nb_objs != 1 && place->type != RIBV_DM ? "s" : "");
	print_stack(place->stack);
}

/* librdmacm keeps contexts and PDs, and releases them after this. */
static bool
is_kept_by_librdmacm(const struct stack *stack, enum ribv_type type)
{
	int first = first_frame(stack);

	return (type == RIBV_CONTEXT || type == RIBV_PD) && first < stack->n &&
			is_in(stack->frames[first], "librdmacm");
}

/* Count an object; false: there are too many places. */
static bool
count(struct place places[], uint32_t *n, enum ribv_type type, const struct stack *stack)
{
	uint32_t i;

	for (i = 0; i < *n; i++) {
		if (places[i].type == type && places[i].stack->n == stack->n &&
				memcmp(places[i].stack->frames, stack->frames,
						sizeof(stack->frames)) == 0)
			break;
	}
	if (i == MAX_PLACES)
		return false;
	if (i == *n)
		places[(*n)++] = (struct place){type, stack, 0};
	places[i].nb_objs++;
	return true;
}

static void
report(void)
{
	struct place places[MAX_PLACES];
	uint32_t i, nb_places = 0, nb_others = 0;
	enum ribv_type type;

	for (i = 1; i < RIBV_MAX_OBJS && stacks != NULL; i++) {
		type = (enum ribv_type)__atomic_load_n(&ribv_types[i], __ATOMIC_ACQUIRE);
		if (type > RIBV_NEW && !is_kept_by_librdmacm(&stacks[i], type) &&
				!count(places, &nb_places, type, &stacks[i]))
			nb_others++;
	}
	for (i = 0; i < nb_places; i++) {
		if (i < MAX_SHOWN)
			print_place(&places[i]);
		else
			nb_others += places[i].nb_objs;
	}
	if (nb_others != 0)
		fprintf(stderr, "rmem_ibv: sanitize: and %u other objects\n", nb_others);
	stacks = NULL; /* a child of fork() has registered this twice */
}

void
ribv_sanitize_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const char *type)
{
	struct timespec until;
	struct stack stack;

	if (stacks == NULL) {
		pthread_cond_wait(cond, mutex);
		return;
	}
	/* Another thread may be about to acknowledge them. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	if (pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT)
		return;
	stack_get(&stack);
	fprintf(stderr, "rmem_ibv: sanitize: process %d waits: events of the %s are not acknowledged; by\n",
			(int)getpid(), type);
	print_stack(&stack);
	pthread_cond_wait(cond, mutex);
}

void
ribv_sanitize_report(const char *text, const void *caller)
{
	struct stack stack;

	stack_get(&stack);
	fprintf(stderr, "rmem_ibv: sanitize: process %d: %s; posted by\n", (int)getpid(), text);
	print_frame(0, caller);
	fprintf(stderr, "  found by\n");
	print_stack(&stack);
}

void
ribv_sanitize_start(void)
{
	void *memory, *frame;

	if (stacks != NULL)
		return;
	memory = mmap(NULL, RIBV_MAX_OBJS * sizeof(*stacks), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || atexit(report) != 0)
		return;
	backtrace(&frame, 1); /* the first call loads a library */
	stacks = memory;
	ribv_entered = stack_keep;
}
