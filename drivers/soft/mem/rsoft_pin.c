/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Pinning; see rsoft_pin.h. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_log.h>

#include "rsoft_mlock.h"
#include "rsoft_pin.h"
#include "../base/rsoft_profile.h"

const char *const rsoft_pin_arg_words[RSOFT_PIN_ARG_NB] = {"auto", "require", "off", "lock"};

/* How an MR is pinned. */
enum rsoft_pin_how {
	RSOFT_PIN_NONE = 0,
	RSOFT_PIN_COUNTED, /* except hugepages, which are never swapped */
	RSOFT_PIN_ALL,     /* counted with hugepages, as by a NIC */
	RSOFT_PIN_LOCKED,  /* with mlock(), except hugepages of EAL */
	RSOFT_PIN_HUGE,    /* only hugepages; not counted */
};

/* The limit is read again after so many counted bytes, because reading it costs two system
 * calls. */
#define RSOFT_PIN_STEP (UINT64_C(256) << 10)

static struct {
	uint64_t counted; /* bytes of MRs of this process */
	uint64_t allowed; /* the counted bytes that the limit permitted when it was read */
} pins;

/* Bytes of the ranges that are counted. */
static uint64_t
pin_bytes(uint8_t pin, const struct iovec *iov, uint32_t nb_iov)
{
	uintptr_t first, end;
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < nb_iov; i++) {
		if (pin != RSOFT_PIN_ALL && rsoft_mlock_is_huge(&iov[i]))
			continue;
		rmem_pages_of(&iov[i], &first, &end);
		bytes += end - first;
	}
	return bytes;
}

/*
 * Whether a sum of bytes is within the limit. A lowered limit is noticed when a sum exceeds
 * pins.allowed, which is at most RSOFT_PIN_STEP above the largest sum before.
 */
static bool
pin_is_allowed(uint64_t sum)
{
	uint64_t limit;

	if (likely(sum <= __atomic_load_n(&pins.allowed, __ATOMIC_RELAXED)))
		return true;
	limit = rmem_pages_lock_limit();
	__atomic_store_n(&pins.allowed, RTE_MIN(limit, sum + RSOFT_PIN_STEP), __ATOMIC_RELAXED);
	return sum <= limit;
}

/* Count bytes, unless they exceed the limit: ENOMEM. */
static int
pin_count(uint64_t bytes)
{
	uint64_t counted = __atomic_load_n(&pins.counted, __ATOMIC_RELAXED);

	do {
		if (!pin_is_allowed(counted + bytes))
			return ENOMEM;
	} while (!__atomic_compare_exchange_n(&pins.counted, &counted, counted + bytes, true,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}

/* Log the exceeded limit, with numbers and remedy. */
static void
pin_log(const struct rsoft_dev *dev, int error, uint64_t needed)
{
	uint32_t level = dev->args.pin == RSOFT_PIN_ARG_AUTO ? RTE_LOG_WARNING : RTE_LOG_ERR;
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	uint64_t used = __atomic_load_n(&pins.counted, __ATOMIC_RELAXED);
	struct rsoft_mlock_stats stats = {.max_runs = 0};

	if (dev->args.pin == RSOFT_PIN_ARG_LOCK) {
		rsoft_mlock_stats_get(&stats);
		used = stats.used;
	}
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (error == EMFILE)
		RMEM_LOG_AT(level, rsoft_logtype, "rmem_soft",
				"MR: not pinned: %" PRIu64 " bytes (%" PRIu64
				" separate ranges are locked, half of vm.max_map_count: raise it, or register adjacent memory)",
				needed, stats.max_runs);
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

/* How to pin an MR of a device. */
static enum rsoft_pin_how
pin_how(const struct rsoft_dev *dev, uint32_t access)
{
	if (dev->args.pin == RSOFT_PIN_ARG_OFF || (access & RMEM_ACCESS_ON_DEMAND))
		return RSOFT_PIN_NONE;
	if (rsoft_has_profile(dev))
		return RSOFT_PIN_ALL;
	if (access & RMEM_ACCESS_HUGETLB)
		return RSOFT_PIN_HUGE;
	return dev->args.pin == RSOFT_PIN_ARG_LOCK ? RSOFT_PIN_LOCKED : RSOFT_PIN_COUNTED;
}

int
rsoft_pin(struct rsoft_dev *dev, uint32_t access, const struct iovec *iov, uint32_t nb_iov,
		uint8_t *pin)
{
	enum rsoft_pin_how how = pin_how(dev, access);
	uint64_t bytes = pin_bytes(how, iov, nb_iov);
	int error = 0;

	*pin = RSOFT_PIN_NONE;
	if (how == RSOFT_PIN_LOCKED)
		error = rsoft_mlock(access, iov, nb_iov);
	else if (how == RSOFT_PIN_COUNTED || how == RSOFT_PIN_ALL)
		error = pin_count(bytes);
	if (error == 0) {
		*pin = how;
		return 0;
	}
	if (dev->args.pin != RSOFT_PIN_ARG_AUTO) {
		pin_log(dev, error, bytes);
		return -ENOMEM;
	}
	if (__atomic_exchange_n(&dev->is_pin_logged, 1, __ATOMIC_RELAXED) == 0)
		pin_log(dev, error, bytes);
	return 0;
}

int
rsoft_unpin(uint8_t pin, const struct iovec *iov, uint32_t nb_iov)
{
	if (pin == RSOFT_PIN_COUNTED || pin == RSOFT_PIN_ALL)
		__atomic_fetch_sub(&pins.counted, pin_bytes(pin, iov, nb_iov), __ATOMIC_RELAXED);
	else if (pin == RSOFT_PIN_LOCKED && !rsoft_munlock(iov, nb_iov))
		return -EFAULT;
	return 0;
}

void
rsoft_pin_dump(const struct rsoft_dev *dev, FILE *f)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	struct rsoft_mlock_stats stats;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	rsoft_mlock_stats_get(&stats);
	fprintf(f, "  pin=%s; of all soft devices: %" PRIu64 " bytes pinned",
			rsoft_pin_arg_words[dev->args.pin],
			__atomic_load_n(&pins.counted, __ATOMIC_RELAXED));
	if (stats.nb_runs != 0)
		fprintf(f, ", %" PRIu64 " bytes locked in %" PRIu64 " ranges", stats.nb_bytes,
				stats.nb_runs);
	if (limit.rlim_cur == RLIM_INFINITY)
		fprintf(f, "; no RLIMIT_MEMLOCK\n");
	else
		fprintf(f, "; RLIMIT_MEMLOCK %" PRIu64 "\n", (uint64_t)limit.rlim_cur);
}
