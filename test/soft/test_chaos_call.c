/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Rules of chaos= that let calls fail: with a legal errno, without an effect, once. */

#include "chaos_rules.h"
#include "rmem/object.h"

static void
open_sides(const char *rules)
{
	chaos_open(rules);
	fx_sides_open(fx.a.dev);
}

static const struct creation {
	const char *call;
	int (*create)(void *parent, void **object);
	bool is_of_dev;
	unsigned int before; /* calls of open_sides() */
} creations[] = {
		{"pd_alloc", object_make_pd, true, 1},
		{"mr_reg", object_make_mr, false, 2},
		{"fast_reg_mr_alloc", object_make_fast_mr, false, 0},
		{"mkey_alloc", object_make_mkey, false, 0},
		{"mw_alloc", object_make_mw, false, 0},
		{"cq_create", object_make_cq, true, 2},
		{"qp_create", object_make_qp, false, 2},
		{"srq_create", object_make_srq, false, 0},
};

/* The second creation after those of open_sides() fails. */
static void
expect_failure(const struct creation *row, const char *errno_name, int error)
{
	void *object = NULL, *parent;
	char rules[64];

	snprintf(rules, sizeof(rules), "%s:%s@nth:%u", row->call, errno_name, row->before + 2);
	open_sides(rules);
	parent = row->is_of_dev ? (void *)fx.a.dev : (void *)fx.a.pd;
	TEST_OK(row->create(parent, &object));
	fx_track(object);
	object = NULL;
	TEST_ERR(row->create(parent, &object), error);
	TEST_ASSERT(object == NULL);
	TEST_OK(row->create(parent, &object));
	fx_track(object);
	fx_teardown();
	fx_setup_none();
}

/* IBTA 11.2: insufficient resources. */
TEST(chaos_call, creation_fails_once_and_leaves_nothing)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(creations); i++) {
		expect_failure(&creations[i], "ENOMEM", ENOMEM);
		expect_failure(&creations[i], "EAGAIN", EAGAIN);
	}
}

TEST(chaos_call, change_of_an_object_fails_without_an_effect)
{
	const struct rmem_srq_attr attr = {.srq_limit = 1};
	enum rmem_rereg_result result;
	struct rmem_mr_info info;
	uint32_t nb_cqe;
	void *srq;

	open_sides("cq_resize:EAGAIN@nth:1+srq_modify:ENOMEM@nth:1+mr_rereg:ENOMEM@nth:1");
	nb_cqe = fx.a.cq->nb_cqe;
	TEST_ERR(rmem_cq_resize(fx.a.cq, 2 * nb_cqe), EAGAIN);
	TEST_EQ(fx.a.cq->nb_cqe, nb_cqe);
	TEST_OK(rmem_cq_resize(fx.a.cq, 2 * nb_cqe));
	TEST_OK(object_make_srq(fx.a.pd, &srq));
	fx_track(srq);
	TEST_ERR(rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT), ENOMEM);
	TEST_OK(rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT));
	TEST_ERR(rmem_mr_rereg(fx.a.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result),
			ENOMEM);
	info = fx_query(fx.a.mr);
	TEST_EQ(info.access, FX_ACCESS);
}

/* A QP stays in its state; transitions to RESET always succeed. */
TEST(chaos_call, transition_fails_and_is_repeated)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1};
	const uint32_t mask =
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS;

	open_sides("qp_modify:ENOMEM@qp:1@every:2");
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), ENOMEM);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RESET);
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, mask));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_INIT);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(fx_connect(fx.a.qp, fx.b.qp), ENOMEM);
	TEST_OK(fx_connect(fx.a.qp, fx.b.qp));
}

/* The third and the fifth request: those before it are accepted, and it is not executed. */
TEST(chaos_call, post_of_a_send_is_refused)
{
	struct rmem_send_wr wr[4];
	struct rmem_sge sge;
	unsigned int i;

	open_sides("post_send:ENOMEM@qp:1@nth:3+post_send:ENOMEM@qp:1@nth:4+"
		   "RDMA_WRITE:RETRY_EXC_ERR@qp:1@nth:5");
	sge = fx_sge(fx.a.mr, 0, 8);
	for (i = 0; i < RTE_DIM(wr); i++) {
		wr[i] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
		wr[i].flags = RMEM_SEND_SIGNALED;
		wr[i].wr_id = i;
	}
	TEST_EQ(rmem_post_send(fx.a.qp, wr, RTE_DIM(wr)), 2);
	TEST_EQ(rmem_post_send(fx.a.qp, wr, RTE_DIM(wr)), -ENOSPC);
	TEST_EQ(rmem_post_send(fx.a.qp, wr, RTE_DIM(wr)), RTE_DIM(wr));
	for (i = 0; i < 4; i++)
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	/* The fifth of those accepted. */
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_RETRY_EXC_ERR);
	TEST_EQ(fx.wc.wr_id, 2);
	fx_expect_flush(fx.a.cq, 3, 1);
}

TEST(chaos_call, post_of_a_receive_is_refused)
{
	struct rmem_recv_wr wr[4] = {{.wr_id = 1}, {.wr_id = 2}, {.wr_id = 3}, {.wr_id = 4}};
	struct rmem_send_wr send = fx_wr(RMEM_WR_SEND, NULL, 0);
	void *srq;

	open_sides("post_recv:ENOMEM@qp:2@every:3+srq_post_recv:ENOMEM@nth:2");
	TEST_EQ(rmem_post_recv(fx.b.qp, wr, 4), 2);
	TEST_EQ(rmem_post_recv(fx.b.qp, wr + 2, 2), 2);
	TEST_EQ(rmem_post_recv(fx.b.qp, wr, 1), -ENOSPC);
	TEST_EQ(rmem_post_recv(fx.a.qp, wr, 4), 4);
	fx_deliver(&fx.a, &fx.b, &send);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_OK(object_make_srq(fx.a.pd, &srq));
	fx_track(srq);
	TEST_EQ(rmem_srq_post_recv(srq, wr, 4), 1);
	TEST_EQ(rmem_srq_post_recv(srq, wr, 3), 3);
}

/* The calls of which a creation fails, as bits. */
static uint64_t
failures_of(const char *rules)
{
	uint64_t failed = 0;
	unsigned int i;
	void *object;

	chaos_open(rules);
	for (i = 0; i < 32; i++) {
		if (object_make_pd(fx.a.dev, &object) == 0)
			fx_track(object);
		else
			failed |= UINT64_C(1) << i;
	}
	fx_teardown();
	fx_setup_none();
	return failed;
}

TEST_CALL(chaos_call, log_of_calls_replays,
		chaos_expect_replay(failures_of, "pd_alloc:EAGAIN@p:0.3"));

TEST(chaos_call, illegal_errnos_are_refused)
{
	static const char *const bad[][2] = {
			{"qp_create:EINVAL", "ENOMEM, EAGAIN"},
			{"post_send:EAGAIN", "(ENOMEM; as a full queue)"},
			{"post_recv:EINVAL", "(ENOMEM; as a full queue)"},
			{"mr_reg:0", "ENOMEM, EAGAIN"},
			{"mr_reg:ENOMEM@qp:1", "is not nth:N, every:N"},
			{"mr_dereg:ENOMEM", "mr_rereg"},
	};

	chaos_expect_illegal(bad, RTE_DIM(bad));
}

/* Executed by librmem_ibv.so: test/dropin/test_cm_chaos.c. */
TEST(chaos_call, illegal_rules_of_rdma_cm_are_refused)
{
	static const char *const bad[][2] = {
			{"cm_listen:REJECT", "cm_established"},
			{"cm_accept:UNREACHABLE", "REJECT, TIMEOUT, DISCONNECTED"},
			{"cm_connect:REJECT@reason:6", "'reason:6'"},
			{"cm_connect:REJECT@reason:64", "1, 3, 5, 8, 9, 10"},
			{"cm_accept:REJECT@reason:8", "10, 28"},
			{"cm_connect:REJECT@reason:0", "from 1 on"},
			{"cm_connect:TIMEOUT@reason:28", "times:N, ms:N, N from"},
			{"cm_connect:REJECT@qp:1", "ms:N, reason:N"},
			{"cm_accept:DISCONNECTED@ms:1", "each once"},
	};

	chaos_expect_illegal(bad, RTE_DIM(bad));
}

TEST_SUITE(chaos_call, fx_setup_none, fx_teardown);
