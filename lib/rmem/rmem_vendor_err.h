/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Values of rmem_wc::vendor_err from the software device.
 *
 * Other drivers return the value of their device, as in ibv_wc::vendor_err.
 */

#ifndef RMEM_VENDOR_ERR_H
#define RMEM_VENDOR_ERR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reasons why the software device refuses a request or a receive.
 *
 * The first reason found is reported. NONE is reported only with SUCCESS and WR_FLUSH_ERR.
 */
enum rmem_vendor_err {
	RMEM_VENDOR_ERR_NONE = 0,       /**< Not refused. */
	RMEM_VENDOR_ERR_KEY_INDEX = 1,  /**< No key has this index. */
	RMEM_VENDOR_ERR_KEY_TAG = 2,    /**< Another tag, or an lkey used as an rkey. */
	RMEM_VENDOR_ERR_KEY_STATE = 3,  /**< Freed, invalidated, or not enabled. */
	RMEM_VENDOR_ERR_KEY_PD = 4,     /**< Key, MR, window or AH of another PD than the QP. */
	RMEM_VENDOR_ERR_KEY_RIGHT = 5,  /**< The MR or window lacks a right. */
	RMEM_VENDOR_ERR_KEY_RANGE = 6,  /**< Outside the MR or window. */
	RMEM_VENDOR_ERR_KEY_QP = 7,     /**< A type 2 window that another QP bound. */
	RMEM_VENDOR_ERR_KEY_BELOW = 8,  /**< Refused by a key that an indirect key is over. */
	RMEM_VENDOR_ERR_PAGE_FAULT = 9, /**< A page is not mapped, or protected. */
	RMEM_VENDOR_ERR_MSG_SIZE = 10,  /**< Longer than rmem_dev_info::max_msg_size. */
	RMEM_VENDOR_ERR_RECV_SIZE = 11, /**< Longer than the receive. */
	RMEM_VENDOR_ERR_RECV = 12, /**< The receive was refused; its completion has the cause. */
	RMEM_VENDOR_ERR_QP_RIGHT = 13,  /**< The QP of the peer does not permit the operation. */
	RMEM_VENDOR_ERR_ALIGNMENT = 14, /**< An atomic not on 8 aligned bytes in one piece. */
	RMEM_VENDOR_ERR_NO_RECV = 15,   /**< The peer had no receive posted. */
	RMEM_VENDOR_ERR_NO_PEER = 16,   /**< The peer is not connected to this QP, or in ERR. */
	RMEM_VENDOR_ERR_NOT_INV = 17,   /**< The key can't be invalidated by requests. */
	RMEM_VENDOR_ERR_NOT_FREE = 18,  /**< The MR or window is bound, or being (un)bound. */
	RMEM_VENDOR_ERR_MR_TYPE = 19,   /**< An MR of another type or device. */
	RMEM_VENDOR_ERR_ACCESS = 20,    /**< Unknown or inconsistent access bits. */
	RMEM_VENDOR_ERR_NB_PAGES = 21,  /**< No page, or more than the MR or list holds. */
	RMEM_VENDOR_ERR_PAGE_SIZE = 22, /**< Page size that the device does not support. */
	RMEM_VENDOR_ERR_PAGE_ADDR = 23, /**< A page that is NULL, or not aligned to its size. */
	RMEM_VENDOR_ERR_OFFSET = 24,    /**< first_byte_offset outside the first page. */
	RMEM_VENDOR_ERR_LENGTH = 25,    /**< Length 0, over a limit, or more than the pages hold. */
	RMEM_VENDOR_ERR_WRAP = 26,      /**< An address range wraps past 2^64. */
	RMEM_VENDOR_ERR_NB_ENTRIES = 27, /**< No entry, more than the MR holds, or no repetition. */
	RMEM_VENDOR_ERR_ENTRY = 28,   /**< An entry of length 0, or with its reserved field set. */
	RMEM_VENDOR_ERR_DEPTH = 29,   /**< More levels than rmem_dev_info::max_mkey_depth. */
	RMEM_VENDOR_ERR_CYCLE = 30,   /**< The indirect key would contain itself. */
	RMEM_VENDOR_ERR_NAK = 31,     /**< The peer refused it with a NAK packet. */
	RMEM_VENDOR_ERR_SERVICE = 32, /**< The service of the QP lacks the operation. */
	RMEM_VENDOR_ERR_CHAOS = 33,   /**< Injected, by a rule of the argument chaos=. */
	RMEM_VENDOR_ERR_XRC_SRQ = 34, /**< The XRC domain of the peer has no such SRQ. */
	RMEM_VENDOR_ERR_AH_PORT = 35, /**< An AH of another port than the QP's. */
	RMEM_VENDOR_ERR_NB,           /**< Number of values; grows. */
};

/**
 * Get the human-readable name of a vendor error of the software device.
 *
 * Safe to call from any thread.
 *
 * @param vendor_err
 *   rmem_wc::vendor_err of a completion of a soft device.
 *
 * @return
 *   Its name without the prefix, such as "KEY_TAG", or "unknown"; static.
 */
const char *rmem_wc_vendor_err_str(uint32_t vendor_err);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_VENDOR_ERR_H */
