/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Indirect keys: MRs over ranges of other keys.
 */

#include <errno.h>

#include <rmem_priv.h>

static int
check_entries(struct rmem_dev *dev, uint32_t max_entries)
{
	struct rmem_dev_info info;
	int ret;

	if (max_entries == 0) {
		RMEM_LOG(ERR, "%s: max_entries is 0", dev->name);
		return -EINVAL;
	}
	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	if ((info.capa & RMEM_DEV_CAPA_UMR) == 0) {
		RMEM_LOG(ERR, "%s: no indirect keys on this device", dev->name);
		return -EOPNOTSUPP;
	}
	if (max_entries > info.max_mkey_entries) {
		RMEM_LOG(ERR, "%s: max_entries %u is not 1 to %u", dev->name, max_entries,
				info.max_mkey_entries);
		return -EINVAL;
	}
	return 0;
}

int
rmem_mkey_alloc(struct rmem_pd *pd, uint32_t max_entries, struct rmem_mr **mr)
{
	struct rmem_dev *dev;
	struct rmem_mr *new_mr;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD, __func__);
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&pd->obj);
	if (mr == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the MR pointer", dev->name);
		return -EINVAL;
	}
	ret = check_entries(dev, max_entries);
	if (ret == 0)
		ret = rmem_obj_get(&pd->obj, __func__);
	if (ret != 0)
		return ret;
	new_mr = rmem_obj_alloc(dev, RMEM_OBJ_MR, rmem_dev_driver(dev)->mr_size);
	if (new_mr == NULL) {
		ret = -ENOMEM;
		goto put_pd;
	}
	new_mr->pd = pd;
	new_mr->type = RMEM_MR_TYPE_INDIRECT;
	new_mr->max_entries = max_entries;
	ret = rmem_dev_ops(dev)->mkey_alloc(new_mr);
	if (ret != 0)
		goto free_mr;
	*mr = new_mr;
	return 0;

free_mr:
	rmem_obj_free(&new_mr->obj);
put_pd:
	rmem_obj_put(&pd->obj);
	return ret;
}
