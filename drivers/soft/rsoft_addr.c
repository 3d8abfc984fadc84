/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses of QPs; see rsoft_addr.h. */

#include <string.h>

#include "rsoft_addr.h"
#include "wire/rwire.h"

/* A device's port, as its QPs' addresses name it. */
struct rsoft_gid {
	char tag[8];
	uint16_t dev_id;
	uint16_t zero;
	uint32_t cookie;
};

static_assert(sizeof(struct rsoft_gid) == 16, "a GID has 16 bytes");

void
rsoft_addr_get(const struct rsoft_qp *qp, struct rmem_qp_addr *addr)
{
	struct rsoft_gid gid = {
			.tag = "rsoft", .dev_id = qp->dev->dev_id, .cookie = qp->dev->cookie};

	memset(addr, 0, sizeof(*addr));
	memcpy(addr->gid, &gid, sizeof(gid));
	addr->qp_num = qp->qp.qp_num;
	if (qp->dev->wire != NULL) {
		rwire_addr_get(qp->dev->wire, addr);
		addr->psn = qp->psn;
	}
}

struct rsoft_dev *
rsoft_addr_dev(const struct rmem_qp_addr *addr)
{
	struct rsoft_gid gid;
	struct rsoft_dev *dev;

	dev = rwire_gid_dev(addr->gid);
	if (dev != NULL)
		return dev;
	memcpy(&gid, addr->gid, sizeof(gid));
	if (memcmp(gid.tag, "rsoft\0\0", sizeof(gid.tag)) != 0 || gid.dev_id >= RMEM_MAX_DEVS)
		return NULL;
	dev = rsoft_domain->dev[gid.dev_id];
	return dev != NULL && dev->cookie == gid.cookie ? dev : NULL;
}

struct rsoft_qp *
rsoft_addr_qp(const struct rmem_qp_addr *addr)
{
	struct rsoft_dev *dev = rsoft_addr_dev(addr);
	struct rsoft_qp *qp;

	if (dev == NULL)
		return NULL;
	qp = dev->qps[addr->qp_num & dev->qp_mask];
	return qp != NULL && qp->qp.qp_num == addr->qp_num ? qp : NULL;
}
