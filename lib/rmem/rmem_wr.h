/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Work requests, posted with rmem_post_send() and rmem_post_recv().
 *
 * A send request is 64 bytes plus its SGEs. The arrays are owned by the caller again when the post
 * returns, except for the entries of a UMR. These entries, and the memory of SGEs and page lists,
 * are owned by the device until the request has completed.
 */

#ifndef RMEM_WR_H
#define RMEM_WR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_ah;
struct rmem_mr;
struct rmem_mw;
struct rmem_fast_reg_page_list;
struct rmem_mkey_entry;

/** Opcodes of send requests; with the names of verbs and of the kernel. */
enum rmem_wr_opcode {
	RMEM_WR_RDMA_WRITE = 0,           /**< Write to the peer's memory. */
	RMEM_WR_RDMA_WRITE_WITH_IMM = 1,  /**< Write, and complete a receive of the peer. */
	RMEM_WR_SEND = 2,                 /**< Send into a receive of the peer. */
	RMEM_WR_SEND_WITH_IMM = 3,        /**< SEND with 32 bits of immediate data. */
	RMEM_WR_RDMA_READ = 4,            /**< Read the peer's memory. */
	RMEM_WR_ATOMIC_CMP_AND_SWP = 5,   /**< Compare and swap 8 bytes of the peer. */
	RMEM_WR_ATOMIC_FETCH_AND_ADD = 6, /**< Fetch and add to 8 bytes of the peer. */
	RMEM_WR_LOCAL_INV = 7,            /**< Invalidate a key of this device. */
	RMEM_WR_SEND_WITH_INV = 8,        /**< Send, and invalidate a key of the peer. */
	RMEM_WR_REG_MR = 9,               /**< Bind a fast-register MR to pages. */
	RMEM_WR_RDMA_READ_WITH_INV = 10,  /**< Read, then invalidate a key of this device. */
	RMEM_WR_BIND_MW = 11,             /**< Bind a type 2 memory window. */
	RMEM_WR_UMR = 12,                 /**< Bind an indirect key to entries. */
	RMEM_WR_ATOMIC_WRITE = 13,        /**< Write 8 bytes of the peer at once. */
	RMEM_WR_FLUSH = 14,               /**< Place preceding WRITEs; see RMEM_FLUSH_*. */
};

/** Number of opcodes. */
#define RMEM_WR_OPCODE_NB 15

/** Start only when all preceding READs, atomics, ATOMIC_WRITEs and FLUSHes have completed. */
#define RMEM_SEND_FENCE (1u << 0)
/** Generate a completion on success; a failure always generates one. */
#define RMEM_SEND_SIGNALED (1u << 1)
/** Mark the receive that the message consumes as solicited. */
#define RMEM_SEND_SOLICITED (1u << 2)
/** Copy the payload from the SGEs during the post; their lkeys are ignored. */
#define RMEM_SEND_INLINE (1u << 3)

/** Type of a FLUSH: preceding WRITEs become visible to all that access the memory. */
#define RMEM_FLUSH_GLOBAL (1u << 0)
/** Type of a FLUSH: preceding WRITEs are stored in the file of the MR, with msync(2). */
#define RMEM_FLUSH_PERSISTENT (1u << 1)
/** Level of a FLUSH: length bytes from remote_addr on. */
#define RMEM_FLUSH_RANGE 0
/** Level of a FLUSH: all of the MR; remote_addr and length are ignored. */
#define RMEM_FLUSH_MR 1

/** Scatter/gather element: a range of local memory, as struct ibv_sge. */
struct rmem_sge {
	uint64_t addr;   /**< Address of the first byte, relative to the iova of the MR. */
	uint32_t length; /**< Length in bytes; 0 is allowed. */
	uint32_t lkey;   /**< lkey of the MR. */
};

/** Request for the send queue. Fields that the opcode does not use are ignored. */
struct rmem_send_wr {
	uint64_t wr_id;                 /**< Returned in rmem_wc::wr_id. */
	const struct rmem_sge *sg_list; /**< num_sge elements; NULL is allowed with 0. */
	uint16_t num_sge;               /**< 0 to rmem_qp_conf::max_send_sge. */
	uint8_t opcode;                 /**< One of enum rmem_wr_opcode. */
	uint8_t flags;                  /**< Bitwise OR of RMEM_SEND_*. */
	union {
		uint32_t imm_data;        /**< *_WITH_IMM: immediate data, not converted. */
		uint32_t invalidate_rkey; /**< LOCAL_INV, *_WITH_INV: rkey to invalidate. */
	};
	union {
		/** RDMA_WRITE, RDMA_READ and their variants; ATOMIC_WRITE, which has one SGE of 8
		 * bytes and an address that is a multiple of 8.
		 */
		struct {
			uint64_t remote_addr; /**< First byte, relative to the MR's iova. */
			uint32_t rkey;        /**< rkey of the remote memory. */
		} rdma;
		/** FLUSH; without SGEs. */
		struct {
			uint64_t remote_addr; /**< First byte, relative to the MR's iova. */
			uint32_t rkey;        /**< rkey of the remote memory, even with length 0. */
			uint32_t length;      /**< Length in bytes; 0 is allowed. */
			uint8_t type;         /**< Bitwise OR of RMEM_FLUSH_GLOBAL, _PERSISTENT. */
			uint8_t level;        /**< RMEM_FLUSH_RANGE or RMEM_FLUSH_MR. */
		} flush;
		/** SEND and SEND_WITH_IMM of a UD QP; as wr.ud of struct ibv_send_wr. */
		struct {
			struct rmem_ah *ah;  /**< Path to the peer; AH of the QP's PD. */
			uint32_t remote_qpn; /**< Number of the peer's QP, 24 bits. */
			/** Q_Key of that QP; with the high bit set, this QP's is sent. */
			uint32_t remote_qkey;
		} ud;
		/** ATOMIC_*. One SGE of 8 bytes receives the previous value. */
		struct {
			uint64_t remote_addr; /**< A multiple of 8. */
			uint64_t compare_add; /**< Value to compare with, or to add. */
			uint64_t swap;        /**< Value to store if equal. */
			uint32_t rkey;        /**< rkey of the remote memory. */
		} atomic;
		/** REG_MR, with the fields of the 2008 proposal. */
		struct {
			struct rmem_mr *mr; /**< Fast-register MR of the QP's PD, FREE. */
			/** Pages, of equal size. */
			struct rmem_fast_reg_page_list *page_list;
			/**
			 * Address of the first byte, any; 0 with RMEM_ACCESS_ZERO_BASED or
			 * RMEM_DEV_CAPA_REG_ZERO_BASED.
			 */
			uint64_t iova;
			uint32_t length; /**< Length in bytes, at least 1. */
			/** Offset of the first byte in the first page, below the page size. */
			uint32_t first_byte_offset;
			uint32_t access;        /**< Bitwise OR of RMEM_ACCESS_*. */
			uint16_t page_list_len; /**< Pages used, 1 to the MR's limit. */
			uint8_t log2_page_size; /**< A bit of rmem_dev_info::page_size_cap. */
			uint8_t key_tag;        /**< Low byte of the new rkey. */
		} reg_mr;
		/** BIND_MW; as struct ibv_mw_bind_info. */
		struct {
			struct rmem_mw *mw; /**< Type 2 window of the QP's PD, not bound. */
			struct rmem_mr *mr; /**< MR of that PD with RMEM_ACCESS_MW_BIND. */
			uint64_t addr;      /**< First byte, relative to the MR's iova. */
			uint64_t length;    /**< Length in bytes, at least 1. */
			uint32_t access;    /**< Rights in RMEM_ACCESS_REMOTE; ZERO_BASED. */
			uint8_t key_tag;    /**< Low byte of the new rkey. */
		} bind_mw;
		/** UMR: the key covers all entries in turn, repeat_count times. */
		struct {
			struct rmem_mr *mr; /**< Indirect MR of the QP's PD, FREE. */
			/** Entries; must not change until the request has completed. */
			const struct rmem_mkey_entry *entries;
			uint64_t iova;         /**< First byte; 0 as for REG_MR. */
			uint32_t nb_entries;   /**< 1 to the MR's limit. */
			uint32_t repeat_count; /**< Rounds, at least 1; 1 for a list. */
			uint32_t access;       /**< Bitwise OR of RMEM_ACCESS_*. */
			uint8_t key_tag;       /**< Low byte of the new rkey. */
		} umr;
		/** Requests of XRC_SEND to the peer: after the fields above, not over them. */
		struct {
			uint8_t others[36];   /**< The fields above. */
			uint32_t remote_srqn; /**< Number of the peer's SRQ; 24 bits are used. */
		} xrc;
	};
};

/** Request for the receive queue. */
struct rmem_recv_wr {
	uint64_t wr_id;                 /**< Returned in rmem_wc::wr_id. */
	const struct rmem_sge *sg_list; /**< num_sge elements; NULL is allowed with 0. */
	uint32_t num_sge;               /**< 0 to rmem_qp_conf::max_recv_sge. */
	uint32_t reserved;              /**< Zero. */
};

#ifdef __cplusplus
}
#endif

#endif /* RMEM_WR_H */
