/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Devices with injected faults: the software device under other names, with one function
 * that skips a check, loses a byte or omits an effect. The suite must fail on each of them.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmem_driver.h>

#include "conf.h"

#define BURST 64

static const struct rmem_driver *soft;

/* More rights than requested. */
static int
reg_all_rights(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	uint32_t access = mr->access;
	int ret;

	mr->access |= FX_ACCESS;
	ret = soft->ops.mr_reg(mr, attr);
	mr->access = access;
	return ret;
}

static int
reg_one_byte_more(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	int ret;

	mr->length++;
	ret = soft->ops.mr_reg(mr, attr);
	mr->length--;
	return ret;
}

static int
reg_one_byte_before(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	int ret;

	mr->length++;
	mr->addr = (uint8_t *)mr->addr - 1;
	mr->iova--;
	ret = soft->ops.mr_reg(mr, attr);
	mr->iova++;
	mr->addr = (uint8_t *)mr->addr + 1;
	mr->length--;
	return ret;
}

static int
reg_without_iova(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	uint64_t iova = mr->iova;
	int ret;

	mr->iova = (uintptr_t)mr->addr;
	ret = soft->ops.mr_reg(mr, attr);
	mr->iova = iova;
	return ret;
}

/* Each binding of a window covers its whole MR. */
static int
bind_all(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	struct rmem_mw_bind all = *bind;

	if (bind->bind_info.mr != NULL) {
		all.bind_info.addr = bind->bind_info.mr->iova;
		all.bind_info.length = bind->bind_info.mr->length;
	}
	return soft->ops.mw_bind(qp, mw, &all);
}

static int
bind_readable(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	struct rmem_mw_bind more = *bind;

	more.bind_info.access |= RMEM_ACCESS_REMOTE_READ;
	return soft->ops.mw_bind(qp, mw, &more);
}

typedef void (*change_t)(struct rmem_send_wr *wr);

/* Posts requests after a change; one by one when it is more than a burst. */
static int
post_changed(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr, change_t change)
{
	struct rmem_send_wr changed[BURST];
	uint16_t i;

	if (nb_wr > BURST)
		nb_wr = BURST;
	for (i = 0; i < nb_wr; i++) {
		changed[i] = wr[i];
		change(&changed[i]);
	}
	return soft->fp.post_send(qp, changed, nb_wr);
}

static void
skip_inv(struct rmem_send_wr *wr)
{
	static const struct rmem_send_wr nothing;
	uint64_t wr_id = wr->wr_id;
	uint8_t flags = wr->flags;

	if (wr->opcode != RMEM_WR_LOCAL_INV)
		return;
	*wr = nothing;
	wr->wr_id = wr_id;
	wr->flags = flags;
	wr->opcode = RMEM_WR_RDMA_WRITE;
}

static int
post_no_inv(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return post_changed(qp, wr, nb_wr, skip_inv);
}

static void
widen_window(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_BIND_MW && wr->bind_mw.length != 0)
		wr->bind_mw.length++;
}

static int
post_wide_windows(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return post_changed(qp, wr, nb_wr, widen_window);
}

static void
lend_rights(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_REG_MR)
		wr->reg_mr.access |= FX_ACCESS;
	if (wr->opcode == RMEM_WR_BIND_MW)
		wr->bind_mw.access |= RMEM_ACCESS_REMOTE_READ;
}

static int
post_more_rights(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return post_changed(qp, wr, nb_wr, lend_rights);
}

static void
drop_flag(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_SEND_WITH_INV)
		wr->opcode = RMEM_WR_SEND;
}

static int
post_sends_without_inv(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return post_changed(qp, wr, nb_wr, drop_flag);
}

/* Refused requests complete with SUCCESS. */
static int
poll_all_well(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int i, nb = soft->fp.poll_cq(cq, wc, nb_wc);

	for (i = 0; i < nb; i++) {
		if (wc[i].status == RMEM_WC_REM_ACCESS_ERR)
			wc[i].status = RMEM_WC_SUCCESS;
	}
	return nb;
}

/* Errors complete with another status. */
static int
poll_wrong_status(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int i, nb = soft->fp.poll_cq(cq, wc, nb_wc);

	for (i = 0; i < nb; i++) {
		if (wc[i].status == RMEM_WC_LOC_PROT_ERR)
			wc[i].status = RMEM_WC_LOC_QP_OP_ERR;
	}
	return nb;
}

static int
poll_no_flush(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int i, nb = soft->fp.poll_cq(cq, wc, nb_wc);

	for (i = 0; i < nb; i++) {
		if (wc[i].status == RMEM_WC_WR_FLUSH_ERR)
			wc[i].status = RMEM_WC_SUCCESS;
	}
	return nb;
}

static int
poll_short(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	int i, nb = soft->fp.poll_cq(cq, wc, nb_wc);

	for (i = 0; i < nb; i++)
		wc[i].byte_len -= wc[i].byte_len > 64;
	return nb;
}

/* Completions of one poll in the reverse order. */
static int
poll_reversed(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	static struct rmem_wc wcs[BURST];
	static struct rmem_cq *of;
	static int nb;

	if (nb == 0 || of != cq) {
		nb = soft->fp.poll_cq(cq, wcs, BURST);
		of = cq;
	}
	if (nb <= 0 || nb_wc == 0)
		return RTE_MIN(nb, 0);
	*wc = wcs[--nb];
	return 1;
}

/* Each fourth completion is lost. */
static int
poll_lossy(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	static unsigned int nb;
	int ret = soft->fp.poll_cq(cq, wc, RTE_MIN(nb_wc, 1));

	return ret == 1 && nb++ % 4 == 3 ? 0 : ret;
}

/* Each fourth completion is returned twice. */
static int
poll_twice(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	static unsigned int nb;
	static struct rmem_wc last;
	static struct rmem_cq *of;
	int ret;

	if (of == cq && nb_wc != 0 && nb % 4 == 3) {
		nb++;
		*wc = last;
		return 1;
	}
	ret = soft->fp.poll_cq(cq, wc, RTE_MIN(nb_wc, 1));
	if (ret == 1) {
		nb++;
		last = *wc;
		of = cq;
	}
	return ret;
}

static void
lose_data(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_RDMA_WRITE)
		wr->num_sge = 0;
}

static int
post_no_data(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return post_changed(qp, wr, nb_wr, lose_data);
}

static int
reg_enabled(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	struct rmem_mr_attr enabled = *attr;

	enabled.flags &= ~RMEM_MR_DISABLED;
	return soft->ops.mr_reg(mr, &enabled);
}

static int
count_nothing(struct rmem_mr *mr, struct rmem_counter *counter)
{
	RTE_SET_USED(mr);
	RTE_SET_USED(counter);
	return 0;
}

static int
rereg_keeps_rights(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr,
		size_t length, uint32_t access, enum rmem_rereg_result *result)
{
	if ((flags & RMEM_REREG_CHANGE_ACCESS) != 0)
		access |= RMEM_ACCESS_REMOTE_WRITE;
	return soft->ops.mr_rereg(mr, flags, pd, addr, length, access, result);
}

static int
rereg_keeps_pd(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	RTE_SET_USED(pd);
	return soft->ops.mr_rereg(mr, flags, mr->pd, addr, length, access, result);
}

static void
skip_round(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_UMR && wr->umr.repeat_count > 1)
		wr->umr.repeat_count--;
}

static int
post_short_umr(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return post_changed(qp, wr, nb_wr, skip_round);
}

/* QPs have all rights. */
static int
create_open_qp(struct rmem_qp *qp, const struct rmem_qp_conf *conf_of_qp)
{
	struct rmem_qp_conf all = *conf_of_qp;

	all.access = RMEM_ACCESS_REMOTE;
	return soft->ops.qp_create(qp, &all);
}

/* Injected faults; functions that are NULL are the software device's. */
struct wrong {
	const char *what;
	const char *subject; /* at least one case of it fails; or "differential" */
	rmem_mr_bind_counter_t mr_bind_counter;
	rmem_mr_reg_t mr_reg;
	rmem_mr_rereg_t mr_rereg;
	rmem_mw_bind_t mw_bind;
	rmem_qp_create_t qp_create;
	rmem_post_send_t post_send;
	rmem_poll_cq_t poll_cq;
	bool is_excused; /* only the oracle is asked */
};

static const struct wrong wrongs[] = {
		{.what = "MRs have all rights", .subject = "right", .mr_reg = reg_all_rights},
		{.what = "MRs are a byte too long", .subject = "mr", .mr_reg = reg_one_byte_more},
		{.what = "MRs start early", .subject = "mr", .mr_reg = reg_one_byte_before},
		{.what = "MRs have no iova", .subject = "mr", .mr_reg = reg_without_iova},
		{.what = "QPs allow everything", .subject = "right", .qp_create = create_open_qp},
		{.what = "type 1 windows cover their MR", .subject = "mw1", .mw_bind = bind_all},
		{.what = "type 1 windows can be read", .subject = "mw1", .mw_bind = bind_readable},
		{.what = "type 2 windows are a byte too long",
				.subject = "mw2",
				.post_send = post_wide_windows},
		{.what = "type 2 windows have more rights",
				.subject = "mw2",
				.post_send = post_more_rights},
		{.what = "REG_MR gives more rights",
				.subject = "fast_reg",
				.post_send = post_more_rights},
		{.what = "LOCAL_INV leaves windows",
				.subject = "mw2_bind",
				.post_send = post_no_inv},
		{.what = "LOCAL_INV leaves MRs", .subject = "fast_reg", .post_send = post_no_inv},
		{.what = "SEND_WITH_INV only sends",
				.subject = "mw2_bind",
				.post_send = post_sends_without_inv},
		{.what = "LOCAL_INV leaves what requests bind",
				.subject = "inv",
				.post_send = post_no_inv},
		{.what = "UMR leaves a round out", .subject = "umr", .post_send = post_short_umr},
		{.what = "disabled MRs are enabled", .subject = "attr", .mr_reg = reg_enabled},
		{.what = "counters do not count",
				.subject = "attr",
				.mr_bind_counter = count_nothing},
		{.what = "rereg keeps a right", .subject = "rereg", .mr_rereg = rereg_keeps_rights},
		{.what = "rereg keeps the PD", .subject = "rereg", .mr_rereg = rereg_keeps_pd},
		{.what = "lengths are short", .subject = "recv", .poll_cq = poll_short},
		{.what = "flushed is reported as success",
				.subject = "error",
				.poll_cq = poll_no_flush},
		{.what = "MRs have all rights",
				.subject = "differential",
				.mr_reg = reg_all_rights},
		{.what = "MRs are a byte too long",
				.subject = "differential",
				.mr_reg = reg_one_byte_more},
		{.what = "type 2 windows are a byte too long",
				.subject = "differential",
				.post_send = post_wide_windows},
		{.what = "LOCAL_INV leaves windows",
				.subject = "differential",
				.post_send = post_no_inv},
		{.what = "lengths are short", .subject = "differential", .poll_cq = poll_short},
		{.what = "errors are reported as success",
				.subject = "key",
				.poll_cq = poll_all_well},
		{.what = "completions are in another order",
				.subject = "error",
				.poll_cq = poll_reversed,
				.is_excused = true},
		{.what = "completions are lost",
				.subject = "error",
				.poll_cq = poll_lossy,
				.is_excused = true},
		{.what = "completions are returned twice",
				.subject = "error",
				.poll_cq = poll_twice,
				.is_excused = true},
		{.what = "flushed is reported as success",
				.subject = "error",
				.poll_cq = poll_no_flush,
				.is_excused = true},
		{.what = "WRITEs without data succeed",
				.subject = "outcome",
				.post_send = post_no_data,
				.is_excused = true},
		{.what = "errors have another status",
				.subject = "key",
				.poll_cq = poll_wrong_status},
};

/* The one in force. */
static const struct wrong *wrong;

static int
wrong_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	return wrong->mr_reg != NULL ? wrong->mr_reg(mr, attr) : soft->ops.mr_reg(mr, attr);
}

static int
wrong_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter)
{
	return wrong->mr_bind_counter != NULL ? wrong->mr_bind_counter(mr, counter)
					      : soft->ops.mr_bind_counter(mr, counter);
}

static int
wrong_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	rmem_mr_rereg_t rereg = wrong->mr_rereg != NULL ? wrong->mr_rereg : soft->ops.mr_rereg;

	return rereg(mr, flags, pd, addr, length, access, result);
}

static int
wrong_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	return wrong->mw_bind != NULL ? wrong->mw_bind(qp, mw, bind)
				      : soft->ops.mw_bind(qp, mw, bind);
}

static int
wrong_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf_of_qp)
{
	return wrong->qp_create != NULL ? wrong->qp_create(qp, conf_of_qp)
					: soft->ops.qp_create(qp, conf_of_qp);
}

static int
wrong_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return wrong->post_send != NULL ? wrong->post_send(qp, wr, nb_wr)
					: soft->fp.post_send(qp, wr, nb_wr);
}

static int
wrong_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	return wrong->poll_cq != NULL ? wrong->poll_cq(cq, wc, nb_wc)
				      : soft->fp.poll_cq(cq, wc, nb_wc);
}

static int
register_driver(void)
{
	struct rmem_driver driver = *soft;

	driver.name = "wrong";
	driver.ops.mr_bind_counter = wrong_mr_bind_counter;
	driver.ops.mr_reg = wrong_mr_reg;
	driver.ops.mr_rereg = wrong_mr_rereg;
	driver.ops.mw_bind = wrong_mw_bind;
	driver.ops.qp_create = wrong_qp_create;
	driver.fp.post_send = wrong_post_send;
	driver.fp.poll_cq = wrong_poll_cq;
	return rmem_driver_register(&driver);
}

/* Number of failed cases of the subject, or -1 if all were skipped. */
static int
try_wrong(struct rmem_dev *reference, unsigned int i)
{
	char subject[16], name[RMEM_NAME_SIZE];
	char *pattern = subject;
	struct conf_counts counts;

	wrong = &wrongs[i];
	conf.faults = wrong->is_excused ? "" : NULL;
	conf.is_excused = wrong->is_excused;
	snprintf(subject, sizeof(subject), "%s", wrong->subject);
	snprintf(name, sizeof(name), "wrong%u", i);
	if (conf_open_dev(name, NULL) != 0)
		return -1;
	memset(&counts, 0, sizeof(counts));
	if (strcmp(subject, "differential") == 0)
		counts.failed = TEST_TRY(conf_diff(reference, i + 1, 5000)) != TEST_SUCCESS;
	else
		conf_run(&pattern, 1, &counts);
	/* Objects of a failed case may remain. */
	conf_close_dev();
	return counts.passed + counts.deviated + counts.failed == 0 ? -1 : (int)counts.failed;
}

int
conf_self_test(void)
{
	struct rmem_dev *dev = NULL;
	int failed[RTE_DIM(wrongs)];
	unsigned int nb_unnoticed = 0;
	unsigned int i;

	if (rmem_dev_create("soft0", NULL, &dev) != 0)
		return EXIT_FAILURE;
	soft = rmem_dev_drv(dev)->driver;
	if (register_driver() != 0)
		return EXIT_FAILURE;
	for (i = 0; i < RTE_DIM(wrongs); i++) {
		printf("-- %s\n", wrongs[i].what);
		failed[i] = try_wrong(dev, i);
	}
	for (i = 0; i < RTE_DIM(wrongs); i++) {
		if (failed[i] > 0) {
			printf("noticed by %d cases of %s: %s\n", failed[i], wrongs[i].subject,
					wrongs[i].what);
		} else {
			printf("NOT NOTICED by %s: %s\n", wrongs[i].subject, wrongs[i].what);
			nb_unnoticed++;
		}
	}
	printf("self-test: wrong=%zu unnoticed=%u\n", RTE_DIM(wrongs), nb_unnoticed);
	rmem_dev_close(dev);
	return nb_unnoticed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
