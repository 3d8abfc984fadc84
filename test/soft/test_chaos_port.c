/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Rules of chaos= about the port and the device: down, frozen, failed. */

#include "chaos_rules.h"

#define GID0 "127.0.16.94"
#define GID1 "127.0.16.95"

#define QKEY      0x11111111
#define DATAGRAMS 2000

static struct rmem_async_channel *channel;

/* Two connected sides that exchange packets, of a device with the arguments and the rules. */
static void
open_sides_by(const char *device, const char *rules)
{
	struct rmem_qp_conn conn = fx_conn();
	char args[256];

	snprintf(args, sizeof(args), "%s,loop=1,progress=thread,chaos=%s", device, rules);
	fx.a.dev = fx_dev("soft0", args);
	TEST_ASSERT(fx.a.dev != NULL);
	channel = fx_async_channel(fx.a.dev);
	TEST_ASSERT(channel != NULL);
	fx_side_open(&fx.a, fx.a.dev, fx_pd(fx.a.dev));
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	conn.timeout = 17; /* half a second: one retry finds the port up again */
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
}

static void
open_sides(const char *rules)
{
	char device[64];

	snprintf(device, sizeof(device), "ip=192.0.2.1,port=shm:chaos_port%d", (int)getpid());
	open_sides_by(device, rules);
}

/* A request and its acknowledgement are two packets: the second request loses its own. */
TEST(chaos_port, port_is_down_from_a_packet_on_and_active_later)
{
	struct rmem_port_attr attr;

	open_sides("port:PORT_ERR@nth:3@ms:100");
	chaos_write(fx.a.qp, 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_port_query(fx.a.dev, 1, &attr));
	TEST_EQ(attr.state, RMEM_PORT_ACTIVE);
	chaos_write(fx.a.qp, 2);
	fx_await_async(channel, RMEM_ASYNC_PORT_ERR, fx.a.dev);
	fx_await_async(channel, RMEM_ASYNC_PORT_ACTIVE, fx.a.dev);
	TEST_OK(rmem_dev_port_query(fx.a.dev, 1, &attr));
	TEST_EQ(attr.state, RMEM_PORT_ACTIVE);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 2);
}

/* Its event may precede the channel. */
TEST(chaos_port, port_is_down_at_a_time)
{
	uint64_t deadline = fx_deadline();
	struct rmem_port_attr attr;
	unsigned int spins = 0;

	open_sides("port:PORT_ERR@at:1@ms:600000");
	do {
		fx_relax(&spins);
		TEST_OK(rmem_dev_port_query(fx.a.dev, 1, &attr));
	} while (attr.state != RMEM_PORT_DOWN && !fx_is_late(deadline));
	TEST_EQ(attr.state, RMEM_PORT_DOWN);
}

/* The request is sent again after the timeout of its QP. */
TEST(chaos_port, frozen_port_loses_packets_without_an_event)
{
	struct rmem_dev_stats stats;

	open_sides("port:FREEZE@nth:1@ms:20");
	chaos_write(fx.a.qp, 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_ASSERT(stats.wire_retransmits != 0);
	TEST_ASSERT(!fx_is_readable(channel->fd, 0));
}

/* IBTA 11.6.3.4. */
TEST(chaos_port, device_fails_at_a_packet)
{
	open_sides("device:DEVICE_FATAL@nth:3");
	chaos_write(fx.a.qp, 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	chaos_write(fx.a.qp, 2);
	fx_await_async(channel, RMEM_ASYNC_DEVICE_FATAL, fx.a.dev);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
}

/* It is not lost with the device. */
static void
expect_delayed(const char *rule)
{
	uint64_t deadline = fx_deadline();
	struct rmem_wc wc;
	char rules[96];
	int ret;

	snprintf(rules, sizeof(rules), "%s@cq:2@polls:100000000+device:DEVICE_FATAL@nth:3", rule);
	open_sides(rules);
	chaos_send(fx.a.qp, fx.b.qp, 7);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	chaos_write(fx.a.qp, 1);
	fx_await_async(channel, RMEM_ASYNC_DEVICE_FATAL, fx.a.dev);
	while ((ret = rmem_poll_cq(fx.b.cq, &wc, 1)) == 0 && !fx_is_late(deadline))
		;
	TEST_EQ(ret, 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, 7);
	TEST_EQ(rmem_poll_cq(fx.b.cq, &wc, 1), -EIO);
}

TEST_CALL(chaos_port, late_receive_is_returned_when_the_device_has_failed,
		expect_delayed("recv:LATE"));
TEST_CALL(chaos_port, late_completion_is_returned_when_the_device_has_failed,
		expect_delayed("cq:LATE"));
TEST_CALL(chaos_port, completion_that_is_held_is_returned_when_the_device_has_failed,
		expect_delayed("cq:REORDER"));

/* Whether the second entry of the table is GID1; else it is empty. */
static bool
has_gid(void)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 127, 0, 16, 95};
	struct rmem_gid_entry entry;
	int ret = rmem_dev_gid_query(fx.a.dev, 1, 1, &entry);

	TEST_ASSERT(ret == -ENOENT || (ret == 0 && memcmp(entry.gid, gid, sizeof(gid)) == 0));
	return ret == 0;
}

/* ibv_get_async_event(3). Requests that use the first GID are not affected. */
TEST(chaos_port, gid_is_removed)
{
	open_sides_by("ip=" GID0 ",gids=" GID1, "port:GID_CHANGE@nth:1@ms:600000");
	TEST_ASSERT(has_gid());
	chaos_write(fx.a.qp, 1);
	fx_await_async(channel, RMEM_ASYNC_GID_CHANGE, fx.a.dev);
	TEST_ASSERT(!has_gid());
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

/* A QP of UD, and a handle of an address at which it is reached by the second GID. */
static struct rmem_qp *
open_ud(struct rmem_ah **ah)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 64);
	struct rmem_ah_attr path;
	struct rmem_qp *qp;

	conf.type = RMEM_QPT_UD;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_ASSERT(qp != NULL);
	TEST_OK(fx_ud_ready(qp, QKEY));
	path = fx_path_to(qp);
	path.sgid_index = 1;
	TEST_OK(rmem_ah_create(fx.a.pd, &path, ah));
	fx_track(*ah);
	return qp;
}

/* With the index that it had, although a handle has it. */
TEST(chaos_port, gid_is_added_again)
{
	struct rmem_ah *ah;

	open_sides_by("ip=" GID0 ",gids=" GID1, "port:GID_CHANGE@nth:1@ms:50");
	TEST_ASSERT(open_ud(&ah) != NULL);
	chaos_write(fx.a.qp, 1);
	fx_await_async(channel, RMEM_ASYNC_GID_CHANGE, fx.a.dev);
	fx_await_async(channel, RMEM_ASYNC_GID_CHANGE, fx.a.dev);
	TEST_ASSERT(has_gid());
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

/* The thread of the device removes and adds it; each datagram completes, sent or not. */
TEST(chaos_port, gid_changes_while_datagrams_are_sent)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_qp *qp;
	unsigned int i;

	open_sides_by("ip=" GID0 ",gids=" GID1, "port:GID_CHANGE@every:8@ms:1");
	sge = fx_sge(fx.a.mr, 0, 8);
	wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	wr.flags = RMEM_SEND_SIGNALED;
	qp = open_ud(&wr.ud.ah);
	wr.ud.remote_qpn = qp->qp_num;
	wr.ud.remote_qkey = QKEY;
	for (i = 0; i < DATAGRAMS; i++)
		TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	fx_await_async(channel, RMEM_ASYNC_GID_CHANGE, fx.a.dev);
	TEST_EQ(fx_state(qp), RMEM_QPS_RTS);
}

TEST(chaos_port, log_of_a_port_replays)
{
	char path[] = "/tmp/rmem-chaos.XXXXXX", rules[128], text[256] = "";
	int fd = mkstemp(path);

	TEST_ASSERT(fd >= 0);
	snprintf(rules, sizeof(rules), "port:PORT_ERR@every:3@times:1@ms:30+log:%s", path);
	open_sides(rules);
	chaos_write(fx.a.qp, 1);
	chaos_write(fx.a.qp, 2);
	fx_await_async(channel, RMEM_ASYNC_PORT_ERR, fx.a.dev);
	TEST_ASSERT(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	TEST_TEXT(text, " port:PORT_ERR@ms:30@nth:3 # port 1 (IBTA 11.6.3.4)\n");
	fx_teardown();
	fx_setup_none();
	snprintf(rules, sizeof(rules), "replay:%s", path);
	open_sides(rules);
	chaos_write(fx.a.qp, 1);
	chaos_write(fx.a.qp, 2);
	fx_await_async(channel, RMEM_ASYNC_PORT_ERR, fx.a.dev);
	unlink(path);
}

TEST(chaos_port, illegal_rules_are_refused)
{
	static const char *const bad[][2] = {
			{"port:PORT_ERR", "no packets without ip="},
			{"port:DOWN", "PORT_ERR, FREEZE, GID_CHANGE"},
			{"port:GID_CHANGE", "no packets without ip="},
			{"device:DEVICE_FATAL", "no packets without ip="},
			{"device:FATAL", "DEVICE_FATAL"},
	};
	static const char wire[] = "ip=192.0.2.1,port=shm:chaos_port,chaos=";
	static const char *const bad_filters[] = {"port:PORT_ERR@qp:1", "port:PORT_ERR@at:1@nth:1",
			"device:DEVICE_FATAL@ms:1", "loss:0.1+loss:0.2",
			"port:GID_CHANGE@nth:1", /* no gids= */
			"port:PORT_ERR@port:2", "port:PORT_ERR@port:0",
			"device:DEVICE_FATAL@port:1"};
	struct rmem_dev *dev;
	char args[128];
	unsigned int i;

	chaos_expect_illegal(bad, RTE_DIM(bad));
	for (i = 0; i < RTE_DIM(bad_filters); i++) {
		snprintf(args, sizeof(args), "%s%s", wire, bad_filters[i]);
		TEST_ERR(rmem_dev_create("soft0", args, &dev), EINVAL);
	}
	TEST_ERR(rmem_dev_create("soft0", "ip=192.0.2.1,port=shm:chaos_port,fault=dup:0;dup:0",
				 &dev),
			EINVAL);
}

TEST_SUITE(chaos_port, fx_setup_none, fx_teardown);
