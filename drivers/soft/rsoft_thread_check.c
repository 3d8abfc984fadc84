/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Checks of the threads that use a queue, with sanitize=1: reports two threads at the same time,
 * and threads that are not registered with EAL.
 *
 * A device with sanitize=1 has its own fast path functions: each stores its thread in the queue,
 * calls the ordinary function, and removes the thread. Other devices execute no code of this file.
 *
 * Invariant: a thread is removed before its call returns. So if a thread hands over a queue to
 * another thread, with any ordering between them, the queue is free. A report is made only if the
 * thread found exists in this process; a thread of the parent that was inside at fork() does not.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsoft_post.h"
#include "queue/rsoft_srq.h"
#include "rsoft_dev.h"

enum checked_call {
	CALL_POST_SEND,
	CALL_POST_RECV,
	CALL_POLL_CQ,
	CALL_BIND_MW,
};

static const char *const call_words[] = {
		[CALL_POST_SEND] = "rmem_post_send",
		[CALL_POST_RECV] = "rmem_post_recv",
		[CALL_POLL_CQ] = "rmem_poll_cq",
		[CALL_BIND_MW] = "rmem_mw_bind",
};

/* Format of rsoft_thread_check::entry: thread << 32 | call << 16 | lcore. */
#define ENTRY_TID(entry)   ((pid_t)((entry) >> 32))
#define ENTRY_CALL(entry)  ((entry) >> 16 & 0xffff)
#define ENTRY_LCORE(entry) ((uint32_t)((entry)&0xffff))

static_assert(RSOFT_MAX_LCORES <= UINT16_MAX, "an lcore id has 16 bits");

/* In a child of fork() it is the value of the parent's thread, until a report. */
static __thread pid_t own_tid;

static inline uint64_t
own_entry(unsigned int lcore, enum checked_call call)
{
	if (unlikely(own_tid == 0))
		own_tid = (pid_t)syscall(SYS_gettid);
	return (uint64_t)own_tid << 32 | (uint64_t)call << 16 | lcore;
}

/* Whether the n-th report of a queue is logged: only a few are. */
static bool
is_logged(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

/* Format a QP or CQ as in its log lines. */
static void
name_queue(const struct rmem_obj *obj, char *text, size_t size)
{
	struct rmem_name_text name;

	if (obj->type == RMEM_OBJ_CQ)
		snprintf(text, size, "CQ %p%s", (const void *)obj,
				rmem_name_text(rmem_cq_name((const struct rmem_cq *)obj), &name));
	else
		snprintf(text, size, "QP 0x%06x%s", ((const struct rmem_qp *)obj)->qp_num,
				RSOFT_QP_NAME((const struct rmem_qp *)obj));
}

static __rte_noinline void
report_overlap(struct rsoft_thread_check *check, const struct rmem_obj *obj, uint64_t entry,
		uint64_t other)
{
	char queue[64];
	uint32_t n;

	own_tid = (pid_t)syscall(SYS_gettid);
	if (ENTRY_TID(other) == own_tid ||
			(syscall(SYS_tgkill, getpid(), ENTRY_TID(other), 0) != 0 && errno == ESRCH))
		return;
	n = __atomic_add_fetch(&check->nb_overlaps, 1, __ATOMIC_ACQ_REL);
	if (!is_logged(n))
		return;
	name_queue(obj, queue, sizeof(queue));
	RSOFT_LOG(WARNING,
			"sanitize: %s: %s() by lcore %u during %s() by lcore %u: one thread at a time (found %u times)",
			queue, call_words[ENTRY_CALL(entry)], ENTRY_LCORE(entry),
			call_words[ENTRY_CALL(other)], ENTRY_LCORE(other), n);
}

static __rte_noinline void
report_unregistered(struct rsoft_thread_check *check, const struct rmem_obj *obj,
		enum checked_call call)
{
	uint32_t n = __atomic_add_fetch(&check->nb_unregistered, 1, __ATOMIC_RELAXED);
	char queue[64];

	if (!is_logged(n))
		return;
	name_queue(obj, queue, sizeof(queue));
	RSOFT_LOG(WARNING,
			"sanitize: %s: %s() by thread %ld, which has no lcore id: refused; call rte_thread_register() (found %u times)",
			queue, call_words[call], syscall(SYS_gettid), n);
}

/* Store the calling thread in a queue; 0 if it was not stored. */
static inline uint64_t
check_enter(struct rsoft_thread_check *check, const struct rmem_obj *obj, enum checked_call call)
{
	unsigned int lcore = rte_lcore_id();
	uint64_t entry, other;

	if (unlikely(lcore == LCORE_ID_ANY)) {
		report_unregistered(check, obj, call);
		return 0;
	}
	entry = own_entry(lcore, call);
	other = __atomic_exchange_n(&check->entry, entry, __ATOMIC_ACQ_REL);
	if (unlikely(other != 0))
		report_overlap(check, obj, entry, other);
	return entry;
}

/* Remove the thread, unless another thread has stored itself. */
static inline void
check_leave(struct rsoft_thread_check *check, uint64_t entry)
{
	if (likely(__atomic_load_n(&check->entry, __ATOMIC_RELAXED) == entry))
		__atomic_store_n(&check->entry, 0, __ATOMIC_RELEASE);
}

static int
check_post_send(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct rsoft_thread_check *check = &((struct rsoft_qp *)base)->senders;
	uint64_t entry = check_enter(check, &base->obj, CALL_POST_SEND);
	int ret = rsoft_post_send(base, wr, nb_wr);

	check_leave(check, entry);
	return ret;
}

static int
check_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_thread_check *check = &((struct rsoft_qp *)base)->receivers;
	uint64_t entry = check_enter(check, &base->obj, CALL_POST_RECV);
	int ret = rsoft_post_recv(base, wr, nb_wr);

	check_leave(check, entry);
	return ret;
}

static int
check_poll_cq(struct rmem_cq *base, struct rmem_wc *wc, uint16_t nb_wc)
{
	struct rsoft_thread_check *check = &((struct rsoft_cq *)base)->pollers;
	uint64_t entry = check_enter(check, &base->obj, CALL_POLL_CQ);
	int ret = rsoft_poll_cq(base, wc, nb_wc);

	check_leave(check, entry);
	return ret;
}

int
rsoft_thread_check_bind_mw(
		struct rmem_qp *base, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	struct rsoft_thread_check *check = &((struct rsoft_qp *)base)->senders;
	uint64_t entry;
	int ret;

	if (likely(((struct rsoft_qp *)base)->dev->args.sanitize == 0))
		return rsoft_post_bind_mw(base, mw, bind);
	entry = check_enter(check, &base->obj, CALL_BIND_MW);
	ret = rsoft_post_bind_mw(base, mw, bind);
	check_leave(check, entry);
	return ret;
}

/* No check for SRQs: any thread may post to one. */
const struct rmem_fp_ops rsoft_thread_check_fp = {
		.post_send = check_post_send,
		.post_recv = check_post_recv,
		.poll_cq = check_poll_cq,
		.srq_post_recv = rsoft_srq_post_recv,
};
