/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Attributes of a device and its ports, and their tables. */

#include <string.h>

#include "conf.h"

/* The port that the QPs of the fixture use. */
static uint32_t
port_of_fixture(void)
{
	struct rmem_qp_attr attr;

	return rmem_qp_query(fx.a.qp, &attr) == 0 ? attr.port_num : 0;
}

CONF_TEST(port, device_has_a_guid_and_ports, 0, 0, "ibv_query_device(3)")
{
	static const uint8_t none[8];
	struct rmem_dev_attr attr;

	TEST_OK(rmem_dev_attr_get(conf.dev, &attr));
	TEST_ASSERT(memcmp(attr.node_guid, none, sizeof(none)) != 0);
	TEST_ASSERT(attr.nb_ports >= 1 && attr.max_pkeys >= 1);
	TEST_ASSERT(attr.max_rd_atomic >= 1 && attr.max_dest_rd_atomic >= 1);
	TEST_ASSERT(memchr(attr.fw_ver, '\0', sizeof(attr.fw_ver)) != NULL);
	/* IBV_DEVICE_SRQ_RESIZE */
	TEST_EQ(attr.cap_flags >> 13 & 1, fx_has_capa(conf.dev, RMEM_DEV_CAPA_SRQ_RESIZE));
}

CONF_TEST(port, port_in_use_is_active, 0, 0, "ibv_query_port(3)")
{
	struct rmem_port_attr port;

	TEST_OK(rmem_dev_port_query(conf.dev, port_of_fixture(), &port));
	TEST_EQ(port.state, RMEM_PORT_ACTIVE);
	TEST_ASSERT(port.active_mtu >= 1 && port.active_mtu <= port.max_mtu && port.max_mtu <= 5);
	TEST_ASSERT(port.max_msg_size != 0 && port.gid_tbl_len >= 1 && port.pkey_tbl_len >= 1);
	TEST_ASSERT(port.active_width != 0 && port.active_speed != 0);
	if (port.link_layer == RMEM_LINK_LAYER_ETHERNET)
		TEST_EQ(port.lid, 0);
	else
		TEST_ASSERT(port.link_layer == RMEM_LINK_LAYER_INFINIBAND && port.lid != 0);
}

CONF_TEST(port, gid_table_has_the_gid_of_the_qps, 0, 0, "ibv_query_gid_ex(3)")
{
	uint32_t i, port_num = port_of_fixture(), nb_found = 0;
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;
	struct rmem_qp_attr attr;
	int ret;

	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_OK(rmem_dev_port_query(conf.dev, port_num, &port));
	for (i = 0; i < port.gid_tbl_len; i++) {
		ret = rmem_dev_gid_query(conf.dev, port_num, i, &entry);
		if (ret == -ENOENT)
			continue;
		TEST_OK(ret);
		TEST_EQ(entry.index, i);
		TEST_EQ(entry.port_num, port_num);
		TEST_ASSERT(entry.type <= RMEM_GID_TYPE_ROCE_V2);
		nb_found += memcmp(entry.gid, attr.addr.gid, sizeof(entry.gid)) == 0;
	}
	TEST_ASSERT(nb_found >= 1);
}

CONF_TEST(port, first_pkey_is_the_default_one, 0, 0, "ibv_query_pkey(3); IBTA 10.9.2")
{
	uint16_t pkey = 0;

	TEST_OK(rmem_dev_pkey_query(conf.dev, port_of_fixture(), 0, &pkey));
	TEST_EQ(pkey, 0xffff);
}

CONF_TEST(port, ports_and_indexes_beyond_the_tables_are_refused, 0, 0,
		"ibv_query_port(3), ibv_query_gid_ex(3), ibv_query_pkey(3)")
{
	uint32_t port_num = port_of_fixture();
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;
	struct rmem_dev_attr attr;
	uint16_t pkey;

	TEST_OK(rmem_dev_attr_get(conf.dev, &attr));
	TEST_OK(rmem_dev_port_query(conf.dev, port_num, &port));
	TEST_ERR(rmem_dev_port_query(conf.dev, 0, &port), EINVAL);
	TEST_ERR(rmem_dev_port_query(conf.dev, attr.nb_ports + 1, &port), EINVAL);
	TEST_ERR(rmem_dev_gid_query(conf.dev, 0, 0, &entry), EINVAL);
	TEST_ERR(rmem_dev_gid_query(conf.dev, port_num, port.gid_tbl_len, &entry), EINVAL);
	TEST_ERR(rmem_dev_gid_query(conf.dev, port_num, UINT32_MAX, &entry), EINVAL);
	TEST_ERR(rmem_dev_pkey_query(conf.dev, attr.nb_ports + 1, 0, &pkey), EINVAL);
	TEST_ERR(rmem_dev_pkey_query(conf.dev, port_num, port.pkey_tbl_len, &pkey), EINVAL);
}

CONF_TEST(port, null_arguments_are_refused, 0, 0, "rmem_dev_attr.h")
{
	struct rmem_port_attr port;
	struct rmem_gid_entry entry;
	struct rmem_dev_attr attr;
	uint16_t pkey;

	TEST_ERR(rmem_dev_attr_get(NULL, &attr), EINVAL);
	TEST_ERR(rmem_dev_attr_get(conf.dev, NULL), EINVAL);
	TEST_ERR(rmem_dev_port_query(NULL, 1, &port), EINVAL);
	TEST_ERR(rmem_dev_port_query(conf.dev, 1, NULL), EINVAL);
	TEST_ERR(rmem_dev_gid_query(NULL, 1, 0, &entry), EINVAL);
	TEST_ERR(rmem_dev_gid_query(conf.dev, 1, 0, NULL), EINVAL);
	TEST_ERR(rmem_dev_pkey_query(NULL, 1, 0, &pkey), EINVAL);
	TEST_ERR(rmem_dev_pkey_query(conf.dev, 1, 0, NULL), EINVAL);
}

TEST_SUITE(port, conf_setup, conf_teardown);
