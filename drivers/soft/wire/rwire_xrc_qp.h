/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC_RECV QPs that several processes open.
 *
 * The process that has created a QP (the owner) listens at a socket with its number, which makes
 * numbers unique among the processes of a domain (port/rwire_xrc_socket.h). Another process (the
 * opener) connects to it, once for each of its handles. Each end first sends a hello with a
 * descriptor of the domain's file. Then the opener sends calls, one at a time, which the owner
 * executes with all checks of the class, and answers. The owner also sends the events of the QP. A
 * connection holds a reference to the QP (rmem_qp_hold()), until either end closes it or ends.
 *
 * A thread of each device, started with the first QP of a file's domain, receives on all sockets
 * and executes the calls. It sends without waiting: an opener that does not read its answers loses
 * its handle. A caller waits for its answer, at most RWIRE_XRC_QP_TIMEOUT_MS.
 *
 * Invariants:
 * - The lock protects all state; the lists change only under it. It is not held during a call of
 *   the class that may wait. Lock order: it precedes the locks of the class.
 * - Only the thread closes and frees connections of openers.
 * - A listener is freed after the grace period of its QP, because events are generated inside.
 */

#ifndef RWIRE_XRC_QP_H
#define RWIRE_XRC_QP_H

#include <pthread.h>
#include <sys/epoll.h>

#include "rwire_xrc.h"

#define RWIRE_XRC_QP_TIMEOUT_MS 5000

/* A call of an opener, after its hello. */
struct rwire_xrc_qp_request {
	uint32_t seq; /* not 0 */
	uint32_t pad;
	struct rmem_qp_call call;
};

/* An answer of the owner, or an event. */
struct rwire_xrc_qp_answer {
	uint32_t seq;      /* of the call; 0: an event */
	int32_t ret;       /* result of the call, or enum rmem_async_event_type */
	uint32_t has_attr; /* QUERY */
	uint32_t pad;
	struct rmem_qp_attr attr;
};

/* The object of an event of the epoll descriptor; first member of the structs below. */
struct rwire_xrc_qp_end {
	enum {
		RWIRE_XRC_QP_LISTENER,
		RWIRE_XRC_QP_IN,
		RWIRE_XRC_QP_OUT,
	} kind;
	int fd; /* -1: closed */
};

/* The socket of a QP of this process. */
struct rwire_xrc_qp_listener {
	struct rwire_xrc_qp_end end;
	struct rsoft_qp *qp;
	uint32_t events; /* to report: bits by enum rmem_async_event_type; atomic */
	LIST_ENTRY(rwire_xrc_qp_listener) next;
};

/* A connection from an opener. */
struct rwire_xrc_qp_in {
	struct rwire_xrc_qp_end end;
	uint32_t qp_num;
	bool has_failed;    /* close it */
	struct rmem_qp *qp; /* NULL until the hello */
	TAILQ_ENTRY(rwire_xrc_qp_in) next;
};

/* A connection to the owner: a handle of this process. */
struct rwire_xrc_qp_out {
	struct rwire_xrc_qp_end end;
	struct rsoft_qp *qp;
	pthread_cond_t cond; /* is_calling, is_answered or is_dead has changed */
	uint32_t seq;        /* of the last call */
	bool is_calling;
	bool is_answered;
	bool is_dead; /* the owner has ended, or has closed the connection */
	struct rwire_xrc_qp_answer answer;
	LIST_ENTRY(rwire_xrc_qp_out) next;
};

struct rwire_xrc_qps {
	int epoll;
	int wake;     /* eventfd: is_stopping, is_leaving or events to report */
	uint32_t max; /* connections; so many descriptors are left to the application */
	uint32_t nb;
	bool is_stopping;
	bool is_leaving; /* rwire_xrc_qp_leave() waits */
	bool is_starved; /* no descriptor was free for a connection */
	pthread_mutex_t lock;
	pthread_cond_t left; /* is_leaving has changed */
	LIST_HEAD(rwire_xrc_qp_listeners, rwire_xrc_qp_listener) listeners;
	TAILQ_HEAD(rwire_xrc_qp_ins, rwire_xrc_qp_in) ins; /* the newest first */
	LIST_HEAD(rwire_xrc_qp_outs, rwire_xrc_qp_out) outs;
	struct rmem_thread thread;
};

static inline bool
rwire_xrc_qp_watch(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_end *end)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};

	return epoll_ctl(qps->epoll, EPOLL_CTL_ADD, end->fd, &event) == 0;
}

/* rwire_xrc_qp_thread.c */
/* Let other processes open a new QP: 0, -EADDRINUSE: its number is in use, or -ENOMEM; logged. */
int rwire_xrc_qp_publish(struct rsoft_qp *qp);
/* As rmem_qp_share_ops. */
int rwire_xrc_qp_open(struct rmem_qp *qp, struct rmem_xrcd *xrcd);
void rwire_xrc_qp_leave(struct rmem_dev *dev);
/* Stop the thread; no QP is left. */
void rwire_xrc_qp_end(struct rwire *wire);
/* Close the descriptors of the parent, in a child of fork(). */
void rwire_xrc_qp_forked(const struct rsoft_dev *dev);

/* rwire_xrc_qp_in.c */
/* As rwire_xrc_qp_publish(). */
int rwire_xrc_qp_listen(struct rwire_xrc_qps *qps, struct rsoft_qp *qp);
/* Accept no more openers; the caller frees the result. NULL: the QP has no listener. */
struct rwire_xrc_qp_listener *rwire_xrc_qp_withdraw(struct rsoft_qp *qp);
void rwire_xrc_qp_event(struct rmem_qp *qp, uint32_t type);
/* By the thread, under the lock, which they release temporarily. */
void rwire_xrc_qp_in_accept(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_listener *listener);
void rwire_xrc_qp_in_receive(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_in *in);
void rwire_xrc_qp_in_report(struct rwire_xrc_qps *qps);
void rwire_xrc_qp_in_leave(struct rwire_xrc_qps *qps);
void rwire_xrc_qp_in_close(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_in *in);

/* rwire_xrc_qp_out.c */
/* Connect to the owner: as rmem_qp_get_shared(). */
int rwire_xrc_qp_connect(struct rwire_xrc_qps *qps, struct rsoft_qp *qp);
int rwire_xrc_qp_call(struct rmem_qp *qp, struct rmem_qp_call *call);
void rwire_xrc_qp_close(struct rmem_qp *qp);
/* By the thread, under the lock. */
void rwire_xrc_qp_out_receive(struct rwire_xrc_qps *qps, struct rwire_xrc_qp_out *out);

#endif /* RWIRE_XRC_QP_H */
