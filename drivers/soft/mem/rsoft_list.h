/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The map of a KIND_LIST key: rounds of entries, each a block of memory or of another key.
 *
 * A list belongs to its MR and follows the rules of its key: it is written only while the key is
 * not VALID, and read in grace sections that loaded the key as VALID, except the fields of walks.
 * The list of an MR over ranges has memory; the list of a null MR has a block of zeros that is
 * never written; the list of an indirect MR has the lkeys of the keys below.
 * rsoft_access() checks all keys that a range needs before any byte is copied; the copy, in the
 * same grace section, finds them unchanged.
 */

#ifndef RSOFT_LIST_H
#define RSOFT_LIST_H

#include "rsoft_key_hash.h"

struct rsoft_list_entry {
	uint64_t start; /* offset in a round: sum of the preceding lengths */
	uint64_t addr;  /* address of the block of round 0 */
	uint64_t length;
	uint64_t step; /* distance between the blocks of two rounds */
	uint32_t lkey; /* unless is_memory */
};

struct rsoft_list {
	const struct rsoft_dev *dev;
	uint64_t round; /* bytes per round */
	uint32_t nb_entries;
	uint8_t is_memory;       /* entries are memory, not keys */
	uint8_t levels;          /* levels of keys below; 0 if is_memory */
	uint8_t is_null;         /* reads return zeros, and writes are discarded */
	uint64_t walk;           /* last walk that visited it; under rsoft_dev::umr_lock */
	struct rsoft_list *next; /* next in that walk; under rsoft_dev::umr_lock */
	struct rsoft_list_entry entry[];
};

/* A position in a list. */
struct rsoft_list_at {
	const struct rsoft_list *list;
	uint64_t round;
	uint64_t done; /* bytes done of the entry's block */
	uint32_t entry;
};

/* Allocate a list; NULL: no memory, with a log line. */
struct rsoft_list *rsoft_list_alloc(const struct rsoft_dev *dev, uint32_t max_entries);
void rsoft_list_free(struct rsoft_list *list);

/* Create a list of one round of memory ranges; NULL as above. */
struct rsoft_list *rsoft_list_of_iov(
		const struct rsoft_dev *dev, const struct iovec *iov, uint32_t nb_iov);

/* Create a list whose rounds all are one block of zeros; NULL as above. */
struct rsoft_list *rsoft_list_of_zeros(const struct rsoft_dev *dev);

/* Number of blocks in the first length bytes of a list. */
uint32_t rsoft_list_nb_pieces(const struct rsoft_list *list, uint64_t length);

/* Rights that a key below needs if the key above is used with these rights. */
static inline uint32_t
rsoft_list_need(uint32_t need)
{
	const uint32_t modifies = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
			RMEM_ACCESS_REMOTE_ATOMIC;

	return ((need & modifies) ? RSOFT_NEED_WRITE : RSOFT_NEED_READ) | (need & RSOFT_PEEK);
}

/* Find the position of a byte, which is before the end of the list. */
static inline void
rsoft_list_seek(const struct rsoft_list *list, uint64_t offset, struct rsoft_list_at *at)
{
	uint32_t half, entry = 0, n = list->nb_entries;

	at->list = list;
	at->round = 0;
	if (offset >= list->round) {
		at->round = offset / list->round;
		offset %= list->round;
	}
	/* Most ranges begin at the start of the list. */
	if (likely(offset < list->entry[0].length))
		n = 1;
	while (n > 1) {
		half = n / 2;
		if (list->entry[entry + half].start <= offset)
			entry += half;
		n -= half;
	}
	at->entry = entry;
	at->done = offset - list->entry[entry].start;
}

/* Advance by n bytes, at most to the end of the block. */
static inline void
rsoft_list_move(struct rsoft_list_at *at, uint64_t n)
{
	at->done += n;
	if (at->done != at->list->entry[at->entry].length)
		return;
	at->done = 0;
	if (++at->entry == at->list->nb_entries) {
		at->entry = 0;
		at->round++;
	}
}

/* Key of an entry; it exists, because it was checked in this section. */
static inline const struct rsoft_key *
rsoft_list_key(const struct rsoft_list *list, const struct rsoft_list_entry *entry)
{
	return rsoft_key_of(list->dev, entry->lkey ^ list->dev->lkey_xor);
}

/* Address of a position: in memory, or of the key below. */
static inline uint64_t
rsoft_list_addr(const struct rsoft_list_at *at)
{
	const struct rsoft_list_entry *entry = &at->list->entry[at->entry];

	return entry->addr + at->round * entry->step + at->done;
}

#endif /* RSOFT_LIST_H */
