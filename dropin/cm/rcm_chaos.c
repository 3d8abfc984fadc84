/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Faults of connections, injected by rules of the device (chaos=, doc/chaos.md). A rule decides at
 * a step of an ID; rcm_conn_time() injects the fault when the ID's timer expires.
 */

#include <rmem_driver.h>

#include "../verbs/ribv.h"
#include "rcm.h"

bool
rcm_chaos_hit(struct rcm_id *id, enum rmem_rdma_cm_step step)
{
	struct rmem_dev_drv *drv = rmem_dev_drv(ribv_devs[id->dev]);
	struct rmem_rdma_cm_fault fault;

	if (drv->driver->ops.rdma_cm_fault(&drv->dev, step, id->handle, &fault) != 1)
		return false;
	/* The timer of the fault needs the agent. */
	if (rcm_agent_start() != 0)
		return false;
	id->fault = fault;
	id->fault_step = step;
	if (fault.delay_ms != 0)
		rcm_id_timer(id, rcm_now() + (uint64_t)fault.delay_ms * 1000000);
	return true;
}

void
rcm_chaos_happens(struct rcm_id *id)
{
	struct rmem_dev_drv *drv = rmem_dev_drv(ribv_devs[id->dev]);

	(void)drv->driver->ops.rdma_cm_fault(
			&drv->dev, RMEM_RDMA_CM_HAPPENS, id->handle, &id->fault);
}
