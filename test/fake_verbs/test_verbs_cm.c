/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* QPs are connected by rdma_cm, or a clear error is returned and nothing is leaked. */

#include <arpa/inet.h>
#include <string.h>

#include "../../lib/rmem_cm/rmem_cm_priv.h"
#include "fake_cm.h"
#include "setup.h"

#define DATA     "descriptor"
#define SHORT_MS 20
#define LONG_MS  60000

static struct sockaddr_in where;
static struct rmem_cm_listener *listener;
static struct rmem_cm_conn *conn;
static struct rmem_cm_peer peer;

static struct rmem_cm_conf
cm_conf(void)
{
	return (struct rmem_cm_conf){.qp = vt.a,
			.data = DATA,
			.data_size = sizeof(DATA),
			.timeout_ms = LONG_MS,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7};
}

/* The peer is the other QP, and sends bytes too. */
static void
cm_peer_says(const void *data, uint32_t size)
{
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(vt.b, &attr));
	fake_cm.size = rmem_cm_pack(&attr.addr, data, size, fake_cm.data);
}

static void
cm_setup(void)
{
	vt_setup();
	TEST_OK(rmem_qp_reset(vt.a));
	TEST_OK(rmem_qp_reset(vt.b));
	fake_cm_reset();
	where = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(7174)};
	conn = NULL;
	listener = NULL;
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&where, &listener));
	cm_peer_says("answer", 6);
}

static void
cm_teardown(void)
{
	rmem_cm_disconnect(conn);
	rmem_cm_listener_destroy(listener);
	vt_teardown();
}

static int
cm_connect(const struct rmem_cm_conf *conf)
{
	return rmem_cm_connect((struct sockaddr *)&where, conf, &peer, &conn);
}

static int
cm_accept(const struct rmem_cm_conf *conf)
{
	fake_cm_request();
	return rmem_cm_accept(listener, conf, &peer, &conn);
}

/* The QP is connected to the peer, which got its address. */
static void
cm_is_connected(void)
{
	struct rmem_cm_peer told;
	struct rmem_qp_attr a, b;

	TEST_OK(rmem_qp_query(vt.a, &a));
	TEST_OK(rmem_qp_query(vt.b, &b));
	TEST_EQ(a.state, RMEM_QPS_RTS);
	TEST_MEM(&a.remote, &b.addr, sizeof(a.remote));
	TEST_MEM(&peer.addr, &b.addr, sizeof(peer.addr));
	TEST_EQ(peer.data_size, 6);
	TEST_MEM(peer.data, "answer\0", 7);
	TEST_OK(rmem_cm_unpack(fake_cm.sent, fake_cm.sent_size, &told));
	TEST_MEM(&told.addr, &a.addr, sizeof(told.addr));
	TEST_EQ(told.data_size, sizeof(DATA));
	TEST_MEM(told.data, DATA, sizeof(DATA));
	TEST_EQ(fake_cm.sent_qp, vt.a->qp_num);
}

/* It had no effect. */
static void
cm_is_as_before(int nb_live)
{
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(vt.a, &attr));
	TEST_EQ(attr.state, RMEM_QPS_RESET);
	TEST_EQ(fake.nb_live, nb_live);
	TEST_ASSERT(conn == NULL);
}

TEST(verbs_cm, cm_connect_exchanges_addresses_and_bytes)
{
	struct rmem_cm_conf conf = cm_conf();

	TEST_OK(cm_connect(&conf));
	cm_is_connected();
	TEST_EQ(fake_cm.nb_established, 1);
	TEST_EQ(fake_cm.nb_disconnects, 0);
	rmem_cm_disconnect(conn);
	conn = NULL;
	TEST_EQ(fake_cm.nb_disconnects, 1);
}

TEST(verbs_cm, cm_accept_exchanges_addresses_and_bytes)
{
	struct rmem_cm_conf conf = cm_conf();

	TEST_OK(cm_accept(&conf));
	cm_is_connected();
	TEST_EQ(fake_cm.nb_rejects, 0);
}

/* As much as rdma_cm carries, and none. */
TEST(verbs_cm, cm_carries_all_sizes)
{
	uint8_t bytes[RMEM_CM_MAX_ANSWER + 1] = {1};
	struct rmem_cm_conf conf = cm_conf();

	bytes[RMEM_CM_MAX_REQUEST - 1] = bytes[RMEM_CM_MAX_ANSWER - 1] = 0xee;
	conf.data = bytes;
	conf.data_size = RMEM_CM_MAX_REQUEST + 1;
	TEST_ERR(cm_connect(&conf), EINVAL);
	conf.data_size = RMEM_CM_MAX_REQUEST;
	cm_peer_says(bytes, RMEM_CM_MAX_ANSWER);
	TEST_OK(cm_connect(&conf));
	TEST_EQ(fake_cm.sent_size, 56);
	TEST_EQ(peer.data_size, RMEM_CM_MAX_ANSWER);
	TEST_MEM(peer.data, bytes, RMEM_CM_MAX_ANSWER);
	rmem_cm_disconnect(conn);
	conn = NULL;
	TEST_OK(rmem_qp_reset(vt.a));
	conf.data_size = RMEM_CM_MAX_ANSWER;
	cm_peer_says(NULL, 0);
	TEST_OK(cm_accept(&conf));
	TEST_EQ(fake_cm.sent_size, 196);
	TEST_EQ(peer.data_size, 0);
}

/* Each call of rdma_cm and of libibverbs in turn, until there is none left to fail. */
static void
cm_each_call_fails(int (*call)(const struct rmem_cm_conf *conf))
{
	struct rmem_cm_conf conf = cm_conf();
	int nb_live = fake.nb_live, ret;
	unsigned int i, nb_spared = 0;

	for (i = 1; i < 100; i++) {
		fake.is_failed = false;
		fake.fail_at = fake.nb_calls + i;
		fake.fail_errno = EIO;
		ret = call(&conf);
		fake.fail_at = 0;
		if (!fake.is_failed) {
			TEST_OK(ret);
			TEST_ASSERT(i > 8);
			return;
		}
		TEST_ASSERT(ret == -EIO || ret == -ENODEV || ret == 0);
		if (ret == 0) { /* one that the class can do without */
			TEST_ASSERT(++nb_spared <= 1);
			rmem_cm_disconnect(conn);
			conn = NULL;
			TEST_OK(rmem_qp_reset(vt.a));
		}
		/* Requests not accepted are rejected when the listener is released. */
		rmem_cm_listener_destroy(listener);
		listener = NULL;
		TEST_OK(rmem_cm_listener_create((struct sockaddr *)&where, &listener));
		cm_is_as_before(nb_live);
	}
	test_stop(TEST_FAILED);
}

TEST_CALL(verbs_cm, cm_connect_leaves_nothing_when_a_call_fails, cm_each_call_fails(cm_connect));
TEST_CALL(verbs_cm, cm_accept_leaves_nothing_when_a_call_fails, cm_each_call_fails(cm_accept));

TEST(verbs_cm, cm_without_rdma_cm_logs_the_address)
{
	static const char text[] =
			"not the ip= of a soft device of this process, and rdma_cm is not"
			" available (is rdma_ucm loaded?): error 19";
	struct rmem_cm_conf conf = cm_conf();
	struct rmem_cm_listener *other;
	const char *lines;
	int ret, level = rte_log_get_level((uint32_t)rmem_cm_logtype);

	TEST_EQ(inet_pton(AF_INET, "192.0.2.1", &where.sin_addr), 1);
	rte_log_set_level((uint32_t)rmem_cm_logtype, RTE_LOG_NOTICE);
	vt_fail("rdma_create_event_channel", ENODEV);
	vt_log_begin();
	ret = rmem_cm_listener_create((struct sockaddr *)&where, &other);
	lines = vt_log_end();
	TEST_ERR(ret, ENODEV);
	TEST_TEXT(lines, "address 192.0.2.1: ");
	TEST_TEXT(lines, text);
	vt_log_begin();
	ret = cm_connect(&conf);
	lines = vt_log_end();
	rte_log_set_level((uint32_t)rmem_cm_logtype, (uint32_t)level);
	fake.fail_name = NULL;
	TEST_ERR(ret, ENODEV);
	TEST_TEXT(lines, "QP: its device has no ip=, and rdma_cm is not available");
}

TEST(verbs_cm, cm_listen_reports_why_it_failed)
{
	static const struct {
		const char *call;
		int error;
		int want;
	} table[] = {
			{"rdma_create_event_channel", ENODEV, ENODEV},
			{"rdma_create_event_channel", ENOENT, ENODEV},
			{"rdma_create_event_channel", EACCES, EPERM},
			{"rdma_create_id", ENOMEM, ENOMEM},
			{"rdma_bind_addr", ENODEV, ENODEV},
			{"rdma_bind_addr", EADDRNOTAVAIL, ENODEV},
			{"rdma_bind_addr", EADDRINUSE, EEXIST},
			{"rdma_listen", EADDRINUSE, EEXIST},
			{"rdma_listen", EBADF, EIO},
	};
	struct rmem_cm_listener *other = NULL;
	int nb_live = fake.nb_live;
	size_t i;

	for (i = 0; i < RTE_DIM(table); i++) {
		fake.fail_name = table[i].call;
		fake.fail_errno = table[i].error;
		TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&where, &other), table[i].want);
		fake.fail_name = NULL;
		TEST_ASSERT(other == NULL);
		TEST_EQ(fake.nb_live, nb_live);
	}
}

/* A field of fake_cm, the event in it, its status, and the resulting errno. */
struct bad_event {
	size_t step;
	int event;
	int status;
	int want;
};

#define STEP(field) offsetof(struct fake_cm, field)

TEST(verbs_cm, cm_connect_maps_each_event)
{
	static const struct bad_event table[] = {
			{STEP(on_addr), FAKE_CM_NONE, 0, ETIMEDOUT},
			{STEP(on_addr), RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, ENODEV},
			{STEP(on_addr), RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, EHOSTUNREACH},
			{STEP(on_addr), RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, ETIMEDOUT},
			{STEP(on_route), FAKE_CM_NONE, 0, ETIMEDOUT},
			{STEP(on_route), RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL, EHOSTUNREACH},
			{STEP(on_route), RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ENODEV},
			{STEP(on_connect), FAKE_CM_NONE, 0, ETIMEDOUT},
			{STEP(on_connect), RDMA_CM_EVENT_REJECTED, 8, ECONNREFUSED},
			{STEP(on_connect), RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, EHOSTUNREACH},
			{STEP(on_connect), RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, EIO},
	};
	struct rmem_cm_conf conf = cm_conf();
	int nb_live = fake.nb_live;
	size_t i;

	for (i = 0; i < RTE_DIM(table); i++) {
		int *step = (int *)((char *)&fake_cm + table[i].step), was = *step;

		*step = table[i].event;
		fake_cm.status = table[i].status;
		conf.timeout_ms = table[i].want == ETIMEDOUT ? SHORT_MS : LONG_MS;
		TEST_ERR(cm_connect(&conf), table[i].want);
		*step = was;
		cm_is_as_before(nb_live);
	}
}

TEST(verbs_cm, cm_accept_maps_each_event)
{
	static const struct bad_event table[] = {
			{0, FAKE_CM_NONE, 0, ETIMEDOUT},
			{0, RDMA_CM_EVENT_REJECTED, 28, ECONNREFUSED},
			{0, RDMA_CM_EVENT_DISCONNECTED, 0, ECONNREFUSED},
			{0, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, EHOSTUNREACH},
			{0, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, EIO},
			{0, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ENODEV},
	};
	struct rmem_cm_conf conf = cm_conf();
	int nb_live = fake.nb_live;
	size_t i;

	for (i = 0; i < RTE_DIM(table); i++) {
		fake_cm.on_accept = table[i].event;
		fake_cm.status = table[i].status;
		conf.timeout_ms = table[i].want == ETIMEDOUT ? SHORT_MS : LONG_MS;
		TEST_ERR(cm_accept(&conf), table[i].want);
		cm_is_as_before(nb_live);
	}
	conf.timeout_ms = SHORT_MS;
	TEST_ERR(rmem_cm_accept(listener, &conf, &peer, &conn), ETIMEDOUT);
	VT_FAILS("rdma_accept", EINVAL, cm_accept(&conf), ECONNREFUSED);
	cm_is_as_before(nb_live);
}

/* A byte of the message, what it becomes, and how long the message is. */
static void
cm_wrong_data_is_refused(int (*call)(const struct rmem_cm_conf *conf))
{
	static const struct {
		uint8_t at;
		uint8_t value;
		uint8_t size;
	} table[] = {
			{0, 0, 56},    /* magic */
			{1, 'm', 56},  /* magic */
			{2, 2, 56},    /* version */
			{3, 25, 56},   /* more bytes than received */
			{3, 165, 250}, /* more than there may be */
			{4, 0, 56},    /* MTU */
			{5, 1, 56},    /* reserved */
			{8, 1, 56},    /* QP number */
			{12, 1, 56},   /* PSN */
			{0, 'r', 31},  /* short */
			{0, 'r', 0},   /* none */
	};
	struct rmem_cm_conf conf = cm_conf();
	int nb_live = fake.nb_live;
	size_t i;

	for (i = 0; i < RTE_DIM(table); i++) {
		cm_peer_says("answer", 6);
		fake_cm.data[table[i].at] = table[i].value;
		fake_cm.size = table[i].size;
		TEST_ERR(call(&conf), EBADMSG);
		TEST_EQ(fake_cm.nb_rejects, i + 1);
		cm_is_as_before(nb_live);
	}
	cm_peer_says("answer", 6);
	TEST_OK(call(&conf));
	cm_is_connected();
}

TEST_CALL(verbs_cm, cm_connect_refuses_wrong_data, cm_wrong_data_is_refused(cm_connect));
TEST_CALL(verbs_cm, cm_accept_refuses_wrong_data_and_continues,
		cm_wrong_data_is_refused(cm_accept));

/* The address is that of a device without the GID of the QP. */
TEST(verbs_cm, cm_of_another_device_is_refused)
{
	struct rmem_cm_conf conf = cm_conf();
	int nb_live = fake.nb_live;

	fake.nb_gids = 2;
	TEST_ERR(cm_connect(&conf), ENODEV);
	cm_is_as_before(nb_live);
	TEST_ERR(cm_accept(&conf), ENODEV);
	TEST_EQ(fake_cm.nb_rejects, 1);
	cm_is_as_before(nb_live);
}

/* With several ports a device may have more than a few hundred. */
TEST(verbs_cm, cm_finds_the_gid_in_a_long_table)
{
	struct rmem_cm_conf conf = cm_conf();

	fake.nb_gids = 300;
	TEST_OK(cm_connect(&conf));
	cm_is_connected();
}

TEST(verbs_cm, cm_checks_its_arguments)
{
	struct sockaddr_in no_port = where, no_family = where;
	struct rmem_cm_conf conf = cm_conf();
	struct rmem_cm_listener *other;

	no_port.sin_port = 0;
	no_family.sin_family = AF_UNIX;
	TEST_ERR(rmem_cm_listener_create(NULL, &other), EINVAL);
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&where, NULL), EINVAL);
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&no_port, &other), EINVAL);
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&no_family, &other), EINVAL);
	TEST_ERR(rmem_cm_connect(NULL, &conf, NULL, &conn), EINVAL);
	TEST_ERR(rmem_cm_connect((struct sockaddr *)&no_port, &conf, NULL, &conn), EINVAL);
	TEST_ERR(rmem_cm_connect((struct sockaddr *)&where, &conf, NULL, NULL), EINVAL);
	TEST_ERR(rmem_cm_accept(NULL, &conf, NULL, &conn), EINVAL);
	TEST_ERR(rmem_cm_accept(listener, &conf, NULL, NULL), EINVAL);
	TEST_ERR(rmem_cm_accept(listener, NULL, NULL, &conn), EINVAL);
	TEST_ERR(rmem_cm_wait_disconnect(NULL, 0), EINVAL);
	rmem_cm_disconnect(NULL);
	rmem_cm_listener_destroy(NULL);
}

#define CONF_IS_REFUSED(field, bad)                                                                \
	do {                                                                                       \
		struct rmem_cm_conf conf_ = cm_conf();                                             \
		conf_.field = bad;                                                                 \
		TEST_ERR(cm_connect(&conf_), EINVAL);                                              \
		TEST_ERR(rmem_cm_accept(listener, &conf_, NULL, &conn), EINVAL);                   \
	} while (0)

TEST(verbs_cm, cm_checks_its_conf)
{
	CONF_IS_REFUSED(qp, NULL);
	CONF_IS_REFUSED(data, NULL);
	CONF_IS_REFUSED(data_size, RMEM_CM_MAX_ANSWER + 1);
	CONF_IS_REFUSED(timeout_ms, 0);
	CONF_IS_REFUSED(timeout_ms, RMEM_CM_MAX_TIMEOUT_MS + 1);
	CONF_IS_REFUSED(timeout, 32);
	CONF_IS_REFUSED(retry_cnt, 8);
	CONF_IS_REFUSED(rnr_retry, 8);
	CONF_IS_REFUSED(min_rnr_timer, 32);
	CONF_IS_REFUSED(reserved[11], 1);
}

TEST(verbs_cm, cm_of_a_connected_qp_is_refused)
{
	struct rmem_cm_conf conf = cm_conf();

	TEST_OK(vt_connect());
	TEST_ERR(cm_connect(&conf), EBUSY);
	TEST_ERR(rmem_cm_accept(listener, &conf, NULL, &conn), EBUSY);
}

TEST(verbs_cm, cm_wait_disconnect_waits_for_the_peer)
{
	struct rmem_cm_conf conf = cm_conf();

	TEST_OK(cm_connect(&conf));
	TEST_ERR(rmem_cm_wait_disconnect(conn, RMEM_CM_MAX_TIMEOUT_MS + 1), EINVAL);
	TEST_ERR(rmem_cm_wait_disconnect(conn, 0), ETIMEDOUT);
	fake_cm_event(RDMA_CM_EVENT_ADDR_CHANGE);
	TEST_ERR(rmem_cm_wait_disconnect(conn, SHORT_MS), ETIMEDOUT);
	fake_cm_event(RDMA_CM_EVENT_DEVICE_REMOVAL);
	TEST_ERR(rmem_cm_wait_disconnect(conn, LONG_MS), ENODEV);
	VT_FAILS("rdma_get_cm_event", EBADF, rmem_cm_wait_disconnect(conn, LONG_MS), EIO);
	fake_cm_event(RDMA_CM_EVENT_DISCONNECTED);
	TEST_OK(rmem_cm_wait_disconnect(conn, LONG_MS));
	TEST_OK(rmem_cm_wait_disconnect(conn, LONG_MS));
}

TEST_SUITE(verbs_cm, cm_setup, cm_teardown);
