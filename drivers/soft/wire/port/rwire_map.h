/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Files of a target's granted memory that the requester has mapped, so that it copies without a
 * system call (rsoft_grant.h, rsoft_gate.h).
 *
 * - A file is mapped when a grant names it for the second time: rwire_maps_find() notes it, and
 *   rwire_maps_update() maps it, read-only until a WRITE needs it.
 * - The kernel provides the descriptor, by pidfd_getfd(2), if it permits this process to ptrace(2)
 *   the target. Device and inode must be those that the target has published, and the file must be
 *   in memory, without a name unless it is of hugepages.
 * - A file is unmapped when the target has no grant for it, with the next copies or checks of the
 *   channel, and when the channel is closed. Each of them unmaps for a millisecond, since it holds
 *   tx_lock: a GiB of 4 KiB pages takes 60 ms.
 *
 * Invariants:
 * - The target writes offsets and ids of grants. Each is loaded once, and the range is within the
 *   mapping, whose size only this process knows.
 * - A mapping is only accessed by rsoft_gate_copy(), while the handler of rsoft_guard.h is
 *   installed: the target may truncate the file.
 * - Threads use a mapping only while a bit of rwire_copy_peer::used is set; it is removed under
 *   tx_lock while none is. All changes are under tx_lock. A child of fork() has no mapping.
 */

#ifndef RWIRE_MAP_H
#define RWIRE_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../mem/rsoft_gate.h"
#include "../../mem/rsoft_grant.h"

/*
 * A file; bases by whether it is writable, NULL: not mapped. The id is stored after the size, the
 * bases when they are mapped; all are atomic.
 */
struct rwire_map {
	uint64_t id; /* 0: none */
	uint64_t size;
	uint64_t released; /* bytes whose pages were released, before it is unmapped */
	uint8_t *base[2];
	bool is_refused[2];
};

struct rwire_maps {
	uint64_t wanted;       /* 2 * id of a file to map, + 1 to write; 0: none; atomic */
	uint64_t ended;        /* rsoft_grants::files_ended at the last check */
	const uint32_t *alive; /* NULL: not mapped */
	uint32_t forks;        /* number of forks that preceded the mappings */
	bool is_guarded;       /* with a reference to the handler of rsoft_guard.h */
	bool is_refused;       /* nothing can be mapped */
	struct rwire_map map[RSOFT_GRANT_FILES];
};

/* A range of a file, as a grant names it. */
struct rwire_map_range {
	uint64_t id;
	uint64_t offset;
	uint64_t length;
};

/* Address of a range; NULL: not mapped yet, or it can't be. */
uint8_t *rwire_maps_find(
		struct rwire_maps *maps, const struct rwire_map_range *range, bool is_written);

/* Set the gate of the target; false: it has ended, or nothing is mapped. */
bool rwire_maps_gate(
		const struct rwire_maps *maps, const uint64_t *sentinel, struct rsoft_gate *gate);

/*
 * Whether the thread of the target that held its word has ended. If the target has not, another
 * thread holds it with the next grant of a file.
 */
bool rwire_maps_are_orphaned(const struct rwire_maps *maps);

/* Whether rwire_maps_update() has something to do. */
static inline bool
rwire_maps_are_old(const struct rwire_maps *maps, const struct rsoft_grants *shared)
{
	return __atomic_load_n(&maps->wanted, __ATOMIC_RELAXED) != 0 ||
			maps->ended != __atomic_load_n(&shared->files_ended, __ATOMIC_RELAXED);
}

/*
 * Map what is wanted, and unmap files without grants. Under tx_lock; is_used: other threads may
 * copy, so nothing is unmapped.
 */
void rwire_maps_update(struct rwire_maps *maps, const struct rsoft_grants *shared, pid_t pid,
		bool is_used);

/* Unmap a part, before rwire_maps_close(); true: that does not take long any more. */
bool rwire_maps_release(struct rwire_maps *maps);

/* Unmap all. */
void rwire_maps_close(struct rwire_maps *maps);

#endif /* RWIRE_MAP_H */
