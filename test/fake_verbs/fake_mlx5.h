/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * mlx5dv as fakes: libmlx5 found by dlopen(3), QPs that bind mkeys, and a table of these.
 *
 * The rules are those of libmlx5 (rdma-core 44): a request needs IBV_SEND_INLINE, has as many
 * setters as announced and no more entries than fit into the inline data of its QP and the mkey; an
 * error shows in ibv_wr_complete() alone. An mkey is zero-based. A LOCAL_INV sets its tag to 0.
 */

#ifndef FAKE_MLX5_H
#define FAKE_MLX5_H

#include <infiniband/mlx5dv.h>

#include "fake.h"

#define FAKE_MLX5_ENTRIES 64

/* A request that binds an mkey, as the provider got it. */
struct fake_umr {
	uint32_t key;
	uint32_t access;
	uint32_t repeat_count; /* 0: a list */
	uint32_t nb;
	struct mlx5dv_mr_interleaved entry[FAKE_MLX5_ENTRIES];
	/* Calls of setters: 'a' access, 'l' list, 'i' interleaved; in this order. */
	char calls[4];
};

/* Configuration and recorded calls; the first part is as fake_mlx5_reset() sets it. */
struct fake_mlx5 {
	bool is_loaded;          /* dlopen(3) finds the library */
	bool is_device;          /* the device is one of its */
	const char *no_symbol;   /* dlsym(3) does not find that */
	bool has_no_qp;          /* mlx5dv_create_qp() fails */
	bool has_no_mkey;        /* mlx5dv_create_mkey() fails */
	uint32_t max_wr;         /* QPs with more requests are not created; 0: no limit */
	bool is_list_misplaced;  /* the second entry of a list is that of the first */
	bool is_blocks_straight; /* blocks have no gaps */
	bool is_inv_kept;        /* an invalidated mkey remains valid */
	bool is_tag_ignored;     /* a key is valid with any tag */
	bool is_send_inv_refused;
	/* Recorded. */
	unsigned int nb_opens; /* dlopen(3) of the library */
	int open_flags;
	struct mlx5dv_qp_init_attr qp_attr; /* of the last QP */
	uint32_t qp_max_inline;
	struct mlx5dv_mkey_init_attr mkey_attr; /* of the last mkey, as requested */
	unsigned int nb_umrs;                   /* requests, accepted or not */
	struct fake_umr umr;                    /* the last one */
};

extern struct fake_mlx5 fake_mlx5;

/* The part of a QP. */
struct fake_mkey;
struct fake_mlx5_qp {
	struct mlx5dv_qp_ex dv;
	struct fake_qp *qp;
	struct fake_umr *umr; /* that is written */
	struct fake_mkey *mkey;
};

/* A library and a device with all; extended QPs take 1024 bytes of inline data. */
void fake_mlx5_reset(void);

#endif /* FAKE_MLX5_H */
