/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fast registration: MRs that requests bind, and their page lists.
 */

#include <errno.h>

#include <rmem_priv.h>

/* Length of a page list, and whether the device has any use for one. */
static int
check_len(struct rmem_dev *dev, uint32_t len)
{
	struct rmem_dev_info info;
	int ret;

	if (len == 0) {
		RMEM_LOG(ERR, "%s: max_page_list_len is 0", dev->name);
		return -EINVAL;
	}
	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	if ((info.capa & RMEM_DEV_CAPA_FAST_REG) == 0) {
		RMEM_LOG(ERR, "%s: no fast registration on this device", dev->name);
		return -EOPNOTSUPP;
	}
	if (len > info.max_page_list_len) {
		RMEM_LOG(ERR, "%s: max_page_list_len %u is not 1 to %u", dev->name, len,
				info.max_page_list_len);
		return -EINVAL;
	}
	return 0;
}

int
rmem_fast_reg_mr_alloc(struct rmem_pd *pd, uint32_t max_page_list_len, struct rmem_mr **mr)
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
	ret = check_len(dev, max_page_list_len);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&pd->obj, __func__);
	if (ret != 0)
		return ret;
	new_mr = rmem_obj_alloc(dev, RMEM_OBJ_MR, rmem_dev_driver(dev)->mr_size);
	if (new_mr == NULL) {
		ret = -ENOMEM;
		goto put_pd;
	}
	new_mr->pd = pd;
	new_mr->type = RMEM_MR_TYPE_FAST_REG;
	new_mr->max_page_list_len = max_page_list_len;
	ret = rmem_dev_ops(dev)->fast_reg_mr_alloc(new_mr);
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

int
rmem_fast_reg_page_list_alloc(struct rmem_dev *dev, uint32_t max_page_list_len,
		struct rmem_fast_reg_page_list **page_list)
{
	struct rmem_fast_reg_page_list *list;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV, __func__);
	if (ret != 0)
		return ret;
	if (page_list == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the page list pointer", dev->name);
		return -EINVAL;
	}
	ret = check_len(dev, max_page_list_len);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&dev->obj, __func__);
	if (ret != 0)
		return ret;
	list = rmem_obj_alloc(dev, RMEM_OBJ_PAGE_LIST, rmem_dev_driver(dev)->page_list_size);
	if (list == NULL) {
		ret = -ENOMEM;
		goto put_dev;
	}
	list->max_page_list_len = max_page_list_len;
	ret = rmem_dev_ops(dev)->page_list_alloc(list);
	if (ret != 0)
		goto free_list;
	*page_list = list;
	return 0;

free_list:
	rmem_obj_free(&list->obj);
put_dev:
	rmem_obj_put(&dev->obj);
	return ret;
}

int
rmem_fast_reg_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	struct rmem_dev *dev;
	int ret;

	if (page_list == NULL)
		return 0;
	ret = rmem_obj_check(page_list, RMEM_OBJ_PAGE_LIST, __func__);
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&page_list->obj, __func__);
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&page_list->obj);
	ret = rmem_dev_ops(dev)->page_list_free(page_list);
	if (ret != 0) {
		rmem_obj_revive(&page_list->obj);
		return ret;
	}
	rmem_obj_free(&page_list->obj);
	rmem_obj_put(&dev->obj);
	return 0;
}
