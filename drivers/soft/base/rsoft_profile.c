/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The profiles, with the source of each value; doc/driver_soft.md has the same table. */

#include "rsoft_profile.h"

/* Values of profile=, by enum rsoft_profile_arg. */
const char *const rsoft_profile_words[RSOFT_PROFILE_NB] = {"none", "rxe", "mlx5", "verbs"};

/*
 * Capabilities of the verbs driver on a device that passes all probes except mlx5dv's, which have
 * never been run (drivers/verbs). It has no fast registration, indirect keys, requested keys,
 * disabled MRs, counters, MRs of several ranges, shared MRs, READ_WITH_INV, inline receive,
 * completion channels or UD QPs.
 */
#define RSOFT_PROFILE_CAPA                                                                         \
	(RMEM_DEV_CAPA_LOCAL_INV | RMEM_DEV_CAPA_SEND_WITH_INV | RMEM_DEV_CAPA_ATOMIC |            \
			RMEM_DEV_CAPA_ENGINE | RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_SRQ |      \
			RMEM_DEV_CAPA_SRQ_RESIZE | RMEM_DEV_CAPA_CQ_RESIZE |                       \
			RMEM_DEV_CAPA_ASYNC_EVENT | RMEM_DEV_CAPA_UC)

/* Access flags of the verbs driver: without ZERO_BASED, HUGETLB and FLUSH. */
#define RSOFT_PROFILE_ACCESS ((RSOFT_ACCESS & ~RMEM_ACCESS_FLUSH) | RMEM_ACCESS_MW_BIND)

/* RVERBS_MAX_QP and RVERBS_MAX_WR; arguments that are not limits of a device remain unlimited. */
#define RSOFT_PROFILE_MAX                                                                          \
	.max_qp = 4096, .max_srq = UINT64_MAX, .max_wr = 32768, .max_sge = RSOFT_MAX_SGE,          \
	.max_mr_size = UINT64_MAX, .engine = RSOFT_MAX_ENGINES, .loop = 1, .share = 1,             \
	.direct = 1, .sanitize = 1, .mtu = UINT64_MAX, .odp_guard = 1, .odp_uffd = 1,              \
	.socket = UINT64_MAX

const struct rsoft_profile rsoft_profiles[RSOFT_PROFILE_NB] = {
		[RSOFT_PROFILE_NONE] =
				{
						.capa = UINT64_MAX,
						.access = UINT32_MAX,
						.max_msg_size = RSOFT_MAX_MSG_SIZE,
				},
		/* Measured on rdma_rxe of Linux 6.1 and 7.3: doc/verbs_devices.md. */
		[RSOFT_PROFILE_RXE] =
				{
						.capa = RSOFT_PROFILE_CAPA |
								RMEM_DEV_CAPA_MW_TYPE_1,
						.access = RSOFT_PROFILE_ACCESS,
						.is_iova_aligned = true,
						.max_msg_size = RSOFT_MAX_MSG_SIZE,
						.max = {RSOFT_PROFILE_MAX, .max_pd = UINT64_MAX,
								.max_cq = UINT64_MAX,
								.max_cqe = 32767, .max_mr = 524287,
								.max_mw = 524287,
								.max_inline = 512},
				},
		/*
		 * Not measured: ibv_devinfo -v in public reports (openucx/ucx issues 9830, 10317),
		 * rereg_mr of rdma-core's provider.
		 */
		[RSOFT_PROFILE_MLX5] =
				{
						.capa = RSOFT_PROFILE_CAPA |
								RMEM_DEV_CAPA_MW_TYPE_1 |
								RMEM_DEV_CAPA_NULL_MR |
								RMEM_DEV_CAPA_DM |
								RMEM_DEV_CAPA_REREG,
						.access = RSOFT_PROFILE_ACCESS |
								RMEM_ACCESS_ON_DEMAND,
						.max_msg_size = UINT64_C(1) << 30,
						.max = {RSOFT_PROFILE_MAX, .max_pd = 8388608,
								.max_cq = 16777216,
								.max_cqe = 4194303,
								.max_mr = 16777216,
								.max_mw = 16777216,
								.max_inline = UINT64_MAX,
								.max_dm = UINT64_MAX,
								.max_dm_size = UINT64_MAX,
								.keys = RSOFT_KEYS_SAME},
				},
		/* The common subset, without windows of type 1. */
		[RSOFT_PROFILE_VERBS] =
				{
						.capa = RSOFT_PROFILE_CAPA,
						.access = RSOFT_PROFILE_ACCESS,
						.is_iova_aligned = true,
						.max_msg_size = UINT64_C(1) << 30,
						.max = {RSOFT_PROFILE_MAX, .max_pd = 8388608,
								.max_cq = 16777216,
								.max_cqe = 32767, .max_mr = 524287,
								.max_mw = 524287,
								.max_inline = 512},
				},
};
