/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Failures of devices: the thread that reports a failure wakes the agent, which removes the device.
 *
 * Invariant: failed() takes no lock. Its caller may hold locks of the driver, for which a thread
 * with rcm_lock() may wait. So it only sets bits atomically.
 */

#include <rmem_driver.h>

#include "../verbs/ribv.h"
#include "rcm.h"

static uint32_t has_failed; /* bits of devices; atomic */

static void
failed(struct rmem_dev *dev)
{
	uint32_t i;

	/* Set the bits before rcm_agent_wake(). */
	for (i = 0; i < RCM_MAX_DEVS && ribv_devs[i] != NULL; i++) {
		if (ribv_devs[i] == dev)
			__atomic_fetch_or(&has_failed, UINT32_C(1) << i, __ATOMIC_RELAXED);
	}
	rcm_agent_wake();
}

int
rcm_watch_dev(uint32_t number)
{
	__atomic_store_n(&rmem_dev_drv(ribv_devs[number])->failed, failed, __ATOMIC_RELEASE);
	return rcm_agent_start();
}

uint32_t
rcm_watch_take(void)
{
	return __atomic_exchange_n(&has_failed, 0, __ATOMIC_ACQUIRE);
}
