/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Lists of devices, and contexts. In a list, the devices of rmem follow the real ones. All contexts
 * of a device share it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ribv.h"
#include "rmem_env.h"

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static RMEM_ENV_KEPT struct list *lists;

/* A list of devices returned to the program, and the list of libibverbs that it starts with.
 * Programs may release the array with free(), as they may with libibverbs. */
struct list {
	struct list *next;
	struct ibv_device **real;
	struct ibv_device **devices;
};

/* Remove a list from the lists returned to the program; NULL if it is not one of them. */
static struct list *
list_take(struct ibv_device **devices)
{
	struct list **at, *list;

	for (at = &lists; *at != NULL && (*at)->devices != devices; at = &(*at)->next)
		;
	list = *at;
	if (list != NULL)
		*at = list->next;
	return list;
}

static void
list_release(struct list *list)
{
	if (list != NULL && list->real != NULL)
		RIBV_NEXT(ibv_free_device_list)(list->real);
	free(list);
}

/* Allocate a list with space for n devices. */
static struct list *
list_new(size_t n)
{
	struct list *list = calloc(1, sizeof(*list));

	if (list == NULL)
		return NULL;
	list->devices = calloc(n, sizeof(struct ibv_device *));
	if (list->devices != NULL)
		return list;
	free(list);
	return NULL;
}

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **real, *device;
	struct list *list, *freed;
	int n = 0;
	uint32_t i;

	real = RIBV_NEXT(ibv_get_device_list)(&n);
	if (real == NULL)
		n = 0;
	list = list_new((size_t)n + RIBV_MAX_DEVS + 1);
	if (list == NULL) {
		if (real != NULL)
			RIBV_NEXT(ibv_free_device_list)(real);
		return ribv_fail(ENOMEM);
	}
	list->real = real;
	if (real != NULL)
		memcpy(list->devices, real, (size_t)n * sizeof(void *));
	if (n > 0)
		__atomic_store_n(&ribv_has_real, true, __ATOMIC_RELAXED);
	for (i = 0; (device = ribv_device(i)) != NULL; i++)
		list->devices[n++] = device;
	if (num_devices != NULL)
		*num_devices = n;
	pthread_mutex_lock(&lists_lock);
	freed = list_take(list->devices);
	list->next = lists;
	lists = list;
	pthread_mutex_unlock(&lists_lock);
	list_release(freed);
	return list->devices;
}

void
ibv_free_device_list(struct ibv_device **devices)
{
	struct list *list;

	pthread_mutex_lock(&lists_lock);
	list = list_take(devices);
	pthread_mutex_unlock(&lists_lock);
	if (list == NULL)
		return;
	list_release(list);
	free(devices);
}

__be64
ibv_get_device_guid(struct ibv_device *dev)
{
	if (!ribv_is_device(dev) && ribv_is_real(dev))
		return RIBV_NEXT(ibv_get_device_guid)(dev);
	return ribv_is_device(dev) && ribv_device(ribv_dev_number(dev)) != NULL
			? ribv_node_guid(ribv_devs[ribv_dev_number(dev)])
			: 0;
}

int
ibv_get_device_index(struct ibv_device *dev)
{
	return !ribv_is_device(dev) && ribv_is_real(dev) ? RIBV_NEXT(ibv_get_device_index)(dev)
							 : -1;
}

static struct ibv_context *
open_real(struct ibv_device *dev)
{
	if (!ribv_is_real(dev))
		return ribv_fail(ENODEV);
	return RIBV_NEXT(ibv_open_device)(dev);
}

/* Open the channel of asynchronous events and the command file; 0 or an errno. */
static int
open_files(struct ribv_context *own, const struct ribv_context *from, int cmd_fd)
{
	int ret;

	ret = -rmem_async_channel_create(ribv_devs[own->dev], &own->async);
	if (ret != 0)
		return ribv_errno(-ret);
	if (from == NULL) {
		ret = ribv_handle_file_open(own);
	} else {
		own->cmd_fd = cmd_fd;
		own->file_dev = from->file_dev;
		own->file_ino = from->file_ino;
		own->owner = from->owner;
		own->locks = from->locks;
		own->release = from->release;
	}
	if (ret != 0)
		(void)rmem_async_channel_destroy(own->async);
	return ret;
}

struct ibv_context *
ribv_context_new(uint32_t dev, const struct ribv_context *from, int cmd_fd)
{
	struct ibv_device *device = ribv_device(dev);
	struct verbs_context *context;
	struct ribv_context *own;
	int ret;

	if (device == NULL)
		return ribv_fail(ENODEV);
	own = ribv_new();
	if (own == NULL)
		return NULL;
	own->dev = dev;
	ret = open_files(own, from, cmd_fd);
	if (ret != 0) {
		ribv_leave(own);
		return ribv_fail(ret);
	}
	context = &own->verbs;
	context->sz = sizeof(*context);
	ribv_ops_set(context);
	context->context.device = device;
	context->context.num_comp_vectors = 1;
	context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->context.async_fd = own->async->fd;
	context->context.cmd_fd = own->cmd_fd;
	pthread_mutex_init(&context->context.mutex, NULL);
	ribv_enter(context, RIBV_CONTEXT);
	return &context->context;
}

struct ibv_context *
ibv_open_device(struct ibv_device *dev)
{
	if (!ribv_is_device(dev))
		return open_real(dev);
	return ribv_context_new(ribv_dev_number(dev), NULL, -1);
}

int
ibv_close_device(struct ibv_context *context)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_close_device)(context);
	if (!ribv_is_context(context))
		return ribv_leave_inherited(ribv_context_of(context), RIBV_CONTEXT);
	/* The channel remains if the program has not destroyed all objects. */
	(void)rmem_async_channel_destroy(ribv_async_of(context));
	ribv_handle_free(context);
	close(ribv_context_of(context)->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	ribv_leave(ribv_context_of(context));
	return 0;
}
