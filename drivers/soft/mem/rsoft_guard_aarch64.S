/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Accesses that may fault; see rsoft_guard.h. No function here changes the stack, so the signal
 * handler can end each one at any instruction by continuing at the `ret` at rsoft_guard_stop, with
 * the side in x0 and the faulting address in x1. Before rsoft_guard_words it finds the side in the
 * instruction: bit 22 is set in all loads that are used here, and clear in all stores. The word of
 * an atomic is the destination.
 *
 * All copies permit overlapping ranges, read only the source and write only the destination.
 */

	/* Return RSOFT_SIDE_NONE. */
	.macro guard_end
	mov	x0, #0
	ret
	.endm

	.text
	.globl	rsoft_guard_begin
	.hidden	rsoft_guard_begin
	.globl	rsoft_guard_words
	.hidden	rsoft_guard_words
	.globl	rsoft_guard_end
	.hidden	rsoft_guard_end
	.globl	rsoft_guard_stop
	.hidden	rsoft_guard_stop

rsoft_guard_begin:

/*
 * struct rsoft_guarded rsoft_guard_copy(void *to, const void *from, size_t length)
 *
 * Up to 128 bytes are loaded before any is stored: the second half of the registers ends with the
 * last byte. x4 and x5 are the ends of the source and of the destination.
 */
	.p2align 6
	.globl	rsoft_guard_copy
	.hidden	rsoft_guard_copy
	.type	rsoft_guard_copy, %function
rsoft_guard_copy:
	add	x4, x1, x2
	add	x5, x0, x2
	cmp	x2, #16
	b.lo	.Lcopy_below_16
	cmp	x2, #32
	b.hi	.Lcopy_over_32
	ldr	q0, [x1]
	ldur	q1, [x4, #-16]
	str	q0, [x0]
	stur	q1, [x5, #-16]
	guard_end

.Lcopy_over_32:
	cmp	x2, #64
	b.hi	.Lcopy_over_64
	ldp	q0, q1, [x1]
	ldp	q2, q3, [x4, #-32]
	stp	q0, q1, [x0]
	stp	q2, q3, [x5, #-32]
	guard_end

.Lcopy_over_64:
	cmp	x2, #128
	b.hi	.Lcopy_long
	ldp	q0, q1, [x1]
	ldp	q2, q3, [x1, #32]
	ldp	q4, q5, [x4, #-64]
	ldp	q6, q7, [x4, #-32]
	stp	q0, q1, [x0]
	stp	q2, q3, [x0, #32]
	stp	q4, q5, [x5, #-64]
	stp	q6, q7, [x5, #-32]
	guard_end

.Lcopy_below_16:
	tbz	x2, #3, .Lcopy_below_8
	ldr	x6, [x1]
	ldur	x7, [x4, #-8]
	str	x6, [x0]
	stur	x7, [x5, #-8]
	guard_end
.Lcopy_below_8:
	tbz	x2, #2, .Lcopy_below_4
	ldr	w6, [x1]
	ldur	w7, [x4, #-4]
	str	w6, [x0]
	stur	w7, [x5, #-4]
	guard_end
.Lcopy_below_4:
	tbz	x2, #1, .Lcopy_below_2
	ldrh	w6, [x1]
	ldurh	w7, [x4, #-2]
	strh	w6, [x0]
	sturh	w7, [x5, #-2]
	guard_end
.Lcopy_below_2:
	cbz	x2, .Lcopy_none
	ldrb	w6, [x1]
	strb	w6, [x0]
.Lcopy_none:
	guard_end

	/*
	 * Store to multiples of 32, except the first and the last 32 bytes. 32 bytes are loaded
	 * before the previous ones are stored, which may overwrite their source.
	 */
.Lcopy_long:
	sub	x6, x0, x1
	cmp	x6, x2
	b.lo	.Lcopy_back		/* starts inside of what is read */
	ldp	q0, q1, [x1]
	add	x3, x0, #32
	and	x3, x3, #-32
	sub	x1, x3, x6
	sub	x8, x5, #64
	ldp	q2, q3, [x1]
	stp	q0, q1, [x0]
.Lforward_next:
	ldp	q0, q1, [x1, #32]
	stp	q2, q3, [x3]
	add	x3, x3, #32
	cmp	x3, x8
	b.hs	.Lforward_end
	ldp	q2, q3, [x1, #64]
	add	x1, x1, #64
	stp	q0, q1, [x3]
	add	x3, x3, #32
	cmp	x3, x8
	b.lo	.Lforward_next
	mov	v0.16b, v2.16b
	mov	v1.16b, v3.16b
.Lforward_end:
	ldp	q2, q3, [x4, #-32]
	stp	q0, q1, [x3]
	stp	q2, q3, [x5, #-32]
	guard_end

	/* The same from the end backwards; x7 is the source of x3. */
.Lcopy_back:
	ldp	q0, q1, [x4, #-32]
	sub	x3, x5, #1
	and	x3, x3, #-32
	sub	x7, x3, x6
	add	x8, x0, #64
	ldp	q2, q3, [x7, #-32]
	stp	q0, q1, [x5, #-32]
.Lback_next:
	ldp	q0, q1, [x7, #-64]
	stp	q2, q3, [x3, #-32]
	sub	x3, x3, #32
	cmp	x3, x8
	b.ls	.Lback_end
	ldp	q2, q3, [x7, #-96]
	sub	x7, x7, #64
	stp	q0, q1, [x3, #-32]
	sub	x3, x3, #32
	cmp	x3, x8
	b.hi	.Lback_next
	mov	v0.16b, v2.16b
	mov	v1.16b, v3.16b
.Lback_end:
	ldp	q2, q3, [x1]
	stp	q0, q1, [x3, #-32]
	stp	q2, q3, [x0]
	guard_end
	.size	rsoft_guard_copy, . - rsoft_guard_copy

rsoft_guard_words:

/* struct rsoft_guarded rsoft_guard_add(uint64_t *word, uint64_t add, uint64_t *before) */
	.p2align 4
	.globl	rsoft_guard_add
	.hidden	rsoft_guard_add
	.type	rsoft_guard_add, %function
rsoft_guard_add:
	ldaxr	x3, [x0]
	add	x4, x3, x1
	stlxr	w5, x4, [x0]
	cbnz	w5, rsoft_guard_add
	str	x3, [x2]
	guard_end
	.size	rsoft_guard_add, . - rsoft_guard_add

/*
 * struct rsoft_guarded rsoft_guard_swap(uint64_t *word, uint64_t *before, uint64_t swap)
 * As on x86-64, the word is also stored if it is different: it must be writable.
 */
	.p2align 4
	.globl	rsoft_guard_swap
	.hidden	rsoft_guard_swap
	.type	rsoft_guard_swap, %function
rsoft_guard_swap:
	ldr	x3, [x1]
.Lswap_again:
	ldaxr	x4, [x0]
	cmp	x4, x3
	csel	x6, x2, x4, eq
	stlxr	w5, x6, [x0]
	cbnz	w5, .Lswap_again
	str	x4, [x1]
	guard_end
	.size	rsoft_guard_swap, . - rsoft_guard_swap

rsoft_guard_end:
	.type	rsoft_guard_stop, %function
rsoft_guard_stop:
	ret
	.size	rsoft_guard_stop, . - rsoft_guard_stop

	.section .note.GNU-stack, "", %progbits
