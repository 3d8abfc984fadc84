/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program, without any call of rmem: asynchronous events, their acknowledgement, and what
 * waits for it. */

#include <fcntl.h>
#include <pthread.h>

#include "own_qp.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp, *peer; /* qp takes receives of srq */

static struct ibv_qp *
create_qp(struct ibv_srq *of)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.qp_context = &qp,
			.send_cq = cq,
			.recv_cq = cq,
			.srq = of,
			.cap = {.max_send_wr = 16, .max_send_sge = 1}};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	HOLDS(made != NULL);
	return made;
}

static void
create(void)
{
	struct ibv_srq_init_attr init = {.srq_context = &srq, .attr = {.max_wr = 16, .max_sge = 1}};

	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, &cq, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	srq = ibv_create_srq(pd, &init);
	HOLDS(srq != NULL);
	qp = create_qp(srq);
	peer = create_qp(NULL);
}

/* Arm a limit above the receives posted: the event occurs at once. */
static void
reach_limit(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};

	HOLDS(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
}

static void
move(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	HOLDS(ibv_modify_qp(qp, &attr, mask) == 0);
}

static struct ibv_async_event
get(enum ibv_event_type type)
{
	struct ibv_async_event event;

	HOLDS(ibv_get_async_event(context, &event) == 0);
	HOLDS(event.event_type == type);
	return event;
}

static void
events(void)
{
	struct ibv_async_event event;
	int flags = fcntl(context->async_fd, F_GETFL);

	HOLDS(!is_readable(context->async_fd));
	HOLDS(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	HOLDS(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
	HOLDS(fcntl(context->async_fd, F_SETFL, flags) == 0);
	reach_limit();
	HOLDS(is_readable(context->async_fd));
	event = get(IBV_EVENT_SRQ_LIMIT_REACHED);
	HOLDS(event.element.srq == srq && srq->srq_context == &srq);
	HOLDS(srq->events_completed == 0);
	ibv_ack_async_event(&event);
	HOLDS(srq->events_completed == 1 && !is_readable(context->async_fd));
	move(IBV_QPS_INIT);
	move(IBV_QPS_ERR);
	event = get(IBV_EVENT_QP_LAST_WQE_REACHED);
	HOLDS(event.element.qp == qp);
	ibv_ack_async_event(&event);
	HOLDS(qp->events_completed == 1);
}

/* Events are those of the context that the object belongs to. */
static void
two_contexts(void)
{
	struct ibv_context *other = open_device("soft0");

	reach_limit();
	HOLDS(!is_readable(other->async_fd) && is_readable(context->async_fd));
	HOLDS(ibv_close_device(other) == 0);
}

/* A child has no device yet; events remain those of the parent. */
static void
child_takes_no_event(void)
{
	struct ibv_async_event event;
	pid_t child = fork();

	if (child == 0)
		_exit(ibv_get_async_event(context, &event) == -1 && errno == ENOENT ? 0 : 1);
	wait_child(child);
	HOLDS(is_readable(context->async_fd));
}

static void *
destroy_srq(void *is_done)
{
	HOLDS(ibv_destroy_srq(srq) == 0);
	__atomic_store_n((bool *)is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *
destroy_qp(void *is_done)
{
	HOLDS(ibv_destroy_qp(qp) == 0);
	__atomic_store_n((bool *)is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void
ack_during(void *(*destroy)(void *), struct ibv_async_event *event)
{
	bool is_done = false;
	pthread_t thread;

	HOLDS(pthread_create(&thread, NULL, destroy, &is_done) == 0);
	sched_yield();
	HOLDS(!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(event);
	HOLDS(pthread_join(thread, NULL) == 0);
}

/* ibv_ack_async_event(3): the destruction of an object waits for its acknowledgements. */
static void
destroy(void)
{
	struct ibv_async_event of_srq, of_qp;

	move(IBV_QPS_RESET);
	move(IBV_QPS_INIT);
	move(IBV_QPS_ERR);
	of_srq = get(IBV_EVENT_SRQ_LIMIT_REACHED);
	of_qp = get(IBV_EVENT_QP_LAST_WQE_REACHED);
	HOLDS(ibv_destroy_srq(srq) == EBUSY); /* a QP uses it */
	ack_during(destroy_qp, &of_qp);
	ack_during(destroy_srq, &of_srq);
	HOLDS(ibv_destroy_qp(peer) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(!is_readable(context->async_fd));
}

struct reader {
	pid_t tid; /* atomic */
	int result;
	int err;
};

static void *
read_one(void *arg)
{
	struct ibv_async_event event;
	struct reader *reader = arg;

	__atomic_store_n(&reader->tid, gettid(), __ATOMIC_RELEASE);
	reader->result = ibv_get_async_event(context, &event);
	reader->err = errno;
	return NULL;
}

/* Whether it sleeps in the call that follows the store of tid. */
static bool
sleeps(const struct reader *reader)
{
	pid_t tid = __atomic_load_n(&reader->tid, __ATOMIC_ACQUIRE);
	char path[64], state = '\0';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = tid != 0 ? fopen(path, "r") : NULL;
	if (f == NULL)
		return false;
	HOLDS(fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
	fclose(f);
	return state == 'S';
}

static void *
read_cancelled(void *arg)
{
	struct ibv_async_event event;

	pthread_cancel(pthread_self());
	ibv_get_async_event(context, &event);
	return arg;
}

/* The context is closed while threads wait for its events: one was cancelled, the others return. */
static void
close_context(void)
{
	struct reader readers[2] = {{0}, {0}};
	pthread_t threads[2], cancelled;
	void *result;
	int i;

	HOLDS(pthread_create(&cancelled, NULL, read_cancelled, NULL) == 0);
	HOLDS(pthread_join(cancelled, &result) == 0 && result == PTHREAD_CANCELED);
	for (i = 0; i < 2; i++) {
		HOLDS(pthread_create(&threads[i], NULL, read_one, &readers[i]) == 0);
		while (!sleeps(&readers[i]))
			sched_yield();
	}
	HOLDS(ibv_close_device(context) == 0);
	for (i = 0; i < 2; i++) {
		HOLDS(pthread_join(threads[i], NULL) == 0);
		HOLDS(readers[i].result == -1 && readers[i].err == ENODEV);
	}
}

/* Work queues are of other devices: libibverbs counts the acknowledgements of their events. */
static void
ack_event_of_work_queue(void)
{
	static struct ibv_wq wq = {
			.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	struct ibv_async_event event = {.element.wq = &wq, .event_type = IBV_EVENT_WQ_FATAL};

	ibv_ack_async_event(&event);
	HOLDS(wq.events_completed == 1);
}

int
main(void)
{
	context = open_device("soft0");
	create();
	events();
	two_contexts();
	child_takes_no_event();
	destroy();
	close_context();
	ack_event_of_work_queue();
	return 0;
}
