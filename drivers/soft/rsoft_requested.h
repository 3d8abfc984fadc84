/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requested keys: the slots of those that have another slot than that of their index,
 * and which indexes they had.
 *
 * Lists by a hash of the rkey, of slots. Written under rsoft_dev::lock; read in a grace section, by
 * a lookup that did not find the key in its slot. Invariant: from rsoft_requested_del() on until a
 * grace period is over, the link of the slot stays unchanged, so that a reader continues in the
 * same list.
 *
 * The index of a requested key has its bit set, until the device would choose that
 * index and passes it. So a key that the device chooses has none of these numbers until its slot
 * has been through all of its indexes.
 */

#ifndef RSOFT_REQUESTED_H
#define RSOFT_REQUESTED_H

#include <stdbool.h>

#include "rsoft.h"

/* Have the table; 0, or -ENOMEM and a line. */
int rsoft_requested_init(struct rsoft_dev *dev);
void rsoft_requested_fini(struct rsoft_dev *dev);

/* A slot has this requested rkey. */
void rsoft_requested_add(struct rsoft_dev *dev, uint32_t slot, uint32_t rkey);

/* It has it no more; only when rsoft_key_at() leads elsewhere. */
void rsoft_requested_del(struct rsoft_dev *dev, uint32_t slot, uint32_t rkey);

/* Whether the device is to pass an index once, or as long as a key of it is in use. */
bool rsoft_requested_pass(struct rsoft_dev *dev, uint32_t index);

/* The key with this rkey, when it is not where rsoft_key_at() leads; else NULL. */
struct rsoft_key *rsoft_requested_find(const struct rsoft_dev *dev, uint32_t rkey);

#endif /* RSOFT_REQUESTED_H */
