/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Between two hosts: the report that ends a pair, and tests of the connection.
 *
 * The report is the last operation of the connecting host: errors at the other one after it are
 * ignored. The test is an RDMA WRITE of no bytes, which needs no key: an unreachable peer does not
 * acknowledge it.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "remote.h"

/* wr_ids that no other request has. */
#define PROBE_ID   UINT64_MAX
#define EXECUTE_ID (UINT64_MAX - 1)

#define EXECUTE_SECONDS 10
#define PROBE_SECONDS   10

int
testrmem_remote_make(struct testrmem_pair *pair)
{
	struct testrmem_remote *remote = testrmem_alloc(1, sizeof(*remote));
	int ret;

	pair->remote = remote;
	if (remote == NULL)
		return -ENOMEM;
	remote->report = testrmem_alloc(1, sizeof(*remote->report));
	if (remote->report == NULL)
		return -ENOMEM;
	ret = rmem_mr_reg(pair->dev->pd, remote->report, sizeof(*remote->report), 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE, &remote->mr);
	if (ret != 0)
		testrmem_err("cannot register a report on '%s': %s", pair->dev->spec,
				rte_strerror(-ret));
	return ret;
}

void
testrmem_remote_free(struct testrmem_pair *pair)
{
	struct testrmem_remote *remote = pair->remote;

	if (remote == NULL)
		return;
	if (rmem_mr_dereg(remote->mr) != 0)
		testrmem_err("a report on '%s' is still in use", pair->dev->spec);
	rte_free(remote->report);
	rte_free(remote);
	pair->remote = NULL;
}

static bool
has_report(const struct testrmem_remote *remote)
{
	return __atomic_load_n(&remote->report->magic, __ATOMIC_ACQUIRE) ==
			rte_cpu_to_be_32(REMOTE_REPORT);
}

static struct rmem_qp *
qp_of(const struct testrmem_pair *pair)
{
	return pair->qp_a != NULL ? pair->qp_a : pair->qp_b;
}

/*
 * An error after the report. The QP remains until the connecting host ends the connection, since it
 * may not have received the answer to its last request, but no longer than for a probe.
 */
static void
remote_fail(struct testrmem_remote *remote)
{
	if (remote->is_probing)
		return;
	remote->is_probing = true;
	remote->probe_tsc = rte_rdtsc() + PROBE_SECONDS * rte_get_tsc_hz();
}

int
testrmem_remote_poll(
		struct testrmem_pair *pair, struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb)
{
	struct testrmem_remote *remote = pair->remote;
	int i, n, nb_kept = 0;

	n = rmem_poll_cq(cq, wc, nb);
	if (likely(remote == NULL))
		return n;
	for (i = 0; i < n; i++) {
		if (wc[i].status != RMEM_WC_SUCCESS && pair->qp_b != NULL && has_report(remote)) {
			remote_fail(remote);
			continue;
		}
		if (wc[i].wr_id == PROBE_ID) {
			remote->is_probing = false;
			remote->probe_tsc = rte_rdtsc() + rte_get_tsc_hz();
			if (wc[i].status == RMEM_WC_SUCCESS)
				continue;
		}
		wc[nb_kept++] = wc[i];
	}
	return n < 0 ? n : nb_kept;
}

int
testrmem_remote_execute(struct testrmem_pair *pair, struct rmem_send_wr *wr)
{
	uint64_t end = rte_rdtsc() + EXECUTE_SECONDS * rte_get_tsc_hz();
	struct rmem_wc wc;
	int ret;

	wr->wr_id = EXECUTE_ID;
	wr->flags |= RMEM_SEND_SIGNALED;
	ret = rmem_post_send(pair->qp_a, wr, 1);
	if (ret != 1)
		return testrmem_pair_refused(pair, "post", ret);
	do {
		ret = rmem_poll_cq(pair->cq_a, &wc, 1);
		if (ret < 0)
			return testrmem_pair_refused(pair, "poll", ret);
		if (ret == 1 && wc.wr_id == EXECUTE_ID)
			return wc.status;
	} while (rte_rdtsc() < end);
	return testrmem_pair_refused(pair, "wait for a request", -ETIMEDOUT);
}

int
testrmem_remote_probe(struct testrmem_pair *pair)
{
	struct rmem_send_wr wr = {.wr_id = PROBE_ID,
			.opcode = RMEM_WR_RDMA_WRITE,
			.flags = RMEM_SEND_SIGNALED};
	struct testrmem_remote *remote = pair->remote;
	uint64_t now = rte_rdtsc();
	int ret;

	if (now < remote->probe_tsc)
		return 0;
	if (remote->is_probing)
		return testrmem_pair_refused(pair, "no answer of the other host", -ETIMEDOUT);
	ret = rmem_post_send(qp_of(pair), &wr, 1);
	if (ret != 1)
		return testrmem_pair_refused(pair, "post", ret);
	remote->is_probing = true;
	remote->probe_tsc = now + PROBE_SECONDS * rte_get_tsc_hz();
	return 0;
}

int
testrmem_remote_report(struct testrmem_pair *pair)
{
	const struct testrmem_worker *worker = pair->worker;
	struct testrmem_remote *remote = pair->remote;
	uint64_t cycles_per_us = RTE_MAX(rte_get_tsc_hz() / 1000000, UINT64_C(1));
	struct rmem_sge sge = {.addr = remote->mr->iova,
			.length = sizeof(*remote->report),
			.lkey = remote->mr->lkey};
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
	int ret;

	remote->report->ops = rte_cpu_to_be_64(pair->completed);
	remote->report->bytes = rte_cpu_to_be_64(pair->completed * pair->size);
	remote->report->us =
			rte_cpu_to_be_64((worker->end_tsc - worker->start_tsc) / cycles_per_us);
	remote->report->magic = rte_cpu_to_be_32(REMOTE_REPORT);
	wr.rdma.remote_addr = remote->peer.addr;
	wr.rdma.rkey = remote->peer.rkey;
	ret = testrmem_remote_execute(pair, &wr);
	if (ret <= 0)
		return ret;
	testrmem_fail(worker->session, "QP pair %" PRIu32 ": WRITE of the report failed: %s",
			pair->id, rmem_wc_status_str(ret));
	return -EIO;
}

uint64_t
testrmem_remote_ops(const struct testrmem_pair *pair)
{
	return has_report(pair->remote) ? rte_be_to_cpu_64(pair->remote->report->ops) : UINT64_MAX;
}

void
testrmem_remote_ended(struct testrmem_pair *pair)
{
	const struct remote_report *report = pair->remote->report;
	struct testrmem_worker *worker = pair->worker;

	if (pair->is_done)
		return;
	pair->is_done = true;
	if (!(worker->session->engine->flags & ENGINE_PEER_COUNTED) || !has_report(pair->remote))
		return;
	pair->completed = rte_be_to_cpu_64(report->ops);
	testrmem_count(&worker->cnt.ops, pair->completed);
	testrmem_count(&worker->cnt.bytes, rte_be_to_cpu_64(report->bytes));
	worker->peer_us = RTE_MAX(worker->peer_us, rte_be_to_cpu_64(report->us));
}

int
testrmem_remote_check(struct testrmem_pair *pair)
{
	struct testrmem_session *session = pair->worker->session;
	uint64_t ops = testrmem_remote_ops(pair);

	if (ops == pair->completed)
		return 0;
	testrmem_count(&pair->worker->cnt.errors, 1);
	if (ops == UINT64_MAX)
		testrmem_fail(session,
				"QP pair %" PRIu32
				": the other host ended without a report: it failed, "
				"or this one was stopped before",
				pair->id);
	else
		testrmem_fail(session,
				"QP pair %" PRIu32 ": %" PRIu64 " operations here, %" PRIu64
				" on the other host",
				pair->id, pair->completed, ops);
	return -EIO;
}
