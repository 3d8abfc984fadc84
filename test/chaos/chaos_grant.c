/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Slots, their patterns, and the table of grants that all threads pick from. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chaos.h"

#define QUIET 0x5c

static struct entry {
	uint32_t lock;
	struct ch_grant grant;
} table[CH_NB_ENTRIES];

static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t
ch_fill_word(uint64_t id)
{
	return mix(2 * id);
}

uint64_t
ch_stamp_word(uint64_t id)
{
	return mix(2 * id + 1);
}

/* Little-endian, as the words of atomics are. */
uint8_t
ch_fill_byte(uint64_t id, size_t pos)
{
	return (uint8_t)(ch_fill_word(id) >> (8 * (pos % 8)));
}

uint8_t
ch_stamp_byte(uint64_t id, size_t pos)
{
	return (uint8_t)(ch_stamp_word(id) >> (8 * (pos % 8)));
}

bool
ch_is_of(uint64_t id, size_t pos, const uint8_t *bytes, size_t length)
{
	uint8_t fill[8], stamp[8];
	size_t i;

	for (i = 0; i < 8; i++) {
		fill[i] = ch_fill_byte(id, i);
		stamp[i] = ch_stamp_byte(id, i);
	}
	for (i = 0; i < length; i++) {
		const size_t at = (pos + i) % 8;

		if (bytes[i] != fill[at] && bytes[i] != stamp[at])
			return false;
	}
	return true;
}

bool
ch_slots_open(struct ch_thread *t)
{
	const size_t size = CH_DATA + 2 * CH_PAGE;
	unsigned int i;

	for (i = 0; i < CH_NB_SLOTS; i++) {
		struct ch_slot *slot = &t->slots[i];
		uint8_t *mem = MAP_FAILED;

		slot->index = t->index * CH_NB_SLOTS + i;
		slot->fd = memfd_create("chaos", MFD_CLOEXEC);
		if (slot->fd >= 0 && ftruncate(slot->fd, (off_t)size) == 0)
			mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd, 0);
		if (mem == MAP_FAILED)
			return CH_FAIL(t, "no memory for a slot");
		memset(mem, QUIET, size);
		slot->mem = mem + CH_PAGE;
	}
	return true;
}

void
ch_slots_close(struct ch_thread *t)
{
	unsigned int i;

	for (i = 0; i < CH_NB_SLOTS; i++) {
		if (t->slots[i].mem == NULL)
			continue;
		munmap(t->slots[i].mem - CH_PAGE, CH_DATA + 2 * CH_PAGE);
		close(t->slots[i].fd);
	}
}

struct ch_slot *
ch_slot_find(struct ch_thread *t)
{
	unsigned int first = ch_below(t, CH_NB_SLOTS), i;

	for (i = 0; i < CH_NB_SLOTS; i++) {
		struct ch_slot *slot = &t->slots[(first + i) % CH_NB_SLOTS];

		if (slot->id == 0)
			return slot;
	}
	return NULL;
}

/* All bytes except those that a key covers. */
static bool
is_quiet(struct ch_thread *t, const struct ch_slot *slot)
{
	const uint8_t *first = slot->mem - CH_PAGE;
	size_t i;

	for (i = 0; i < CH_DATA + 2 * CH_PAGE; i++) {
		if (i >= CH_PAGE && i < CH_PAGE + CH_DATA &&
				slot->is_open[(i - CH_PAGE) / CH_GRAIN])
			continue;
		if (first[i] != QUIET)
			return CH_FAIL(t,
					"slot %u (grant %lu): byte %zd is 0x%02x and no key "
					"covered it",
					slot->index, (unsigned long)slot->id,
					(ssize_t)i - (ssize_t)CH_PAGE, first[i]);
	}
	return true;
}

bool
ch_slot_begin(struct ch_thread *t, struct ch_slot *slot)
{
	if (!is_quiet(t, slot))
		return false;
	slot->id = __atomic_add_fetch(&ch.ids, 1, __ATOMIC_RELAXED);
	slot->entry = slot->index * 2 + (unsigned int)(t->nb_grants % 2);
	t->nb_grants++;
	return true;
}

void
ch_slot_open(struct ch_slot *slot, size_t offset, size_t length)
{
	size_t i;

	for (i = offset; i < offset + length; i += CH_GRAIN) {
		const uint64_t word = ch_fill_word(slot->id);

		slot->is_open[i / CH_GRAIN] = 1;
		memcpy(slot->mem + i, &word, sizeof(word));
	}
}

bool
ch_slot_end(struct ch_thread *t, struct ch_slot *slot)
{
	size_t i;

	ch_set_state(slot, CH_ENDED);
	if (!is_quiet(t, slot))
		return false;
	for (i = 0; i < CH_NB_GRAINS; i++) {
		const uint8_t *bytes = slot->mem + i * CH_GRAIN;

		if (!slot->is_open[i])
			continue;
		if (!ch_is_of(slot->id, 0, bytes, CH_GRAIN))
			return CH_FAIL(t,
					"slot %u: bytes %zu on are not of grant %lu: "
					"0x%016lx, fill 0x%016lx, stamp 0x%016lx",
					slot->index, i * CH_GRAIN, (unsigned long)slot->id,
					*(const unsigned long *)(const void *)bytes,
					(unsigned long)ch_fill_word(slot->id),
					(unsigned long)ch_stamp_word(slot->id));
	}
	memset(slot->mem, QUIET, CH_DATA);
	memset(slot->is_open, 0, sizeof(slot->is_open));
	slot->id = 0;
	return true;
}

void
ch_part(struct ch_thread *t, size_t *offset, size_t *length)
{
	*length = CH_GRAIN * (1 + ch_below(t, CH_NB_GRAINS / 2));
	*offset = CH_GRAIN * ch_below(t, (uint32_t)((CH_DATA - *length) / CH_GRAIN + 1));
}

void
ch_publish(struct ch_thread *t, struct ch_slot *slot, const struct ch_grant *grant)
{
	struct entry *entry = &table[slot->entry];
	uint32_t version;

	ch_note(t, "grant %lu (%s): slot %u rkey 0x%x addr 0x%lx length %u access 0x%x qp %d state %u",
			(unsigned long)slot->id, grant->kind, slot->index, grant->rkey,
			(unsigned long)grant->addr, grant->length, grant->access,
			(int)grant->only_qp, grant->state);
	ch_lock(&entry->lock);
	version = entry->grant.version;
	entry->grant = *grant;
	entry->grant.id = slot->id;
	entry->grant.version = version + 1;
	ch_unlock(&entry->lock);
}

void
ch_set_state(const struct ch_slot *slot, uint32_t state)
{
	struct entry *entry = &table[slot->entry];

	ch_lock(&entry->lock);
	if (entry->grant.id == slot->id && entry->grant.state != state) {
		entry->grant.state = state;
		entry->grant.version++;
	}
	ch_unlock(&entry->lock);
}

bool
ch_claim(unsigned int index, uint64_t id)
{
	struct entry *entry = &table[index];
	bool is_ours = false;

	ch_lock(&entry->lock);
	if (entry->grant.id == id && entry->grant.state == CH_LIVE) {
		entry->grant.state = CH_UNSURE;
		entry->grant.version++;
		is_ours = true;
	}
	ch_unlock(&entry->lock);
	return is_ours;
}

void
ch_read(unsigned int index, struct ch_grant *grant)
{
	struct entry *entry = &table[index];

	ch_lock(&entry->lock);
	*grant = entry->grant;
	ch_unlock(&entry->lock);
}

unsigned int
ch_pick(struct ch_thread *t, struct ch_grant *grant)
{
	unsigned int index = ch_below(t, ch.nb_threads * CH_NB_SLOTS * 2);

	ch_read(index, grant);
	return index;
}
