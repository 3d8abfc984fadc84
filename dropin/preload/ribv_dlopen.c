/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * dlopen(): a handle for libibverbs or librdmacm refers to a library that has the names of
 * librmem_ibv.so and depends on the real library (ribv_names.c). So dlsym() and dlvsym() need not
 * be replaced.
 *
 * dlopen() of libc uses its return address to identify the caller, for RPATH, RUNPATH, $ORIGIN and
 * the namespace. So this function jumps to it, or to open_verbs(), which then has the same return
 * address.
 */

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ribv_file.h"
#include "ribv_load.h"

#define LIBIBVERBS "libibverbs.so"
#define LIBRDMACM  "librdmacm.so"

typedef void *(*dlopen_t)(const char *name, int flags);

/* Return the function that dlopen() jumps to. */
RIBV_HIDDEN __attribute__((used)) dlopen_t ribv_dlopen_to(const char *name);

/* clang-format off */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call ribv_dlopen_to\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	"	.size dlopen, . - dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl ribv_dlopen_to\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	.cfi_def_cfa_offset 0\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	"	.size dlopen, . - dlopen\n");
#else
/* Other architectures: the compiler may make this a sibling call. */
void *
dlopen(const char *name, int flags)
{
	return ribv_dlopen_to(name)(name, flags);
}
#endif
/* clang-format on */

/* Whether the file is the library with any minor version of 1, or without a version, as in
 * development packages. */
static bool
is_library(const char *file, const char *library)
{
	size_t n = strlen(library);

	if (strncmp(file, library, n) != 0)
		return false;
	return file[n] == '\0' ||
			(strncmp(file + n, ".1", 2) == 0 &&
					(file[n + 2] == '\0' || file[n + 2] == '.'));
}

/* File name of a path, or the name that is searched for. */
static const char *
file_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash != NULL ? slash + 1 : name;
}

static const char own_address; /* an address in this library */

/* Return the directories that libc searches for the object with that address; free() them. */
static Dl_serinfo *
dirs_for(const void *address)
{
	Dl_serinfo size, *dirs;
	struct link_map *map;
	Dl_info info;

	if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
			dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0)
		return NULL;
	dirs = malloc(size.dls_size);
	if (dirs == NULL)
		return NULL;
	dirs->dls_size = size.dls_size;
	dirs->dls_cnt = size.dls_cnt;
	if (dlinfo(map, RTLD_DI_SERINFO, dirs) == 0)
		return dirs;
	free(dirs);
	return NULL;
}

/*
 * Number of directories that only the caller's list has, at its start: RPATH or, with RUNPATH, also
 * LD_LIBRARY_PATH. The rest of the list is the same as for this library.
 */
static unsigned int
nb_dirs(const Dl_serinfo *dirs, const Dl_serinfo *own)
{
	unsigned int n = dirs->dls_cnt, at = own->dls_cnt;

	while (n > 0 && at > 0 &&
			strcmp(dirs->dls_serpath[n - 1].dls_name,
					own->dls_serpath[at - 1].dls_name) == 0) {
		n--;
		at--;
	}
	return n;
}

/* Search these directories for the library. libc would not, because its caller is this library. */
static void *
open_for(const void *caller, const char *name, int flags)
{
	Dl_serinfo *dirs = dirs_for(caller), *own = dirs_for(&own_address);
	unsigned int i, n = dirs != NULL && own != NULL ? nb_dirs(dirs, own) : 0;
	char path[RIBV_LIBRARY_PATH];
	void *library = NULL;

	for (i = 0; i < n && library == NULL; i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs->dls_serpath[i].dls_name, name);
		library = REAL(dlopen)(path, flags);
	}
	free(dirs);
	free(own);
	return library;
}

/* Open the real library: the loaded one, if any, as libc does. */
static void *
open_real(const void *caller, const char *name, int flags)
{
	void *library = REAL(dlopen)(name, flags | RTLD_NOLOAD);

	if (library == NULL && (flags & RTLD_NOLOAD) == 0 && strchr(name, '/') == NULL)
		library = open_for(caller, name, flags);
	return library != NULL ? library : REAL(dlopen)(name, flags);
}

static void *
refuse(const char *name)
{
	static bool is_logged; /* atomic */
	char text[256];

	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		fprintf(stderr, "rmem_ibv: %s: refused with RTLD_DEEPBIND\n", name);
	/* The failing call sets the text of dlerror(). */
	snprintf(text, sizeof(text), "%s: RTLD_DEEPBIND with rmem-run", name);
	return REAL(dlopen)(text, RTLD_LAZY | RTLD_NOLOAD);
}

/* Open libibverbs or librdmacm for the caller of dlopen(). */
static __attribute__((noinline)) void *
open_verbs(const char *name, int flags)
{
	const void *caller = __builtin_return_address(0);
	void *library, *names = NULL;
	bool is_cm = is_library(file_of(name), LIBRDMACM);
	char path[RIBV_LIBRARY_PATH];

	if ((flags & RTLD_DEEPBIND) != 0)
		return refuse(name);
	library = open_real(caller, name, flags);
	/* Also the name without a version, of development packages. */
	if (library == NULL && (strcmp(name, LIBIBVERBS) == 0 || strcmp(name, LIBRDMACM) == 0)) {
		snprintf(path, sizeof(path), "%s.1", name);
		library = open_real(caller, path, flags);
	}
	if (library == NULL)
		return NULL;
	/* Not RTLD_GLOBAL: the global scope already has the functions of librmem_ibv.so. */
	if (ribv_library_path(path, is_cm ? "librmem_ibv_names_cm.so" : "librmem_ibv_names.so"))
		names = REAL(dlopen)(path, flags & ~(RTLD_NOLOAD | RTLD_GLOBAL));
	if (names == NULL) {
		fprintf(stderr, "rmem_ibv: %s: no device of rmem: %s\n", name, dlerror());
		return library;
	}
	dlclose(library); /* names depends on it */
	return names;
}

dlopen_t
ribv_dlopen_to(const char *name)
{
	const char *file = name != NULL ? file_of(name) : "";

	/* A variable of the path is one of the caller. */
	if (file[0] != 'l' || strchr(name, '$') != NULL ||
			(!is_library(file, LIBIBVERBS) && !is_library(file, LIBRDMACM)))
		return REAL(dlopen);
	return open_verbs;
}
