/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs device is opened, reports its capabilities, and leaks nothing when calls fail. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>

#include <rmem_ah.h>

#include "setup.h"

#define VT_WINDOWS                                                                                 \
	(RMEM_DEV_CAPA_MW_TYPE_1 | RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV |            \
			RMEM_DEV_CAPA_SEND_WITH_INV)

/* Of the fake, apart from atomics. */
#define VT_CAPA                                                                                    \
	(RMEM_DEV_CAPA_REREG | RMEM_DEV_CAPA_MR_FD | RMEM_DEV_CAPA_CQ_RESIZE |                     \
			RMEM_DEV_CAPA_ASYNC_EVENT | RMEM_DEV_CAPA_COMP_CHANNEL |                   \
			RMEM_DEV_CAPA_UC | RMEM_DEV_CAPA_UD | RMEM_DEV_CAPA_MCAST | VT_WINDOWS)

TEST(verbs_dev, capabilities_are_probed)
{
	struct rmem_dev_info info;

	TEST_OK(vt_open());
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.capa, RMEM_DEV_CAPA_ATOMIC | VT_CAPA);
	TEST_EQ(info.access,
			VT_ACCESS | RMEM_ACCESS_MW_BIND | RMEM_ACCESS_RELAXED_ORDERING |
					RMEM_ACCESS_ON_DEMAND);
	TEST_EQ(info.max_mw, 16);
	TEST_EQ(info.nb_mw, 0);
	TEST_EQ(info.max_inline_data, 256);
	TEST_EQ(info.max_page_list_len, 0);
	TEST_EQ(info.nb_pd, 1);
	TEST_EQ(info.nb_mr, 1);
	TEST_EQ(info.nb_cq, 2);
	TEST_EQ(info.nb_qp, 2);
	TEST_STATUS(strcmp(info.driver_name, "verbs"), 0);
}

TEST(verbs_dev, wrong_atomics_are_not_reported)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr;
	struct rmem_dev_info info;

	fake.is_atomic_bad = true;
	TEST_OK(vt_open());
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.capa, VT_CAPA);
	sge = vt_sge(0, 8);
	wr = vt_wr(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge);
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), EOPNOTSUPP);
}

TEST(verbs_dev, unsupported_optional_rights_are_masked)
{
	struct rmem_mr_info info;
	struct rmem_mr *mr;

	fake.has_no_relaxed = true;
	fake.has_no_atomic = true;
	TEST_OK(vt_open());
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 8, 0, VT_ACCESS, &mr), EOPNOTSUPP);
	TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 8, 0, RMEM_ACCESS_RELAXED_ORDERING, &mr));
	TEST_EQ(fake.access, 0);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_EQ(info.access, 0);
	TEST_EQ(info.is_pinned, 1);
	TEST_OK(rmem_mr_dereg(mr));
}

/* The class maps it; to verbs it is memory like any other. */
TEST(verbs_dev, memory_of_an_fd_is_registered)
{
	int fd = memfd_create("rmem_test", MFD_CLOEXEC);
	const struct rmem_mr_attr attr = {
			.flags = RMEM_MR_FD, .fd = fd, .length = 4096, .access = VT_ACCESS};
	unsigned char resident;
	struct rmem_mr *mr;
	void *addr;

	TEST_OK(vt_open());
	TEST_ASSERT(fd >= 0);
	TEST_OK(ftruncate(fd, 4096));
	TEST_OK(rmem_mr_reg_attr(vt.pd, &attr, &mr));
	TEST_OK(close(fd));
	addr = mr->addr;
	TEST_OK(mincore(addr, 4096, &resident));
	TEST_OK(rmem_mr_dereg(mr));
	TEST_ASSERT(mincore(addr, 4096, &resident) != 0);
}

TEST(verbs_dev, features_without_verbs_are_refused)
{
	const struct iovec iov[] = {{vt.buf, 8}, {vt.buf, 8}};
	const struct rmem_mr_attr attr = {.iov = iov, .iov_count = RTE_DIM(iov)};
	struct rmem_mr *mr;
	struct rmem_mw *mw;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	uint8_t opcode;

	fake.has_no_mw[RMEM_MW_TYPE_1] = fake.has_no_mw[RMEM_MW_TYPE_2] = true;
	TEST_OK(vt_open());
	TEST_ERR(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_1, &mw), EOPNOTSUPP);
	TEST_ERR(rmem_mw_alloc(vt.pd, RMEM_MW_TYPE_2, &mw), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_mr_alloc(vt.pd, 8, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg_attr(vt.pd, &attr, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 8, 0, RMEM_ACCESS_HUGETLB, &mr), EOPNOTSUPP);
	sge = vt_sge(0, 8);
	for (opcode = RMEM_WR_LOCAL_INV; opcode < RMEM_WR_OPCODE_NB; opcode++) {
		wr = vt_wr(opcode, &sge);
		TEST_ERR(rmem_post_send(vt.a, &wr, 1), EOPNOTSUPP);
	}
	TEST_EQ(fake.nb_ex, 0);
}

static int
vt_capa(uint64_t *capa)
{
	struct rmem_dev_info info = {.capa = 0};
	int ret = vt_open();

	if (ret == 0)
		ret = rmem_dev_info_get(vt.dev, &info);
	*capa = info.capa;
	return ret == 0 ? vt_close() : ret;
}

/* Each kind of windows by itself. */
TEST(verbs_dev, window_capabilities_are_probed)
{
	uint64_t capa;

	fake.has_no_mw[RMEM_MW_TYPE_1] = true;
	TEST_OK(vt_capa(&capa));
	TEST_EQ(capa & VT_WINDOWS, VT_WINDOWS & ~RMEM_DEV_CAPA_MW_TYPE_1);
	fake_reset();
	fake.has_no_mw[RMEM_MW_TYPE_2] = true;
	TEST_OK(vt_capa(&capa));
	TEST_EQ(capa & VT_WINDOWS, RMEM_DEV_CAPA_MW_TYPE_1);
	fake_reset();
	fake.has_no_mw_ex = true; /* an extended QP without them is better than none */
	TEST_OK(vt_capa(&capa));
	TEST_EQ(capa & VT_WINDOWS, RMEM_DEV_CAPA_MW_TYPE_1);
	fake_reset();
	fake.is_inv_bad = true;
	TEST_OK(vt_capa(&capa));
	TEST_EQ(capa & VT_WINDOWS, RMEM_DEV_CAPA_MW_TYPE_1);
	fake_reset();
	fake.is_bind_bad = true;
	TEST_OK(vt_capa(&capa));
	TEST_EQ(capa & VT_WINDOWS, 0);
}

/* A provider whose extended QPs take lists wrong: those go by ibv_post_send(). */
TEST(verbs_dev, wrong_sge_lists_use_ibv_post_send)
{
	struct rmem_sge sge[2];
	struct rmem_send_wr wr[2];
	struct rmem_wc wc[2];

	fake.is_list_bad = true;
	TEST_OK(vt_open());
	sge[0] = vt_sge(0, 3);
	sge[1] = vt_sge(8, 5);
	memcpy(vt.buf, "abc12345defgh", 13);
	wr[0] = wr[1] = vt_wr(RMEM_WR_RDMA_WRITE, sge);
	TEST_STATUS(vt_run(wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake.nb_classic, 0);
	wr[1].num_sge = 2;
	wr[1].rdma.remote_addr += 8;
	TEST_EQ(rmem_post_send(vt.a, wr, 2), 2);
	TEST_EQ(fake.nb_ex, 1);
	TEST_EQ(fake.nb_classic, 1);
	TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 2), 2);
	TEST_EQ(wc[1].status, RMEM_WC_SUCCESS);
	TEST_MEM(vt.buf + VT_BUF / 2, "abc\0\0\0\0\0abcdefgh", 16);
}

/* libibverbs returns ENOMEM for unmapped memory, with fork(2) support. */
TEST(verbs_dev, unmapped_memory_is_efault)
{
	struct rmem_mr *mr;
	uint8_t *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT(page != MAP_FAILED);
	TEST_ASSERT(munmap(page + 4096, 4096) == 0);
	TEST_OK(vt_open());
	vt_fail("reg_mr", ENOMEM);
	TEST_ERR(rmem_mr_reg(vt.pd, page + 5000, 8, 0, 0, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(vt.pd, page + 1, 4096, 0, 0, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(vt.pd, page + 1, 4095, 0, 0, &mr), ENOMEM);
	TEST_ASSERT(munmap(page, 4096) == 0);
}

TEST(verbs_dev, limits_of_the_device_hold)
{
	struct rmem_pd *pd[17];
	struct rmem_mr *mr[33];
	unsigned int i;

	TEST_OK(vt_open());
	for (i = 0; i < 15; i++)
		TEST_OK(rmem_pd_alloc(vt.dev, &pd[i]));
	TEST_ERR(rmem_pd_alloc(vt.dev, &pd[15]), ENOSPC);
	while (i-- > 0)
		TEST_OK(rmem_pd_dealloc(pd[i]));
	for (i = 0; i < 31; i++)
		TEST_OK(rmem_mr_reg(vt.pd, vt.buf, 8, 0, 0, &mr[i]));
	TEST_ERR(rmem_mr_reg(vt.pd, vt.buf, 8, 0, 0, &mr[31]), ENOSPC);
	while (i-- > 0)
		TEST_OK(rmem_mr_dereg(mr[i]));
}

/* Each call fails once: nothing is leaked, or the state is unchanged. */
static void
vt_each_call_fails(int error)
{
	unsigned int at;
	int ret, rc2;

	for (at = 1; at < 200; at++) {
		fake.nb_calls = 0;
		fake.fail_at = at;
		fake.fail_errno = error;
		fake.is_failed = fake.is_release_failed = false;
		ret = vt_open_mw();
		/* Not with an object that its probe can't release. */
		TEST_ASSERT(ret != 0 || !fake.is_release_failed);
		rc2 = ret == 0 ? vt_close() : 0;
		fake.fail_at = 0;
		TEST_ASSERT(ret <= 0 && rc2 <= 0);
		TEST_EQ(fake.nb_crashes, 0);
		/* An object whose release failed can be released again. */
		TEST_OK(vt_close());
		if (!fake.is_failed)
			break;
		/* Objects that the probe can't release, and a context, are leaked. */
		TEST_ASSERT(fake.nb_live == 0 || fake.is_release_failed);
		fake.nb_live = 0;
	}
	TEST_ASSERT(at > 30 && at < 200);
}

TEST(verbs_dev, failure_of_each_call_is_reported)
{
	vt_each_call_fails(ENOMEM);
	vt_each_call_fails(EIO);
}

/* Each call fails in turn: no object remains. */
TEST(verbs_dev, failed_open_releases_everything)
{
	static const struct {
		const char *name;
		int error;
	} rows[] = {{"get_device_list", ENOMEM}, {"open_device", ENOMEM}, {"query_device", ENOMEM},
			{"query_port", ENOMEM}, {"query_gid_table", ENOMEM}, {"alloc_pd", ENOMEM},
			{"create_cq", ENOMEM}, {"reg_mr", ENOMEM}, {"create_qp", ENOMEM},
			{"query_qp", EIO}, {"modify_qp", ENODEV},
			/* Without windows the device has not that capability. */
			{"alloc_mw", EOPNOTSUPP}};
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		fake.fail_name = rows[i].name;
		fake.fail_errno = ENOMEM;
		TEST_ERR(vt_open_mw(), rows[i].error);
		fake.fail_name = NULL;
		TEST_OK(vt_close());
		TEST_EQ(fake.nb_live, 0);
	}
}

/* A release that the device refuses leaves the object as it was. */
TEST(verbs_dev, refused_release_changes_nothing)
{
	TEST_OK(vt_open());
	fake.fail_errno = EBUSY;
	fake.fail_name = "destroy_qp";
	TEST_ERR(rmem_qp_destroy(vt.a), EBUSY);
	fake.fail_name = "dereg_mr";
	TEST_ERR(rmem_mr_dereg(vt.mr), EBUSY);
	fake.fail_name = NULL;
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);

	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
}

/* The thread that reads events is asynchronous: poll until it has processed the event. */
static int
vt_until(int (*func)(void), int want)
{
	uint64_t end = rte_get_timer_cycles() + 600 * rte_get_timer_hz();
	int got;

	do {
		got = func();
		rte_delay_us_sleep(100);
	} while (got != want && rte_get_timer_cycles() < end);
	return got;
}

static int
vt_post_write(void)
{
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct rmem_wc wc;
	int ret = rmem_post_send(vt.a, &wr, 1);

	(void)rmem_poll_cq(vt.cq_a, &wc, 1);
	return ret;
}

static int
vt_poll_b(void)
{
	struct rmem_wc wc;

	return rmem_poll_cq(vt.cq_b, &wc, 1);
}

TEST(verbs_dev, removed_device_takes_no_requests)
{
	struct rmem_recv_wr recv = {.wr_id = 1};

	TEST_OK(vt_open());
	TEST_EQ(vt_post_write(), 1);
	fake_event(IBV_EVENT_DEVICE_FATAL, NULL, NULL, 1);
	TEST_ERR(vt_until(vt_post_write, -ENODEV), ENODEV);
	TEST_ERR(rmem_post_recv(vt.a, &recv, 1), ENODEV);
	TEST_ERR(vt_poll_b(), EIO);
	/* That remains after a reset, and all objects can be released. */
	TEST_OK(rmem_qp_reset(vt.a));
	TEST_ERR(rmem_post_recv(vt.a, &recv, 1), ENODEV);
}

TEST(verbs_dev, overrun_event_ends_the_cq)
{
	TEST_OK(vt_open());
	TEST_EQ(vt_poll_b(), 0);
	fake_event(IBV_EVENT_CQ_ERR, fake_last_cq(), NULL, 0);
	TEST_ERR(vt_until(vt_poll_b, -EIO), EIO);
	TEST_EQ(vt_post_write(), 1); /* the other CQ still works */
}

static int
vt_is_port_down(void)
{
	char dump[4096] = "";
	FILE *f = fmemopen(dump, sizeof(dump), "w");

	if (f == NULL || rmem_dev_dump(vt.dev, f) != 0)
		return -1;
	fclose(f);
	return strstr(dump, "port 1 down") != NULL;
}

TEST(verbs_dev, other_events_are_only_logged)
{
	TEST_OK(vt_open());
	fake_event(IBV_EVENT_QP_ACCESS_ERR, NULL,
			fake_qp_find(vt.a->qp_num) == NULL
					? NULL
					: &fake_qp_find(vt.a->qp_num)->ex.qp_base,
			0);
	fake_event(IBV_EVENT_SM_CHANGE, NULL, NULL, 1);
	fake_event(IBV_EVENT_PORT_ERR, NULL, NULL, 2); /* not ours */
	fake_event(IBV_EVENT_PORT_ERR, NULL, NULL, 1);
	TEST_EQ(vt_until(vt_is_port_down, 1), 1);
	fake_event(IBV_EVENT_PORT_ACTIVE, NULL, NULL, 1);
	TEST_EQ(vt_until(vt_is_port_down, 0), 0);
	TEST_EQ(vt_post_write(), 1);
}

static int
vt_nb_withdrawn(void)
{
	return (int)__atomic_load_n(&fake.nb_withdrawn, __ATOMIC_ACQUIRE);
}

TEST(verbs_dev, event_of_destroyed_object_blocks_no_thread)
{
	TEST_OK(vt_open());
	__atomic_store_n(&fake.nb_withdrawn, 1, __ATOMIC_RELAXED);
	fake_event(IBV_EVENT_SM_CHANGE, NULL, NULL, 1);
	TEST_EQ(vt_until(vt_nb_withdrawn, 0), 0);
	TEST_EQ(fake.nb_crashes, 0);
	fake_event(IBV_EVENT_PORT_ERR, NULL, NULL, 1);
	TEST_EQ(vt_until(vt_is_port_down, 1), 1);
}

static void
fail_at(unsigned int at)
{
	fake.nb_calls = 0;
	fake.fail_at = at;
	fake.fail_errno = EIO;
}

/* Each field has a value of its own in fake.c. */
static void
expect_port(const struct rmem_port_attr *port)
{
	TEST_EQ(port->state, RMEM_PORT_ACTIVE);
	TEST_EQ(port->pkey_tbl_len, 1);
	TEST_EQ(port->cap_flags, 0x10000);
	TEST_EQ(port->cap_flags2, 0x20);
	TEST_EQ(port->max_msg_size, 1u << 30);
	TEST_EQ(port->bad_pkeys, 2);
	TEST_EQ(port->bad_qkeys, 3);
	TEST_EQ(port->lid, 4);
	TEST_EQ(port->sm_lid, 5);
	TEST_EQ(port->lmc, 6);
	TEST_EQ(port->sm_sl, 7);
	TEST_EQ(port->max_vl_num, 8);
	TEST_EQ(port->subnet_timeout, 9);
	TEST_EQ(port->init_type_reply, 10);
	TEST_EQ(port->active_width, 11);
	TEST_EQ(port->phys_state, 12);
	TEST_EQ(port->link_layer, IBV_LINK_LAYER_ETHERNET);
	TEST_EQ(port->flags, 13);
}

TEST(verbs_dev, attributes_are_those_of_verbs)
{
	static const uint8_t guid[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;
	const uint8_t grh[RMEM_GRH_SIZE] = {0x60};
	const struct rmem_wc wc = {.flags = RMEM_WC_GRH};
	struct rmem_ah_attr path;
	struct rmem_dev_attr attr;
	uint16_t pkey;

	TEST_OK(vt_open());
	TEST_OK(rmem_dev_attr_get(vt.dev, &attr));
	TEST_MEM(attr.node_guid, guid, sizeof(guid));
	TEST_EQ(strcmp(attr.fw_ver, "1.0"), 0);
	TEST_EQ(attr.nb_ports, 1);
	TEST_EQ(attr.max_rd_atomic, 128);
	TEST_OK(rmem_dev_port_query(vt.dev, 1, &port));
	TEST_EQ(port.active_mtu, IBV_MTU_1024);
	TEST_EQ(port.max_mtu, IBV_MTU_4096);
	TEST_EQ(port.active_speed, 32);
	TEST_EQ(port.gid_tbl_len, fake.nb_gids);
	expect_port(&port);
	TEST_OK(rmem_dev_gid_query(vt.dev, 1, 1, &entry));
	TEST_EQ(entry.type, RMEM_GID_TYPE_ROCE_V2);
	TEST_EQ(entry.gid[0], 0xfe);
	TEST_ERR(rmem_dev_gid_query(vt.dev, 1, port.gid_tbl_len - 1, &entry), ENOENT);
	TEST_OK(rmem_dev_pkey_query(vt.dev, 1, 0, &pkey));
	TEST_EQ(pkey, 0x7fff);
	fail_at(1);
	TEST_ERR(rmem_dev_port_query(vt.dev, 1, &port), EIO);
	fail_at(2);
	TEST_ERR(rmem_dev_gid_query(vt.dev, 1, 1, &entry), EIO);
	fail_at(3);
	TEST_ERR(rmem_ah_attr_from_wc(vt.dev, 1, &wc, grh, &path), EIO);
	fail_at(2);
	TEST_ERR(rmem_dev_pkey_query(vt.dev, 1, 0, &pkey), EIO);
}

TEST_SUITE(verbs_dev, vt_setup_fake, vt_teardown);
