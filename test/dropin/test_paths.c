/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Paths that lead out of the files of the device, attributes of those that are open, and calls that
 * are to behave as those of libc: with bad pointers, and with filters of system calls.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../holds.h"

#define CLASS  "/sys/class/infiniband"
#define DEVICE CLASS "/soft0"

static const char *volatile nowhere; /* a page without access */

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
			a->st_size == b->st_size;
}

static void
path_leads_out_of_a_directory(void)
{
	int fd = open(CLASS, O_RDONLY | O_DIRECTORY), out;
	struct stat st, same;

	HOLDS(fd >= 0 && stat("/sys", &st) == 0);
	HOLDS(fstatat(fd, "../..", &same, 0) == 0 && is_same(&st, &same));
	HOLDS(fstatat(fd, "soft0/../../..", &same, 0) == 0 && is_same(&st, &same));
	out = openat(fd, "../..", O_RDONLY | O_DIRECTORY);
	HOLDS(out >= 0 && fstat(out, &same) == 0 && is_same(&st, &same) && close(out) == 0);
	HOLDS(fstatat(fd, "../../../..", &same, 0) == 0 && stat("/", &st) == 0);
	HOLDS(is_same(&st, &same) && faccessat(fd, "../../kernel", X_OK, 0) == 0);
	out = openat(fd, "../infiniband_verbs/uverbs256/ibdev", O_RDONLY);
	HOLDS(out >= 0 && close(out) == 0);
	/* The name of a directory that the view has no file for is that of the kernel. */
	HOLDS(openat(fd, "../none", O_RDONLY) == -1 && errno == ENOENT);
	HOLDS(openat(fd, "../rmem", O_RDWR | O_CREAT, 0600) == -1);
	HOLDS(access("/tmp/rmem", F_OK) == -1 && close(fd) == 0);
}

static void
working_directory_leads_out(void)
{
	char path[PATH_MAX];
	struct stat st, same;
	DIR *dir;

	HOLDS(chdir(CLASS) == 0 && stat("/sys/class", &st) == 0);
	HOLDS(stat("..", &same) == 0 && is_same(&st, &same));
	HOLDS(lstat("../../class", &same) == 0 && is_same(&st, &same));
	HOLDS(realpath("..", path) == path && strcmp(path, "/sys/class") == 0);
	dir = opendir("..");
	HOLDS(dir != NULL && fstat(dirfd(dir), &same) == 0 && is_same(&st, &same));
	closedir(dir);
	HOLDS(chdir("..") == 0 && getcwd(path, sizeof(path)) == path);
	HOLDS(strcmp(path, "/sys/class") == 0);
	HOLDS(chdir(DEVICE) == 0 && chdir("../../..") == 0);
	HOLDS(getcwd(path, sizeof(path)) == path && strcmp(path, "/sys") == 0);
	HOLDS(chdir("/") == 0);
}

/* From a directory of the view, of which the kernel may know nothing, and only from those. */
static void
absolute_path_leads_out(void)
{
	char path[PATH_MAX];
	struct stat st, same;
	int fd;

	HOLDS(stat("/sys/class/net", &st) == 0);
	HOLDS(stat(DEVICE "/../../net", &same) == 0 && is_same(&st, &same));
	HOLDS(stat(CLASS "/../net/", &same) == 0 && is_same(&st, &same));
	HOLDS(lstat("/dev/infiniband/../../sys/class/net", &same) == 0 && is_same(&st, &same));
	HOLDS(realpath(DEVICE "/ports/../../../net", path) != NULL);
	HOLDS(strcmp(path, "/sys/class/net") == 0);
	fd = open(DEVICE "/../..", O_RDONLY | O_DIRECTORY);
	HOLDS(fd >= 0 && stat("/sys/class", &st) == 0 && fstat(fd, &same) == 0);
	HOLDS(is_same(&st, &same) && close(fd) == 0);
	HOLDS(stat(DEVICE "/none/../../../net", &same) == -1 && errno == ENOENT);
	HOLDS(stat(DEVICE "/none/../fw_ver", &same) == -1 && errno == ENOENT);
	HOLDS(stat(DEVICE "/../../none", &same) == -1 && errno == ENOENT);
}

static void
files_are_no_directories(void)
{
	static const char *const paths[] = {DEVICE "/fw_ver/", DEVICE "/fw_ver/.",
			DEVICE "/fw_ver/..", DEVICE "/fw_ver/../fw_ver", DEVICE "/ports/1/lid//",
			"fw_ver/", "ports/1/lid/.."};
	char path[PATH_MAX];
	struct statx stx;
	struct stat st;
	size_t i;

	HOLDS(chdir(DEVICE) == 0);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		HOLDS(stat(paths[i], &st) == -1 && errno == ENOTDIR);
		HOLDS(lstat(paths[i], &st) == -1 && errno == ENOTDIR);
		HOLDS(statx(AT_FDCWD, paths[i], 0, STATX_ALL, &stx) == -1 && errno == ENOTDIR);
		HOLDS(open(paths[i], O_RDONLY) == -1 && errno == ENOTDIR);
		HOLDS(fopen(paths[i], "r") == NULL && errno == ENOTDIR);
		HOLDS(access(paths[i], F_OK) == -1 && errno == ENOTDIR);
		HOLDS(opendir(paths[i]) == NULL && errno == ENOTDIR);
		HOLDS(chdir(paths[i]) == -1 && errno == ENOTDIR);
		HOLDS(realpath(paths[i], path) == NULL && errno == ENOTDIR);
	}
	HOLDS(stat("ports/", &st) == 0 && stat(DEVICE "/ports/.", &st) == 0 && chdir("/") == 0);
}

static void
open_files_have_the_attributes_of_their_paths(void)
{
	static const char *const paths[] = {CLASS, DEVICE, DEVICE "/fw_ver", DEVICE "/ports/1"};
	struct stat st, same;
	struct statx stx;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		HOLDS(stat(paths[i], &st) == 0);
		fd = open(paths[i], O_RDONLY);
		HOLDS(fd >= 0 && fstat(fd, &same) == 0 && is_same(&st, &same));
		HOLDS(fstatat(fd, "", &same, AT_EMPTY_PATH) == 0 && is_same(&st, &same));
		HOLDS(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) == 0);
		HOLDS(stx.stx_ino == st.st_ino && stx.stx_mode == st.st_mode);
		if (S_ISDIR(st.st_mode)) {
			HOLDS(fstatat(fd, ".", &same, 0) == 0 && is_same(&st, &same));
			HOLDS(fchdir(fd) == 0 && stat(".", &same) == 0 && is_same(&st, &same));
		}
		HOLDS(close(fd) == 0 && chdir("/") == 0);
	}
}

static void
entries_have_the_numbers_of_their_files(void)
{
	DIR *dir = opendir(DEVICE "/ports/1");
	const struct dirent *entry;
	struct stat st;
	int n = 0;

	HOLDS(dir != NULL);
	for (; (entry = readdir(dir)) != NULL; n++) {
		HOLDS(fstatat(dirfd(dir), entry->d_name, &st, 0) == 0);
		HOLDS(st.st_ino == entry->d_ino);
	}
	HOLDS(n > 10 && closedir(dir) == 0);
}

/* Files of the program that have no link, either. */
static void
removed_files_are_those_of_the_kernel(void)
{
	char name[] = "/tmp/rmem-test-XXXXXX";
	struct stat st;
	int fd = mkstemp(name);

	HOLDS(fd >= 0 && unlink(name) == 0 && fchmod(fd, 0444) == 0 && write(fd, "abc", 3) == 3);
	HOLDS(fstat(fd, &st) == 0 && st.st_size == 3 && st.st_nlink == 0 && close(fd) == 0);
}

static void
bad_pointers_are_refused(void)
{
	struct statx stx;
	struct stat st;
	char buf[8];

	HOLDS(open(nowhere, O_RDONLY) == -1 && errno == EFAULT);
	HOLDS(open(nowhere, O_WRONLY | O_CREAT, 0600) == -1 && errno == EFAULT);
	HOLDS(openat(-1, nowhere, O_RDONLY) == -1 && errno == EFAULT);
	HOLDS(fopen(nowhere, "r") == NULL && errno == EFAULT);
	HOLDS(fopen(nowhere, "w") == NULL && errno == EFAULT);
	HOLDS(stat(nowhere, &st) == -1 && errno == EFAULT);
	HOLDS(lstat(nowhere, &st) == -1 && errno == EFAULT);
	HOLDS(fstatat(AT_FDCWD, nowhere, &st, 0) == -1 && errno == EFAULT);
	HOLDS(statx(AT_FDCWD, nowhere, 0, STATX_INO, &stx) == -1 && errno == EFAULT);
	HOLDS(access(nowhere, F_OK) == -1 && errno == EFAULT);
	HOLDS(faccessat(AT_FDCWD, nowhere, F_OK, 0) == -1 && errno == EFAULT);
	HOLDS(readlink(nowhere, buf, sizeof(buf)) == -1 && errno == EFAULT);
	HOLDS(getxattr(nowhere, "user.x", buf, sizeof(buf)) == -1 && errno == EFAULT);
	HOLDS(chdir(nowhere) == -1 && errno == EFAULT);
}

static void
programs_of_old_libc_find_files(void)
{
	union {
		void *object;
		int (*stat)(int version, const char *path, struct stat *st);
		int (*fstat)(int version, int fd, struct stat *st);
		int (*statat)(int version, int dirfd, const char *path, struct stat *st, int flags);
	} old;
	static const char *const names[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
	struct stat st, same;
	size_t i;

	HOLDS(stat(DEVICE "/fw_ver", &st) == 0);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		old.object = dlsym(RTLD_DEFAULT, names[i]);
		HOLDS(old.object != NULL && old.stat(1, DEVICE "/fw_ver", &same) == 0);
		HOLDS(is_same(&st, &same));
		HOLDS(old.stat(-1, DEVICE "/fw_ver", &same) == -1 && errno == EINVAL);
	}
	old.object = dlsym(RTLD_DEFAULT, "__fxstatat");
	HOLDS(old.object != NULL && old.statat(1, AT_FDCWD, DEVICE "/fw_ver", &same, 0) == 0);
	HOLDS(is_same(&st, &same));
	old.object = dlsym(RTLD_DEFAULT, "__fxstat");
	errno = 0;
	HOLDS(old.object != NULL && old.fstat(-1, 0, &same) == -1 && errno == EINVAL);
}

#if defined(SYS_access) && defined(SYS_readlink)
/* From now on the process ends if it calls one of these. */
static void
forbid(void)
{
	struct sock_filter filter[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat, 3, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_readlinkat, 2, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 1, 0),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	HOLDS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	HOLDS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int
call_filtered(void)
{
	struct stat st;
	char buf[8];

	forbid();
	HOLDS(access("/", F_OK) == 0 && access("/none", F_OK) == -1 && errno == ENOENT);
	HOLDS(access("none", F_OK) == -1 && errno == ENOENT);
	HOLDS(readlink("/proc/self", buf, sizeof(buf)) > 0);
	HOLDS(stat("/", &st) == 0 && lstat("/", &st) == 0 && fstat(0, &st) == 0);
	return 0;
}

static void
other_paths_make_the_calls_of_libc(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(call_filtered());
	wait_child(pid);
}
#endif

int
main(void)
{
	nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HOLDS(nowhere != MAP_FAILED);
	path_leads_out_of_a_directory();
	working_directory_leads_out();
	absolute_path_leads_out();
	files_are_no_directories();
	open_files_have_the_attributes_of_their_paths();
	entries_have_the_numbers_of_their_files();
	removed_files_are_those_of_the_kernel();
	bad_pointers_are_refused();
	programs_of_old_libc_find_files();
#if defined(SYS_access) && defined(SYS_readlink)
	other_paths_make_the_calls_of_libc();
#endif
	return 0;
}
