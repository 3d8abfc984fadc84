/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * With sanitize=1: at exit, report objects that are not destroyed, with the calls that created
 * them; report calls that wait for unacknowledged events; and make the reports of ribv_watch.c. The
 * kernel releases the objects too, so a report does not change the exit status.
 *
 * Invariant: the event of a slot is written before the type of the slot is stored (release), and
 * read after the type was loaded (acquire).
 */

#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "ribv.h"
#include "ribv_finding.h"

#define MAX_PLACES 64 /* places that are counted */
#define MAX_SHOWN  10
#define WAIT_S     1

/* Objects of one type created by the same calls. */
struct place {
	enum ribv_type type;
	const struct ribv_event *made;
	uint32_t nb_objs;
};

static const char *const type_names[] = {
		[RIBV_CONTEXT] = "context",
		[RIBV_PD] = "PD",
		[RIBV_MR] = "MR",
		[RIBV_MW] = "MW",
		[RIBV_CQ] = "CQ",
		[RIBV_QP] = "QP",
		[RIBV_SRQ] = "SRQ",
		[RIBV_TD] = "thread domain",
		[RIBV_CHANNEL] = "completion channel",
		[RIBV_AH] = "AH",
		[RIBV_DM] = "device memory",
		[RIBV_XRCD] = "XRC domain",
		[RIBV_BUF] = "buffer",
		[RIBV_CNTR] = "completion counter",
};

static struct ribv_event *made; /* by slot */

static void
keep(uint32_t slot)
{
	ribv_event_now(&made[slot]);
}

static void
report_place(const struct place *place)
{
	char what[64];

	snprintf(what, sizeof(what), "exits with %u %s%s not destroyed", place->nb_objs,
			type_names[place->type],
			place->nb_objs != 1 && place->type != RIBV_DM ? "s" : "");
	ribv_find(&(struct ribv_finding){.kind = RIBV_FOUND_LEAK,
			.what = what,
			.how = place->nb_objs != 1 ? "the first made" : "made",
			.event = place->made});
}

/* librdmacm keeps contexts and PDs, and releases them after this report. */
static bool
is_kept_by_librdmacm(const struct ribv_stack *stack, enum ribv_type type)
{
	int first = ribv_first_frame(stack);

	return (type == RIBV_CONTEXT || type == RIBV_PD) && first < stack->n &&
			ribv_is_in(stack->frames[first], "librdmacm");
}

/* Count an object; false if there are too many places. */
static bool
count(struct place places[], uint32_t *n, enum ribv_type type, const struct ribv_event *event)
{
	const struct ribv_stack *stack = &event->stack;
	uint32_t i;

	for (i = 0; i < *n; i++) {
		if (places[i].type == type && places[i].made->stack.n == stack->n &&
				memcmp(places[i].made->stack.frames, stack->frames,
						sizeof(stack->frames)) == 0)
			break;
	}
	if (i == MAX_PLACES)
		return false;
	if (i == *n)
		places[(*n)++] = (struct place){type, event, 0};
	places[i].nb_objs++;
	return true;
}

static const struct ribv_event *
made_of(const void *obj)
{
	return &made[((uintptr_t)obj - ribv_objs) / RIBV_SLOT];
}

/* Whether this is the first report of the kind for objects created by these calls. Only threads
 * that exit race here. */
static bool
is_new(enum ribv_kind kind, const struct ribv_event *event)
{
	static struct {
		enum ribv_kind kind;
		struct ribv_stack stack;
	} seen[MAX_PLACES];
	static uint32_t nb_seen;
	uint32_t i;

	for (i = 0; i < nb_seen; i++) {
		if (seen[i].kind == kind &&
				memcmp(seen[i].stack.frames, event->stack.frames,
						sizeof(event->stack.frames)) == 0)
			return false;
	}
	if (nb_seen == MAX_PLACES)
		return false;
	seen[nb_seen].kind = kind;
	seen[nb_seen++].stack = event->stack;
	return true;
}

static void
report_unpolled(const struct ribv_cq *cq, uint32_t nb)
{
	char what[96];

	if (nb == 0 || cq->is_polled || !is_new(RIBV_FOUND_UNPOLLED, made_of(cq)))
		return;
	snprintf(what, sizeof(what), "a CQ had at least %u completion%s, and none was polled", nb,
			nb != 1 ? "s" : "");
	ribv_find(&(struct ribv_finding){.kind = RIBV_FOUND_UNPOLLED,
			.what = what,
			.how = "made",
			.event = made_of(cq)});
}

void
ribv_sanitize_cq_end(struct ribv_cq *cq)
{
	if (made != NULL)
		report_unpolled(cq, cq->nb_lost);
}

/* Not for on-demand paging, whose memory may be unmapped (ibv_reg_mr(3)). */
void
ribv_sanitize_mr_end(const struct ribv_mr *mr)
{
	const struct rmem_sge range = {.addr = (uintptr_t)mr->ibv.addr,
			.length = (uint32_t)RTE_MIN(mr->ibv.length, (size_t)UINT32_MAX)};
	char what[128];

	if (made == NULL || !mr->is_plain || mr->is_on_demand || mr->ibv.length == 0 ||
			ribv_is_mapped(&range) || !is_new(RIBV_FOUND_FREED, made_of(mr)))
		return;
	snprintf(what, sizeof(what),
			"memory of an MR, %p to %p, was unmapped before it is deregistered",
			mr->ibv.addr, (void *)((char *)mr->ibv.addr + mr->ibv.length));
	ribv_find(&(struct ribv_finding){.kind = RIBV_FOUND_FREED,
			.what = what,
			.how = "made",
			.event = made_of(mr),
			.has_finder = true});
}

/* Report unacknowledged events of an object at exit. */
static void
report_events(const void *obj, const char *type, uint32_t nb)
{
	char what[96];

	if (nb == 0 || nb > INT32_MAX || !is_new(RIBV_FOUND_EVENT, made_of(obj)))
		return;
	snprintf(what, sizeof(what), "exits with %u event%s of a %s not acknowledged", nb,
			nb != 1 ? "s" : "", type);
	ribv_find(&(struct ribv_finding){.kind = RIBV_FOUND_EVENT,
			.what = what,
			.how = "made",
			.event = made_of(obj)});
}

static void
report_cq(struct ribv_cq *cq)
{
	uint32_t nb = cq->nb_lost;

	if (nb == 0 && !cq->is_polled)
		nb = ribv_env_attach() && ribv_cq_has_wc(cq) && cq->first_kept != cq->last_kept &&
				cq->kept[cq->first_kept].status != RMEM_WC_WR_FLUSH_ERR;
	report_unpolled(cq, nb);
	report_events(cq, "CQ",
			cq->nb_events - cq->ibv.comp_events_completed -
					cq->ibv.async_events_completed);
}

/* Report unpolled completions and unacknowledged events at exit. */
static void
report_objects(void)
{
	enum ribv_type type;
	uintptr_t obj;
	uint32_t i;

	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		type = (enum ribv_type)__atomic_load_n(&ribv_types[i], __ATOMIC_ACQUIRE);
		obj = ribv_objs + (uintptr_t)i * RIBV_SLOT;
		if (type == RIBV_CQ)
			report_cq((struct ribv_cq *)obj);
		else if (type == RIBV_QP)
			report_events((void *)obj, "QP",
					((struct ribv_qp *)obj)->nb_events -
							((struct ribv_qp *)obj)
									->ibv.events_completed);
		else if (type == RIBV_SRQ)
			report_events((void *)obj, "SRQ",
					((struct ribv_srq *)obj)->nb_events -
							((struct ribv_srq *)obj)
									->ibv.events_completed);
	}
}

/*
 * A destructor, so it runs after all functions of atexit(), which may destroy objects, even if the
 * program registered them before it used a device.
 */
static __attribute__((destructor)) void
report(void)
{
	struct place places[MAX_PLACES];
	uint32_t i, nb_places = 0, nb_others = 0;
	enum ribv_type type;

	if (made == NULL)
		return;
	ribv_watch_exit();
	report_objects();
	for (i = 1; i < RIBV_MAX_OBJS; i++) {
		type = (enum ribv_type)__atomic_load_n(&ribv_types[i], __ATOMIC_ACQUIRE);
		if (type > RIBV_NEW && !is_kept_by_librdmacm(&made[i].stack, type) &&
				!count(places, &nb_places, type, &made[i]))
			nb_others++;
	}
	for (i = 0; i < nb_places; i++) {
		if (i < MAX_SHOWN)
			report_place(&places[i]);
		else
			nb_others += places[i].nb_objs;
	}
	if (nb_others != 0)
		fprintf(stderr, "rmem_ibv: sanitize: and %u other objects\n", nb_others);
	made = NULL;
}

void
ribv_sanitize_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const char *type)
{
	struct timespec until;
	char what[64];

	if (made == NULL) {
		pthread_cond_wait(cond, mutex);
		return;
	}
	/* Wait a while: another thread may be about to acknowledge the events. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	if (pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT)
		return;
	snprintf(what, sizeof(what), "waits: events of the %s are not acknowledged", type);
	ribv_find(&(struct ribv_finding){
			.kind = RIBV_FOUND_EVENT, .what = what, .has_finder = true});
	pthread_cond_wait(cond, mutex);
}

void
ribv_sanitize_start(void)
{
	void *memory, *frame;

	if (made != NULL)
		return;
	memory = mmap(NULL, RIBV_MAX_OBJS * sizeof(*made), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return;
	backtrace(&frame, 1); /* the first backtrace() loads a library */
	made = memory;
	ribv_entered = keep;
}
