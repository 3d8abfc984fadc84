/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Attributes of devices and ports. Drivers are called only with ports and indexes that exist.
 */

#include <errno.h>
#include <string.h>

#include "rmem_priv.h"
#include "rmem_trace_priv.h"

static int
check_args(const struct rmem_dev *dev, const void *answer)
{
	int ret = rmem_obj_check(dev, RMEM_OBJ_DEV);

	return ret != 0 ? ret : rmem_check_arg(answer, "result");
}

static int
get_port(const struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *port)
{
	struct rmem_dev_attr attr;
	int ret;

	memset(&attr, 0, sizeof(attr));
	memset(port, 0, sizeof(*port));
	ret = RMEM_OP(dev, dev_attr_get, rmem_obj_dev(&dev->obj), &attr);
	if (ret != 0)
		return ret;
	if (port_num == 0 || port_num > attr.nb_ports)
		return RMEM_FAIL(EINVAL, "%s: port out of range: %u (1 to %u)", dev->name, port_num,
				attr.nb_ports);
	return RMEM_OP(dev, dev_port_query, rmem_obj_dev(&dev->obj), port_num, port);
}

static int
check_index(const struct rmem_dev *dev, const char *what, uint32_t index, uint32_t length)
{
	if (index < length)
		return 0;
	return RMEM_FAIL(EINVAL, "%s: %s index out of range: %u (below %u)", dev->name, what, index,
			length);
}

int
rmem_dev_attr_get(const struct rmem_dev *dev, struct rmem_dev_attr *attr)
{
	RMEM_CALL(dev);
	struct rmem_dev_attr tmp;
	int ret = check_args(dev, attr);

	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	ret = RMEM_OP(dev, dev_attr_get, rmem_obj_dev(&dev->obj), &tmp);
	if (ret == 0)
		*attr = tmp;
	return ret;
}

int
rmem_dev_clock_get(const struct rmem_dev *dev, uint64_t *ticks)
{
	RMEM_CALL(dev);
	uint64_t tmp = 0;
	int ret = check_args(dev, ticks);

	if (ret == 0)
		ret = RMEM_OP(dev, dev_clock_get, rmem_obj_dev(&dev->obj), &tmp);
	if (ret == 0)
		*ticks = tmp;
	return ret;
}

int
rmem_dev_port_query(const struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr)
{
	RMEM_CALL(dev);
	struct rmem_port_attr tmp;
	int ret = check_args(dev, attr);

	if (ret == 0)
		ret = get_port(dev, port_num, &tmp);
	if (ret == 0)
		*attr = tmp;
	return ret;
}

int
rmem_dev_gid_query(const struct rmem_dev *dev, uint32_t port_num, uint32_t index,
		struct rmem_gid_entry *entry)
{
	RMEM_CALL(dev);
	struct rmem_gid_entry tmp;
	struct rmem_port_attr port;
	int ret = check_args(dev, entry);

	if (ret == 0)
		ret = get_port(dev, port_num, &port);
	if (ret == 0)
		ret = check_index(dev, "GID", index, port.gid_tbl_len);
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	tmp.index = index;
	tmp.port_num = port_num;
	ret = RMEM_OP(dev, dev_gid_query, rmem_obj_dev(&dev->obj), &tmp);
	if (ret == 0)
		*entry = tmp;
	return ret;
}

int
rmem_dev_pkey_query(const struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey)
{
	RMEM_CALL(dev);
	struct rmem_port_attr port;
	int ret = check_args(dev, pkey);

	if (ret == 0)
		ret = get_port(dev, port_num, &port);
	if (ret == 0)
		ret = check_index(dev, "P_Key", index, port.pkey_tbl_len);
	if (ret == 0)
		ret = RMEM_OP(dev, dev_pkey_query, rmem_obj_dev(&dev->obj), port_num, index, pkey);
	return ret;
}
