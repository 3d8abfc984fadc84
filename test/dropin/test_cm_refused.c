/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Refused commands of rdma_cm have an errno and a line in the log. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "cm_cmd.h"

static int log_fd;

static const char *
log_text(void)
{
	static char text[65536];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	HOLDS(n >= 0);
	text[n] = '\0';
	return text;
}

int
main(void)
{
	struct rdma_ucm_join_mcast join = {.uid = 1};
	int out = dup(2), fd;
	uint32_t id;

	HOLDS(setenv("RMEM_IBV", "soft0,ip=127.0.16.12", 1) == 0);
	HOLDS(setenv("RMEM_IBV_LOG", "error", 1) == 0);
	log_fd = memfd_create("log", 0);
	HOLDS(out >= 0 && log_fd >= 0 && dup2(log_fd, 2) == 2);
	fd = cm_open();
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
	HOLDS(cm_destroy(fd, id) == 1 && close(fd) == 0);
	HOLDS(dup2(out, 2) == 2);
	return 0;
}
