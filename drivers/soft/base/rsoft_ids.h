/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Allocator of ids in random order, so that ids can't be predicted. */

#ifndef RSOFT_IDS_H
#define RSOFT_IDS_H

#include <stdbool.h>

#include "rsoft.h"

/* Initialize for the ids 1 to max; all are free if is_full, else none. Return 0 or -ENOMEM. */
int rsoft_ids_init(struct rsoft_ids *ids, uint32_t max, bool is_full, int socket_id);

void rsoft_ids_fini(struct rsoft_ids *ids);

/* Allocate a random free id; 0 if there is none. */
uint32_t rsoft_ids_get(struct rsoft_ids *ids);

/* Note where each free id is, in memory for max numbers that rsoft_ids_fini() frees. */
void rsoft_ids_index(struct rsoft_ids *ids, uint32_t *at);

/* Allocate the given id, after rsoft_ids_index(); false if it is not free. */
bool rsoft_ids_take(struct rsoft_ids *ids, uint32_t id);

/* Free an id. */
void rsoft_ids_put(struct rsoft_ids *ids, uint32_t id);

/* 32 unpredictable bits. */
uint32_t rsoft_random(void);

#endif /* RSOFT_IDS_H */
