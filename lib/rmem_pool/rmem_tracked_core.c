/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Owners of the buffers of a tracked mempool: see the invariant in rmem_tracked_priv.h. No function
 * allocates, waits or calls DPDK.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include "rmem_tracked_priv.h"

/* A word with the same byte 8 times. */
#define BYTES(byte) (UINT64_C(0x0101010101010101) * (byte))

/* log2 of a page size with which all addresses are in one page. */
#define MAX_LOG2_PAGE 63

/* Spreads the first searches of lcores over the words. */
#define GOLDEN UINT64_C(0x9e3779b1)

__extension__ typedef unsigned __int128 wide_t;

/* 0x80 in each byte of a word that is 0. */
static inline uint64_t
zero_bytes(uint64_t word)
{
	const uint64_t low = BYTES(0x7f);

	return ~(((word & low) + low) | word | low);
}

/* Position in memory of the byte of the lowest bit of a mask. */
static inline uint32_t
first_byte(uint64_t mask)
{
	uint32_t pos = (uint32_t)__builtin_ctzll(mask) / 8;

#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	return pos;
#else
	return TRACKED_PER_WORD - 1 - pos;
#endif
}

/* Shift of a byte in its word. */
static inline unsigned int
shift_of(uint32_t index)
{
	unsigned int pos = index % TRACKED_PER_WORD;

#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	return 8 * pos;
#else
	return 8 * (TRACKED_PER_WORD - 1 - pos);
#endif
}

static inline uint8_t
owner_of(const struct rmem_tracked *td, uint32_t index)
{
	return __atomic_load_n((uint8_t *)td->words + index, __ATOMIC_RELAXED);
}

/*
 * Store 0 in a byte of this process. Other processes change the word concurrently: CPUs order
 * overlapping accesses of different sizes, on which the queued spinlock of Linux relies, too. The
 * thread sanitizer does not model this.
 */
#ifdef __SANITIZE_THREAD__
static inline void
store_free(struct rmem_tracked *td, uint32_t index)
{
	__atomic_fetch_and(&td->words[index / TRACKED_PER_WORD],
			~(UINT64_C(0xff) << shift_of(index)), __ATOMIC_RELEASE);
}
#else
static inline void
store_free(struct rmem_tracked *td, uint32_t index)
{
	__atomic_store_n((uint8_t *)td->words + index, 0, __ATOMIC_RELEASE);
}
#endif

/* Replace the owner of a buffer, if `from` is its owner. */
static bool
swap_owner(struct rmem_tracked *td, uint32_t index, uint8_t from, uint8_t to)
{
	uint64_t *at = &td->words[index / TRACKED_PER_WORD];
	uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
	unsigned int shift = shift_of(index);

	do {
		if ((uint8_t)(word >> shift) != from)
			return false;
	} while (!__atomic_compare_exchange_n(at, &word, word ^ (uint64_t)(from ^ to) << shift,
			true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return true;
}

static inline uint32_t
next_word(const struct rmem_tracked *td, uint32_t w)
{
	return w + 1 == td->nb_words ? 0 : w + 1;
}

static inline struct rmem_tracked_hint *
hint_of(struct rmem_tracked *td, unsigned int lcore_id)
{
	return &td->hints[RTE_MIN(lcore_id, (unsigned int)RTE_MAX_LCORE)];
}

static inline uint32_t
load_hint(const struct rmem_tracked *td, const uint32_t *hint)
{
	uint32_t w = __atomic_load_n(hint, __ATOMIC_RELAXED);

	return likely(w < td->nb_words) ? w : 0;
}

static inline void
store_hint(uint32_t *hint, uint32_t w)
{
	__atomic_store_n(hint, w, __ATOMIC_RELAXED);
}

size_t
rmem_tracked_mem_size(uint32_t size)
{
	size_t nb_words = ((size_t)size + TRACKED_PER_WORD - 1) / TRACKED_PER_WORD;

	return sizeof(struct rmem_tracked) +
			RTE_ALIGN_CEIL(nb_words * sizeof(uint64_t), (size_t)RTE_CACHE_LINE_SIZE) +
			size * sizeof(void *);
}

void
rmem_tracked_init(struct rmem_tracked *td, uint32_t size)
{
	uint32_t i;

	td->size = size;
	td->nb_words = (uint32_t)(((uint64_t)size + TRACKED_PER_WORD - 1) / TRACKED_PER_WORD);
	td->words = (uint64_t *)(td + 1);
	td->objs = (void **)((uint8_t *)td->words +
			RTE_ALIGN_CEIL(td->nb_words * sizeof(uint64_t),
					(size_t)RTE_CACHE_LINE_SIZE));
	memset(td->words, TRACKED_NO_BUF, td->nb_words * sizeof(uint64_t));
	for (i = 0; i < RTE_DIM(td->hints); i++) {
		td->hints[i].next = (uint32_t)(i * GOLDEN % td->nb_words);
		td->hints[i].recent = td->hints[i].next;
	}
}

static int
compare_objs(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Find how to compute an index from an address: the buffers have one distance, in each page or in
 * all of the memory. Buffers without such a layout are found with a binary search.
 */
static void
find_layout(struct rmem_tracked *td)
{
	uint64_t stride = 1, page = 0;
	uint32_t i = 1;

	td->base = (uintptr_t)td->objs[0];
	if (td->size > 1)
		stride = (uintptr_t)td->objs[1] - td->base;
	while (i < td->size && (uintptr_t)td->objs[i] - td->base == i * stride)
		i++;
	if (i < td->size)
		page = (uintptr_t)td->objs[i] - td->base;
	td->reciprocal = UINT64_MAX / stride + 1;
	td->per_page = i;
	td->log2_page = MAX_LOG2_PAGE;
	if (page != 0 && (page & (page - 1)) == 0)
		td->log2_page = (uint32_t)__builtin_ctzll(page);
	td->page_mask = (UINT64_C(1) << td->log2_page) - 1;
}

bool
rmem_tracked_add(struct rmem_tracked *td, void *obj)
{
	uint32_t i;

	if (td->nb_objs == td->size)
		return false;
	td->objs[td->nb_objs++] = obj;
	if (td->nb_objs != td->size)
		return true;
	qsort(td->objs, td->size, sizeof(td->objs[0]), compare_objs);
	find_layout(td);
	for (i = 0; i < td->size; i++)
		store_free(td, i);
	return true;
}

static uint32_t
search(const struct rmem_tracked *td, const void *obj)
{
	uint32_t low = 0, high = td->size;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if ((uintptr_t)td->objs[mid] < (uintptr_t)obj)
			low = mid + 1;
		else
			high = mid;
	}
	return low < td->size && td->objs[low] == obj ? low : TRACKED_NO_INDEX;
}

static inline uint32_t
index_of(const struct rmem_tracked *td, const void *obj)
{
	uint64_t offset = (uintptr_t)obj - td->base;
	uint64_t index = (uint64_t)((wide_t)(offset & td->page_mask) * td->reciprocal >> 64) +
			(offset >> td->log2_page) * td->per_page;

	if (likely(index < td->size && td->objs[index] == obj))
		return (uint32_t)index;
	return search(td, obj);
}

/* Select the n lowest bits of a mask that are set. */
static inline uint64_t
lowest(uint64_t mask, unsigned int n)
{
	uint64_t rest = mask;

	while (n-- > 0)
		rest &= rest - 1;
	return mask ^ rest;
}

/* Get up to n buffers of a word. */
static inline unsigned int
get_from(struct rmem_tracked *td, uint32_t w, void **objs, unsigned int n, uint8_t process)
{
	uint64_t word = __atomic_load_n(&td->words[w], __ATOMIC_RELAXED), mask;
	void *const *from = &td->objs[(size_t)w * TRACKED_PER_WORD];
	unsigned int nb;

	do {
		mask = zero_bytes(word);
		if (mask == 0)
			return 0;
		nb = (unsigned int)__builtin_popcountll(mask);
		if (nb > n) {
			mask = lowest(mask, n);
			nb = n;
		}
	} while (!__atomic_compare_exchange_n(&td->words[w], &word, word | (mask >> 7) * process,
			true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	if (likely(nb == TRACKED_PER_WORD)) {
		memcpy(objs, from, TRACKED_PER_WORD * sizeof(*from));
		return nb;
	}
	for (; mask != 0; mask &= mask - 1)
		*objs++ = from[first_byte(mask)];
	return nb;
}

int
rmem_tracked_get(struct rmem_tracked *td, void **objs, unsigned int n, uint8_t process,
		unsigned int lcore_id)
{
	struct rmem_tracked_hint *hint = hint_of(td, lcore_id);
	uint32_t i, last, w = load_hint(td, &hint->recent);
	unsigned int nb, got = 0;

	if (unlikely(n > td->size))
		return -ENOBUFS;
	/* Try the buffers put back last first: their lines are most likely in the CPU's caches. */
	for (last = w; got < n; w = next_word(td, w)) {
		nb = get_from(td, w, &objs[got], n - got, process);
		if (nb == 0)
			break;
		got += nb;
		last = w;
	}
	store_hint(&hint->recent, last);
	if (likely(got == n))
		return 0;
	w = load_hint(td, &hint->next);
	for (i = 0; i < td->nb_words && got < n; i++) {
		got += get_from(td, w, &objs[got], n - got, process);
		last = w;
		w = next_word(td, w);
	}
	store_hint(&hint->next, last);
	if (likely(got == n))
		return 0;
	rmem_tracked_put(td, objs, got, process, lcore_id);
	return -ENOBUFS;
}

/* Put back a buffer. Return false if it is free. */
static inline bool
put_one(struct rmem_tracked *td, uint32_t index, uint8_t process)
{
	uint8_t owner = owner_of(td, index);

	if (likely(owner == process && owner != 0)) {
		store_free(td, index);
		return true;
	}
	/* Record the other process as owner: if it dies, the reaper frees the buffer. */
	return owner != 0 && swap_owner(td, index, owner, 0);
}

/*
 * Put back the 8 buffers of a word, if objs has exactly these, in order, and this process owns
 * them.
 */
static inline bool
put_word(struct rmem_tracked *td, uint32_t index, void *const *objs, uint8_t process)
{
	uint64_t *word = &td->words[index / TRACKED_PER_WORD];
	void *const *from = &td->objs[index];
	uintptr_t differ = 0;
	unsigned int i;

	if (index % TRACKED_PER_WORD != 0 ||
			__atomic_load_n(word, __ATOMIC_RELAXED) != BYTES(process))
		return false;
	for (i = 0; i < TRACKED_PER_WORD; i++)
		differ |= (uintptr_t)objs[i] ^ (uintptr_t)from[i];
	if (differ != 0)
		return false;
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	return true;
}

unsigned int
rmem_tracked_put(struct rmem_tracked *td, void *const *objs, unsigned int n, uint8_t process,
		unsigned int lcore_id)
{
	unsigned int i = 0, nb_bad = 0;
	uint32_t index, first = TRACKED_NO_INDEX;

	while (i < n) {
		index = index_of(td, objs[i]);
		if (unlikely(index == TRACKED_NO_INDEX)) {
			nb_bad++;
			i++;
			continue;
		}
		if (first == TRACKED_NO_INDEX)
			first = index;
		if (n - i >= TRACKED_PER_WORD && process != 0 &&
				put_word(td, index, &objs[i], process)) {
			i += TRACKED_PER_WORD;
			continue;
		}
		nb_bad += !put_one(td, index, process);
		i++;
	}
	if (likely(first != TRACKED_NO_INDEX))
		store_hint(&hint_of(td, lcore_id)->recent, first / TRACKED_PER_WORD);
	return nb_bad;
}

bool
rmem_tracked_take(struct rmem_tracked *td, const void *obj, uint8_t process, uint8_t from)
{
	uint32_t index = index_of(td, obj);
	uint8_t owner;

	if (index == TRACKED_NO_INDEX)
		return false;
	do {
		owner = owner_of(td, index);
		if (owner == 0 || (from != 0 && owner != from))
			return false;
	} while (!swap_owner(td, index, owner, process));
	return true;
}

/*
 * Move the buffers of a word from one owner to another. Return 0x80 in the bytes of the moved
 * buffers.
 */
static uint64_t
move_word(struct rmem_tracked *td, uint32_t w, uint8_t from, uint8_t to)
{
	uint64_t word = __atomic_load_n(&td->words[w], __ATOMIC_RELAXED), mask;

	do {
		mask = zero_bytes(word ^ BYTES(from));
	} while (mask != 0 &&
			!__atomic_compare_exchange_n(&td->words[w], &word,
					word ^ (mask >> 7) * (uint64_t)(from ^ to), true,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return mask;
}

uint32_t
rmem_tracked_reap_from(struct rmem_tracked *td, uint8_t process, rmem_tracked_reset_t reset)
{
	uint8_t to = reset == NULL ? 0 : TRACKED_PRIMARY;
	uint32_t w, index, nb = 0;
	uint64_t mask;

	for (w = 0; w < td->nb_words; w++) {
		mask = move_word(td, w, process, to);
		nb += (uint32_t)__builtin_popcountll(mask);
		/*
		 * The primary process owns a buffer until it is reset, so that no other process
		 * gets it.
		 */
		for (; reset != NULL && mask != 0; mask &= mask - 1) {
			index = w * TRACKED_PER_WORD + first_byte(mask);
			reset(td, td->objs[index]);
			store_free(td, index);
		}
	}
	return nb;
}

int
rmem_tracked_owner_of(const struct rmem_tracked *td, const void *obj)
{
	uint32_t index = index_of(td, obj);

	return index == TRACKED_NO_INDEX ? -1 : owner_of(td, index);
}

uint32_t
rmem_tracked_count_free(const struct rmem_tracked *td)
{
	uint32_t w, nb = 0;

	for (w = 0; w < td->nb_words; w++)
		nb += (uint32_t)__builtin_popcountll(
				zero_bytes(__atomic_load_n(&td->words[w], __ATOMIC_RELAXED)));
	return nb;
}

void
rmem_tracked_count(const struct rmem_tracked *td, uint32_t *nb)
{
	uint8_t owner;
	uint32_t i;

	memset(nb, 0, (TRACKED_MAX_OWNER + 1) * sizeof(*nb));
	for (i = 0; i < td->size; i++) {
		owner = owner_of(td, i);
		if (owner <= TRACKED_MAX_OWNER)
			nb[owner]++;
	}
}

const char *
rmem_tracked_find_error(const struct rmem_tracked *td)
{
	uint32_t i;

	if (td->nb_objs != td->size)
		return "number of buffers with an owner";
	for (i = 0; i < td->nb_words * TRACKED_PER_WORD; i++) {
		if ((owner_of(td, i) == TRACKED_NO_BUF) != (i >= td->size))
			return "owner";
		if (i < td->size && index_of(td, td->objs[i]) != i)
			return "index of a buffer";
	}
	return NULL;
}
