/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Pinning; see rsoft_pin.h. */

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
#include <sys/resource.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_log.h>

#include "rsoft_pin.h"
#include "rsoft_profile.h"
#include "rsoft_segs.h"

/* Locks may use 1 / RSOFT_PIN_MAPS_SHARE of the mappings that the kernel permits. */
#define RSOFT_PIN_MAPS_SHARE 2

/* How an MR is pinned. */
enum rsoft_pin_how {
	RSOFT_PIN_NONE = 0,
	RSOFT_PIN_LOCKED,         /* counted in segments, except hugepages of EAL */
	RSOFT_PIN_HUGE,           /* all of it is hugepages, which are never swapped */
	RSOFT_PIN_CHARGED = 0x80, /* a flag: counted as the kernel counts for a NIC */
};

static struct {
	pthread_mutex_t lock; /* of all below */
	struct rsoft_seg *segs;
	uint64_t nb_bytes;   /* locked by us */
	uint64_t nb_runs;    /* number of separate ranges of them */
	uint64_t nb_charged; /* bytes of all MRs of devices with a profile, hugepages too */
} rsoft_pins = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A number after a word at the start of a line of a file, or a default. */
static uint64_t
pin_read(const char *path, const char *word, uint64_t otherwise)
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

/* Maximum number of separate ranges; each splits a mapping in up to three. */
static uint64_t
pin_max_runs(void)
{
	static uint64_t max_runs;

	if (max_runs == 0)
		max_runs = pin_read("/proc/sys/vm/max_map_count", "", 65530) / 2 /
				RSOFT_PIN_MAPS_SHARE;
	return max_runs;
}

/* End of the mapping that holds a byte; where that is not known, of its page. */
static uintptr_t
pin_mapping_end(uintptr_t at)
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

/* Whether some of it is locked: msync() with MS_INVALIDATE fails only then. */
static bool
pin_is_locked(uintptr_t first, uintptr_t end)
{
	return msync((void *)first, end - first, MS_ASYNC | MS_INVALIDATE) != 0 && errno == EBUSY;
}

/* Number of ends of a segment without an adjacent segment. */
static uint64_t
pin_open_ends(const struct rsoft_seg *seg)
{
	const struct rsoft_seg *before = rsoft_segs_find(rsoft_pins.segs, seg->first - 1);
	const struct rsoft_seg *behind = rsoft_segs_find(rsoft_pins.segs, seg->end);
	uint64_t nb = 2;

	if (before != NULL && before->end == seg->first && before->is_ours)
		nb--;
	if (behind != NULL && behind->first == seg->end && behind->is_ours)
		nb--;
	return nb;
}

/* Add a segment that this driver locked to the sums, or (sign -1) subtract it. */
static void
pin_sum(const struct rsoft_seg *seg, int sign)
{
	rsoft_pins.nb_bytes += (uint64_t)sign * (seg->end - seg->first);
	rsoft_pins.nb_runs += (uint64_t)sign * (pin_open_ends(seg) - 1);
}

/* Split the segment at an address, if there is one; false: no memory. */
static bool
pin_cut(uintptr_t at)
{
	struct rsoft_seg *behind, *seg = rsoft_segs_find(rsoft_pins.segs, at);

	if (seg == NULL || seg->first >= at)
		return true;
	behind = rsoft_segs_add(&rsoft_pins.segs, at, seg->end);
	if (behind == NULL)
		return false;
	behind->nb_pins = seg->nb_pins;
	behind->is_ours = seg->is_ours;
	seg->end = at;
	return true;
}

/* Lock a segment that is in the tree; 0, or a positive errno. */
static int
pin_lock(struct rsoft_seg *seg, int flags)
{
	int error = 0;

	pin_sum(seg, 1);
	seg->is_ours = true;
	if (rsoft_pins.nb_runs > pin_max_runs())
		error = EMFILE;
	else if (mlock2((void *)seg->first, seg->end - seg->first, flags) != 0)
		error = errno;
	if (error != 0) {
		pin_sum(seg, -1);
		rsoft_segs_remove(&rsoft_pins.segs, seg);
	}
	return error;
}

/*
 * Pin the start of a gap between segments, up to where memory that is not locked meets memory that
 * the program locked. 0, or a positive errno.
 */
static int
pin_gap(uintptr_t first, uintptr_t end, int flags, struct rsoft_seg **seg)
{
	bool is_locked = pin_is_locked(first, end);

	if (is_locked && end - first > (uintptr_t)sysconf(_SC_PAGESIZE)) {
		/* A mapping is locked as a whole. */
		end = RTE_MIN(end, pin_mapping_end(first));
		is_locked = pin_is_locked(first, end);
	}
	*seg = rsoft_segs_add(&rsoft_pins.segs, first, end);
	if (*seg == NULL)
		return ENOMEM;
	(*seg)->nb_pins = 1;
	return is_locked ? 0 : pin_lock(*seg, flags);
}

/* Remove one pin from the segments of [at, end); false: some could not be unlocked. */
static bool
pin_drop(uintptr_t at, uintptr_t end)
{
	struct rsoft_seg *seg;
	bool is_good = true;

	while (at < end) {
		seg = rsoft_segs_find(rsoft_pins.segs, at);
		at = seg->end;
		if (--seg->nb_pins != 0)
			continue;
		if (seg->is_ours) {
			if (munlock((void *)seg->first, seg->end - seg->first) != 0)
				is_good = false;
			pin_sum(seg, -1);
		}
		rsoft_segs_remove(&rsoft_pins.segs, seg);
	}
	return is_good;
}

/* Add one pin to whole pages; 0, or a positive errno with no change. */
static int
pin_add(uintptr_t first, uintptr_t end, int flags)
{
	struct rsoft_seg *seg;
	uintptr_t at = first;
	int error;

	if (!pin_cut(first) || !pin_cut(end))
		return ENOMEM;
	for (; at < end; at = seg->end) {
		seg = rsoft_segs_find(rsoft_pins.segs, at);
		if (seg != NULL && seg->first <= at) {
			seg->nb_pins++;
			continue;
		}
		error = pin_gap(at, seg != NULL ? RTE_MIN(seg->first, end) : end, flags, &seg);
		if (error != 0) {
			pin_drop(first, at);
			return error;
		}
	}
	return 0;
}

/* Whether a range is all hugepages of EAL. The result does not depend on free pages. */
static bool
pin_is_eal_huge(const struct iovec *range)
{
	return rmem_pages_eal_size(range) > (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Unpin the first of several ranges. */
static bool
pin_drop_ranges(const struct iovec *iov, uint32_t nb_iov)
{
	uintptr_t first, end;
	bool is_good = true;
	uint32_t i;

	for (i = 0; i < nb_iov; i++) {
		if (pin_is_eal_huge(&iov[i]))
			continue;
		rmem_pages_of(&iov[i], &first, &end);
		if (!pin_drop(first, end))
			is_good = false;
	}
	return is_good;
}

/* Pin all of several ranges; 0, or a positive errno with no change. */
static int
pin_add_ranges(const struct iovec *iov, uint32_t nb_iov, int flags)
{
	uintptr_t first, end;
	int error = 0;
	uint32_t i;

	for (i = 0; i < nb_iov && error == 0; i++) {
		if (pin_is_eal_huge(&iov[i]))
			continue;
		rmem_pages_of(&iov[i], &first, &end);
		error = pin_add(first, end, flags);
	}
	if (error != 0)
		pin_drop_ranges(iov, i - 1);
	return error;
}

/*
 * Flags of mlock2(). Pages that were just populated for writing are locked without another pass
 * over them. Those populated for reading may be the zero page, which mlock() replaces.
 */
static int
pin_flags(uint32_t access)
{
	return (access & RMEM_ACCESS_LOCAL_WRITE) && rmem_pages_can_populate() ? MLOCK_ONFAULT : 0;
}

/* Bytes of all pages of the ranges. */
static uint64_t
pin_bytes(const struct iovec *iov, uint32_t nb_iov)
{
	uintptr_t first, end;
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < nb_iov; i++) {
		rmem_pages_of(&iov[i], &first, &end);
		bytes += end - first;
	}
	return bytes;
}

/*
 * Count an MR as the kernel does for a NIC: each MR in full, however many share its pages, and
 * hugepages too. 0 or ENOMEM.
 */
static int
pin_charge(const struct iovec *iov, uint32_t nb_iov)
{
	uint64_t bytes = pin_bytes(iov, nb_iov);

	if (rsoft_pins.nb_charged + bytes > rmem_pages_lock_limit())
		return ENOMEM;
	rsoft_pins.nb_charged += bytes;
	return 0;
}

/* Log the limit exceeded, the numbers, and the remedy. */
static void
pin_tell(uint32_t level, int error, const struct iovec *iov, uint32_t nb_iov)
{
	uint64_t used = 1024 * pin_read("/proc/self/status", "VmLck:", 0);
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	uint64_t needed = pin_bytes(iov, nb_iov);

	pthread_mutex_lock(&rsoft_pins.lock);
	used = RTE_MAX(used, rsoft_pins.nb_charged);
	pthread_mutex_unlock(&rsoft_pins.lock);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (error == EMFILE)
		RMEM_LOG_AT(level, rsoft_logtype, "rmem_soft",
				"MR: not pinned: %" PRIu64 " bytes (%" PRIu64
				" separate ranges are pinned, half of vm.max_map_count: raise it, or register adjacent memory)",
				needed, pin_max_runs());
	else if (limit.rlim_cur != RLIM_INFINITY && used + needed > limit.rlim_cur)
		RMEM_LOG_AT(level, rsoft_logtype, "rmem_soft",
				"MR: not pinned: %" PRIu64 " bytes (RLIMIT_MEMLOCK is %" PRIu64
				", of which %" PRIu64
				" are used: raise it with ulimit -l or in /etc/security/limits.conf, or give the process CAP_IPC_LOCK)",
				needed, (uint64_t)limit.rlim_cur, used);
	else
		RMEM_LOG_AT(level, rsoft_logtype, "rmem_soft",
				"MR: not pinned: %" PRIu64 " bytes: %s", needed, strerror(error));
}

int
rsoft_pin(struct rsoft_dev *dev, uint32_t access, const struct iovec *iov, uint32_t nb_iov,
		uint8_t *pin)
{
	uint8_t charged = 0;
	int error = 0;

	*pin = RSOFT_PIN_NONE;
	if (dev->args.pin == RSOFT_PIN_ARG_OFF || (access & RMEM_ACCESS_ON_DEMAND))
		return 0;
	if (access & RMEM_ACCESS_HUGETLB) {
		*pin = RSOFT_PIN_HUGE;
		return 0;
	}
	pthread_mutex_lock(&rsoft_pins.lock);
	if (rsoft_has_profile(dev)) {
		charged = RSOFT_PIN_CHARGED;
		error = pin_charge(iov, nb_iov);
	}
	if (error == 0) {
		error = pin_add_ranges(iov, nb_iov, pin_flags(access));
		if (error != 0 && charged != 0)
			rsoft_pins.nb_charged -= pin_bytes(iov, nb_iov);
	}
	pthread_mutex_unlock(&rsoft_pins.lock);
	if (error == 0) {
		*pin = RSOFT_PIN_LOCKED | charged;
		return 0;
	}
	if (dev->args.pin == RSOFT_PIN_ARG_REQUIRE) {
		pin_tell(RTE_LOG_ERR, error, iov, nb_iov);
		return -ENOMEM;
	}
	if (__atomic_exchange_n(&dev->has_told_pin, 1, __ATOMIC_RELAXED) == 0)
		pin_tell(RTE_LOG_WARNING, error, iov, nb_iov);
	return 0;
}

int
rsoft_unpin(uint8_t pin, const struct iovec *iov, uint32_t nb_iov)
{
	bool is_good;

	if ((pin & ~RSOFT_PIN_CHARGED) != RSOFT_PIN_LOCKED)
		return 0;
	pthread_mutex_lock(&rsoft_pins.lock);
	if (pin & RSOFT_PIN_CHARGED)
		rsoft_pins.nb_charged -= pin_bytes(iov, nb_iov);
	is_good = pin_drop_ranges(iov, nb_iov);
	pthread_mutex_unlock(&rsoft_pins.lock);
	return is_good ? 0 : -EFAULT;
}

void
rsoft_pin_dump(const struct rsoft_dev *dev, FILE *f)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	uint64_t nb_bytes, nb_runs;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	pthread_mutex_lock(&rsoft_pins.lock);
	nb_bytes = rsoft_pins.nb_bytes;
	nb_runs = rsoft_pins.nb_runs;
	pthread_mutex_unlock(&rsoft_pins.lock);
	fprintf(f,
			"  pin=%s; locked by all soft devices: %" PRIu64 " bytes in %" PRIu64
			" stretches",
			rsoft_pin_arg_words[dev->args.pin], nb_bytes, nb_runs);
	if (limit.rlim_cur == RLIM_INFINITY)
		fprintf(f, "; no RLIMIT_MEMLOCK\n");
	else
		fprintf(f, "; RLIMIT_MEMLOCK %" PRIu64 "\n", (uint64_t)limit.rlim_cur);
}
