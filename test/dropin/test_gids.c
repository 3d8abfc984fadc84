/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Tables of GIDs and P_Keys: packets have the GID and the P_Key of the indices of their QP or
 * address handle, and are lost where these do not match; rmem-ctl changes the tables.
 *
 * usage: test-gids RMEM-CTL
 */

#include "run_control.h"
#include "two_sides.h"

#define GID0  "127.0.16.26"
#define GID1  "127.0.16.27"
#define GID2  "127.0.16.29"
#define GID3  "127.0.16.34"
#define OTHER "127.0.16.28"

static const char *program;

/* The status of a WRITE of a first QP of soft0, of which a new one is connected to one of soft1. */
static enum ibv_wc_status
write_status(uint8_t sgid_index, const char *own, uint16_t pkey_index, uint16_t peer_pkey_index)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC);
	struct ibv_qp *peer = create_qp(&sides[1], IBV_QPT_RC);
	enum ibv_wc_status status;

	HOLDS(connect_rc(peer, qp, own, (struct place){1, 0, peer_pkey_index}) == 0);
	HOLDS(connect_rc(qp, peer, OTHER, (struct place){1, sgid_index, pkey_index}) == 0);
	/* To soft0's own MR: the key is one of the other device, so that none reaches memory. */
	HOLDS(post_write(qp, sides[0].mr, 0) == 0);
	status = wait_wc(sides[0].cq).status;
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
	return status;
}

/* Whether soft0 has a GID at the index: ibv_query_gid() returns zeros for none. */
static bool
has_gid(uint32_t index)
{
	static const union ibv_gid none;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	int ret = ibv_query_gid_ex(sides[0].context, 1, index, &entry, 0);

	HOLDS(ret == 0 || ret == ENODATA);
	HOLDS(ibv_query_gid(sides[0].context, 1, (int)index, &gid) == 0);
	HOLDS((memcmp(&gid, &none, sizeof(gid)) != 0) == (ret == 0));
	return ret == 0;
}

static void
tables_are_those_of_arguments(void)
{
	struct ibv_gid_entry entries[32];
	struct ibv_port_attr port;
	const union ibv_gid own = gid_of(GID1);
	char line[64] = "";
	__be16 pkey;
	FILE *file;

	HOLDS(ibv_query_port(sides[0].context, 1, &port) == 0);
	HOLDS(port.gid_tbl_len == 16 && port.pkey_tbl_len == 16);
	HOLDS(ibv_query_gid_table(sides[0].context, entries, 32, 0) == 2);
	HOLDS(entries[1].gid_index == 1 && memcmp(&entries[1].gid, &own, sizeof(own)) == 0);
	HOLDS(entries[1].gid_type == IBV_GID_TYPE_ROCE_V2 && entries[1].ndev_ifindex != 0);
	HOLDS(!has_gid(2));
	HOLDS(ibv_query_pkey(sides[0].context, 1, 1, &pkey) == 0 && pkey == htons(0x8001));
	HOLDS(ibv_get_pkey_index(sides[0].context, 1, htons(0x0002)) == 2);
	file = fopen("/sys/class/infiniband/soft0/ports/1/gids/1", "r");
	HOLDS(file != NULL && fgets(line, sizeof(line), file) != NULL && fclose(file) == 0);
	HOLDS(strcmp(line, "0000:0000:0000:0000:0000:ffff:7f00:101b\n") == 0);
	HOLDS(ibv_query_port(sides[1].context, 1, &port) == 0);
	HOLDS(port.gid_tbl_len == 1 && port.pkey_tbl_len == 16);
}

/* A peer takes packets of its own peer's GID alone; the key is wrong then, which it answers. */
static void
packets_have_gid_of_index(void)
{
	HOLDS(write_status(1, GID1, 0, 0) == IBV_WC_REM_ACCESS_ERR);
	HOLDS(write_status(0, GID0, 0, 0) == IBV_WC_REM_ACCESS_ERR);
	is_loss_expected = true;
	HOLDS(write_status(1, GID0, 0, 0) == IBV_WC_RETRY_EXC_ERR);
	is_loss_expected = false;
}

/* soft0 has 0xffff, 0x8001 and 0x0002, soft1 0xffff, 0x0001, 0x0002 and 0x8003. */
static void
packets_of_other_partitions_are_lost(void)
{
	struct ibv_port_attr before, after;
	const time_t end = time(NULL) + 60;

	HOLDS(ibv_query_port(sides[1].context, 1, &before) == 0);
	HOLDS(write_status(0, GID0, 1, 1) == IBV_WC_REM_ACCESS_ERR);
	is_loss_expected = true;
	HOLDS(write_status(0, GID0, 1, 3) == IBV_WC_RETRY_EXC_ERR);
	/* Two limited members. */
	HOLDS(write_status(0, GID0, 2, 2) == IBV_WC_RETRY_EXC_ERR);
	is_loss_expected = false;
	/* The thread that receives may be later than the last retry. */
	do {
		HOLDS(ibv_query_port(sides[1].context, 1, &after) == 0);
	} while (after.bad_pkey_cntr - before.bad_pkey_cntr < 2 && time(NULL) < end);
	HOLDS(after.bad_pkey_cntr - before.bad_pkey_cntr >= 2);
}

static void
indices_without_entry_are_refused(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	HOLDS(connect_rc(qp, qp, OTHER, (struct place){1, 2, 0}) == EINVAL);
	HOLDS(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == 0);
	HOLDS(connect_rc(qp, qp, OTHER, (struct place){1, 0, 3}) == EINVAL);
	HOLDS(connect_rc(qp, qp, OTHER, (struct place){1, 0, 16}) == EINVAL);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

/* A modify that fails changes no index: packets have the P_Key that a query returns. */
static void
failed_modify_changes_no_index(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC);
	struct ibv_qp *peer = create_qp(&sides[1], IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_init_attr init;

	HOLDS(ibv_modify_qp(qp, &attr, INIT_MASK) == 0);
	/* An IPv6 address can't be reached from an IPv4 one. */
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_256,
			.dest_qp_num = peer->qp_num,
			.pkey_index = 1,
			.ah_attr = {.port_num = 1,
					.is_global = 1,
					.grh = {.dgid.raw = {0x20, 1, [15] = 1}, .sgid_index = 1}}};
	HOLDS(ibv_modify_qp(qp, &attr, RTR_MASK | IBV_QP_PKEY_INDEX) == EINVAL);
	HOLDS(connect_rc(peer, qp, GID0, (struct place){1, 0, 0}) == 0);
	attr.ah_attr.grh.dgid = gid_of(OTHER);
	attr.ah_attr.grh.sgid_index = 0;
	HOLDS(ibv_modify_qp(qp, &attr, RTR_MASK) == 0);
	HOLDS(ibv_query_qp(qp, &attr, 0, &init) == 0 && attr.pkey_index == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7};
	HOLDS(ibv_modify_qp(qp, &attr, RTS_MASK) == 0);
	HOLDS(post_write(qp, sides[0].mr, 0) == 0);
	HOLDS(wait_wc(sides[0].cq).status == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
}

/* An answer is sent from the GID that the datagram was sent to. */
static void
datagrams_have_gid_of_handle(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_UD);
	struct ibv_qp *peer = create_qp(&sides[1], IBV_QPT_UD);

	start_ud(qp, QKEY);
	start_ud(peer, QKEY);
	exchange_datagrams(qp, peer, GID1, (struct place){.port_num = 1, .sgid_index = 1});
}

/* Its QPs go on, and fail to send. */
static void
removed_gid_has_no_packets(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC),
		      *peer = create_qp(&sides[1], IBV_QPT_RC);

	is_loss_expected = true;
	HOLDS(connect_rc(peer, qp, GID1, (struct place){1, 0, 0}) == 0 &&
			connect_rc(qp, peer, OTHER, (struct place){1, 1, 0}) == 0);
	is_loss_expected = false;
	control_prints(program, "gid soft0:1 del " GID1, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	HOLDS(!has_gid(1));
	HOLDS(post_write(qp, sides[0].mr, 0) == 0);
	HOLDS(wait_wc(sides[0].cq).status == IBV_WC_RETRY_EXC_ERR);
	/* A QP has the index still. */
	control_prints(program, "gid soft0 add " GID2, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	HOLDS(!has_gid(1));
	HOLDS(write_status(2, GID2, 0, 0) == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
	control_prints(program, "gid soft0 add " GID1, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	HOLDS(write_status(1, GID1, 0, 0) == IBV_WC_REM_ACCESS_ERR);
}

/* A handle of a removed GID sends nothing: not from the GID that is added next, either. */
static void
handle_keeps_removed_gid(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_UD);
	struct ibv_qp *peer = create_qp(&sides[1], IBV_QPT_UD);
	struct ibv_ah_attr path = {.port_num = 1,
			.is_global = 1,
			.grh = {.dgid = gid_of(OTHER), .sgid_index = 1, .hop_limit = 64}};
	struct ibv_ah *ah = ibv_create_ah(sides[0].pd, &path);

	HOLDS(ah != NULL);
	control_prints(program, "gid soft0 del " GID1, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	HOLDS(ibv_create_ah(sides[0].pd, &path) == NULL && errno == EINVAL);
	control_prints(program, "gid soft0 add " GID3, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	HOLDS(!has_gid(1));
	HOLDS(ibv_destroy_ah(ah) == 0);
	control_prints(program, "gid soft0 del " GID3, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	control_prints(program, "gid soft0 add " GID1, "");
	expect_event(sides[0].context, IBV_EVENT_GID_CHANGE);
	start_ud(qp, QKEY);
	start_ud(peer, QKEY);
	exchange_datagrams(qp, peer, GID1, (struct place){.port_num = 1, .sgid_index = 1});
}

static void
removed_pkey_has_no_packets(void)
{
	struct ibv_qp *qp = create_qp(&sides[0], IBV_QPT_RC),
		      *peer = create_qp(&sides[1], IBV_QPT_RC);

	is_loss_expected = true;
	HOLDS(connect_rc(peer, qp, GID0, (struct place){1, 0, 1}) == 0 &&
			connect_rc(qp, peer, OTHER, (struct place){1, 0, 1}) == 0);
	is_loss_expected = false;
	control_prints(program, "pkey soft0 del 0x8001", "");
	expect_event(sides[0].context, IBV_EVENT_PKEY_CHANGE);
	HOLDS(ibv_get_pkey_index(sides[0].context, 1, htons(0x8001)) == -1);
	HOLDS(post_write(qp, sides[0].mr, 0) == 0);
	HOLDS(wait_wc(sides[0].cq).status == IBV_WC_RETRY_EXC_ERR);
	control_prints(program, "pkey soft0:1 add 0x8001", "");
	expect_event(sides[0].context, IBV_EVENT_PKEY_CHANGE);
	HOLDS(write_status(0, GID0, 1, 1) == IBV_WC_REM_ACCESS_ERR);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
}

static void
mtu_is_that_of_later_queries(void)
{
	struct ibv_port_attr port;

	control_prints(program, "mtu soft0 512", "");
	HOLDS(ibv_query_port(sides[0].context, 1, &port) == 0 && port.active_mtu == IBV_MTU_512);
	HOLDS(write_status(0, GID0, 0, 0) == IBV_WC_REM_ACCESS_ERR);
}

static void
wrong_commands_are_refused(void)
{
	control_refuses(program, "gid soft0 add here", 1, "gid here: not an IPv4 or IPv6 address");
	control_refuses(program, "gid soft0 add " OTHER, 1,
			"gid " OTHER ": a device has the address");
	control_refuses(program, "gid soft0 add 203.0.113.9", 1,
			"gid 203.0.113.9: not an address of this host");
	control_refuses(program, "gid soft0 del 127.0.16.30", 1,
			"gid 127.0.16.30: not in the table");
	control_refuses(program, "gid soft0 del " GID0, 1, "the first one, of ip=, stays");
	control_refuses(program, "gid soft0:2 add " GID1, 1, "no port 2: port 1 only");
	control_refuses(program, "gid soft0:x add " GID1, 2, "x is not the number of a port");
	control_refuses(program, "gid soft0 move " GID1, 2, "move is not add or del");
	control_refuses(program, "gid soft7 add " GID1, 1, "no device soft7 with control=1");
	control_refuses(program, "pkey soft0 add 0x8000", 1,
			"pkey 0x8000: not 1 to 0xffff, but 0x8000");
	control_refuses(program, "pkey soft0 add 0xffff", 1, "pkey 0xffff: in the table already");
	control_refuses(program, "pkey soft0 del 9", 1, "pkey 9: not in the table");
	control_refuses(program, "mtu soft0 1000", 1, "mtu 1000: not a path MTU of 256 to 4096");
}

int
main(int argc, char **argv)
{
	HOLDS(argc == 2);
	program = argv[1];
	HOLDS(setenv("RMEM_IBV",
			      "soft0,ip=" GID0 ",gids=" GID1
			      ",pkeys=0xffff;0x8001;2,loop=1,control=1"
			      "|soft1,ip=" OTHER ",pkeys=0xffff;1;2;0x8003,loop=1",
			      1) == 0);
	open_side(&sides[0], "soft0");
	open_side(&sides[1], "soft1");
	tables_are_those_of_arguments();
	packets_have_gid_of_index();
	packets_of_other_partitions_are_lost();
	indices_without_entry_are_refused();
	failed_modify_changes_no_index();
	datagrams_have_gid_of_handle();
	removed_gid_has_no_packets();
	handle_keeps_removed_gid();
	removed_pkey_has_no_packets();
	mtu_is_that_of_later_queries();
	wrong_commands_are_refused();
	close_side(&sides[0]);
	close_side(&sides[1]);
	return 0;
}
