/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Locked memory; see rsoft_mlock.h.
 *
 * Segments of the address space do not overlap, and are nodes of a treap: a search tree by address,
 * and a heap by random priorities, so its depth is about that of a balanced tree.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mlock2() */
#endif
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "../base/rsoft.h"
#include "../base/rsoft_ids.h"
#include "rsoft_mlock.h"

struct mlock_seg {
	struct mlock_seg *left;
	struct mlock_seg *right;
	uintptr_t first;
	uintptr_t end;
	uint64_t nb_pins;
	uint32_t priority;
	int flags;    /* of mlock2() */
	bool is_ours; /* locked by this driver, not by the program */
};

/* Segment that contains the address, or the next one; NULL if there is none. */
static struct mlock_seg *
segs_find(struct mlock_seg *root, uintptr_t at)
{
	struct mlock_seg *found = NULL;

	while (root != NULL) {
		if (root->end > at) {
			found = root;
			root = root->left;
		} else {
			root = root->right;
		}
	}
	return found;
}

/* Split a tree at an address. */
static void
segs_part(struct mlock_seg *root, uintptr_t at, struct mlock_seg **below, struct mlock_seg **others)
{
	while (root != NULL) {
		if (root->first < at) {
			*below = root;
			below = &root->right;
			root = root->right;
		} else {
			*others = root;
			others = &root->left;
			root = root->left;
		}
	}
	*below = NULL;
	*others = NULL;
}

/* Join two trees in *to; all of the first is below the second. */
static void
segs_join(struct mlock_seg **to, struct mlock_seg *first, struct mlock_seg *second)
{
	while (first != NULL && second != NULL) {
		if (first->priority > second->priority) {
			*to = first;
			to = &first->right;
			first = first->right;
		} else {
			*to = second;
			to = &second->left;
			second = second->left;
		}
	}
	*to = first != NULL ? first : second;
}

/* Add a segment of the heap; NULL when there is no memory. */
static struct mlock_seg *
segs_add(struct mlock_seg **root, uintptr_t first, uintptr_t end)
{
	struct mlock_seg *seg = calloc(1, sizeof(*seg));

	if (seg == NULL)
		return NULL;
	seg->first = first;
	seg->end = end;
	seg->priority = rsoft_random();
	while (*root != NULL && (*root)->priority >= seg->priority)
		root = (*root)->first < first ? &(*root)->right : &(*root)->left;
	segs_part(*root, first, &seg->left, &seg->right);
	*root = seg;
	return seg;
}

/* Remove and free a segment. */
static void
segs_remove(struct mlock_seg **root, struct mlock_seg *seg)
{
	while (*root != seg)
		root = (*root)->first < seg->first ? &(*root)->right : &(*root)->left;
	segs_join(root, seg->left, seg->right);
	free(seg);
}

/* Locks may split up to 1 / MAPS_SHARE of the mappings that the kernel permits. */
#define MAPS_SHARE 2

static struct {
	pthread_mutex_t lock; /* protects the fields below */
	struct mlock_seg *segs;
	uint64_t nb_bytes; /* locked by this driver */
	uint64_t nb_runs;  /* separate ranges of these */
} mlocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Read the number after a word at the start of a line of a file; a default if there is none. */
static uint64_t
mlock_read(const char *path, const char *word, uint64_t otherwise)
{
	char line[256];
	FILE *f;

	f = fopen(path, "r");
	if (f == NULL)
		return otherwise;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, word, strlen(word)) != 0)
			continue;
		otherwise = strtoull(line + strlen(word), NULL, 10);
		break;
	}
	fclose(f);
	return otherwise;
}

/* Maximum number of separate ranges; each may split a mapping into three. */
static uint64_t
mlock_max_runs(void)
{
	static uint64_t max_runs;

	if (max_runs == 0)
		max_runs = mlock_read("/proc/sys/vm/max_map_count", "", 65530) / 2 / MAPS_SHARE;
	return max_runs;
}

/* End of the mapping that contains an address; of its page if that is not known. */
static uintptr_t
mlock_mapping_end(uintptr_t at)
{
	uintptr_t first, last, end = at + (uintptr_t)sysconf(_SC_PAGESIZE);
	char line[4096];
	FILE *f;

	f = fopen("/proc/self/maps", "r");
	if (f == NULL)
		return end;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (rmem_pages_parse(line, &first, &last) && at >= first && at < last) {
			end = last;
			break;
		}
	}
	fclose(f);
	return end;
}

/* Whether a part of a range is locked: only then msync() with MS_INVALIDATE fails. */
static bool
mlock_is_locked(uintptr_t first, uintptr_t end)
{
	return msync((void *)first, end - first, MS_ASYNC | MS_INVALIDATE) != 0 && errno == EBUSY;
}

/* Number of ends of a segment without an adjacent segment. */
static uint64_t
mlock_open_ends(const struct mlock_seg *seg)
{
	const struct mlock_seg *before = segs_find(mlocks.segs, seg->first - 1);
	const struct mlock_seg *behind = segs_find(mlocks.segs, seg->end);
	uint64_t nb = 2;

	if (before != NULL && before->end == seg->first && before->is_ours)
		nb--;
	if (behind != NULL && behind->first == seg->end && behind->is_ours)
		nb--;
	return nb;
}

/* Add a segment locked by this driver to the sums, or subtract it (sign is -1). */
static void
mlock_sum(const struct mlock_seg *seg, int sign)
{
	mlocks.nb_bytes += (uint64_t)sign * (seg->end - seg->first);
	mlocks.nb_runs += (uint64_t)sign * (mlock_open_ends(seg) - 1);
}

/* Split the segment at an address, if any; false: no memory. */
static bool
mlock_cut(uintptr_t at)
{
	struct mlock_seg *behind, *seg = segs_find(mlocks.segs, at);

	if (seg == NULL || seg->first >= at)
		return true;
	behind = segs_add(&mlocks.segs, at, seg->end);
	if (behind == NULL)
		return false;
	behind->nb_pins = seg->nb_pins;
	behind->flags = seg->flags;
	behind->is_ours = seg->is_ours;
	seg->end = at;
	return true;
}

/* Lock a segment of the tree; 0, or a positive errno with no change. */
static int
mlock_lock(struct mlock_seg *seg, int flags)
{
	bool is_locked = seg->is_ours;
	int error = 0;

	if (!is_locked) {
		mlock_sum(seg, 1);
		seg->is_ours = true;
		seg->flags = flags;
		/* Only here: the end of other locks may have split a range that is locked. */
		if (mlocks.nb_runs > mlock_max_runs())
			error = EMFILE;
	}
	if (error == 0 && mlock2((void *)seg->first, seg->end - seg->first, seg->flags) != 0)
		error = errno;
	if (error != 0 && !is_locked) {
		mlock_sum(seg, -1);
		seg->is_ours = false;
	}
	return error;
}

/* End of the first part of a range that is either locked or not; whether it is locked. */
static uintptr_t
mlock_part(uintptr_t first, uintptr_t end, bool *is_locked)
{
	*is_locked = mlock_is_locked(first, end);
	if (*is_locked && end - first > (uintptr_t)sysconf(_SC_PAGESIZE)) {
		/* A mapping is either locked as a whole, or not. */
		end = RTE_MIN(end, mlock_mapping_end(first));
		*is_locked = mlock_is_locked(first, end);
	}
	return end;
}

/*
 * Lock a segment once more, or the start of one that the program had locked: the program may have
 * mapped other memory there since. 0, or a positive errno.
 */
static int
mlock_again(struct mlock_seg *seg, int flags)
{
	bool is_locked = false;

	if (!seg->is_ours && !mlock_cut(mlock_part(seg->first, seg->end, &is_locked)))
		return ENOMEM;
	return is_locked ? 0 : mlock_lock(seg, flags);
}

/*
 * Lock the start of a gap between segments, up to a boundary between memory that the program has
 * locked and memory that it has not. 0, or a positive errno.
 */
static int
mlock_gap(uintptr_t first, uintptr_t end, int flags, struct mlock_seg **seg)
{
	bool is_locked;
	int error;

	end = mlock_part(first, end, &is_locked);
	*seg = segs_add(&mlocks.segs, first, end);
	if (*seg == NULL)
		return ENOMEM;
	(*seg)->nb_pins = 1;
	error = is_locked ? 0 : mlock_lock(*seg, flags);
	if (error != 0)
		segs_remove(&mlocks.segs, *seg);
	return error;
}

/* Remove one lock from the segments of [at, end); false: some could not be unlocked. */
static bool
mlock_drop(uintptr_t at, uintptr_t end)
{
	struct mlock_seg *seg;
	bool is_good = true;

	while (at < end) {
		seg = segs_find(mlocks.segs, at);
		at = seg->end;
		if (--seg->nb_pins != 0)
			continue;
		if (seg->is_ours) {
			if (munlock((void *)seg->first, seg->end - seg->first) != 0)
				is_good = false;
			mlock_sum(seg, -1);
		}
		segs_remove(&mlocks.segs, seg);
	}
	return is_good;
}

/* Add one lock to whole pages; 0, or a positive errno with no change. */
static int
mlock_add(uintptr_t first, uintptr_t end, int flags)
{
	struct mlock_seg *seg;
	uintptr_t at = first;
	int error;

	if (!mlock_cut(first) || !mlock_cut(end))
		return ENOMEM;
	for (; at < end; at = seg->end) {
		seg = segs_find(mlocks.segs, at);
		if (seg != NULL && seg->first <= at) {
			error = mlock_again(seg, flags);
			seg->nb_pins += error == 0;
		} else {
			error = mlock_gap(at, seg != NULL ? RTE_MIN(seg->first, end) : end, flags,
					&seg);
		}
		if (error != 0) {
			mlock_drop(first, at);
			return error;
		}
	}
	return 0;
}

bool
rsoft_mlock_is_huge(const struct iovec *range)
{
	return rmem_pages_eal_size(range) > (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Unlock the first of several ranges. */
static bool
mlock_drop_ranges(const struct iovec *iov, uint32_t nb_iov)
{
	uintptr_t first, end;
	bool is_good = true;
	uint32_t i;

	for (i = 0; i < nb_iov; i++) {
		if (rsoft_mlock_is_huge(&iov[i]))
			continue;
		rmem_pages_of(&iov[i], &first, &end);
		if (!mlock_drop(first, end))
			is_good = false;
	}
	return is_good;
}

/* Lock all of several ranges; 0, or a positive errno with no change. */
static int
mlock_add_ranges(const struct iovec *iov, uint32_t nb_iov, int flags)
{
	uintptr_t first, end;
	int error = 0;
	uint32_t i;

	for (i = 0; i < nb_iov && error == 0; i++) {
		if (rsoft_mlock_is_huge(&iov[i]))
			continue;
		rmem_pages_of(&iov[i], &first, &end);
		error = mlock_add(first, end, flags);
	}
	if (error != 0)
		mlock_drop_ranges(iov, i - 1);
	return error;
}

/*
 * Flags of mlock2(). Pages that were just populated for writing are locked without populating them
 * again. Pages populated for reading may be the zero page, which mlock() replaces.
 */
static int
mlock_flags(uint32_t access)
{
	return (access & RMEM_ACCESS_LOCAL_WRITE) && rmem_pages_can_populate() ? MLOCK_ONFAULT : 0;
}

int
rsoft_mlock(uint32_t access, const struct iovec *iov, uint32_t nb_iov)
{
	int error;

	pthread_mutex_lock(&mlocks.lock);
	error = mlock_add_ranges(iov, nb_iov, mlock_flags(access));
	pthread_mutex_unlock(&mlocks.lock);
	return error;
}

bool
rsoft_munlock(const struct iovec *iov, uint32_t nb_iov)
{
	bool is_good;

	pthread_mutex_lock(&mlocks.lock);
	is_good = mlock_drop_ranges(iov, nb_iov);
	pthread_mutex_unlock(&mlocks.lock);
	return is_good;
}

void
rsoft_mlock_stats_get(struct rsoft_mlock_stats *stats)
{
	stats->used = 1024 * mlock_read("/proc/self/status", "VmLck:", 0);
	pthread_mutex_lock(&mlocks.lock);
	stats->nb_bytes = mlocks.nb_bytes;
	stats->nb_runs = mlocks.nb_runs;
	stats->max_runs = mlock_max_runs();
	pthread_mutex_unlock(&mlocks.lock);
}
