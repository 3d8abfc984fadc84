/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fast registration: MRs that requests bind, and their page lists.
 */

#include <errno.h>

#include "rmem_mr_priv.h"

static uint32_t
max_len_of(const struct rmem_dev_info *info)
{
	return info->max_page_list_len;
}

static int
alloc(struct rmem_mr *mr)
{
	return RMEM_OP(mr, fast_reg_mr_alloc, mr);
}

static const struct rmem_mr_bound fast_reg = {
		.name = "fast registration",
		.size_name = "max_page_list_len",
		.capa = RMEM_DEV_CAPA_FAST_REG,
		.type = RMEM_MR_TYPE_FAST_REG,
		.max_size = max_len_of,
		.alloc = alloc,
};

int
rmem_fast_reg_mr_alloc(struct rmem_pd *pd, uint32_t max_page_list_len, struct rmem_mr **mr)
{
	RMEM_CALL(pd);

	return rmem_mr_alloc_bound(pd, &fast_reg, max_page_list_len, mr);
}

int
rmem_fast_reg_page_list_alloc(struct rmem_dev *dev, uint32_t max_page_list_len,
		struct rmem_fast_reg_page_list **page_list)
{
	RMEM_CALL(dev);
	struct rmem_fast_reg_page_list *list;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(page_list, "page list pointer");
	if (ret == 0)
		ret = rmem_mr_check_bound(dev, &fast_reg, max_page_list_len);
	if (ret != 0)
		return ret;
	list = rmem_obj_create(&dev->obj, RMEM_OBJ_PAGE_LIST,
			rmem_obj_driver(&dev->obj)->page_list_size, &ret);
	if (list == NULL)
		return ret;
	list->max_page_list_len = max_page_list_len;
	ret = RMEM_OP(dev, page_list_alloc, list);
	if (ret == 0)
		*page_list = list;
	else
		rmem_obj_drop(&list->obj, &dev->obj);
	return ret;
}

int
rmem_fast_reg_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	RMEM_CALL(page_list);
	int ret;

	if (page_list == NULL)
		return 0;
	ret = rmem_obj_check(page_list, RMEM_OBJ_PAGE_LIST);
	if (ret == 0)
		ret = rmem_obj_kill(&page_list->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(page_list, page_list_free, page_list);
	return rmem_obj_end(&page_list->obj, &rmem_obj_dev(&page_list->obj)->obj, ret);
}
