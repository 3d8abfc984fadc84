/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Properties of objects, for rmem_*_dump() and telemetry.
 */

#include <errno.h>
#include <string.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_qp_priv.h"
#include "rmem_report_priv.h"

#define COUNTER(name)                                                                              \
	{                                                                                          \
#name, offsetof(struct rmem_qp_stats, name)                                        \
	}

static const struct {
	const char *name;
	size_t offset;
} qp_counters[] = {
		COUNTER(send_wrs),
		COUNTER(recv_wrs),
		COUNTER(bytes),
		COUNTER(errors),
		COUNTER(flushed),
		COUNTER(local_prot_errors),
		COUNTER(rem_access_errors),
		COUNTER(rnr_retries),
		COUNTER(reg_mrs),
		COUNTER(invalidates),
		COUNTER(mw_binds),
		COUNTER(umrs),
		COUNTER(inline_recvs),
		COUNTER(bad_rkeys),
		COUNTER(mem_faults),
};

static const char *
word(const char *const *words, size_t nb, uint32_t value)
{
	return value < nb && words[value] != NULL ? words[value] : "unknown";
}

static void
report_limit(struct rmem_report *out, const char *name, uint64_t used, uint64_t max)
{
	struct rmem_report group;

	rmem_report_begin(out, &group, name);
	rmem_report_uint(&group, "used", used);
	rmem_report_uint(&group, "max", max);
	rmem_report_end(out, &group, name);
}

static void
report_pd(struct rmem_report *out, const struct rmem_obj *obj)
{
	rmem_report_uint(out, "handle", ((const struct rmem_pd *)obj)->handle);
}

static void
report_pd_of(struct rmem_report *out, const struct rmem_pd *pd)
{
	rmem_report_uint(out, "pd", rmem_obj_head(&pd->obj)->number);
}

static void
report_mr(struct rmem_report *out, const struct rmem_obj *obj)
{
	static const char *const types[] = {NULL, "user", "fast_reg", "indirect", "null", "dm"};
	static const char *const states[] = {"FREE", "VALID", "DISABLED", "PENDING", "ERROR"};
	const struct rmem_mr *mr = (const struct rmem_mr *)obj;
	struct rmem_mr_info info;

	report_pd_of(out, mr->pd);
	if (rmem_mr_query(mr, &info) != 0)
		return;
	rmem_report_text(out, "type", word(types, RTE_DIM(types), info.type));
	rmem_report_text(out, "state", word(states, RTE_DIM(states), info.state));
	rmem_report_bits(out, "access", info.access);
	if (info.state == RMEM_MR_STATE_PENDING || info.state == RMEM_MR_STATE_ERROR)
		return;
	rmem_report_bits(out, "lkey", info.lkey);
	rmem_report_bits(out, "rkey", info.rkey);
	rmem_report_bits(out, "addr", (uintptr_t)info.addr);
	rmem_report_bits(out, "iova", info.iova);
	rmem_report_uint(out, "length", info.length);
	rmem_report_uint(out, "page_size", info.page_size);
	rmem_report_uint(out, "max_page_list_len", info.max_page_list_len);
	rmem_report_uint(out, "max_entries", info.max_entries);
	rmem_report_uint(out, "shared", info.is_shared);
	rmem_report_uint(out, "fd", info.is_fd);
	rmem_report_uint(out, "pinned", info.is_pinned);
	if (info.type == RMEM_MR_TYPE_DM)
		rmem_report_uint(out, "dm", rmem_obj_head(rmem_mr_drv(mr)->owner)->number);
}

static void
report_dm(struct rmem_report *out, const struct rmem_obj *obj)
{
	rmem_report_uint(out, "length", ((const struct rmem_dm *)obj)->length);
}

static void
report_mw(struct rmem_report *out, const struct rmem_obj *obj)
{
	const struct rmem_mw *mw = (const struct rmem_mw *)obj;

	report_pd_of(out, mw->pd);
	rmem_report_uint(out, "type", mw->type);
	rmem_report_bits(out, "rkey", __atomic_load_n(&mw->rkey, __ATOMIC_RELAXED));
}

static void
report_cq(struct rmem_report *out, const struct rmem_obj *obj)
{
	struct rmem_cq_stats stats;

	memset(&stats, 0, sizeof(stats));
	stats.nb_cqe = ((const struct rmem_cq *)obj)->nb_cqe;
	rmem_report_uint(out, "nb_cqe", stats.nb_cqe);
	if (rmem_obj_driver(obj)->ops.cq_stats_get((struct rmem_cq *)(uintptr_t)obj, &stats) != 0)
		return;
	rmem_report_uint(out, "outstanding", stats.outstanding);
	rmem_report_uint(out, "overruns", stats.overruns);
}

static void
report_srq(struct rmem_report *out, const struct rmem_obj *obj)
{
	const struct rmem_srq *srq = (const struct rmem_srq *)obj;
	struct rmem_srq_attr attr;

	report_pd_of(out, srq->pd);
	memset(&attr, 0, sizeof(attr));
	if (rmem_obj_driver(obj)->ops.srq_query((struct rmem_srq *)(uintptr_t)srq, &attr) != 0)
		return;
	report_limit(out, "recv", attr.nb_wr, attr.max_wr);
	rmem_report_uint(out, "max_sge", attr.max_sge);
	rmem_report_uint(out, "srq_limit", attr.srq_limit);
}

/* Report the last error; for the software device with the name of its cause. */
static void
report_error(struct rmem_report *out, const struct rmem_obj *obj, const struct rmem_qp_error *error)
{
	static const char *const sides[] = {"send", "recv", "peer"};
	char gid[2 * sizeof(error->peer_gid) + 1];
	struct rmem_report group;
	size_t i;

	if (error->time_ns == 0)
		return;
	for (i = 0; i < sizeof(error->peer_gid); i++)
		snprintf(&gid[2 * i], 3, "%02x", error->peer_gid[i]);
	rmem_report_begin(out, &group, "last_error");
	rmem_report_text(&group, "status", rmem_wc_status_str(error->status));
	rmem_report_uint(&group, "vendor_err", error->vendor_err);
	if (strcmp(rmem_obj_driver(obj)->name, "soft") == 0)
		rmem_report_text(&group, "cause", rmem_wc_vendor_err_str(error->vendor_err));
	rmem_report_text(&group, "side", word(sides, RTE_DIM(sides), error->side));
	rmem_report_uint(&group, "opcode", error->opcode);
	rmem_report_uint(&group, "wr_id", error->wr_id);
	rmem_report_bits(&group, "key", error->key);
	rmem_report_bits(&group, "addr", error->addr);
	rmem_report_uint(&group, "peer_qp_num", error->peer_qp_num);
	rmem_report_text(&group, "peer_gid", gid);
	rmem_report_uint(&group, "time_ns", error->time_ns);
	rmem_report_uint(
			&group, "age_ms", (rmem_now_ns(CLOCK_REALTIME) - error->time_ns) / 1000000);
	rmem_report_end(out, &group, "last_error");
}

static void
report_qp(struct rmem_report *out, const struct rmem_obj *obj)
{
	const struct rmem_qp *qp = (const struct rmem_qp *)obj;
	const bool is_opened = ((const struct rmem_qp_drv *)qp)->is_opened != 0;
	struct rmem_report group;
	struct rmem_qp_stats stats;
	struct rmem_qp_attr attr;
	size_t i;

	memset(&attr, 0, sizeof(attr));
	rmem_report_uint(out, "qp_num", qp->qp_num);
	if (qp->pd != NULL)
		report_pd_of(out, qp->pd);
	if (is_opened)
		rmem_report_uint(out, "opened", 1);
	/* Its process might not answer. */
	if (rmem_qp_is_opened(qp)) {
		rmem_report_text(out, "state", "of another process");
		return;
	}
	if (rmem_obj_driver(obj)->ops.qp_query((struct rmem_qp *)(uintptr_t)qp, &attr) == 0) {
		rmem_report_text(out, "state", rmem_qp_state_str(attr.state));
		rmem_report_uint(out, "remote_qp_num", attr.remote.qp_num);
		rmem_report_bits(out, "access", attr.access);
		report_limit(out, "send", attr.send_queued, attr.max_send_wr);
		report_limit(out, "recv", attr.recv_queued, attr.max_recv_wr);
		rmem_report_uint(out, "max_send_sge", attr.max_send_sge);
		rmem_report_uint(out, "max_recv_sge", attr.max_recv_sge);
		rmem_report_uint(out, "max_inline_data", attr.max_inline_data);
		rmem_report_uint(out, "bad_rkeys", attr.bad_rkeys);
	}
	/* A handle of a QP of the device has no counters. */
	if (is_opened || rmem_qp_stats_get(qp, &stats) != 0)
		return;
	rmem_report_begin(out, &group, "stats");
	for (i = 0; i < RTE_DIM(qp_counters); i++)
		rmem_report_uint(&group, qp_counters[i].name,
				*(const uint64_t *)RTE_PTR_ADD(&stats, qp_counters[i].offset));
	rmem_report_end(out, &group, "stats");
	report_error(out, obj, &stats.last_error);
}

void
rmem_report_obj(struct rmem_report *out, const struct rmem_obj *obj)
{
	static void (*const reports[RMEM_OBJ_NB_KINDS])(
			struct rmem_report * out, const struct rmem_obj *obj) = {
			[RMEM_OBJ_KIND(RMEM_OBJ_PD)] = report_pd,
			[RMEM_OBJ_KIND(RMEM_OBJ_MR)] = report_mr,
			[RMEM_OBJ_KIND(RMEM_OBJ_CQ)] = report_cq,
			[RMEM_OBJ_KIND(RMEM_OBJ_QP)] = report_qp,
			[RMEM_OBJ_KIND(RMEM_OBJ_MW)] = report_mw,
			[RMEM_OBJ_KIND(RMEM_OBJ_SRQ)] = report_srq,
			[RMEM_OBJ_KIND(RMEM_OBJ_DM)] = report_dm,
	};
	const struct rmem_obj_head *head = rmem_obj_head(obj);

	rmem_report_text(out, "device", rmem_obj_dev(obj)->name);
	rmem_report_uint(out, "number", head->number);
	rmem_report_text(out, "name", head->name);
	rmem_report_uint(out, "age_ms", rmem_obj_age_ms(obj));
	rmem_report_uint(out, "references", __atomic_load_n(&obj->refs, __ATOMIC_RELAXED));
	reports[RMEM_OBJ_KIND(obj->type)](out, obj);
}

/* Print an object of a type, under a line with its kind. */
static int
dump(const void *handle, uint32_t type, const char *kind, FILE *f)
{
	struct rmem_report top = {.f = f}, out;
	int ret;

	ret = rmem_obj_check(handle, type);
	if (ret == 0)
		ret = rmem_check_arg(f, "file");
	if (ret != 0)
		return ret;
	rmem_report_begin(&top, &out, kind);
	rmem_report_obj(&out, handle);
	rmem_report_end(&top, &out, kind);
	return 0;
}

int
rmem_pd_dump(const struct rmem_pd *pd, FILE *f)
{
	RMEM_CALL(pd);

	return dump(pd, RMEM_OBJ_PD, "PD", f);
}

int
rmem_mr_dump(const struct rmem_mr *mr, FILE *f)
{
	RMEM_CALL(mr);

	return dump(mr, RMEM_OBJ_MR, "MR", f);
}

int
rmem_dm_dump(const struct rmem_dm *dm, FILE *f)
{
	RMEM_CALL(dm);

	return dump(dm, RMEM_OBJ_DM, "DM", f);
}

int
rmem_mw_dump(const struct rmem_mw *mw, FILE *f)
{
	RMEM_CALL(mw);

	return dump(mw, RMEM_OBJ_MW, "MW", f);
}

int
rmem_cq_dump(const struct rmem_cq *cq, FILE *f)
{
	RMEM_CALL(cq);

	return dump(cq, RMEM_OBJ_CQ, "CQ", f);
}

int
rmem_srq_dump(const struct rmem_srq *srq, FILE *f)
{
	RMEM_CALL(srq);

	return dump(srq, RMEM_OBJ_SRQ, "SRQ", f);
}

int
rmem_qp_dump(const struct rmem_qp *qp, FILE *f)
{
	RMEM_CALL(qp);

	return dump(qp, RMEM_OBJ_QP, "QP", f);
}
