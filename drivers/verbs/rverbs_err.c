/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The three ways in which verbs tell of an error, as one. */

#include <errno.h>
#include <string.h>

#include "rverbs.h"

int
rverbs_err_fold(int err)
{
	switch (err < 0 ? -err : err) {
	case EINVAL:
	case ERANGE:
	case EOVERFLOW:
		return -EINVAL;
	case EPERM:
	case EACCES:
		return -EPERM;
	case EBUSY:
		return -EBUSY;
	case ENODEV:
	case ENXIO:
		return -ENODEV;
	case ENOENT:
		return -ENOENT;
	case EEXIST:
		return -EEXIST;
	case ENOMEM:
	case EAGAIN: /* what mlock(2) says of the limit */
		return -ENOMEM;
	case ENOSPC:
	case EMFILE:
	case ENFILE:
		return -ENOSPC;
	case EOPNOTSUPP:
	case ENOSYS:
	case EPROTONOSUPPORT:
		return -EOPNOTSUPP;
	case EFAULT:
		return -EFAULT;
	default:
		return -EIO;
	}
}

static int
rverbs_err_tell(int err, const char *what)
{
	RVERBS_LOG(ERR, "%s: %s", what, strerror(err));
	return rverbs_err_fold(err);
}

int
rverbs_err_null(const void *object, const char *what)
{
	return object != NULL ? 0 : rverbs_err_tell(errno, what);
}

int
rverbs_err_code(int ret, const char *what)
{
	if (ret == 0)
		return 0;
	/* Some providers keep to the older convention. */
	if (ret == -1)
		ret = errno;
	return rverbs_err_tell(ret < 0 ? -ret : ret, what);
}

int
rverbs_err_minus(int ret, const char *what)
{
	if (ret >= 0)
		return 0;
	return rverbs_err_tell(ret == -1 ? errno : -ret, what);
}
