/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory regions: memory that a device can access, and its keys.
 */

#ifndef RMEM_MR_H
#define RMEM_MR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rte_memory.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_counter;
struct rmem_dm;
struct rmem_eq;
struct rmem_pd;
struct rmem_sge;

/*
 * Access rights, with the values of enum ibv_access_flags. Local read access is always enabled.
 */
/** Enable local write access: receives, READs and atomic results. */
#define RMEM_ACCESS_LOCAL_WRITE (UINT32_C(1) << 0)
/** Enable WRITEs of peers. Needs LOCAL_WRITE. */
#define RMEM_ACCESS_REMOTE_WRITE (UINT32_C(1) << 1)
/** Enable READs of peers. */
#define RMEM_ACCESS_REMOTE_READ (UINT32_C(1) << 2)
/** Enable atomics of peers. Needs LOCAL_WRITE. */
#define RMEM_ACCESS_REMOTE_ATOMIC (UINT32_C(1) << 3)
/** Enable memory window binding. */
#define RMEM_ACCESS_MW_BIND (UINT32_C(1) << 4)
/** Address the MR by byte offset: its iova is 0. */
#define RMEM_ACCESS_ZERO_BASED (UINT32_C(1) << 5)
/**
 * Enable on-demand paging (ODP).
 *
 * Pages are faulted in when the device first accesses them, are not pinned, and may be unmapped.
 * With addr NULL and length SIZE_MAX the MR is implicit: it covers the whole address space.
 */
#define RMEM_ACCESS_ON_DEMAND (UINT32_C(1) << 6)
/**
 * Require that all of the memory is in hugepages.
 *
 * Without this bit hugepages are detected only in memory of EAL.
 */
#define RMEM_ACCESS_HUGETLB (UINT32_C(1) << 7)
/** Enable FLUSHes of peers to RMEM_FLUSH_GLOBAL. */
#define RMEM_ACCESS_FLUSH_GLOBAL (UINT32_C(1) << 8)
/**
 * Enable FLUSHes of peers to RMEM_FLUSH_PERSISTENT.
 *
 * Only with RMEM_MR_FD, for a regular file, except on file systems in memory (tmpfs, hugetlbfs).
 */
#define RMEM_ACCESS_FLUSH_PERSISTENT (UINT32_C(1) << 9)
/** Rights to FLUSH; not in RMEM_ACCESS_REMOTE, since few devices support them. */
#define RMEM_ACCESS_FLUSH (RMEM_ACCESS_FLUSH_GLOBAL | RMEM_ACCESS_FLUSH_PERSISTENT)
/** Rights that a peer can have. */
#define RMEM_ACCESS_REMOTE                                                                         \
	(RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_ATOMIC)
/** Allow the device to reorder accesses; a hint that a device may ignore. */
#define RMEM_ACCESS_RELAXED_ORDERING (UINT32_C(1) << 20)
/** Bits ignored by devices that do not support them (optional range of verbs). */
#define RMEM_ACCESS_OPTIONAL_RANGE UINT32_C(0x3ff00000)
/** Allocate the memory of the MR (as IBV_ACCESS_ALLOCATE_MR of MLNX_OFED). */
#define RMEM_ACCESS_ALLOCATE_MR (UINT32_C(1) << 30)

/** Assign rmem_mr_attr::requested_key as the rkey. */
#define RMEM_MR_REQUESTED_KEY (UINT32_C(1) << 0)
/** Assign keys that are not valid before rmem_mr_enable(). */
#define RMEM_MR_DISABLED (UINT32_C(1) << 1)
/** Map and register the memory of rmem_mr_attr::fd. */
#define RMEM_MR_FD (UINT32_C(1) << 2)
/** Use rmem_mr_attr::iova as it is, 0 too, as ibv_reg_mr_iova(3). */
#define RMEM_MR_IOVA (UINT32_C(1) << 3)

/** Types of MRs. */
enum rmem_mr_type {
	RMEM_MR_TYPE_USER = 1,     /**< Registered by rmem_mr_reg(). */
	RMEM_MR_TYPE_FAST_REG = 2, /**< Allocated by rmem_fast_reg_mr_alloc(). */
	RMEM_MR_TYPE_INDIRECT = 3, /**< Allocated by rmem_mkey_alloc(). */
	RMEM_MR_TYPE_NULL = 4,     /**< Allocated by rmem_null_mr_alloc(). */
	RMEM_MR_TYPE_DM = 5,       /**< Registered device memory: rmem_mr_ext::dm. */
};

/** States of an MR. */
enum rmem_mr_state {
	RMEM_MR_STATE_FREE = 0,     /**< Keys not valid; REG_MR or UMR may bind it. */
	RMEM_MR_STATE_VALID = 1,    /**< Keys valid for its range. */
	RMEM_MR_STATE_DISABLED = 2, /**< Keys not valid; rmem_mr_enable() makes it VALID. */
	RMEM_MR_STATE_PENDING = 3,  /**< Registration in progress; it has no keys yet. */
	RMEM_MR_STATE_ERROR = 4,    /**< Failed; only rmem_mr_dereg() is permitted. */
};

/**
 * Memory region (MR).
 *
 * For a fast-register or indirect MR, addr is NULL and lkey and rkey are from the last REG_MR
 * or UMR posted; rmem_mr_query() returns iova, length, access and all other properties.
 */
struct rmem_mr {
	struct rmem_obj obj; /**< Private head. */
	uint32_t access;     /**< Bitwise OR of RMEM_ACCESS_*. */
	uint32_t lkey;       /**< Key for the SGEs of local requests. */
	uint32_t rkey;       /**< Key for the requests of peers. */
	struct rmem_pd *pd;  /**< PD that the MR belongs to. */
	void *addr;          /**< First byte; NULL for several ranges or device memory. */
	size_t length;       /**< Length in bytes. */
	uint64_t iova;       /**< Address of the first byte in requests. */
	uint16_t type;       /**< One of enum rmem_mr_type. */
	uint16_t pad[3];     /**< Zero. */
};

/** Further attributes of a registration: rmem_mr_attr::ext. The caller zeroes it first. */
struct rmem_mr_ext {
	struct rmem_dm *dm;   /**< Device memory to register (rmem_dm.h), or NULL. */
	uint64_t dm_offset;   /**< With dm: offset of the first byte; else 0. */
	uint64_t reserved[6]; /**< Zero. */
};

/** Attributes of a registration. The caller zeroes it first. */
struct rmem_mr_attr {
	void *addr;      /**< First byte, any address; NULL with ALLOCATE_MR, iov or RMEM_MR_FD. */
	size_t length;   /**< Length in bytes, 0 to rmem_dev_info::max_mr_size. */
	uint64_t iova;   /**< Address of the first byte in requests; 0 for addr, or with
			  *  ZERO_BASED or RMEM_MR_IOVA.
			  */
	uint32_t access; /**< Bitwise OR of RMEM_ACCESS_*. */
	int socket_id;   /**< NUMA socket with ALLOCATE_MR, SOCKET_ID_ANY for any. */
	uint32_t flags;  /**< Bitwise OR of RMEM_MR_*. */
	uint32_t requested_key;  /**< With RMEM_MR_REQUESTED_KEY: rkey of the MR, else 0. */
	struct rmem_eq *eq;      /**< EQ for a registration in the background, or NULL. */
	void *context;           /**< With eq: rmem_event::context. */
	const struct iovec *iov; /**< Ranges, with addr NULL; or NULL. */
	uint32_t iov_count;      /**< Ranges in iov, 1 to rmem_dev_info::max_iov; else 0. */
	int fd;                  /**< With RMEM_MR_FD: file descriptor to map; else 0. */
	uint64_t fd_offset;      /**< With RMEM_MR_FD: offset of the first byte; else 0. */
	const char *name;        /**< Name for logs and telemetry, to 31 bytes, or NULL; copied. */
	const struct rmem_mr_ext *ext; /**< Further attributes, or NULL. */
};

/** Result of rmem_mr_query(). In PENDING and ERROR only type, state and access are set. */
struct rmem_mr_info {
	uint16_t type;       /**< One of enum rmem_mr_type. */
	uint16_t state;      /**< One of enum rmem_mr_state. */
	uint32_t access;     /**< Rights in force. */
	uint32_t lkey;       /**< Key for local requests. */
	uint32_t rkey;       /**< Key for peers. */
	void *addr;          /**< First byte, or NULL for an MR over several ranges, of device
				     *  memory, or bound by requests.
				     */
	uint64_t iova;       /**< Address of the first byte in requests. */
	uint64_t length;     /**< Length in bytes. */
	uint64_t page_size;  /**< Best page size; 0: indirect, device memory, or empty. */
	uint64_t nb_pages;   /**< Pages of that size; 0 if page_size is 0. */
	uint32_t nb_extents; /**< Ranges of contiguous IO addresses; for an indirect MR, of
				     *  addresses below it.
				     */
	uint32_t max_page_list_len; /**< Pages of a fast-register MR, else 0. */
	uint32_t is_shared;         /**< 1: from rmem_mr_reg_shared() and still shares memory. */
	uint32_t max_entries;       /**< Entries of an indirect MR, else 0. */
	uint32_t nb_levels;         /**< Levels of tables of 512 entries for nb_pages; 0 for a
				     *  single page, which needs no table.
				     */
	uint32_t is_fd;             /**< 1: its memory is a mapping of RMEM_MR_FD. */
	uint32_t is_pinned;         /**< 1: all of its pages are pinned, or count as pinned. */
	uint32_t pad;               /**< Zero. */
	uint64_t reserved[4];       /**< Zero. */
};

/**
 * Register a memory region (MR) with a protection domain.
 *
 * The device can access the bytes [addr, addr + length), locally with the lkey and, if @p access
 * permits it, on behalf of peers with the rkey. The memory stays owned by the caller and must
 * stay mapped until rmem_mr_dereg().
 *
 * With RMEM_ACCESS_ALLOCATE_MR and a NULL @p addr the library allocates the memory: contiguous,
 * from hugepages unless EAL runs without them or there is no EAL, on any NUMA socket, aligned to
 * and rounded up to whole pages, registered once, and freed by rmem_mr_dereg(). Without
 * RMEM_ACCESS_HUGETLB, memory of up to half of a hugepage is rounded up to system pages only, and
 * shares its hugepage with other memory of the application. The MR has the rounded length, or
 * max_mr_size if that is less. rmem_mr_reg_attr() selects the socket.
 *
 * With RMEM_ACCESS_ON_DEMAND the memory need not be mapped, now or later. A page is populated when
 * the device first accesses it. An access to memory that is not mapped, or not readable or
 * writable, ends with an access error. The replacement of a page that was unmapped, discarded or
 * moved is visible to the next access. rmem_dev_info::odp reports the support of a device.
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param addr
 *   First byte; NULL with RMEM_ACCESS_ALLOCATE_MR, or for an implicit on-demand MR. No alignment
 *   required.
 * @param length
 *   Length in bytes, 0 to rmem_dev_info::max_mr_size; SIZE_MAX for an implicit on-demand MR. With
 *   0 the keys permit no access, and @p addr may be NULL; a device of verbs may refuse it.
 * @param iova
 *   Address of the first byte in requests; 0 selects @p addr. This differs from
 *   ibv_reg_mr_iova(3): only with RMEM_ACCESS_ZERO_BASED, or RMEM_MR_IOVA of rmem_mr_reg_attr(),
 *   does an MR begin at iova 0; requests then use byte offsets.
 * @param access
 *   Bitwise OR of RMEM_ACCESS_*. REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE
 *   (ibv_reg_mr(3)).
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, or NULL mr.
 *   - -EINVAL: NULL addr without ALLOCATE_MR, or another addr with it.
 *   - -EINVAL: length 0 with ALLOCATE_MR or RMEM_MR_FD, or if the device refuses it.
 *   - -EINVAL: length over the limit, or addr + length or iova + length overflows.
 *   - -EINVAL: an unknown access bit, or REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE.
 *   - -EINVAL: an iova with ZERO_BASED.
 *   - -EINVAL: HUGETLB, and memory that is not all hugepages, or not known to be.
 *   - -EINVAL: ON_DEMAND with ALLOCATE_MR, HUGETLB or several ranges.
 *   - -EINVAL: an implicit on-demand MR with ZERO_BASED or an iova.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit, for implicit
 *     on-demand MRs, for REMOTE_ATOMIC on demand, or for an iova on demand.
 *   - -EFAULT: part of the range is not mapped, or not writable although access requires it.
 *   - -EBUSY: ON_DEMAND needs a signal handler, and another handler precedes it; see the page of
 *     the driver.
 *   - -ENOSPC: the device already has rmem_dev_info::max_mr regions.
 *   - -ENOMEM: no memory for the MR, or too few hugepages for ALLOCATE_MR; the log has the number
 *     missing. Or the memory cannot be pinned and the device requires it.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_mr_reg(struct rmem_pd *pd, void *addr, size_t length, uint64_t iova, uint32_t access,
		struct rmem_mr **mr);

/**
 * Register a memory region with a structure of attributes; see rmem_mr_reg().
 *
 * With RMEM_MR_REQUESTED_KEY the rkey of the MR is rmem_mr_attr::requested_key, so that it need not
 * be sent to peers (fi_mr(3): requested_key). The supported keys depend on the driver; see its page
 * in doc/. Peers with the key of an earlier MR can access a new MR with the same key.
 *
 * With an EQ the call makes the initial checks and returns. Control threads then populate the
 * memory in pieces, in parallel, and register it. The registration ends with one event, which has
 * the context and the result of the call: -EFAULT, -EEXIST, -ENOSPC, -ENOMEM, or -EINVAL for a key
 * that is not supported. A failed call generates no event. Registrations end in any order. @p mr is
 * written before the event can be read. Until the registration ends, the MR is PENDING: its fields
 * are undefined, rmem_mr_query() returns its state, and other calls refuse it. The mappings of the
 * memory must not change during the registration; the attributes may. New pages are allocated by
 * the kernel's policy for the range (mbind()), or else on the NUMA socket of a control thread.
 * After a failure the MR is in ERROR and must be deregistered.
 *
 * With ranges in rmem_mr_attr::iov the MR covers them at consecutive addresses, in their order.
 * Ranges may overlap, and have any alignment. addr must be NULL, and length 0 or the sum of the
 * ranges; iova 0 selects the address of the first range. The array is copied. rmem_mr_rereg() with
 * CHANGE_TRANSLATION changes the MR to one range. An atomic cannot cross the end of a range.
 *
 * With RMEM_MR_FD the memory is length bytes of a file descriptor from fd_offset on: of a memfd, a
 * file (also on hugetlbfs), a dmabuf, or any other descriptor that mmap(2) supports. Any offset is
 * allowed. The library maps the bytes shared, and unmaps them with the MR; rmem_mr::addr has the
 * offset of the first byte within its page. The descriptor may be closed when the call has
 * returned. rmem_mr_rereg() refuses CHANGE_TRANSLATION of such an MR, and windows cannot be bound
 * to it. Sharing and deregistration are as with ALLOCATE_MR. A file must not be truncated while it
 * is mapped: a guarded device (soft_memory.md) fails the request, otherwise the access raises
 * SIGBUS. The caller is responsible for DMA_BUF_IOCTL_SYNC of a dmabuf.
 *
 * With rmem_mr_ext::dm the MR covers length bytes of device memory, from dm_offset on. access must
 * have ZERO_BASED: local and remote requests address the MR by offsets. The MR is of
 * RMEM_MR_TYPE_DM: calls for registered memory refuse it, and windows cannot be bound to it
 * (ibv_reg_dm_mr(3)).
 *
 * With RMEM_MR_DISABLED the keys of the MR are not valid before rmem_mr_enable().
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param attr
 *   Attributes; not needed after the call.
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise what rmem_mr_reg() returns, or:
 *   - -EINVAL: NULL attr, an unknown flag, or a reserved field that is not zero.
 *   - -EINVAL: no such NUMA socket.
 *   - -EINVAL: a requested_key without the flag, or a key that the device does not support; the log
 *     has the supported keys.
 *   - -EINVAL: an eq that is not an EQ, or of another device.
 *   - -EINVAL: iov without iov_count or conversely, more ranges than rmem_dev_info::max_iov, or a
 *     range that is NULL, empty or wraps around.
 *   - -EINVAL: iov together with addr or ALLOCATE_MR, or with a length that is not the sum.
 *   - -EINVAL: RMEM_MR_FD with an fd that is not open or cannot be mapped, or bytes beyond the end
 *     of the file.
 *   - -EINVAL: RMEM_MR_FD with addr, iov, ALLOCATE_MR or ON_DEMAND.
 *   - -EINVAL: an fd or fd_offset without RMEM_MR_FD.
 *   - -EINVAL: a dm that is not device memory of the device, without ZERO_BASED, with other rights
 *     than LOCAL_WRITE and those of peers, with addr, iov, iova, eq or a flag but
 *     RMEM_MR_REQUESTED_KEY, or a range beyond its end.
 *   - -EINVAL: a dm_offset without dm.
 *   - -EPERM: the fd does not permit the access.
 *   - -EEXIST: the requested key is in use, or reserved for bindings.
 *   - -ENOSPC: registrations in progress and unread events fill the EQ.
 *   - -EOPNOTSUPP: the device lacks the capability for a flag, or for iov.
 */
int rmem_mr_reg_attr(struct rmem_pd *pd, const struct rmem_mr_attr *attr, struct rmem_mr **mr);

/**
 * Allocate a null MR, as ibv_alloc_null_mr(3).
 *
 * Data written to it is discarded, and data read from it is zero, so that an SGE can skip part of a
 * message or fill it. Only the lkey is valid, for SIZE_MAX bytes from iova 0 on: SGEs may have any
 * address. Peers cannot access it, windows cannot be bound to it, and it cannot be enabled, shared
 * or re-registered.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the MR belongs to.
 * @param[out] mr
 *   The new MR, with a NULL addr. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, or NULL mr.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_NULL_MR.
 *   - -ENOSPC: the device already has rmem_dev_info::max_mr regions.
 *   - -ENOMEM: no memory for the MR.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_null_mr_alloc(struct rmem_pd *pd, struct rmem_mr **mr);

/**
 * Enable an MR that was registered with RMEM_MR_DISABLED.
 *
 * Requests posted after the call may use its keys. For an enabled MR the call has no effect. An MR
 * cannot be disabled again.
 *
 * Control path. Safe to call from any thread.
 *
 * @param mr
 *   MR registered by rmem_mr_reg() or rmem_mr_reg_attr().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, a fast-register, indirect or null MR, or an MR that is being
 *     released or re-registered.
 *   - -EBUSY: its registration is in progress, or failed.
 */
int rmem_mr_enable(struct rmem_mr *mr);

/**
 * Deregister a memory region, or free a fast-register, indirect or null MR.
 *
 * When it returns, no lcore accesses the memory through the keys of the MR any more: requests in
 * execution have ended, later ones fail. Memory of ALLOCATE_MR is freed.
 *
 * Control path: waits for lcores that are executing a request. Safe to call from any
 * thread, once for each MR.
 *
 * @param mr
 *   MR to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not an MR.
 *   - -EBUSY: it has references (fi_mr(3): not closed while bound), the event of its registration
 *     was not read, or a request that binds or invalidates it has not completed.
 *   - -EIO: the device failed.
 */
int rmem_mr_dereg(struct rmem_mr *mr);

/**
 * Register the memory of an MR again, for another PD or with other rights.
 *
 * The new MR has keys of its own and covers the same bytes. Either may be deregistered first. If
 * the library allocated or mapped the memory, the original MR cannot be deregistered or
 * re-registered while others share it (-EBUSY). A shared MR may be shared again, and
 * re-registered; a change of its memory ends the sharing.
 *
 * Control path: may allocate and touch pages. Safe to call from any thread.
 *
 * @param from
 *   MR of rmem_mr_reg() or of this call, of the same device.
 * @param pd
 *   Protection domain the new MR belongs to; it may be the PD of @p from.
 * @param iova
 *   Address of the first byte in requests; (uintptr_t)addr or 0 for the address itself. 0 with
 *   RMEM_ACCESS_ZERO_BASED.
 * @param access
 *   Bitwise OR of RMEM_ACCESS_*, not RMEM_ACCESS_ALLOCATE_MR.
 * @param[out] mr
 *   The new MR. Written only on success. Release it with rmem_mr_dereg().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, a fast-register, indirect or null MR, or an MR that is being
 *     released or re-registered. - -EINVAL: NULL or not a PD, a PD of another device, or NULL mr.
 *   - -EINVAL: ALLOCATE_MR, or an iova or access that rmem_mr_reg() refuses.
 *   - -EBUSY: the registration of @p from is in progress, or it is in RMEM_MR_STATE_ERROR; or
 *     ON_DEMAND, as in rmem_mr_reg().
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_SHARED_MR, or an access bit.
 *   - -EFAULT: part of the memory is no longer mapped, or not writable although access requires
 *     it.
 *   - -ENOSPC: the device already has rmem_dev_info::max_mr regions.
 *   - -ENOMEM: no memory for the MR, or it cannot be pinned and the device requires it.
 */
int rmem_mr_reg_shared(struct rmem_mr *from, struct rmem_pd *pd, uint64_t iova, uint32_t access,
		struct rmem_mr **mr);

/** Flag of rmem_mr_rereg(): change the memory. The values equal IBV_REREG_MR_*. */
#define RMEM_REREG_CHANGE_TRANSLATION (UINT32_C(1) << 0)
/** Flag of rmem_mr_rereg(): change the PD. */
#define RMEM_REREG_CHANGE_PD (UINT32_C(1) << 1)
/** Flag of rmem_mr_rereg(): change the rights. */
#define RMEM_REREG_CHANGE_ACCESS (UINT32_C(1) << 2)

/**
 * Result of rmem_mr_rereg().
 *
 * The negative values equal enum ibv_rereg_mr_err_code; the call then returns an errno.
 */
enum rmem_rereg_result {
	/** Changed; lkey and rkey are the same. */
	RMEM_REREG_OK = 0,
	/** Changed by deregistering and registering: lkey and rkey are new. */
	RMEM_REREG_NEW_KEYS = 1,
	/** Refused: the MR is unchanged. */
	RMEM_REREG_ERR_INPUT = -1,
	/** The new memory could not be registered: the MR is unchanged. */
	RMEM_REREG_ERR_DONT_FORK_NEW = -2,
	/** Changed, but the old memory could not be returned to the system. */
	RMEM_REREG_ERR_DO_FORK_OLD = -3,
	/** Neither the old nor the new registration is valid: RMEM_MR_STATE_ERROR. */
	RMEM_REREG_ERR_CMD = -4,
	/** As RMEM_REREG_ERR_CMD, and the new memory could not be returned to the system. */
	RMEM_REREG_ERR_CMD_AND_DO_FORK_NEW = -5,
};

/**
 * Change the memory, the PD or the rights of an MR (ibv_rereg_mr(3)).
 *
 * With RMEM_DEV_CAPA_REREG only what changes is replaced; lkey and rkey stay the same. On other
 * devices the MR is deregistered and registered again, with new keys. In both cases the handle
 * @p mr stays valid. Properties without a bit in @p flags are not changed, and their arguments are
 * ignored.
 *
 * When it returns, no lcore uses the old memory, PD or rights any more: requests in execution
 * have ended. With CHANGE_ACCESS alone the keys stay valid, with the old rights or the new ones;
 * during any other change requests fail as with an invalid key.
 *
 * CHANGE_ACCESS may set or clear ON_DEMAND. Requests fail during this change. Clearing it
 * populates and pins the memory like rmem_mr_reg().
 *
 * A disabled MR stays disabled. A requested key is not kept if the keys change.
 *
 * With RMEM_ACCESS_ALLOCATE_MR in @p access and a NULL @p addr, CHANGE_TRANSLATION allocates
 * new memory like rmem_mr_reg(), on any socket. CHANGE_TRANSLATION frees memory that the library
 * had allocated for the MR, and ends the sharing of an MR that shared its memory. Data is not
 * copied.
 *
 * Control path: may allocate and touch pages, and waits for lcores that are executing a
 * request. Safe to call from any thread; no other call may use @p mr concurrently.
 *
 * @param mr
 *   MR of rmem_mr_reg().
 * @param flags
 *   Bitwise OR of RMEM_REREG_CHANGE_*, at least one.
 * @param pd
 *   With CHANGE_PD, the new PD, of the same device; else ignored.
 * @param addr
 *   With CHANGE_TRANSLATION, the first byte, or NULL with RMEM_ACCESS_ALLOCATE_MR; else
 *   ignored. It is also the new iova, unless the MR is or becomes ZERO_BASED.
 * @param length
 *   With CHANGE_TRANSLATION, the length in bytes; else ignored.
 * @param access
 *   With CHANGE_ACCESS, the new rights: bitwise OR of RMEM_ACCESS_*; else ignored, except
 *   RMEM_ACCESS_ALLOCATE_MR with CHANGE_TRANSLATION. A ZERO_BASED MR stays ZERO_BASED.
 * @param[out] result
 *   One of enum rmem_rereg_result; always written. NULL is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, or a fast-register or indirect MR.
 *   - -EINVAL: no flag, or an unknown one.
 *   - -EINVAL: not a PD, or one of another device.
 *   - -EINVAL: an addr, length or access that rmem_mr_reg() refuses.
 *   - -EINVAL: ALLOCATE_MR or ZERO_BASED without CHANGE_TRANSLATION, unless the MR has it already.
 *   - -EBUSY: a window or a counter is bound to it, or other MRs share memory that the library
 *     allocated or mapped for it.
 *   - -EBUSY: its registration is in progress, or it is in RMEM_MR_STATE_ERROR; or ON_DEMAND, as in
 *     rmem_mr_reg().
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit, or
 *     CHANGE_TRANSLATION of an MR of RMEM_MR_FD.
 *   - -EFAULT: part of the memory is not mapped, or not writable although access requires it; or,
 *     with RMEM_REREG_ERR_DO_FORK_OLD, part of the old memory is no longer mapped.
 *   - -ENOMEM: too little memory for ALLOCATE_MR; the log has the amount missing. Or the new
 *     memory cannot be pinned and the device requires it.
 *   - -ENOSPC: the device had no free entry for the new registration, after the MR was
 *     deregistered.
 *   - -EIO: the device failed.
 */
int rmem_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result);

/** Changes to an MR. The caller zeroes it first. */
struct rmem_mr_rereg_attr {
	uint32_t flags;       /**< Bitwise OR of RMEM_REREG_CHANGE_*, at least one. */
	uint32_t access;      /**< As rmem_mr_rereg(). */
	struct rmem_pd *pd;   /**< As rmem_mr_rereg(). */
	void *addr;           /**< As rmem_mr_rereg(). */
	size_t length;        /**< As rmem_mr_rereg(). */
	int socket_id;        /**< NUMA socket with ALLOCATE_MR, SOCKET_ID_ANY for any. */
	uint32_t pad;         /**< Zero. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Change an MR with a structure of attributes; see rmem_mr_rereg().
 *
 * Control path: may allocate and touch pages, and waits for lcores that are executing a request.
 * Safe to call from any thread; no other call may use @p mr concurrently.
 *
 * @param mr
 *   MR of rmem_mr_reg().
 * @param attr
 *   Changes; not needed after the call.
 * @param[out] result
 *   As of rmem_mr_rereg(): always written. NULL is allowed.
 *
 * @return
 *   0 on success, otherwise what rmem_mr_rereg() returns, or:
 *   - -EINVAL: NULL attr, a reserved field that is not zero, or no such NUMA socket.
 */
int rmem_mr_rereg_attr(struct rmem_mr *mr, const struct rmem_mr_rereg_attr *attr,
		enum rmem_rereg_result *result);

/**
 * Query the properties of an MR.
 *
 * page_size is the best page size of the device (rmem_dev_info::page_size_cap) for the iovas of
 * the MR: iova and IO address are congruent modulo that size, and it is no larger than the pages
 * of the memory unless these are physically contiguous. Among the sizes that need the fewest
 * pages it is the smallest. If none is suitable, because iova and address have different offsets
 * in a page, it is the page size of the memory.
 *
 * Control path. Safe to call from any thread, but not during rmem_mr_rereg() of the MR. During a
 * REG_MR, a UMR or an invalidation of the MR, the result may be of either state; an MR that is
 * bound again during the call may be FREE. All fields are of one binding, with `verbs` unless a
 * request is posted concurrently.
 *
 * @param mr
 *   MR to query.
 * @param[out] info
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not an MR, or NULL info.
 */
int rmem_mr_query(const struct rmem_mr *mr, struct rmem_mr_info *info);

/** Advice about pages of on-demand MRs, with the values of verbs. */
enum rmem_mr_advice {
	RMEM_ADVISE_PREFETCH = 0,          /**< Populate pages for reading. */
	RMEM_ADVISE_PREFETCH_WRITE = 1,    /**< Populate pages for writing; needs LOCAL_WRITE. */
	RMEM_ADVISE_PREFETCH_NO_FAULT = 2, /**< Use resident pages, populate none. */
};

/** Flag of rmem_mr_advise(): process the advice in the call, not later in control threads. */
#define RMEM_ADVISE_FLUSH (UINT32_C(1) << 0)

/**
 * Prefetch pages of on-demand MRs (ibv_advise_mr(3)).
 *
 * Errors of keys and ranges are returned. Without RMEM_ADVISE_FLUSH a failure to populate pages
 * is not reported, and the advice on an MR ends when the MR is deregistered or changed. An
 * access to a page that was not prefetched takes a page fault.
 *
 * Control path: may wait for pages. Safe to call from any thread; the MRs cannot be deregistered
 * or re-registered during the call.
 *
 * @param pd
 *   Protection domain of the MRs.
 * @param advice
 *   One of enum rmem_mr_advice.
 * @param flags
 *   RMEM_ADVISE_FLUSH, or 0.
 * @param sg_list
 *   Ranges of on-demand MRs, as in local requests; not needed after the call.
 * @param num_sge
 *   Number of ranges, at least 1.
 *
 * @return
 *   0 on success, otherwise (only with -EFAULT and -ENOMEM preceding ranges were processed):
 *   - -EINVAL: NULL or not a PD, an unknown advice or flag, NULL sg_list, num_sge 0, or an MR that
 *     is not on demand.
 *   - -EOPNOTSUPP: the device has no on-demand paging, or no support for advice.
 *   - -ENOENT: an lkey that is not valid.
 *   - -EPERM: an MR of another PD, or PREFETCH_WRITE for an MR without LOCAL_WRITE.
 *   - -EFAULT: a range that is not inside its MR; with FLUSH, memory that is not mapped, or
 *     protected.
 *   - -ENOMEM: no memory for the background work.
 *   - -EIO: the device failed.
 */
int rmem_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge);

/** Counters of an on-demand MR, in system pages; all 0 for other MRs. */
struct rmem_mr_stats {
	uint64_t page_faults;   /**< Pages faulted in by requests, for reading or writing. */
	uint64_t invalidations; /**< Pages unmapped, discarded, moved or swapped out. */
	uint64_t prefetches;    /**< Pages faulted in by advice. */
	uint64_t pages;         /**< Pages in use by the device now. */
	uint64_t failed_faults; /**< Accesses to a page not mapped, or protected. */
	uint64_t reserved[3];   /**< Zero. */
};

/**
 * Get the counters of an MR.
 *
 * They start at 0 when the MR is registered, and again when rmem_mr_rereg() changes its memory or
 * makes it an on-demand MR. Not an atomic snapshot. A device without notification of invalidated
 * pages detects them in this call.
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
 *   - -EINVAL: NULL or not an MR, a fast-register, indirect or null MR, or NULL stats.
 *   - -EBUSY: its registration is in progress, or failed.
 *   - -EOPNOTSUPP: the driver has no counters.
 */
int rmem_mr_stats_get(const struct rmem_mr *mr, struct rmem_mr_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MR_H */
