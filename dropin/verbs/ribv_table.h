/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The command file of a context: a table of its objects by handle, from which another process
 * imports them (ribv_foreign.c).
 *
 * - The process that created the file, its owner, writes the entries, and never reads them.
 * - Another process reads entries with pread(), so the file can't be truncated below it, and writes
 *   head.is_imported alone.
 * - A process that has imported an object holds a read lock on the byte of the file that has the
 *   number of the handle. The owner destroys no object whose byte is locked. The locks are of a
 *   file description of that process, so they end with it.
 *
 * Invariant: an entry is complete before its type is stored, with release. It is withdrawn before
 * head.is_imported is loaded; an importer stores head.is_imported, and locks the byte, before it
 * reads the entry. So either the owner finds the lock, or the importer no entry.
 */

#ifndef RIBV_TABLE_H
#define RIBV_TABLE_H

#include "ribv.h"

#define RIBV_TABLE_MAGIC UINT64_C(0x316c6274766d6572) /* and the version of the layout */

struct ribv_table_head {
	uint64_t magic;
	uint32_t owner;       /* PID of the owner */
	uint32_t is_imported; /* a process has imported the device; atomic */
	char device[IBV_SYSFS_NAME_MAX];
};

struct ribv_table_entry {
	uint32_t type; /* RIBV_PD, RIBV_MR, RIBV_DM, or RIBV_FREE; atomic */
	uint32_t pd;   /* of an MR: handle of its PD */
	uint32_t lkey, rkey;
	uint64_t addr; /* of an MR: first byte in the owner; 0: no such memory */
	uint64_t length;
	uint64_t iova;
	uint32_t access; /* RMEM_ACCESS_* */
	uint32_t reserved[3];
};

struct ribv_table {
	union {
		struct ribv_table_head head;
		uint8_t page[4096];
	};
	struct ribv_table_entry entries[RIBV_MAX_OBJS];
};

/* Offset in the file of the entry of a handle. */
static inline off_t
ribv_table_offset(uint32_t handle)
{
	return (off_t)(offsetof(struct ribv_table, entries) +
			handle * sizeof(struct ribv_table_entry));
}

#endif /* RIBV_TABLE_H */
