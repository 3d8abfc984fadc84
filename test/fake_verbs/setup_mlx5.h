/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fixture of cases over the fakes of mlx5dv: that of setup.h with windows, and an MR of each kind.
 */

#ifndef SETUP_MLX5_H
#define SETUP_MLX5_H

#include "fake_mlx5.h"
#include "setup.h"

#define HALF   (VT_BUF / 2)
#define PAGE   4096u
#define MODIFY (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE)

struct verbs_mlx5_test {
	struct rmem_mr *mkey; /* of 4 entries */
	struct rmem_mr *fast; /* of 4 pages */
	struct rmem_fast_reg_page_list *list;
	struct rmem_mkey_entry entries[4];
};

extern struct verbs_mlx5_test vx;

/* Set-up and tear-down of a case. */
void vx_setup(void);
void vx_teardown(void);
/* An entry in the buffer, with the lkey of its MR. */
struct rmem_mkey_entry vx_entry(uint32_t offset, uint64_t length, uint64_t skip);
/* A signaled UMR of the mkey to two pieces of 8 bytes in the second half of the buffer. */
struct rmem_send_wr vx_umr(uint8_t tag);
/* A signaled REG_MR to the last 100 bytes of the first page and the first 50 of the second. */
struct rmem_send_wr vx_reg(uint8_t tag);
/* b writes the first bytes of the buffer through a key; the status. */
int vx_write(uint32_t rkey, uint64_t addr, uint32_t length);
/* Set distinct bytes in the first half of the buffer, and 0 in the second. */
void vx_fill(void);

#endif /* SETUP_MLX5_H */
