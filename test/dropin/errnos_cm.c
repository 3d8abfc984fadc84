/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Each function of librdmacm, each way in which it fails, as test-errnos. errnos_cm.txt has the
 * lines of soft0 and of rdma_rxe.
 *
 * usage: errnos-cm DEVICE; RMEM_ADDR is an address of the device, by default 127.0.0.1.
 */

#include <arpa/inet.h>
#include <fcntl.h>

#include <rdma/rdma_cma.h>

#include "../holds.h"
#include "errnos.h"

static struct rdma_event_channel *channel;

static struct sockaddr_in
address(const char *ip, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};

	HOLDS(inet_pton(AF_INET, ip, &addr.sin_addr) == 1);
	return addr;
}

static const char *
own_ip(void)
{
	const char *ip = getenv("RMEM_ADDR");

	return ip != NULL ? ip : "127.0.0.1";
}

static struct rdma_cm_id *
create_id(void)
{
	struct rdma_cm_id *id;

	HOLDS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	return id;
}

static void
destroy_id(struct rdma_cm_id *id)
{
	HOLDS(rdma_destroy_id(id) == 0);
}

static void
creation(void)
{
	struct rdma_cm_id *id;
	struct rdma_cm_event *event;

	fails("rdma_create_id, port space 99",
			rdma_create_id(channel, &id, NULL, (enum rdma_port_space)99));
	HOLDS(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	fails("rdma_get_cm_event, none", rdma_get_cm_event(channel, &event));
}

static void
bindings(void)
{
	struct sockaddr_in own = address(own_ip(), 0), foreign = address("198.51.100.77", 0);
	struct sockaddr_in none = {.sin_family = 0};
	struct sockaddr_in taken;
	struct rdma_conn_param param = {.retry_count = 1};
	struct rdma_cm_id *id = create_id(), *other = create_id();

	fails("rdma_bind_addr, family 0", rdma_bind_addr(id, (struct sockaddr *)&none));
	fails("rdma_bind_addr, foreign", rdma_bind_addr(id, (struct sockaddr *)&foreign));
	HOLDS(rdma_bind_addr(id, (struct sockaddr *)&own) == 0);
	fails("rdma_bind_addr, twice", rdma_bind_addr(id, (struct sockaddr *)&own));
	HOLDS(rdma_listen(id, 1) == 0);
	fails("rdma_listen, twice", rdma_listen(id, 1));
	taken = address(own_ip(), ntohs(rdma_get_src_port(id)));
	fails("rdma_bind_addr, port in use", rdma_bind_addr(other, (struct sockaddr *)&taken));
	fails("rdma_resolve_addr, of a listener",
			rdma_resolve_addr(id, NULL, (struct sockaddr *)&own, 1000));
	fails("rdma_connect, of a listener", rdma_connect(id, &param));
	fails("rdma_accept, of a listener", rdma_accept(id, &param));
	fails("rdma_disconnect, of a listener", rdma_disconnect(id));
	destroy_id(id);
	destroy_id(other);
}

/* Calls before those that they need. Of an ID without an address, librdmacm crashes. */
static void
order(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct rdma_conn_param param = {.retry_count = 1};
	struct sockaddr_in own = address(own_ip(), 0), group = address("239.1.1.1", 0),
			   none = {.sin_family = 0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct rdma_cm_id *id = create_id();
	int mask;

	fails("rdma_resolve_addr, family 0",
			rdma_resolve_addr(id, NULL, (struct sockaddr *)&none, 1000));
	HOLDS(rdma_bind_addr(id, (struct sockaddr *)&own) == 0);
	fails("rdma_resolve_route, bound", rdma_resolve_route(id, 1000));
	fails("rdma_connect, bound", rdma_connect(id, &param));
	fails("rdma_accept, bound", rdma_accept(id, &param));
	fails("rdma_reject, bound", rdma_reject(id, NULL, 0));
	fails("rdma_disconnect, bound", rdma_disconnect(id));
	fails("rdma_notify, bound", rdma_notify(id, IBV_EVENT_COMM_EST));
	fails("rdma_create_qp, bound", rdma_create_qp(id, NULL, &init));
	fails("rdma_init_qp_attr, bound", rdma_init_qp_attr(id, &attr, &mask));
	fails("rdma_join_multicast, bound",
			rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	fails("rdma_leave_multicast, not joined",
			rdma_leave_multicast(id, (struct sockaddr *)&group));
	destroy_id(id);
}

static void
options(void)
{
	struct rdma_cm_id *id = create_id();
	int one = 1;

	fails("rdma_set_option, level", rdma_set_option(id, 99, 0, &one, sizeof(one)));
	fails("rdma_set_option, name", rdma_set_option(id, RDMA_OPTION_ID, 99, &one, sizeof(one)));
	fails("rdma_set_option, TOS of 2 bytes",
			rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &one, 2));
	fails("rdma_set_option, REUSEADDR of 1 byte",
			rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, 1));
	fails("rdma_set_option, AFONLY of 1 byte",
			rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, 1));
	fails("rdma_set_option, timeout of 4 bytes",
			rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &one, 4));
	fails("rdma_set_option, path of 1 byte",
			rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &one, 1));
	destroy_id(id);
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2 && argv[1] != NULL && setvbuf(stdout, NULL, _IOLBF, 0) == 0);
	channel = rdma_create_event_channel();
	HOLDS(channel != NULL);
	creation();
	bindings();
	order();
	options();
	rdma_destroy_event_channel(channel);
	return 0;
}
