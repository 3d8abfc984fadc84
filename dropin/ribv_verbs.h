/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* verbs.h for the files that define its functions. */

#ifndef RIBV_VERBS_H
#define RIBV_VERBS_H

#include <infiniband/verbs.h>

/* The header defines these as macros; here the functions are defined. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* A private symbol of libibverbs, which ibv_devinfo uses. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		unsigned int *type);

/* Return the definition of a function in libibverbs, the next one after librmem_ibv.so. */
typedef void (*(*ribv_next_t)(const char *name))(void);

/* Called once by librmem_ibv.so after it has loaded librmem_ibv_core.so. */
void ribv_core_init(ribv_next_t next);

/* Call rmem_env_main_ended(). */
void ribv_core_main_ended(void);

#endif /* RIBV_VERBS_H */
