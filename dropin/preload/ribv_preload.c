/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv.so, the preloaded library: each function passes its call on. It is small, so that
 * programs without verbs pay nothing. librmem_ibv_core.so, which contains class and driver, is
 * loaded (ribv_load.c) when a program first lists or opens devices. Until then no object of rmem
 * exists, and all calls are passed to libibverbs; afterwards to the core.
 */

#include <errno.h>
#include <pthread.h>

#include "../ribv_verbs.h"
#include "ribv_file.h"
#include "ribv_load.h"

/* Return the function to call: the core's, or libibverbs'. */
static ribv_function_t
route(const struct ribv_pass *pass)
{
	ribv_function_t function = __atomic_load_n(&pass->to, __ATOMIC_RELAXED);

	return function != NULL ? function : ribv_load_next(pass->name);
}

#define LIST(...) __VA_ARGS__
#define PASS_ENTRY(name)                                                                           \
	struct ribv_pass pass __attribute__((section("ribv_pass"), used)) = {#name, NULL}

/* An alias that the libraries of ribv_names.c use: no program defines it. */
#define PASS_NAME(name) __asm__(".globl rmem_" #name "\n.set rmem_" #name ", " #name);

/* Define a function that may wait, so its thread can be cancelled in it. */
#define PASS_WAIT(type, name, params, args)                                                        \
	PASS_NAME(name)                                                                            \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
                                                                                                   \
		return ((__typeof__(&name))route(&pass))(args);                                    \
	}

/*
 * Define a function that returns the result of the routed one. A thread can't be cancelled in it,
 * because it may hold a lock of the class.
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

/* Define a function that returns an errno and also sets errno, as after a call of the kernel. */
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

/* Define a function without result. */
#define PASS_VOID(name, params, args)                                                              \
	PASS_NAME(name)                                                                            \
	void name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		int state;                                                                         \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		((__typeof__(&name))route(&pass))(args);                                           \
		pthread_setcancelstate(state, NULL);                                               \
	}

/*
 * Define a function that loads the core first. Cancellation is disabled here too, because of the
 * loader's locks. libibverbs and the core find only the files of the kernel.
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
		(void)ribv_load();                                                                 \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		ribv_nb_inside--;                                                                  \
		pthread_setcancelstate(state, NULL);                                               \
		return ret;                                                                        \
	}

#include "ribv_pass.h"

/* Used by ribv_names.c; the device is of libibverbs or the core. */
const char *rmem_ibv_get_device_name(const struct ibv_device *device);

const char *
rmem_ibv_get_device_name(const struct ibv_device *device)
{
	return device->name;
}
