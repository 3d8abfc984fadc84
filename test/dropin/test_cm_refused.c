/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Refused commands of rdma_cm have an errno and a line in the log. */

#include <infiniband/verbs.h>

#include "cm_cmd.h"
#include "log.h"

/* Connect to an address without a device. */
static uint32_t
request_to_nobody(int fd)
{
	struct rdma_ucm_resolve_route route = {.timeout_ms = 60000};
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	route.id = id;
	HOLDS(cm_resolve_addr(fd, id, "127.0.16.77", 7) == 0);
	HOLDS(cm_expect(fd, ADDR_RESOLVED).status == 0);
	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0) == 0);
	HOLDS(cm_expect(fd, ROUTE_RESOLVED).status == 0);
	HOLDS(cm_connect(fd, id, &param) == 0);
	return id;
}

int
main(void)
{
	struct rdma_ucm_join_mcast join = {.uid = 1};
	int out, fd;
	uint32_t id, silent;

	HOLDS(setenv("RMEM_IBV", "soft0,ip=127.0.16.12", 1) == 0);
	HOLDS(setenv("RMEM_IBV_LOG", "error", 1) == 0);
	out = log_begin();
	fd = cm_open();
	silent = request_to_nobody(fd);
	id = cm_create(fd, RDMA_PS_UDP);
	/* From a loopback address there is no route. */
	HOLDS(cm_resolve_addr(fd, id, "203.0.113.9", 7) == 0);
	HOLDS((int)cm_expect(fd, ADDR_ERROR).status == -EHOSTUNREACH);
	HOLDS(strstr(log_text(), "refused") == NULL);
	join.id = id;
	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &join, sizeof(join), 8) == EINVAL);
	HOLDS(strstr(log_text(), "rdma_cm: JOIN_MCAST (command 22) refused: ") != NULL);
	HOLDS(cm_run(fd, 99, &join, 8, 0) == ENOSYS);
	HOLDS(strstr(log_text(), "rdma_cm: unknown (command 99) refused: ") != NULL);
	HOLDS(cm_destroy(fd, id) == 1);
	/* After 17 s. */
	HOLDS((int)cm_expect(fd, UNREACHABLE).status == -ETIMEDOUT);
	HOLDS(strstr(log_text(), "rdma_cm: peer 127.0.16.77, port 7: no answer") != NULL);
	HOLDS(cm_destroy(fd, silent) == 3 && close(fd) == 0);
	log_end(out);
	return 0;
}
