/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Paths of the view.
 *
 * Invariant: the kernel gets a path first. A path that is not below a directory of the view costs a
 * comparison of a few bytes, and no other system call; such calls are async-signal-safe.
 * Invariant: an open file of the view has no link and a name that begins with MARK, so
 * /proc/self/fd identifies it without state that fork() or exec() could lose. is_cwd_removed is set
 * before the working directory can be one of the view, and never cleared.
 * Invariant: before libc is initialized there is no view, because the core can't be loaded yet.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "ribv_file.h"
#include "ribv_load.h"

#define MARK    ".rmem:" /* start of the name of an open file: .rmem:PID.N:sys:class:... */
#define REMOVED " (deleted)"

__thread int ribv_nb_inside __attribute__((tls_model("initial-exec")));

static bool is_started;     /* libc is initialized */
static bool is_cwd_removed; /* the working directory once had no link; atomic */

__attribute__((constructor)) static void
resolve(void)
{
	ribv_libc_find();
	ribv_cwd_set(AT_FDCWD);
	is_started = true;
}

void
ribv_cwd_set(int fd)
{
	int err = errno;
	struct stat st;

	/* A directory of the view has no link. */
	if (kernel_fstatat(fd, fd == AT_FDCWD ? "." : "", &st, AT_EMPTY_PATH) == 0 &&
			st.st_nlink == 0)
		__atomic_store_n(&is_cwd_removed, true, __ATOMIC_RELAXED);
	errno = err;
}

bool
ribv_may_be_in_view(int dirfd)
{
	return dirfd != AT_FDCWD || !is_started ||
			__atomic_load_n(&is_cwd_removed, __ATOMIC_RELAXED);
}

/* Whether an absolute path is below a directory of the view. */
static bool
may_be_own(const char *path)
{
	return strncmp(path, RIBV_SYSFS, sizeof(RIBV_SYSFS) - 1) == 0 ||
			strncmp(path, RIBV_DEV, sizeof(RIBV_DEV) - 1) == 0;
}

bool
ribv_path_of(int fd, char path[RIBV_PATH])
{
	char link[64], name[RIBV_PATH];
	char *at, *end;
	ssize_t n;

	if (fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/cwd");
	else
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = kernel_readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return false;
	name[n] = '\0';
	at = strstr(name, MARK);
	end = n > (ssize_t)sizeof(REMOVED) ? name + n - (sizeof(REMOVED) - 1) : name;
	if (at == NULL || strcmp(end, REMOVED) != 0)
		return false;
	*end = '\0';
	at = strchr(at + sizeof(MARK) - 1, ':');
	if (at == NULL)
		return false;
	snprintf(path, RIBV_PATH, "%s", at);
	for (at = path; *at != '\0'; at++) {
		if (*at == ':')
			*at = '/';
	}
	return true;
}

/* Get the core's node for an absolute path without "." and "..". */
static struct ribv_node *
find(const char *path)
{
	struct ribv_node *node;
	ribv_view_t view;
	int state;

	/* Loading a library before libc is initialized would lose the environment. */
	if ((!is_started && environ == NULL) || ribv_nb_inside != 0 || !may_be_own(path))
		return NULL;
	node = malloc(sizeof(*node));
	if (node == NULL)
		return NULL;
	snprintf(node->path, sizeof(node->path), "%s", path);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ribv_nb_inside++;
	view = ribv_core_view();
	if (view == NULL || !view(node, ribv_is_owner())) {
		free(node);
		node = NULL;
	}
	ribv_nb_inside--;
	pthread_setcancelstate(state, NULL);
	return node;
}

/* Whether the path may have further components; sets *err if it is a file of the view. */
static bool
is_dir(const char *path, bool is_needed, int *err)
{
	struct ribv_node *node = may_be_own(path) ? find(path) : NULL;
	bool is_file = node != NULL && !S_ISDIR(node->mode);

	if (node == NULL)
		return !is_needed || !may_be_own(path);
	free(node);
	if (is_file)
		*err = ENOTDIR;
	return !is_file;
}

/* Append the components of a path; false if the result can't be a path of the view. */
static bool
append(char path[RIBV_PATH], const char *add, int *err)
{
	size_t len = strlen(path), n;
	bool is_up;
	char *slash;

	for (; *add != '\0'; add += n) {
		add += strspn(add, "/");
		n = strcspn(add, "/");
		is_up = n == 2 && memcmp(add, "..", 2) == 0;
		if (is_up || n == 0 || (n == 1 && add[0] == '.')) {
			if (!is_dir(path, is_up, err))
				return false;
			slash = is_up ? strrchr(path, '/') : path + len;
			len = slash != NULL ? (size_t)(slash - path) : 0;
		} else {
			if (len + 1 + n >= RIBV_PATH)
				return false;
			path[len] = '/';
			memcpy(path + len + 1, add, n);
			len += 1 + n;
		}
		path[len] = '\0';
	}
	return true;
}

void
ribv_at_set(struct ribv_at *at, int dirfd, const char *path)
{
	at->dirfd = dirfd;
	at->path = path;
	at->node = NULL;
}

/* Whether the kernel has read the path: it returns these errors only after that. */
static bool
is_read(int err)
{
	return err == 0 || err == ENOENT || err == EACCES || err == EPERM || err == ENOTDIR ||
			err == EEXIST || err == EISDIR || err == EROFS || err == ENXIO ||
			err == ENODEV || err == ENODATA || err == EOPNOTSUPP;
}

/*
 * Find the node of an absolute path, or of a path relative to a directory of the view. *err is the
 * kernel's errno, and may be replaced. Return true if the kernel must be called with at->path.
 */
static bool
next(struct ribv_at *at, int *err)
{
	const char *path = at->path;
	bool is_absolute = path[0] == '/';

	if (is_absolute) {
		at->text[0] = '\0';
		if (!may_be_own(path))
			return false;
		/* The kernel has resolved ".." of a removed directory, to its former parent. */
	} else if (path[0] == '\0' || (*err != ENOENT && (path[0] != '.' || path[1] != '.')) ||
			!ribv_may_be_in_view(at->dirfd) || ribv_nb_inside != 0 ||
			!ribv_path_of(at->dirfd, at->text)) {
		return false;
	}
	if (!append(at->text, path, err))
		return false;
	at->node = find(at->text);
	/* Retry only if the kernel missed a directory of the view, and the path leads out of the
	 * view. */
	if (is_absolute && (*err != ENOENT || may_be_own(at->text)))
		return false;
	if (at->text[0] == '\0')
		strcpy(at->text, "/");
	at->dirfd = AT_FDCWD;
	at->path = at->text;
	return at->node == NULL;
}

bool
ribv_at_next(struct ribv_at *at, int err)
{
	int kept = errno, instead = err;
	bool is_again;

	if (at->path == NULL || at->path == at->text || !is_read(err))
		return false;
	is_again = next(at, &instead);
	errno = err == ENOENT ? instead : kept;
	return is_again;
}

void
ribv_at_before(struct ribv_at *at)
{
	int err = errno, fd;

	/* Checks the pointer only: this combination of flags can't open a file. */
	fd = kernel_openat(at->dirfd, at->path,
			O_WRONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		kernel_close(fd);
	else if (errno != EFAULT)
		(void)ribv_at_next(at, 0);
	errno = err;
}

struct ribv_node *
ribv_find_open(int fd, const char *path, mode_t mode)
{
	struct ribv_node *node = NULL;
	char text[RIBV_PATH];
	int err = errno;

	if ((S_ISDIR(mode) || (mode == (S_IFREG | 0444) && path[0] == '\0')) &&
			ribv_nb_inside == 0 && ribv_path_of(fd, text) && append(text, path, &err))
		node = find(text);
	errno = err;
	return node;
}

void
ribv_name_of(const char *path, char name[RIBV_PATH + 64])
{
	static uint32_t last;
	char *at;
	int len = snprintf(name, RIBV_PATH + 64, MARK "%d.%u", (int)getpid(),
			__atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));

	snprintf(name + len, RIBV_PATH + 64 - (size_t)len, "%s", path);
	for (at = name + len; *at != '\0'; at++) {
		if (*at == '/')
			*at = ':';
	}
}

int
ribv_dir_open(const struct ribv_node *node, int flags)
{
	static const char *const parents[] = {"/tmp", "/dev/shm", "/var/tmp"};
	char name[RIBV_PATH + 64], path[RIBV_PATH + 128];
	int fd = -1;
	size_t i;

	for (i = 0; i < sizeof(parents) / sizeof(parents[0]) && fd < 0;) {
		ribv_name_of(node->path, name);
		snprintf(path, sizeof(path), "%s/%s", parents[i], name);
		if (syscall(SYS_mkdirat, AT_FDCWD, path, S_IRWXU) == 0) {
			fd = kernel_open(path,
					O_RDONLY | O_DIRECTORY | (flags & (O_CLOEXEC | O_PATH)));
			syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
			i++;
		} else {
			i += errno != EEXIST;
		}
	}
	return fd;
}
