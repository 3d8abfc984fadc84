/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Statuses of requests that must fail. They are those of IBTA 11.6.2 with the names of
 * ibv_poll_cq(3); the table also has the requests that the post may refuse.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rmem_driver.h>

#include "conf.h"

#define BIT(status) (UINT32_C(1) << (status))

static const struct {
	const char *what;
	uint32_t statuses;
	bool is_post; /* rmem_post_send() may refuse it */
} refusals[] = {
		/* "Local Protection Error": the SGE's memory is not valid for the operation. */
		[CONF_LOCAL_KEY] = {"an invalid lkey", BIT(RMEM_WC_LOC_PROT_ERR), false},
		/* "Remote Access Error": a protection error at the peer. */
		[CONF_REMOTE_KEY] = {"an invalid rkey", BIT(RMEM_WC_REM_ACCESS_ERR), false},
		/* "Remote Invalid Request": not supported by that queue. */
		[CONF_QP_RIGHT] = {"an opcode that the QP does not allow",
				BIT(RMEM_WC_REM_INV_REQ_ERR), false},
		/* The same; a driver may refuse it at the post. */
		[CONF_UNALIGNED] = {"an atomic at no multiple of 8", BIT(RMEM_WC_REM_INV_REQ_ERR),
				true},
		/* "Remote Invalid Request", and "Local Length Error" at the receiver. */
		[CONF_TOO_LONG] = {"a message too long for its receive",
				BIT(RMEM_WC_REM_INV_REQ_ERR), false},
		[CONF_RECV_LENGTH] = {"a receive too short", BIT(RMEM_WC_LOC_LEN_ERR), false},
		/* "Remote Operation Error", and "Local Protection Error" at the receiver. */
		[CONF_PEER_MEMORY] = {"a receive that names other memory", BIT(RMEM_WC_REM_OP_ERR),
				false},
		[CONF_RECV_KEY] = {"a receive with an invalid lkey", BIT(RMEM_WC_LOC_PROT_ERR),
				false},
		/* "Memory Management Operation Error", verbs' MW_BIND_ERR. */
		[CONF_BIND] = {"a binding that may not be", BIT(RMEM_WC_MW_BIND_ERR), false},
		[CONF_INVALIDATE] = {"an invalidation that may not be", BIT(RMEM_WC_MW_BIND_ERR),
				false},
		/* The message arrived; the receive fails. */
		[CONF_RECV_INV] = {"an invalidation by the peer that may not be",
				BIT(RMEM_WC_REM_INV_REQ_ERR) | BIT(RMEM_WC_MW_BIND_ERR), false},
		[CONF_NO_RECV] = {"a message without receive", BIT(RMEM_WC_RNR_RETRY_EXC_ERR),
				false},
		[CONF_NO_PEER] = {"a peer that does not answer", BIT(RMEM_WC_RETRY_EXC_ERR), false},
		[CONF_FLUSHED] = {"a request to a QP in ERR", BIT(RMEM_WC_WR_FLUSH_ERR), false},
};

static void
print_wanted(uint32_t statuses)
{
	int status;

	for (status = 0; status < 32; status++) {
		if ((statuses & BIT(status)) != 0)
			printf(" %s", rmem_wc_status_str(status));
	}
	printf("\n");
}

void
conf_status(enum conf_refusal why, int status)
{
	if (status >= 0 && (refusals[why].statuses & BIT(status)) != 0)
		return;
	if (conf_deviates_status(why, status))
		return;
	test_note("%s ended with %s; what it may end with:", refusals[why].what,
			status < 0 ? strerror(-status) : rmem_wc_status_str(status));
	print_wanted(refusals[why].statuses);
	test_stop(TEST_FAILED);
}

bool
conf_deviates_from(int status, int other, bool is_recv)
{
	unsigned int why;

	for (why = 0; status >= 0 && why < RTE_DIM(refusals); why++) {
		bool is_of_recv = why == CONF_RECV_LENGTH || why == CONF_RECV_KEY ||
				why == CONF_RECV_INV;

		if (is_of_recv == is_recv && (refusals[why].statuses & BIT(status)) != 0 &&
				conf_deviates_status((enum conf_refusal)why, other))
			return true;
	}
	return false;
}

void
conf_refused(enum conf_refusal why, struct rmem_qp *qp, const struct rmem_send_wr *wr)
{
	int status = fx_send(qp, wr);

	if (refusals[why].is_post && (status == -EINVAL || status == -EPERM)) {
		TEST_EQ(fx_state(qp), RMEM_QPS_RTS);
		return;
	}
	conf_status(why, status);
	conf_expect_err(qp);
	conf_reconnect();
}

void
conf_denied(uint64_t addr, uint32_t length, uint32_t rkey)
{
	static uint8_t before[FX_BUF_SIZE];

	memcpy(before, fx.a.buf, FX_BUF_SIZE);
	fx_fill(fx.b.buf, FX_BUF_SIZE, rkey + 1);
	conf_status(CONF_REMOTE_KEY, conf_do(RMEM_WR_RDMA_WRITE, addr, length, rkey));
	conf_expect_err(fx.b.qp);
	TEST_MEM(fx.a.buf, before, FX_BUF_SIZE);
	conf_reconnect();
}

void
conf_denied_to_all(uint64_t addr, uint32_t rkey)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM,
			RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_FETCH_AND_ADD,
			RMEM_WR_ATOMIC_WRITE};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	static uint8_t before[FX_BUF_SIZE];
	unsigned int i;

	memcpy(before, fx.a.buf, FX_BUF_SIZE);
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		const struct rmem_wr_info *info = &rmem_wr_info[opcodes[i]];
		const struct rmem_send_wr wr = conf_request(opcodes[i], &sge, addr, rkey);

		if ((info->capa & ~conf.info.capa) != 0 ||
				((info->props & RMEM_WR_WORD) != 0 && addr % 8 != 0))
			continue;
		fx_fill(fx.b.buf, 8, rkey + 1);
		TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
		conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
	}
	TEST_MEM(fx.a.buf, before, FX_BUF_SIZE);
}

void
conf_denied_locally(uint64_t addr, uint32_t lkey)
{
	const struct rmem_sge sge = {.addr = addr, .length = 8, .lkey = lkey};
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);

	conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
	wr.opcode = RMEM_WR_RDMA_READ;
	conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
}

void
conf_granted(uint64_t addr, uint32_t length, uint32_t rkey, const uint8_t *at)
{
	const size_t offset = (size_t)(at - fx.a.buf);

	memset(fx.a.buf, 0, FX_BUF_SIZE);
	fx_fill(fx.b.buf, FX_BUF_SIZE, rkey + length);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, addr, length, rkey), RMEM_WC_SUCCESS);
	TEST_MEM(at, fx.b.buf, length);
	TEST_ASSERT(fx_is_zero(fx.a.buf, offset));
	TEST_ASSERT(fx_is_zero(at + length, FX_BUF_SIZE - offset - length));
}

void
conf_denied_outside(uint64_t addr, uint32_t length, uint32_t rkey)
{
	int status = conf_do(RMEM_WR_RDMA_WRITE, addr, length, rkey);

	if (status == RMEM_WC_SUCCESS) {
		TEST_ASSERT(conf_deviates("window_bounds"));
		return;
	}
	conf_status(CONF_REMOTE_KEY, status);
	conf_reconnect();
}
