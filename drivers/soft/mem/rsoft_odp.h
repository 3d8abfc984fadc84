/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand paging: MRs whose pages are faulted in on access and may be evicted.
 *
 * An ODP MR has a table with two bits for each page of its range: the device has got the page for
 * reading, and for writing. Before a request accesses a page whose bit is not set, the kernel
 * populates the page; this fails if the memory is not mapped or is protected. Pages may be evicted
 * at any time, so each copy is guarded (rsoft_guard.h) independent of the table. A failed copy
 * clears the bits, and so does the thread that reads events of the kernel (rsoft_odp.c).
 *
 * Invariant: the bits determine when pages are populated and what is counted, never what is
 * accessed. Any thread sets and clears them, atomically: lcores that execute requests, control
 * calls, and the reader of page events.
 * Invariant: a table is freed after the grace period that follows the invalidation of its MR's
 * translation. It is in memory of this process, like the pages it describes.
 */

#ifndef RSOFT_ODP_H
#define RSOFT_ODP_H

#include "rsoft_guard.h"
#include "rsoft_key.h"
#include "rsoft_odp_table.h"

/* The addresses that an implicit MR covers: the address space of a process. */
#if defined(__x86_64__)
#define RSOFT_ODP_SPACE (UINT64_C(1) << 47)
#else
#define RSOFT_ODP_SPACE (UINT64_C(1) << 48)
#endif

/* Number of tables that are not is_guarded; atomic. */
extern uint32_t rsoft_odp_nb_unguarded;

/* Whether such a table covers a byte of [addr, addr + length). */
bool rsoft_odp_is_unguarded(uint64_t addr, uint64_t length);

/* Whether the kernel supports ODP with the arguments of the device. */
bool rsoft_odp_is_supported(const struct rsoft_dev *dev);

/* Capabilities for rmem_dev_info_get(). */
void rsoft_odp_caps(const struct rsoft_dev *dev, struct rmem_odp_caps *caps);

/* Allocate a table for a range, or an implicit table for NULL and SIZE_MAX; -errno with a log
 * line. */
int rsoft_odp_alloc(struct rsoft_dev *dev, void *addr, size_t length, uint32_t access,
		struct rsoft_odp **odp);
void rsoft_odp_free(struct rsoft_odp *odp);

/* Check whether an MR with a table can get other rights; -errno with a log line. */
int rsoft_odp_check_access(const struct rsoft_odp *odp, uint32_t access);

/* Execute an advice (enum rmem_mr_advice) on pages; false if some are not mapped. */
bool rsoft_odp_prefetch(struct rsoft_odp *odp, uint64_t first, uint64_t nb, int advice);

/* Populate the pages of a range before an access; slow path of rsoft_odp_open(). */
bool rsoft_odp_fault(struct rsoft_odp *odp, uint64_t addr, uint64_t length, bool is_write);

/* Count a failed copy; return its enum rsoft_side. */
unsigned int rsoft_odp_copy_failed(
		struct rsoft_guarded end, struct rsoft_odp *to, struct rsoft_odp *from);

static inline bool
rsoft_odp_needs_write(uint32_t need)
{
	return (need &
			       (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					       RMEM_ACCESS_REMOTE_ATOMIC)) != 0;
}

static inline unsigned int
rsoft_odp_log2_page(const struct rsoft_odp *odp)
{
#if defined(__x86_64__)
	RTE_SET_USED(odp);
	return 12;
#else
	return odp->log2_page;
#endif
}

/*
 * Fault in the pages of a range for these rights; false: an access error. The key is valid for the
 * range, so the table covers it.
 */
static __rte_always_inline bool
rsoft_odp_open(struct rsoft_odp *odp, const uint8_t *ptr, uint64_t length, uint32_t need)
{
	uint64_t page = (uintptr_t)ptr >> rsoft_odp_log2_page(odp);
	uint64_t last = ((uintptr_t)ptr + length - 1) >> rsoft_odp_log2_page(odp);
	bool is_write = rsoft_odp_needs_write(need);
	uint64_t word;

	if (likely(page == last)) {
		word = __atomic_load_n(&odp->table[page / RSOFT_ODP_WORD - odp->first_word],
				__ATOMIC_RELAXED);
		if (likely(word >> (2 * (page % RSOFT_ODP_WORD) + is_write) & 1))
			return true;
	}
	if (need & RSOFT_PEEK)
		return false;
	return rsoft_odp_fault(odp, (uintptr_t)ptr, length, is_write);
}

/*
 * Copy between ranges that passed rsoft_odp_open(). At least one has a table; the other may be
 * NULL. Return an enum rsoft_side.
 */
static __rte_always_inline unsigned int
rsoft_odp_copy(struct rsoft_odp *to_odp, uint8_t *to, struct rsoft_odp *from_odp,
		const uint8_t *from, uint64_t length)
{
	struct rsoft_guarded end;

	if (likely((to_odp == NULL || to_odp->is_guarded) &&
			    (from_odp == NULL || from_odp->is_guarded)))
		end = rsoft_guard_copy_fast(to, from, length);
	else
		end = rsoft_guard_copy_slow(to, from, length);
	if (likely(end.side == RSOFT_SIDE_NONE))
		return RSOFT_SIDE_NONE;
	return rsoft_odp_copy_failed(end, to_odp, from_odp);
}

#endif /* RSOFT_ODP_H */
