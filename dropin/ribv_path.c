/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Paths of the view. A path that is not below one of its directories costs the comparison of a few
 * bytes, and no system call. Functions of libc are looked up when the library is loaded, or by the
 * first call if another library's constructor runs before; later calls are async-signal-safe for
 * all paths but those of the view. Before libc is initialized there is no view.
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ribv_file.h"

#define MARK    "/.rmem:" /* begins the name of an open directory: .rmem:PID.N:sys:class:... */
#define REMOVED " (deleted)"

__thread int ribv_nb_inside __attribute__((tls_model("initial-exec")));

#define RIBV_NAME(name) #name,
static const char *const names[] = {RIBV_FUNCTIONS(RIBV_NAME)};
static ribv_function_t functions[RIBV_NB_REAL]; /* atomic */
static bool is_started;                         /* libc is initialized */

ribv_function_t
ribv_real(enum ribv_real index)
{
	union {
		void *object;
		ribv_function_t function;
	} found;

	found.function = __atomic_load_n(&functions[index], __ATOMIC_RELAXED);
	if (found.function == NULL) {
		found.object = dlsym(RTLD_NEXT, names[index]);
		__atomic_store_n(&functions[index], found.function, __ATOMIC_RELAXED);
	}
	return found.function;
}

__attribute__((constructor)) static void
resolve(void)
{
	int i;

	for (i = 0; i < RIBV_NB_REAL; i++)
		ribv_real((enum ribv_real)i);
	is_started = true;
}

/* Whether an absolute path begins with that of a directory of the view. */
static bool
may_be_own(const char *path)
{
	return strncmp(path, RIBV_SYSFS, sizeof(RIBV_SYSFS) - 1) == 0 ||
			strncmp(path, RIBV_DEV, sizeof(RIBV_DEV) - 1) == 0;
}

/* Append the components of a path to a path; return whether they fit. */
static bool
append(char path[RIBV_PATH], const char *add)
{
	size_t len = strlen(path), n;
	char *slash;

	for (; *add != '\0'; add += n) {
		add += strspn(add, "/");
		n = strcspn(add, "/");
		if (n == 0 || (n == 1 && add[0] == '.'))
			continue;
		if (n == 2 && memcmp(add, "..", 2) == 0) {
			slash = strrchr(path, '/');
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

bool
ribv_path_of(int dirfd, char path[RIBV_PATH])
{
	char link[64], name[RIBV_PATH];
	char *at, *end;
	ssize_t n;

	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/cwd");
	else
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	n = REAL(readlinkat)(AT_FDCWD, link, name, sizeof(name) - 1);
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

/* Whether the path may be of the view; written without ".", "..". */
static bool
resolve_path(int dirfd, const char *path, char out[RIBV_PATH])
{
	if (path[0] == '/') {
		out[0] = '\0';
		return append(out, path);
	}
	return path[0] != '\0' && ribv_path_of(dirfd, out) && append(out, path);
}

/* The node that the core has for a path. */
static struct ribv_node *
find(int dirfd, const char *path)
{
	struct ribv_node *node;
	ribv_function_t view;
	char own[RIBV_PATH];
	int state;

	/* Loading a library before libc is initialized loses the environment. */
	if (!is_started && environ == NULL)
		return NULL;
	if (ribv_nb_inside != 0 || !resolve_path(dirfd, path, own) || !may_be_own(own))
		return NULL;
	node = malloc(sizeof(*node));
	if (node == NULL)
		return NULL;
	memcpy(node->path, own, sizeof(own));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ribv_nb_inside++;
	view = ribv_core_function("ribv_view_find");
	if (view == NULL || !((__typeof__(&ribv_view_find))view)(node)) {
		free(node);
		node = NULL;
	}
	ribv_nb_inside--;
	pthread_setcancelstate(state, NULL);
	return node;
}

struct ribv_node *
ribv_find_before(int dirfd, const char *path)
{
	struct ribv_node *node;
	int err = errno;

	/* The kernel would follow ".." of a removed directory. */
	if (path == NULL || !(path[0] == '/' ? may_be_own(path) : path[0] == '.' && path[1] == '.'))
		return NULL;
	node = find(dirfd, path);
	errno = err;
	return node;
}

struct ribv_node *
ribv_find_after(int dirfd, const char *path)
{
	struct ribv_node *node;

	if (errno != ENOENT || path[0] == '/')
		return NULL;
	node = find(dirfd, path);
	errno = ENOENT;
	return node;
}

struct ribv_node *
ribv_find_open(int dirfd)
{
	struct ribv_node *node = NULL;
	int err = errno;
	struct stat st;

	/* A removed directory has no link. */
	if (REAL(fstatat)(dirfd, dirfd == AT_FDCWD ? "." : "", &st, AT_EMPTY_PATH) == 0 &&
			S_ISDIR(st.st_mode) && st.st_nlink == 0)
		node = find(dirfd, ".");
	errno = err;
	return node;
}

int
ribv_dir_open(const struct ribv_node *node, int flags)
{
	static const char *const parents[] = {"/tmp", "/dev/shm", "/var/tmp"};
	static uint32_t last;
	char name[RIBV_PATH + 64];
	int fd = -1, len;
	size_t i;
	char *at;

	for (i = 0; i < sizeof(parents) / sizeof(parents[0]) && fd < 0;) {
		len = snprintf(name, sizeof(name), "%s" MARK "%d.%u", parents[i], (int)getpid(),
				__atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
		snprintf(name + len, sizeof(name) - (size_t)len, "%s", node->path);
		for (at = name + len; *at != '\0'; at++) {
			if (*at == '/')
				*at = ':';
		}
		if (mkdir(name, S_IRWXU) == 0) {
			fd = REAL(openat)(AT_FDCWD, name,
					O_RDONLY | O_DIRECTORY | (flags & (O_CLOEXEC | O_PATH)));
			rmdir(name);
			i++;
		} else {
			i += errno != EEXIST;
		}
	}
	return fd;
}
