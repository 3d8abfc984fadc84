/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The command file of a context: a table of its objects by handle, from which another process
 * imports them (ribv_import.c).
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

#define RIBV_TABLE_MAGIC UINT64_C(0x326c6274766d6572) /* and the version of the layout */

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
	/* Of an MR: first byte in the owner, 0: no such memory; with dm: offset in it. Of device
	 * memory: inode of its file, 0: no file. */
	uint64_t addr;
	uint64_t length;
	uint64_t iova;   /* of device memory: device of its file */
	uint32_t access; /* RMEM_ACCESS_* */
	uint32_t dm;     /* of an MR: handle of its device memory; 0: other memory */
	uint32_t reserved[2];
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

/* ribv_owner.c: memory of the owner, which the importer maps a second time. */

/* A file of the owner. */
struct ribv_owner_file {
	dev_t dev;
	ino_t ino;
};

/* A mapping of memory of the owner. */
struct ribv_owner_map {
	void *base;
	size_t size;
	uint8_t *addr; /* the first byte of an MR in it */
};

/*
 * Open a file that a descriptor of the owner refers to. Return a descriptor, or minus an errno:
 * ENOENT: it has no such descriptor; EPERM: it is of another user; EINVAL: it has ended.
 */
int ribv_owner_open(uint32_t owner, struct ribv_owner_file file, int flags);
/* Map the memory of an MR; 0, or an errno: as above, EOPNOTSUPP or ENOMEM. */
int ribv_owner_map(
		uint32_t owner, const struct ribv_table_entry *entry, struct ribv_owner_map *map);

#endif /* RIBV_TABLE_H */
