/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * All that two engines and their consumers can do with one connection, to a bound. In each state
 * each message in flight may be delivered, lost or duplicated, in any order; each timer may
 * expire; and each consumer may accept, reject, confirm, disconnect or release its ID. A state is
 * reached again by repeating its steps from the beginning, so the engines need no copy.
 *
 * Time has one rule: time-wait does not expire while messages are in flight, since it is longer
 * than these exist.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "ibcm_priv.h"
#include "pair.h"

#define MAX_STEPS  64u
#define TABLE_SIZE (1u << 21)

enum step_kind {
	STEP_DELIVER, /* the message with that number */
	STEP_LOSE,
	STEP_DUPLICATE, /* deliver it, and keep it in flight */
	STEP_EXPIRE,    /* the timer of a side */
	STEP_ACCEPT,    /* and the calls of a consumer, with its side */
	STEP_REJECT,
	STEP_READY,
	STEP_NOTIFY,
	STEP_DISCONNECT,
	STEP_RELEASE,
	STEP_FORGE, /* not explored: a REP that side 1 did not send */
};

struct step {
	uint8_t kind;
	uint8_t which;
};

/* The knowledge of the consumer of a side. */
struct consumer {
	struct ibcm_id *id; /* NULL: none yet, or released */
	bool has_req, has_rep, has_established, has_accepted, has_confirmed, has_rejected;
	bool has_ended; /* REJECTED, UNREACHABLE or DISCONNECTED */
	bool has_exited;
	bool is_released;
};

struct world {
	struct consumer user[2];
	uint32_t losses, duplicates; /* left */
	bool has_lost_end;           /* of the messages lost, one was a REJ */
	const char *broken;          /* the invariant, or NULL */
	struct pair pair;
};

struct state {
	uint64_t fingerprint;
	uint32_t from; /* the state before the last step */
	struct step step;
	uint8_t nb_steps;
};

struct bounds {
	uint8_t losses, duplicates, retries;
	bool has_calls; /* reject, notify, disconnect and release are explored too */
};

static struct world world;
static struct bounds bounds;
static struct state *states;
static uint32_t nb_states;
static uint32_t *table; /* hash of fingerprints: index of a state, plus 1 */

static void
expect(bool is_true, const char *invariant)
{
	if (!is_true && world.broken == NULL)
		world.broken = invariant;
}

#define EXPECT(condition) expect((condition), #condition)

static void
on_event(struct pair_side *side, const struct ibcm_event *event)
{
	uint32_t no = side == &world.pair.side[1];
	struct consumer *user = &world.user[no];

	if (event->type == IBCM_EVENT_REQ && user->has_req) {
		/* The REJ was lost, and a REQ was sent again after time-wait: it is a new one. */
		EXPECT(user->has_exited || user->is_released);
		ibcm_release(event->id, side->now);
		return;
	}
	EXPECT(!user->is_released);
	EXPECT(!user->has_exited);
	EXPECT(!user->has_ended || event->type == IBCM_EVENT_TIMEWAIT_EXIT);
	switch (event->type) {
	case IBCM_EVENT_REQ:
		expect(no == 1, "only side 1 listens");
		user->has_req = true;
		user->id = event->id;
		break;
	case IBCM_EVENT_REP:
		expect(no == 0 && !user->has_rep, "one REP is reported once");
		expect(world.user[1].has_accepted, "a REP has a consumer that accepted");
		user->has_rep = true;
		break;
	case IBCM_EVENT_ESTABLISHED:
		expect(no == 1 && !user->has_established, "one RTU is reported once");
		expect(world.user[0].has_confirmed, "an RTU has a consumer that confirmed");
		user->has_established = true;
		break;
	case IBCM_EVENT_REJECTED:
	case IBCM_EVENT_UNREACHABLE:
	case IBCM_EVENT_DISCONNECTED:
		user->has_ended = true;
		break;
	case IBCM_EVENT_TIMEWAIT_EXIT:
		user->has_exited = true;
		break;
	default:
		expect(false, "no event of SIDR");
		break;
	}
	EXPECT(event->id == user->id);
}

static void
begin(void)
{
	struct ibcm_req_conf conf;

	memset(&world, 0, offsetof(struct world, pair));
	pair_open(&world.pair, 4, 4);
	world.pair.side[0].event = world.pair.side[1].event = on_event;
	world.losses = bounds.losses;
	world.duplicates = bounds.duplicates;
	EXPECT(pair_listen(&world.pair, 1, 4) == 0);
	conf = pair_req(&world.pair, 0);
	conf.max_cm_retries = bounds.retries;
	EXPECT(ibcm_connect(world.pair.side[0].cm, 0, &conf, &world.user[0].id) == 0);
}

static bool
is_timewait(uint32_t no)
{
	struct ibcm_timer *first = ibcm_heap_first(&world.pair.side[no].cm->timers);

	return first != NULL && ibcm_id_of_timer(first)->state == IBCM_TIMEWAIT;
}

static void
forge_rep(void)
{
	struct pair_side *side = &world.pair.side[0];
	struct ibcm_req_conf conf = pair_req(&world.pair, 0);
	const struct ibcm_msg rep = {.type = IBCM_REP,
			.tid = world.user[0].id->tid,
			.local_id = 1,
			.remote_id = world.user[0].id->local_id,
			.qpn = 2};
	uint8_t mad[IBCM_MAD_LEN];

	EXPECT(ibcm_mad_encode(&rep, mad));
	ibcm_input(side->cm, side->now, &conf.path, mad);
}

/* A call of the consumer of a side, which its state permits. */
static void
call(uint32_t kind, uint32_t no)
{
	struct consumer *user = &world.user[no];
	uint64_t now = world.pair.side[no].now;
	struct ibcm_qp_conf qp = pair_qp(no);
	struct ibcm_id *id = user->id;

	switch (kind) {
	case STEP_ACCEPT:
		user->has_accepted = true;
		EXPECT(ibcm_accept(id, now, &qp, NULL) == 0);
		break;
	case STEP_REJECT:
		user->has_rejected = true;
		EXPECT(ibcm_reject(id, now, IBCM_REJ_CONSUMER, NULL) == 0);
		break;
	case STEP_READY:
		user->has_confirmed = true;
		EXPECT(ibcm_ready(id, NULL) == 0);
		break;
	case STEP_NOTIFY:
		user->has_established = true;
		EXPECT(ibcm_notify(id) == 0);
		break;
	case STEP_DISCONNECT:
		EXPECT(ibcm_disconnect(id, now, NULL) == 0);
		break;
	default:
		user->is_released = true;
		user->id = NULL;
		ibcm_release(id, now);
		break;
	}
}

/* The two sides agree on what each has of the other. */
static void
check(void)
{
	const struct consumer *user = world.user;
	enum ibcm_state state[2];
	struct ibcm_qp_attr attr[2] = {{.qpn = 0}};
	uint32_t no;

	for (no = 0; no < 2; no++) {
		const struct ibcm *cm = world.pair.side[no].cm;

		state[no] = user[no].id != NULL ? ibcm_state(user[no].id) : IBCM_IDLE;
		if (user[no].id != NULL)
			ibcm_qp_attr(user[no].id, &attr[no]);
		EXPECT(!user[no].has_exited || state[no] == IBCM_IDLE);
		EXPECT(!user[no].has_ended || state[no] == IBCM_IDLE || state[no] == IBCM_TIMEWAIT);
		/* A duplicate makes no second ID. */
		EXPECT(cm->nb_ids <= 1u + user[no].has_exited);
	}
	if (state[0] == IBCM_ESTABLISHED)
		EXPECT(user[0].has_confirmed && user[1].has_accepted);
	if (state[1] == IBCM_ESTABLISHED)
		EXPECT(user[1].has_accepted && user[0].has_confirmed);
	if (state[0] == IBCM_ESTABLISHED && state[1] == IBCM_ESTABLISHED) {
		EXPECT(attr[0].peer_qpn == attr[1].qpn && attr[1].peer_qpn == attr[0].qpn);
		EXPECT(attr[0].peer_psn == attr[1].psn && attr[1].peer_psn == attr[0].psn);
		EXPECT(attr[0].initiator_depth <= attr[1].responder_resources);
		EXPECT(attr[1].initiator_depth <= attr[0].responder_resources);
	}
}

static void
take(struct step step)
{
	struct pair *pair = &world.pair;
	struct pair_mad copy;

	switch (step.kind) {
	case STEP_DELIVER:
		pair_deliver(pair, step.which);
		break;
	case STEP_LOSE:
		world.losses--;
		world.has_lost_end |= pair_msg(pair, step.which).type == IBCM_REJ;
		pair_drop(pair, step.which);
		break;
	case STEP_DUPLICATE:
		world.duplicates--;
		copy = pair->net[step.which];
		pair_deliver(pair, step.which);
		pair->net[pair->nb_net++] = copy;
		break;
	case STEP_EXPIRE:
		EXPECT(pair_expire(pair, step.which));
		break;
	case STEP_FORGE:
		forge_rep();
		break;
	default:
		call(step.kind, step.which);
		break;
	}
	check();
}

static uint64_t
hash_bytes(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 31;
}

/* All that decides what may follow; times do not, since timers expire at any time. */
static uint64_t
fingerprint(void)
{
	uint64_t h = hash_bytes(UINT64_C(0xcbf29ce484222325), &world.losses, sizeof(world.losses));
	uint64_t net = 0;
	uint32_t no, i;

	h = hash_bytes(h, &world.duplicates, sizeof(world.duplicates));
	h = hash_bytes(h, &world.has_lost_end, sizeof(world.has_lost_end));
	for (no = 0; no < 2; no++) {
		const struct ibcm *cm = world.pair.side[no].cm;
		struct consumer user = world.user[no];
		const struct ibcm_id *id;

		user.id = (struct ibcm_id *)(uintptr_t)(user.id != NULL);
		h = hash_bytes(h, &user, sizeof(user));
		h = hash_bytes(h, &cm->nb_ids, sizeof(cm->nb_ids));
		for (i = 0; i <= cm->tables[IBCM_BY_ID].mask; i++) {
			id = cm->tables[IBCM_BY_ID].buckets[i];
			if (id == NULL)
				continue;
			h = hash_bytes(h, &id->state, sizeof(id->state));
			h = hash_bytes(h, &id->retries, sizeof(id->retries));
			h = hash_bytes(h, &id->has_mra, sizeof(id->has_mra));
			h = hash_bytes(h, &id->mad_type, sizeof(id->mad_type));
			h = hash_bytes(h, &id->timer.at, sizeof(id->timer.at));
			h = hash_bytes(h, &id->is_released, sizeof(id->is_released));
		}
	}
	for (i = 0; i < world.pair.nb_net; i++)
		net += hash_bytes(world.pair.net[i].to + 1, world.pair.net[i].mad, IBCM_MAD_LEN);
	return hash_bytes(h, &net, sizeof(net));
}

/* The steps of the consumer of a side that its state permits. */
static uint32_t
calls_of(uint32_t no, struct step *to)
{
	const struct consumer *user = &world.user[no];
	enum ibcm_state state;
	uint32_t n = 0;

	if (user->id == NULL)
		return 0;
	state = ibcm_state(user->id);
	if (state == IBCM_REQ_RCVD)
		to[n++] = (struct step){STEP_ACCEPT, (uint8_t)no};
	if (state == IBCM_REP_RCVD)
		to[n++] = (struct step){STEP_READY, (uint8_t)no};
	if (!bounds.has_calls)
		return n;
	/* Data arrives only from a peer that has confirmed. */
	if (state == IBCM_REP_SENT && world.user[0].has_confirmed)
		to[n++] = (struct step){STEP_NOTIFY, (uint8_t)no};
	if (state == IBCM_REQ_RCVD || state == IBCM_REP_RCVD || state == IBCM_REP_SENT)
		to[n++] = (struct step){STEP_REJECT, (uint8_t)no};
	if (state == IBCM_ESTABLISHED)
		to[n++] = (struct step){STEP_DISCONNECT, (uint8_t)no};
	to[n++] = (struct step){STEP_RELEASE, (uint8_t)no};
	return n;
}

static uint32_t
steps_of(struct step *to)
{
	uint32_t n = 0, i;

	for (i = 0; i < world.pair.nb_net; i++) {
		to[n++] = (struct step){STEP_DELIVER, (uint8_t)i};
		if (world.losses != 0)
			to[n++] = (struct step){STEP_LOSE, (uint8_t)i};
		if (world.duplicates != 0)
			to[n++] = (struct step){STEP_DUPLICATE, (uint8_t)i};
	}
	for (i = 0; i < 2; i++) {
		if (ibcm_next(world.pair.side[i].cm) != IBCM_NEVER &&
				(world.pair.nb_net == 0 || !is_timewait(i)))
			to[n++] = (struct step){STEP_EXPIRE, (uint8_t)i};
		n += calls_of(i, &to[n]);
	}
	return n;
}

/* Repeat the steps that lead to a state. */
static void
go_to(uint32_t at)
{
	struct step path[MAX_STEPS];
	uint32_t n = 0;

	begin();
	for (; states[at].nb_steps != 0; at = states[at].from)
		path[n++] = states[at].step;
	while (n != 0)
		take(path[--n]);
}

/* From here on nothing is lost, and consumers answer: both sides get to the same end. */
static void
settle(void)
{
	struct step calls[8];
	uint32_t no, nb_steps = 0;
	bool is_up[2], has_more = true;

	while (has_more && nb_steps++ < 1000) {
		pair_deliver_all(&world.pair);
		has_more = false;
		for (no = 0; no < 2; no++) {
			if (calls_of(no, calls) != 0 && calls[0].kind != STEP_RELEASE &&
					(calls[0].kind == STEP_ACCEPT ||
							calls[0].kind == STEP_READY)) {
				take(calls[0]);
				has_more = true;
			}
			has_more |= world.pair.nb_net == 0 && pair_expire(&world.pair, no);
		}
		has_more |= world.pair.nb_net != 0;
	}
	expect(!has_more, "both sides come to an end");
	for (no = 0; no < 2; no++)
		is_up[no] = world.user[no].id != NULL &&
				ibcm_state(world.user[no].id) == IBCM_ESTABLISHED;
	/* A side that ends without an answer reports that once, so one lost message is enough. */
	if (!world.has_lost_end)
		EXPECT(is_up[0] == is_up[1]);
}

/* Both consumers release what they have: nothing is left. */
static void
finish(void)
{
	uint32_t no, i;

	for (no = 0; no < 2; no++) {
		if (world.user[no].id != NULL)
			call(STEP_RELEASE, no);
	}
	do
		pair_deliver_all(&world.pair);
	while (pair_expire(&world.pair, 0) || pair_expire(&world.pair, 1));
	for (no = 0; no < 2; no++) {
		const struct ibcm *cm = world.pair.side[no].cm;

		EXPECT(cm->nb_ids == 0 && cm->timers.nb == 0);
		for (i = 0; i < IBCM_NB_KEYS; i++)
			EXPECT(cm->tables[i].nb == 0);
		for (i = 0; i < IBCM_SOURCES; i++)
			EXPECT(cm->half_open[i] == 0);
	}
	if (world.pair.side[1].listener != NULL)
		EXPECT(world.pair.side[1].listener->nb_pending == 0);
	EXPECT(world.pair.nb_lost == 0);
}

static void
print_path(uint32_t at)
{
	static const char *const names[] = {"deliver", "lose", "duplicate", "expire", "accept",
			"reject", "ready", "notify", "disconnect", "release", "forge"};
	struct step path[MAX_STEPS];
	uint32_t n = 0, no;

	printf("broken: %s, after", world.broken);
	for (; states[at].nb_steps != 0; at = states[at].from)
		path[n++] = states[at].step;
	while (n != 0) {
		n--;
		printf(" %s:%u", names[path[n].kind], path[n].which);
	}
	for (no = 0; no < 2; no++)
		printf(" %s",
				world.user[no].id != NULL
						? ibcm_state_name(ibcm_state(world.user[no].id))
						: "-");
	printf("\n");
}

/* Add a state; false: it is known, or the bounds are reached. */
static bool
add_state(uint32_t from, struct step step, uint64_t print, uint32_t nb_steps)
{
	uint32_t at = (uint32_t)(print >> 20) % TABLE_SIZE;

	for (; table[at] != 0; at = (at + 1) % TABLE_SIZE) {
		if (states[table[at] - 1].fingerprint == print)
			return false;
	}
	if (nb_steps >= MAX_STEPS || nb_states == TABLE_SIZE / 2)
		return false;
	states[nb_states] = (struct state){.fingerprint = print,
			.from = from,
			.step = step,
			.nb_steps = (uint8_t)nb_steps};
	table[at] = ++nb_states;
	return true;
}

/* Explore; the number of states, or -1 if an invariant is broken. */
static int64_t
explore(struct bounds limits)
{
	struct step steps[4 * PAIR_MAX_NET];
	uint32_t at, i, n;

	bounds = limits;
	nb_states = 0;
	memset(table, 0, TABLE_SIZE * sizeof(*table));
	begin();
	add_state(0, (struct step){0}, fingerprint(), 0);
	pair_close(&world.pair);
	for (at = 0; at < nb_states && world.broken == NULL; at++) {
		go_to(at);
		n = steps_of(steps);
		settle();
		finish();
		pair_close(&world.pair);
		for (i = 0; i < n && world.broken == NULL; i++) {
			go_to(at);
			take(steps[i]);
			add_state(at, steps[i], fingerprint(), states[at].nb_steps + 1u);
			pair_close(&world.pair);
		}
	}
	if (world.broken != NULL) {
		print_path(at != 0 ? at - 1 : 0);
		return -1;
	}
	return nb_states;
}

static void
set_up(void)
{
	states = malloc(TABLE_SIZE / 2 * sizeof(*states));
	table = malloc(TABLE_SIZE * sizeof(*table));
	TEST_ASSERT(states != NULL && table != NULL);
}

static void
tear_down(void)
{
	free(states);
	free(table);
}

TEST_SUITE(ibcm_explore, set_up, tear_down);

static void
explore_within(struct bounds limits)
{
	int64_t n = explore(limits);

	TEST_ASSERT(n > 0);
	TEST_ASSERT(n < TABLE_SIZE / 2); /* all of them were explored */
	test_note("%u losses, %u duplicates, %u retries%s: %" PRId64 " states", limits.losses,
			limits.duplicates, limits.retries, limits.has_calls ? ", all calls" : "",
			n);
}

TEST_CALL(ibcm_explore, loss_ends_in_agreement,
		explore_within((struct bounds){.losses = 3, .retries = 2}));
TEST_CALL(ibcm_explore, duplicates_and_reordering_end_in_agreement,
		explore_within((struct bounds){.losses = 1, .duplicates = 2, .retries = 1}));
TEST_CALL(ibcm_explore, all_calls_end_in_agreement,
		explore_within((struct bounds){.losses = 1, .retries = 1, .has_calls = true}));
TEST_CALL(ibcm_explore, all_calls_with_a_duplicate_end_in_agreement,
		explore_within((struct bounds){.duplicates = 1, .retries = 1, .has_calls = true}));

/* Of long-tests. */
TEST(ibcm_explore, all_calls_with_both_end_in_agreement)
{
	TEST_SKIP_IF(getenv("RMEM_TEST_IBCM_LONG") == NULL, "RMEM_TEST_IBCM_LONG is not set");
	explore_within((struct bounds){
			.losses = 1, .duplicates = 1, .retries = 1, .has_calls = true});
}

/* The checks find a connection that only one side knows. */
TEST(ibcm_explore, forged_reply_is_detected)
{
	bounds = (struct bounds){.losses = 0};
	begin();
	take((struct step){STEP_FORGE, 0});
	pair_close(&world.pair);
	TEST_ASSERT(world.broken != NULL);
	world.broken = NULL;
}
