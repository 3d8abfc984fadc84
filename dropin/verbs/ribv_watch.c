/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * With sanitize=1: requests in flight, as known to the program: posted, and not ended by a
 * completion. Wrong uses of their buffers are reported once for each place of the program. With
 * sanitize=2, changes of send buffers are detected by a checksum.
 *
 * Invariant: one lock protects all state of this file. Posts, polls and deregistrations take it.
 * Reports are printed after it is released.
 * Invariant: a QP of a device without sanitize has no struct ribv_watch, and executes no code of
 * this file.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "ribv.h"
#include "ribv_finding.h"

#define NB_LISTS     1024
#define LOG2_BUCKETS 8
#define WAYS         8
#define MAX_SGE      4  /* SGEs of a request that are checked */
#define MAX_OLDER    64 /* previous receives that a new one is compared with */
#define MAX_PLACES   256
#define MAX_TEXT     224
#define MAX_AT_EXIT  10
#define MIN_DEAD     4 /* posts in ERR before a report; the program may not know yet */

struct request {
	uint64_t wr_id;
	const void *caller; /* place of the post */
	uint64_t tsc;       /* time of the post */
	pid_t thread;       /* thread of the post */
	uint64_t sum;
	uint32_t num_sge;
	bool is_signaled;
	bool is_summed;
	bool is_poisoned;
	struct rmem_sge sge[MAX_SGE];
};

/* Requests [first, next) are in flight. Protected by the lock of the file. */
struct queue {
	struct request *ring;
	uint32_t size; /* 0: not watched */
	uint32_t first, next;
};

struct ribv_watch {
	LIST_ENTRY(ribv_watch) list;
	const struct ribv_qp *qp;
	uint32_t dev, qp_num;
	bool is_summing;
	bool is_dead;           /* the program knows that the QP is in ERR */
	bool is_err;            /* the QP is in ERR */
	uint32_t nb_dead;       /* sends posted in ERR while the program does not know it */
	struct request dead;    /* the first of these sends */
	uint64_t state_checked; /* time of the last query (TSC) */
	struct queue send, recv;
};

struct report {
	enum ribv_kind kind;
	struct ribv_event posted; /* n is 0: nothing to report */
	char text[MAX_TEXT];
};

/* Remote memory that a WRITE in flight writes. */
struct target {
	const struct ribv_watch *watch; /* NULL: none */
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t request; /* index in the send queue */
	uint64_t tsc;     /* time of the post */
};

static uint32_t lock;
/* The last targets, hashed by rkey. */
static struct {
	struct target targets[WAYS];
	uint32_t next;
} buckets[1 << LOG2_BUCKETS];
static LIST_HEAD(ribv_watches, ribv_watch) lists[NB_LISTS];
/* Places that were reported. */
static struct {
	enum ribv_kind kind;
	const void *caller;
} places[MAX_PLACES];
static uint32_t nb_places;
static bool is_watching; /* a QP was watched; atomic */
static bool is_summing[RIBV_MAX_DEVS];

__thread const void *ribv_caller;

void
ribv_watch_sums(uint32_t dev)
{
	is_summing[dev] = true;
}

static struct request *
request_at(const struct queue *queue, uint32_t i)
{
	return &queue->ring[i & (queue->size - 1)];
}

static bool
queue_init(struct queue *queue, uint32_t nb)
{
	queue->size = nb != 0 ? rte_align32pow2(nb) : 0;
	queue->ring = nb != 0 ? calloc(queue->size, sizeof(*queue->ring)) : NULL;
	return nb == 0 || queue->ring != NULL;
}

void
ribv_watch_begin(struct ribv_qp *qp)
{
	struct ribv_watch *watch = calloc(1, sizeof(*watch));
	struct rmem_dev_info info;

	if (watch == NULL || rmem_dev_info_get(ribv_dev_of(qp->context), &info) != 0 ||
			(info.capa & RMEM_DEV_CAPA_SANITIZE) == 0) {
		free(watch);
		return;
	}
	watch->qp = qp;
	watch->dev = ribv_context_of(qp->context)->dev;
	watch->qp_num = qp->qp->qp_num;
	/* Not on UD: protocols such as UCX's acknowledge messages before the completion. */
	watch->is_summing = is_summing[watch->dev] && !qp->is_ud;
	if (!queue_init(&watch->send, qp->init.cap.max_send_wr) ||
			!queue_init(&watch->recv, qp->init.cap.max_recv_wr)) {
		free(watch->send.ring);
		free(watch);
		return;
	}
	ribv_lock(&lock);
	LIST_INSERT_HEAD(&lists[watch->qp_num % NB_LISTS], watch, list);
	ribv_unlock(&lock);
	qp->watch = watch;
	__atomic_store_n(&is_watching, true, __ATOMIC_RELEASE);
}

void
ribv_watch_state(struct ribv_watch *watch, enum ibv_qp_state state)
{
	ribv_lock(&lock);
	watch->is_dead = state == IBV_QPS_ERR;
	watch->is_err = false;
	watch->nb_dead = 0;
	if (state == IBV_QPS_RESET) {
		watch->send.first = watch->send.next;
		watch->recv.first = watch->recv.next;
	}
	ribv_unlock(&lock);
}

/* Record a place; false if it was reported, or there are too many. Under the lock. */
static bool
is_new(enum ribv_kind kind, const void *caller)
{
	uint32_t i;

	for (i = 0; i < nb_places; i++) {
		if (places[i].kind == kind && places[i].caller == caller)
			return false;
	}
	if (nb_places == MAX_PLACES)
		return false;
	places[nb_places].kind = kind;
	places[nb_places++].caller = caller;
	return true;
}

/* Initialise a report as empty; the other fields are not read then. */
static void
report_init(struct report *report)
{
	report->posted.stack.n = 0;
}

/* Start a report; its text is written afterwards. */
static void
report_set(struct report *report, enum ribv_kind kind, const struct request *request)
{
	report->kind = kind;
	memset(&report->posted, 0, sizeof(report->posted));
	report->posted.stack.frames[0] = (void *)(uintptr_t)request->caller;
	report->posted.stack.n = 1;
	report->posted.tsc = request->tsc;
	report->posted.thread = request->thread;
}

static void
print(const struct report *report)
{
	if (report->posted.stack.n != 0)
		ribv_find(&(struct ribv_finding){.kind = report->kind,
				.what = report->text,
				.how = "posted",
				.event = &report->posted,
				.has_finder = true});
}

/* Report a QP that was used in ERR, when it is destroyed or the process exits. */
static void
check_dead(const struct ribv_watch *watch, struct report *report)
{
	if (likely(watch->nb_dead < MIN_DEAD) || watch->is_dead ||
			!is_new(RIBV_FOUND_DEAD, watch->dead.caller))
		return;
	report_set(report, RIBV_FOUND_DEAD, &watch->dead);
	snprintf(report->text, sizeof(report->text),
			"QP 0x%06x: %u requests were posted in ERR, the first of them here, and no "
			"completion with an error was polled",
			watch->qp_num, watch->nb_dead);
}

/* Remove the targets of a QP. */
static void
forget(const struct ribv_watch *watch)
{
	uint32_t i, j;

	for (i = 0; i < RTE_DIM(buckets); i++) {
		for (j = 0; j < WAYS; j++) {
			if (buckets[i].targets[j].watch == watch)
				memset(&buckets[i].targets[j], 0, sizeof(buckets[i].targets[j]));
		}
	}
}

void
ribv_watch_end(struct ribv_watch *watch)
{
	struct report report;

	report_init(&report);
	ribv_lock(&lock);
	check_dead(watch, &report);
	LIST_REMOVE(watch, list);
	forget(watch);
	ribv_unlock(&lock);
	print(&report);
	free(watch->send.ring);
	free(watch->recv.ring);
	free(watch);
}

void
ribv_watch_exit(void)
{
	struct report *reports = calloc(MAX_AT_EXIT, sizeof(*reports));
	struct ribv_watch *watch;
	uint32_t i, n = 0;

	if (reports == NULL)
		return;
	ribv_lock(&lock);
	for (i = 0; i < NB_LISTS; i++) {
		LIST_FOREACH(watch, &lists[i], list) {
			if (n == MAX_AT_EXIT)
				break;
			check_dead(watch, &reports[n]);
			n += reports[n].posted.stack.n != 0;
		}
	}
	ribv_unlock(&lock);
	for (i = 0; i < n; i++)
		print(&reports[i]);
	free(reports);
}

static void
report_buffer(const struct ribv_watch *watch, enum ribv_kind kind, const struct request *request,
		const char *what, struct report *report)
{
	if (report->posted.stack.n != 0 || !is_new(kind, request->caller))
		return;
	report_set(report, kind, request);
	snprintf(report->text, sizeof(report->text),
			"QP 0x%06x: the buffer of request 0x%" PRIx64 ", at 0x%" PRIx64 ", %s",
			watch->qp_num, request->wr_id, request->sge[0].addr, what);
}

/* Compute the checksum of a posted request. A request with an unmapped buffer is left to the
 * device, which completes it with an error. */
static void
sum(const struct ribv_watch *watch, struct request *request, struct report *report)
{
	request->is_summed = ribv_are_readable(request->sge, request->num_sge);
	if (likely(request->is_summed))
		request->sum = ribv_sum(request->sge, request->num_sge);
	else
		report_buffer(watch, RIBV_FOUND_UNMAPPED, request, "is not mapped", report);
}

/*
 * Whether the device still reads the buffer, that is, has not copied it. Unsignaled requests are
 * excepted: programs may learn from an answer of the peer that they have ended.
 */
static bool
is_read(const struct rmem_send_wr *wr)
{
	return (wr->flags & RMEM_SEND_INLINE) == 0 && wr->num_sge <= MAX_SGE &&
			(wr->opcode == RMEM_WR_SEND || wr->opcode == RMEM_WR_SEND_WITH_IMM ||
					wr->opcode == RMEM_WR_SEND_WITH_INV ||
					wr->opcode == RMEM_WR_RDMA_WRITE ||
					wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM);
}

static void
set_sges(struct request *request, const struct rmem_sge *sges, uint32_t n)
{
	request->num_sge = RTE_MIN(n, (uint32_t)MAX_SGE);
	memcpy(request->sge, sges, request->num_sge * sizeof(*sges));
}

/*
 * Whether to query the QP's state: at most once per millisecond, and only if a request has been in
 * flight for so long.
 */
static bool
may_be_dead(struct ribv_watch *watch, uint64_t tsc)
{
	const struct queue *queue = &watch->send;
	uint64_t ms;

	if (likely(queue->first == queue->next) || watch->is_dead || watch->is_err)
		return false;
	ms = rte_get_tsc_hz() / 1000;
	if (likely(tsc - watch->state_checked < ms ||
			    tsc - request_at(queue, queue->first)->tsc < ms))
		return false;
	watch->state_checked = tsc;
	return true;
}

/* Count requests posted in ERR. Under the lock. */
static void
count_dead(struct ribv_watch *watch, unsigned int n)
{
	if (likely(!watch->is_err || watch->is_dead || n == 0))
		return;
	if (watch->nb_dead == 0)
		watch->dead = *request_at(&watch->send, watch->send.next - n);
	watch->nb_dead += n;
}

static void
check_state(struct ribv_watch *watch)
{
	struct rmem_qp_attr attr;

	if (rmem_qp_query(watch->qp->qp, &attr) != 0 || attr.state != RMEM_QPS_ERR)
		return;
	ribv_lock(&lock);
	watch->is_err = true;
	ribv_unlock(&lock);
}

static bool
is_peer_of(const struct ribv_watch *a, const struct ribv_watch *b)
{
	const struct ibv_ah_attr *ah = &a->qp->ah, *other = &b->qp->ah;

	return a->dev == b->dev && ah->dlid == other->dlid && ah->is_global == other->is_global &&
			(ah->is_global == 0 ||
					memcmp(&ah->grh.dgid, &other->grh.dgid,
							sizeof(ah->grh.dgid)) == 0);
}

static bool
is_rival(const struct target *old, const struct target *target)
{
	const struct queue *queue = &old->watch->send;

	return old->request - queue->first < queue->next - queue->first &&
			request_at(queue, old->request)->tsc == old->tsc &&
			is_peer_of(old->watch, target->watch);
}

/*
 * Whether two WRITEs have common bytes. A QP executes its WRITEs in order, and benchmarks write one
 * range from several QPs if the data is not read; neither is a finding.
 */
static bool
has_bytes_of(const struct target *a, const struct target *b)
{
	return a->rkey == b->rkey && a->watch != b->watch && a->addr < b->addr + b->length &&
			b->addr < a->addr + a->length &&
			(a->addr != b->addr || a->length != b->length);
}

/* Add a target; return a target of another QP with common bytes, or NULL. */
static const struct target *
add_target(const struct target *target)
{
	uint32_t i, at = target->rkey * UINT32_C(0x9e3779b1) >> (32 - LOG2_BUCKETS);
	struct target *targets = buckets[at].targets;
	const struct target *found = NULL;
	static struct target replaced;

	for (i = 0; i < WAYS && found == NULL; i++) {
		if (unlikely(has_bytes_of(&targets[i], target)) && targets[i].watch != NULL &&
				is_rival(&targets[i], target))
			found = &targets[i];
	}
	i = buckets[at].next++ % WAYS;
	if (found == &targets[i]) {
		replaced = targets[i];
		found = &replaced;
	}
	targets[i] = *target;
	return found;
}

/* Check whether a WRITE overlaps a WRITE in flight of another QP. */
static void
check_write(struct ribv_watch *watch, const struct rmem_send_wr *wr, struct report *report)
{
	struct target target = {.watch = watch,
			.addr = wr->rdma.remote_addr,
			.rkey = wr->rdma.rkey,
			.request = watch->send.next,
			.tsc = request_at(&watch->send, watch->send.next)->tsc};
	const struct target *other;
	uint32_t i;

	for (i = 0; i < wr->num_sge; i++)
		target.length += wr->sg_list[i].length;
	other = add_target(&target);
	if (likely(other == NULL) || report->posted.stack.n != 0 ||
			!is_new(RIBV_FOUND_WRITE_OVERLAP, ribv_caller))
		return;
	report_set(report, RIBV_FOUND_WRITE_OVERLAP,
			request_at(&other->watch->send, other->request));
	snprintf(report->text, sizeof(report->text),
			"QP 0x%06x: WRITE 0x%" PRIx64 " has bytes of WRITE 0x%" PRIx64
			" of QP 0x%06x, at 0x%" PRIx64 " of the peer, which is in flight",
			watch->qp_num, wr->wr_id,
			request_at(&other->watch->send, other->request)->wr_id,
			other->watch->qp_num, RTE_MAX(other->addr, target.addr));
}

unsigned int
ribv_watch_send(struct ribv_watch *watch, const struct rmem_send_wr *wr, unsigned int n)
{
	const uint64_t tsc = rte_rdtsc();
	const pid_t thread = ribv_thread();
	struct queue *queue = &watch->send;
	struct request *request;
	struct report report;
	bool is_to_check;
	unsigned int i;

	report_init(&report);
	ribv_lock(&lock);
	is_to_check = may_be_dead(watch, tsc);
	for (i = 0; i < n && queue->next - queue->first < queue->size; i++, queue->next++) {
		request = request_at(queue, queue->next);
		request->wr_id = wr[i].wr_id;
		request->caller = ribv_caller;
		request->tsc = tsc;
		request->thread = thread;
		request->is_signaled = watch->qp->init.sq_sig_all != 0 ||
				(wr[i].flags & RMEM_SEND_SIGNALED) != 0;
		request->num_sge = 0;
		if ((wr[i].flags & RMEM_SEND_INLINE) == 0 && wr[i].num_sge != 0)
			set_sges(request, wr[i].sg_list, wr[i].num_sge);
		request->is_summed = watch->is_summing && request->is_signaled && is_read(&wr[i]);
		if (request->is_summed)
			sum(watch, request, &report);
		if (wr[i].opcode == RMEM_WR_RDMA_WRITE ||
				wr[i].opcode == RMEM_WR_RDMA_WRITE_WITH_IMM)
			check_write(watch, &wr[i], &report);
	}
	count_dead(watch, i);
	ribv_unlock(&lock);
	print(&report);
	if (unlikely(is_to_check))
		check_state(watch);
	return i;
}

/* Report a full queue without a signaled request: no completion will ever free an entry. */
static void
check_full(struct ribv_watch *watch, struct report *report)
{
	const struct queue *queue = &watch->send;
	uint32_t i;

	for (i = queue->first; i != queue->next; i++) {
		if (request_at(queue, i)->is_signaled)
			return;
	}
	if (queue->first == queue->next || !is_new(RIBV_FOUND_FULL, ribv_caller))
		return;
	report_set(report, RIBV_FOUND_FULL, request_at(queue, queue->next - 1));
	snprintf(report->text, sizeof(report->text),
			"QP 0x%06x: the send queue is full, and none of its %u requests is signaled: "
			"no completion frees it",
			watch->qp_num, queue->next - queue->first);
}

void
ribv_watch_sent(struct ribv_watch *watch, unsigned int kept, unsigned int done, int err)
{
	struct report report;
	struct queue *queue = &watch->send;

	report_init(&report);
	ribv_lock(&lock);
	queue->next -= kept > done ? RTE_MIN(kept - done, queue->next - queue->first) : 0;
	if (err == ENOMEM)
		check_full(watch, &report);
	ribv_unlock(&lock);
	print(&report);
}

/* Whether two buffers overlap. The same buffer for several receives is not an error: programs use
 * it for data that they do not read. */
static bool
overlaps(const struct rmem_sge *a, const struct rmem_sge *b)
{
	if (a->addr == b->addr && a->length == b->length)
		return false;
	return a->length != 0 && b->length != 0 && a->addr < b->addr + b->length &&
			b->addr < a->addr + a->length;
}

/* Compare a receive with the last ones in flight. */
static void
check_recv(struct ribv_watch *watch, const struct request *request, struct report *report)
{
	const struct queue *queue = &watch->recv;
	const struct request *other;
	uint32_t i, j, k, n = RTE_MIN(queue->next - queue->first, (uint32_t)MAX_OLDER);

	for (i = 1; i <= n; i++) {
		other = request_at(queue, queue->next - i);
		for (j = 0; j < request->num_sge * other->num_sge; j++) {
			k = j % other->num_sge;
			if (!overlaps(&request->sge[j / other->num_sge], &other->sge[k]))
				continue;
			if (!is_new(RIBV_FOUND_RECV_OVERLAP, ribv_caller))
				return;
			report_set(report, RIBV_FOUND_RECV_OVERLAP, other);
			snprintf(report->text, sizeof(report->text),
					"QP 0x%06x: receive 0x%" PRIx64
					" has bytes of receive 0x%" PRIx64 ", at 0x%" PRIx64
					", which is in flight",
					watch->qp_num, request->wr_id, other->wr_id,
					other->sge[k].addr);
			return;
		}
	}
}

static bool
shares_bytes(const struct request *a, const struct request *b)
{
	uint32_t i, j;

	for (i = 0; i < a->num_sge; i++) {
		for (j = 0; j < b->num_sge; j++) {
			if (a->sge[i].addr < b->sge[j].addr + b->sge[j].length &&
					b->sge[j].addr < a->sge[i].addr + a->sge[i].length)
				return true;
		}
	}
	return false;
}

/* Write the pattern to a receive buffer, unless another request in flight uses it; in that case the
 * other one is not checked either. */
static void
poison(struct ribv_watch *watch, struct request *request, uint32_t num_sge)
{
	bool is_shared = num_sge > MAX_SGE;
	uint32_t i;

	for (i = watch->recv.first; i != watch->recv.next; i++) {
		if (!shares_bytes(request_at(&watch->recv, i), request))
			continue;
		request_at(&watch->recv, i)->is_poisoned = false;
		is_shared = true;
	}
	for (i = watch->send.first; i != watch->send.next && !is_shared; i++)
		is_shared = shares_bytes(request_at(&watch->send, i), request);
	request->is_poisoned = !is_shared && ribv_poison_set(request->sge, request->num_sge);
}

bool
ribv_watch_recv(struct ribv_watch *watch, const struct rmem_recv_wr *wr)
{
	struct report report;
	struct queue *queue = &watch->recv;
	struct request *request;
	bool is_kept;

	report_init(&report);
	ribv_lock(&lock);
	is_kept = queue->next - queue->first < queue->size;
	if (is_kept) {
		request = request_at(queue, queue->next);
		*request = (struct request){.wr_id = wr->wr_id,
				.caller = ribv_caller,
				.tsc = rte_rdtsc(),
				.thread = ribv_thread()};
		if (wr->num_sge != 0)
			set_sges(request, wr->sg_list, wr->num_sge);
		if (watch->qp->is_ud)
			ribv_ud_clip(request->sge, request->num_sge);
		check_recv(watch, request, &report);
		if (ribv_finding_has_poison())
			poison(watch, request, wr->num_sge);
		queue->next++;
	}
	ribv_unlock(&lock);
	print(&report);
	return is_kept;
}

void
ribv_watch_unrecv(struct ribv_watch *watch)
{
	ribv_lock(&lock);
	if (watch->recv.next != watch->recv.first)
		watch->recv.next--;
	ribv_unlock(&lock);
}

/* A request has ended: verify its checksum. */
static void
check_sum(const struct ribv_watch *watch, const struct request *request, struct report *report)
{
	uint32_t i;

	if (likely(!request->is_summed))
		return;
	for (i = 0; i < request->num_sge && ribv_is_mapped(&request->sge[i]); i++)
		;
	if (i < request->num_sge)
		report_buffer(watch, RIBV_FOUND_UNMAPPED, request,
				"was unmapped between post and completion", report);
	else if (unlikely(ribv_sum(request->sge, request->num_sge) != request->sum))
		report_buffer(watch, RIBV_FOUND_CHANGED, request,
				"changed between post and completion", report);
}

/* A receive has ended: verify the pattern. A failed receive may have got a part of its message. */
static void
check_poison(const struct ribv_watch *watch, const struct request *request,
		const struct rmem_wc *wc, struct report *report)
{
	uint64_t n = wc->opcode == RMEM_WC_RECV ? wc->byte_len : 0, at = 0;
	enum ribv_kind kind = RIBV_FOUND_RECV_WRITTEN;
	uint32_t i;

	for (i = 0; i < request->num_sge && ribv_is_mapped(&request->sge[i]); i++)
		;
	if (i < request->num_sge || wc->status != RMEM_WC_SUCCESS)
		return;
	if (ribv_poison_received(request->sge, request->num_sge, n))
		kind = RIBV_FOUND_POISON;
	else if ((at = ribv_poison_written(request->sge, request->num_sge, n)) == 0)
		return;
	if (report->posted.stack.n != 0 || !is_new(kind, request->caller))
		return;
	report_set(report, kind, request);
	if (kind == RIBV_FOUND_POISON)
		snprintf(report->text, sizeof(report->text),
				"QP 0x%06x: the message of receive 0x%" PRIx64
				" begins with poison: a buffer of a receive was read before its "
				"completion",
				watch->qp_num, request->wr_id);
	else
		snprintf(report->text, sizeof(report->text),
				"QP 0x%06x: the buffer of receive 0x%" PRIx64
				" was written at 0x%" PRIx64
				" before its completion, after the message of %" PRIu64 " bytes",
				watch->qp_num, request->wr_id, at, n);
}

/* End the first request with this wr_id, and all requests before it. */
static void
end_requests(struct ribv_watch *watch, const struct rmem_wc *wc, struct report *report)
{
	struct queue *queue = wc->opcode & RMEM_WC_RECV ? &watch->recv : &watch->send;
	bool is_all = wc->status != RMEM_WC_SUCCESS || queue == &watch->recv;
	uint32_t i;

	watch->is_dead |= wc->status != RMEM_WC_SUCCESS;
	for (i = queue->first; i != queue->next; i++) {
		const struct request *request = request_at(queue, i);

		if (request->wr_id == wc->wr_id && (is_all || request->is_signaled))
			break;
	}
	if (i == queue->next)
		return;
	if (unlikely(request_at(queue, i)->is_poisoned))
		check_poison(watch, request_at(queue, i), wc, report);
	for (; queue->first != i + 1; queue->first++)
		check_sum(watch, request_at(queue, queue->first), report);
}

static struct ribv_watch *
find(uint32_t dev, uint32_t qp_num)
{
	struct ribv_watch *watch;

	LIST_FOREACH(watch, &lists[qp_num % NB_LISTS], list) {
		if (watch->qp_num == qp_num && watch->dev == dev)
			return watch;
	}
	return NULL;
}

void
ribv_watch_polled(struct ribv_cq *cq, const struct rmem_wc *wc, int n)
{
	struct report report;
	struct ribv_watch *watch;
	int i;

	if (likely(n <= 0 || !__atomic_load_n(&is_watching, __ATOMIC_RELAXED)))
		return;
	report_init(&report);
	cq->is_polled = true;
	ribv_lock(&lock);
	for (i = 0; i < n; i++) {
		watch = find(ribv_context_of(cq->context)->dev, wc[i].qp_num);
		if (watch != NULL)
			end_requests(watch, &wc[i], &report);
	}
	ribv_unlock(&lock);
	print(&report);
}

/* First request in flight that uses the lkey; NULL: none. */
static const struct request *
find_key(const struct queue *queue, uint32_t lkey)
{
	uint32_t i, j;

	for (i = queue->first; i != queue->next; i++) {
		const struct request *request = request_at(queue, i);

		for (j = 0; j < request->num_sge; j++) {
			if (request->sge[j].lkey == lkey)
				return request;
		}
	}
	return NULL;
}

void
ribv_watch_dereg(uint32_t dev, uint32_t lkey)
{
	struct report report;
	const struct request *request;
	struct ribv_watch *watch;
	uint32_t i;

	if (likely(!__atomic_load_n(&is_watching, __ATOMIC_RELAXED)))
		return;
	report_init(&report);
	ribv_lock(&lock);
	for (i = 0; i < NB_LISTS; i++) {
		LIST_FOREACH(watch, &lists[i], list) {
			request = watch->dev == dev ? find_key(&watch->send, lkey) : NULL;
			if (request == NULL && watch->dev == dev)
				request = find_key(&watch->recv, lkey);
			if (request == NULL || report.posted.stack.n != 0 || watch->is_dead ||
					!is_new(RIBV_FOUND_DEREG, request->caller))
				continue;
			report_set(&report, RIBV_FOUND_DEREG, request);
			snprintf(report.text, sizeof(report.text),
					"QP 0x%06x: the MR with lkey 0x%08x is deregistered while "
					"request 0x%" PRIx64 " is in flight",
					watch->qp_num, lkey, request->wr_id);
		}
	}
	ribv_unlock(&lock);
	print(&report);
}
