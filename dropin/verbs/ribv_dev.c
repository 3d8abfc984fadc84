/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The device of the process: one of the class, created when a program first looks for devices. */

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ribv.h"
#include "../ribv_view.h"
#include "rmem_env.h"

struct rmem_dev *ribv_dev;
uint8_t ribv_roce_header;

/* A program may have it from before it forked. */
static RMEM_ENV_KEPT struct ibv_device device = {
		.node_type = IBV_NODE_CA,
		.transport_type = IBV_TRANSPORT_IB,
};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool is_creating; /* the driver of the device may list the real ones */

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

/* As the type of the L3 header in the CQE of mlx5: 8 for UDP, and 1 for IPv6 or 2 for IPv4. */
static uint8_t
roce_header(void)
{
	struct rmem_gid_entry entry;
	struct in6_addr ip;

	if (rmem_dev_gid_query(ribv_dev, 1, 0, &entry) != 0 || entry.type != RMEM_GID_TYPE_ROCE_V2)
		return 0;
	memcpy(&ip, entry.gid, sizeof(ip));
	return IN6_IS_ADDR_V4MAPPED(&ip) ? 8 | 2 : 8 | 1;
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
	ribv_roce_header = roce_header();
	memcpy(device.name, name, len + 1);
	snprintf(device.dev_name, sizeof(device.dev_name), "uverbs%u", RIBV_VERBS_NUMBER);
	snprintf(device.dev_path, sizeof(device.dev_path), RIBV_SYSFS_VERBS "/%s", device.dev_name);
	snprintf(device.ibdev_path, sizeof(device.ibdev_path), RIBV_SYSFS "/%s", name);
	ribv_report_start(ribv_dev);
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

bool
ribv_is_device(const struct ibv_device *dev)
{
	return dev == &device;
}

struct ibv_device *
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

__be64
ribv_node_guid(void)
{
	struct rmem_dev_attr attr;
	__be64 guid = 0;

	if (rmem_dev_attr_get(ribv_dev, &attr) == 0)
		memcpy(&guid, attr.node_guid, sizeof(guid));
	return guid;
}
