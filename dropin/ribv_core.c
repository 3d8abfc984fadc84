/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Start and end of librmem_ibv_core.so. */

#include "cm/rcm.h"
#include "rmem_env.h"
#include "verbs/ribv.h"

void
ribv_core_init(ribv_next_t next)
{
	ribv_obj_init(next);
	ribv_env_init(rcm_lock, rcm_unlock, rcm_forked);
}

void
ribv_core_main_ended(void)
{
	rmem_env_main_ended();
}
