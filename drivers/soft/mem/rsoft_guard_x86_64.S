/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Accesses that may fail; see rsoft_guard.h. No function here pushes anything, so that one
 * that stops at any instruction can end with the `ret` at rsoft_guard_stop, where the signal
 * handler sends it with the side in %rax and the address that failed in %rdx. %rdi is where
 * they write: the handler needs it where the processor does not tell the side.
 */

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.text
	.globl	rsoft_guard_begin
	.hidden	rsoft_guard_begin
	.globl	rsoft_guard_end
	.hidden	rsoft_guard_end
	.globl	rsoft_guard_stop
	.hidden	rsoft_guard_stop

rsoft_guard_begin:

/* struct rsoft_guarded rsoft_guard_x86_copy(void *to, const void *from, size_t length) */
	.p2align 5
	.globl	rsoft_guard_x86_copy
	.hidden	rsoft_guard_x86_copy
	.type	rsoft_guard_x86_copy, @function
rsoft_guard_x86_copy:
	_CET_ENDBR
	cmpq	$64, %rdx
	jne	.Lcopy_any
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	movups	%xmm0, (%rdi)
	movups	%xmm1, 16(%rdi)
	movups	%xmm2, 32(%rdi)
	movups	%xmm3, 48(%rdi)
	xorl	%eax, %eax
	ret

.Lcopy_any:
	ja	.Lcopy_long
	cmpq	$32, %rdx
	jae	.Lcopy_32
	cmpq	$16, %rdx
	jae	.Lcopy_16
	cmpq	$8, %rdx
	jae	.Lcopy_8
	cmpq	$4, %rdx
	jae	.Lcopy_4
	cmpq	$2, %rdx
	jae	.Lcopy_2
	testq	%rdx, %rdx
	jz	.Lcopy_done
	movzbl	(%rsi), %ecx
	movb	%cl, (%rdi)
	jmp	.Lcopy_done

	/* Both halves are loaded before either is stored: the ranges may overlap. */
.Lcopy_32:
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	-32(%rsi, %rdx), %xmm2
	movups	-16(%rsi, %rdx), %xmm3
	movups	%xmm0, (%rdi)
	movups	%xmm1, 16(%rdi)
	movups	%xmm2, -32(%rdi, %rdx)
	movups	%xmm3, -16(%rdi, %rdx)
	jmp	.Lcopy_done
.Lcopy_16:
	movups	(%rsi), %xmm0
	movups	-16(%rsi, %rdx), %xmm1
	movups	%xmm0, (%rdi)
	movups	%xmm1, -16(%rdi, %rdx)
	jmp	.Lcopy_done
.Lcopy_8:
	movq	(%rsi), %rcx
	movq	-8(%rsi, %rdx), %r8
	movq	%rcx, (%rdi)
	movq	%r8, -8(%rdi, %rdx)
	jmp	.Lcopy_done
.Lcopy_4:
	movl	(%rsi), %ecx
	movl	-4(%rsi, %rdx), %r8d
	movl	%ecx, (%rdi)
	movl	%r8d, -4(%rdi, %rdx)
	jmp	.Lcopy_done
.Lcopy_2:
	movzwl	(%rsi), %ecx
	movzwl	-2(%rsi, %rdx), %r8d
	movw	%cx, (%rdi)
	movw	%r8w, -2(%rdi, %rdx)
.Lcopy_done:
	xorl	%eax, %eax
	ret

.Lcopy_long:
	movq	%rdi, %rax
	subq	%rsi, %rax
	cmpq	%rdx, %rax
	jb	.Lcopy_back		/* starts inside of what is read */
	cmpq	$256, %rdx
	jb	.Lcopy_forward
	cmpq	$8192, %rdx
	jb	.Lcopy_aligned
	movq	%rdx, %rcx
	rep movsb
	xorl	%eax, %eax
	ret

	/* The last 64 bytes are loaded first, as a store before them may change them. */
.Lcopy_forward:
	movups	-64(%rsi, %rdx), %xmm4
	movups	-48(%rsi, %rdx), %xmm5
	movups	-32(%rsi, %rdx), %xmm6
	movups	-16(%rsi, %rdx), %xmm7
	leaq	-64(%rdi, %rdx), %r8
.Lforward_next:
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	addq	$64, %rsi
	movups	%xmm0, (%rdi)
	movups	%xmm1, 16(%rdi)
	movups	%xmm2, 32(%rdi)
	movups	%xmm3, 48(%rdi)
	addq	$64, %rdi
	cmpq	%r8, %rdi
	jb	.Lforward_next
	movups	%xmm4, (%r8)
	movups	%xmm5, 16(%r8)
	movups	%xmm6, 32(%r8)
	movups	%xmm7, 48(%r8)
	xorl	%eax, %eax
	ret

	/*
	 * The same with stores to multiples of 16. The first 16 bytes are loaded first too, and
	 * stored last, since loads after that may be of what they overwrite.
	 */
.Lcopy_aligned:
	movups	(%rsi), %xmm8
	movups	-64(%rsi, %rdx), %xmm4
	movups	-48(%rsi, %rdx), %xmm5
	movups	-32(%rsi, %rdx), %xmm6
	movups	-16(%rsi, %rdx), %xmm7
	leaq	-64(%rdi, %rdx), %r8
	leaq	-128(%rdi, %rdx), %r10
	movq	%rdi, %r9
	movq	%rdi, %rcx
	addq	$16, %rdi
	andq	$-16, %rdi
	subq	%rdi, %rcx
	subq	%rcx, %rsi
.Laligned_next:
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	movups	64(%rsi), %xmm9
	movups	80(%rsi), %xmm10
	movups	96(%rsi), %xmm11
	movups	112(%rsi), %xmm12
	subq	$-128, %rsi
	movaps	%xmm0, (%rdi)
	movaps	%xmm1, 16(%rdi)
	movaps	%xmm2, 32(%rdi)
	movaps	%xmm3, 48(%rdi)
	movaps	%xmm9, 64(%rdi)
	movaps	%xmm10, 80(%rdi)
	movaps	%xmm11, 96(%rdi)
	movaps	%xmm12, 112(%rdi)
	subq	$-128, %rdi
	cmpq	%r10, %rdi
	jbe	.Laligned_next
	cmpq	%r8, %rdi
	jae	.Laligned_end
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	movaps	%xmm0, (%rdi)
	movaps	%xmm1, 16(%rdi)
	movaps	%xmm2, 32(%rdi)
	movaps	%xmm3, 48(%rdi)
.Laligned_end:
	movups	%xmm4, (%r8)
	movups	%xmm5, 16(%r8)
	movups	%xmm6, 32(%r8)
	movups	%xmm7, 48(%r8)
	movups	%xmm8, (%r9)
	xorl	%eax, %eax
	ret

	/* From the end on, the first 64 bytes being loaded first. */
.Lcopy_back:
	movups	(%rsi), %xmm4
	movups	16(%rsi), %xmm5
	movups	32(%rsi), %xmm6
	movups	48(%rsi), %xmm7
	movq	%rdx, %rcx
.Lback_next:
	movups	-64(%rsi, %rcx), %xmm0
	movups	-48(%rsi, %rcx), %xmm1
	movups	-32(%rsi, %rcx), %xmm2
	movups	-16(%rsi, %rcx), %xmm3
	movups	%xmm0, -64(%rdi, %rcx)
	movups	%xmm1, -48(%rdi, %rcx)
	movups	%xmm2, -32(%rdi, %rcx)
	movups	%xmm3, -16(%rdi, %rcx)
	subq	$64, %rcx
	cmpq	$64, %rcx
	ja	.Lback_next
	movups	%xmm4, (%rdi)
	movups	%xmm5, 16(%rdi)
	movups	%xmm6, 32(%rdi)
	movups	%xmm7, 48(%rdi)
	xorl	%eax, %eax
	ret
	.size	rsoft_guard_x86_copy, . - rsoft_guard_x86_copy

/* struct rsoft_guarded rsoft_guard_x86_add(uint64_t *word, uint64_t add, uint64_t *before) */
	.p2align 4
	.globl	rsoft_guard_x86_add
	.hidden	rsoft_guard_x86_add
	.type	rsoft_guard_x86_add, @function
rsoft_guard_x86_add:
	_CET_ENDBR
	lock xaddq %rsi, (%rdi)
	movq	%rsi, (%rdx)
	xorl	%eax, %eax
	ret
	.size	rsoft_guard_x86_add, . - rsoft_guard_x86_add

/* struct rsoft_guarded rsoft_guard_x86_swap(uint64_t *word, uint64_t *before, uint64_t swap) */
	.p2align 4
	.globl	rsoft_guard_x86_swap
	.hidden	rsoft_guard_x86_swap
	.type	rsoft_guard_x86_swap, @function
rsoft_guard_x86_swap:
	_CET_ENDBR
	movq	(%rsi), %rax
	lock cmpxchgq %rdx, (%rdi)
	movq	%rax, (%rsi)
	xorl	%eax, %eax
	ret
	.size	rsoft_guard_x86_swap, . - rsoft_guard_x86_swap

rsoft_guard_end:
	.type	rsoft_guard_stop, @function
rsoft_guard_stop:
	ret
	.size	rsoft_guard_stop, . - rsoft_guard_stop

	.section .note.GNU-stack, "", @progbits
