/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include "stub_driver.h"
#include "test.h"

struct stub_driver stub;

static int
stub_dev_create(struct rmem_dev *dev, const char *args)
{
	RTE_SET_USED(args);
	stub.nb_calls++;
	rmem_dev_drv(dev)->priv = &stub;
	return 0;
}

static void
stub_dev_close(struct rmem_dev *dev)
{
	rmem_dev_drv(dev)->priv = NULL;
}

int
stub_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info)
{
	RTE_SET_USED(dev);
	info->capa = stub.capa;
	info->access = stub.access;
	info->max_mr_size = UINT64_C(1) << 40;
	info->max_msg_size = UINT64_C(1) << 31;
	info->max_pd = info->max_mr = info->max_mw = info->max_cq = info->max_qp = 64;
	info->max_cqe = info->max_send_wr = info->max_recv_wr = 64;
	info->max_send_sge = info->max_recv_sge = 4;
	info->max_inline_data = 64;
	info->max_page_list_len = 8;
	info->page_size_cap = UINT64_C(1) << 12;
	info->max_mkey_entries = 1;
	return 0;
}

static int
stub_said(void)
{
	stub.nb_calls++;
	return stub.ret;
}

#define STUB_OP(name, ...)                                                                         \
	static int stub_##name(__VA_ARGS__)                                                        \
	{                                                                                          \
		return stub_said();                                                                \
	}

STUB_OP(pd, struct rmem_pd *pd __rte_unused)
STUB_OP(mr_dereg, struct rmem_mr *mr __rte_unused)
STUB_OP(mw_dealloc, struct rmem_mw *mw __rte_unused)
STUB_OP(page_list, struct rmem_fast_reg_page_list *list __rte_unused)
STUB_OP(cq_create, struct rmem_cq *cq __rte_unused, const struct rmem_cq_conf *conf __rte_unused)
STUB_OP(cq_destroy, struct rmem_cq *cq __rte_unused)
STUB_OP(qp_create, struct rmem_qp *qp __rte_unused, const struct rmem_qp_conf *conf __rte_unused)
STUB_OP(qp_destroy, struct rmem_qp *qp __rte_unused)

static int
stub_mr_alloc(struct rmem_mr *mr)
{
	mr->lkey = mr->rkey = ++stub.next_key << 8;
	return stub_said();
}

static int
stub_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	RTE_SET_USED(attr);
	return stub_mr_alloc(mr);
}

static int
stub_mw_alloc(struct rmem_mw *mw)
{
	mw->rkey = ++stub.next_key << 8;
	return stub_said();
}

static int
stub_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	stub.nb_posted += nb_wr;
	return nb_wr;
}

static int
stub_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(qp);
	RTE_SET_USED(wr);
	return nb_wr;
}

static int
stub_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	RTE_SET_USED(cq);
	RTE_SET_USED(wc);
	RTE_SET_USED(nb_wc);
	return stub.poll_ret;
}

struct rmem_driver
stub_driver_bare(const char *name)
{
	return (struct rmem_driver){.version = RMEM_DRIVER_VERSION,
			.name = name,
			.pd_size = sizeof(struct rmem_pd),
			.mr_size = sizeof(struct rmem_mr_drv),
			.page_list_size = sizeof(struct rmem_fast_reg_page_list),
			.cq_size = sizeof(struct rmem_cq),
			.qp_size = sizeof(struct rmem_qp_drv),
			.ops.dev_create = stub_dev_create,
			.ops.dev_close = stub_dev_close,
			.ops.dev_info_get = stub_dev_info_get,
			.fp.post_send = stub_post_send,
			.fp.post_recv = stub_post_recv,
			.fp.poll_cq = stub_poll_cq};
}

struct rmem_driver
stub_driver_full(const char *name)
{
	struct rmem_driver driver = stub_driver_bare(name);

	driver.mw_size = sizeof(struct rmem_mw);
	driver.ops.pd_alloc = stub_pd;
	driver.ops.pd_dealloc = stub_pd;
	driver.ops.mr_reg = stub_mr_reg;
	driver.ops.mr_dereg = stub_mr_dereg;
	driver.ops.fast_reg_mr_alloc = stub_mr_alloc;
	driver.ops.mkey_alloc = stub_mr_alloc;
	driver.ops.page_list_alloc = stub_page_list;
	driver.ops.page_list_free = stub_page_list;
	driver.ops.mw_alloc = stub_mw_alloc;
	driver.ops.mw_dealloc = stub_mw_dealloc;
	driver.ops.cq_create = stub_cq_create;
	driver.ops.cq_destroy = stub_cq_destroy;
	driver.ops.qp_create = stub_qp_create;
	driver.ops.qp_destroy = stub_qp_destroy;
	return driver;
}

void
stub_register(const struct rmem_driver *driver)
{
	int ret = rmem_driver_register(driver);

	TEST_SKIP_IF(ret == -ENOSPC, "another test has filled the table of drivers");
	TEST_ASSERT(ret == 0 || ret == -EEXIST);
	memset(&stub, 0, sizeof(stub));
}
