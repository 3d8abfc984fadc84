/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* How many threads or descriptors a process has. */

#ifndef COUNT_ENTRIES_H
#define COUNT_ENTRIES_H

#include <dirent.h>
#include <stddef.h>

#include "../holds.h"

/* The entries of a directory, with "." and "..". */
static inline int
count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	HOLDS(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

#endif
