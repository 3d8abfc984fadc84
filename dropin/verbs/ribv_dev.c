/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The devices of rmem in the process, created when a program first lists devices.
 *
 * Invariant: ribv_devs[] is filled once, by the first list of devices, from 0 without gaps. Devices
 * are not closed before the process exits, so their numbers and pointers stay valid.
 * Invariant: in a child of fork(), the struct ibv_device of a number has the same address as in the
 * parent, because the child may have kept a pointer to it.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ribv.h"
#include "ribv_finding.h"
#include "../ribv_view.h"
#include "rmem_env.h"

/* A child may have pointers to them from before fork(). */
static RMEM_ENV_KEPT struct ibv_device devices[RIBV_MAX_DEVS];
static uint8_t roce_headers[RIBV_MAX_DEVS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool is_creating; /* a driver that is created may list devices */

/* Whether a list of arguments has the key. */
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

/* Default arguments of soft. With ip=host, the peers are all processes of the host. */
static const struct {
	const char *key;
	const char *arg;
	const char *unless; /* or this argument is given */
} defaults[] = {
		{"ip=", ",ip=host", "engine="}, /* engines exclude ip= */
		{"max_cq=", ",max_cq=4096", NULL},
		{"max_cqe=", ",max_cqe=4194303", "profile="}, /* as mlx5 */
		{"max_qp=", ",max_qp=4096", NULL}, {"max_srq=", ",max_srq=4096", NULL},
		{"max_pd=", ",max_pd=4096", NULL},
		{"max_mr=", ",max_mr=65536", NULL}, /* more than the objects of a process */
};

static int
rmem_create(const char *name, const char *args, struct rmem_dev **dev)
{
	char own[4096]; /* longer than all arguments of soft together */
	size_t i, len;

	if (strncmp(name, "soft", 4) != 0 || strlen(args) >= sizeof(own) - 128)
		return rmem_dev_create(name, args, dev);
	len = (size_t)snprintf(own, sizeof(own), "%s", args);
	for (i = 0; i < RTE_DIM(defaults); i++) {
		if (has_arg(args, defaults[i].key) ||
				(defaults[i].unless != NULL && has_arg(args, defaults[i].unless)))
			continue;
		len += (size_t)snprintf(
				own + len, sizeof(own) - len, "%s", defaults[i].arg + (len == 0));
	}
	return rmem_dev_create(name, own, dev);
}

/* Type of the L3 header in mlx5's CQE: 8 for UDP, plus 1 for IPv6 or 2 for IPv4. */
static uint8_t
roce_header(const struct rmem_dev *dev)
{
	struct rmem_gid_entry entry;
	struct in6_addr ip;

	if (rmem_dev_gid_query(dev, RIBV_PORT, 0, &entry) != 0 ||
			entry.type != RMEM_GID_TYPE_ROCE_V2)
		return 0;
	memcpy(&ip, entry.gid, sizeof(ip));
	return IN6_IS_ADDR_V4MAPPED(&ip) ? 8 | 2 : 8 | 1;
}

/* Set the public fields of a device that programs and libibverbs read. */
static void
device_fill(struct ibv_device *device, const char *name, uint32_t number)
{
	device->node_type = IBV_NODE_CA;
	device->transport_type = IBV_TRANSPORT_IB;
	snprintf(device->name, sizeof(device->name), "%s", name);
	snprintf(device->dev_name, sizeof(device->dev_name), "uverbs%u",
			RIBV_VERBS_NUMBER + number);
	snprintf(device->dev_path, sizeof(device->dev_path), RIBV_SYSFS_VERBS "/uverbs%u",
			RIBV_VERBS_NUMBER + number);
	snprintf(device->ibdev_path, sizeof(device->ibdev_path), RIBV_SYSFS "/%s", name);
}

/* Create the device "soft0" or "soft0,key=value"; return an error text, or NULL. */
static const char *
dev_create(const char *entry, uint32_t number)
{
	const char *args = strchr(entry, ',');
	size_t len = args != NULL ? (size_t)(args - entry) : strlen(entry);
	char name[sizeof(devices[0].name)];
	struct rmem_dev_info info = {.capa = 0};
	struct rmem_dev *dev;
	const char *reason;
	int ret;

	if (number == RIBV_MAX_DEVS)
		return "a process has 8 devices";
	if (len >= sizeof(name))
		return "the name is too long (63)";
	memcpy(name, entry, len);
	name[len] = '\0';
	if (ribv_objs == 0)
		return "no address space for its objects: 68 MB (ulimit -v)";
	ribv_env_log_keep();
	ret = rmem_create(name, args != NULL ? args + 1 : "", &dev);
	if (ret == 0)
		(void)rmem_dev_info_get(dev, &info);
	reason = ribv_env_log_kept((info.capa & RMEM_DEV_CAPA_SANITIZE) != 0);
	if (ret != 0)
		return reason[0] != '\0' ? reason : strerror(-ret);
	if ((info.capa & RMEM_DEV_CAPA_SANITIZE) != 0)
		ribv_sanitize_start();
	if ((info.capa & RMEM_DEV_CAPA_SANITIZE) != 0 && has_arg(args, "sanitize=2"))
		ribv_watch_sums(number);
	roce_headers[number] = roce_header(dev);
	device_fill(&devices[number], name, number);
	ribv_devs[number] = dev;
	return NULL;
}

/* A device named by RMEM_IBV can't be created. */
static void
dev_missing(const char *name, const char *reason)
{
	const char *status = getenv("RMEM_IBV_EXIT");

	fprintf(stderr, "rmem_ibv: no device %s: %s\n", name, reason);
	/* Only rmem-run sets this: its program must not run without the device. */
	if (status != NULL)
		_exit((int)strtol(status, NULL, 10));
}

/* Create the devices, separated by "|" in the list; stop at the first failure. */
static void
devs_start(void)
{
	const char *env = getenv("RMEM_IBV");
	const char *reason = NULL;
	char *list, *name, *rest;
	uint32_t i;

	if (env == NULL || env[0] == '\0')
		env = "soft0";
	list = strdup(env);
	if (list == NULL) {
		dev_missing(env, strerror(ENOMEM));
		return;
	}
	is_creating = true;
	name = strtok_r(list, "|", &rest);
	reason = ribv_finding_start();
	if (reason != NULL)
		dev_missing(env, reason);
	for (i = 0; name != NULL && reason == NULL; i++) {
		reason = dev_create(name, i);
		if (reason != NULL)
			dev_missing(name, reason);
		name = strtok_r(NULL, "|", &rest);
	}
	is_creating = false;
	free(list);
	ribv_report_start();
}

static bool
has_dev(uint32_t number)
{
	if (is_creating)
		return false;
	pthread_once(&once, devs_start);
	return ribv_devs[number] != NULL;
}

uint32_t
ribv_dev_number(const struct ibv_device *device)
{
	return (uint32_t)(device - devices);
}

bool
ribv_is_device(const struct ibv_device *device)
{
	uintptr_t offset = (uintptr_t)device - (uintptr_t)devices;

	return offset < sizeof(devices) && offset % sizeof(*device) == 0;
}

struct ibv_device *
ribv_device(uint32_t number)
{
	return has_dev(number) ? &devices[number] : NULL;
}

bool
ribv_has_device(const struct ibv_context *context)
{
	const struct ribv_context *own = ribv_context_of(context);

	return ribv_is_context(context) ||
			(ribv_is_inherited(own, RIBV_CONTEXT) && has_dev(own->dev));
}

uint8_t
ribv_roce_header(uint32_t number)
{
	return roce_headers[number];
}

__be64
ribv_node_guid(const struct rmem_dev *dev)
{
	struct rmem_dev_attr attr;
	__be64 guid = 0;

	if (rmem_dev_attr_get(dev, &attr) == 0)
		memcpy(&guid, attr.node_guid, sizeof(guid));
	return guid;
}
