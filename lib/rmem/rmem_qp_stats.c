/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters and the last error of a QP. The memory of the error follows the driver's part of the QP.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"

/* Protects the last errors of all QPs; held only to copy one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
rmem_qp_note_error(struct rmem_qp *qp, const struct rmem_qp_error *error)
{
	struct rmem_qp_error *last = ((struct rmem_qp_drv *)qp)->last_error;
	uint64_t now = rmem_now_ns(CLOCK_REALTIME);

	pthread_mutex_lock(&lock);
	*last = *error;
	last->time_ns = now;
	pthread_mutex_unlock(&lock);
}

int
rmem_qp_stats_get(const struct rmem_qp *qp, struct rmem_qp_stats *stats)
{
	RMEM_CALL(qp);
	struct rmem_dev_stats from;
	struct rmem_qp_stats tmp;
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_check_arg(stats, "result");
	if (ret != 0)
		return ret;
	memset(&from, 0, sizeof(from));
	ret = rmem_obj_driver(&qp->obj)->ops.qp_stats_get((struct rmem_qp *)(uintptr_t)qp, &from);
	if (ret != 0 && ret != -EOPNOTSUPP)
		return rmem_traced(ret);
	memset(&tmp, 0, sizeof(tmp));
	tmp.send_wrs = from.send_wrs;
	tmp.recv_wrs = from.recv_wrs;
	tmp.bytes = from.bytes;
	tmp.errors = from.errors;
	tmp.flushed = from.flushed;
	tmp.local_prot_errors = from.local_prot_errors;
	tmp.rem_access_errors = from.rem_access_errors;
	tmp.rnr_retries = from.rnr_retries;
	tmp.reg_mrs = from.reg_mrs;
	tmp.invalidates = from.invalidates;
	tmp.mw_binds = from.mw_binds;
	tmp.umrs = from.umrs;
	tmp.inline_recvs = from.inline_recvs;
	tmp.bad_rkeys = from.bad_rkeys;
	tmp.mem_faults = from.mem_faults;
	pthread_mutex_lock(&lock);
	tmp.last_error = *((const struct rmem_qp_drv *)qp)->last_error;
	pthread_mutex_unlock(&lock);
	*stats = tmp;
	return 0;
}
