/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Events of unmapped, moved or discarded memory; for drivers and libraries.
 *
 * While there are watchers, one userfaultfd and one control thread serve the process. Watched
 * memory is registered for write protection, which is never enabled, so accesses are not affected.
 * But munmap(), mremap(), madvise() and brk() of watched memory wait until the control thread has
 * read their event. Invariant: the control thread takes no lock and allocates nothing, because a
 * thread that waits for it may hold any lock.
 *
 * The kernel generates the event of a discard (madvise()) before it changes the pages, and all
 * other events afterwards. It generates no event for shmdt(), for shmat() with SHM_REMAP, for
 * truncating a file or punching a hole in it, and for MADV_GUARD_INSTALL.
 */

#ifndef RMEM_UFFD_H
#define RMEM_UFFD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A watcher of memory, in the memory of its owner. */
struct rmem_uffd_watch {
	/**
	 * Process an event of the pages in [start, end).
	 *
	 * The pages were unmapped or moved (is_unmapped), or will be discarded.
	 *
	 * Called for each event of any watched memory, on the thread of events: it must take no
	 * lock, allocate nothing and unmap nothing.
	 */
	void (*event)(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end,
			bool is_unmapped);
	/** Return whether it watches a byte of [start, end); on any thread, with a lock held. */
	bool (*needs)(const struct rmem_uffd_watch *watch, uint64_t start, uint64_t end);
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Steps of the thread of events; atomic, read-only.
 *
 * Odd from before the thread reads an event, which releases the caller of munmap() and so on, until
 * all watchers have processed the event.
 */
extern uint32_t rmem_uffd_pass;

/**
 * Add a watcher.
 *
 * Control path. Safe to call from any thread.
 *
 * @param watch
 *   Watcher. It must not move before rmem_uffd_unwatch().
 *
 * @return
 *   0 on success, otherwise, without a log line:
 *   - -EOPNOTSUPP: the kernel does not permit userfaultfd, or lacks its events.
 *   - -ENOSPC: there are 1024 watchers.
 */
int rmem_uffd_watch(struct rmem_uffd_watch *watch);

/**
 * Remove a watcher.
 *
 * After the return, the functions of the watcher are not called any more, and its memory is no
 * longer watched for it.
 *
 * Control path: waits for the thread of events. Safe to call from any thread.
 *
 * @param watch
 *   Watcher.
 * @param start
 *   First byte of its memory, as in rmem_uffd_del(); all other memory must have been removed.
 * @param end
 *   End of its memory; @p start if it has none.
 */
void rmem_uffd_unwatch(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end);

/**
 * Watch the mapped memory of a range.
 *
 * Control path. Safe to call from any thread, while there is a watcher.
 *
 * @param start
 *   First byte, on a page.
 * @param end
 *   End, on a page. Hugepages must be whole.
 *
 * @return
 *   0 on success, otherwise, without a log line:
 *   - -EBUSY: another userfaultfd watches it.
 *   - -EINVAL: nothing is mapped, part of a hugepage, or memory of a kind that the kernel cannot
 *     watch, such as files before Linux 6.7.
 *   - -ENOMEM: the kernel has no memory, or the process too many mappings.
 *   - -EOPNOTSUPP: all watchers are of the parent of this child of fork().
 *   - -EPERM: a shared mapping of a file that was opened for reading.
 */
int rmem_uffd_add(uint64_t start, uint64_t end);

/**
 * Stop watching memory, unless a watcher needs part of it.
 *
 * Control path. Safe to call from any thread, while there is a watcher.
 *
 * @param start
 *   First byte, on a page.
 * @param end
 *   End, on a page.
 */
void rmem_uffd_del(uint64_t start, uint64_t end);

/** Wait for a step of the thread of events. */
void rmem_uffd_wait(void);

/**
 * Wait until watchers have processed all events of system calls that returned.
 *
 * Fast path: one load, unless an event is being processed. Safe to call from any thread except
 * the thread of events.
 */
static inline void
rmem_uffd_settle(void)
{
	if (__builtin_expect(__atomic_load_n(&rmem_uffd_pass, __ATOMIC_SEQ_CST) & 1, 0))
		rmem_uffd_wait();
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_UFFD_H */
