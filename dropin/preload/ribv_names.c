/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv_names.so and librmem_ibv_names_cm.so, which dlopen() returns for libibverbs and
 * librdmacm (ribv_dlopen.c). They define the same functions of libibverbs as librmem_ibv.so, and
 * depend on the real library, where dlsym() finds all others.
 *
 * They have no symbol versions and import none, so glibc also finds their names for dlvsym() with
 * any version. They are only in the scope of the handle, so libraries linked with libibverbs do not
 * see them.
 */

/* Jump to the function in librmem_ibv.so, by a name that only this library uses. */
#if defined(__x86_64__)
#define JUMP(name) "endbr64\n\tjmp *rmem_" name "@GOTPCREL(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name)                                                                                 \
	"hint #34\n\tadrp x16, :got:rmem_" name "\n\tldr x16, [x16, :got_lo12:rmem_" name          \
	"]\n\tbr x16\n"
#endif

#define NAME(name)                                                                                 \
	__asm__(".text\n\t.balign 16\n\t.globl " #name "\n\t.type " #name ", %function\n" #name    \
		":\n\t" JUMP(#name) "\t.size " #name ", . - " #name "\n");

#define LIST(...)
#define PASS(type, name, params, args)      NAME(name)
#define PASS_ERR(name, params, args)        NAME(name)
#define PASS_LOAD(type, name, params, args) NAME(name)
#define PASS_VOID(name, params, args)       NAME(name)
#define PASS_WAIT(type, name, params, args) NAME(name)

#include "ribv_pass.h"

/* The version IBVERBS_1.0 in libibverbs takes another struct. */
NAME(ibv_get_device_name)
