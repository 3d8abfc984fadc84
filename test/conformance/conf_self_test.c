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

static void
widen_window(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_BIND_MW && wr->bind_mw.length != 0)
		wr->bind_mw.length++;
}

static void
lend_rights(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_REG_MR)
		wr->reg_mr.access |= FX_ACCESS;
	if (wr->opcode == RMEM_WR_BIND_MW)
		wr->bind_mw.access |= RMEM_ACCESS_REMOTE_READ;
}

static void
drop_flag(struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_SEND_WITH_INV)
		wr->opcode = RMEM_WR_SEND;
}

/* Completions of one status have another. */
static int
poll_status(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc, uint8_t from, uint8_t to)
{
	int i, nb = soft->fp.poll_cq(cq, wc, nb_wc);

	for (i = 0; i < nb; i++) {
		if (wc[i].status == from)
			wc[i].status = to;
	}
	return nb;
}

static int
poll_all_well(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	return poll_status(cq, wc, nb_wc, RMEM_WC_REM_ACCESS_ERR, RMEM_WC_SUCCESS);
}

static int
poll_wrong_status(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	return poll_status(cq, wc, nb_wc, RMEM_WC_LOC_PROT_ERR, RMEM_WC_LOC_QP_OP_ERR);
}

static int
poll_no_flush(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	return poll_status(cq, wc, nb_wc, RMEM_WC_WR_FLUSH_ERR, RMEM_WC_SUCCESS);
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
attach_nothing(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(counter);
	RTE_SET_USED(counts);
	return 0;
}

static int
attach_all(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts)
{
	RTE_SET_USED(counts);
	return soft->ops.qp_attach_counter(qp, counter, RMEM_QP_COUNT_ALL);
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
	rmem_qp_attach_counter_t qp_attach_counter;
	rmem_mr_reg_t mr_reg;
	rmem_mr_rereg_t mr_rereg;
	rmem_mw_bind_t mw_bind;
	rmem_qp_create_t qp_create;
	change_t change; /* of the requests that are posted */
	rmem_poll_cq_t poll_cq;
	bool is_excused; /* only the oracle is asked */
};

#define WRONG(text, cases) .what = text, .subject = cases

static const struct wrong wrongs[] = {
		{WRONG("MRs have all rights", "right"), .mr_reg = reg_all_rights},
		{WRONG("MRs are a byte too long", "mr"), .mr_reg = reg_one_byte_more},
		{WRONG("MRs start early", "mr"), .mr_reg = reg_one_byte_before},
		{WRONG("MRs have no iova", "mr"), .mr_reg = reg_without_iova},
		{WRONG("QPs allow everything", "right"), .qp_create = create_open_qp},
		{WRONG("type 1 windows cover their MR", "mw1"), .mw_bind = bind_all},
		{WRONG("type 1 windows can be read", "mw1"), .mw_bind = bind_readable},
		{WRONG("type 2 windows are a byte too long", "mw2"), .change = widen_window},
		{WRONG("type 2 windows have more rights", "mw2"), .change = lend_rights},
		{WRONG("REG_MR gives more rights", "fast_reg"), .change = lend_rights},
		{WRONG("LOCAL_INV leaves windows", "mw2_bind"), .change = skip_inv},
		{WRONG("LOCAL_INV leaves MRs", "fast_reg"), .change = skip_inv},
		{WRONG("SEND_WITH_INV only sends", "mw2_bind"), .change = drop_flag},
		{WRONG("LOCAL_INV leaves what requests bind", "inv"), .change = skip_inv},
		{WRONG("UMR leaves a round out", "umr"), .change = skip_round},
		{WRONG("disabled MRs are enabled", "attr"), .mr_reg = reg_enabled},
		{WRONG("counters do not count", "attr"), .mr_bind_counter = count_nothing},
		{WRONG("rereg keeps a right", "rereg"), .mr_rereg = rereg_keeps_rights},
		{WRONG("rereg keeps the PD", "rereg"), .mr_rereg = rereg_keeps_pd},
		{WRONG("lengths are short", "recv"), .poll_cq = poll_short},
		{WRONG("flushed is reported as success", "error"), .poll_cq = poll_no_flush},
		{WRONG("MRs have all rights", "differential"), .mr_reg = reg_all_rights},
		{WRONG("MRs are a byte too long", "differential"), .mr_reg = reg_one_byte_more},
		{WRONG("type 2 windows are a byte too long", "differential"),
				.change = widen_window},
		{WRONG("LOCAL_INV leaves windows", "differential"), .change = skip_inv},
		{WRONG("lengths are short", "differential"), .poll_cq = poll_short},
		{WRONG("errors are reported as success", "key"), .poll_cq = poll_all_well},
		{WRONG("completions are in another order", "error"), .poll_cq = poll_reversed,
				.is_excused = true},
		{WRONG("completions are lost", "error"), .poll_cq = poll_lossy, .is_excused = true},
		{WRONG("completions are returned twice", "error"), .poll_cq = poll_twice,
				.is_excused = true},
		{WRONG("flushed is reported as success", "error"), .poll_cq = poll_no_flush,
				.is_excused = true},
		{WRONG("WRITEs without data succeed", "outcome"), .change = lose_data,
				.is_excused = true},
		{WRONG("errors have another status", "key"), .poll_cq = poll_wrong_status},
		{WRONG("QPs do not count", "count"), .qp_attach_counter = attach_nothing},
		{WRONG("QPs count everything", "count"), .qp_attach_counter = attach_all},
};

/* The one in force, with the software device's functions where it has none. */
static struct wrong wrong;

static int
wrong_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	return wrong.mr_reg(mr, attr);
}

static int
wrong_mr_bind_counter(struct rmem_mr *mr, struct rmem_counter *counter)
{
	return wrong.mr_bind_counter(mr, counter);
}

static int
wrong_qp_attach_counter(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts)
{
	return wrong.qp_attach_counter(qp, counter, counts);
}

static int
wrong_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	return wrong.mr_rereg(mr, flags, pd, addr, length, access, result);
}

static int
wrong_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	return wrong.mw_bind(qp, mw, bind);
}

static int
wrong_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf_of_qp)
{
	return wrong.qp_create(qp, conf_of_qp);
}

static int
wrong_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	return wrong.change != NULL ? post_changed(qp, wr, nb_wr, wrong.change)
				    : soft->fp.post_send(qp, wr, nb_wr);
}

static int
wrong_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	return wrong.poll_cq(cq, wc, nb_wc);
}

static int
register_driver(void)
{
	struct rmem_driver driver = *soft;

	driver.name = "wrong";
	driver.ops.mr_bind_counter = wrong_mr_bind_counter;
	driver.ops.qp_attach_counter = wrong_qp_attach_counter;
	driver.ops.mr_reg = wrong_mr_reg;
	driver.ops.mr_rereg = wrong_mr_rereg;
	driver.ops.mw_bind = wrong_mw_bind;
	driver.ops.qp_create = wrong_qp_create;
	driver.fp.post_send = wrong_post_send;
	driver.fp.poll_cq = wrong_poll_cq;
	return rmem_driver_register(&driver);
}

/* Use a function of the software device where wrong has none. */
#define FILL(slot, from) wrong.slot = wrong.slot != NULL ? wrong.slot : soft->from.slot

static void
set_wrong(unsigned int i)
{
	wrong = wrongs[i];
	FILL(mr_bind_counter, ops);
	FILL(qp_attach_counter, ops);
	FILL(mr_reg, ops);
	FILL(mr_rereg, ops);
	FILL(mw_bind, ops);
	FILL(qp_create, ops);
	FILL(poll_cq, fp);
}

/* Number of failed cases of the subject, or -1 if all were skipped. */
static int
try_wrong(struct rmem_dev *reference, unsigned int i)
{
	char subject[16], name[RMEM_NAME_SIZE];
	char *pattern = subject;
	struct conf_counts counts;

	set_wrong(i);
	conf.faults = wrong.is_excused ? "" : NULL;
	conf.is_excused = wrong.is_excused;
	conf.is_wrong = true;
	snprintf(subject, sizeof(subject), "%s", wrong.subject);
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
