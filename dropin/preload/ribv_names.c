/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv_names.so and librmem_ibv_names_cm.so, which dlopen() returns for libibverbs and
 * librdmacm (ribv_dlopen.c). They have the names of the functions of libibverbs that librmem_ibv.so
 * defines, and need the real library, where dlsym() finds the others.
 *
 * They have no symbol versions, and import none: so glibc finds a name also for dlvsym() with any
 * version. Libraries that link libibverbs are not concerned, since these two are in no scope but
 * that of the handle.
 */

/* The address is one of librmem_ibv.so, by a name of its own. */
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

/* That of IBVERBS_1.0 in libibverbs takes another struct. */
NAME(ibv_get_device_name)
