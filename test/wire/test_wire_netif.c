/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Messages of the kernel about the interface of a device; the cases send them. */

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <net/if.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <rmem_driver.h>

#include "../../drivers/soft/wire/rwire.h"

#include "../test.h"

#define LOWER_UP (1u << 16) /* IFF_LOWER_UP of <linux/if.h> */
#define GROUP    1
#define NB_MANY  64 /* more than a socket holds */

static struct rmem_dev *dev;
static struct rwire *wire;
static int sender;

/* A message of the interface, of a family of addresses. */
static void
send_link(uint16_t type, uint8_t family, uint32_t flags)
{
	struct {
		struct nlmsghdr msg;
		struct ifinfomsg link;
	} link = {.msg = {.nlmsg_len = sizeof(link), .nlmsg_type = type},
			.link = {.ifi_family = family,
					.ifi_index = (int)wire->netif[0].ifindex,
					.ifi_flags = flags}};
	const struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = GROUP};

	/* The receiver may be full. */
	(void)sendto(sender, &link, sizeof(link), 0, (const struct sockaddr *)&to, sizeof(to));
}

/* Connect the device to the sender instead of the kernel; false: not permitted. */
static bool
replace_kernel(void)
{
	const struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = GROUP};
	int size = 1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);

	if (fd < 0)
		return false;
	if (wire->netif[0].fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
		close(fd);
		return false;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	close(wire->netif[0].fd);
	wire->netif[0].fd = fd;
	return true;
}

static bool
is_active(void)
{
	struct rmem_port_attr port;

	return rmem_dev_port_query(dev, 1, &port) == 0 && port.state == RMEM_PORT_ACTIVE;
}

TEST(wire_netif, link_that_leaves_a_bridge_stays_up)
{
	TEST_ASSERT(is_active());
	TEST_SKIP_IF(!replace_kernel(), "not permitted");
	send_link(RTM_NEWLINK, AF_UNSPEC, 0);
	TEST_ASSERT(!is_active());
	send_link(RTM_NEWLINK, AF_UNSPEC, IFF_UP | LOWER_UP);
	TEST_ASSERT(is_active());
	send_link(RTM_DELLINK, AF_BRIDGE, IFF_UP | LOWER_UP);
	TEST_ASSERT(is_active());
}

/* Lost messages are later than those that are read: the interface is up. */
TEST(wire_netif, state_after_lost_messages_is_that_of_the_interface)
{
	unsigned int i;

	TEST_ASSERT(is_active());
	TEST_SKIP_IF(!replace_kernel(), "not permitted");
	for (i = 0; i < NB_MANY; i++)
		send_link(RTM_NEWLINK, AF_UNSPEC, 0);
	TEST_ASSERT(is_active());
}

/* The address of the device is refreshed. */
static void
send_addr(void)
{
	struct {
		struct nlmsghdr msg;
		struct ifaddrmsg ifa;
		struct rtattr attr;
		uint8_t addr[4];
	} addr = {.msg = {.nlmsg_len = sizeof(addr), .nlmsg_type = RTM_NEWADDR},
			.ifa = {.ifa_family = AF_INET},
			.attr = {.rta_len = RTA_LENGTH(4), .rta_type = IFA_LOCAL},
			.addr = {127, 0, 7, 9}};
	const struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = GROUP};

	(void)sendto(sender, &addr, sizeof(addr), 0, (const struct sockaddr *)&to, sizeof(to));
}

TEST(wire_netif, gid_remains_without_descriptors)
{
	struct rmem_gid_entry entry;
	struct rlimit limit, none;
	int ret;

	TEST_OK(rmem_dev_gid_query(dev, 1, 0, &entry));
	TEST_SKIP_IF(!replace_kernel(), "not permitted");
	send_addr();
	TEST_OK(getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	TEST_OK(setrlimit(RLIMIT_NOFILE, &none));
	ret = rmem_dev_gid_query(dev, 1, 0, &entry);
	TEST_OK(setrlimit(RLIMIT_NOFILE, &limit));
	TEST_OK(ret);
}

/* In a network namespace of its own: the ret of a query of the GID, 1 if that is not permitted. */
static void *
query_in_namespace(void *arg)
{
	struct rmem_gid_entry entry;
	int *ret = arg;

	*ret = 1;
	if (unshare(CLONE_NEWNET) != 0)
		return NULL;
	send_addr();
	*ret = rmem_dev_gid_query(dev, 1, 0, &entry);
	return NULL;
}

TEST(wire_netif, gid_remains_in_a_thread_of_another_namespace)
{
	struct rmem_gid_entry entry;
	pthread_t thread;
	int ret = 0;

	TEST_OK(rmem_dev_gid_query(dev, 1, 0, &entry));
	TEST_SKIP_IF(!replace_kernel(), "not permitted");
	TEST_OK(pthread_create(&thread, NULL, query_in_namespace, &ret));
	TEST_OK(pthread_join(thread, NULL));
	TEST_SKIP_IF(ret == 1, "not permitted");
	TEST_OK(ret);
	TEST_OK(rmem_dev_gid_query(dev, 1, 0, &entry));
}

static void
setup(void)
{
	TEST_OK(rmem_dev_create("soft0", "ip=127.0.7.9,progress=poll", &dev));
	wire = ((struct rsoft_dev *)rmem_dev_drv(dev)->priv)->wire;
	sender = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
}

static void
teardown(void)
{
	close(sender);
	TEST_OK(rmem_dev_close(dev));
}

TEST_SUITE(wire_netif, setup, teardown);
