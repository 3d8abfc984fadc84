/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The device and the process: fork(), signals, and threads that post while another one resets. */

#include <dirent.h>
#include <pthread.h>
#include <signal.h>

#include "own_qp.h"

#define SIZE    4096
#define DEPTH   8
#define ROUNDS  40
#define RESETS  100
#define CREATES 200

static struct objects own;
static bool is_posting, is_stopped; /* atomic */
static uint8_t buf[SIZE] __attribute__((aligned(SIZE)));

static int
post(void)
{
	return post_write(own.qp, own.mr, 0);
}

static void
write_once(void)
{
	struct ibv_wc wc;

	HOLDS(post() == 0);
	HOLDS(ibv_poll_cq(own.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* One of each kind that the other tests here do not need. */
struct others {
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_td *td;
	struct ibv_pd *domain;
};

static void
others_create(struct others *o)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_srq_init_attr srq = {.attr = {DEPTH, 1, 0}};
	struct ibv_parent_domain_init_attr domain = {.pd = own.pd};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_td_init_attr td = {0};

	HOLDS(ibv_query_gid(own.context, 1, 0, &ah.grh.dgid) == 0);
	o->channel = ibv_create_comp_channel(own.context);
	o->srq = ibv_create_srq(own.pd, &srq);
	o->ah = ibv_create_ah(own.pd, &ah);
	o->mw = ibv_alloc_mw(own.pd, IBV_MW_TYPE_2);
	o->dm = ibv_alloc_dm(own.context, &dm);
	o->td = ibv_alloc_td(own.context, &td);
	o->domain = ibv_alloc_parent_domain(own.context, &domain);
	HOLDS(o->channel != NULL && o->srq != NULL && o->ah != NULL && o->mw != NULL);
	HOLDS(o->dm != NULL && o->td != NULL && o->domain != NULL);
}

/* Every call returns that. */
static void
release(const struct others *o, int ret)
{
	HOLDS(ibv_destroy_qp(own.qp) == ret && ibv_dereg_mr(own.mr) == ret &&
			ibv_dealloc_mw(o->mw) == ret);
	HOLDS(ibv_destroy_ah(o->ah) == ret && ibv_destroy_srq(o->srq) == ret);
	HOLDS(ibv_destroy_cq(own.cq) == ret && ibv_destroy_comp_channel(o->channel) == ret);
	HOLDS(ibv_free_dm(o->dm) == ret && ibv_dealloc_td(o->td) == ret);
	HOLDS(ibv_dealloc_pd(o->domain) == ret && ibv_dealloc_pd(own.pd) == ret);
	HOLDS(ibv_close_device(own.context) == ret);
}

/* As a language runtime does at exit, with objects that it inherited. */
static void
clean_in_child(const struct others *o)
{
	struct ibv_context *second = open_device("soft0");
	struct ibv_device_attr attr;
	struct ibv_wc wc;

	HOLDS(post() == EINVAL && ibv_poll_cq(own.cq, 1, &wc) == -EINVAL);
	HOLDS(ibv_alloc_pd(own.context) == NULL && errno == ENOENT);
	HOLDS(ibv_query_device(own.context, &attr) == 0);
	release(o, 0);
	release(o, ENOENT);
	HOLDS(ibv_query_device(own.context, &attr) == ENOENT);
	HOLDS(ibv_close_device(second) == 0);
	HOLDS(ibv_close_device(second) == ENOENT);
}

/* Run it in a child of fork(), which must not fail. */
static void
in_child(void (*body)(const struct others *o), const struct others *o)
{
	pid_t pid = fork();

	if (pid == 0) {
		body(o);
		_exit(0);
	}
	wait_child(pid);
}

/* A child that has objects of its own has a child. */
static void
clean_in_grandchild(const struct others *o)
{
	struct ibv_context *second = open_device("soft0");

	in_child(clean_in_child, o);
	release(o, 0);
	HOLDS(ibv_close_device(second) == 0);
}

/* A child releases what it inherited without an effect on its parent. */
static void
child_leaves_objects(void)
{
	struct others o;

	others_create(&o);
	write_once();
	in_child(clean_in_child, &o);
	in_child(clean_in_grandchild, &o);
	write_once();
	HOLDS(ibv_destroy_ah(o.ah) == 0 && ibv_dealloc_mw(o.mw) == 0);
	HOLDS(ibv_destroy_srq(o.srq) == 0 && ibv_destroy_comp_channel(o.channel) == 0);
	HOLDS(ibv_free_dm(o.dm) == 0 && ibv_dealloc_td(o.td) == 0 && ibv_dealloc_pd(o.domain) == 0);
}

/* As the devices of two processes that rmem-run started. */
static void
child_has_another_guid(void)
{
	const __be64 guid = ibv_get_device_guid(own.context->device);
	pid_t pid = fork();

	if (pid == 0)
		_exit(ibv_get_device_guid(open_device("soft0")->device) == guid ? 1 : 0);
	wait_child(pid);
	HOLDS(ibv_get_device_guid(own.context->device) == guid);
}

/* Also true if the thread has ended. */
static bool
blocks_sigterm(const char *task)
{
	unsigned long long mask = ~0ULL;
	char path[300], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "r");
	if (file == NULL)
		return true;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "SigBlk:", 7) == 0)
			mask = strtoull(line + 7, NULL, 16);
	}
	fclose(file);
	return (mask & (1ULL << (SIGTERM - 1))) != 0;
}

/* The threads of the device, also of on-demand paging and advice, take no signal of the program. */
static void
threads_take_no_signal(void)
{
	struct ibv_mr *odp = ibv_reg_mr(
			own.pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = {(uintptr_t)buf, SIZE, odp != NULL ? odp->lkey : 0};
	DIR *dir = opendir("/proc/self/task");
	struct dirent *task;
	int nb = 0;

	HOLDS(dir != NULL);
	if (odp != NULL)
		HOLDS(ibv_advise_mr(own.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == 0);
	while ((task = readdir(dir)) != NULL) {
		if (task->d_name[0] == '.')
			continue;
		HOLDS(blocks_sigterm(task->d_name) == (strtol(task->d_name, NULL, 10) != getpid()));
		nb++;
	}
	closedir(dir);
	HOLDS(nb > 1);
	HOLDS(odp == NULL || ibv_dereg_mr(odp) == 0);
}

static void *
post_main(void *arg)
{
	struct ibv_recv_wr *bad, recv = {0};
	struct ibv_wc wcs[DEPTH];
	int i;

	while (!__atomic_load_n(&is_stopped, __ATOMIC_RELAXED)) {
		for (i = 0; i < DEPTH; i++) {
			post();
			ibv_post_recv(own.qp, &recv, &bad);
		}
		__atomic_store_n(&is_posting, true, __ATOMIC_RELAXED);
		ibv_poll_cq(own.cq, DEPTH, wcs);
	}
	return arg;
}

/* Afterwards the send queue has the space that it was created with. */
static void
resets_beside_posts(void)
{
	struct ibv_wc wcs[DEPTH];
	pthread_t thread;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		__atomic_store_n(&is_stopped, false, __ATOMIC_RELAXED);
		__atomic_store_n(&is_posting, false, __ATOMIC_RELAXED);
		HOLDS(pthread_create(&thread, NULL, post_main, NULL) == 0);
		while (!__atomic_load_n(&is_posting, __ATOMIC_RELAXED))
			sched_yield();
		for (i = 0; i < RESETS; i++) {
			reconnect_own(own.qp);
		}
		__atomic_store_n(&is_stopped, true, __ATOMIC_RELAXED);
		HOLDS(pthread_join(thread, NULL) == 0);
		while (ibv_poll_cq(own.cq, DEPTH, wcs) > 0)
			;
		for (i = 0; i <= DEPTH && post() == 0; i++)
			;
		HOLDS(i == DEPTH);
		while (ibv_poll_cq(own.cq, DEPTH, wcs) > 0)
			;
	}
}

/* By exported functions, and through the context; some draw random numbers by system calls. */
static void
create_each(void)
{
	struct ibv_qp_init_attr_ex init_ex = {.send_cq = own.cq,
			.recv_cq = own.cq,
			.qp_type = IBV_QPT_RC,
			.cap = {DEPTH, DEPTH, 1, 1, 0},
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
			.pd = own.pd};
	struct ibv_cq_init_attr_ex cq_init = {.cqe = DEPTH};
	struct ibv_qp *qps[] = {
			ibv_create_qp_ex(own.context, &init_ex), create_rc(own.pd, own.cq, DEPTH)};
	struct ibv_cq_ex *cq_ex = ibv_create_cq_ex(own.context, &cq_init);
	struct ibv_mw *mw = ibv_alloc_mw(own.pd, IBV_MW_TYPE_2);

	HOLDS(qps[0] != NULL && ibv_destroy_qp(qps[0]) == 0);
	HOLDS(qps[1] != NULL && ibv_destroy_qp(qps[1]) == 0);
	HOLDS(cq_ex != NULL && ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)) == 0);
	HOLDS(mw != NULL && ibv_dealloc_mw(mw) == 0);
}

/* Its cancellation waits until the calls have returned. */
static void *
cancelled_main(void *nb)
{
	pthread_cancel(pthread_self());
	while (*(int *)nb < CREATES) {
		create_each();
		++*(int *)nb;
	}
	pthread_testcancel();
	return NULL;
}

static void
cancel_within_create(void)
{
	pthread_t thread;
	void *result;
	int nb = 0;

	HOLDS(pthread_create(&thread, NULL, cancelled_main, &nb) == 0);
	HOLDS(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	HOLDS(nb == CREATES);
}

int
main(void)
{
	own = open_objects(buf, SIZE, DEPTH);
	child_leaves_objects();
	child_has_another_guid();
	threads_take_no_signal();
	cancel_within_create();
	resets_beside_posts();
	close_objects(&own);
	printf("a child, signals and resets leave the device as it was\n");
	return 0;
}
