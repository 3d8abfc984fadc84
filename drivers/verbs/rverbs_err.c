/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Mapping of the three error conventions of verbs. */

#include <errno.h>
#include <string.h>

#include "rverbs.h"

/* Permitted errnos of each kind of calls, in addition to -EIO; the headers of lib/rmem document no
 * others. */
static const int rverbs_err_kinds[][6] = {
		[RVERBS_ERR_OPEN] = {ENODEV, ENOMEM, ENOSPC},
		[RVERBS_ERR_MAKE] = {EINVAL, ENOMEM, ENOSPC},
		[RVERBS_ERR_SHARE] = {ENOMEM, ENOSPC, EOPNOTSUPP},
		[RVERBS_ERR_REG] = {EINVAL, ENOMEM, ENOSPC, EOPNOTSUPP, EFAULT},
		[RVERBS_ERR_CHANGE] = {EINVAL},
		[RVERBS_ERR_RELEASE] = {EINVAL, EBUSY},
		[RVERBS_ERR_ADVISE] = {EINVAL, ENOMEM, EOPNOTSUPP, EFAULT, ENOENT, EPERM},
		[RVERBS_ERR_RESIZE] = {EINVAL, ENOMEM, EOPNOTSUPP},
		[RVERBS_ERR_POST] = {EINVAL, ENOMEM, ENOSPC, EOPNOTSUPP},
};

/* Map errnos with the same meaning to one of them. */
static int
err_plain(int err)
{
	switch (err) {
	case ERANGE:
	case EOVERFLOW:
		return EINVAL;
	case EACCES:
		return EPERM;
	case ENXIO:
		return ENODEV;
	case EAGAIN: /* mlock(2): limit exceeded */
		return ENOMEM;
	case EMFILE:
	case ENFILE:
		return ENOSPC;
	case ENOSYS:
	case EPROTONOSUPPORT:
		return EOPNOTSUPP;
	default:
		return err;
	}
}

int
rverbs_err_fold(int err, enum rverbs_err_kind kind)
{
	size_t i;

	err = err_plain(err < 0 ? -err : err);
	for (i = 0; i < RTE_DIM(rverbs_err_kinds[kind]); i++) {
		if (err != 0 && err == rverbs_err_kinds[kind][i])
			return -err;
	}
	return -EIO;
}

int
rverbs_err_post(int err)
{
	switch (rverbs_err_fold(err, RVERBS_ERR_POST)) {
	case -EINVAL:
		return -EINVAL;
	case -EOPNOTSUPP:
		return -EOPNOTSUPP;
	case -ENOMEM:
	case -ENOSPC:
		return -ENOSPC;
	default:
		return -ENODEV;
	}
}

int
rverbs_err_gate(struct rverbs_qp *qp, uint32_t gate)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (gate == RVERBS_GATE_REMOVED)
		return -ENODEV;
	/* A request of the peer may have failed in RTR. */
	if (gate != RVERBS_GATE_INIT || ibv_query_qp(qp->ibv, &attr, IBV_QP_STATE, &init) != 0 ||
			attr.qp_state != IBV_QPS_ERR)
		return -EBUSY;
	__atomic_store_n(&qp->has_failed, 1, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&qp->gate, &gate, RVERBS_GATE_OPEN, false, __ATOMIC_RELEASE,
			__ATOMIC_RELAXED);
	return 0;
}

static int
err_log(int err, enum rverbs_err_kind kind, const char *what)
{
	RVERBS_LOG(ERR, "%s: %s", what, strerror(err));
	return rverbs_err_fold(err, kind);
}

int
rverbs_err_null(const void *object, const char *what)
{
	return object != NULL ? 0 : err_log(errno, RVERBS_ERR_MAKE, what);
}

int
rverbs_err_code(int ret, enum rverbs_err_kind kind, const char *what)
{
	if (ret == 0)
		return 0;
	/* Some providers return -1 with errno. */
	if (ret == -1)
		ret = errno;
	return err_log(ret < 0 ? -ret : ret, kind, what);
}

int
rverbs_err_minus(int ret, const char *what)
{
	if (ret >= 0)
		return 0;
	return err_log(ret == -1 ? errno : -ret, RVERBS_ERR_MAKE, what);
}
