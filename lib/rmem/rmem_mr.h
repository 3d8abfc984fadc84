/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory regions: memory that the device may reach, and the keys that say so.
 */

#ifndef RMEM_MR_H
#define RMEM_MR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_counter;
struct rmem_eq;
struct rmem_pd;
struct rmem_sge;

/*
 * Rights, with the values of enum ibv_access_flags. Every key gives the right to be read
 * locally.
 */
/** The device may write for local requests: receives, READ and atomic results. */
#define RMEM_ACCESS_LOCAL_WRITE (UINT32_C(1) << 0)
/** Peers may WRITE. Needs LOCAL_WRITE. */
#define RMEM_ACCESS_REMOTE_WRITE (UINT32_C(1) << 1)
/** Peers may READ. */
#define RMEM_ACCESS_REMOTE_READ (UINT32_C(1) << 2)
/** Peers may use atomics. Needs LOCAL_WRITE. */
#define RMEM_ACCESS_REMOTE_ATOMIC (UINT32_C(1) << 3)
/** Memory windows may be bound to the MR. */
#define RMEM_ACCESS_MW_BIND (UINT32_C(1) << 4)
/** Requests name the bytes by their offset: iova is 0. */
#define RMEM_ACCESS_ZERO_BASED (UINT32_C(1) << 5)
/**
 * On-demand paging (ODP): pages are faulted in when the device first accesses them, are not
 * pinned, and may be unmapped. With addr NULL and length SIZE_MAX, an implicit MR: all of the
 * address space, mapped or not.
 */
#define RMEM_ACCESS_ON_DEMAND (UINT32_C(1) << 6)
/**
 * All of the memory is hugepages: it is not registered otherwise. Without this bit hugepages
 * are found out of EAL's own memory only.
 */
#define RMEM_ACCESS_HUGETLB (UINT32_C(1) << 7)
/** Rights that a peer can have. */
#define RMEM_ACCESS_REMOTE                                                                         \
	(RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_ATOMIC)
/** A hint that the device may reorder its accesses; ignored where there is no use for it. */
#define RMEM_ACCESS_RELAXED_ORDERING (UINT32_C(1) << 20)
/** Bits that a device without a use for them ignores (verbs' optional range). */
#define RMEM_ACCESS_OPTIONAL_RANGE UINT32_C(0x3ff00000)
/** The library allocates the memory of the MR (as MLNX_OFED's IBV_ACCESS_ALLOCATE_MR). */
#define RMEM_ACCESS_ALLOCATE_MR (UINT32_C(1) << 30)

/** rmem_mr_attr::requested_key is the rkey to give the MR. */
#define RMEM_MR_REQUESTED_KEY (UINT32_C(1) << 0)
/** The keys of the MR open nothing before rmem_mr_enable(). */
#define RMEM_MR_DISABLED (UINT32_C(1) << 1)
/** The memory is that of rmem_mr_attr::fd, which the library maps. */
#define RMEM_MR_FD (UINT32_C(1) << 2)

/** What kind of region an MR is. */
enum rmem_mr_type {
	RMEM_MR_TYPE_USER = 1,     /**< Registered by rmem_mr_reg(). */
	RMEM_MR_TYPE_FAST_REG = 2, /**< Made by rmem_fast_reg_mr_alloc(). */
	RMEM_MR_TYPE_INDIRECT = 3, /**< Made by rmem_mkey_alloc(). */
};

/** Whether an MR can be used. */
enum rmem_mr_state {
	RMEM_MR_STATE_FREE = 0,     /**< Its keys open nothing; REG_MR or UMR may bind it. */
	RMEM_MR_STATE_VALID = 1,    /**< Its keys open its range. */
	RMEM_MR_STATE_DISABLED = 2, /**< Its keys open nothing; rmem_mr_enable() makes it VALID. */
	RMEM_MR_STATE_PENDING = 3,  /**< Its registration is under way; it has no keys yet. */
	RMEM_MR_STATE_ERROR = 4,    /**< It has failed; only good for rmem_mr_dereg(). */
};

/**
 * A memory region (MR). Drivers extend it behind this head.
 *
 * For a fast-register or indirect MR, addr is NULL and lkey and rkey are those of the REG_MR
 * or UMR posted last; iova, length and access are what rmem_mr_query() tells.
 */
struct rmem_mr {
	struct rmem_obj obj;          /**< Private head. */
	uint32_t access;              /**< Bitwise OR of RMEM_ACCESS_*. */
	uint32_t lkey;                /**< Key for the SGEs of local requests. */
	uint32_t rkey;                /**< Key for the requests of peers. */
	struct rmem_pd *pd;           /**< PD it belongs to. */
	void *addr;                   /**< First byte; NULL for an MR over several ranges. */
	size_t length;                /**< Length in bytes. */
	uint64_t iova;                /**< Address of the first byte as requests name it. */
	uint16_t type;                /**< One of enum rmem_mr_type. */
	uint16_t state;               /**< Private: enum rmem_mr_state of a user MR; atomic. */
	uint32_t max_page_list_len;   /**< Pages of a fast-register MR, else 0. */
	struct rmem_counter *counter; /**< Private: counter bound to it, or NULL. */
	uint32_t flags;               /**< RMEM_MR_FD; the other bits are private to the class. */
	uint32_t max_entries;         /**< Entries of an indirect MR, else 0. */
	struct rmem_mr *owner;        /**< Private: MR whose allocated memory this one shares. */
	const struct iovec *iov;      /**< Its ranges when there are several, else NULL. */
	uint32_t iov_count;           /**< Ranges in iov, else 0. */
	uint32_t pad;                 /**< Zero. */
};

/** What to register. The caller zeroes it first. */
struct rmem_mr_attr {
	void *addr;    /**< First byte, anywhere; NULL with ALLOCATE_MR, iov or RMEM_MR_FD. */
	size_t length; /**< Length in bytes, 1 to rmem_dev_info::max_mr_size. */
	uint64_t iova; /**< What requests call the first byte; 0 for addr itself, or ZERO_BASED. */
	uint32_t access;        /**< Bitwise OR of RMEM_ACCESS_*. */
	int socket_id;          /**< NUMA socket with ALLOCATE_MR, SOCKET_ID_ANY for any. */
	uint32_t flags;         /**< Bitwise OR of RMEM_MR_*. */
	uint32_t requested_key; /**< With RMEM_MR_REQUESTED_KEY: rkey to give the MR, else 0. */
	struct rmem_eq *eq; /**< EQ to tell of the end, for control threads to register; or NULL. */
	void *context;      /**< With eq: rmem_event::context. */
	const struct iovec *iov; /**< Ranges in place of addr, which is NULL then; or NULL. */
	uint32_t iov_count;      /**< Ranges in iov, 1 to rmem_dev_info::max_iov; else 0. */
	int fd;                  /**< With RMEM_MR_FD: what to map; else 0. */
	uint64_t fd_offset;      /**< With RMEM_MR_FD: place of the first byte in it; else 0. */
	uint64_t reserved[2];    /**< Zero. */
};

/** What rmem_mr_query() tells. In the states PENDING and ERROR: type, state and access. */
struct rmem_mr_info {
	uint16_t type;              /**< One of enum rmem_mr_type. */
	uint16_t state;             /**< One of enum rmem_mr_state. */
	uint32_t access;            /**< Rights in force. */
	uint32_t lkey;              /**< Key for local requests. */
	uint32_t rkey;              /**< Key for peers. */
	void *addr;                 /**< First byte, or NULL for one over several ranges or that
				     *  requests bind.
				     */
	uint64_t iova;              /**< Address of the first byte as requests name it. */
	uint64_t length;            /**< Length in bytes. */
	uint64_t page_size;         /**< Page size that fits best; 0 for an indirect MR. */
	uint64_t nb_pages;          /**< Pages of that size; 0 for an indirect MR. */
	uint32_t nb_extents;        /**< Stretches of contiguous IO addresses it is made of;
				     *  for an indirect MR, of addresses below it.
				     */
	uint32_t max_page_list_len; /**< Pages of a fast-register MR, else 0. */
	uint32_t is_shared;         /**< 1: made by rmem_mr_reg_shared() and shares memory still. */
	uint32_t max_entries;       /**< Entries of an indirect MR, else 0. */
	uint32_t nb_levels;         /**< Levels of tables of 512 entries that nb_pages take; 0 for
				     *  a single page, which its key can name.
				     */
	uint32_t is_fd;             /**< 1: its memory is a mapping that RMEM_MR_FD made. */
	uint32_t is_pinned;         /**< 1: all its pages stay in memory, where they are. */
};

/**
 * Register a memory region (MR) with a protection domain.
 *
 * The bytes [addr, addr + length) become reachable by the device, locally through
 * the lkey and, if @p access asks for it, by peers through the rkey. The memory stays
 * owned by the caller and must stay mapped until rmem_mr_dereg().
 *
 * With RMEM_ACCESS_ALLOCATE_MR and a NULL @p addr the library allocates the memory:
 * contiguous, from hugepages unless EAL runs without them, on any NUMA socket, aligned to
 * and rounded up to whole pages, registered once, and freed by rmem_mr_dereg(). The MR's
 * length is then the rounded one, or max_mr_size where that is less. rmem_mr_reg_attr()
 * chooses the socket.
 *
 * With RMEM_ACCESS_ON_DEMAND the memory need not be mapped, now or later. The device has a page
 * populated when it first accesses it; an access to what is not mapped then, or may not be read
 * or written, ends with an access error. What replaces a page that was unmapped, discarded or
 * moved is seen by the next access. rmem_dev_info::odp tells what a device has of this.
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param addr
 *   First byte; NULL with RMEM_ACCESS_ALLOCATE_MR, or for an implicit on-demand MR. No alignment
 *   required.
 * @param length
 *   Length in bytes, 1 to rmem_dev_info::max_mr_size; SIZE_MAX for an implicit on-demand MR.
 * @param iova
 *   Address requests use for the first byte; (uintptr_t)addr or 0 for the address itself.
 *   0 with RMEM_ACCESS_ZERO_BASED, where requests count from the first byte on.
 * @param access
 *   Bitwise OR of RMEM_ACCESS_*. REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE
 *   (IBTA C10-72).
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL mr, NULL addr without ALLOCATE_MR or another addr
 *     with it, length 0 or over the limit, addr + length or iova + length overflows, an
 *     iova with ZERO_BASED, an unknown access bit, or a remote right to modify without
 *     LOCAL_WRITE; with HUGETLB, memory that is not all hugepages, or not known to be;
 *     ON_DEMAND with ALLOCATE_MR, HUGETLB or several ranges, or an implicit MR with ZERO_BASED
 *     or an iova.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit, for implicit
 *     on-demand MRs, for REMOTE_ATOMIC on demand, or for an iova on demand.
 *   - -EFAULT: part of the range is not mapped, or not writable while access needs it.
 *   - -EBUSY: ON_DEMAND needs a signal handler that another one keeps away; the driver's page
 *     tells.
 *   - -ENOSPC: the device has rmem_dev_info::max_mr regions already.
 *   - -ENOMEM: no memory for the MR, or too few hugepages for ALLOCATE_MR; the log tells
 *     how many are missing. Or the memory can't be pinned and the device insists on it.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_mr_reg(struct rmem_pd *pd, void *addr, size_t length, uint64_t iova, uint32_t access,
		struct rmem_mr **mr);

/**
 * Register a memory region by a structure of attributes; see rmem_mr_reg().
 *
 * With RMEM_MR_REQUESTED_KEY the MR gets the rkey that the caller asks for, so that peers
 * can know it before the MR is there (fi_mr(3): requested_key). Which keys a device can give
 * is its own; its page in doc/ tells. Nothing keeps peers who know an earlier MR of the same
 * key from reaching the new one.
 *
 * With an EQ the call checks all that it can and returns, and control threads do the rest: they
 * populate the memory in pieces, beside each other, then register it. It ends with one event,
 * which has the context, and the status that the call would have returned: -EFAULT, -EEXIST,
 * -ENOSPC, -ENOMEM, or -EINVAL for a key that can't be given. A call that failed yields no event.
 * Registrations end in any order. @p mr is written before the event can be read. Until then the
 * MR is PENDING: its other fields say nothing, rmem_mr_query() tells its state, and other calls
 * refuse it. The memory must stay as it is meanwhile, the attributes need not. Fresh memory
 * comes from where the kernel's policy for the range says (mbind()), or else from the NUMA
 * socket of a control thread. After a failure the MR is in ERROR and is to be deregistered.
 *
 * With ranges in rmem_mr_attr::iov the MR covers them one behind the other, in their order: the
 * first byte of a range has the address behind the last of the one before. They may overlap, and
 * have any alignment. addr is NULL then, length 0 or their sum, and iova 0 stands for the address
 * of the first range. The ranges are copied. rmem_mr_rereg() with CHANGE_TRANSLATION makes it an
 * MR of one range. An atomic does not reach over the end of a range.
 *
 * With RMEM_MR_FD the memory is length bytes of a file descriptor: a memfd, a file, one on
 * hugetlbfs, a dmabuf, or any other that mmap(2) takes. The library maps it for the device, shared,
 * at rmem_mr::addr, and unmaps it with the MR; the descriptor may be closed when the call returned.
 * It is for memory that others manage: rmem_mr_rereg() refuses CHANGE_TRANSLATION, windows can't
 * be bound to it, and rmem_mr_dereg() and others share it as that of ALLOCATE_MR. A file must not
 * be made shorter meanwhile, as who uses the mapping would be killed; a dmabuf's
 * DMA_BUF_IOCTL_SYNC is left to the caller.
 *
 * With RMEM_MR_DISABLED the MR has its keys, but they open nothing before rmem_mr_enable().
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param attr
 *   What to register; not needed after the call.
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise what rmem_mr_reg() returns, or:
 *   - -EINVAL: NULL attr, an unknown flag, a reserved field that is not zero, no such NUMA
 *     socket, a requested_key without the flag, or one that the device can't give; the log
 *     tells which it can.
 *     An eq that is no EQ, or one of another device. iov without iov_count or the reverse, more
 *     ranges than rmem_dev_info::max_iov, together with addr or ALLOCATE_MR, with a length that is
 *     not their sum, or one that is NULL, empty or wraps around. With RMEM_MR_FD an fd that is
 *     not open or can't be mapped, an fd_offset that is not a multiple of the page size, bytes
 *     beyond the end of the file, addr, iov, ALLOCATE_MR or ON_DEMAND; without it an fd or
 *     fd_offset.
 *   - -EPERM: the fd does not allow what access needs.
 *   - -EEXIST: the requested key is in use, or kept for requests to choose.
 *   - -ENOSPC: the EQ has as many registrations under way or unread as it has room for.
 *   - -EOPNOTSUPP: the device lacks the capability for a flag, or for iov.
 */
int rmem_mr_reg_attr(struct rmem_pd *pd, const struct rmem_mr_attr *attr, struct rmem_mr **mr);

/**
 * Let the keys of an MR that was registered with RMEM_MR_DISABLED open its range.
 *
 * Requests posted after it returned are let through. For an MR that is enabled already it
 * does nothing, so that several may ask for it. There is no way back but rmem_mr_dereg().
 *
 * Control path. Safe to call from any thread.
 *
 * @param mr
 *   MR registered by rmem_mr_reg() or rmem_mr_reg_attr().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, one that requests bind, or one that is being released or
 *     re-registered.
 *   - -EBUSY: its registration is under way, or failed.
 */
int rmem_mr_enable(struct rmem_mr *mr);

/**
 * Deregister a memory region, or free a fast-register or indirect MR.
 *
 * When it returns, no lcore reaches the memory through the MR's keys any more: requests
 * that were being executed have ended, later ones fail. Memory that ALLOCATE_MR allocated
 * is freed.
 *
 * Control path: waits for lcores that are executing a request. Safe to call from any
 * thread, once for each MR.
 *
 * @param mr
 *   MR to release; not valid any more on success. NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an MR.
 *   - -EBUSY: something still refers to it (fi_mr(3): not closed while bound), the event
 *     of its registration was not read, or a request that binds or invalidates it has not
 *     completed.
 *   - -EIO: the device failed.
 */
int rmem_mr_dereg(struct rmem_mr *mr);

/**
 * Register the memory of an MR once more, for another PD or with other rights.
 *
 * The new MR has keys of its own and covers the same bytes. Either may be deregistered first,
 * unless the library allocated or mapped the memory: the MR that it did so for can then be neither
 * deregistered nor re-registered while others share the memory. An MR made by this call may be
 * shared on, and re-registered; a change of its memory ends the sharing.
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param from
 *   MR of rmem_mr_reg() or of this call, of the same device.
 * @param pd
 *   Protection domain the new MR belongs to; that of @p from or another.
 * @param iova
 *   Address requests use for the first byte; (uintptr_t)addr or 0 for the address itself.
 *   0 with RMEM_ACCESS_ZERO_BASED.
 * @param access
 *   Bitwise OR of RMEM_ACCESS_*, not RMEM_ACCESS_ALLOCATE_MR.
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR or PD, a fast-register MR, one that is being released or
 *     re-registered, a PD of another device, NULL mr, ALLOCATE_MR, or what rmem_mr_reg()
 *     refuses of iova and access.
 *   - -EBUSY: the registration of @p from is under way, or it is in RMEM_MR_STATE_ERROR; or
 *     what rmem_mr_reg() says of ON_DEMAND.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_SHARED_MR, or an access bit.
 *   - -EFAULT: part of the memory is not mapped any more, or not writable while access needs
 *     it.
 *   - -ENOSPC: the device has rmem_dev_info::max_mr regions already.
 *   - -ENOMEM: no memory for the MR, or it can't be pinned and the device insists on it.
 */
int rmem_mr_reg_shared(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access,
		struct rmem_mr **mr);

/** rmem_mr_rereg(): other memory. The values are those of verbs' IBV_REREG_MR_*. */
#define RMEM_REREG_CHANGE_TRANSLATION (UINT32_C(1) << 0)
/** rmem_mr_rereg(): another PD. */
#define RMEM_REREG_CHANGE_PD (UINT32_C(1) << 1)
/** rmem_mr_rereg(): other rights. */
#define RMEM_REREG_CHANGE_ACCESS (UINT32_C(1) << 2)

/**
 * What is valid after rmem_mr_rereg(). The negative values are those of verbs'
 * enum ibv_rereg_mr_err_code; the call then returned an errno.
 */
enum rmem_rereg_result {
	/** Changed; lkey and rkey are the same. */
	RMEM_REREG_OK = 0,
	/** Changed by deregistering and registering: lkey and rkey are new. */
	RMEM_REREG_NEW_KEYS = 1,
	/** Refused: the MR is as it was. */
	RMEM_REREG_ERR_INPUT = -1,
	/** The memory could not be had as asked: the MR is as it was. */
	RMEM_REREG_ERR_DONT_FORK_NEW = -2,
	/** The MR is changed, but the old memory could not be given back to the system. */
	RMEM_REREG_ERR_DO_FORK_OLD = -3,
	/** Neither the old nor the new is valid: RMEM_MR_STATE_ERROR. */
	RMEM_REREG_ERR_CMD = -4,
	/** The same, and the new memory could not be given back to the system. */
	RMEM_REREG_ERR_CMD_AND_DO_FORK_NEW = -5,
};

/**
 * Change memory, PD or rights of an MR, or several of them at once (ibv_rereg_mr).
 *
 * On a device with RMEM_DEV_CAPA_REREG, lkey and rkey stay the same, and so do all resources
 * of the MR but what the change replaces; on others the MR is deregistered and registered
 * again, with new keys. In both cases @p mr stays the handle. What @p flags does not name
 * stays as it is, and its argument is ignored.
 *
 * When it returns, no lcore uses the old memory, PD or rights any more: requests that were
 * being executed have ended. With CHANGE_ACCESS alone the keys open the MR throughout, by the
 * old rights or by the new; during any other change requests fail as those of a key that is
 * not valid do.
 *
 * CHANGE_ACCESS may set or clear ON_DEMAND, which is a change of more than rights: requests fail
 * meanwhile. Clearing it takes the memory as rmem_mr_reg() does.
 *
 * A disabled MR stays disabled. A requested key is given up where the keys change.
 *
 * With RMEM_ACCESS_ALLOCATE_MR in @p access and a NULL @p addr, CHANGE_TRANSLATION allocates
 * new memory as rmem_mr_reg() does, on any socket. Memory that the library had allocated for
 * the MR is freed by CHANGE_TRANSLATION. An MR that shared its memory shares it no more. The
 * bytes of the old memory are not copied.
 *
 * Control path: may allocate and touch pages, and waits for lcores that are executing a
 * request. Safe to call from any thread; no other call may use @p mr meanwhile.
 *
 * @param mr
 *   MR of rmem_mr_reg().
 * @param flags
 *   Bitwise OR of RMEM_REREG_CHANGE_*, at least one.
 * @param pd
 *   With CHANGE_PD, the new PD, of the same device; else ignored.
 * @param addr
 *   With CHANGE_TRANSLATION, the first byte, or NULL with RMEM_ACCESS_ALLOCATE_MR; else
 *   ignored. It is the MR's new iova too, unless the MR is or becomes ZERO_BASED.
 * @param length
 *   With CHANGE_TRANSLATION, the length in bytes; else ignored.
 * @param access
 *   With CHANGE_ACCESS, the new rights: bitwise OR of RMEM_ACCESS_*; else ignored, but for
 *   RMEM_ACCESS_ALLOCATE_MR with CHANGE_TRANSLATION. What is ZERO_BASED stays so.
 * @param[out] result
 *   What is valid now; always written. NULL is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, a fast-register MR, no flag or an unknown one, not a PD or
 *     one of another device, or what rmem_mr_reg() refuses of addr, length and access;
 *     ALLOCATE_MR or ZERO_BASED without CHANGE_TRANSLATION, unless the MR has it already.
 *   - -EBUSY: a window or a counter is bound to it, others share memory that the library
 *     allocated for it, its registration is under way, or it is in RMEM_MR_STATE_ERROR; or
 *     what rmem_mr_reg() says of ON_DEMAND.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit, or
 *     CHANGE_TRANSLATION of an MR of RMEM_MR_FD.
 *   - -EFAULT: part of the memory is not mapped, or not writable while access needs it; or,
 *     with RMEM_REREG_ERR_DO_FORK_OLD, part of the old memory is not mapped any more.
 *   - -ENOMEM: too little memory for ALLOCATE_MR; the log tells how much is missing. Or the new
 *     memory can't be pinned and the device insists on it.
 *   - -ENOSPC: the device had no room left for the second half of a change with new keys.
 *   - -EIO: the device failed.
 */
int rmem_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result);

/**
 * Ask what an MR covers now.
 *
 * page_size is the best for its range of iovas, of those that the device has
 * (rmem_dev_info::page_size_cap): iova and IO address agree modulo that size everywhere, and it
 * is no larger than the memory's own pages unless their physical addresses follow each other. Of
 * those that need the fewest pages it is the smallest. When none fits, because iova and address
 * lie at different places of a page, it is the size of the memory's own pages.
 *
 * Control path. Safe to call from any thread, but not during rmem_mr_rereg() of the MR; for an MR
 * with a REG_MR, a UMR or an invalidation under way the answer may be of either state.
 *
 * @param mr
 *   MR to ask.
 * @param[out] info
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, or NULL info.
 */
int rmem_mr_query(struct rmem_mr *mr, struct rmem_mr_info *info);

/** What the device is to do about pages of on-demand MRs; verbs' values. */
enum rmem_mr_advice {
	RMEM_ADVISE_PREFETCH = 0,          /**< Have them populated for reading. */
	RMEM_ADVISE_PREFETCH_WRITE = 1,    /**< For writing; the MR needs LOCAL_WRITE. */
	RMEM_ADVISE_PREFETCH_NO_FAULT = 2, /**< Know those that are there, populate none. */
};

/** rmem_mr_advise(): return when it is done. Without it, control threads may do it later. */
#define RMEM_ADVISE_FLUSH (UINT32_C(1) << 0)

/**
 * Tell a device which pages of on-demand MRs requests will need (ibv_advise_mr).
 *
 * What is wrong with a key or a range is told at once. Without RMEM_ADVISE_FLUSH that pages can't
 * be had is not told, and an MR that goes or changes in the meantime ends what was left to do.
 * It is advice: an access to what was not prefetched takes a page fault as ever.
 *
 * Control path: may wait for pages. Safe to call from any thread; an MR that is named can't be
 * deregistered or re-registered during the call.
 *
 * @param pd
 *   Protection domain of the MRs.
 * @param advice
 *   One of enum rmem_mr_advice.
 * @param flags
 *   RMEM_ADVISE_FLUSH, or 0.
 * @param sg_list
 *   Parts of on-demand MRs, as local requests name them; not needed after the call.
 * @param num_sge
 *   How many, at least 1.
 *
 * @return
 *   0 on success, otherwise nothing is done, but for what came before with -EFAULT or -ENOMEM:
 *   - -EINVAL: NULL or not a PD, an unknown advice or flag, NULL sg_list, num_sge 0, or an MR that
 *     is not on demand.
 *   - -EOPNOTSUPP: the device has no on-demand paging, or takes no advice.
 *   - -ENOENT: an lkey that opens nothing.
 *   - -EPERM: an MR of another PD, or PREFETCH_WRITE for one without LOCAL_WRITE.
 *   - -EFAULT: a range that is not inside its MR; with FLUSH, memory that is not mapped, or
 *     protected.
 *   - -ENOMEM: no memory for what is left to do.
 *   - -EIO: the device failed.
 */
int rmem_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge);

/** What an on-demand MR has counted, in pages of the system; all 0 for other MRs. */
struct rmem_mr_stats {
	uint64_t page_faults;   /**< Pages that requests had fetched, or fetched for writing. */
	uint64_t invalidations; /**< Pages that went: unmapped, discarded, moved, swapped out. */
	uint64_t prefetches;    /**< Pages that advice had fetched. */
	uint64_t pages;         /**< Pages that the device has now. */
	uint64_t failed_faults; /**< Accesses that found a page not mapped, or protected. */
};

/**
 * Get the counters of an MR.
 *
 * They start at 0 when the MR is registered, and again when rmem_mr_rereg() changes its memory or
 * makes it an on-demand MR. They are read while lcores go on. A device that is not told of pages
 * that go looks for them here.
 *
 * Control path. Safe to call from any thread, but not during rmem_mr_rereg() of the MR.
 *
 * @param mr
 *   MR of rmem_mr_reg().
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, one that requests bind, or NULL stats.
 *   - -EBUSY: its registration is under way, or failed.
 *   - -EOPNOTSUPP: the driver counts nothing.
 */
int rmem_mr_stats_get(struct rmem_mr *mr, struct rmem_mr_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MR_H */
