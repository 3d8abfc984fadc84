/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Devices and contexts. The device of rmem follows the real ones; all contexts
 * share it. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ribv.h"
#include "ribv_file.h"
#include "rmem_env.h"

struct rmem_dev *ribv_dev;

/* A program may have it from before it forked. */
static RMEM_ENV_KEPT struct ibv_device device = {
		.node_type = IBV_NODE_CA,
		.transport_type = IBV_TRANSPORT_IB,
};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool is_creating; /* the driver of the device may list the real ones */

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static RMEM_ENV_KEPT struct list *lists;

/* A list of devices given to the program, with the real one that it begins
 * with. As of those of libibverbs, programs may release the array by free(). */
struct list {
	struct list *next;
	struct ibv_device **real;
	struct ibv_device **devices;
};

/* Whether a list of arguments has that one. */
static bool
has_arg(const char *args, const char *key)
{
	size_t len = strlen(key);

	for (; args != NULL; args = strchr(args, ',')) {
		args += args[0] == ',';
		if (strncmp(args, key, len) == 0)
			return true;
	}
	return false;
}

/* Arguments of soft, unless they are given. Peers are all processes of the host. */
static const struct {
	const char *key;
	const char *arg;
	const char *unless; /* or this one is given */
} defaults[] = {
		{"ip=", ",ip=host", "engine="}, /* a device with engines has no wire */
		{"max_cq=", ",max_cq=4096", NULL},
		{"max_cqe=", ",max_cqe=262144", "profile="}, /* ofi_rxm of libfabric needs 131073 */
		{"max_qp=", ",max_qp=4096", NULL},
};

static int
rmem_create(const char *name, const char *args)
{
	char own[1024];
	size_t i, len;

	/* No space for the defaults: without them. */
	if (strncmp(name, "soft", 4) != 0 || strlen(args) >= sizeof(own) - 64)
		return rmem_dev_create(name, args, &ribv_dev);
	len = (size_t)snprintf(own, sizeof(own), "%s", args);
	for (i = 0; i < RTE_DIM(defaults); i++) {
		if (has_arg(args, defaults[i].key) ||
				(defaults[i].unless != NULL && has_arg(args, defaults[i].unless)))
			continue;
		len += (size_t)snprintf(
				own + len, sizeof(own) - len, "%s", defaults[i].arg + (len == 0));
	}
	return rmem_dev_create(name, own, &ribv_dev);
}

/* Create the device that RMEM_IBV names, "soft0" or "soft0,key=value"; return why not, or NULL. */
static const char *
dev_create(const char *env)
{
	const char *args = strchr(env, ',');
	size_t len = args != NULL ? (size_t)(args - env) : strlen(env);
	char name[sizeof(device.name)];
	struct rmem_dev_info info = {.capa = 0};
	const char *reason;
	int ret;

	if (len >= sizeof(name))
		return "the name is too long (63)";
	if (ribv_objs == 0)
		return "no address space for its objects: 68 MB (ulimit -v)";
	memcpy(name, env, len);
	name[len] = '\0';
	ribv_env_log_keep();
	ret = rmem_create(name, args != NULL ? args + 1 : "");
	if (ret == 0)
		(void)rmem_dev_info_get(ribv_dev, &info);
	reason = ribv_env_log_kept((info.capa & RMEM_DEV_CAPA_SANITIZE) != 0);
	if (ret != 0)
		return reason[0] != '\0' ? reason : strerror(-ret);
	ribv_roce_header_set();
	memcpy(device.name, name, len + 1);
	snprintf(device.dev_name, sizeof(device.dev_name), "uverbs%u", RIBV_VERBS_NUMBER);
	snprintf(device.dev_path, sizeof(device.dev_path), RIBV_SYSFS_VERBS "/%s", device.dev_name);
	snprintf(device.ibdev_path, sizeof(device.ibdev_path), RIBV_SYSFS "/%s", name);
	ribv_report_start();
	return NULL;
}

static void
dev_start(void)
{
	const char *env = getenv("RMEM_IBV");
	const char *reason, *status;

	if (env == NULL || env[0] == '\0')
		env = "soft0";
	is_creating = true;
	reason = dev_create(env);
	is_creating = false;
	if (reason == NULL)
		return;
	fprintf(stderr, "rmem_ibv: no device %s: %s\n", env, reason);
	/* Set by rmem-run alone: a program that was to run on the device must not do without. */
	status = getenv("RMEM_IBV_EXIT");
	if (status != NULL)
		_exit((int)strtol(status, NULL, 10));
}

static bool
has_dev(void)
{
	if (is_creating)
		return false;
	pthread_once(&once, dev_start);
	return ribv_dev != NULL;
}

const struct ibv_device *
ribv_device(void)
{
	return has_dev() ? &device : NULL;
}

bool
ribv_has_device(const struct ibv_context *context)
{
	uintptr_t at = (uintptr_t)context - offsetof(struct verbs_context, context) - ribv_objs;

	return ribv_is_context(context) ||
			(ribv_env_is_child() && ribv_is_own(context) && at % RIBV_SLOT == 0 &&
					has_dev());
}

/* Remove a list from those given to the program; return it, or NULL if there is no such one. */
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

/* Return a list with space for n devices. */
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
	struct ibv_device **real;
	struct list *list, *freed;
	int n = 0;

	real = RIBV_NEXT(ibv_get_device_list)(&n);
	if (real == NULL)
		n = 0;
	list = list_new((size_t)n + 2);
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
	if (has_dev())
		list->devices[n++] = &device;
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
	if (dev != &device && ribv_is_real(dev))
		return RIBV_NEXT(ibv_get_device_guid)(dev);
	return dev == &device && has_dev() ? ribv_node_guid() : 0;
}

int
ibv_get_device_index(struct ibv_device *dev)
{
	return dev != &device && ribv_is_real(dev) ? RIBV_NEXT(ibv_get_device_index)(dev) : -1;
}

static struct ibv_context *
open_real(struct ibv_device *dev)
{
	if (!ribv_is_real(dev))
		return ribv_fail(ENODEV);
	return RIBV_NEXT(ibv_open_device)(dev);
}

struct ibv_context *
ibv_open_device(struct ibv_device *dev)
{
	struct verbs_context *context;
	struct ribv_context *own;
	int ret;

	if (dev != &device)
		return open_real(dev);
	if (!has_dev())
		return ribv_fail(ENODEV);
	own = ribv_new();
	if (own == NULL)
		return NULL;
	ret = rmem_async_channel_create(ribv_dev, &own->async);
	if (ret != 0) {
		ribv_leave(own);
		return ribv_fail(ribv_errno(ret));
	}
	context = &own->verbs;
	context->sz = sizeof(*context);
	ribv_ops_set(context);
	context->context.device = dev;
	context->context.num_comp_vectors = 1;
	context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->context.async_fd = own->async->fd;
	/* Open, so that a program can duplicate it; there are no commands. */
	context->context.cmd_fd = context->context.async_fd;
	pthread_mutex_init(&context->context.mutex, NULL);
	ribv_enter(context, RIBV_CONTEXT);
	return &context->context;
}

struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct stat st;

	/* That of a real device is a character device. */
	if (fstat(cmd_fd, &st) == 0 && S_ISCHR(st.st_mode)) {
		__atomic_store_n(&ribv_has_real, true, __ATOMIC_RELAXED);
		return RIBV_NEXT(ibv_import_device)(cmd_fd);
	}
	return ribv_fail(EOPNOTSUPP);
}

int
ibv_close_device(struct ibv_context *context)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_close_device)(context);
	if (!ribv_is_context(context))
		return ENOENT;
	/* Objects that the program has not destroyed keep the channel. */
	(void)rmem_async_channel_destroy(ribv_async_of(context));
	pthread_mutex_destroy(&context->mutex);
	ribv_leave((char *)context - offsetof(struct verbs_context, context));
	return 0;
}
