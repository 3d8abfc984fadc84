/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory registration of libfabric on soft0, by the provider verbs: fi_mr_reg(), fi_mr_regv() and
 * fi_mr_regattr(), and keys of the provider. devtools/ecosystem.sh compiles and runs it. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "../holds.h"

#define SIZE  4096
#define ALL   (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define A_KEY 0x1234

static uint8_t buf[2][SIZE];
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static void
open_domain(void)
{
	struct fi_info *hints = fi_allocinfo();

	HOLDS(hints != NULL);
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	hints->mode = ~UINT64_C(0);
	hints->domain_attr->mr_mode =
			FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->name = strdup("soft0-dgram");
	hints->fabric_attr->prov_name = strdup("verbs");
	HOLDS(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0);
	fi_freeinfo(hints);
	HOLDS(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	HOLDS(fi_domain(fabric, info, &domain, NULL) == 0);
}

/* The provider gives keys: a requested one has no effect, and each region has another one. */
static void
keys_are_of_provider(void)
{
	struct fid_mr *mr[2];
	int i;

	for (i = 0; i < 2; i++)
		HOLDS(fi_mr_reg(domain, buf[i], SIZE, ALL, 0, A_KEY, 0, &mr[i], NULL) == 0);
	HOLDS(fi_mr_key(mr[0]) != FI_KEY_NOTAVAIL && fi_mr_key(mr[0]) != A_KEY);
	HOLDS(fi_mr_key(mr[0]) != fi_mr_key(mr[1]));
	HOLDS(fi_mr_desc(mr[0]) != NULL && fi_mr_desc(mr[0]) != fi_mr_desc(mr[1]));
	HOLDS(fi_close(&mr[0]->fid) == 0 && fi_close(&mr[1]->fid) == 0);
}

static void
one_region_by_vector(void)
{
	struct iovec iov[2] = {{buf[0], SIZE}, {buf[1], SIZE}};
	struct fi_mr_attr attr = {.mr_iov = iov, .iov_count = 1, .access = ALL};
	struct fid_mr *mr;

	HOLDS(fi_mr_regv(domain, iov, 1, ALL, 0, 0, 0, &mr, NULL) == 0);
	HOLDS(fi_close(&mr->fid) == 0);
	HOLDS(fi_mr_regattr(domain, &attr, 0, &mr) == 0 && fi_mr_desc(mr) != NULL);
	HOLDS(fi_close(&mr->fid) == 0);
	HOLDS(info->domain_attr->mr_iov_limit == 1);
	HOLDS(fi_mr_regv(domain, iov, 2, ALL, 0, 0, 0, &mr, NULL) == -FI_EINVAL);
}

/* The device refuses addresses without memory, and the provider returns its errno. */
static void
memory_must_exist(void)
{
	struct fid_mr *mr;

	HOLDS(fi_mr_reg(domain, (void *)(uintptr_t)4096, SIZE, ALL, 0, 0, 0, &mr, NULL) < 0);
}

int
main(void)
{
	open_domain();
	keys_are_of_provider();
	one_region_by_vector();
	memory_must_exist();
	HOLDS(fi_close(&domain->fid) == 0 && fi_close(&fabric->fid) == 0);
	fi_freeinfo(info);
	puts("libfabric registered memory of soft0");
	return 0;
}
