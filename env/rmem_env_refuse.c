/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Parts of class and drivers that need DPDK, and are not linked without it. */

#include <assert.h>
#include <errno.h>

#include "../drivers/soft/base/rsoft.h"
#include "../drivers/soft/rsoft_engine.h"
#include "../drivers/soft/wire/port/rwire_port.h"
#include "../lib/rmem/rmem_mp_priv.h"
#include "../lib/rmem/rmem_priv.h"
#include "../lib/rmem/rmem_report_priv.h"
#include "rmem_env.h"

static_assert(RMEM_ENV_MAX_THREADS <= RSOFT_MAX_LCORES, "each thread has an entry");

void
rmem_telemetry_init(void)
{
}

void
rmem_telemetry_obj_init(void)
{
}

void
rmem_mp_start(void)
{
}

void
rmem_mp_forget(const struct rmem_dev *dev)
{
	RTE_SET_USED(dev);
}

bool
rmem_mp_is_shared(const void *addr)
{
	RTE_SET_USED(addr);
	return false;
}

int
rsoft_engines_start(struct rsoft_dev *dev, const char *name)
{
	if (dev->args.engine == 0)
		return 0;
	RSOFT_LOG(ERR, "%s: engine=%u: needs the service lcores of EAL", name,
			(unsigned int)dev->args.engine);
	return -EOPNOTSUPP;
}

void
rsoft_engines_stop(struct rsoft_dev *dev)
{
	RTE_SET_USED(dev);
}

void
rsoft_engine_add_qp(struct rsoft_qp *qp)
{
	RTE_SET_USED(qp);
}

void
rsoft_engine_remove_qp(struct rsoft_qp *qp)
{
	RTE_SET_USED(qp);
}

void
rsoft_engine_lock_qp(struct rsoft_qp *qp)
{
	RTE_SET_USED(qp);
}

void
rsoft_engine_unlock_qp(struct rsoft_qp *qp)
{
	RTE_SET_USED(qp);
}

int
rwire_port_eth_open(const struct rwire_addr *addr, const char *text, const char *neighs,
		uint32_t path_mtu, struct rwire_port **port)
{
	RTE_SET_USED(addr);
	RTE_SET_USED(neighs);
	RTE_SET_USED(path_mtu);
	RTE_SET_USED(port);
	RSOFT_LOG(ERR, "port=eth:%s: needs the ethdev ports of EAL", text);
	return -EOPNOTSUPP;
}
