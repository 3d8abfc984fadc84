/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Imported contexts, PDs, MRs and device memory: handles of the same objects, of which one destroys
 * the object and the others are unimported. In other processes: test_import_processes.c.
 */

#include "own_qp.h"

#define SIZE 4096u
#define PART 64u

static uint8_t mem[SIZE];
static struct objects own;

/* The same objects by other handles. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} other;

static void
import(void)
{
	other.context = ibv_import_device(dup(own.context->cmd_fd));
	HOLDS(other.context != NULL && other.context->device == own.context->device);
	other.pd = ibv_import_pd(other.context, own.pd->handle);
	HOLDS(other.pd != NULL && other.pd->context == other.context);
	HOLDS(other.pd->handle == own.pd->handle);
	other.mr = ibv_import_mr(other.pd, own.mr->handle);
	HOLDS(other.mr != NULL && other.mr->addr == NULL && other.mr->length == SIZE);
	HOLDS(other.mr->lkey == own.mr->lkey && other.mr->rkey == own.mr->rkey);
	HOLDS(other.mr->pd == other.pd && other.mr->handle == own.mr->handle);
}

/* A QP of the imported PD uses the memory of the MR. */
static void
data_is_shared(void)
{
	const struct ibv_sge from = {(uintptr_t)mem, PART, other.mr->lkey};

	other.cq = ibv_create_cq(other.context, 4, NULL, NULL, 0);
	HOLDS(other.cq != NULL);
	other.qp = create_rc(other.pd, other.cq, 4);
	HOLDS(other.qp != NULL);
	connect_own(other.qp);
	memset(mem, 7, PART);
	HOLDS(write_to(other.qp, from, (uintptr_t)mem + PART, other.mr->rkey) == IBV_WC_SUCCESS);
	HOLDS(memcmp(mem, mem + PART, PART) == 0);
	/* Objects of the two contexts do not mix. */
	errno = 0;
	HOLDS(create_rc(other.pd, own.cq, 4) == NULL && errno == EINVAL);
	HOLDS(create_rc(own.pd, other.cq, 4) == NULL && errno == EINVAL);
}

static void
imported_mr_is_not_changed(void)
{
	HOLDS(ibv_rereg_mr(other.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ==
			IBV_REREG_MR_ERR_INPUT);
	HOLDS(errno == EINVAL);
}

static void
unknown_handles_are_refused(void)
{
	struct ibv_context *stranger = open_device("soft0");

	errno = 0;
	HOLDS(ibv_import_pd(other.context, 0) == NULL && errno == ENOENT);
	errno = 0;
	HOLDS(ibv_import_pd(other.context, own.mr->handle) == NULL && errno == ENOENT);
	errno = 0;
	HOLDS(ibv_import_pd(other.context, UINT32_MAX) == NULL && errno == ENOENT);
	errno = 0;
	HOLDS(ibv_import_mr(other.pd, own.pd->handle) == NULL && errno == ENOENT);
	errno = 0;
	HOLDS(ibv_import_dm(other.context, own.pd->handle) == NULL && errno == ENOENT);
	/* Of a context that was opened separately. */
	errno = 0;
	HOLDS(ibv_import_pd(stranger, own.pd->handle) == NULL && errno == ENOENT);
	HOLDS(ibv_close_device(stranger) == 0);
	errno = 0;
	HOLDS(ibv_import_device(STDERR_FILENO) == NULL && errno == EINVAL);
	errno = 0;
	HOLDS(ibv_import_device(-1) == NULL && errno == EINVAL);
}

/* QPs outlive the handle of their PD, as with a device of the kernel. */
static void
unimport_keeps_the_objects(void)
{
	ibv_unimport_mr(other.mr);
	ibv_unimport_pd(other.pd);
	HOLDS(ibv_dereg_mr(other.mr) == ENOENT && ibv_dealloc_pd(other.pd) == ENOENT);
	HOLDS(ibv_destroy_qp(other.qp) == 0 && ibv_destroy_cq(other.cq) == 0);
	HOLDS(post_write(own.qp, own.mr, 1) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	/* The first handles are not imported. */
	ibv_unimport_mr(own.mr);
	ibv_unimport_pd(own.pd);
	HOLDS(post_write(own.qp, own.mr, 1) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_SUCCESS);
	HOLDS(ibv_close_device(other.context) == 0);
}

/* Any handle destroys the object; the others are of none then. */
static void
destroyed_object_has_no_handles(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(own.context), *twin;
	struct ibv_mr *mr, *copy;

	other.context = ibv_import_device(dup(own.context->cmd_fd));
	HOLDS(pd != NULL && other.context != NULL);
	twin = ibv_import_pd(other.context, pd->handle);
	HOLDS(twin != NULL);
	mr = ibv_reg_mr(twin, mem, SIZE, WRITABLE);
	HOLDS(mr != NULL && ibv_dealloc_pd(pd) == EBUSY);
	copy = ibv_import_mr(pd, mr->handle);
	HOLDS(copy != NULL && ibv_dereg_mr(copy) == 0);
	HOLDS(ibv_dereg_mr(mr) == ENOENT);
	errno = 0;
	HOLDS(ibv_import_mr(pd, mr->handle) == NULL && errno == ENOENT);
	ibv_unimport_mr(mr);
	HOLDS(ibv_dealloc_pd(twin) == 0);
	errno = 0;
	HOLDS(ibv_reg_mr(pd, mem, SIZE, 0) == NULL && errno == ENOENT);
	ibv_unimport_pd(pd);
	HOLDS(ibv_close_device(other.context) == 0);
}

static void
parent_domain_keeps_its_pd(void)
{
	struct ibv_parent_domain_init_attr init = {0};
	struct ibv_pd *pd = ibv_alloc_pd(own.context), *parent;

	other.context = ibv_import_device(dup(own.context->cmd_fd));
	HOLDS(pd != NULL && other.context != NULL);
	init.pd = ibv_import_pd(other.context, pd->handle);
	parent = ibv_alloc_parent_domain(other.context, &init);
	HOLDS(parent != NULL && ibv_dealloc_pd(pd) == EBUSY && ibv_dealloc_pd(init.pd) == EBUSY);
	HOLDS(ibv_dealloc_pd(parent) == 0 && ibv_dealloc_pd(pd) == 0);
	ibv_unimport_pd(init.pd);
	HOLDS(ibv_close_device(other.context) == 0);
}

static void
device_memory_is_shared(void)
{
	struct ibv_dm *dm = ibv_alloc_dm(own.context, &(struct ibv_alloc_dm_attr){.length = SIZE});
	uint32_t in = 0x12345678, out = 0;
	struct ibv_dm *twin;
	struct ibv_mr *mr;

	other.context = ibv_import_device(dup(own.context->cmd_fd));
	HOLDS(dm != NULL && other.context != NULL);
	twin = ibv_import_dm(other.context, dm->handle);
	HOLDS(twin != NULL && twin->handle == dm->handle);
	HOLDS(ibv_memcpy_to_dm(dm, 8, &in, 4) == 0 && ibv_memcpy_from_dm(&out, twin, 8, 4) == 0);
	HOLDS(in == out);
	ibv_unimport_dm(dm); /* not imported */
	mr = ibv_reg_dm_mr(own.pd, dm, 0, SIZE, IBV_ACCESS_ZERO_BASED);
	HOLDS(mr != NULL && ibv_free_dm(twin) == EBUSY);
	ibv_unimport_dm(twin);
	HOLDS(ibv_free_dm(twin) == ENOENT && ibv_free_dm(dm) == EBUSY);
	HOLDS(ibv_dereg_mr(mr) == 0);
	twin = ibv_import_dm(other.context, dm->handle);
	HOLDS(twin != NULL && ibv_free_dm(twin) == 0 && ibv_free_dm(dm) == ENOENT);
	HOLDS(ibv_memcpy_from_dm(&out, dm, 8, 4) == ENOENT);
	ibv_unimport_dm(dm);
	HOLDS(ibv_close_device(other.context) == 0);
}

int
main(void)
{
	own = open_objects(mem, sizeof(mem), 4);
	import();
	data_is_shared();
	imported_mr_is_not_changed();
	unknown_handles_are_refused();
	unimport_keeps_the_objects();
	destroyed_object_has_no_handles();
	parent_domain_keeps_its_pd();
	device_memory_is_shared();
	close_objects(&own);
	return 0;
}
