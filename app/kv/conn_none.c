/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* In place of conn_cm.c where librdmacm is not installed: client and server share a process. */

#include "kv.h"

static int
refuse(void)
{
	KV_ERR("%s", "built without librdmacm: there is no --listen and no --connect");
	return -EOPNOTSUPP;
}

int
kv_cm_connect(const struct kv_conf *conf, struct kv_conn *conn, struct rmem_qp *qp)
{
	RTE_SET_USED(conf);
	RTE_SET_USED(conn);
	RTE_SET_USED(qp);
	return refuse();
}

bool
kv_cm_is_up(struct kv_conn *conn)
{
	RTE_SET_USED(conn);
	return false;
}

void
kv_cm_close(struct kv_conn *conn)
{
	RTE_SET_USED(conn);
}

int
kv_listen(const struct kv_conf *conf, struct kv_conn *conns, uint32_t nb_conns,
		struct kv_listener **listener)
{
	RTE_SET_USED(conf);
	RTE_SET_USED(conns);
	RTE_SET_USED(nb_conns);
	RTE_SET_USED(listener);
	return refuse();
}

int
kv_unlisten(struct kv_listener *listener)
{
	RTE_SET_USED(listener);
	return 0;
}
