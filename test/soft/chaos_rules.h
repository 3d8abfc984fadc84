/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Devices with rules of chaos=. */

#ifndef CHAOS_RULES_H
#define CHAOS_RULES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"

/* The device of fx.a, with the arguments of the run: an engine or the wire. */
static inline void
chaos_open(const char *rules)
{
	const char *more = getenv("RMEM_TEST_ARGS");
	char args[512];

	snprintf(args, sizeof(args), "chaos=%s%s%s", rules, more != NULL ? "," : "",
			more != NULL ? more : "");
	fx.a.dev = fx_dev("soft0", args);
	TEST_ASSERT(fx.a.dev != NULL);
}

/* The same, with two connected sides: a has the first CQ and QP, b the second. */
static inline void
chaos_sides_open(const char *rules)
{
	chaos_open(rules);
	fx_sides_open(fx.a.dev);
}

/* A second pair of QPs, connected, with the CQs of a and of b. */
static inline void
chaos_pair(struct rmem_qp **qp, struct rmem_qp **peer)
{
	*qp = fx_qp(fx.a.pd, fx.a.cq, 8);
	*peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	TEST_ASSERT(*qp != NULL && *peer != NULL);
	TEST_OK(fx_connect_pair(*qp, *peer));
}

/* Number of polls without a completion, before the one with that number. */
static inline unsigned int
chaos_polls_before(struct rmem_cq *cq, uint64_t wr_id)
{
	uint64_t deadline = fx_deadline();
	unsigned int nb_empty = 0;
	struct rmem_wc wc;
	int ret;

	while ((ret = rmem_poll_cq(cq, &wc, 1)) == 0 && !fx_is_late(deadline))
		nb_empty++;
	TEST_EQ(ret, 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, wr_id);
	return nb_empty;
}

/* A signaled WRITE of a QP. */
static inline void
chaos_write(struct rmem_qp *qp, uint64_t wr_id)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.b.buf + 64, fx.b.mr->rkey);

	wr.wr_id = wr_id;
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(qp, &wr), 1);
}

/* SEND to a QP, whose receive then has completed. */
static inline void
chaos_send(struct rmem_qp *qp, struct rmem_qp *peer, uint64_t wr_id)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	TEST_EQ(fx_post_recv(peer, wr_id, NULL, 0), 1);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
}

/* Rules of which the events that fail are counted as bits, some of them: the log replays them. */
static inline void
chaos_expect_replay(uint64_t (*failures_of)(const char *rules), const char *rules)
{
	char path[] = "/tmp/rmem-chaos.XXXXXX", args[160];
	int fd = mkstemp(path);
	uint64_t first;

	TEST_ASSERT(fd >= 0);
	close(fd);
	snprintf(args, sizeof(args), "%s+log:%s", rules, path);
	first = failures_of(args);
	snprintf(args, sizeof(args), "replay:%s", path);
	TEST_ASSERT(first != 0);
	TEST_EQ(failures_of(args), first);
	unlink(path);
}

/* Rules, each with a text of the line that refuses it. */
static inline void
chaos_expect_illegal(const char *const bad[][2], unsigned int n)
{
	struct rmem_dev *dev;
	unsigned int i;
	char args[96];

	for (i = 0; i < n; i++) {
		snprintf(args, sizeof(args), "chaos=%s", bad[i][0]);
		FX_ERR_LOG(rmem_dev_create("soft0", args, &dev), EINVAL, bad[i][1]);
	}
}

#endif /* CHAOS_RULES_H */
