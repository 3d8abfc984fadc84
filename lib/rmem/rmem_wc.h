/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Work completions: results of requests.
 */

#ifndef RMEM_WC_H
#define RMEM_WC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Status of a completion, with the names and values of enum ibv_wc_status. */
enum rmem_wc_status {
	RMEM_WC_SUCCESS = 0,             /**< Success. */
	RMEM_WC_LOC_LEN_ERR = 1,         /**< Message longer than the receive, or the maximum. */
	RMEM_WC_LOC_QP_OP_ERR = 2,       /**< The QP itself is inconsistent. */
	RMEM_WC_LOC_EEC_OP_ERR = 3,      /**< Not used with RC. */
	RMEM_WC_LOC_PROT_ERR = 4,        /**< An lkey is not valid for the range of its SGE. */
	RMEM_WC_WR_FLUSH_ERR = 5,        /**< Not executed: the QP was in the error state. */
	RMEM_WC_MW_BIND_ERR = 6,         /**< REG_MR, UMR, bind or invalidation refused. */
	RMEM_WC_BAD_RESP_ERR = 7,        /**< Unexpected response of the peer. */
	RMEM_WC_LOC_ACCESS_ERR = 8,      /**< WRITE_WITH_IMM could not be placed. */
	RMEM_WC_REM_INV_REQ_ERR = 9,     /**< The peer found the request invalid. */
	RMEM_WC_REM_ACCESS_ERR = 10,     /**< The rkey is not valid for the range or operation. */
	RMEM_WC_REM_OP_ERR = 11,         /**< The peer could not complete the request. */
	RMEM_WC_RETRY_EXC_ERR = 12,      /**< The peer did not answer. */
	RMEM_WC_RNR_RETRY_EXC_ERR = 13,  /**< The peer had no receive posted. */
	RMEM_WC_LOC_RDD_VIOL_ERR = 14,   /**< Not used with RC. */
	RMEM_WC_REM_INV_RD_REQ_ERR = 15, /**< Not used with RC. */
	RMEM_WC_REM_ABORT_ERR = 16,      /**< The peer aborted the request. */
	RMEM_WC_INV_EECN_ERR = 17,       /**< Not used with RC. */
	RMEM_WC_INV_EEC_STATE_ERR = 18,  /**< Not used with RC. */
	RMEM_WC_FATAL_ERR = 19,          /**< The device failed. */
	RMEM_WC_RESP_TIMEOUT_ERR = 20,   /**< The peer's response was late. */
	RMEM_WC_GENERAL_ERR = 21,        /**< Another error; see vendor_err. */
};

/** Opcode of a completion. Receives have bit 7 set, as in verbs: opcode & RMEM_WC_RECV. */
enum rmem_wc_opcode {
	RMEM_WC_SEND = 0,                 /**< SEND of any kind. */
	RMEM_WC_RDMA_WRITE = 1,           /**< RDMA_WRITE of any kind. */
	RMEM_WC_RDMA_READ = 2,            /**< RDMA_READ of any kind. */
	RMEM_WC_COMP_SWAP = 3,            /**< ATOMIC_CMP_AND_SWP. */
	RMEM_WC_FETCH_ADD = 4,            /**< ATOMIC_FETCH_AND_ADD. */
	RMEM_WC_BIND_MW = 5,              /**< BIND_MW, or rmem_mw_bind(). */
	RMEM_WC_LOCAL_INV = 6,            /**< LOCAL_INV. */
	RMEM_WC_REG_MR = 8,               /**< REG_MR. */
	RMEM_WC_ATOMIC_WRITE = 9,         /**< ATOMIC_WRITE. */
	RMEM_WC_UMR = 10,                 /**< UMR. */
	RMEM_WC_FLUSH = 11,               /**< FLUSH. */
	RMEM_WC_RECV = 128,               /**< Receive of a SEND. */
	RMEM_WC_RECV_RDMA_WITH_IMM = 129, /**< Receive of an RDMA_WRITE_WITH_IMM. */
};

/** UD QPs: the first RMEM_GRH_SIZE bytes of the receive are the header of the packet. */
#define RMEM_WC_GRH (1u << 0)
/** imm_data is valid. */
#define RMEM_WC_WITH_IMM (1u << 1)
/** invalidated_rkey is valid: the peer invalidated this key, so no LOCAL_INV is needed. */
#define RMEM_WC_WITH_INV (1u << 3)
/** The sender set RMEM_SEND_SOLICITED. */
#define RMEM_WC_SOLICITED (1u << 4)

/**
 * Work completion.
 *
 * If status is not SUCCESS, only wr_id, status, qp_num and vendor_err are valid (ibv_poll_cq(3)).
 */
struct rmem_wc {
	uint64_t wr_id;    /**< wr_id of the request. */
	uint8_t status;    /**< One of enum rmem_wc_status. */
	uint8_t opcode;    /**< One of enum rmem_wc_opcode. */
	uint16_t flags;    /**< Bitwise OR of RMEM_WC_WITH_*. */
	uint32_t qp_num;   /**< QP of the request. */
	uint32_t byte_len; /**< Bytes received, with the GRH of a UD QP, or read. */
	union {
		uint32_t imm_data;         /**< Valid with RMEM_WC_WITH_IMM. */
		uint32_t invalidated_rkey; /**< Valid with RMEM_WC_WITH_INV. */
	};
	union {
		/** Cause of an error; on soft, one of enum rmem_vendor_err. */
		uint32_t vendor_err;
		/** QP of the sender; valid with SUCCESS in receives of a UD QP. */
		uint32_t src_qp;
	};
	uint32_t reserved; /**< Private to the driver. */
};

/**
 * Get the human-readable name of a completion status.
 *
 * Safe to call from any thread.
 *
 * @param status
 *   One of enum rmem_wc_status.
 *
 * @return
 *   Its name without the prefix, such as "REM_ACCESS_ERR", or "unknown"; static.
 */
const char *rmem_wc_status_str(int status);

/**
 * Get the human-readable name of a completion opcode.
 *
 * Safe to call from any thread.
 *
 * @param opcode
 *   One of enum rmem_wc_opcode.
 *
 * @return
 *   Its name without the prefix, such as "RDMA_WRITE", or "unknown"; static.
 */
const char *rmem_wc_opcode_str(int opcode);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_WC_H */
