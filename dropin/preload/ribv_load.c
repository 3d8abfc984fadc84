/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Loading the core, librmem_ibv_core.so.
 *
 * Invariant: a thread never waits here for a thread that needs the dynamic loader's lock, because
 * it may hold that lock itself: a library's constructor may open a file of the view. So several
 * threads may load the core at the same time, ordered only by the loader's lock, and store equal
 * values. No call needs that lock once the core is loaded.
 * Invariant: is_loaded is stored after all variables below and the functions of struct ribv_pass; a
 * thread that loads it with acquire may use them.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../ribv_verbs.h"
#include "ribv_load.h"

#define LIBIBVERBS "libibverbs.so.1"
#define CORE       "librmem_ibv_core.so"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded; /* atomic; the core is loaded and started */
static bool is_failed; /* atomic; loading has failed; not tried again */

static pid_t owner; /* process that owns this memory; 0: not known */

static pthread_key_t main_key; /* set in the main thread */
static bool is_main_ended;     /* atomic */

/* Functions of the core; atomic, set before it is started. */
static ribv_function_t core_init;
static ribv_function_t core_view;
static ribv_function_t core_main_ended;
static const struct rcm_ops *core_cm;

/* Called in the process and in a child of fork(), but not in a child of vfork(). */
static void
owner_set(void)
{
	owner = getpid();
}

bool
ribv_is_owner(void)
{
	return owner == 0 || owner == getpid();
}

static ribv_function_t
symbol(void *library, const char *name)
{
	union {
		void *object;
		ribv_function_t function;
	} found = {.object = ribv_dlsym(library, name)};

	return found.function;
}

ribv_function_t
ribv_load_next(const char *name)
{
	ribv_function_t function = symbol(RTLD_NEXT, name);
	void *library;

	if (function != NULL)
		return function;
	/* A plugin loaded libibverbs, so it is not in the global scope. */
	library = REAL(dlopen)(LIBIBVERBS, RTLD_LAZY);
	return library != NULL ? symbol(library, name) : NULL;
}

bool
ribv_library_path(char path[RIBV_LIBRARY_PATH], const char *name)
{
	const char *slash;
	Dl_info info;

	if (dladdr(&once, &info) == 0 || info.dli_fname == NULL)
		return false;
	slash = strrchr(info.dli_fname, '/');
	snprintf(path, RIBV_LIBRARY_PATH, "%.*s%s",
			slash != NULL ? (int)(slash + 1 - info.dli_fname) : 0, info.dli_fname,
			name);
	return true;
}

static void *
open_core(void)
{
	char path[RIBV_LIBRARY_PATH];

	return ribv_library_path(path, CORE) ? REAL(dlopen)(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Start the core. The functions called here do not need the loader's lock. */
static void
start(void)
{
	((__typeof__(&ribv_core_init))__atomic_load_n(&core_init, __ATOMIC_RELAXED))(
			ribv_load_next);
	rcm_preload_init(__atomic_load_n(&core_cm, __ATOMIC_RELAXED));
}

/* The main thread has ended: threads of the core must not keep the process alive. */
static void
main_ended_check(void)
{
	if (__atomic_load_n(&is_main_ended, __ATOMIC_SEQ_CST) &&
			__atomic_load_n(&is_loaded, __ATOMIC_SEQ_CST))
		((__typeof__(&ribv_core_main_ended))__atomic_load_n(
				&core_main_ended, __ATOMIC_RELAXED))();
}

/* Threads that load the core at the same time store equal values. */
bool
ribv_load(void)
{
	struct ribv_pass *pass;
	void *library;

	if (__atomic_load_n(&is_loaded, __ATOMIC_ACQUIRE))
		return true;
	if (!ribv_is_owner() || __atomic_load_n(&is_failed, __ATOMIC_RELAXED))
		return false;
	library = open_core();
	if (library == NULL || symbol(library, "ribv_core_init") == NULL) {
		if (!__atomic_exchange_n(&is_failed, true, __ATOMIC_RELAXED))
			fprintf(stderr, "rmem_ibv: no device of rmem: %s\n", dlerror());
		return false;
	}
	__atomic_store_n(&core_view, symbol(library, "ribv_view_find"), __ATOMIC_RELAXED);
	__atomic_store_n(&core_main_ended, symbol(library, "ribv_core_main_ended"),
			__ATOMIC_RELAXED);
	__atomic_store_n(&core_cm, ribv_dlsym(library, "rcm_core_ops"), __ATOMIC_RELAXED);
	__atomic_store_n(&core_init, symbol(library, "ribv_core_init"), __ATOMIC_RELAXED);
	pthread_once(&once, start);
	for (pass = __start_ribv_pass; pass != __stop_ribv_pass; pass++)
		__atomic_store_n(&pass->to, symbol(library, pass->name), __ATOMIC_RELAXED);
	__atomic_store_n(&is_loaded, true, __ATOMIC_SEQ_CST);
	main_ended_check();
	return true;
}

/* The main thread ends with pthread_exit(), which calls the destructor of its data. */
static void
main_ends(void *key)
{
	__atomic_store_n(&is_main_ended, key == &main_key, __ATOMIC_SEQ_CST);
	main_ended_check();
}

/* The only thread of a child of fork() is its main thread. */
static void
main_set(void)
{
	is_main_ended = false;
	pthread_setspecific(main_key, &main_key);
}

__attribute__((constructor)) static void
load_begin(void)
{
	owner_set();
	pthread_atfork(NULL, NULL, owner_set);
	if (pthread_key_create(&main_key, main_ends) != 0)
		return;
	main_set();
	pthread_atfork(NULL, NULL, main_set);
}

ribv_view_t
ribv_core_view(void)
{
	return ribv_load() ? (ribv_view_t)__atomic_load_n(&core_view, __ATOMIC_RELAXED) : NULL;
}
