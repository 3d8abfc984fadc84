/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A hash table of owner << 32 | rkey that grows; see key_log.h. */

#include <stdlib.h>

#include "key_log.h"

/* Where an rkey is, or belongs. */
static uint64_t *
find(const struct key_log *log, uint32_t rkey)
{
	uint32_t at = rkey * UINT32_C(0x9e3779b1) >> 4;

	while (log->entries[at & log->mask] != 0 && (uint32_t)log->entries[at & log->mask] != rkey)
		at++;
	return &log->entries[at & log->mask];
}

static void
grow(struct key_log *log)
{
	const struct key_log old = *log;
	uint32_t i, size = old.entries == NULL ? 1024 : 2 * (old.mask + 1);

	log->entries = calloc(size, sizeof(*log->entries));
	if (log->entries == NULL)
		abort();
	log->mask = size - 1;
	for (i = 0; old.entries != NULL && i <= old.mask; i++) {
		if (old.entries[i] != 0)
			*find(log, (uint32_t)old.entries[i]) = old.entries[i];
	}
	free(old.entries);
}

bool
key_log_add(struct key_log *log, uint32_t rkey, uint32_t owner)
{
	uint64_t *entry;

	if (log->entries == NULL || log->nb > log->mask / 2)
		grow(log);
	entry = find(log, rkey);
	if (*entry != 0)
		return *entry >> 32 == owner;
	*entry = (uint64_t)owner << 32 | rkey;
	log->nb++;
	return true;
}

void
key_log_free(struct key_log *log)
{
	free(log->entries);
	log->entries = NULL;
	log->mask = log->nb = 0;
}
