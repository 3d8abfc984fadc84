/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shows ThreadSanitizer the order that DPDK's own libraries keep, for they are built without
 * it. check-tsan.sh builds this with it and loads it before them.
 *
 * Each function here stands before DPDK's of the same name and calls it, or does as it does,
 * with an order that ThreadSanitizer sees and that DPDK's keeps as well: calls of the heap are
 * one after the other; a service runs after it was registered, and has ended its call when
 * rte_service_may_be_active() reports it.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_memzone.h>
#include <rte_service.h>
#include <rte_service_component.h>

static pthread_mutex_t heap = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t services = PTHREAD_MUTEX_INITIALIZER;

/* DPDK's function of this name, as real; threads may look it up concurrently. */
#define REAL(name)                                                                                 \
	static __typeof__(&name) found;                                                            \
	__typeof__(&name) real = __atomic_load_n(&found, __ATOMIC_RELAXED);                        \
                                                                                                   \
	if (real == NULL) {                                                                        \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                 \
		__atomic_store_n(&found, real, __ATOMIC_RELAXED);                                  \
	}

/* Define a function of the heap that returns something. */
#define HEAP(type, name, params, args)                                                             \
	type name params                                                                           \
	{                                                                                          \
		REAL(name);                                                                        \
		type result;                                                                       \
                                                                                                   \
		pthread_mutex_lock(&heap);                                                         \
		result = real args;                                                                \
		pthread_mutex_unlock(&heap);                                                       \
		return result;                                                                     \
	}

HEAP(void *, rte_malloc, (const char *type, size_t size, unsigned int align), (type, size, align))
HEAP(void *, rte_zmalloc, (const char *type, size_t size, unsigned int align), (type, size, align))
HEAP(void *, rte_malloc_socket, (const char *type, size_t size, unsigned int align, int socket),
		(type, size, align, socket))
HEAP(void *, rte_zmalloc_socket, (const char *type, size_t size, unsigned int align, int socket),
		(type, size, align, socket))
HEAP(const struct rte_memzone *, rte_memzone_reserve,
		(const char *name, size_t len, int socket, unsigned int flags),
		(name, len, socket, flags))
HEAP(const struct rte_memzone *, rte_memzone_reserve_aligned,
		(const char *name, size_t len, int socket, unsigned int flags, unsigned int align),
		(name, len, socket, flags, align))
HEAP(int, rte_memzone_free, (const struct rte_memzone *mz), (mz))

void
rte_free(void *ptr)
{
	REAL(rte_free);

	pthread_mutex_lock(&heap);
	real(ptr);
	pthread_mutex_unlock(&heap);
}

/* A service's own callback and argument; never freed, as a service lcore may come late. */
struct service {
	rte_service_func callback;
	void *userdata;
};

/* After the accesses of other threads before they arrive here, and before those after it. */
static void
order_services(void)
{
	pthread_mutex_lock(&services);
	pthread_mutex_unlock(&services);
}

static int32_t
run_service(void *arg)
{
	const struct service *service = arg;
	int32_t result;

	order_services();
	result = service->callback(service->userdata);
	order_services();
	return result;
}

int32_t
rte_service_component_register(const struct rte_service_spec *spec, uint32_t *id)
{
	REAL(rte_service_component_register);
	struct rte_service_spec shown = *spec;
	struct service *service = malloc(sizeof(*service));

	if (service == NULL)
		abort();
	service->callback = spec->callback;
	service->userdata = spec->callback_userdata;
	shown.callback = run_service;
	shown.callback_userdata = service;
	order_services();
	return real(&shown, id);
}

int32_t
rte_service_may_be_active(uint32_t id)
{
	REAL(rte_service_may_be_active);
	int32_t result = real(id);

	order_services();
	return result;
}
