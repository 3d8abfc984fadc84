/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Counters of the completed requests of QPs. A QP refers to its counters.
 */

#include <errno.h>
#include <pthread.h>

#include "rmem_priv.h"
#include "rmem_qp_priv.h"

/* Protects rmem_qp_more::counters of all QPs. */
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;

static int
check_attach(struct rmem_qp *qp, const struct rmem_counter *counter, uint32_t counts)
{
	struct rmem_qp_attr attr = {0};
	unsigned int i;
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_obj_check_of(counter, RMEM_OBJ_COUNTER, &qp->obj);
	if (ret == 0 && rmem_qp_is_opened(qp))
		ret = RMEM_FAIL(EOPNOTSUPP, "QP %u: of another process: no counters", qp->qp_num);
	if (ret != 0)
		return ret;
	if (counts == 0 || (counts & ~RMEM_QP_COUNT_ALL) != 0)
		return RMEM_FAIL(EINVAL, "QP %u: unknown counts: 0x%x (of 0x%x)", qp->qp_num,
				counts, RMEM_QP_COUNT_ALL);
	if ((rmem_obj_info(&qp->obj)->capa & RMEM_DEV_CAPA_QP_COUNTER) == 0)
		return RMEM_FAIL(
				EOPNOTSUPP, "%s: no counters of QPs", rmem_obj_dev(&qp->obj)->name);
	ret = RMEM_OP(qp, qp_query, qp, &attr);
	if (ret != 0)
		return ret;
	if (attr.state != RMEM_QPS_RESET && attr.state != RMEM_QPS_INIT)
		return RMEM_FAIL(EBUSY, "QP %u: wrong state for a counter: %s (RESET, INIT)",
				qp->qp_num, rmem_qp_state_str(attr.state));
	for (i = 0; i < RMEM_QP_NB_COUNTS; i++) {
		if ((counts & UINT32_C(1) << i) != 0 && rmem_qp_more_of(qp)->counters[i] != NULL)
			return RMEM_FAIL(EEXIST, "QP %u: has a counter for 0x%x", qp->qp_num,
					UINT32_C(1) << i);
	}
	return 0;
}

/* Attach a counter, with one reference for each of the counts. */
static int
do_attach(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts)
{
	struct rmem_counter **counters = rmem_qp_more_of(qp)->counters;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < RMEM_QP_NB_COUNTS && ret == 0; i++) {
		if ((counts & UINT32_C(1) << i) == 0)
			continue;
		ret = rmem_obj_get(&counter->obj);
		if (ret == 0)
			counters[i] = counter;
	}
	if (ret == 0)
		ret = RMEM_OP(qp, qp_attach_counter, qp, counter, counts);
	for (i = 0; i < RMEM_QP_NB_COUNTS && ret != 0; i++) {
		if ((counts & UINT32_C(1) << i) == 0 || counters[i] == NULL)
			continue;
		counters[i] = NULL;
		rmem_obj_unhold(&counter->obj);
	}
	return ret;
}

int
rmem_qp_attach_counter(struct rmem_qp *qp, struct rmem_counter *counter, uint32_t counts)
{
	RMEM_CALL(qp);
	int ret;

	pthread_mutex_lock(&attach_lock);
	ret = check_attach(qp, counter, counts);
	if (ret == 0)
		ret = do_attach(qp, counter, counts);
	pthread_mutex_unlock(&attach_lock);
	return ret;
}

void
rmem_qp_counter_put(const struct rmem_qp *qp)
{
	unsigned int i;

	for (i = 0; i < RMEM_QP_NB_COUNTS; i++) {
		if (rmem_qp_more_of(qp)->counters[i] != NULL)
			rmem_obj_unhold(&rmem_qp_more_of(qp)->counters[i]->obj);
	}
}
