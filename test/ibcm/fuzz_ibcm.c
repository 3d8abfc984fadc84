/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A fuzzer of the communication manager: an input is a list of steps of two engines, of the network
 * between them, which a third host knows completely, and of consumers that call any function at any
 * time, also from inside of events.
 *
 * After each step the limits hold, the counters and tables of the engines are those of their IDs,
 * and an ID has reported its request, its reply and its end at most once. At the end both consumers
 * release their IDs, and after some time nothing is left. An input begins with new engines.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_common.h>

#include "../wire/fuzz.h"
#include "../wire/xorshift.h"
#include "ibcm_priv.h"
#include "pair.h"

#define MAX_IDS       12u
#define MAX_HALF_OPEN 6u
#define MAX_LISTENERS 4u /* of a side */
#define MAX_CONNS     (2 * MAX_IDS)
#define OTHER_SERVICE UINT64_C(0x0106000000000007)

/* Of an input; the bytes of the step follow. */
struct step {
	uint8_t kind;  /* enum step_kind, modulo STEP_NB */
	uint8_t which; /* a MAD in flight, an ID, a listener or an address */
	uint8_t what;  /* the call, or the type of a MAD */
	uint8_t side;  /* bit 0; the others: enum step_flag */
	uint16_t value;
	uint8_t event; /* not 0: the call that the next event makes */
	uint8_t len;   /* of the bytes */
};

enum step_kind {
	STEP_RAW,    /* a MAD of the third host, whose body begins with the bytes */
	STEP_CHANGE, /* a MAD in flight: the bytes, by exclusive or */
	STEP_DELIVER,
	STEP_REPEAT,
	STEP_DROP,
	STEP_TIME,
	STEP_CONNECT,
	STEP_RESOLVE,
	STEP_LISTEN, /* or no more */
	STEP_CALL,
	STEP_NB,
};

enum step_flag {
	STEP_ALL = 0x02,    /* all MADs; to the next timer; the header, too; the call that is due */
	STEP_BAD = 0x04,    /* an argument out of range */
	STEP_IP = 0x08,     /* addresses of annex A11 */
	STEP_SECOND = 0x10, /* the other service ID */
	STEP_IP6 = 0x20,
	STEP_SAME = 0x40, /* the QP number of the previous connection */
	STEP_SELF = 0x80, /* to this side's own address */
};

enum call_kind {
	CALL_ACCEPT,
	CALL_READY,
	CALL_NOTIFY,
	CALL_REJECT,
	CALL_DISCONNECT,
	CALL_ANSWER,
	CALL_RELEASE,
	CALL_NB,
};

/* The knowledge of a consumer about an ID. */
struct conn {
	struct ibcm_id *id; /* NULL: free */
	uint8_t side;
	bool is_active, is_sidr;
	bool has_accepted, has_rep, has_established, has_ended, has_exited;
};

static struct {
	struct pair pair;
	struct conn conns[2][MAX_CONNS];
	struct ibcm_listener *listeners[2][MAX_LISTENERS];
	struct ibcm_listen_conf confs[2][MAX_LISTENERS];
	uint32_t next_qpn;
	uint8_t event; /* of the step */
	bool is_called;
	bool is_end; /* requests are released at once */
	uint64_t nb_events[IBCM_EVENT_SIDR_REP + 1];
	uint64_t nb_calls[CALL_NB];
	struct ibcm_stats stats;
} fz;

static const uint8_t addrs[][16] = {{0}, {[12] = 192, 0, 2, 1}, {[12] = 192, 0, 2, 2},
		{0xfd, [15] = 1}, {0xfd, [15] = 2}};

static uint64_t
service_of(uint8_t flags)
{
	return (flags & STEP_SECOND) != 0 ? OTHER_SERVICE : PAIR_SERVICE;
}

static struct conn *
conn_add(uint32_t side, struct ibcm_id *id)
{
	uint32_t i;

	for (i = 0; i < MAX_CONNS; i++) {
		struct conn *conn = &fz.conns[side][i];

		if (conn->id != NULL)
			continue;
		*conn = (struct conn){.id = id, .side = (uint8_t)side};
		if (id != NULL)
			ibcm_arg_set(id, conn);
		return conn;
	}
	CHECK(!"the consumer has more IDs than the engine");
	return NULL;
}

static bool
is_rejectable(enum ibcm_state state)
{
	return state == IBCM_REQ_RCVD || state == IBCM_REP_SENT || state == IBCM_REP_RCVD;
}

static int
call_accept(struct conn *conn, uint64_t now, const struct ibcm_data *data)
{
	struct ibcm_qp_conf qp = pair_qp(conn->side);

	qp.qpn = fz.next_qpn++;
	return ibcm_accept(conn->id, now, &qp, data);
}

static int
call_one(struct conn *conn, uint32_t what, uint64_t now, const struct ibcm_data *data,
		bool *is_permitted)
{
	enum ibcm_state state = ibcm_state(conn->id);

	switch (what) {
	case CALL_ACCEPT:
		*is_permitted = state == IBCM_REQ_RCVD;
		return call_accept(conn, now, data);
	case CALL_READY:
		*is_permitted = state == IBCM_REP_RCVD;
		return ibcm_ready(conn->id, data);
	case CALL_NOTIFY:
		*is_permitted = state == IBCM_REP_SENT;
		return ibcm_notify(conn->id);
	case CALL_REJECT:
		*is_permitted = is_rejectable(state);
		return ibcm_reject(conn->id, now, IBCM_REJ_CONSUMER, data);
	case CALL_DISCONNECT:
		*is_permitted = state == IBCM_ESTABLISHED;
		return ibcm_disconnect(conn->id, now, data);
	default:
		*is_permitted = state == IBCM_SIDR_REQ_RCVD;
		return ibcm_answer(conn->id, now, IBCM_SIDR_VALID, fz.next_qpn, 1, data);
	}
}

static void
release(struct conn *conn)
{
	struct ibcm_id *id = conn->id;

	conn->id = NULL;
	ibcm_release(id, fz.pair.side[conn->side].now);
}

/* Call a function: it succeeds in the states that its description has. */
static void
call(struct conn *conn, uint32_t what, bool is_bad)
{
	static const uint8_t bytes[IBCM_MAX_DATA + 1] = {1};
	const struct ibcm_data data = {bytes, is_bad ? sizeof(bytes) : what};
	bool is_permitted;
	int ret;

	fz.is_called = true;
	fz.nb_calls[what]++;
	if (what == CALL_RELEASE) {
		release(conn);
		return;
	}
	ret = call_one(conn, what, fz.pair.side[conn->side].now, &data, &is_permitted);
	if (is_bad && what != CALL_NOTIFY)
		CHECK(ret == -EINVAL);
	else
		CHECK(ret == (is_permitted ? 0 : -EBUSY));
	if (ret != 0)
		return;
	conn->has_accepted |= what == CALL_ACCEPT;
	conn->has_established |= what == CALL_NOTIFY;
	conn->has_ended |= what == CALL_REJECT || what == CALL_ANSWER;
}

/* A request is for a listener that has its service ID, its IP version and its address. */
static void
check_request(uint32_t side, const struct ibcm_event *event)
{
	const struct ibcm_listen_conf *conf = event->listener_arg;
	uint32_t no = (uint32_t)(conf - fz.confs[side]);

	CHECK(no < MAX_LISTENERS && fz.listeners[side][no] != NULL);
	CHECK(event->msg->service_id == conf->service_id);
	CHECK((event->ip != NULL) == (conf->family != IBCM_NO_IP));
	CHECK(event->data_len + (event->ip != NULL ? IBCM_IP_LEN : 0) == event->msg->data_len);
	if (event->ip == NULL)
		return;
	CHECK(conf->family == IBCM_IP_ANY || conf->family == event->ip->version);
	CHECK(memcmp(conf->addr, addrs[0], 16) == 0 || memcmp(conf->addr, event->ip->dst, 16) == 0);
}

static void
check_event(struct conn *conn, const struct ibcm_event *event)
{
	enum ibcm_state state = ibcm_state(event->id);

	CHECK(!conn->has_exited);
	CHECK(!conn->has_ended || event->type == IBCM_EVENT_TIMEWAIT_EXIT);
	switch (event->type) {
	case IBCM_EVENT_REP:
		CHECK(conn->is_active && !conn->is_sidr && !conn->has_rep);
		CHECK(state == IBCM_REP_RCVD);
		conn->has_rep = true;
		break;
	case IBCM_EVENT_ESTABLISHED:
		CHECK(!conn->is_active && conn->has_accepted && !conn->has_established);
		CHECK(state == IBCM_ESTABLISHED);
		conn->has_established = true;
		break;
	case IBCM_EVENT_SIDR_REP:
		CHECK(conn->is_active && conn->is_sidr && state == IBCM_IDLE);
		conn->has_ended = true;
		break;
	case IBCM_EVENT_TIMEWAIT_EXIT:
		CHECK(conn->has_ended && state == IBCM_IDLE);
		conn->has_exited = true;
		break;
	default: /* REJECTED, UNREACHABLE or DISCONNECTED */
		CHECK(state == IBCM_TIMEWAIT || state == IBCM_IDLE);
		CHECK(!conn->is_sidr || event->type == IBCM_EVENT_UNREACHABLE);
		conn->has_ended = true;
		break;
	}
}

static void
on_event(struct pair_side *side, const struct ibcm_event *event)
{
	uint32_t no = side == &fz.pair.side[1], what = fz.event;
	struct conn *conn;

	CHECK((uint32_t)event->type < RTE_DIM(fz.nb_events));
	fz.nb_events[event->type]++;
	if (event->type == IBCM_EVENT_REQ || event->type == IBCM_EVENT_SIDR_REQ) {
		conn = conn_add(no, event->id);
		conn->is_sidr = event->type == IBCM_EVENT_SIDR_REQ;
		check_request(no, event);
	} else {
		conn = ibcm_arg(event->id);
		CHECK(conn != NULL && conn->id == event->id);
		check_event(conn, event);
	}
	fz.event = 0;
	if (fz.is_end) {
		release(conn);
	} else if (what != 0) {
		if ((what & 0x80) != 0) /* any other one */
			conn = &fz.conns[what >> 6 & 1][what >> 3 & 7];
		if (conn->id != NULL)
			call(conn, what % CALL_NB, false);
	}
}

static bool
is_half_open(const struct ibcm_id *id)
{
	return id->state == IBCM_REQ_RCVD || id->state == IBCM_SIDR_REQ_RCVD ||
			id->state == IBCM_REP_SENT;
}

static bool
has_timer(enum ibcm_state state)
{
	return state == IBCM_REQ_SENT || state == IBCM_REP_SENT || state == IBCM_DREQ_SENT ||
			state == IBCM_TIMEWAIT || state == IBCM_SIDR_REQ_SENT;
}

static bool
is_listener(uint32_t side, const struct ibcm_listener *listener)
{
	uint32_t i;

	for (i = 0; i < MAX_LISTENERS; i++) {
		if (fz.listeners[side][i] == listener)
			return true;
	}
	return false;
}

static void
check_id(uint32_t side, struct ibcm_id *id)
{
	const struct ibcm *cm = fz.pair.side[side].cm;
	const struct conn *conn = id->arg;
	uint32_t at = id->timer.at;

	CHECK((at != 0) == has_timer(id->state));
	CHECK(at == 0 || cm->timers.timers[at] == &id->timer);
	CHECK(at < 2 || cm->timers.timers[at / 2]->deadline <= id->timer.deadline);
	CHECK((id->state == IBCM_IDLE) == (ibcm_id_by_id(cm, id->local_id) != id));
	if (id->listener != NULL)
		CHECK(is_listener(side, id->listener) && is_half_open(id) &&
				id->state != IBCM_REP_SENT);
	CHECK(id->is_spare == (id->is_released && id->state == IBCM_TIMEWAIT && id->attr.qpn == 0));
	if (id->is_released)
		CHECK(id->state == IBCM_DREQ_SENT || id->state == IBCM_TIMEWAIT);
	else
		CHECK(conn != NULL && conn->id == id);
}

/* A peer that restarted ends a connection whose DREQ it has not answered yet. */
static bool
has_ended(const struct ibcm_id *id)
{
	return id->state == IBCM_TIMEWAIT || id->state == IBCM_IDLE ||
			(id->state == IBCM_DREQ_SENT && id->end == IBCM_END_STALE);
}

/* The counters are those of the IDs, and are within their limits. */
static void
check_engine(uint32_t side)
{
	const struct ibcm *cm = fz.pair.side[side].cm;
	uint32_t half_open[IBCM_SOURCES], nb_in[IBCM_NB_KEYS] = {0};
	uint32_t nb_pending[MAX_LISTENERS] = {0}, nb_timers = 0, nb = 0, i;
	struct ibcm_id *id;

	memcpy(half_open, cm->half_open, sizeof(half_open));
	TAILQ_FOREACH(id, &cm->ids, all) {
		check_id(side, id);
		nb++;
		nb_timers += id->timer.at != 0;
		CHECK((id->end != IBCM_END_NONE) == has_ended(id));
		for (i = 0; i < IBCM_NB_KEYS; i++)
			nb_in[i] += id->is_in[i];
		for (i = 0; i < MAX_LISTENERS && id->listener != NULL; i++)
			nb_pending[i] += id->listener == fz.listeners[side][i];
		if (is_half_open(id))
			half_open[ibcm_half_open(fz.pair.side[side].cm, id->path.remote_gid) -
					cm->half_open]--;
	}
	CHECK(nb == cm->nb_ids && nb <= MAX_IDS);
	CHECK(nb_timers == cm->timers.nb);
	for (i = 0; i < IBCM_NB_KEYS; i++)
		CHECK(nb_in[i] == cm->tables[i].nb);
	for (i = 0; i < MAX_LISTENERS; i++) {
		if (fz.listeners[side][i] != NULL) {
			CHECK(nb_pending[i] == fz.listeners[side][i]->nb_pending);
			CHECK(nb_pending[i] <= fz.confs[side][i].backlog);
		}
	}
	for (i = 0; i < IBCM_SOURCES; i++)
		CHECK(half_open[i] == 0 && cm->half_open[i] <= MAX_HALF_OPEN);
	CHECK(ibcm_next(cm) > fz.pair.side[side].now);
}

static uint64_t
nb_sent(uint32_t side)
{
	const struct ibcm_stats *stats = ibcm_stats(fz.pair.side[side].cm);
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < IBCM_NB_TYPES; i++)
		n += stats->tx[i];
	return n;
}

/* A MAD has one answer, but for the DREQ of a stale connection. */
static void
deliver(uint32_t at)
{
	uint32_t side = fz.pair.net[at].to;
	uint64_t before = nb_sent(side);

	fz.is_called = false;
	pair_deliver(&fz.pair, at);
	CHECK(fz.is_called || nb_sent(side) - before <= 2);
}

static void
step_raw(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	struct pair_mad *entry = &fz.pair.net[fz.pair.nb_net];
	uint32_t at = (step->side & STEP_ALL) != 0 ? 0 : IBCM_HDR_LEN;
	uint32_t side = step->side & 1;

	if (fz.pair.nb_net == PAIR_MAX_NET)
		return;
	memset(entry, 0, sizeof(*entry));
	entry->to = (uint8_t)side;
	entry->path = pair_req(&fz.pair, side).path;
	entry->path.remote_gid[15] ^= (step->which & 7) == 7 ? 4 : 0;
	memcpy(entry->mad, (const uint8_t[]){1, IBCM_MAD_CLASS, 2, 3}, 4);
	entry->mad[17] = (uint8_t)(IBCM_REQ + step->what % (IBCM_NB_TYPES + 2));
	memcpy(entry->mad + at, bytes, RTE_MIN(n, IBCM_MAD_LEN - at));
	fz.pair.nb_net++;
}

static void
step_change(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	struct pair_mad *entry;
	uint32_t i, at = step->value % IBCM_MAD_LEN;

	if (fz.pair.nb_net == 0)
		return;
	entry = &fz.pair.net[step->which % fz.pair.nb_net];
	for (i = 0; i < n && at + i < IBCM_MAD_LEN; i++)
		entry->mad[at + i] ^= bytes[i];
	if ((step->side & STEP_BAD) != 0)
		entry->path.remote_gid[15] ^= 4;
}

static void
step_net(const struct step *step)
{
	uint32_t at;

	if (fz.pair.nb_net == 0)
		return;
	at = step->which % fz.pair.nb_net;
	if (step->kind % STEP_NB == STEP_DROP) {
		pair_drop(&fz.pair, at);
	} else if (step->kind % STEP_NB == STEP_REPEAT) {
		if (fz.pair.nb_net < PAIR_MAX_NET)
			fz.pair.net[fz.pair.nb_net++] = fz.pair.net[at];
	} else if ((step->side & STEP_ALL) != 0) {
		for (at = fz.pair.nb_net; at != 0; at--)
			deliver(0);
	} else {
		deliver(at);
	}
}

static void
step_time(const struct step *step)
{
	struct pair_side *side = &fz.pair.side[step->side & 1];

	if ((step->side & STEP_ALL) != 0) {
		pair_expire(&fz.pair, step->side & 1);
		return;
	}
	side->now += (uint64_t)step->value << step->which % 24;
	ibcm_timeout(side->cm, side->now);
}

static struct ibcm_ip
ip_of(const struct step *step)
{
	struct ibcm_ip ip = {
			.version = (step->side & STEP_IP6) != 0 ? 6 : 4, .src_port = step->value};

	memcpy(ip.dst, addrs[step->which % RTE_DIM(addrs)], sizeof(ip.dst));
	return ip;
}

static void
step_connect(const struct step *step)
{
	uint32_t side = step->side & 1;
	struct ibcm_req_conf conf = pair_req(&fz.pair, side);
	struct conn *conn = conn_add(side, NULL);
	const struct ibcm_ip ip = ip_of(step);
	bool is_bad = (step->side & STEP_BAD) != 0;
	int ret;

	conf.service_id = service_of(step->side);
	conf.ip = (step->side & STEP_IP) != 0 ? &ip : NULL;
	fz.next_qpn += (step->side & STEP_SAME) == 0;
	conf.qp.qpn = fz.next_qpn;
	if ((step->side & STEP_SELF) != 0)
		memcpy(conf.path.remote_gid, conf.path.local_gid, sizeof(conf.path.local_gid));
	conf.max_cm_retries = step->what % 4;
	conf.ack_timeout = step->what >> 3;
	conf.mtu = is_bad ? 0 : 5;
	conf.arg = conn;
	ret = ibcm_connect(fz.pair.side[side].cm, fz.pair.side[side].now, &conf, &conn->id);
	conn->is_active = true;
	CHECK(is_bad ? ret == -EINVAL : ret == 0 || ret == -ENOSPC);
	CHECK((ret == 0) == (conn->id != NULL));
}

static void
step_resolve(const struct step *step)
{
	uint32_t side = step->side & 1;
	struct ibcm_sidr_conf conf = {.path = pair_req(&fz.pair, side).path,
			.service_id = service_of(step->side),
			.cm_timeout = PAIR_TIMEOUT,
			.max_cm_retries = step->what % 4};
	struct conn *conn = conn_add(side, NULL);
	const struct ibcm_ip ip = ip_of(step);
	bool is_bad = (step->side & STEP_BAD) != 0;
	int ret;

	conf.ip = (step->side & STEP_IP) != 0 ? &ip : NULL;
	if (is_bad)
		conf.cm_timeout = IBCM_MAX_TIME + 1;
	conf.arg = conn;
	ret = ibcm_resolve(fz.pair.side[side].cm, fz.pair.side[side].now, &conf, &conn->id);
	conn->is_active = conn->is_sidr = true;
	CHECK(is_bad ? ret == -EINVAL : ret == 0 || ret == -ENOSPC);
	CHECK((ret == 0) == (conn->id != NULL));
}

static void
step_listen(const struct step *step)
{
	static const enum ibcm_family families[] = {
			IBCM_NO_IP, IBCM_IP_ANY, IBCM_IP_V4, IBCM_IP_V6};
	uint32_t side = step->side & 1, no = step->which % MAX_LISTENERS;
	struct ibcm_listener **listener = &fz.listeners[side][no];
	struct ibcm_listen_conf *conf = &fz.confs[side][no];
	int ret;

	if (*listener != NULL) {
		ibcm_unlisten(*listener);
		*listener = NULL;
		return;
	}
	*conf = (struct ibcm_listen_conf){.service_id = service_of(step->side),
			.family = families[step->what % RTE_DIM(families)],
			.backlog = step->value % 4,
			.arg = conf};
	memcpy(conf->addr, addrs[(step->what >> 2) % RTE_DIM(addrs)], sizeof(conf->addr));
	ret = ibcm_listen(fz.pair.side[side].cm, conf, listener);
	CHECK(ret == 0 || ret == -EINVAL || ret == -EEXIST);
	CHECK((ret == 0) == (*listener != NULL));
}

/* The call that brings a connection, and then its end, about. */
static uint32_t
due_call(enum ibcm_state state)
{
	switch (state) {
	case IBCM_REQ_RCVD:
		return CALL_ACCEPT;
	case IBCM_REP_RCVD:
		return CALL_READY;
	case IBCM_ESTABLISHED:
		return CALL_DISCONNECT;
	case IBCM_SIDR_REQ_RCVD:
		return CALL_ANSWER;
	default:
		return CALL_RELEASE;
	}
}

static void
step_call(const struct step *step)
{
	struct conn *conns = fz.conns[step->side & 1];
	uint32_t what = step->what % CALL_NB, i, n = 0;

	for (i = 0; i < MAX_CONNS; i++)
		n += conns[i].id != NULL;
	if (n == 0)
		return;
	n = step->which % n;
	for (i = 0; conns[i].id == NULL || n-- != 0; i++)
		;
	if ((step->side & STEP_ALL) != 0)
		what = due_call(ibcm_state(conns[i].id));
	call(&conns[i], what, (step->side & STEP_BAD) != 0);
}

static uint32_t
run_step(const struct step *step, const uint8_t *bytes, uint32_t left)
{
	uint32_t n = RTE_MIN(step->len, left);

	if (step->event != 0)
		fz.event = step->event;
	switch (step->kind % STEP_NB) {
	case STEP_RAW:
		step_raw(step, bytes, n);
		return n;
	case STEP_CHANGE:
		step_change(step, bytes, n);
		return n;
	case STEP_TIME:
		step_time(step);
		break;
	case STEP_CONNECT:
		step_connect(step);
		break;
	case STEP_RESOLVE:
		step_resolve(step);
		break;
	case STEP_LISTEN:
		step_listen(step);
		break;
	case STEP_CALL:
		step_call(step);
		break;
	default:
		step_net(step);
		break;
	}
	return 0;
}

/* Two engines; both have a listener without, and one with addresses. */
static void
begin(void)
{
	static const struct step listens[] = {
			{.value = 3}, {.side = STEP_SECOND, .value = 3, .what = 1, .which = 1}};
	struct step step;
	uint32_t side, i;

	memset(&fz.conns, 0, sizeof(fz.conns));
	memset(&fz.listeners, 0, sizeof(fz.listeners));
	fz.next_qpn = 2;
	fz.event = 0;
	fz.is_end = false;
	pair_open(&fz.pair, MAX_IDS, MAX_HALF_OPEN);
	for (side = 0; side < 2; side++) {
		fz.pair.side[side].event = on_event;
		for (i = 0; i < RTE_DIM(listens); i++) {
			step = listens[i];
			step.side |= (uint8_t)side;
			step_listen(&step);
		}
	}
}

static void
add_stats(uint32_t side)
{
	const uint64_t *from = (const uint64_t *)ibcm_stats(fz.pair.side[side].cm);
	uint64_t *to = (uint64_t *)&fz.stats;
	uint32_t i;

	for (i = 0; i < sizeof(fz.stats) / sizeof(*to); i++)
		to[i] += from[i];
}

/* Both consumers release what they have: nothing is left. */
static void
end(void)
{
	uint32_t side, i, nb_rounds = 0;

	fz.is_end = true;
	for (side = 0; side < 2; side++) {
		for (i = 0; i < MAX_CONNS; i++) {
			if (fz.conns[side][i].id != NULL)
				release(&fz.conns[side][i]);
		}
	}
	do {
		for (i = 0; fz.pair.nb_net != 0; i++) {
			CHECK(i < 10000);
			deliver(0);
		}
		CHECK(nb_rounds++ < 10000);
	} while (pair_expire(&fz.pair, 0) || pair_expire(&fz.pair, 1));
	for (side = 0; side < 2; side++) {
		check_engine(side);
		CHECK(ibcm_nb_ids(fz.pair.side[side].cm) == 0);
		CHECK(ibcm_next(fz.pair.side[side].cm) == IBCM_NEVER);
		add_stats(side);
	}
	pair_close(&fz.pair);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	RTE_SET_USED(argc);
	RTE_SET_USED(argv);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;
	size_t at = 0;

	begin();
	while (size - at >= sizeof(step)) {
		memcpy(&step, data + at, sizeof(step));
		at += sizeof(step);
		at += run_step(&step, data + at, (uint32_t)(size - at));
		check_engine(0);
		check_engine(1);
	}
	end();
	return 0;
}

/* Most bytes are rare: then connections get to their states. */
size_t
fuzz_step(uint8_t *to, uint64_t *state)
{
	static const uint8_t kinds[] = {STEP_RAW, STEP_CHANGE, STEP_DELIVER, STEP_DELIVER,
			STEP_DELIVER, STEP_DELIVER, STEP_DELIVER, STEP_REPEAT, STEP_DROP, STEP_TIME,
			STEP_CONNECT, STEP_CONNECT, STEP_RESOLVE, STEP_LISTEN, STEP_CALL, STEP_CALL,
			STEP_CALL, STEP_CALL};
	struct step step = {.kind = kinds[xorshift32(state) % RTE_DIM(kinds)],
			.which = (uint8_t)xorshift32(state),
			.what = (uint8_t)xorshift32(state),
			.side = (uint8_t)(xorshift32(state) & (1 | STEP_ALL)),
			.value = (uint16_t)xorshift32(state)};
	uint32_t i;

	if (xorshift32(state) % 8 == 0)
		step.side = (uint8_t)xorshift32(state);
	if (xorshift32(state) % 8 == 0)
		step.event = (uint8_t)xorshift32(state);
	if (step.kind == STEP_CHANGE)
		step.len = (uint8_t)(1 + xorshift32(state) % 4);
	if (step.kind == STEP_RAW)
		step.len = (uint8_t)(IBCM_MAD_LEN - IBCM_HDR_LEN);
	memcpy(to, &step, sizeof(step));
	for (i = 0; i < step.len; i++)
		to[sizeof(step) + i] = (uint8_t)xorshift32(state);
	return sizeof(step) + step.len;
}

/* Print what the inputs reached; 0 if it was each part of the engine. */
int
fuzz_report(void)
{
	uint32_t i;
	int ret = fz.stats.malformed == 0 || fz.stats.unknown_id == 0 ||
			fz.stats.wrong_state == 0 || fz.stats.refused == 0;

	for (i = 0; i < RTE_DIM(fz.nb_events); i++) {
		printf("%" PRIu64 " events of type %u\n", fz.nb_events[i], i);
		ret |= fz.nb_events[i] == 0;
	}
	for (i = 0; i < IBCM_NB_TYPES; i++) {
		printf("%" PRIu64 " %s received, %" PRIu64 " duplicates, %" PRIu64 " sent\n",
				fz.stats.rx[i], ibcm_type_name(IBCM_REQ + i),
				fz.stats.duplicates[i], fz.stats.tx[i]);
		ret |= fz.stats.rx[i] == 0 || fz.stats.tx[i] == 0;
	}
	for (i = 0; i < CALL_NB; i++)
		ret |= fz.nb_calls[i] == 0;
	return ret;
}

void
fuzz_close(void)
{
}
