/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Identities of processes: PID and start time, and pidfds.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rmem_mp_priv.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

uint64_t
rmem_mp_start_time(pid_t pid)
{
	char path[32], text[1024];
	const char *field;
	size_t length;
	FILE *f;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	length = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[length] = '\0';
	/* Field 2, the name, may contain anything; field 3 follows its last parenthesis. */
	field = strrchr(text, ')');
	for (i = 2; field != NULL && i < 22; i++)
		field = strchr(field + 1, ' ');
	return field != NULL ? strtoull(field, NULL, 10) : 0;
}

int
rmem_mp_pidfd(const struct mp_id *id)
{
	int fd = (int)syscall(SYS_pidfd_open, id->pid, 0);

	if (fd < 0)
		return errno == ENOSYS || errno == EPERM            ? -EOPNOTSUPP
				: errno == ESRCH || errno == EINVAL ? -ESRCH
								    : -ENOMEM;
	/* Read after the open: if the start time is equal, the pidfd refers to that process. */
	if (id->start != 0 && rmem_mp_start_time(id->pid) == id->start)
		return fd;
	close(fd);
	return -ESRCH;
}
