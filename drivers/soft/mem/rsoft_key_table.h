/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The key table: keys and their owners.
 *
 * A key has 24 bits of index and 8 bits of tag. The low bits of the index are the slot of the
 * table, chosen at random among the free slots. The other bits change with each owner of the slot,
 * in an order that depends on a secret of the device. The first tag is random.
 *
 * Invariant: an index chosen by the device is chosen again only after its slot has had 2^(24 -
 * log2_slots) owners, one for each index. So no tag that requests choose (REG_MR, UMR, BIND_MW)
 * makes a key of an earlier owner valid. A slot that has used all of its indexes is quarantined, in
 * FIFO order, until few slots are free.
 *
 * A requested key may have any value (rsoft_key_hash.h). It uses the slot of its index if that is
 * free, otherwise any other. The index of a requested key counts as used.
 */

#ifndef RSOFT_KEY_TABLE_H
#define RSOFT_KEY_TABLE_H

#include "../base/rsoft.h"

int rsoft_keys_init(struct rsoft_dev *dev, int socket_id);
void rsoft_keys_fini(struct rsoft_dev *dev);

/*
 * Allocate a key for an MR, or for a window if mr is NULL. It has an unused index, and is not valid
 * yet. NULL: all keys are in use.
 */
struct rsoft_key *rsoft_key_alloc(struct rsoft_dev *dev, struct rsoft_mr *mr);

/*
 * Allocate a key with this rkey; it is not valid yet. -EEXIST: the rkey is in use, -ENOSPC: all MRs
 * are in use, or -ENOMEM; with a log line.
 */
int rsoft_key_request(
		struct rsoft_dev *dev, struct rsoft_mr *mr, uint32_t rkey, struct rsoft_key **key);

/* Free a key whose word has lacked VALID for a grace period; may wait for another grace period. */
void rsoft_key_free(struct rsoft_dev *dev, struct rsoft_key *key);

#endif /* RSOFT_KEY_TABLE_H */
