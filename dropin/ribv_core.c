/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Start and end of librmem_ibv_core.so. */

#include "cm/rcm.h"
#include "rmem_env.h"
#include "verbs/ribv.h"

static void
prepare(void)
{
	rcm_lock();
	rmem_env_fork_prepare();
}

static void
parent(void)
{
	rmem_env_fork_parent();
	rcm_unlock();
}

void
ribv_core_init(ribv_next_t next)
{
	ribv_obj_init(next);
	ribv_env_init(prepare, parent, rcm_forked);
}

void
ribv_core_main_ended(void)
{
	rmem_env_main_ended();
}
