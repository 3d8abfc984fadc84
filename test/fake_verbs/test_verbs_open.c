/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A device that can't be opened is refused with one log line; others use the best GID. */

#include <stdio.h>
#include <string.h>

#include "setup.h"

static void
vt_refused(const char *args, int error)
{
	struct rmem_dev *dev = NULL;

	TEST_ERR(rmem_dev_create("verbs0", args, &dev), error);
	TEST_ASSERT(dev == NULL);
	TEST_EQ(fake.nb_live, 0);
}

/* The driver's one line is this one. */
static void
vt_refused_with(const char *args, int error, const char *line)
{
	const char *log;
	int ret;

	vt_log_begin();
	ret = TEST_TRY(vt_refused(args, error));
	log = vt_log_end();
	TEST_EQ(ret, TEST_SUCCESS);
	if (strcmp(log, line) != 0)
		printf("the log is: %s", log);
	TEST_ASSERT(strcmp(log, line) == 0);
}

TEST(verbs_open, bad_arguments_are_refused)
{
	static const char *const args[] = {"ibdev=", "port=0", "port=256", "port=x", "port=-1",
			"mtu=300", "mtu=128", "mtu=8192", "colour=red", "port=1,port=1", "=",
			"gid=", "port=2", "mtu=2048", "cm=", "cm=udp",
			"ibdev=0123456789012345678901234567890123456789012345678901234567890123"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++)
		vt_refused(args[i], EINVAL);
}

TEST(verbs_open, absent_device_is_refused)
{
	static const char none[] = "rmem_verbs: device: no RDMA device on this machine\n";

	vt_refused_with("ibdev=mlx5_0", ENODEV,
			"rmem_verbs: ibdev=mlx5_0: no such RDMA device (fake0)\n");
	fake.nb_devices = 2;
	vt_refused_with("ibdev=mlx5_0", ENODEV,
			"rmem_verbs: ibdev=mlx5_0: no such RDMA device (fake0, fake1)\n");
	vt_refused_with(NULL, ENODEV,
			"rmem_verbs: ibdev=: required, with several devices: fake0, fake1\n");
	fake.nb_devices = 0;
	vt_refused_with(NULL, ENODEV, none);
	vt_refused_with("ibdev=mlx5_0", ENODEV, none);
	fake.list_errno = ENOSYS; /* no RDMA in the kernel */
	vt_refused_with(NULL, ENODEV, none);
	fake.list_errno = EMFILE;
	vt_refused_with(NULL, ENOSPC,
			"rmem_verbs: RDMA devices: cannot be listed: Too many open files\n");
}

TEST(verbs_open, device_without_permission_is_refused)
{
	static const char line[] = "rmem_verbs: fake0: cannot be opened: Permission denied ("
				   "/dev/infiniband/uverbs0 must be readable and writable)\n";

	vt_fail("open_device", EACCES);
	vt_refused_with(NULL, EPERM, line);
	/* libibverbs continues the search elsewhere, and returns the errno of that. */
	fake.fail_errno = ENOENT;
	fake.access_errno = EACCES;
	vt_refused_with(NULL, EPERM, line);
	fake.access_errno = 0;
	vt_refused_with(NULL, ENODEV,
			"rmem_verbs: fake0: cannot be opened: No such file or directory\n");
}

TEST(verbs_open, inactive_port_is_refused)
{
	fake.port_state = IBV_PORT_DOWN;
	vt_refused(NULL, ENODEV);
}

TEST(verbs_open, port_without_gid_is_refused)
{
	vt_refused("gid=77", ENODEV);
	vt_refused("gid=10.0.0.2", ENODEV);
	vt_refused("gid=hello", ENODEV);
	fake.nb_gids = 0;
	vt_refused(NULL, ENODEV);
}

/* As of rdma_rxe whose network interface lost its addresses: the GID is there, the way is not. */
TEST(verbs_open, unroutable_gid_is_refused)
{
	vt_fail("modify_qp", ENETUNREACH);
	vt_refused_with("gid=1", ENODEV,
			"rmem_verbs: fake0: no QP can be connected over port 1 by GID 1, "
			"fe80::200:0:0:1: Network is unreachable: configure an address of its "
			"network interface, or select another GID with gid=\n");
	fake.fail_name = NULL;
	TEST_OK(vt_open());
}

/* The dump of a device with these arguments contains this. */
static void
vt_dump_has(const char *args, const char *text)
{
	struct rmem_dev *dev;
	char dump[4096] = "";
	FILE *f = fmemopen(dump, sizeof(dump), "w");

	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_dev_create("verbs0", args, &dev));
	TEST_OK(rmem_dev_dump(dev, f));
	fclose(f);
	TEST_OK(rmem_dev_close(dev));
	TEST_TEXT(dump, text);
}

TEST(verbs_open, gid_is_selected_by_type_and_address)
{
	vt_dump_has(NULL, "GID index 3,"); /* RoCE v2, IPv4 */
	vt_dump_has("gid=0", "GID index 0,");
	vt_dump_has("gid=10.0.0.1", "GID index 3,");
	vt_dump_has("gid=fe80::200:0:0:1", "GID index 1,");
	vt_dump_has("mtu=512", "MTU 512");
	fake.nb_gids = 2;
	vt_dump_has(NULL, "GID index 1,");
}

/* The kernel returns the table of all ports, and refuses if it does not fit. */
TEST(verbs_open, long_gid_tables_are_queried)
{
	fake.nb_gids = 300;
	vt_dump_has(NULL, "GID index 3,");
	vt_dump_has("gid=255", "GID index 255,");
	vt_refused("gid=256", ENODEV); /* verbs have a byte for it */
	fake_reset();
	fake.nb_other_gids = 1000;
	vt_dump_has(NULL, "port 1 active, GID index 3,");
	vt_dump_has("port=2,gid=200", "port 2 active, GID index 200,");
}

TEST(verbs_open, dump_reports_the_probe)
{
	vt_dump_has(NULL,
			"posts by ibv_wr_*, lists by ibv_wr_*, rereg 0x7, on demand "
			"0x3, RC 0x1f\n");
	fake.is_list_bad = true;
	fake.rereg_flags = 0;
	fake.odp_general = 0;
	vt_dump_has(NULL,
			"posts by ibv_wr_*, lists by ibv_post_send, rereg 0x0, on "
			"demand 0x0, RC 0x0\n");
	fake.has_no_ex = true;
	vt_dump_has(NULL, "posts by ibv_post_send, lists by ibv_post_send");
}

TEST_SUITE(verbs_open, vt_setup_fake, vt_teardown);
