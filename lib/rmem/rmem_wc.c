/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Names of completion statuses, opcodes and vendor errors.
 */

#include <rte_common.h>

#include <rmem_vendor_err.h>
#include <rmem_wc.h>

static const char *const statuses[] = {
		[RMEM_WC_SUCCESS] = "SUCCESS",
		[RMEM_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[RMEM_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[RMEM_WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
		[RMEM_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[RMEM_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[RMEM_WC_MW_BIND_ERR] = "MW_BIND_ERR",
		[RMEM_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
		[RMEM_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[RMEM_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[RMEM_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[RMEM_WC_REM_OP_ERR] = "REM_OP_ERR",
		[RMEM_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[RMEM_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
		[RMEM_WC_LOC_RDD_VIOL_ERR] = "LOC_RDD_VIOL_ERR",
		[RMEM_WC_REM_INV_RD_REQ_ERR] = "REM_INV_RD_REQ_ERR",
		[RMEM_WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
		[RMEM_WC_INV_EECN_ERR] = "INV_EECN_ERR",
		[RMEM_WC_INV_EEC_STATE_ERR] = "INV_EEC_STATE_ERR",
		[RMEM_WC_FATAL_ERR] = "FATAL_ERR",
		[RMEM_WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
		[RMEM_WC_GENERAL_ERR] = "GENERAL_ERR",
};

static const char *const vendor_errs[RMEM_VENDOR_ERR_NB] = {
		[RMEM_VENDOR_ERR_NONE] = "NONE",
		[RMEM_VENDOR_ERR_KEY_INDEX] = "KEY_INDEX",
		[RMEM_VENDOR_ERR_KEY_TAG] = "KEY_TAG",
		[RMEM_VENDOR_ERR_KEY_STATE] = "KEY_STATE",
		[RMEM_VENDOR_ERR_KEY_PD] = "KEY_PD",
		[RMEM_VENDOR_ERR_KEY_RIGHT] = "KEY_RIGHT",
		[RMEM_VENDOR_ERR_KEY_RANGE] = "KEY_RANGE",
		[RMEM_VENDOR_ERR_KEY_QP] = "KEY_QP",
		[RMEM_VENDOR_ERR_KEY_BELOW] = "KEY_BELOW",
		[RMEM_VENDOR_ERR_PAGE_FAULT] = "PAGE_FAULT",
		[RMEM_VENDOR_ERR_MSG_SIZE] = "MSG_SIZE",
		[RMEM_VENDOR_ERR_RECV_SIZE] = "RECV_SIZE",
		[RMEM_VENDOR_ERR_RECV] = "RECV",
		[RMEM_VENDOR_ERR_QP_RIGHT] = "QP_RIGHT",
		[RMEM_VENDOR_ERR_ALIGNMENT] = "ALIGNMENT",
		[RMEM_VENDOR_ERR_NO_RECV] = "NO_RECV",
		[RMEM_VENDOR_ERR_NO_PEER] = "NO_PEER",
		[RMEM_VENDOR_ERR_NOT_INV] = "NOT_INV",
		[RMEM_VENDOR_ERR_NOT_FREE] = "NOT_FREE",
		[RMEM_VENDOR_ERR_MR_TYPE] = "MR_TYPE",
		[RMEM_VENDOR_ERR_ACCESS] = "ACCESS",
		[RMEM_VENDOR_ERR_NB_PAGES] = "NB_PAGES",
		[RMEM_VENDOR_ERR_PAGE_SIZE] = "PAGE_SIZE",
		[RMEM_VENDOR_ERR_PAGE_ADDR] = "PAGE_ADDR",
		[RMEM_VENDOR_ERR_OFFSET] = "OFFSET",
		[RMEM_VENDOR_ERR_LENGTH] = "LENGTH",
		[RMEM_VENDOR_ERR_WRAP] = "WRAP",
		[RMEM_VENDOR_ERR_NB_ENTRIES] = "NB_ENTRIES",
		[RMEM_VENDOR_ERR_ENTRY] = "ENTRY",
		[RMEM_VENDOR_ERR_DEPTH] = "DEPTH",
		[RMEM_VENDOR_ERR_CYCLE] = "CYCLE",
		[RMEM_VENDOR_ERR_NAK] = "NAK",
		[RMEM_VENDOR_ERR_SERVICE] = "SERVICE",
		[RMEM_VENDOR_ERR_CHAOS] = "CHAOS",
		[RMEM_VENDOR_ERR_XRC_SRQ] = "XRC_SRQ",
		[RMEM_VENDOR_ERR_AH_PORT] = "AH_PORT",
};

const char *
rmem_wc_status_str(int status)
{
	if (status < 0 || status >= (int)RTE_DIM(statuses))
		return "unknown";
	return statuses[status];
}

const char *
rmem_wc_opcode_str(int opcode)
{
	switch (opcode) {
	case RMEM_WC_SEND:
		return "SEND";
	case RMEM_WC_RDMA_WRITE:
		return "RDMA_WRITE";
	case RMEM_WC_RDMA_READ:
		return "RDMA_READ";
	case RMEM_WC_COMP_SWAP:
		return "COMP_SWAP";
	case RMEM_WC_FETCH_ADD:
		return "FETCH_ADD";
	case RMEM_WC_BIND_MW:
		return "BIND_MW";
	case RMEM_WC_LOCAL_INV:
		return "LOCAL_INV";
	case RMEM_WC_REG_MR:
		return "REG_MR";
	case RMEM_WC_ATOMIC_WRITE:
		return "ATOMIC_WRITE";
	case RMEM_WC_FLUSH:
		return "FLUSH";
	case RMEM_WC_UMR:
		return "UMR";
	case RMEM_WC_RECV:
		return "RECV";
	case RMEM_WC_RECV_RDMA_WITH_IMM:
		return "RECV_RDMA_WITH_IMM";
	default:
		return "unknown";
	}
}

const char *
rmem_wc_vendor_err_str(uint32_t vendor_err)
{
	return vendor_err < RMEM_VENDOR_ERR_NB ? vendor_errs[vendor_err] : "unknown";
}
