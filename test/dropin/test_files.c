/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Files of the device below /sys and /dev: their contents are those of the queries; each function
 * that takes a path finds them; descriptors and working directories keep them across dup(), fork()
 * and exec().
 */

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "count_entries.h"
#include "own_qp.h"

#define CLASS   "/sys/class/infiniband"
#define DEVICE  CLASS "/soft0"
#define THREADS 8
#define READS   100

/* Of libibverbs; verbs.h does not declare it. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static struct ibv_context *context;
static int before_libc; /* errno of a file before libc was initialized; -1: none */
static char early[64];  /* read by a constructor */

/* The text of an open file, without its end of line. */
static void
read_fd(int fd, char text[64])
{
	ssize_t n = read(fd, text, 63);

	HOLDS(n > 0 && text[n - 1] == '\n');
	text[n - 1] = '\0';
	close(fd);
}

static void
read_at(int dirfd, const char *path, char text[64])
{
	int fd = openat(dirfd, path, O_RDONLY);

	HOLDS(fd >= 0);
	read_fd(fd, text);
}

static void
open_before_libc(void)
{
	before_libc = open(DEVICE "/node_type", O_RDONLY) < 0 ? errno : -1;
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(
		void) = open_before_libc;

__attribute__((constructor)) static void
read_early(void)
{
	int fd = open(DEVICE "/node_type", O_RDONLY);
	ssize_t n = read(fd, early, sizeof(early) - 1);

	if (n > 0)
		close(fd);
}

/* Whether the words of a GUID or GID, separated by colons, are these bytes. */
static bool
is_words(const char *text, const uint8_t *bytes, size_t n)
{
	char expected[64];
	size_t i, len = 0;

	for (i = 0; i < n; i += 2)
		len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%s%02x%02x",
				i != 0 ? ":" : "", bytes[i], bytes[i + 1]);
	return strcmp(text, expected) == 0;
}

static void
contents_are_those_of_queries(void)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	char text[64];
	__be16 pkey;

	HOLDS(ibv_query_device(context, &attr) == 0 && ibv_query_port(context, 1, &port) == 0);
	HOLDS(ibv_query_gid(context, 1, 0, &gid) == 0 && ibv_query_pkey(context, 1, 0, &pkey) == 0);
	read_at(AT_FDCWD, DEVICE "/node_guid", text);
	HOLDS(is_words(text, (const uint8_t *)&attr.node_guid, 8));
	read_at(AT_FDCWD, DEVICE "/sys_image_guid", text);
	HOLDS(is_words(text, (const uint8_t *)&attr.sys_image_guid, 8));
	read_at(AT_FDCWD, DEVICE "/fw_ver", text);
	HOLDS(strcmp(text, attr.fw_ver) == 0);
	read_at(AT_FDCWD, DEVICE "/ports/1/lid", text);
	HOLDS(strtoul(text, NULL, 16) == port.lid);
	read_at(AT_FDCWD, DEVICE "/ports/1/cap_mask", text);
	HOLDS(strtoul(text, NULL, 16) == port.port_cap_flags);
	read_at(AT_FDCWD, DEVICE "/ports/1/state", text);
	HOLDS(strtoul(text, NULL, 10) == port.state && strcmp(text, "4: ACTIVE") == 0);
	read_at(AT_FDCWD, DEVICE "/ports/1/link_layer", text);
	HOLDS(strcmp(text, "InfiniBand") == 0);
	read_at(AT_FDCWD, DEVICE "/ports/1/gids/0", text);
	HOLDS(is_words(text, gid.raw, 16));
	read_at(AT_FDCWD, DEVICE "/ports/1/gid_attrs/types/0", text);
	HOLDS(strcmp(text, "IB/RoCE v1") == 0);
	read_at(AT_FDCWD, DEVICE "/ports/1/pkeys/0", text);
	HOLDS(strtoul(text, NULL, 16) == be16toh(pkey));
	read_at(AT_FDCWD, DEVICE "/ports/1/counters/port_xmit_data", text);
	HOLDS(strtoul(text, NULL, 10) == 0);
	HOLDS(before_libc == ENOENT && strcmp(early, "1: CA\n") == 0);
}

static void
verbs_device_is_linked_with_the_device(void)
{
	const struct ibv_device *device = context->device;
	char text[64], path[PATH_MAX];
	struct stat st;

	HOLDS(strcmp(device->ibdev_path, DEVICE) == 0);
	HOLDS(strcmp(device->dev_name, "uverbs256") == 0);
	HOLDS(ibv_read_sysfs_file(device->ibdev_path, "node_type", text, sizeof(text)) == 5);
	HOLDS(strcmp(text, "1: CA") == 0);
	HOLDS(ibv_read_sysfs_file(device->dev_path, "ibdev", text, sizeof(text)) == 5);
	HOLDS(strcmp(text, "soft0") == 0);
	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	HOLDS(stat(path, &st) == 0 && S_ISCHR(st.st_mode));
	HOLDS(access(path, R_OK | W_OK) == 0);
	HOLDS(open(path, O_RDWR) == -1 && errno == ENXIO);
}

static void
files_are_read_only(void)
{
	int fd = open(DEVICE "/fw_ver", O_RDONLY | O_CLOEXEC);

	HOLDS(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	HOLDS(write(fd, "x", 1) == -1 && ftruncate(fd, 0) == -1);
	close(fd);
	HOLDS(open(DEVICE "/fw_ver", O_RDWR) == -1 && errno == EACCES);
	HOLDS(open(DEVICE "/fw_ver", O_RDONLY | O_DIRECTORY) == -1 && errno == ENOTDIR);
	HOLDS(open(DEVICE, O_WRONLY) == -1 && errno == EISDIR);
	HOLDS(open(DEVICE "/fw_ver", O_CREAT | O_EXCL | O_RDONLY, 0600) == -1 && errno == EEXIST);
	HOLDS(fopen(DEVICE "/fw_ver", "w") == NULL && errno == EACCES);
	HOLDS(access(DEVICE "/fw_ver", W_OK) == -1 && errno == EACCES);
	HOLDS(access(DEVICE "/fw_ver", R_OK) == 0 && access(DEVICE, R_OK | X_OK) == 0);
}

static void
missing_files_are_missing(void)
{
	char buf[8];
	struct stat st;

	HOLDS(open(DEVICE "/none", O_RDONLY) == -1 && errno == ENOENT);
	HOLDS(open(CLASS "/soft", O_RDONLY) == -1 && errno == ENOENT);
	HOLDS(open(CLASS "x", O_RDONLY) == -1 && errno == ENOENT);
	HOLDS(fopen(DEVICE "/ports/2/lid", "r") == NULL && errno == ENOENT);
	HOLDS(stat(DEVICE "/ports/1/gids/99", &st) == -1 && errno == ENOENT);
	HOLDS(access("/dev/infiniband/uverbs257", F_OK) == -1 && errno == ENOENT);
	HOLDS(opendir(DEVICE "/none") == NULL && errno == ENOENT);
	HOLDS(opendir(DEVICE "/fw_ver") == NULL && errno == ENOTDIR);
	HOLDS(chdir(DEVICE "/fw_ver") == -1 && errno == ENOTDIR);
	HOLDS(readlink(DEVICE, buf, sizeof(buf)) == -1 && errno == EINVAL);
	HOLDS(getxattr(DEVICE, "user.x", buf, sizeof(buf)) == -1 && errno == EOPNOTSUPP);
	HOLDS(llistxattr(DEVICE "/fw_ver", buf, sizeof(buf)) == 0);
}

static void
attributes_agree(void)
{
	char path[PATH_MAX], *resolved;
	struct stat st, same;
	struct statx stx;

	HOLDS(stat(DEVICE "/fw_ver", &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0);
	HOLDS(lstat(DEVICE "//ports/.././fw_ver", &same) == 0 && same.st_ino == st.st_ino);
	HOLDS(statx(AT_FDCWD, DEVICE "/fw_ver", 0, STATX_ALL, &stx) == 0);
	HOLDS(stx.stx_mode == st.st_mode && stx.stx_ino == st.st_ino);
	HOLDS(stat(DEVICE, &same) == 0 && S_ISDIR(same.st_mode) && same.st_ino != st.st_ino);
	HOLDS(realpath(DEVICE "/ports/../fw_ver", path) == path);
	HOLDS(strcmp(path, DEVICE "/fw_ver") == 0);
	resolved = canonicalize_file_name(DEVICE "/");
	HOLDS(resolved != NULL && strcmp(resolved, DEVICE) == 0);
	free(resolved);
}

static void
interfaces_are_those_of_the_host(void)
{
	struct stat st;
	DIR *dir;

	HOLDS(stat(DEVICE "/device/net/lo", &st) == 0 && S_ISDIR(st.st_mode));
	dir = opendir(DEVICE "/device/net/lo");
	HOLDS(dir != NULL && closedir(dir) == 0);
	HOLDS(stat(DEVICE "/device/net/none", &st) == -1 && errno == ENOENT);
}

static int
is_device(const struct dirent *entry)
{
	return strcmp(entry->d_name, "soft0") == 0;
}

static void
directories_are_listed(void)
{
	struct dirent **list, *entry;
	DIR *dir = opendir(CLASS);
	int n = 0, nb_own = 0;
	long at = 0;

	HOLDS(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		nb_own += is_device(entry);
		if (!is_device(entry) && nb_own == 0)
			at = telldir(dir);
		n++;
	}
	HOLDS(nb_own == 1 && n >= 3);
	seekdir(dir, at);
	HOLDS(is_device(readdir(dir)));
	for (rewinddir(dir); readdir(dir) != NULL; n--)
		;
	HOLDS(n == 0 && closedir(dir) == 0);
	HOLDS(scandir(CLASS, &list, is_device, alphasort) == 1 && is_device(list[0]));
	free(list[0]);
	free(list);
	n = scandir(DEVICE, &list, NULL, alphasort);
	HOLDS(n > 3 && list[0]->d_name[0] == '.' && strcmp(list[2]->d_name, "device") == 0);
	while (n > 0)
		free(list[--n]);
	free(list);
}

static void
descriptors_of_directories_are_followed(void)
{
	int fd = open(DEVICE "/ports", O_RDONLY | O_DIRECTORY), copy;
	char text[64], other[64];
	struct stat st;
	DIR *dir;

	HOLDS(fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode));
	copy = dup(fd);
	read_at(copy, "1/lid", text);
	read_at(copy, "../ports/1/lid", other);
	HOLDS(strcmp(text, other) == 0);
	HOLDS(fstatat(fd, "1/gids/0", &st, 0) == 0 && S_ISREG(st.st_mode));
	HOLDS(faccessat(fd, "1/gids", R_OK, 0) == 0 && faccessat(fd, "2", R_OK, 0) == -1);
	close(copy);
	dir = fdopendir(fd);
	HOLDS(dir != NULL && dirfd(dir) == fd && closedir(dir) == 0 && fcntl(fd, F_GETFD) == -1);
	dir = opendir(DEVICE);
	HOLDS(dir != NULL);
	read_at(dirfd(dir), "ports/1/lid", other);
	HOLDS(strcmp(text, other) == 0 && closedir(dir) == 0);
}

static void
working_directory_is_followed(void)
{
	char text[64], path[PATH_MAX];
	DIR *dir;
	int n;

	HOLDS(chdir(DEVICE "/ports") == 0 && getcwd(path, sizeof(path)) == path);
	HOLDS(strcmp(path, DEVICE "/ports") == 0);
	HOLDS(getcwd(path, 8) == NULL && errno == ERANGE);
	read_at(AT_FDCWD, "1/state", text);
	read_at(AT_FDCWD, "../fw_ver", text);
	HOLDS(chdir("1") == 0 && access("lid", R_OK) == 0 && access("none", F_OK) == -1);
	dir = opendir(".");
	for (n = 0; dir != NULL && readdir(dir) != NULL; n++)
		;
	HOLDS(n > 10 && closedir(dir) == 0);
	HOLDS(chdir("/") == 0 && access("lid", F_OK) == -1 && errno == ENOENT);
}

/* A program of its own: that descriptor is the directory, which is its working directory, too. */
static int
child(int fd)
{
	char text[64], other[64];

	read_at(fd, "fw_ver", text);
	read_at(AT_FDCWD, "fw_ver", other);
	return strcmp(text, other) == 0 ? 0 : 1;
}

static void
children_inherit_directories(const char *self)
{
	int fd = open(DEVICE, O_RDONLY | O_DIRECTORY);
	char number[16], text[64];
	pid_t pid;

	HOLDS(fd >= 0);
	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (pid == 0) {
		read_at(fd, "ports/1/lid", text); /* of a device of the child */
		if (fchdir(fd) == 0)
			execl(self, self, number, (char *)NULL);
		_exit(1);
	}
	wait_child(pid);
	close(fd);
}

static void *
read_often(void *arg)
{
	char text[64];
	DIR *dir;
	int i;

	for (i = 0; i < READS; i++) {
		read_at(AT_FDCWD, DEVICE "/ports/1/lid", text);
		HOLDS(strcmp(text, arg) == 0);
		dir = opendir(DEVICE);
		HOLDS(dir != NULL && readdir(dir) != NULL && closedir(dir) == 0);
	}
	return NULL;
}

static void
threads_read_concurrently(void)
{
	pthread_t threads[THREADS];
	char lid[64];
	int i;

	read_at(AT_FDCWD, DEVICE "/ports/1/lid", lid);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, read_often, lid) == 0);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
}

static int
is_left(const struct dirent *entry)
{
	char name[32];

	snprintf(name, sizeof(name), ".rmem:%d.", (int)getpid());
	return strncmp(entry->d_name, name, strlen(name)) == 0;
}

static void
no_directory_is_left(void)
{
	static const char *const parents[] = {"/tmp", "/dev/shm", "/var/tmp"};
	struct dirent **list;
	size_t i;
	int n;

	for (i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		/* cppcheck-suppress nullPointer */
		n = scandir(parents[i], &list, is_left, NULL);
		HOLDS(n <= 0);
		if (n == 0)
			free(list);
	}
}

int
main(int argc, char **argv)
{
	char self[PATH_MAX];
	int n;

	if (argc > 1)
		return child((int)strtol(argv[1], NULL, 10));
	HOLDS(realpath("/proc/self/exe", self) != NULL);
	context = open_device("soft0");
	n = count_entries("/proc/self/fd");
	contents_are_those_of_queries();
	verbs_device_is_linked_with_the_device();
	files_are_read_only();
	missing_files_are_missing();
	attributes_agree();
	interfaces_are_those_of_the_host();
	directories_are_listed();
	descriptors_of_directories_are_followed();
	working_directory_is_followed();
	children_inherit_directories(self);
	threads_read_concurrently();
	HOLDS(count_entries("/proc/self/fd") == n);
	no_directory_is_left();
	HOLDS(ibv_close_device(context) == 0);
	return 0;
}
