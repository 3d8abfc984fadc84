/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fast registration: MRs that requests bind, and their page lists.
 */

#include <errno.h>

#include <rmem_mr_priv.h>
#include <rmem_trace_priv.h>

static uint32_t
max_len_of(const struct rmem_dev_info *info)
{
	return info->max_page_list_len;
}

static int
alloc(struct rmem_mr *mr, uint32_t max_page_list_len)
{
	mr->max_page_list_len = max_page_list_len;
	return rmem_dev_ops(rmem_obj_dev(&mr->obj))->fast_reg_mr_alloc(mr);
}

static const struct rmem_mr_bound fast_reg = {
		.name = "fast registration",
		.size_name = "max_page_list_len",
		.capa = RMEM_DEV_CAPA_FAST_REG,
		.type = RMEM_MR_TYPE_FAST_REG,
		.max_size = max_len_of,
		.alloc = alloc,
};

static int
fast_reg_mr_alloc(struct rmem_pd *pd, uint32_t max_page_list_len, struct rmem_mr **mr)
{
	return rmem_mr_alloc_bound(pd, &fast_reg, max_page_list_len, mr, "rmem_fast_reg_mr_alloc");
}

int
rmem_fast_reg_mr_alloc(struct rmem_pd *pd, uint32_t max_page_list_len, struct rmem_mr **mr)
{
	return rmem_trace_call(__func__, pd, fast_reg_mr_alloc(pd, max_page_list_len, mr));
}

static int
fast_reg_page_list_alloc(struct rmem_dev *dev, uint32_t max_page_list_len,
		struct rmem_fast_reg_page_list **page_list)
{
	struct rmem_fast_reg_page_list *list;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV, "rmem_fast_reg_page_list_alloc");
	if (ret != 0)
		return ret;
	if (page_list == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the page list pointer", dev->name);
		return -EINVAL;
	}
	ret = rmem_mr_check_bound(dev, &fast_reg, max_page_list_len);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&dev->obj, "rmem_fast_reg_page_list_alloc");
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
rmem_fast_reg_page_list_alloc(struct rmem_dev *dev, uint32_t max_page_list_len,
		struct rmem_fast_reg_page_list **page_list)
{
	return rmem_trace_call(
			__func__, dev, fast_reg_page_list_alloc(dev, max_page_list_len, page_list));
}

static int
fast_reg_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	struct rmem_dev *dev;
	int ret;

	if (page_list == NULL)
		return 0;
	ret = rmem_obj_check(page_list, RMEM_OBJ_PAGE_LIST, "rmem_fast_reg_page_list_free");
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&page_list->obj, "rmem_fast_reg_page_list_free");
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

int
rmem_fast_reg_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	return rmem_trace_call(__func__, page_list, fast_reg_page_list_free(page_list));
}
