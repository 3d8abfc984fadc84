/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* In place of remote.c where librdmacm is not installed. */

#include <errno.h>

#include "remote.h"

int
testrmem_remote_open(struct testrmem_session *session)
{
	RTE_SET_USED(session);
	testrmem_err("built without librdmacm: there is no --listen and no --connect");
	return -EOPNOTSUPP;
}

void
testrmem_remote_close(struct testrmem_session *session)
{
	RTE_SET_USED(session);
}

int
testrmem_remote_connect(struct testrmem_pair *pair, struct testrmem_session *session)
{
	RTE_SET_USED(pair);
	RTE_SET_USED(session);
	return -EOPNOTSUPP;
}

void
testrmem_remote_disconnect(struct testrmem_pair *pair)
{
	RTE_SET_USED(pair);
}

int
testrmem_remote_watch(struct testrmem_pair *pair)
{
	RTE_SET_USED(pair);
	return 0;
}
