/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Device memory (DM). A DM refers to its device; MRs of the DM refer to it.
 */

#include <errno.h>
#include <inttypes.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

#define MAX_LOG2_ALIGN 12

static int
check_conf(const struct rmem_dev *dev, const struct rmem_dm_conf *conf)
{
	const struct rmem_dev_info *info = rmem_obj_info(&dev->obj);
	int ret;

	ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved));
	if (ret == 0)
		ret = rmem_name_check(conf->name);
	if (ret != 0)
		return ret;
	if ((conf->flags & ~RMEM_DM_FD) != 0)
		return RMEM_FAIL(EINVAL, "%s: device memory: unknown flags: 0x%x", dev->name,
				conf->flags & ~RMEM_DM_FD);
	if ((conf->flags & RMEM_DM_FD) == 0 ? conf->fd != 0 : conf->fd < 0)
		return RMEM_FAIL(EINVAL, "%s: device memory: fd %d %s RMEM_DM_FD", dev->name,
				conf->fd, conf->fd < 0 ? "with" : "without");
	if (conf->log2_align > MAX_LOG2_ALIGN)
		return RMEM_FAIL(EINVAL, "%s: device memory: log2_align out of range: %u (0 to %d)",
				dev->name, conf->log2_align, MAX_LOG2_ALIGN);
	if ((info->capa & RMEM_DEV_CAPA_DM) == 0 || rmem_obj_driver(&dev->obj)->ops.dm == NULL)
		return RMEM_FAIL(EOPNOTSUPP, "%s: not supported by the device: device memory",
				dev->name);
	if (conf->length == 0 || conf->length > info->max_dm_size)
		return RMEM_FAIL(EINVAL,
				"%s: device memory: length out of range: %zu (1 to %" PRIu64 ")",
				dev->name, conf->length, info->max_dm_size);
	return 0;
}

int
rmem_dm_alloc(struct rmem_dev *dev, const struct rmem_dm_conf *conf, struct rmem_dm **dm)
{
	RMEM_CALL(dev);
	struct rmem_dm *new_dm;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret == 0)
		ret = rmem_check_arg(dm, "device memory pointer");
	if (ret == 0)
		ret = check_conf(dev, conf);
	if (ret != 0)
		return ret;
	new_dm = rmem_obj_create(
			&dev->obj, RMEM_OBJ_DM, rmem_obj_driver(&dev->obj)->ops.dm->dm_size, &ret);
	if (new_dm == NULL)
		return ret;
	new_dm->length = conf->length;
	ret = RMEM_OP(new_dm, dm->dm_alloc, new_dm, conf);
	if (ret != 0) {
		rmem_obj_drop(&new_dm->obj, &dev->obj);
		return ret;
	}
	rmem_obj_set_name(&new_dm->obj, conf->name);
	rmem_obj_list(&new_dm->obj);
	*dm = new_dm;
	rmem_trace_dm_alloc(dev->name, new_dm, new_dm->length);
	return 0;
}

int
rmem_dm_free(struct rmem_dm *dm)
{
	RMEM_CALL(dm);
	int ret;

	if (dm == NULL)
		return 0;
	ret = rmem_obj_check(dm, RMEM_OBJ_DM);
	if (ret == 0)
		ret = rmem_obj_kill(&dm->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(dm, dm->dm_free, dm);
	if (ret == 0)
		rmem_trace_dm_free(dm);
	return rmem_obj_end(&dm->obj, &rmem_obj_dev(&dm->obj)->obj, ret);
}

int
rmem_dm_export_fd(struct rmem_dm *dm, int *fd)
{
	RMEM_CALL(dm);
	int ret = rmem_obj_check(dm, RMEM_OBJ_DM);

	if (ret == 0)
		ret = rmem_check_arg(fd, "descriptor pointer");
	return ret != 0 ? ret : RMEM_OP(dm, dm->dm_export_fd, dm, fd);
}

int
rmem_dm_check_range(const struct rmem_dm *dm, uint64_t offset, size_t length)
{
	if (offset <= dm->length && length <= dm->length - offset)
		return 0;
	return RMEM_FAIL(EINVAL,
			"device memory %p: range beyond its end: %zu bytes at offset %" PRIu64
			" (%zu bytes)",
			(const void *)dm, length, offset, dm->length);
}

static int
check_copy(const struct rmem_dm *dm, uint64_t offset, const void *bytes, size_t length)
{
	int ret = rmem_obj_check(dm, RMEM_OBJ_DM);

	if (ret == 0)
		ret = rmem_check_arg(bytes, "memory to copy");
	return ret != 0 ? ret : rmem_dm_check_range(dm, offset, length);
}

int
rmem_dm_copy_to(struct rmem_dm *dm, uint64_t offset, const void *src, size_t length)
{
	RMEM_CALL(dm);
	int ret = check_copy(dm, offset, src, length);

	return ret != 0 ? ret : RMEM_OP(dm, dm->dm_copy_to, dm, offset, src, length);
}

int
rmem_dm_copy_from(struct rmem_dm *dm, uint64_t offset, void *dst, size_t length)
{
	RMEM_CALL(dm);
	int ret = check_copy(dm, offset, dst, length);

	return ret != 0 ? ret : RMEM_OP(dm, dm->dm_copy_from, dm, offset, dst, length);
}

const char *
rmem_dm_name(const struct rmem_dm *dm)
{
	return dm != NULL ? rmem_obj_name(&dm->obj, RMEM_OBJ_DM) : "";
}
