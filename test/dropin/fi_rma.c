/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Registered memory of libfabric in use, by the provider verbs: what a region permits, by its
 * descriptor and its key, between two endpoints of type msg; the end of a region; asynchronous
 * registration; modes of registration. devtools/ecosystem.sh compiles and runs it.
 *
 * usage: fi_rma ADDRESS [DEVICE]: one of an interface that is not the loopback one; soft0
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "../holds.h"

#ifdef FI_MR_DMABUF
#define VERSION FI_VERSION(1, 20) /* the first with dma-bufs */
#else
#define VERSION FI_VERSION(1, 17)
#endif

#define SIZE  4096
#define MODES (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

/* The two ends of a connection. An end that has failed is of no use. */
struct pair {
	struct fid_ep *ep[2];
	struct fid_cq *cq[2];
};

static const char *address, *device = "soft0";
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_pep *listener;
static uint8_t own[SIZE], peer[SIZE];

/* Fill *found for endpoints of type msg; 0 or an error of libfabric. */
static int
find(const char *service, uint64_t flags, int mr_mode, struct fi_info **found)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	HOLDS(hints != NULL);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = ~UINT64_C(0);
	hints->domain_attr->mr_mode = mr_mode;
	hints->domain_attr->name = strdup(device);
	hints->fabric_attr->prov_name = strdup("verbs");
	ret = fi_getinfo(VERSION, address, service, flags, hints, found);
	fi_freeinfo(hints);
	return ret;
}

static void
modes_are_those_of_provider(void)
{
	const int needed[] = {FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY};
	struct fi_info *found;
	size_t i;

	HOLDS(find(NULL, 0, MODES, &found) == 0); /* those of FI_MR_BASIC, and FI_MR_LOCAL */
	fi_freeinfo(found);
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		HOLDS(find(NULL, 0, MODES & ~needed[i], &found) == -FI_ENODATA);
}

static struct fid_mr *
reg(void *buf, uint64_t access)
{
	struct fid_mr *mr;

	HOLDS(fi_mr_reg(domain, buf, SIZE, access, 0, 0, 0, &mr, NULL) == 0);
	return mr;
}

static void
expect_event(uint32_t type, struct fi_eq_cm_entry *entry)
{
	uint32_t event = 0;

	HOLDS(fi_eq_sread(eq, &event, entry, sizeof(*entry), -1, 0) >= (ssize_t)sizeof(*entry));
	HOLDS(event == type);
}

static void
open_end(struct pair *pair, int i, struct fi_info *of)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC};

	HOLDS(fi_endpoint(domain, of, &pair->ep[i], NULL) == 0);
	HOLDS(fi_cq_open(domain, &attr, &pair->cq[i], NULL) == 0);
	HOLDS(fi_ep_bind(pair->ep[i], &pair->cq[i]->fid, FI_SEND | FI_RECV) == 0);
	HOLDS(fi_ep_bind(pair->ep[i], &eq->fid, 0) == 0);
	HOLDS(fi_enable(pair->ep[i]) == 0);
}

static struct pair
connect_pair(void)
{
	struct fi_eq_cm_entry entry;
	struct pair pair;

	open_end(&pair, 0, info);
	HOLDS(fi_connect(pair.ep[0], info->dest_addr, NULL, 0) == 0);
	expect_event(FI_CONNREQ, &entry);
	open_end(&pair, 1, entry.info);
	fi_freeinfo(entry.info);
	HOLDS(fi_accept(pair.ep[1], NULL, 0) == 0);
	expect_event(FI_CONNECTED, &entry);
	expect_event(FI_CONNECTED, &entry);
	return pair;
}

/* Events of its end are of no interest. */
static void
close_pair(struct pair *pair)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;
	int i;

	for (i = 0; i < 2; i++)
		HOLDS(fi_close(&pair->ep[i]->fid) == 0 && fi_close(&pair->cq[i]->fid) == 0);
	while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) > 0)
		;
}

/* The error of the next completion of the first end; 0: it is a success. */
static int
completion(struct pair *pair)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry entry;
	ssize_t n = fi_cq_sread(pair->cq[0], &entry, 1, NULL, -1);

	if (n == 1)
		return 0;
	HOLDS(n == -FI_EAVAIL && fi_cq_readerr(pair->cq[0], &error, 0) == 1);
	HOLDS(error.err != 0);
	return error.err;
}

/* Write to, or read from, an address of a key; return the error of the completion. */
static int
transfer_at(bool is_read, const struct fid_mr *local, uint64_t at, uint64_t key)
{
	struct pair pair = connect_pair();
	void *desc = fi_mr_desc((struct fid_mr *)(uintptr_t)local);
	int ret;

	if (is_read)
		HOLDS(fi_read(pair.ep[0], own, SIZE, desc, 0, at, key, NULL) == 0);
	else
		HOLDS(fi_write(pair.ep[0], own, SIZE, desc, 0, at, key, NULL) == 0);
	ret = completion(&pair);
	close_pair(&pair);
	return ret;
}

/* The same with the address of a byte of the peer's buffer. */
static int
transfer(bool is_read, const struct fid_mr *local, size_t offset, uint64_t key)
{
	return transfer_at(is_read, local, (uintptr_t)peer + offset, key);
}

static void
key_and_descriptor_permit_transfers(void)
{
	struct fid_mr *local = reg(own, LOCAL),
		      *remote = reg(peer, FI_REMOTE_READ | FI_REMOTE_WRITE);

	memset(own, 0x5a, SIZE);
	memset(peer, 0, SIZE);
	HOLDS(transfer(false, local, 0, fi_mr_key(remote)) == 0);
	HOLDS(memcmp(own, peer, SIZE) == 0);
	memset(peer, 0x3c, SIZE);
	HOLDS(transfer(true, local, 0, fi_mr_key(remote)) == 0);
	HOLDS(memcmp(own, peer, SIZE) == 0);
	/* One byte past the end, and by the key of another region. */
	HOLDS(transfer(false, local, 1, fi_mr_key(remote)) != 0);
	HOLDS(transfer(false, local, 0, fi_mr_key(local)) != 0);
	HOLDS(fi_close(&remote->fid) == 0);
	HOLDS(fi_close(&local->fid) == 0);
}

/* Nothing is written and read without the right. */
static void
rights_are_those_of_registration(void)
{
	struct fid_mr *local = reg(own, LOCAL), *source = reg(own, FI_SEND | FI_WRITE);
	struct fid_mr *readable = reg(peer, FI_REMOTE_READ), *writable = reg(peer, FI_REMOTE_WRITE);
	uint64_t key = fi_mr_key(readable);

	memset(own, 1, SIZE);
	memset(peer, 2, SIZE);
	HOLDS(transfer(false, local, 0, key) != 0 && peer[0] == 2);
	HOLDS(transfer(true, local, 0, fi_mr_key(writable)) != 0 && own[0] == 1);
	/* A region to write from is no target of a READ. */
	HOLDS(transfer(true, source, 0, key) != 0 && own[0] == 1);
	HOLDS(transfer(false, source, 0, fi_mr_key(writable)) == 0 && peer[0] == 1);
	HOLDS(fi_close(&readable->fid) == 0);
	HOLDS(transfer(true, local, 0, key) != 0);
	HOLDS(fi_close(&writable->fid) == 0);
	HOLDS(fi_close(&local->fid) == 0 && fi_close(&source->fid) == 0);
}

/* The provider uses the context, and ignores an offset. */
static void
context_is_of_the_region(void)
{
	struct fid_mr *mr;

	HOLDS(fi_mr_reg(domain, own, SIZE, LOCAL, SIZE, 0, 0, &mr, &info) == 0);
	HOLDS(mr->fid.fclass == FI_CLASS_MR && mr->fid.context == &info);
	HOLDS(fi_close(&mr->fid) == 0);
}

#ifdef FI_MR_DMABUF
/*
 * A descriptor that can be mapped. The provider requires ib_umem_dmabuf_get in /proc/kallsyms;
 * soft0 does not.
 */
static void
dmabuf_is_registered(void)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);
	struct fi_mr_dmabuf dmabuf = {.fd = fd, .len = SIZE};
	const struct fi_mr_attr attr = {.dmabuf = &dmabuf,
			.iov_count = 1,
			.access = FI_REMOTE_READ | FI_REMOTE_WRITE};
	struct fid_mr *local, *remote;
	uint8_t *mem;
	int ret;

	HOLDS(fd >= 0 && ftruncate(fd, SIZE) == 0);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	HOLDS(mem != MAP_FAILED);
	ret = fi_mr_regattr(domain, &attr, FI_MR_DMABUF, &remote);
	if (ret == -FI_ENOSYS) {
		puts("no FI_MR_DMABUF: /proc/kallsyms has no ib_umem_dmabuf_get");
	} else {
		HOLDS(ret == 0);
		local = reg(own, LOCAL);
		memset(own, 0x77, SIZE);
		HOLDS(transfer_at(false, local, 0, fi_mr_key(remote)) == 0);
		HOLDS(memcmp(own, mem, SIZE) == 0);
		HOLDS(transfer_at(false, local, 1, fi_mr_key(remote)) != 0);
		HOLDS(fi_close(&remote->fid) == 0 && fi_close(&local->fid) == 0);
		puts("FI_MR_DMABUF: registered and written");
	}
	HOLDS(munmap(mem, SIZE) == 0 && close(fd) == 0);
}
#endif

#if FI_MAJOR_VERSION < 2
/*
 * Each registration is an event, with the context. libfabric 2 has no such events, and frees
 * parts of a domain that it refuses to close.
 */
static void
registration_is_reported(void)
{
	struct fid_domain *other;
	struct fi_eq_entry entry;
	uint32_t event = 0;
	struct fid_mr *mr;

	HOLDS(fi_domain(fabric, info, &other, NULL) == 0);
	HOLDS(fi_domain_bind(other, &eq->fid, FI_REG_MR) == 0);
	HOLDS(fi_mr_reg(other, own, SIZE, LOCAL, 0, 0, 0, &mr, &entry) == 0);
	HOLDS(fi_eq_read(eq, &event, &entry, sizeof(entry), 0) == sizeof(entry));
	HOLDS(event == FI_MR_COMPLETE && entry.fid == &mr->fid && entry.context == &entry);
	/* The domain has a region. */
	HOLDS(fi_close(&other->fid) == -FI_EBUSY);
	HOLDS(fi_close(&mr->fid) == 0 && fi_close(&other->fid) == 0);
}
#endif

int
main(int argc, char **argv)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_info *source;

	HOLDS(argc == 2 || argc == 3);
	if (argc == 3)
		device = argv[2];
	/* Its cache registers with all rights and no context, and keeps closed regions. */
	HOLDS(setenv("FI_MR_CACHE_MAX_COUNT", "0", 1) == 0);
	address = argv[1];
	modes_are_those_of_provider();
	HOLDS(find("7471", FI_SOURCE, MODES, &source) == 0);
	HOLDS(find("7471", 0, MODES, &info) == 0);
	HOLDS(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	HOLDS(fi_eq_open(fabric, &attr, &eq, NULL) == 0);
	HOLDS(fi_domain(fabric, info, &domain, NULL) == 0);
	HOLDS(fi_passive_ep(fabric, source, &listener, NULL) == 0);
	HOLDS(fi_pep_bind(listener, &eq->fid, 0) == 0 && fi_listen(listener) == 0);
	context_is_of_the_region();
	key_and_descriptor_permit_transfers();
	rights_are_those_of_registration();
#ifdef FI_MR_DMABUF
	dmabuf_is_registered();
#endif
	HOLDS(fi_close(&listener->fid) == 0);
	HOLDS(fi_close(&domain->fid) == 0);
#if FI_MAJOR_VERSION < 2
	registration_is_reported();
#endif
	HOLDS(fi_close(&eq->fid) == 0 && fi_close(&fabric->fid) == 0);
	fi_freeinfo(source);
	fi_freeinfo(info);
	puts("libfabric transferred by regions of soft0");
	return 0;
}
