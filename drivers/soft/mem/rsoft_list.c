/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Lists of blocks below a key; see rsoft_list.h. */

#include <rte_malloc.h>

#include "rsoft_list.h"

#define ZEROS ((size_t)16 << 10) /* bytes of zeros for a null MR */

/* Allocate a list of max_entries, with further bytes after them. */
static struct rsoft_list *
list_alloc(const struct rsoft_dev *dev, uint32_t max_entries, size_t further)
{
	struct rsoft_list *list;

	list = rte_zmalloc_socket("rsoft_list",
			sizeof(*list) + max_entries * sizeof(list->entry[0]) + further,
			RTE_CACHE_LINE_SIZE, (int)(int64_t)dev->args.socket);
	if (list == NULL)
		RSOFT_LOG(ERR, "MR: no memory: list of %u entries", max_entries);
	else
		list->dev = dev;
	return list;
}

struct rsoft_list *
rsoft_list_alloc(const struct rsoft_dev *dev, uint32_t max_entries)
{
	return list_alloc(dev, max_entries, 0);
}

/* The zeros are in the memory of the list, because secondary processes map it. */
struct rsoft_list *
rsoft_list_of_zeros(const struct rsoft_dev *dev)
{
	struct rsoft_list *list = list_alloc(dev, 1, ZEROS);

	if (list == NULL)
		return NULL;
	list->entry[0].addr = (uintptr_t)&list->entry[1];
	list->entry[0].length = ZEROS;
	list->round = ZEROS;
	list->nb_entries = 1;
	list->is_memory = 1;
	list->is_null = 1;
	return list;
}

struct rsoft_list *
rsoft_list_of_iov(const struct rsoft_dev *dev, const struct iovec *iov, uint32_t nb_iov)
{
	struct rsoft_list *list = rsoft_list_alloc(dev, nb_iov);
	uint32_t i;

	if (list == NULL)
		return NULL;
	for (i = 0; i < nb_iov; i++) {
		list->entry[i].start = list->round;
		list->entry[i].addr = (uintptr_t)iov[i].iov_base;
		list->entry[i].length = iov[i].iov_len;
		list->round += iov[i].iov_len;
	}
	list->nb_entries = nb_iov;
	list->is_memory = 1;
	return list;
}

void
rsoft_list_free(struct rsoft_list *list)
{
	rte_free(list);
}

uint32_t
rsoft_list_nb_pieces(const struct rsoft_list *list, uint64_t length)
{
	uint64_t nb = length / __atomic_load_n(&list->round, __ATOMIC_RELAXED) *
			__atomic_load_n(&list->nb_entries, __ATOMIC_RELAXED);

	return (uint32_t)RTE_MIN(nb, (uint64_t)UINT32_MAX);
}
