/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory registration of libfabric on soft0, by the provider verbs: fi_mr_reg(), fi_mr_regv() and
 * fi_mr_regattr(), keys of the provider, what it refuses, and counters, which are those of ofi_rxd.
 * devtools/ecosystem.sh compiles and runs it. */

#include <string.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "../holds.h"

#define SIZE  4096
#define ALL   (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define A_KEY 0x1234

static uint8_t buf[2][SIZE];
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

/* Fill info; 0 or an error of libfabric. */
static int
find(enum fi_ep_type type, const char *provider, const char *name, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	HOLDS(hints != NULL);
	hints->ep_attr->type = type;
	hints->caps = type == FI_EP_MSG ? FI_MSG | FI_RMA : FI_MSG;
	hints->mode = ~UINT64_C(0);
	hints->domain_attr->mr_mode = mr_mode;
	hints->domain_attr->name = strdup(name);
	hints->fabric_attr->prov_name = strdup(provider);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	return ret;
}

static void
open_domain(void)
{
	HOLDS(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	HOLDS(fi_domain(fabric, info, &domain, NULL) == 0);
}

static void
close_domain(void)
{
	HOLDS(fi_close(&domain->fid) == 0 && fi_close(&fabric->fid) == 0);
	fi_freeinfo(info);
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

/* Regions have no counters and endpoints, and are valid at once. Flags are not checked. */
static void
calls_that_the_provider_lacks_are_refused(void)
{
	const struct iovec iov = {buf[0], SIZE};
	struct fid_mr *mr;

	HOLDS(fi_mr_reg(domain, buf[0], SIZE, ALL, 0, 0, FI_RMA_EVENT, &mr, NULL) == 0);
	HOLDS(fi_mr_bind(mr, &domain->fid, 0) == -FI_ENOSYS);
	HOLDS(fi_mr_enable(mr) == -FI_ENOSYS);
	HOLDS(fi_mr_refresh(mr, &iov, 1, 0) == -FI_ENOSYS);
	HOLDS(fi_close(&mr->fid) == 0);
}

/* The provider has none: an entry of its table is missing, so that fi_cntr_open() would jump to 0
 * (libfabric 1.17, prov/verbs/src/verbs_domain.c:295), or returns that error. */
static void
provider_has_no_counters(void)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *cntr;

	if (domain->ops->cntr_open != NULL)
		HOLDS(fi_cntr_open(domain, &attr, &cntr, NULL) == -FI_ENOSYS);
}

/* A message to itself is counted. */
static void
counters_of_ofi_rxd_count(void)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fid_cntr *sent, *received;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	uint8_t name[256];
	size_t len = sizeof(name);
	fi_addr_t self;

	HOLDS(fi_cntr_open(domain, &attr, &sent, NULL) == 0);
	HOLDS(fi_cntr_open(domain, &attr, &received, NULL) == 0);
	HOLDS(fi_cq_open(domain, &cq_attr, &cq, NULL) == 0);
	HOLDS(fi_av_open(domain, &av_attr, &av, NULL) == 0);
	HOLDS(fi_endpoint(domain, info, &ep, NULL) == 0);
	HOLDS(fi_ep_bind(ep, &av->fid, 0) == 0);
	HOLDS(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV) == 0);
	HOLDS(fi_ep_bind(ep, &sent->fid, FI_SEND) == 0);
	HOLDS(fi_ep_bind(ep, &received->fid, FI_RECV) == 0);
	HOLDS(fi_enable(ep) == 0);
	HOLDS(fi_cntr_read(sent) == 0 && fi_cntr_set(sent, 5) == 0 && fi_cntr_add(sent, 1) == 0);
	HOLDS(fi_getname(&ep->fid, name, &len) == 0);
	HOLDS(fi_av_insert(av, name, 1, &self, 0, NULL) == 1);
	HOLDS(fi_recv(ep, buf[1], 8, NULL, FI_ADDR_UNSPEC, NULL) == 0);
	while (fi_send(ep, buf[0], 8, NULL, self, NULL) == -FI_EAGAIN)
		(void)fi_cntr_read(sent);
	while (fi_cntr_read(sent) != 7 || fi_cntr_read(received) != 1)
		; /* these make progress */
	HOLDS(fi_cntr_readerr(sent) == 0);
	HOLDS(fi_close(&ep->fid) == 0 && fi_close(&av->fid) == 0 && fi_close(&cq->fid) == 0);
	HOLDS(fi_close(&sent->fid) == 0 && fi_close(&received->fid) == 0);
}

int
main(void)
{
	const int modes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

	HOLDS(find(FI_EP_DGRAM, "verbs", "soft0-dgram", modes) == 0);
	open_domain();
	keys_are_of_provider();
	one_region_by_vector();
	memory_must_exist();
	calls_that_the_provider_lacks_are_refused();
	provider_has_no_counters();
	close_domain();
	/* It needs an interface besides the loopback one. */
	if (find(FI_EP_MSG, "verbs", "soft0", modes) == 0) {
		open_domain();
		keys_are_of_provider();
		provider_has_no_counters();
		close_domain();
		/* A program without FI_MR_PROV_KEY requests its keys. */
		HOLDS(find(FI_EP_MSG, "verbs", "soft0", modes & ~FI_MR_PROV_KEY) == -FI_ENODATA);
	}
	HOLDS(find(FI_EP_RDM, "verbs;ofi_rxd", "soft0-dgram", modes) == 0);
	open_domain();
	counters_of_ofi_rxd_count();
	close_domain();
	puts("libfabric registered memory of soft0");
	return 0;
}
