/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand paging: MRs whose pages are faulted in on access and may be evicted.
 *
 * An ODP MR has a table with two bits for each page of its range: the device has had the page for
 * reading, and for writing. Before a request accesses a page whose bit is not set, the kernel
 * populates the page, which fails if the memory is not mapped or protected. Pages may be evicted at
 * any time, so each copy is guarded (rsoft_guard.h) regardless of the table. A failed copy clears
 * the bits, and so does a thread that reads the events of the kernel (rsoft_odp.c).
 *
 * Invariant: the bits determine what is counted and when pages are populated, never what is
 * accessed. They are set and cleared with atomics, by any thread: lcores that execute requests,
 * control calls, and the reader of page events. A table is freed with the translation of its MR,
 * after the grace period of that. It is memory of this process, like the pages it describes.
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

/* Tables that are not is_guarded; atomic. */
extern uint32_t rsoft_odp_nb_unguarded;

/* Whether one of them covers a byte of [addr, addr + length). */
bool rsoft_odp_is_unguarded(uint64_t addr, uint64_t length);

/* Whether the kernel supports ODP with the arguments of the device. */
bool rsoft_odp_is_supported(const struct rsoft_dev *dev);

/* Capabilities for rmem_dev_info_get(). */
void rsoft_odp_caps(const struct rsoft_dev *dev, struct rmem_odp_caps *caps);

/* A table for a range, or an implicit one for NULL and SIZE_MAX; -errno with a log line. */
int rsoft_odp_alloc(struct rsoft_dev *dev, void *addr, size_t length, uint32_t access,
		struct rsoft_odp **odp);
void rsoft_odp_free(struct rsoft_odp *odp);

/* Whether an MR with a table can have other rights; -errno with a log line. */
int rsoft_odp_check_access(const struct rsoft_odp *odp, uint32_t access);

/* Execute an advice (enum rmem_mr_advice) on some pages; false: some are not mapped. */
bool rsoft_odp_prefetch(struct rsoft_odp *odp, uint64_t first, uint64_t nb, int advice);

/* A request is about to access a range; the slow part of rsoft_odp_open(). */
bool rsoft_odp_fault(struct rsoft_odp *odp, uint64_t addr, uint64_t length, bool is_write);

/* Count a failed copy; returns its enum rsoft_side. */
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
 * Fault in the pages of a range for need; false: an access error. A key is valid for the range, so
 * the table covers it.
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
 * Copy between ranges that passed rsoft_odp_open(), at least one of them of an MR with a table; the
 * table of the other is NULL. An enum rsoft_side.
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
