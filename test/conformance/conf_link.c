/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Events of the port: its network interface is set down and up, and its address removed and added,
 * which needs the environment variable RMEM_TEST_LINK with the name of the interface, and root.
 */

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <rte_cycles.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_ASYNC_EVENT

static struct {
	const char *interface; /* NULL: the cases are skipped */
	struct rmem_async_channel *channel;
	uint32_t port_num;
	uint8_t gid[16]; /* of the QPs */
	char addr[64];   /* of the GID, with its prefix */
} li;

/* Run ip(8). */
static int
ip(const char *args)
{
	char command[256];

	snprintf(command, sizeof(command), "ip %s dev %s", args, li.interface);
	return system(command);
}

static int
ip_addr(const char *verb)
{
	char args[128];

	snprintf(args, sizeof(args), "addr %s %s", verb, li.addr);
	return ip(args);
}

/* The index of the GID in the table, -ENOENT, or another error. */
static int
find_gid(struct rmem_gid_entry *entry)
{
	struct rmem_port_attr port;
	uint32_t i;
	int ret;

	ret = rmem_dev_port_query(conf.dev, li.port_num, &port);
	for (i = 0; ret == 0 && i < port.gid_tbl_len; i++) {
		ret = rmem_dev_gid_query(conf.dev, li.port_num, i, entry);
		if (ret == 0 && memcmp(entry->gid, li.gid, sizeof(li.gid)) == 0)
			return (int)i;
		if (ret == -ENOENT)
			ret = 0;
	}
	return ret != 0 ? ret : -ENOENT;
}

/* The address and the prefix that the interface has for the GID; false: not of IPv4. */
static bool
find_addr(const char *interface)
{
	struct ifaddrs *list, *ifa;
	bool is_found = false;

	if (getifaddrs(&list) != 0)
		return false;
	for (ifa = list; ifa != NULL && !is_found; ifa = ifa->ifa_next) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(void *)ifa->ifa_addr;
		const struct sockaddr_in *mask =
				(const struct sockaddr_in *)(void *)ifa->ifa_netmask;

		if (in == NULL || in->sin_family != AF_INET || mask == NULL ||
				memcmp(&in->sin_addr, li.gid + 12, 4) != 0 ||
				strcmp(ifa->ifa_name, interface) != 0)
			continue;
		snprintf(li.addr, sizeof(li.addr), "%u.%u.%u.%u/%d", li.gid[12], li.gid[13],
				li.gid[14], li.gid[15], __builtin_popcount(mask->sin_addr.s_addr));
		is_found = true;
	}
	freeifaddrs(list);
	return is_found;
}

static void
setup(void)
{
	const char *interface = getenv("RMEM_TEST_LINK");
	struct rmem_gid_entry entry = {.ifindex = 0};
	struct rmem_qp_attr attr;
	char name[IF_NAMESIZE];

	memset(&li, 0, sizeof(li));
	conf_setup();
	if ((conf.info.capa & CAPA) == 0 || interface == NULL)
		return;
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	li.port_num = attr.port_num;
	memcpy(li.gid, attr.addr.gid, sizeof(li.gid));
	TEST_ASSERT(find_gid(&entry) >= 0);
	if (if_indextoname(entry.ifindex, name) == NULL || strcmp(name, interface) != 0)
		return;
	li.interface = interface;
	TEST_ASSERT(find_addr(interface));
	li.channel = fx_async_channel(fx.a.dev);
}

/* Wait for an event of the port; the kernel may report others before. */
static void
expect_event(uint32_t type)
{
	struct pollfd fd = {.fd = li.channel->fd, .events = POLLIN};
	struct rmem_async_event event;

	do {
		TEST_EQ(poll(&fd, 1, 300000), 1);
		TEST_OK(rmem_async_channel_get_event(li.channel, &event));
		TEST_EQ(event.port_num, li.port_num);
		TEST_ASSERT(event.dev == conf.dev);
		TEST_OK(rmem_async_event_ack(&event));
	} while (event.type != type);
}

static bool
is_active(void)
{
	struct rmem_port_attr port;

	return rmem_dev_port_query(conf.dev, li.port_num, &port) == 0 &&
			port.state == RMEM_PORT_ACTIVE;
}

static bool
has_gid(void)
{
	struct rmem_gid_entry entry;

	return find_gid(&entry) >= 0;
}

/* The kernel may change the attribute a little after the event. */
static void
expect_attr(bool (*has)(void), bool is_expected)
{
	const uint64_t end = rte_get_tsc_cycles() + 300 * rte_get_tsc_hz();

	while (has() != is_expected)
		TEST_ASSERT(rte_get_tsc_cycles() < end);
}

CONF_TEST(link, interface_that_is_down_is_an_event_of_the_port, CAPA, 0,
		"IBTA 11.6.3.4: Port Error, Port Active; ibv_query_port(3)")
{
	TEST_SKIP_IF(li.interface == NULL, "RMEM_TEST_LINK is not the interface of the device");
	expect_attr(is_active, true);
	TEST_OK(ip("link set down"));
	expect_event(RMEM_ASYNC_PORT_ERR);
	expect_attr(is_active, false);
	TEST_OK(ip("link set up"));
	expect_event(RMEM_ASYNC_PORT_ACTIVE);
	expect_attr(is_active, true);
}

CONF_TEST(link, address_that_is_removed_changes_the_gid_table, CAPA, 0,
		"IBTA A17: GIDs are addresses; ibv_get_async_event(3): IBV_EVENT_GID_CHANGE")
{
	TEST_SKIP_IF(li.interface == NULL, "RMEM_TEST_LINK is not the interface of the device");
	expect_attr(has_gid, true);
	TEST_OK(ip_addr("del"));
	expect_event(RMEM_ASYNC_GID_CHANGE);
	expect_attr(has_gid, false);
	TEST_OK(ip_addr("add"));
	expect_event(RMEM_ASYNC_GID_CHANGE);
	expect_attr(has_gid, true);
}

TEST_SUITE(link, setup, conf_teardown);
