/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Messages to the primary that the library does not send; see mp.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#include "../../lib/rmem/rmem_mp_priv.h"
#include "mp.h"
#include "test.h"

#define TIMEOUT_S 600

/* Send the first bytes of a request: rmem_mp's answer, or -EIO without one. */
static int
send_request(const struct mp_req *req, size_t length)
{
	const struct timespec timeout = {.tv_sec = TIMEOUT_S};
	struct rte_mp_msg msg = {.name = MP_ACTION, .len_param = (int)length};
	struct rte_mp_reply replies;
	struct mp_rep rep;
	int ret = -EIO;

	memcpy(msg.param, req, length);
	if (rte_mp_request_sync(&msg, &replies, &timeout) != 0)
		return ret;
	if (replies.nb_received == 1 && replies.msgs[0].len_param == sizeof(rep)) {
		memcpy(&rep, replies.msgs[0].param, sizeof(rep));
		ret = rep.ret;
	}
	free(replies.msgs);
	return ret;
}

#define EXPECT(field, value, error)                                                                \
	do {                                                                                       \
		struct mp_req wrong = req;                                                         \
		wrong.field = value;                                                               \
		TEST_ERR(send_request(&wrong, sizeof(wrong)), error);                              \
	} while (0)

void
mp_send_wrong(const struct mp_shared *sh)
{
	struct mp_req req = {.version = RMEM_VERSION,
			.op = MP_LOOKUP,
			.type = RMEM_OBJ_QP,
			.dev_id = sh->qp->obj.dev_id,
			.obj = sh->qp,
			.name = MP_QP};

	req.id.pid = getpid();
	req.id.start = rmem_mp_start_time(getpid());
	TEST_OK(send_request(&req, sizeof(req)));
	TEST_ERR(send_request(&req, 0), EPROTO);
	TEST_ERR(send_request(&req, sizeof(req) - 1), EPROTO);
	EXPECT(version, RMEM_VERSION + 1, EPROTO);
	EXPECT(op, 0, EINVAL);
	EXPECT(op, MP_LOOKUP + 1, EINVAL);
	EXPECT(type, 0xff, EINVAL);
	EXPECT(type, RMEM_OBJ_CQ, EINVAL);
	EXPECT(dev_id, RMEM_MAX_DEVS, EINVAL);
	EXPECT(dev_id, UINT32_MAX, EINVAL);
	EXPECT(id.pid, 1, EINVAL);
	EXPECT(id.pid, -1, EINVAL);
	EXPECT(id.start, 0, EINVAL);
	req.id.pid = 0;
	EXPECT(id.start, 0, EINVAL);
	req.op = MP_ATTACH;
	snprintf(req.name, sizeof(req.name), "%s", MP_DEV);
	EXPECT(id.start, 0, ESRCH);
	EXPECT(id.pid, -1, ESRCH);
	req.id.pid = getpid();
	EXPECT(id.start, 0, ESRCH);
	req.op = MP_LOOKUP;
	memset(req.name, 'x', sizeof(req.name));
	TEST_ERR(send_request(&req, sizeof(req)), ENOENT);
	req.op = MP_CLAIM;
	EXPECT(obj, NULL, EINVAL);
	EXPECT(obj, (void *)(uintptr_t)1, EINVAL);
	EXPECT(obj, sh->mr, EINVAL);
}

/* As with answers that are late: the primary has done what was requested. */
void
mp_lose_answers(const struct mp_shared *sh)
{
	struct mp_req req = {.version = RMEM_VERSION,
			.op = MP_ATTACH,
			.dev_id = sh->qp->obj.dev_id,
			.name = MP_DEV};
	struct rmem_dev *dev;
	void *buf;

	req.id.pid = getpid();
	req.id.start = rmem_mp_start_time(getpid());
	TEST_OK(send_request(&req, sizeof(req)));
	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_OK(rte_mempool_get(sh->pool->mp, &buf));
	req.op = MP_DETACH;
	TEST_OK(send_request(&req, sizeof(req)));
	TEST_ERR(rmem_dev_detach(dev), EINVAL);
	TEST_EQ(rmem_process_number(), 0);
	TEST_ASSERT(rmem_dev_get_by_name(MP_DEV) == NULL);
	TEST_ERR(rte_mempool_get(sh->pool->mp, &buf), EOPNOTSUPP);
	TEST_OK(rmem_dev_attach(MP_DEV, &dev));
	TEST_OK(rmem_dev_detach(dev));
}

void
mp_attach_again(struct mp_shared *sh)
{
	struct mp_req req = {.version = RMEM_VERSION, .op = MP_ATTACH, .name = MP_DEV2};
	struct rmem_dev *dev;

	RTE_SET_USED(sh);
	req.id.pid = getpid();
	req.id.start = rmem_mp_start_time(getpid());
	TEST_OK(rmem_dev_attach(MP_DEV2, &dev));
	TEST_OK(send_request(&req, sizeof(req)));
	TEST_OK(rmem_dev_detach(dev));
}
