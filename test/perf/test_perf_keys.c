/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory of the key table as the number of keys grows: that of DPDK which a device allocates. */

#include <stdio.h>

#include <rte_lcore.h>

#include "perf_row.h"
#include "test.h"

#define MAX_KEYS (1u << 22)

static size_t
allocated(void)
{
	struct rte_malloc_socket_stats stats;
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < rte_socket_count(); i++) {
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0)
			sum += stats.heap_allocsz_bytes;
	}
	return sum;
}

/* Bytes of a device with so many keys. */
static void
device_bytes(uint32_t nb_keys, size_t *bytes)
{
	size_t before = allocated();
	struct rmem_dev *dev;
	char args[64];

	snprintf(args, sizeof(args), "max_mw=1,max_mr=%u", nb_keys);
	perf_dev_open(args, &dev);
	*bytes = allocated() - before;
	TEST_OK(rmem_dev_close(dev));
}

PERF_TEST(key_bytes)
{
	size_t least, bytes;
	uint32_t nb;

	/* The first device of a process also allocates what all of them share. */
	device_bytes(1, &least);
	device_bytes(1, &least);
	for (nb = 1u << 10; nb <= MAX_KEYS; nb *= 16) {
		char name[32];
		struct perf_row row = PERF_ROW(name, "bytes", "a cache line per key", "none");

		snprintf(name, sizeof(name), "key_bytes_%u", nb);
		device_bytes(nb, &bytes);
		row.baseline = RTE_CACHE_LINE_SIZE;
		row.value = (double)(bytes - least) / nb;
		row.ratio = row.value / row.baseline;
		perf_report(&row);
	}
}
