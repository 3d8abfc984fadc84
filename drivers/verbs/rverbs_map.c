/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Mapping of values between rmem and verbs. Values assumed to be equal are asserted here. */

#include <assert.h>

#include "rverbs.h"

static_assert(RMEM_ACCESS_LOCAL_WRITE == (uint32_t)IBV_ACCESS_LOCAL_WRITE &&
				RMEM_ACCESS_REMOTE_WRITE == (uint32_t)IBV_ACCESS_REMOTE_WRITE &&
				RMEM_ACCESS_REMOTE_READ == (uint32_t)IBV_ACCESS_REMOTE_READ &&
				RMEM_ACCESS_REMOTE_ATOMIC == (uint32_t)IBV_ACCESS_REMOTE_ATOMIC &&
				RMEM_ACCESS_MW_BIND == (uint32_t)IBV_ACCESS_MW_BIND &&
				RMEM_ACCESS_ZERO_BASED == (uint32_t)IBV_ACCESS_ZERO_BASED &&
				RMEM_ACCESS_RELAXED_ORDERING ==
						(uint32_t)IBV_ACCESS_RELAXED_ORDERING &&
				RMEM_ACCESS_OPTIONAL_RANGE == (uint32_t)IBV_ACCESS_OPTIONAL_RANGE,
		"access bits pass through");
static_assert(RMEM_SEND_FENCE == (unsigned int)IBV_SEND_FENCE &&
				RMEM_SEND_SIGNALED == (unsigned int)IBV_SEND_SIGNALED &&
				RMEM_SEND_SOLICITED == (unsigned int)IBV_SEND_SOLICITED &&
				RMEM_SEND_INLINE == (unsigned int)IBV_SEND_INLINE,
		"flags of requests pass through");
static_assert((int)RMEM_REREG_CHANGE_TRANSLATION == (int)IBV_REREG_MR_CHANGE_TRANSLATION &&
				(int)RMEM_REREG_CHANGE_PD == (int)IBV_REREG_MR_CHANGE_PD &&
				(int)RMEM_REREG_CHANGE_ACCESS == (int)IBV_REREG_MR_CHANGE_ACCESS,
		"changes of an MR pass through");
static_assert((int)RMEM_REREG_ERR_INPUT == (int)IBV_REREG_MR_ERR_INPUT &&
				(int)RMEM_REREG_ERR_DONT_FORK_NEW ==
						(int)IBV_REREG_MR_ERR_DONT_FORK_NEW &&
				(int)RMEM_REREG_ERR_DO_FORK_OLD ==
						(int)IBV_REREG_MR_ERR_DO_FORK_OLD &&
				(int)RMEM_REREG_ERR_CMD == (int)IBV_REREG_MR_ERR_CMD &&
				(int)RMEM_REREG_ERR_CMD_AND_DO_FORK_NEW ==
						(int)IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW,
		"what is valid after such a change has verbs' values");
static_assert((int)RMEM_QPT_RC == (int)IBV_QPT_RC && (int)RMEM_QPT_UC == (int)IBV_QPT_UC,
		"the type of a QP passes through");
static_assert((int)RMEM_ASYNC_CQ_ERR == (int)IBV_EVENT_CQ_ERR &&
				(int)RMEM_ASYNC_QP_FATAL == (int)IBV_EVENT_QP_FATAL &&
				(int)RMEM_ASYNC_QP_REQ_ERR == (int)IBV_EVENT_QP_REQ_ERR &&
				(int)RMEM_ASYNC_QP_ACCESS_ERR == (int)IBV_EVENT_QP_ACCESS_ERR &&
				(int)RMEM_ASYNC_COMM_EST == (int)IBV_EVENT_COMM_EST &&
				(int)RMEM_ASYNC_SQ_DRAINED == (int)IBV_EVENT_SQ_DRAINED &&
				(int)RMEM_ASYNC_DEVICE_FATAL == (int)IBV_EVENT_DEVICE_FATAL &&
				(int)RMEM_ASYNC_PORT_ACTIVE == (int)IBV_EVENT_PORT_ACTIVE &&
				(int)RMEM_ASYNC_PORT_ERR == (int)IBV_EVENT_PORT_ERR &&
				(int)RMEM_ASYNC_LID_CHANGE == (int)IBV_EVENT_LID_CHANGE &&
				(int)RMEM_ASYNC_PKEY_CHANGE == (int)IBV_EVENT_PKEY_CHANGE &&
				(int)RMEM_ASYNC_SM_CHANGE == (int)IBV_EVENT_SM_CHANGE &&
				(int)RMEM_ASYNC_SRQ_ERR == (int)IBV_EVENT_SRQ_ERR &&
				(int)RMEM_ASYNC_SRQ_LIMIT_REACHED ==
						(int)IBV_EVENT_SRQ_LIMIT_REACHED &&
				(int)RMEM_ASYNC_QP_LAST_WQE_REACHED ==
						(int)IBV_EVENT_QP_LAST_WQE_REACHED &&
				(int)RMEM_ASYNC_CLIENT_REREGISTER ==
						(int)IBV_EVENT_CLIENT_REREGISTER &&
				(int)RMEM_ASYNC_GID_CHANGE == (int)IBV_EVENT_GID_CHANGE,
		"types of events pass through");
static_assert(RMEM_QP_STATE == IBV_QP_STATE && RMEM_QP_CUR_STATE == IBV_QP_CUR_STATE &&
				RMEM_QP_EN_SQD_ASYNC_NOTIFY == IBV_QP_EN_SQD_ASYNC_NOTIFY &&
				RMEM_QP_ACCESS_FLAGS == IBV_QP_ACCESS_FLAGS &&
				RMEM_QP_PKEY_INDEX == IBV_QP_PKEY_INDEX &&
				RMEM_QP_PORT == IBV_QP_PORT && RMEM_QP_AV == IBV_QP_AV &&
				RMEM_QP_PATH_MTU == IBV_QP_PATH_MTU &&
				RMEM_QP_TIMEOUT == IBV_QP_TIMEOUT &&
				RMEM_QP_RETRY_CNT == IBV_QP_RETRY_CNT &&
				RMEM_QP_RNR_RETRY == IBV_QP_RNR_RETRY &&
				RMEM_QP_RQ_PSN == IBV_QP_RQ_PSN &&
				RMEM_QP_MAX_QP_RD_ATOMIC == IBV_QP_MAX_QP_RD_ATOMIC &&
				RMEM_QP_MIN_RNR_TIMER == IBV_QP_MIN_RNR_TIMER &&
				RMEM_QP_SQ_PSN == IBV_QP_SQ_PSN &&
				RMEM_QP_MAX_DEST_RD_ATOMIC == IBV_QP_MAX_DEST_RD_ATOMIC &&
				RMEM_QP_DEST_QPN == IBV_QP_DEST_QPN,
		"masks of attributes pass through");
static_assert(sizeof(struct rmem_sge) == sizeof(struct ibv_sge) &&
				offsetof(struct rmem_sge, addr) == offsetof(struct ibv_sge, addr) &&
				offsetof(struct rmem_sge, length) ==
						offsetof(struct ibv_sge, length) &&
				offsetof(struct rmem_sge, lkey) == offsetof(struct ibv_sge, lkey),
		"SGEs pass through");
static_assert((int)RMEM_WC_SUCCESS == (int)IBV_WC_SUCCESS &&
				(int)RMEM_WC_WR_FLUSH_ERR == (int)IBV_WC_WR_FLUSH_ERR &&
				(int)RMEM_WC_REM_ACCESS_ERR == (int)IBV_WC_REM_ACCESS_ERR &&
				(int)RMEM_WC_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR,
		"statuses have verbs' values");

uint8_t
rverbs_map_status(enum ibv_wc_status status)
{
	if ((unsigned int)status <= RMEM_WC_GENERAL_ERR)
		return (uint8_t)status;
	return RMEM_WC_GENERAL_ERR;
}

uint8_t
rverbs_map_wc_opcode(enum ibv_wc_opcode opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
		return RMEM_WC_SEND;
	case IBV_WC_RDMA_WRITE:
		return RMEM_WC_RDMA_WRITE;
	case IBV_WC_RDMA_READ:
		return RMEM_WC_RDMA_READ;
	case IBV_WC_COMP_SWAP:
		return RMEM_WC_COMP_SWAP;
	case IBV_WC_FETCH_ADD:
		return RMEM_WC_FETCH_ADD;
	case IBV_WC_BIND_MW:
		return RMEM_WC_BIND_MW;
	case IBV_WC_LOCAL_INV:
		return RMEM_WC_LOCAL_INV;
	case IBV_WC_DRIVER1: /* MLX5DV_WC_UMR */
		return RMEM_WC_UMR;
	case IBV_WC_RECV:
		return RMEM_WC_RECV;
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return RMEM_WC_RECV_RDMA_WITH_IMM;
	default:
		return UINT8_MAX; /* rmem_wc_opcode_str() returns "unknown" */
	}
}

int
rverbs_map_wr_opcode(uint8_t opcode)
{
	switch (opcode) {
	case RMEM_WR_RDMA_WRITE:
		return IBV_WR_RDMA_WRITE;
	case RMEM_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case RMEM_WR_SEND:
		return IBV_WR_SEND;
	case RMEM_WR_SEND_WITH_IMM:
		return IBV_WR_SEND_WITH_IMM;
	case RMEM_WR_RDMA_READ:
		return IBV_WR_RDMA_READ;
	case RMEM_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default:
		return -1;
	}
}

uint32_t
rverbs_map_state(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_RESET:
		return RMEM_QPS_RESET;
	case IBV_QPS_INIT:
		return RMEM_QPS_INIT;
	case IBV_QPS_RTR:
		return RMEM_QPS_RTR;
	case IBV_QPS_RTS:
		return RMEM_QPS_RTS;
	case IBV_QPS_SQD:
		return RMEM_QPS_SQD;
	case IBV_QPS_SQE:
		return RMEM_QPS_SQE;
	default:
		return RMEM_QPS_ERR;
	}
}
