/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Another preloaded library finds each call of each function of libc that librmem_ibv.so defines:
 * once, and no other call. count_calls.c is preloaded before or after it; arguments: the path of
 * librmem_ibv.so. A function that it exports and that has no call here fails the test.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../holds.h"
#include "count_calls.h"

#define FILE_OF_DEVICE "/sys/class/infiniband/soft0/node_type"
#define MAX_FUNCTIONS  256

typedef long (*function_t)(long, long, long, long, long, long);

static const char *called[MAX_FUNCTIONS];
static size_t nb_called;

/* Call a function of the global scope, which succeeds; the other library has counted one call. */
static long
count_one(const char *name, const long args[6])
{
	union {
		void *object;
		function_t function;
	} found = {.object = dlsym(RTLD_DEFAULT, name)};
	long ret;

	HOLDS(found.object != NULL && nb_called < MAX_FUNCTIONS);
	called[nb_called++] = name;
	count_reset();
	ret = found.function(args[0], args[1], args[2], args[3], args[4], args[5]);
	if ((int)ret == -1 || count_of(name) != 1 || count_all() != 1) {
		fprintf(stderr, "%s(): returns %d, errno %d, %u of %u calls counted\n", name,
				(int)ret, errno, count_of(name), count_all());
		exit(EXIT_FAILURE);
	}
	return ret;
}

#define CALL(name, ...)   count_one(#name, (const long[6]){__VA_ARGS__})
#define BOTH(name, ...)   (CALL(name, __VA_ARGS__), CALL(name##64, __VA_ARGS__))
#define OPENED(name, ...) HOLDS(close((int)CALL(name, __VA_ARGS__)) == 0)
#define OPENED_BOTH(name, ...)                                                                     \
	do {                                                                                       \
		OPENED(name, __VA_ARGS__);                                                         \
		OPENED(name##64, __VA_ARGS__);                                                     \
	} while (0)

static char buf[1 << 16];
static const char *dir, *file, *target; /* files of the test */
static struct stat st;

static void
call_open(void)
{
	long path = (long)file, made = (long)"made";

	OPENED_BOTH(open, path, O_RDONLY);
	OPENED_BOTH(open, made, O_RDWR | O_CREAT, 0600);
	OPENED_BOTH(openat, AT_FDCWD, path, O_RDONLY);
	OPENED_BOTH(openat, AT_FDCWD, made, O_RDWR | O_CREAT, 0600);
	OPENED(__open_2, path, O_RDONLY);
	OPENED(__open64_2, path, O_RDONLY);
	OPENED(__openat_2, AT_FDCWD, path, O_RDONLY);
	OPENED(__openat64_2, AT_FDCWD, path, O_RDONLY);
	HOLDS(fclose((FILE *)CALL(fopen, path, (long)"r")) == 0);
	HOLDS(fclose((FILE *)CALL(fopen64, made, (long)"w")) == 0);
	HOLDS(unlink("made") == 0);
}

static void
call_stat(void)
{
	long path = (long)file, to = (long)&st, version = sizeof(long) == 8 && EM_X86_64 == 62;
	int fd = open(file, O_RDWR);

#ifndef __x86_64__
	version = 0;
#endif
	HOLDS(fd >= 0);
	BOTH(stat, path, to);
	BOTH(lstat, path, to);
	BOTH(fstat, fd, to);
	BOTH(fstatat, AT_FDCWD, path, to, 0);
	CALL(statx, AT_FDCWD, path, 0, STATX_BASIC_STATS, (long)buf);
	BOTH(__xstat, version, path, to);
	BOTH(__lxstat, version, path, to);
	BOTH(__fxstat, version, fd, to);
	BOTH(__fxstatat, version, AT_FDCWD, path, to, 0);
	CALL(access, path, R_OK);
	CALL(eaccess, path, R_OK);
	CALL(euidaccess, path, R_OK);
	CALL(faccessat, AT_FDCWD, path, R_OK, 0);
	CALL(write, fd, (long)"text", 4);
	CALL(close, fd);
}

static void
call_path(void)
{
	long link = (long)target, path = (long)file;
	int fd;

	CALL(readlink, link, (long)buf, 100);
	CALL(__readlink_chk, link, (long)buf, 100, 100);
	CALL(readlinkat, AT_FDCWD, link, (long)buf, 100);
	CALL(__readlinkat_chk, AT_FDCWD, link, (long)buf, 100, 100);
	CALL(realpath, path, (long)buf);
	CALL(__realpath_chk, path, (long)buf, sizeof(buf));
	free((void *)CALL(canonicalize_file_name, path));
	CALL(getcwd, (long)buf, sizeof(buf));
	CALL(__getcwd_chk, (long)buf, sizeof(buf), sizeof(buf));
	CALL(chdir, (long)dir);
	fd = open(dir, O_RDONLY);
	CALL(fchdir, fd);
	CALL(listxattr, path, (long)buf, 100);
	CALL(llistxattr, path, (long)buf, 100);
	/* A file of /proc has none that these could return. */
	HOLDS(close(fd) == 0);
}

/* These fail without an attribute, so they are not called by CALL(). */
static void
call_xattr(void)
{
	static const char *const names[] = {"getxattr", "lgetxattr"};
	size_t i;

	for (i = 0; i < 2; i++) {
		union {
			void *object;
			function_t function;
		} found = {.object = dlsym(RTLD_DEFAULT, names[i])};

		called[nb_called++] = names[i];
		count_reset();
		HOLDS((int)found.function((long)file, (long)"user.none", (long)buf, 9, 0, 0) == -1);
		HOLDS(count_of(names[i]) == 1 && count_all() == 1);
	}
}

static void
call_dir(void)
{
	long stream = CALL(opendir, (long)dir), entry = (long)buf, found, at, list;
	int fd;

	BOTH(readdir, stream);
	CALL(readdir_r, stream, entry, (long)&found);
	CALL(rewinddir, stream);
	CALL(readdir64_r, stream, entry, (long)&found);
	at = CALL(telldir, stream);
	CALL(seekdir, stream, at);
	CALL(dirfd, stream);
	CALL(closedir, stream);
	fd = open(dir, O_RDONLY);
	HOLDS(closedir((DIR *)CALL(fdopendir, fd)) == 0);
	CALL(scandir, (long)dir, (long)&list, 0, 0);
	CALL(scandir64, (long)dir, (long)&list, 0, 0);
}

/* Libc finds out by the return address for which library it opens another one. */
static void
call_dlopen(void)
{
	Dl_info own, caller;

	CALL(dlopen, (long)"libm.so.6", RTLD_LAZY);
	HOLDS(dladdr(&buf, &own) != 0 && dladdr(count_caller, &caller) != 0);
	HOLDS(own.dli_fbase == caller.dli_fbase);
}

static void
call_all(void)
{
	nb_called = 0;
	call_dlopen();
	call_open();
	call_stat();
	call_path();
	call_xattr();
	call_dir();
}

/* Whether the function was called; those of verbs are no functions of libc. */
static bool
has_call(const char *name)
{
	size_t i;

	for (i = 0; i < nb_called; i++) {
		if (strcmp(called[i], name) == 0)
			return true;
	}
	return strncmp(name, "ibv_", 4) == 0 || strncmp(name, "_ibv_", 5) == 0 ||
			strncmp(name, "rmem_", 5) == 0;
}

/* Each function that the library exports has been called. */
static void
exports_are_called(const char *library)
{
	int fd = open(library, O_RDONLY);
	const ElfW(Shdr) * section;
	const ElfW(Ehdr) * elf;
	const ElfW(Sym) * symbol;
	size_t i, n, nb_missing = 0;

	HOLDS(fd >= 0 && fstat(fd, &st) == 0);
	elf = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	HOLDS(elf != MAP_FAILED && close(fd) == 0);
	section = (const void *)((const char *)elf + elf->e_shoff);
	while (section->sh_type != SHT_DYNSYM)
		section++;
	symbol = (const void *)((const char *)elf + section->sh_offset);
	n = section->sh_size / section->sh_entsize;
	section = (const ElfW(Shdr) *)(const void *)((const char *)elf + elf->e_shoff) +
			section->sh_link;
	for (i = 0; i < n; i++) {
		const char *name = (const char *)elf + section->sh_offset + symbol[i].st_name;

		if (symbol[i].st_shndx == SHN_UNDEF || has_call(name))
			continue;
		fprintf(stderr, "%s(): exported, but not called by this test\n", name);
		nb_missing++;
	}
	HOLDS(nb_missing == 0);
}

int
main(int argc, char **argv)
{
	static char name[] = "/tmp/rmem-next.XXXXXX";
	static char paths[2][64];

	if (argc != 2)
		return 2;
	dir = mkdtemp(name);
	HOLDS(dir != NULL && chdir(dir) == 0);
	snprintf(paths[0], sizeof(paths[0]), "%s/file", dir);
	snprintf(paths[1], sizeof(paths[1]), "%s/link", dir);
	file = paths[0];
	target = paths[1];
	HOLDS(close(open(file, O_RDWR | O_CREAT, 0600)) == 0 && symlink("file", target) == 0);
	call_all();
	exports_are_called(argv[1]);
	/* The core is loaded from here on. */
	HOLDS(close(open(FILE_OF_DEVICE, O_RDONLY)) == 0);
	call_all();
	HOLDS(unlink(file) == 0 && unlink(target) == 0 && chdir("/") == 0 && rmdir(dir) == 0);
	return 0;
}
