/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Attributes of files with a libc that has no stat(), lstat(), fstat() and fstatat(), as before
 * glibc 2.33: the library does not find them in this program. */

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../holds.h"

#define DEVICE "/sys/class/infiniband/soft0"

typedef void *(*dlsym_t)(void *library, const char *name);

static bool
is_hidden(const char *name)
{
	static const char *const names[] = {"stat", "lstat", "fstat", "fstatat"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* That of libc, for the library, which is loaded before libc. */
static void *
find(void *library, const char *name)
{
	if (library == RTLD_NEXT && is_hidden(name))
		return NULL;
	if (library == RTLD_NEXT)
		library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return dlsym(library, name);
}

/* By this one the library finds dlsym(). */
void *
dlvsym(void *restrict library, const char *restrict name, const char *restrict version)
{
	union {
		void *object;
		dlsym_t function;
	} found = {.function = find};

	HOLDS(library == RTLD_NEXT && strcmp(name, "dlsym") == 0 &&
			strncmp(version, "GLIBC", 5) == 0);
	return found.object;
}

static void
finds(int type, const char *path)
{
	struct stat st, same;
	int fd = open(path, O_RDONLY);

	HOLDS(fd >= 0 && stat(path, &st) == 0 && (st.st_mode & S_IFMT) == (mode_t)type);
	HOLDS(lstat(path, &same) == 0 && same.st_ino == st.st_ino);
	HOLDS(fstat(fd, &same) == 0 && same.st_ino == st.st_ino);
	HOLDS(fstatat(AT_FDCWD, path, &same, 0) == 0 && same.st_ino == st.st_ino);
	HOLDS(fstatat(fd, "", &same, AT_EMPTY_PATH) == 0 && same.st_ino == st.st_ino);
	HOLDS(close(fd) == 0);
}

int
main(void)
{
	struct stat st;

	finds(S_IFDIR, "/");
	finds(S_IFREG, "/proc/version");
	finds(S_IFDIR, DEVICE);
	finds(S_IFREG, DEVICE "/fw_ver");
	HOLDS(stat("/none", &st) == -1 && errno == ENOENT);
	HOLDS(chdir(DEVICE) == 0 && stat("fw_ver", &st) == 0);
	return 0;
}
