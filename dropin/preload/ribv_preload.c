/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv.so, the preloaded library: each function passes its call on. It is small, so a
 * program without verbs pays nothing. librmem_ibv_core.so, which has class and driver, is loaded
 * when a program first lists or opens devices; before that no object can be of rmem, and libibverbs
 * gets the calls. Afterwards the core gets them.
 *
 * Invariant: a thread never waits for one that needs the lock of the dynamic loader. It may hold
 * that lock itself: the constructor of a library may open a file of the view. So several threads
 * may load the core at a time, which only that lock orders; after it is loaded, no call needs it.
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "rcm_preload.h"
#include "ribv_file.h"
#include "../ribv_verbs.h"

#define LIBIBVERBS "libibverbs.so.1"
#define CORE       "librmem_ibv_core.so"

typedef ribv_function_t function_t;

/* A function of libibverbs, and that of the core, or NULL until it is loaded; atomic. */
struct pass {
	const char *name;
	function_t to;
};

/* All that PASS() defines. */
extern struct pass __start_ribv_pass[] RIBV_HIDDEN;
extern struct pass __stop_ribv_pass[] RIBV_HIDDEN;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded; /* atomic; all below is set, and the core is started */
static bool is_failed; /* atomic; it can't be loaded */

static pthread_key_t main_key; /* set in the main thread */
static bool is_main_ended;     /* atomic */

/* Of the core; atomic, set before it is started. */
static function_t core_init;
static function_t core_view;
static function_t core_main_ended;
static const struct rcm_ops *core_cm;

static function_t
symbol(void *library, const char *name)
{
	union {
		void *object;
		function_t function;
	} found = {.object = ribv_dlsym(library, name)};

	return found.function;
}

static function_t
next(const char *name)
{
	function_t function = symbol(RTLD_NEXT, name);
	void *library;

	if (function != NULL)
		return function;
	/* Loaded by a plugin, and so not in the global scope. */
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

/* The functions called here need no lock of the loader. */
static void
start(void)
{
	((__typeof__(&ribv_core_init))__atomic_load_n(&core_init, __ATOMIC_RELAXED))(next);
	rcm_preload_init(__atomic_load_n(&core_cm, __ATOMIC_RELAXED));
}

/* Threads of the core do not keep the process. */
static void
main_ended_check(void)
{
	if (__atomic_load_n(&is_main_ended, __ATOMIC_SEQ_CST) &&
			__atomic_load_n(&is_loaded, __ATOMIC_SEQ_CST))
		((__typeof__(&ribv_core_main_ended))__atomic_load_n(
				&core_main_ended, __ATOMIC_RELAXED))();
}

/* Return whether the core is there, which is loaded if needed. Threads that do so at a time store
 * the same values. */
static bool
load(void)
{
	struct pass *pass;
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

/* It ends by pthread_exit(); the destructor of its data is called. */
static void
main_ends(void *key)
{
	__atomic_store_n(&is_main_ended, key == &main_key, __ATOMIC_SEQ_CST);
	main_ended_check();
}

/* The thread of a child of fork() is its main thread. */
static void
main_set(void)
{
	is_main_ended = false;
	pthread_setspecific(main_key, &main_key);
}

__attribute__((constructor)) static void
main_find(void)
{
	if (pthread_key_create(&main_key, main_ends) != 0)
		return;
	main_set();
	pthread_atfork(NULL, NULL, main_set);
}

ribv_view_t
ribv_core_view(void)
{
	return load() ? (ribv_view_t)__atomic_load_n(&core_view, __ATOMIC_RELAXED) : NULL;
}

/* Return the function to call. */
static function_t
route(const struct pass *pass)
{
	function_t function = __atomic_load_n(&pass->to, __ATOMIC_RELAXED);

	return function != NULL ? function : next(pass->name);
}

#define LIST(...) __VA_ARGS__
#define PASS_ENTRY(name)                                                                           \
	struct pass pass __attribute__((section("ribv_pass"), used)) = {#name, NULL}

/* The name by which a library of ribv_names.c finds a function: no program defines it. */
#define PASS_NAME(name) __asm__(".globl rmem_" #name "\n.set rmem_" #name ", " #name);

/* Define a function that waits: a thread in it can be cancelled. */
#define PASS_WAIT(type, name, params, args)                                                        \
	PASS_NAME(name)                                                                            \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
                                                                                                   \
		return ((__typeof__(&name))route(&pass))(args);                                    \
	}

/*
 * Define a function that returns what the routed one does. A thread that is cancelled in it ends
 * later, so it holds no lock of the class.
 */
#define PASS(type, name, params, args)                                                             \
	PASS_NAME(name)                                                                            \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		type ret;                                                                          \
		int state;                                                                         \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		pthread_setcancelstate(state, NULL);                                               \
		return ret;                                                                        \
	}

/* Define one that returns an errno, which is also in errno, as after a call of the kernel. */
#define PASS_ERR(name, params, args)                                                               \
	PASS_NAME(name)                                                                            \
	int name(params)                                                                           \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		int ret, state;                                                                    \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		pthread_setcancelstate(state, NULL);                                               \
		if (ret > 0)                                                                       \
			errno = ret;                                                               \
		return ret;                                                                        \
	}

/* Define one without result. */
#define PASS_VOID(name, params, args)                                                              \
	PASS_NAME(name)                                                                            \
	void name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
                                                                                                   \
		((__typeof__(&name))route(&pass))(args);                                           \
	}

/*
 * Define one that loads the core first. The loader of libraries holds locks, too. Libibverbs and
 * the core find the files of the kernel.
 */
#define PASS_LOAD(type, name, params, args)                                                        \
	PASS_NAME(name)                                                                            \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		type ret;                                                                          \
		int state;                                                                         \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ribv_nb_inside++;                                                                  \
		(void)load();                                                                      \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		ribv_nb_inside--;                                                                  \
		pthread_setcancelstate(state, NULL);                                               \
		return ret;                                                                        \
	}

#include "ribv_pass.h"

/* For ribv_names.c; the device is of libibverbs or the core. */
const char *rmem_ibv_get_device_name(const struct ibv_device *device);

const char *
rmem_ibv_get_device_name(const struct ibv_device *device)
{
	return device->name;
}
