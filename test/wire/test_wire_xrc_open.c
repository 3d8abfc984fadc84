/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC_RECV QPs that several processes open. The other process is a socket of the test that sends
 * any bytes, or this process itself.
 */

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include <rmem_async_channel.h>
#include <rmem_counter.h>
#include <rmem_driver.h>

#include "soft/wire/port/rwire_shm.h"
#include "soft/wire/port/rwire_xrc_socket.h"
#include "soft/wire/rwire_xrc_qp.h"

#include "../rc.h"
#include "xrc_link.h"

static int
open_num(uint32_t qp_num, struct rmem_async_channel *channel, struct rmem_qp **qp)
{
	const struct rmem_qp_shared_conf conf = {
			.qp_num = qp_num, .async_channel = channel, .name = "opened"};

	return rmem_qp_get_shared(link_.domain, &conf, qp);
}

TEST(wire_sim, calls_of_an_opened_qp_are_those_of_the_qp)
{
	const struct rmem_qp_conn conn = {.timeout = 8, .retry_cnt = 7};
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1};
	struct rmem_qp *qp, *got;

	link_open();
	TEST_OK(open_num(link_.recv->qp_num, NULL, &qp));
	TEST_ASSERT(qp != link_.recv && qp->qp_num == link_.recv->qp_num);
	TEST_EQ(qp->type, RMEM_QPT_XRC_RECV);
	TEST_EQ(link_state_of(qp), RMEM_QPS_RTS);
	TEST_ERR(rmem_qp_modify(qp, &attr, RMEM_QP_STATE), EBUSY);
	TEST_ERR(rmem_qp_modify(qp, &attr, UINT32_MAX), EINVAL);
	TEST_ERR(rmem_qp_connect(qp, &conn), EBUSY);
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(link_state_of(link_.recv), RMEM_QPS_RESET);
	TEST_ERR(rmem_qp_set_error(qp), EBUSY);
	rc_connect(qp, link_.send, conn);
	TEST_EQ(link_state_of(link_.recv), RMEM_QPS_RTS);
	TEST_OK(rmem_qp_set_error(qp));
	TEST_EQ(link_state_of(link_.recv), RMEM_QPS_ERR);
	/* The number is that of the QP, not of the handle. */
	TEST_OK(rmem_qp_get(link_.domain, qp->qp_num, &got));
	TEST_ASSERT(got == link_.recv);
	TEST_OK(rmem_qp_destroy(got));
	TEST_OK(rmem_qp_destroy(qp));
	TEST_EQ(link_state_of(link_.recv), RMEM_QPS_ERR);
	link_close();
}

TEST(wire_sim, opened_qp_has_no_queues_and_counters)
{
	const struct rmem_send_wr send = {.opcode = RMEM_WR_SEND};
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_counter *counter;
	struct rmem_qp_stats stats;
	struct rmem_qp *qp;

	link_open();
	TEST_OK(open_num(link_.recv->qp_num, NULL, &qp));
	TEST_ASSERT(rmem_post_send(qp, &send, 1) < 0);
	TEST_ASSERT(rmem_post_recv(qp, &recv, 1) < 0);
	TEST_OK(rmem_counter_create(sides[1].dev, NULL, &counter));
	TEST_ERR(rmem_qp_attach_counter(qp, counter, RMEM_QP_COUNT_RECV), EOPNOTSUPP);
	TEST_OK(rmem_counter_destroy(counter));
	TEST_OK(rmem_qp_stats_get(qp, &stats));
	TEST_EQ(stats.recv_wrs, 0);
	TEST_OK(rmem_qp_destroy(qp));
	link_close();
}

static telemetry_cb get_qp; /* the command /rmem/qp */

/* Instead of DPDK's, which the program does not start. */
int
rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help)
{
	RTE_SET_USED(help);
	if (strcmp(cmd, "/rmem/qp") == 0)
		get_qp = fn;
	return 0;
}

/* Those of a reply: DPDK frees the inner ones when it sends it. */
static struct rte_tel_data *parts[16];
static unsigned int nb_parts;

struct rte_tel_data *
rte_tel_data_alloc(void)
{
	struct rte_tel_data *(*next)(void);

	*(void **)&next = dlsym(RTLD_NEXT, "rte_tel_data_alloc");
	TEST_ASSERT(nb_parts != RTE_DIM(parts));
	parts[nb_parts] = next();
	return parts[nb_parts++];
}

static bool
has_id(const char *id)
{
	int ret = get_qp("/rmem/qp", id, rte_tel_data_alloc());

	while (nb_parts != 0)
		rte_tel_data_free(parts[--nb_parts]);
	return ret == 0;
}

/* Number of handles whose ID is that of the QP, with a serial number. */
static unsigned int
nb_handle_ids(const struct rmem_qp *qp)
{
	unsigned int i, nb = 0;
	char id[64];

	for (i = 0; i < 4096; i++) {
		snprintf(id, sizeof(id), "%s,%u,%u", sides[1].dev->name, qp->qp_num, i);
		nb += has_id(id);
	}
	return nb;
}

static bool
dump_has(const struct rmem_qp *qp, const char *line)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	bool has_line;

	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_qp_dump(qp, f));
	fclose(f);
	has_line = strstr(text, line) != NULL;
	free(text);
	return has_line;
}

/* And not as a QP without requests. */
TEST(wire_sim, opened_qp_is_reported_as_a_handle)
{
	struct rmem_qp *first, *second;
	char id[64];

	link_open();
	TEST_OK(open_num(link_.recv->qp_num, NULL, &first));
	TEST_OK(open_num(link_.recv->qp_num, NULL, &second));
	TEST_ASSERT(dump_has(first, "opened: 1") && dump_has(first, "of another process"));
	TEST_ASSERT(!dump_has(first, "stats:") && !dump_has(first, "recv_wrs"));
	TEST_ASSERT(dump_has(link_.recv, "recv_wrs") && !dump_has(link_.recv, "opened"));
	/* Each has an ID of its own. */
	TEST_EQ(nb_handle_ids(link_.recv), 2);
	snprintf(id, sizeof(id), "%s,%u", sides[1].dev->name, link_.recv->qp_num);
	TEST_ASSERT(has_id(id));
	TEST_OK(rmem_qp_destroy(first));
	TEST_OK(rmem_qp_destroy(second));
	link_close();
}

TEST(wire_sim, wrong_qps_are_not_opened)
{
	const struct rmem_xrcd_conf no_file = {.flags = 0};
	struct rmem_qp_shared_conf conf = {.qp_num = FOREIGN};
	struct rmem_xrcd *domain;
	struct rmem_qp *qp;

	link_open();
	conf.qp_num = link_.recv->qp_num;
	TEST_ERR(rmem_qp_get_shared(NULL, &conf, &qp), EINVAL);
	TEST_ERR(rmem_qp_get_shared(link_.domain, NULL, &qp), EINVAL);
	TEST_ERR(rmem_qp_get_shared(link_.domain, &conf, NULL), EINVAL);
	TEST_OK(rmem_xrcd_alloc(sides[1].dev, &no_file, &domain));
	TEST_ERR(rmem_qp_get_shared(domain, &conf, &qp), ENOENT);
	TEST_OK(rmem_xrcd_dealloc(domain));
	conf.reserved[3] = 1;
	TEST_ERR(rmem_qp_get_shared(link_.domain, &conf, &qp), EINVAL);
	conf.reserved[3] = 0;
	conf.qp_num = 1u << 24;
	TEST_ERR(rmem_qp_get_shared(link_.domain, &conf, &qp), EINVAL);
	conf.qp_num = FOREIGN;
	TEST_ERR(rmem_qp_get_shared(link_.domain, &conf, &qp), ENOENT);
	link_close();
}

/* An opener: the test. */

static int
dial(const void *hello, size_t len, int file)
{
	int fd = rwire_xrc_socket_connect(link_.domain, RWIRE_XRC_QP, link_.recv->qp_num);

	TEST_ASSERT(fd >= 0);
	TEST_ASSERT(rwire_shm_send(fd, hello, len, file));
	return fd;
}

/* Wait for a message: its length, or -errno. */
static ssize_t
take(int fd, void *message, size_t len)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	ssize_t got;

	TEST_EQ(poll(&ready, 1, -1), 1);
	got = recv(fd, message, len, 0);
	return got < 0 ? -errno : got;
}

static int
dial_well(void)
{
	struct rwire_xrc_hello hello = rwire_xrc_hello_of(0);
	int fd = dial(&hello, sizeof(hello), link_.file);

	TEST_EQ(take(fd, &hello, sizeof(hello)), (ssize_t)sizeof(hello));
	TEST_EQ(hello.status, 0);
	return fd;
}

static void
is_hung_up(int fd)
{
	char byte;
	ssize_t n = take(fd, &byte, sizeof(byte));

	/* With unread messages, the end of the connection is ECONNRESET. */
	TEST_ASSERT(n == 0 || n == -ECONNRESET);
	close(fd);
}

TEST(wire_sim, bad_hellos_of_openers_are_refused)
{
	struct rwire_xrc_hello hello, got;
	unsigned int i;
	int fd;

	link_open();
	for (i = 0; i < 4; i++) {
		hello = rwire_xrc_hello_of(0);
		hello.version += i == 0;
		if (i == 1)
			hello.magic[0] = 'x';
		fd = dial(&hello, sizeof(hello) - (i == 2), i == 3 ? -1 : link_.file);
		TEST_EQ(take(fd, &got, sizeof(got)), (ssize_t)sizeof(got));
		TEST_EQ(got.status, -ENOENT);
		is_hung_up(fd);
	}
	link_close();
}

/* Any length, and any call. */
TEST(wire_sim, bad_calls_of_openers_are_refused)
{
	struct rwire_xrc_qp_request request[2] = {{.seq = 1}};
	struct rwire_xrc_qp_answer answer;
	size_t len;
	int fd;

	link_open();
	memset(&request[0].call, 0xff, sizeof(request[0].call));
	for (request[0].call.op = 0; request[0].call.op < 8; request[0].call.op++) {
		if (request[0].call.op == RMEM_QP_CALL_RESET ||
				request[0].call.op == RMEM_QP_CALL_SET_ERROR)
			continue;
		fd = dial_well();
		TEST_EQ(send(fd, request, sizeof(request[0]), 0), (ssize_t)sizeof(request[0]));
		TEST_EQ(take(fd, &answer, sizeof(answer)), (ssize_t)sizeof(answer));
		TEST_EQ(answer.seq, 1);
		TEST_EQ(answer.ret, request[0].call.op == RMEM_QP_CALL_QUERY ? 0 : -EINVAL);
		close(fd);
	}
	for (len = 1; len < sizeof(request[0]) + 2;
			len = len == 1 ? sizeof(request[0]) - 1 : len + 2) {
		fd = dial_well();
		TEST_EQ(send(fd, request, len, 0), (ssize_t)len);
		is_hung_up(fd);
	}
	request[0].seq = 0;
	fd = dial_well();
	TEST_EQ(send(fd, request, sizeof(request[0]), 0), (ssize_t)sizeof(request[0]));
	is_hung_up(fd);
	TEST_EQ(link_state_of(link_.recv), RMEM_QPS_RTS);
	link_close();
}

/* It loses its connection, and the QP its reference. */
TEST(wire_sim, opener_that_reads_no_answers_is_not_waited_for)
{
	struct rwire_xrc_qp_request request = {.seq = 1, .call.op = RMEM_QP_CALL_QUERY};
	struct rmem_qp *qp = link_.recv;
	int fd;

	link_open();
	fd = dial_well();
	/* The socket does not wait for space. */
	while (send(fd, &request, sizeof(request), MSG_NOSIGNAL) >= 0 || errno == EAGAIN)
		sched_yield();
	TEST_ASSERT(errno == EPIPE || errno == ECONNRESET);
	close(fd);
	TEST_OK(rmem_qp_get(link_.domain, link_.recv->qp_num, &qp));
	TEST_OK(rmem_qp_destroy(qp));
	link_close();
}

/* The connection ends with the device. */
TEST(wire_sim, device_closes_although_openers_hold_qps)
{
	int fd;

	link_open();
	fd = dial_well();
	link_close();
	is_hung_up(fd);
}

/* A close that is refused ends no QP. */
TEST(wire_sim, device_that_is_in_use_keeps_qps_of_openers)
{
	struct rwire_xrc_qp_request request = {.seq = 1, .call.op = RMEM_QP_CALL_QUERY};
	struct rwire_xrc_qp_answer answer;
	struct rmem_xrcd *unused;
	int fd;

	link_open();
	fd = dial_well();
	TEST_OK(rmem_qp_destroy(link_.recv));
	TEST_ERR(rmem_dev_close(sides[1].dev), EBUSY);
	TEST_OK(rmem_srq_destroy(link_.srq));
	TEST_OK(rmem_xrcd_dealloc(link_.domain));
	/* Of the same file. */
	TEST_OK(rmem_xrcd_alloc(sides[1].dev,
			&(struct rmem_xrcd_conf){.flags = RMEM_XRCD_FILE, .fd = link_.file},
			&unused));
	TEST_ERR(rmem_dev_close(sides[1].dev), EBUSY);
	TEST_OK(rmem_xrcd_dealloc(unused));
	TEST_EQ(send(fd, &request, sizeof(request), 0), (ssize_t)sizeof(request));
	TEST_EQ(take(fd, &answer, sizeof(answer)), (ssize_t)sizeof(answer));
	TEST_EQ(answer.ret, 0);
	TEST_EQ(answer.attr.state, RMEM_QPS_RTS);
	TEST_OK(rmem_qp_destroy(link_.send));
	close(link_.file);
	close_sides();
	is_hung_up(fd);
}

static void
connection_without_hello_is_replaced(int fds[], uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		fds[i] = rwire_xrc_socket_connect(link_.domain, RWIRE_XRC_QP, link_.recv->qp_num);
		TEST_ASSERT(fds[i] >= 0);
	}
	is_hung_up(fds[0]);
	for (i = 1; i < nb; i++)
		close(fds[i]);
}

/* The oldest one. */
TEST(wire_sim, connections_of_openers_are_limited)
{
	struct rwire_xrc_qps *qps;
	int fds[4];

	link_open();
	qps = ((const struct rsoft_qp *)link_.recv)->dev->wire->xrc_qps;
	pthread_mutex_lock(&qps->lock);
	qps->max = RTE_DIM(fds) - 1;
	pthread_mutex_unlock(&qps->lock);
	connection_without_hello_is_replaced(fds, RTE_DIM(fds));
	close(dial_well());
	link_close();
}

/* The owner sends why it refuses a connection, and does not read the hello of the opener. */
TEST(wire_sim, opener_beyond_the_limit_gets_enomem)
{
	struct rwire_xrc_qps *qps;
	struct rmem_qp *qp;
	unsigned int i;
	int fd;

	link_open();
	fd = dial_well();
	qps = ((const struct rsoft_qp *)link_.recv)->dev->wire->xrc_qps;
	pthread_mutex_lock(&qps->lock);
	qps->max = 1;
	pthread_mutex_unlock(&qps->lock);
	for (i = 0; i < 16; i++)
		TEST_ERR(open_num(link_.recv->qp_num, NULL, &qp), ENOMEM);
	close(fd);
	link_close();
}

/* An owner: a thread of the test that answers a hello, and a call, as its row requests. */
struct owner {
	int listener;
	int status;
	bool is_version_bad;
	bool has_file;
	uint32_t len; /* of each answer; 0: hang up */
	struct rwire_xrc_qp_answer answer, event;
};

static void *
run_owner(void *arg)
{
	const struct owner *owner = arg;
	struct rwire_xrc_hello hello = rwire_xrc_hello_of(owner->status);
	struct pollfd ready = {.fd = owner->listener, .events = POLLIN};
	struct rwire_xrc_qp_answer answer = owner->answer;
	struct rwire_xrc_qp_request request;
	int fd;

	TEST_EQ(poll(&ready, 1, -1), 1);
	fd = rwire_xrc_socket_accept(owner->listener);
	TEST_ASSERT(fd >= 0);
	hello.version += owner->is_version_bad;
	TEST_ASSERT(rwire_shm_send(fd, &hello, sizeof(hello), owner->has_file ? link_.file : -1));
	TEST_ASSERT(take(fd, &request, sizeof(request)) > 0);
	if (owner->event.ret != 0)
		TEST_EQ(send(fd, &owner->event, sizeof(owner->event), 0),
				(ssize_t)sizeof(owner->event));
	while (take(fd, &request, sizeof(request)) == (ssize_t)sizeof(request)) {
		answer.seq = request.seq;
		if (owner->len == 0)
			break;
		(void)send(fd, &answer, owner->len, MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

static int
open_foreign(struct owner *owner, struct rmem_async_channel *channel, pthread_t *thread,
		struct rmem_qp **qp)
{
	owner->listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_QP, FOREIGN);
	TEST_ASSERT(owner->listener >= 0);
	TEST_EQ(pthread_create(thread, NULL, run_owner, owner), 0);
	return open_num(FOREIGN, channel, qp);
}

TEST(wire_sim, bad_hellos_of_owners_are_refused)
{
	static const struct {
		struct owner owner;
		int err;
	} rows[] = {
			{{.has_file = true, .is_version_bad = true}, ENOENT},
			{{.has_file = false}, ENOENT},
			{{.status = -ENOSPC}, ENOSPC},
			{{.status = -ENOMEM}, ENOMEM},
			{{.status = -ENOENT}, ENOENT},
			{{.status = 1, .has_file = true}, ENOENT},
			{{.status = INT32_MIN, .has_file = true}, ENOENT},
	};
	struct owner owner;
	struct rmem_qp *qp;
	pthread_t thread;
	unsigned int i;

	link_open();
	for (i = 0; i < RTE_DIM(rows); i++) {
		owner = rows[i].owner;
		TEST_ERR(open_foreign(&owner, NULL, &thread, &qp), rows[i].err);
		pthread_join(thread, NULL);
		close(owner.listener);
	}
	link_close();
}

#define LEN sizeof(struct rwire_xrc_qp_answer)

/* The result of a query is never used without attributes, or if it is no errno. */
TEST(wire_sim, bad_answers_of_owners_are_errors)
{
	static const struct {
		uint32_t len;
		struct rwire_xrc_qp_answer answer;
		int err;
	} rows[] = {
			{LEN, {.ret = -EINVAL}, EINVAL},
			{LEN, {.ret = 0}, EIO},
			{LEN, {.ret = 7, .has_attr = 1}, EIO},
			{LEN, {.ret = INT32_MIN}, EIO},
			{LEN - 1, {.has_attr = 1}, EIO},
			{1, {.has_attr = 1}, EIO},
			{0, {.ret = 0}, EIO},
	};
	struct owner owner = {.has_file = true};
	struct rmem_qp_attr attr;
	struct rmem_qp *qp;
	pthread_t thread;
	unsigned int i;

	link_open();
	for (i = 0; i < RTE_DIM(rows); i++) {
		owner.len = rows[i].len;
		owner.answer = rows[i].answer;
		TEST_OK(open_foreign(&owner, NULL, &thread, &qp));
		TEST_ERR(rmem_qp_query(qp, &attr), rows[i].err);
		TEST_OK(rmem_qp_destroy(qp));
		pthread_join(thread, NULL);
		close(owner.listener);
	}
	link_close();
}

/* A thread that is cancelled before its call, which has cancellation points. */
struct cancelled {
	enum {
		CANCELLED_OPEN,
		CANCELLED_QUERY,
		CANCELLED_CLOSE,
		CANCELLED_DOMAIN,  /* a handle of a domain */
		CANCELLED_DESTROY, /* a QP of this process that others can open */
		CANCELLED_NB,
	} call;
	struct rmem_qp *qp;
	struct rmem_xrcd *xrcd;
	int ret;
};

static int
call_cancelled(struct cancelled *cancelled)
{
	const struct rmem_xrcd_conf conf = {.fd = link_.file, .flags = RMEM_XRCD_FILE};
	struct rmem_qp_attr attr;

	switch (cancelled->call) {
	case CANCELLED_OPEN:
		return open_num(FOREIGN, NULL, &cancelled->qp);
	case CANCELLED_QUERY:
		return rmem_qp_query(cancelled->qp, &attr);
	case CANCELLED_CLOSE:
		return rmem_qp_destroy(cancelled->qp);
	case CANCELLED_DOMAIN:
		return rmem_xrcd_alloc(sides[1].dev, &conf, &cancelled->xrcd);
	default:
		return rmem_qp_destroy(link_.recv);
	}
}

/* NULL: it was not cancelled, and can still be. */
static void *
run_cancelled(void *arg)
{
	struct cancelled *cancelled = arg;
	int state;

	pthread_cancel(pthread_self());
	cancelled->ret = call_cancelled(cancelled);
	/* Not ended by the request: AddressSanitizer does not learn that functions end. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state == PTHREAD_CANCEL_ENABLE ? NULL : PTHREAD_CANCELED;
}

/* A thread cancelled within one would keep a lock or an object. */
TEST(wire_sim, calls_of_opened_qps_are_no_cancellation_points)
{
	struct owner owner = {.has_file = true, .len = LEN, .answer = {.has_attr = 1}};
	struct cancelled cancelled = {.call = CANCELLED_OPEN};
	pthread_t of_owner, thread;
	void *result;

	link_open();
	owner.listener = rwire_xrc_socket_listen(link_.domain, RWIRE_XRC_QP, FOREIGN);
	TEST_ASSERT(owner.listener >= 0);
	TEST_EQ(pthread_create(&of_owner, NULL, run_owner, &owner), 0);
	for (; cancelled.call < CANCELLED_NB; cancelled.call++) {
		TEST_EQ(pthread_create(&thread, NULL, run_cancelled, &cancelled), 0);
		TEST_EQ(pthread_join(thread, &result), 0);
		TEST_ASSERT(result == NULL);
		TEST_OK(cancelled.ret);
	}
	link_.recv = NULL;
	TEST_OK(rmem_xrcd_dealloc(cancelled.xrcd));
	TEST_EQ(pthread_join(of_owner, NULL), 0);
	close(owner.listener);
	link_close();
}

/* Of types that a QP has; the end of the owner is one. */
TEST(wire_sim, events_of_owners_are_checked)
{
	static const struct {
		int32_t sent;
		uint32_t got;
	} rows[] = {
			{RMEM_ASYNC_COMM_EST, RMEM_ASYNC_COMM_EST},
			{RMEM_ASYNC_DEVICE_FATAL, RMEM_ASYNC_QP_FATAL},
			{RMEM_ASYNC_CQ_ERR + 32, RMEM_ASYNC_QP_FATAL},
			{-1, RMEM_ASYNC_QP_FATAL},
	};
	struct owner owner = {.has_file = true};
	struct rmem_async_channel *channel;
	struct rmem_async_event event;
	struct rmem_qp_attr attr;
	struct rmem_qp *qp;
	pthread_t thread;
	unsigned int i;

	link_open();
	TEST_OK(rmem_async_channel_create(sides[1].dev, &channel));
	for (i = 0; i < RTE_DIM(rows); i++) {
		owner.event.ret = rows[i].sent;
		TEST_OK(open_foreign(&owner, channel, &thread, &qp));
		if (rows[i].sent != RMEM_ASYNC_COMM_EST)
			TEST_ERR(rmem_qp_query(qp, &attr), EIO);
		TEST_OK(rmem_async_channel_get_event(channel, &event));
		TEST_EQ(event.type, rows[i].got);
		TEST_ASSERT(event.qp == qp);
		TEST_ERR(rmem_qp_destroy(qp), EBUSY);
		TEST_OK(rmem_async_event_ack(&event));
		TEST_OK(rmem_qp_destroy(qp));
		pthread_join(thread, NULL);
		close(owner.listener);
	}
	TEST_OK(rmem_async_channel_destroy(channel));
	link_close();
}
