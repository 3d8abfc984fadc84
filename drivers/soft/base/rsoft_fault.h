/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Faults of packets: the items of fault=, which chaos= also accepts (doc/wire.md). */

#ifndef RSOFT_FAULT_H
#define RSOFT_FAULT_H

#include <string.h>

enum rsoft_fault {
	RSOFT_FAULT_LOSS, /* the first four take a probability */
	RSOFT_FAULT_DUP,
	RSOFT_FAULT_CORRUPT,
	RSOFT_FAULT_TRUNC,
	RSOFT_FAULT_REORDER, /* the last two take a number of packets */
	RSOFT_FAULT_FATAL,
	RSOFT_FAULT_NB,
};

#define RSOFT_FAULT_NB_SHARES (RSOFT_FAULT_TRUNC + 1)

/* Parse an item "name:value": its fault and value, or RSOFT_FAULT_NB. */
static inline enum rsoft_fault
rsoft_fault_of(const char *item, const char **value)
{
	static const char *const names[RSOFT_FAULT_NB] = {
			"loss", "dup", "corrupt", "trunc", "reorder", "fatal"};
	unsigned int i;
	size_t length;

	for (i = 0; i < RSOFT_FAULT_NB; i++) {
		length = strlen(names[i]);
		if (strncmp(item, names[i], length) != 0 || item[length] != ':')
			continue;
		*value = item + length + 1;
		break;
	}
	return (enum rsoft_fault)i;
}

#endif /* RSOFT_FAULT_H */
