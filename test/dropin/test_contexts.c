/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Objects of a context that was opened separately are refused with EINVAL, as by the kernel. */

#include <sys/mman.h>
#include <sys/stat.h>

#include "own_qp.h"

static uint8_t buf[4096];

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *one, *two;
	struct ibv_td *td;
	struct ibv_dm *dm;
	struct ibv_ah *ah;
	struct ibv_qp *qp, *ud;
};

/* The call fails with NULL and EINVAL. */
#define IS_REFUSED(call)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		HOLDS((call) == NULL && errno == EINVAL);                                          \
	} while (0)

static struct ibv_qp *
create_qp(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq, struct ibv_srq *srq,
		enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.qp_type = type,
			.send_cq = send_cq,
			.recv_cq = recv_cq,
			.srq = srq,
			.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1}};

	return ibv_create_qp(pd, &init);
}

static void
create(struct side *side)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_port_attr port;

	side->context = context;
	side->pd = ibv_alloc_pd(context);
	side->channel = ibv_create_comp_channel(context);
	side->cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	side->srq = ibv_create_srq(side->pd, &(struct ibv_srq_init_attr){.attr.max_wr = 4});
	side->mr = ibv_reg_mr(
			side->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	side->one = ibv_alloc_mw(side->pd, IBV_MW_TYPE_1);
	side->two = ibv_alloc_mw(side->pd, IBV_MW_TYPE_2);
	side->td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
	side->dm = ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){.length = 64});
	HOLDS(ibv_query_port(context, 1, &port) == 0);
	side->ah = ibv_create_ah(side->pd, &(struct ibv_ah_attr){.dlid = port.lid, .port_num = 1});
	side->qp = create_qp(side->pd, side->cq, side->cq, NULL, IBV_QPT_RC);
	side->ud = create_qp(side->pd, side->cq, side->cq, NULL, IBV_QPT_UD);
	HOLDS(side->channel != NULL && side->srq != NULL && side->mr != NULL && side->one != NULL &&
			side->two != NULL && side->td != NULL && side->dm != NULL &&
			side->ah != NULL && side->qp != NULL && side->ud != NULL);
	start_ud(side->ud, 0);
}

static void
destroy(struct side *side)
{
	HOLDS(ibv_destroy_qp(side->qp) == 0 && ibv_destroy_qp(side->ud) == 0);
	HOLDS(ibv_destroy_ah(side->ah) == 0 && ibv_free_dm(side->dm) == 0);
	HOLDS(ibv_dealloc_td(side->td) == 0);
	HOLDS(ibv_dealloc_mw(side->one) == 0 && ibv_dealloc_mw(side->two) == 0);
	HOLDS(ibv_dereg_mr(side->mr) == 0 && ibv_destroy_srq(side->srq) == 0);
	HOLDS(ibv_destroy_cq(side->cq) == 0 && ibv_destroy_comp_channel(side->channel) == 0);
	HOLDS(ibv_dealloc_pd(side->pd) == 0 && ibv_close_device(side->context) == 0);
}

static void
creation(const struct side *a, const struct side *b)
{
	struct ibv_qp_init_attr_ex qp_init = {.qp_type = IBV_QPT_RC,
			.send_cq = a->cq,
			.recv_cq = a->cq,
			.pd = a->pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.cap.max_send_wr = 1};
	struct ibv_parent_domain_init_attr domain = {.pd = a->pd};
	struct ibv_cq_init_attr_ex cq_init = {
			.cqe = 1, .parent_domain = a->pd, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};

	IS_REFUSED(create_qp(a->pd, b->cq, a->cq, NULL, IBV_QPT_RC));
	IS_REFUSED(create_qp(a->pd, a->cq, b->cq, NULL, IBV_QPT_RC));
	IS_REFUSED(create_qp(a->pd, a->cq, a->cq, b->srq, IBV_QPT_RC));
	IS_REFUSED(create_qp(b->pd, a->cq, a->cq, NULL, IBV_QPT_UD));
	IS_REFUSED(ibv_create_qp_ex(b->context, &qp_init));
	IS_REFUSED(ibv_create_cq(b->context, 1, NULL, a->channel, 0));
	IS_REFUSED(ibv_create_cq_ex(b->context, &cq_init));
	IS_REFUSED(ibv_alloc_parent_domain(b->context, &domain));
	domain.pd = b->pd;
	domain.td = a->td;
	IS_REFUSED(ibv_alloc_parent_domain(b->context, &domain));
	IS_REFUSED(ibv_reg_dm_mr(
			b->pd, a->dm, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
	errno = 0;
	HOLDS(ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_PD, b->pd, NULL, 0, 0) ==
			IBV_REREG_MR_ERR_INPUT);
	HOLDS(errno == EINVAL);
}

static void
requests(const struct side *a, const struct side *b)
{
	struct ibv_mw_bind bind = {.bind_info = {b->mr, (uintptr_t)buf, 8, IBV_ACCESS_REMOTE_READ}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW};

	/* verbs.h compares the PDs of window and MR itself. */
	HOLDS(ibv_bind_mw(a->qp, a->one, &bind) == EPERM);
	HOLDS(a->context->ops.bind_mw(a->qp, a->one, &bind) == EINVAL);
	bind.bind_info.mr = a->mr;
	HOLDS(a->context->ops.bind_mw(a->qp, b->one, &bind) == EINVAL);
	HOLDS(ibv_bind_mw(b->qp, a->one, &bind) == EINVAL);
	wr.bind_mw.mw = a->two;
	wr.bind_mw.bind_info = bind.bind_info;
	wr.bind_mw.bind_info.mr = b->mr;
	HOLDS(ibv_post_send(a->qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.bind_mw.bind_info.mr = a->mr;
	wr.bind_mw.mw = b->two;
	HOLDS(ibv_post_send(a->qp, &wr, &bad) == EINVAL && bad == &wr);
	wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND, .wr.ud = {.ah = b->ah, .remote_qpn = 2}};
	HOLDS(ibv_post_send(a->ud, &wr, &bad) == EINVAL && bad == &wr);
	wr.wr.ud.ah = a->ah;
	HOLDS(ibv_post_send(a->ud, &wr, &bad) == 0);
}

/* A descriptor whose file is of another file system, with that inode number; -1: none. */
static int foreign_fd = -1;
static ino_t foreign_ino;

/* For the library, too: the number of an inode cannot be chosen. */
int
fstat(int fd, struct stat *st)
{
	int ret = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (ret == 0 && fd == foreign_fd) {
		st->st_dev++;
		st->st_ino = foreign_ino;
	}
	return ret;
}

/* The program has closed the descriptor of a context, and opened another file of that number. */
static void
use_descriptor(void)
{
	struct ibv_context *context = open_device("soft0");
	int file = memfd_create("own", MFD_CLOEXEC), fd = context->cmd_fd;
	const uint8_t *bytes;
	struct ibv_pd *pd;
	struct stat st;
	off_t at;

	HOLDS(file >= 0 && fstat(fd, &st) == 0);
	HOLDS(ftruncate(file, st.st_size) == 0 && dup2(file, fd) == fd);
	foreign_ino = st.st_ino;
	foreign_fd = fd;
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, file, 0);
	HOLDS(bytes != MAP_FAILED);
	for (at = 0; at < st.st_size; at++)
		HOLDS(bytes[at] == 0);
	foreign_fd = -1;
	HOLDS(munmap((void *)(uintptr_t)bytes, (size_t)st.st_size) == 0);
	HOLDS(ibv_dealloc_pd(pd) == 0 && close(file) == 0 && ibv_close_device(context) == 0);
}

int
main(void)
{
	struct side a, b;

	use_descriptor();
	create(&a);
	create(&b);
	creation(&a, &b);
	creation(&b, &a);
	requests(&a, &b);
	requests(&b, &a);
	destroy(&a);
	destroy(&b);
	return 0;
}
