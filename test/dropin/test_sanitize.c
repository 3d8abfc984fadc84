/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A verbs program on soft0,sanitize=1: wrong uses are on stderr without RMEM_IBV_LOG. Threads may
 * share a QP and a CQ, which verbs permits. Of itself, executed with an argument, it reads what is
 * reported at exit.
 */

#include <pthread.h>

#include "log.h"
#include "own_qp.h"

#define THREADS 4
#define WRITES  2000
#define SIZE    64

static struct objects own;
static uint8_t buf[4096];
static int nb_polled; /* atomic */

static int
post(uint32_t rkey)
{
	return post_write_to(own.qp, (struct ibv_sge){(uintptr_t)buf, SIZE, own.mr->lkey},
			(uintptr_t)buf + 2048, rkey, 0);
}

static int
poll_some(void)
{
	struct ibv_wc wc[4];
	int i, n = ibv_poll_cq(own.cq, 4, wc);

	for (i = 0; i < n; i++)
		HOLDS(wc[i].status == IBV_WC_SUCCESS);
	HOLDS(n >= 0);
	return __atomic_add_fetch(&nb_polled, n, __ATOMIC_RELAXED);
}

static void *
run(void *arg)
{
	int i, ret;

	for (i = 0; i < WRITES; i++) {
		while ((ret = post(own.mr->rkey)) == ENOMEM)
			poll_some();
		HOLDS(ret == 0);
	}
	while (poll_some() != THREADS * WRITES)
		sched_yield();
	return arg;
}

static void
share(void)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, run, NULL) == 0);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	HOLDS(strstr(log_text(), "sanitize") == NULL);
}

static void
refuse(void)
{
	HOLDS(post(own.mr->rkey ^ 1) == 0);
	HOLDS(wait_wc(own.cq).status == IBV_WC_REM_ACCESS_ERR);
	HOLDS(strstr(log_text(), "sanitize: QP 0x") != NULL);
	HOLDS(strstr(log_text(), "request of the peer (REM_ACCESS_ERR) failed") != NULL);
}

static void *
register_some(void *of)
{
	HOLDS(ibv_reg_mr(of, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE) != NULL);
	return NULL;
}

/*
 * In a process of its own: objects that are not destroyed, two of one call site, made by threads
 * that have ended. The call site is one also if a compiler unrolls the loop.
 */
static int
leave(void)
{
	pthread_t thread;
	int i;

	own.pd = ibv_alloc_pd(open_device("soft0"));
	for (i = 0; i < 2; i++) {
		HOLDS(pthread_create(&thread, NULL, register_some, own.pd) == 0);
		HOLDS(pthread_join(thread, NULL) == 0);
	}
	own.mr = ibv_reg_mr(own.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	return ibv_dereg_mr(own.mr);
}

/* In a process of its own: an event is acknowledged when the report of destroy_late() is there. */
static void *
destroy_late(void *arg)
{
	HOLDS(ibv_destroy_cq(own.cq) == 0);
	return arg;
}

static int
acknowledge(void)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *of;
	pthread_t thread;
	void *arg;

	own.context = open_device("soft0");
	channel = ibv_create_comp_channel(own.context);
	own.cq = ibv_create_cq(own.context, 4, NULL, channel, 0);
	own.pd = ibv_alloc_pd(own.context);
	own.qp = create_rc(own.pd, own.cq, 4);
	own.mr = ibv_reg_mr(own.pd, buf, sizeof(buf), WRITABLE);
	HOLDS(own.qp != NULL && own.mr != NULL && ibv_req_notify_cq(own.cq, 0) == 0);
	connect_own(own.qp);
	HOLDS(post(own.mr->rkey) == 0 && ibv_get_cq_event(channel, &of, &arg) == 0);
	HOLDS(ibv_destroy_qp(own.qp) == 0 && ibv_dereg_mr(own.mr) == 0);
	HOLDS(pthread_create(&thread, NULL, destroy_late, NULL) == 0);
	while (strstr(log_text(), "not acknowledged\n  found by thread ") == NULL)
		sched_yield();
	ibv_ack_cq_events(own.cq, 1);
	HOLDS(pthread_join(thread, NULL) == 0 && ibv_destroy_comp_channel(channel) == 0);
	return ibv_dealloc_pd(own.pd) != 0 || ibv_close_device(own.context) != 0;
}

/* Execute this program with an argument; its stderr is the log. */
static void
execute(char *program, const char *what)
{
	pid_t pid;

	HOLDS(ftruncate(log_fd, 0) == 0 && lseek(log_fd, 0, SEEK_SET) == 0);
	pid = fork();
	if (pid == 0) {
		execl(program, program, what, NULL);
		_exit(127);
	}
	wait_child(pid);
}

static bool
has_calls(const char *report)
{
	const char *at = strstr(log_text(), report);

	at = at != NULL ? strchr(at, '\n') : NULL;
	return at != NULL && strncmp(at, "\n    #0 ", 8) == 0;
}

static void
report_exit(char *program)
{
	execute(program, "leave");
	HOLDS(strstr(log_text(), "exits with 1 context not destroyed; made ") != NULL);
	HOLDS(strstr(log_text(), "exits with 1 PD not destroyed; made ") != NULL);
	HOLDS(strstr(log_text(), "exits with 2 MRs not destroyed; the first made ") != NULL);
	HOLDS(has_calls("exits with 1 PD not destroyed"));
	HOLDS(has_calls("exits with 2 MRs not destroyed"));
	HOLDS(strstr(log_text(), "librmem_ibv") == NULL && strstr(log_text(), "libc.so") == NULL);
	HOLDS(strstr(log_text(), "CQ") == NULL);
	execute(program, "acknowledge");
	HOLDS(strstr(log_text(), "events of the CQ are not acknowledged") != NULL);
	HOLDS(strstr(log_text(), "exits with") == NULL);
}

int
main(int argc, char **argv)
{
	int out;

	HOLDS(setenv("RMEM_IBV", "soft0,sanitize=1", 1) == 0 && unsetenv("RMEM_IBV_LOG") == 0);
	if (argc > 1) {
		log_fd = 2;
		return strcmp(argv[1], "leave") == 0 ? leave() : acknowledge();
	}
	out = log_begin();
	own = open_objects(buf, sizeof(buf), 16);
	share();
	refuse();
	close_objects(&own);
	HOLDS(strstr(log_text(), "not destroyed") == NULL);
	report_exit(argv[0]);
	log_end(out);
	return 0;
}
