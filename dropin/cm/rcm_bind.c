/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Binding IDs to addresses and devices, and resolving the addresses of peers.
 *
 * Invariant: an ID that is not RCM_IDLE has a port; one with has_dev has an address of that device.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "../verbs/ribv.h"
#include "rcm.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t loopback4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
static const uint8_t loopback6[16] = {[15] = 1};

/* Bind a UDP socket to the address, connect it if there is a destination, and return its local
 * address in *own; 0 or a negative errno. No packet is sent. */
static int
try_socket(const struct rcm_addr *from, const struct rcm_addr *to, struct rcm_addr *own)
{
	struct rcm_addr addr = *from;
	struct sockaddr_storage storage = {0};
	socklen_t len;
	int fd, ret = 0;

	addr.port = 0;
	fd = socket(from->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	len = rcm_sockaddr(&addr, &storage);
	if (bind(fd, (struct sockaddr *)&storage, len) != 0)
		ret = -errno;
	if (ret == 0 && to != NULL) {
		addr = *to;
		addr.port = 9; /* any port does */
		len = rcm_sockaddr(&addr, &storage);
		if (connect(fd, (struct sockaddr *)&storage, len) != 0)
			ret = -errno;
	}
	len = sizeof(storage);
	if (ret == 0 && getsockname(fd, (struct sockaddr *)&storage, &len) != 0)
		ret = -errno;
	rcm_close(fd);
	if (ret == 0)
		ret = rcm_addr_of(&storage, len, own);
	return ret;
}

/* Find the device for an address of this host; 0 or a negative errno. */
static int
own_dev(const struct rcm_addr *addr, uint32_t *number)
{
	struct rcm_addr own;
	struct rcm_dev dev;
	int ret = try_socket(addr, NULL, &own);

	if (ret != 0)
		return ret;
	return rcm_dev_find(addr->ip, number, &dev) ? 0 : -ENODEV;
}

/* Bind an ID. On failure it is unchanged: the port is claimed last, and earlier steps are
 * undone. */
static int
bind_id(struct rcm_id *id, const struct rcm_addr *addr, bool is_implicit)
{
	struct rcm_addr before = id->src;
	int ret;

	if (id->state != RCM_IDLE)
		return -EINVAL;
	if (!rcm_is_any(addr)) {
		ret = own_dev(addr, &id->dev);
		if (ret == 0)
			ret = rcm_watch_dev(id->dev);
		if (ret != 0)
			return ret;
		id->has_dev = true;
	}
	id->src = *addr;
	ret = rcm_port_claim(id, is_implicit);
	if (ret != 0) {
		id->src = before;
		id->has_dev = false;
		return ret;
	}
	id->state = RCM_BOUND;
	return 0;
}

int
rcm_bind_any(struct rcm_id *id, uint16_t family)
{
	struct rcm_addr any = {.family = family};

	if (family == AF_INET)
		memcpy(any.ip, mapped, sizeof(mapped));
	return id->state == RCM_IDLE ? bind_id(id, &any, true) : 0;
}

static int
bind_addr(const struct rcm_cmd *cmd, uint32_t handle, const void *sockaddr, size_t size)
{
	struct rcm_addr addr;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, handle, &ret);
	if (id == NULL)
		return ret;
	ret = rcm_addr_of(sockaddr, size, &addr);
	return ret != 0 ? ret : bind_id(id, &addr, false);
}

int
rcm_bind_ip(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_bind_ip *in = &cmd->in.bind_ip;

	return bind_addr(cmd, in->id, &in->addr, sizeof(in->addr));
}

int
rcm_bind(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_bind *in = &cmd->in.bind;

	if (in->reserved != 0 || in->addr_size > sizeof(in->addr))
		return -EINVAL;
	return bind_addr(cmd, in->id, &in->addr, in->addr_size);
}

/* Whether the address is a multicast address. */
static bool
is_group(const struct rcm_addr *addr)
{
	return addr->family == AF_INET ? addr->ip[12] >> 4 == 14 : addr->ip[0] == 0xff;
}

/* Find the source address that the route to the destination uses; from is unspecified or an
 * address. */
static int
source_of(const struct rcm_addr *from, const struct rcm_addr *to, bool is_host,
		struct rcm_addr *own)
{
	int ret = try_socket(from, to, own);

	/* A multicast group of this host's processes needs no route. */
	if (ret == -ENETUNREACH && is_host && is_group(to)) {
		*own = *from;
		memcpy(own->ip, to->family == AF_INET ? loopback4 : loopback6, sizeof(own->ip));
		ret = 0;
	}
	/* The kernel reports EHOSTUNREACH also for a loopback source and for a missing route. */
	return ret == -EINVAL || ret == -ENETUNREACH ? -EHOSTUNREACH : ret;
}

/*
 * GIDs of RoCE are IP addresses, IPv4 ones mapped into IPv6. No route crosses address families.
 */
static bool
has_family(const struct rcm_dev *dev, uint16_t family)
{
	return (memcmp(dev->gid, mapped, sizeof(mapped)) == 0) == (family == AF_INET);
}

/* Find the first GID of a device that reaches the destination; 0 or a negative errno. */
static int
first_gid(const struct rcm_id *id, uint32_t number, struct rcm_addr *own)
{
	struct rcm_addr from = id->src;
	struct rmem_port_attr port;
	struct rcm_dev dev;
	int ret = -ENODEV, last;
	uint32_t i, port_num;

	for (port_num = 1; ret != 0 && rcm_dev_port(number, port_num, &port); port_num++) {
		for (i = 0; ret != 0 && i < port.gid_tbl_len; i++) {
			if (!rcm_dev_gid(number, port_num, i, &dev) || dev.is_host ||
					!has_family(&dev, from.family))
				continue;
			memcpy(from.ip, dev.gid, sizeof(from.ip));
			last = source_of(&from, &id->dst, false, own);
			ret = last == 0 || ret == -ENODEV ? last : ret;
		}
	}
	return ret;
}

/* Find the first device with an address that reaches the destination. */
static int
first_dev(struct rcm_id *id, struct rcm_addr *own)
{
	int ret = -ENODEV, last;
	uint32_t i;

	for (i = 0; ret != 0 && ribv_devs[i] != NULL; i++) {
		last = first_gid(id, i, own);
		ret = last == 0 || ret == -ENODEV ? last : ret;
		id->dev = i;
	}
	return ret;
}

/*
 * Choose the device and source address of an unbound ID by the route, as the kernel does. If no
 * device has the source address of the route: for a destination on this host choose the device
 * whose peers are this host's processes, otherwise the first device that reaches it.
 */
static int
choose_dev(struct rcm_id *id, struct rcm_addr *own)
{
	bool is_here = try_socket(&id->dst, NULL, own) == 0;
	struct rcm_dev dev;
	int ret, first;

	ret = source_of(&id->src, &id->dst, true, own);
	if (ret == 0 && rcm_dev_find(own->ip, &id->dev, &dev)) {
		if (!dev.is_host || is_here)
			return 0;
		ret = -EHOSTUNREACH;
	}
	first = first_dev(id, own);
	return first == -ENODEV && ret != 0 ? ret : first;
}

/* Choose the device and the source address; 0, or the negative errno that the event reports. */
static int
route(struct rcm_id *id)
{
	struct rcm_addr own = id->src, same;
	struct rcm_dev dev;
	int ret;

	if (rcm_is_any(&id->dst)) {
		/* An unspecified address means this host, as for TCP. */
		if (id->dst.family == AF_INET)
			memcpy(id->dst.ip + 12, "\x7f\0\0\1", 4);
		else
			id->dst.ip[15] = 1;
	}
	/* A bound ID keeps its device, even if the route uses another one. */
	if (!id->has_dev) {
		ret = choose_dev(id, &own);
		if (ret == 0)
			ret = rcm_watch_dev(id->dev);
	} else if (!rcm_dev_get(id->dev, &dev)) {
		ret = -ENODEV;
	} else {
		ret = source_of(&id->src, &id->dst, dev.is_host, &own);
		if (dev.is_host && try_socket(&id->dst, NULL, &same) != 0)
			ret = -EHOSTUNREACH;
	}
	if (ret != 0)
		return ret;
	memcpy(id->src.ip, own.ip, sizeof(own.ip));
	id->src.scope_id = own.scope_id;
	id->has_dev = true;
	return 0;
}

/*
 * Errors in the arguments are returned by the call; errors of the route are reported by an event,
 * for which programs wait. The result is known at once, but librdmacm expects an event.
 */
static int
resolve(const struct rcm_cmd *cmd, uint32_t handle, const struct rcm_addr *src,
		const struct rcm_addr *dst)
{
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, handle, &ret);
	if (id == NULL)
		return ret;
	/* A source address without a port is an implicit bind: the program has not chosen a
	 * port. */
	if (id->state == RCM_IDLE)
		ret = src->family != 0 ? bind_id(id, src, src->port == 0)
				       : rcm_bind_any(id, dst->family);
	if (ret != 0)
		return ret;
	if (id->state != RCM_BOUND || id->src.family != dst->family || id->fault.type != 0)
		return -EINVAL;
	id->dst = *dst;
	ret = route(id);
	if (ret == 0 && rcm_chaos_hit(id, RMEM_RDMA_CM_RESOLVE_ADDR))
		return 0;
	if (ret == 0)
		id->state = RCM_ADDR_RESOLVED;
	rcm_event_post(id, ret == 0 ? RCM_ADDR_RESOLVED_EVENT : RCM_ADDR_ERROR_EVENT, ret);
	return 0;
}

int
rcm_resolve_ip(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_resolve_ip *in = &cmd->in.resolve_ip;
	struct rcm_addr src = {0}, dst;
	int ret = 0;

	if (in->src_addr.sin6_family != 0)
		ret = rcm_addr_of(&in->src_addr, sizeof(in->src_addr), &src);
	if (ret == 0)
		ret = rcm_addr_of(&in->dst_addr, sizeof(in->dst_addr), &dst);
	return ret != 0 ? ret : resolve(cmd, in->id, &src, &dst);
}

int
rcm_resolve_addr(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_resolve_addr *in = &cmd->in.resolve_addr;
	struct rcm_addr src = {0}, dst;
	int ret = 0;

	if (in->reserved != 0 || in->src_size > sizeof(in->src_addr) ||
			in->dst_size > sizeof(in->dst_addr))
		return -EINVAL;
	if (in->src_size != 0)
		ret = rcm_addr_of(&in->src_addr, in->src_size, &src);
	if (ret == 0)
		ret = rcm_addr_of(&in->dst_addr, in->dst_size, &dst);
	return ret != 0 ? ret : resolve(cmd, in->id, &src, &dst);
}

/* RoCE derives the route from the address, without a query to a subnet manager. */
int
rcm_resolve_route(const struct rcm_cmd *cmd)
{
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, cmd->in.resolve_route.id, &ret);
	if (id == NULL)
		return ret;
	if (id->state != RCM_ADDR_RESOLVED || id->fault.type != 0)
		return -EINVAL;
	if (rcm_chaos_hit(id, RMEM_RDMA_CM_RESOLVE_ROUTE))
		return 0;
	id->state = RCM_ROUTE_RESOLVED;
	rcm_event_post(id, RCM_ROUTE_RESOLVED_EVENT, 0);
	return 0;
}
