/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Accesses that may fault; see rsoft_guard.h. No function here changes the stack, so the signal
 * handler can end each one at any instruction by continuing at the `ret` at rsoft_guard_stop, with
 * the side in %rax and the faulting address in %rdx. %rdi is the address of the destination: the
 * handler compares it where the processor does not report whether the access was a write. Functions
 * before rsoft_guard_avx_end stop at rsoft_guard_stop_avx, because they may have used the upper
 * halves of vectors.
 *
 * All copies permit overlapping ranges, read only the source, write only the destination, and use
 * ordinary cached stores, since a peer reads the data next.
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
	.globl	rsoft_guard_avx_end
	.hidden	rsoft_guard_avx_end
	.globl	rsoft_guard_stop_avx
	.hidden	rsoft_guard_stop_avx

/* Offsets in struct rsoft_guard_choice. */
#define CHOICE_REP_MIN		8
#define CHOICE_REP_MIN_SKEWED	16

	.macro copy_end is_upper_used
	.if \is_upper_used
	vzeroupper
	.endif
	xorl	%eax, %eax
	ret
	.endm

/*
 * A copy by vectors of `size` bytes, named \v\()0 and so on; \x\()0 and \y\()0 are their first 16
 * and 32 bytes. Up to 8 vectors are loaded before any is stored, which permits any overlap without
 * a loop: the second half of them ends with the last byte.
 *
 * Loads, as many stores, and conditional branches for a length in vectors:
 *
 *	1 to 2		2, 2 branches
 *	to 4		4, 3
 *	to 6, to 8	6 and 8, 5
 *	longer		one for each multiple of `size`, and up to 3; 7, and one for each 4 vectors
 *			and for each of the last ones
 */
	.macro copy_by_vectors name, v, x, y, size, is_upper_used
	.p2align 6
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	_CET_ENDBR
	cmpq	$\size, %rdx
	jb	.Lbelow_one_\name
	cmpq	$(2 * \size), %rdx
	ja	.Lover_2_\name
	vmovups	(%rsi), %\v\()0
	vmovups	-\size(%rsi, %rdx), %\v\()1
	vmovups	%\v\()0, (%rdi)
	vmovups	%\v\()1, -\size(%rdi, %rdx)
	copy_end \is_upper_used

	.p2align 4
.Lbelow_one_\name:
	.if \size > 32
	cmpq	$32, %rdx
	jb	.Lbelow_32_\name
	vmovups	(%rsi), %\y\()0
	vmovups	-32(%rsi, %rdx), %\y\()1
	vmovups	%\y\()0, (%rdi)
	vmovups	%\y\()1, -32(%rdi, %rdx)
	copy_end \is_upper_used
.Lbelow_32_\name:
	.endif
	cmpq	$16, %rdx
	jb	.Lcopy_below_16
	vmovups	(%rsi), %\x\()0
	vmovups	-16(%rsi, %rdx), %\x\()1
	vmovups	%\x\()0, (%rdi)
	vmovups	%\x\()1, -16(%rdi, %rdx)
	xorl	%eax, %eax
	ret

	.p2align 4
.Lover_2_\name:
	cmpq	$(4 * \size), %rdx
	ja	.Lover_4_\name
	vmovups	(%rsi), %\v\()0
	vmovups	\size(%rsi), %\v\()1
	vmovups	-2 * \size(%rsi, %rdx), %\v\()2
	vmovups	-\size(%rsi, %rdx), %\v\()3
	vmovups	%\v\()0, (%rdi)
	vmovups	%\v\()1, \size(%rdi)
	vmovups	%\v\()2, -2 * \size(%rdi, %rdx)
	vmovups	%\v\()3, -\size(%rdi, %rdx)
	copy_end \is_upper_used

	.p2align 4
.Lover_4_\name:
	cmpq	$(8 * \size), %rdx
	ja	.Lover_8_\name
	cmpq	$(6 * \size), %rdx
	jbe	.Lto_6_\name
	vmovups	(%rsi), %\v\()0
	vmovups	\size(%rsi), %\v\()1
	vmovups	2 * \size(%rsi), %\v\()2
	vmovups	3 * \size(%rsi), %\v\()3
	vmovups	-4 * \size(%rsi, %rdx), %\v\()4
	vmovups	-3 * \size(%rsi, %rdx), %\v\()5
	vmovups	-2 * \size(%rsi, %rdx), %\v\()6
	vmovups	-\size(%rsi, %rdx), %\v\()7
	vmovups	%\v\()0, (%rdi)
	vmovups	%\v\()1, \size(%rdi)
	vmovups	%\v\()2, 2 * \size(%rdi)
	vmovups	%\v\()3, 3 * \size(%rdi)
	vmovups	%\v\()4, -4 * \size(%rdi, %rdx)
	vmovups	%\v\()5, -3 * \size(%rdi, %rdx)
	vmovups	%\v\()6, -2 * \size(%rdi, %rdx)
	vmovups	%\v\()7, -\size(%rdi, %rdx)
	copy_end \is_upper_used

	.p2align 4
.Lto_6_\name:
	vmovups	(%rsi), %\v\()0
	vmovups	\size(%rsi), %\v\()1
	vmovups	2 * \size(%rsi), %\v\()2
	vmovups	-3 * \size(%rsi, %rdx), %\v\()3
	vmovups	-2 * \size(%rsi, %rdx), %\v\()4
	vmovups	-\size(%rsi, %rdx), %\v\()5
	vmovups	%\v\()0, (%rdi)
	vmovups	%\v\()1, \size(%rdi)
	vmovups	%\v\()2, 2 * \size(%rdi)
	vmovups	%\v\()3, -3 * \size(%rdi, %rdx)
	vmovups	%\v\()4, -2 * \size(%rdi, %rdx)
	vmovups	%\v\()5, -\size(%rdi, %rdx)
	copy_end \is_upper_used

	.p2align 4
.Lover_8_\name:
	movq	%rdi, %rax
	subq	%rsi, %rax
	cmpq	%rdx, %rax
	jb	.Lback_\name		/* starts inside of what is read */
	testb	$63, %al
	jnz	.Lskewed_\name
	cmpq	CHOICE_REP_MIN + rsoft_guard_choice(%rip), %rdx
	jae	.Lcopy_rep

	/*
	 * Store to multiples of the vector size, except the first and the last vector. Each vector
	 * is loaded before the previous one is stored, which may overwrite its source. Prefetch the
	 * last ones: loads of them would delay the others if they are not in the caches.
	 */
.Lforward_\name:
	vmovups	(%rsi), %\v\()0
	prefetcht0	-1(%rsi, %rdx)
	prefetcht0	-65(%rsi, %rdx)
	prefetcht0	-129(%rsi, %rdx)
	prefetcht0	-193(%rsi, %rdx)
	leaq	-2 * \size(%rdi, %rdx), %r8
	movq	%rdi, %r9
	negq	%rax
	addq	$\size, %rdi
	andq	$-\size, %rdi
	vmovups	(%rdi, %rax), %\v\()1
	vmovups	%\v\()0, (%r9)
	leaq	-4 * \size(%r8), %r10
	.p2align 5
.Lforward_4_\name:
	vmovups	\size(%rdi, %rax), %\v\()0
	vmovaps	%\v\()1, (%rdi)
	vmovups	2 * \size(%rdi, %rax), %\v\()1
	vmovaps	%\v\()0, \size(%rdi)
	vmovups	3 * \size(%rdi, %rax), %\v\()0
	vmovaps	%\v\()1, 2 * \size(%rdi)
	vmovups	4 * \size(%rdi, %rax), %\v\()1
	vmovaps	%\v\()0, 3 * \size(%rdi)
	addq	$(4 * \size), %rdi
	cmpq	%r10, %rdi
	jb	.Lforward_4_\name
	.p2align 5
.Lforward_next_\name:
	vmovups	\size(%rdi, %rax), %\v\()0
	vmovaps	%\v\()1, (%rdi)
	addq	$\size, %rdi
	vmovaps	%\v\()0, %\v\()1
	cmpq	%r8, %rdi
	jb	.Lforward_next_\name
	vmovups	\size(%r8, %rax), %\v\()0
	vmovaps	%\v\()1, (%rdi)
	vmovups	%\v\()0, \size(%r8)
	copy_end \is_upper_used

	/* `rep movsb` copies byte by byte if source and destination are less than 64 bytes
	 * apart. */
.Lskewed_\name:
	cmpq	CHOICE_REP_MIN_SKEWED + rsoft_guard_choice(%rip), %rdx
	jb	.Lforward_\name
	cmpq	$-64, %rax
	jae	.Lforward_\name
	jmp	.Lcopy_rep

	/* Copy from the end backwards, with the last vector and the first 4 loaded first. */
	.p2align 4
.Lback_\name:
	vmovups	-\size(%rsi, %rdx), %\v\()8
	vmovups	(%rsi), %\v\()4
	vmovups	\size(%rsi), %\v\()5
	vmovups	2 * \size(%rsi), %\v\()6
	vmovups	3 * \size(%rsi), %\v\()7
	leaq	-\size(%rdi, %rdx), %r9
	leaq	4 * \size(%rdi), %r8
	leaq	-1(%rdi, %rdx), %rcx
	andq	$-\size, %rcx
	movq	%rcx, %rsi
	subq	%rax, %rsi
	.p2align 5
.Lback_next_\name:
	vmovups	-\size(%rsi), %\v\()0
	vmovups	-2 * \size(%rsi), %\v\()1
	vmovups	-3 * \size(%rsi), %\v\()2
	vmovups	-4 * \size(%rsi), %\v\()3
	subq	$(4 * \size), %rsi
	vmovaps	%\v\()0, -\size(%rcx)
	vmovaps	%\v\()1, -2 * \size(%rcx)
	vmovaps	%\v\()2, -3 * \size(%rcx)
	vmovaps	%\v\()3, -4 * \size(%rcx)
	subq	$(4 * \size), %rcx
	cmpq	%r8, %rcx
	ja	.Lback_next_\name
	vmovups	%\v\()4, (%rdi)
	vmovups	%\v\()5, \size(%rdi)
	vmovups	%\v\()6, 2 * \size(%rdi)
	vmovups	%\v\()7, 3 * \size(%rdi)
	vmovups	%\v\()8, (%r9)
	copy_end \is_upper_used
	.size	\name, . - \name
	.endm

/* Offsets in struct rsoft_gate and struct rseq, and results (rsoft_gate.h). */
#define GATE_OPEN		0
#define GATE_OPEN_VALUE		8
#define GATE_ALIVE		16
#define GATE_ALIVE_VALUE	24
#define GATE_RSEQ		32
#define RSEQ_CS			8
#define RSEQ_SIGNATURE		0x53053053
#define GATE_CLOSED		3
#define GATE_RESTART		4

/*
 * The start of a function for rsoft_gate.h. Copies of 1, 4, 8, 16 and 64 bytes store each byte once.
 * A thread that is descheduled or gets a signal between the loads of the gate and \last continues at
 * rsoft_guard_abort: these instructions are a restartable sequence (rseq(2)).
 */
	.macro gated name, last
	.pushsection .data.rel.ro, "aw"
	.balign 32
.Lsequence_\name:
	.long	0, 0
	.quad	.Lgate_\name, \last - .Lgate_\name, rsoft_guard_abort
	.popsection
	.p2align 5
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	_CET_ENDBR
	movq	GATE_RSEQ(%rcx), %r8
	leaq	.Lsequence_\name(%rip), %rax
	movq	GATE_OPEN(%rcx), %r9
	movq	GATE_ALIVE(%rcx), %r10
	movq	%rax, RSEQ_CS(%r8)
.Lgate_\name:
	movq	(%r9), %r9
	movl	(%r10), %r10d
	cmpq	GATE_OPEN_VALUE(%rcx), %r9
	jne	.Lclosed
	cmpl	GATE_ALIVE_VALUE(%rcx), %r10d
	jne	.Lclosed
	.endm

	.macro gated_tail name
	gated	\name, .Lend_\name
	.endm

	.macro gated_end name
.Lend_\name:
	copy_end 0
	.size	\name, . - \name
	.endm

/* A copy of `size` bytes up to twice as many, by one or two stores of a register. */
	.macro gated_pair name, size, mov, first, last
	gated_tail \name
	\mov	-\size(%rsi, %rdx), \last
	cmpq	$\size, %rdx
	je	.Llast_\name
	\mov	(%rsi), \first
	\mov	\first, (%rdi)
.Llast_\name:
	\mov	\last, -\size(%rdi, %rdx)
	gated_end \name
	.endm

rsoft_guard_begin:

/* The sequence includes all copy functions: it must be the first one. */
	gated	rsoft_guard_x86_gated, rsoft_guard_end
	jmp	*rsoft_guard_choice(%rip)
	.size	rsoft_guard_x86_gated, . - rsoft_guard_x86_gated

/* 16 to 64 bytes. */
	gated_tail rsoft_guard_x86_gated_64
	movups	-16(%rsi, %rdx), %xmm3
	cmpq	$16, %rdx
	je	.Lgated_last_16
	cmpq	$32, %rdx
	movups	(%rsi), %xmm0
	jbe	.Lgated_32
	movups	16(%rsi), %xmm1
	movups	-32(%rsi, %rdx), %xmm2
	movups	%xmm1, 16(%rdi)
	movups	%xmm2, -32(%rdi, %rdx)
.Lgated_32:
	movups	%xmm0, (%rdi)
.Lgated_last_16:
	movups	%xmm3, -16(%rdi, %rdx)
	gated_end rsoft_guard_x86_gated_64

/* 64 bytes with AVX-512. */
	gated_tail rsoft_guard_x86_gated_line
	vmovups	(%rsi), %zmm16
	vmovups	%zmm16, (%rdi)
	gated_end rsoft_guard_x86_gated_line

/* 8 to 15 bytes, and 4 to 7. */
	gated_pair rsoft_guard_x86_gated_16, 8, movq, %rax, %r9
	gated_pair rsoft_guard_x86_gated_8, 4, movl, %eax, %r9d

/* 1 to 3 bytes. */
	gated_tail rsoft_guard_x86_gated_3
	movzbl	-1(%rsi, %rdx), %r10d
	cmpq	$1, %rdx
	je	.Lgated_last_1
	movzbl	(%rsi), %eax
	movb	%al, (%rdi)
	cmpq	$2, %rdx
	je	.Lgated_last_1
	movzbl	1(%rsi), %eax
	movb	%al, 1(%rdi)
.Lgated_last_1:
	movb	%r10b, -1(%rdi, %rdx)
	gated_end rsoft_guard_x86_gated_3

.Lclosed:
	movl	$GATE_CLOSED, %eax
	ret

/* struct rsoft_guarded rsoft_guard_x86_copy_avx2(void *to, const void *from, size_t length) */
	copy_by_vectors rsoft_guard_x86_copy_avx2, ymm, xmm, ymm, 32, 1

rsoft_guard_avx_end:

/*
 * struct rsoft_guarded rsoft_guard_x86_copy_avx512(void *to, const void *from, size_t length)
 * It uses vectors from 16 on, whose upper halves do not slow down SSE instructions.
 */
	copy_by_vectors rsoft_guard_x86_copy_avx512, zmm2, xmm2, ymm2, 64, 0

/* struct rsoft_guarded rsoft_guard_x86_copy_sse2(void *to, const void *from, size_t length) */
	.p2align 5
	.globl	rsoft_guard_x86_copy_sse2
	.hidden	rsoft_guard_x86_copy_sse2
	.type	rsoft_guard_x86_copy_sse2, @function
rsoft_guard_x86_copy_sse2:
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
	.p2align 6
.Lcopy_below_16:
	cmpq	$8, %rdx
	jb	.Lcopy_below_8
	movq	(%rsi), %rcx
	movq	-8(%rsi, %rdx), %r8
	movq	%rcx, (%rdi)
	movq	%r8, -8(%rdi, %rdx)
	xorl	%eax, %eax
	ret
.Lcopy_below_8:
	cmpq	$4, %rdx
	jae	.Lcopy_4
	cmpq	$2, %rdx
	jae	.Lcopy_2
	testq	%rdx, %rdx
	jz	.Lcopy_done
	movzbl	(%rsi), %ecx
	movb	%cl, (%rdi)
	jmp	.Lcopy_done

	/* Load both halves before storing either, because the ranges may overlap. */
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
.Lcopy_rep:
	movq	%rdx, %rcx
	rep movsb
	xorl	%eax, %eax
	ret

	/* Load the last 64 bytes first, because an earlier store may change them. */
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
	 * The same with stores to multiples of 16. The first 16 bytes are also loaded first, and
	 * stored last, because later loads may need what they overwrite.
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

	/* Copy from the end backwards, with the first 64 bytes loaded first. */
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
	.size	rsoft_guard_x86_copy_sse2, . - rsoft_guard_x86_copy_sse2

/* struct rsoft_guarded rsoft_guard_add(uint64_t *word, uint64_t add, uint64_t *before) */
	.p2align 4
	.globl	rsoft_guard_add
	.hidden	rsoft_guard_add
	.type	rsoft_guard_add, @function
rsoft_guard_add:
	_CET_ENDBR
	lock xaddq %rsi, (%rdi)
	movq	%rsi, (%rdx)
	xorl	%eax, %eax
	ret
	.size	rsoft_guard_add, . - rsoft_guard_add

/* struct rsoft_guarded rsoft_guard_swap(uint64_t *word, uint64_t *before, uint64_t swap) */
	.p2align 4
	.globl	rsoft_guard_swap
	.hidden	rsoft_guard_swap
	.type	rsoft_guard_swap, @function
rsoft_guard_swap:
	_CET_ENDBR
	movq	(%rsi), %rax
	lock cmpxchgq %rdx, (%rdi)
	movq	%rax, (%rsi)
	xorl	%eax, %eax
	ret
	.size	rsoft_guard_swap, . - rsoft_guard_swap

rsoft_guard_end:
	.p2align 4
	.globl	rsoft_guard_abort
	.hidden	rsoft_guard_abort
	.long	RSEQ_SIGNATURE
	.type	rsoft_guard_abort, @function
rsoft_guard_abort:
	movl	$GATE_RESTART, %eax
	ret
	.size	rsoft_guard_abort, . - rsoft_guard_abort
	.type	rsoft_guard_stop_avx, @function
rsoft_guard_stop_avx:
	vzeroupper
	.size	rsoft_guard_stop_avx, . - rsoft_guard_stop_avx
	.type	rsoft_guard_stop, @function
rsoft_guard_stop:
	ret
	.size	rsoft_guard_stop, . - rsoft_guard_stop

	.section .note.GNU-stack, "", @progbits
