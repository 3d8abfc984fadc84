/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Two devices in one program, which are used in turn; one of them can be of the kernel. Each works
 * as if alone, and refuses the objects of the other. With fork, a child uses both, too.
 *
 * usage: test-devices DEVICE OTHER [fork]
 */

#include <endian.h>

#include "own_qp.h"

#define SIZE   4096
#define ROUNDS 100
#define WAIT_S 600

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	_Alignas(SIZE) uint8_t buf[2 * SIZE]; /* of mr; the second half is the target */
};

static struct side sides[2];

/* With a QP connected to itself. */
static void
create(struct side *side, const char *name)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			.path_mtu = IBV_MTU_1024,
			.timeout = 14,
			.retry_cnt = 7,
			.max_rd_atomic = 1,
			.max_dest_rd_atomic = 1,
			.ah_attr = {.is_global = 1, .grh = {.hop_limit = 64}}};

	side->context = open_device(name);
	side->pd = ibv_alloc_pd(side->context);
	side->channel = ibv_create_comp_channel(side->context);
	HOLDS(side->pd != NULL && side->channel != NULL);
	side->cq = ibv_create_cq(side->context, 16, side, side->channel, 0);
	side->mr = ibv_reg_mr(side->pd, side->buf, sizeof(side->buf), WRITABLE);
	side->srq = ibv_create_srq(side->pd, &init);
	HOLDS(side->cq != NULL && side->mr != NULL && side->srq != NULL);
	side->qp = create_rc(side->pd, side->cq, 4);
	HOLDS(side->qp != NULL && ibv_query_gid(side->context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	attr.dest_qp_num = side->qp->qp_num;
	connect_qp(side->qp, attr);
}

static void
post(struct side *side, uint8_t value)
{
	memset(side->buf, value, SIZE);
	HOLDS(ibv_req_notify_cq(side->cq, 0) == 0);
	HOLDS(post_write(side->qp, side->mr, value) == 0);
}

static void
complete(struct side *side, uint8_t value)
{
	time_t end = time(NULL) + WAIT_S;
	struct ibv_wc wc = {.wr_id = 0};
	struct ibv_cq *cq;
	void *arg;
	int n = 0;

	HOLDS(ibv_get_cq_event(side->channel, &cq, &arg) == 0 && cq == side->cq && arg == side);
	ibv_ack_cq_events(cq, 1);
	while (n == 0 && time(NULL) < end)
		n = ibv_poll_cq(side->cq, 1, &wc);
	HOLDS(n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == value);
	HOLDS(wc.qp_num == side->qp->qp_num);
	HOLDS(side->buf[SIZE] == value && memcmp(side->buf, side->buf + SIZE, SIZE) == 0);
}

/* Whether a call failed with an errno for an argument that is wrong. */
static bool
is_refused(const void *object)
{
	return object == NULL && (errno == EINVAL || errno == ENOENT);
}

static void
refuses_objects_of(struct side *own, struct side *other)
{
	HOLDS(is_refused(ibv_create_cq(own->context, 4, NULL, other->channel, 0)));
	HOLDS(is_refused(create_rc(own->pd, other->cq, 4)));
	HOLDS(is_refused(create_qp_of(IBV_QPT_RC, own->pd, own->cq, other->srq,
			(struct ibv_qp_cap){4, 0, 1, 0, 0})));
	HOLDS(is_refused(create_rc(other->pd, own->cq, 4)));
	HOLDS(ibv_rereg_mr(own->mr, IBV_REREG_MR_CHANGE_PD, other->pd, NULL, 0, 0) != 0);
	HOLDS(ibv_dealloc_pd(own->pd) == EBUSY);
}

static void
destroy(struct side *side)
{
	HOLDS(ibv_destroy_qp(side->qp) == 0 && ibv_destroy_srq(side->srq) == 0);
	HOLDS(ibv_destroy_cq(side->cq) == 0);
	HOLDS(ibv_destroy_comp_channel(side->channel) == 0 && ibv_dereg_mr(side->mr) == 0);
	HOLDS(ibv_dealloc_pd(side->pd) == 0 && ibv_close_device(side->context) == 0);
}

static void
expect_line(const char *dir, const char *name, const char *expected)
{
	char path[512], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	HOLDS(file != NULL && fgets(line, sizeof(line), file) != NULL);
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	HOLDS(strcmp(line, expected) == 0);
}

/* The files of a device are its own. */
static void
has_files(const struct side *side)
{
	struct ibv_device *device = side->context->device;
	uint64_t guid = be64toh(ibv_get_device_guid(device));
	char text[32];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
			(unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
			(unsigned int)(guid & 0xffff));
	expect_line(device->ibdev_path, "node_guid", text);
	expect_line(device->dev_path, "ibdev", device->name);
}

/* In a child, whose devices are new: objects of both, and queries of contexts that it inherits. */
static void
use_in_child(char **argv)
{
	struct ibv_device_attr attr;
	pid_t pid = fork();
	int i;

	if (pid == 0) {
		for (i = 0; i < 2; i++)
			HOLDS(ibv_query_device(sides[i].context, &attr) == 0);
		for (i = 0; i < 2; i++) {
			create(&sides[i], argv[i + 1]);
			post(&sides[i], 2);
			complete(&sides[i], 2);
			HOLDS(ibv_query_device(sides[i].context, &attr) == 0);
			HOLDS(attr.node_guid == ibv_get_device_guid(sides[i].context->device));
		}
		_exit(0);
	}
	wait_child(pid);
}

int
main(int argc, char **argv)
{
	int i;

	HOLDS(argc == 3 || (argc == 4 && strcmp(argv[3], "fork") == 0));
	for (i = 0; i < 2; i++)
		create(&sides[i], argv[i + 1]);
	HOLDS(ibv_get_device_guid(sides[0].context->device) !=
			ibv_get_device_guid(sides[1].context->device));
	for (i = 0; i < 2; i++)
		has_files(&sides[i]);
	for (i = 0; i < ROUNDS; i++) {
		post(&sides[0], (uint8_t)i);
		post(&sides[1], (uint8_t)~i);
		complete(&sides[1], (uint8_t)~i);
		complete(&sides[0], (uint8_t)i);
	}
	refuses_objects_of(&sides[0], &sides[1]);
	refuses_objects_of(&sides[1], &sides[0]);
	if (argc == 4)
		use_in_child(argv);
	for (i = 0; i < 2; i++) {
		post(&sides[i], 1);
		complete(&sides[i], 1);
		destroy(&sides[i]);
	}
	return 0;
}
