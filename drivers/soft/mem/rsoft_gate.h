/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Copies that another process can end: a thread stores nothing more after a gate was closed and the
 * thread was found stopped.
 *
 * A gate is two words that other processes write: `open`, which has another value once it is
 * closed, and `alive`, a robust futex, in which the kernel sets FUTEX_OWNER_DIED when its owner
 * ends, also by SIGKILL or exec(). Each piece of a copy is a restartable sequence (rseq(2)) that
 * starts with the loads of both words. If the thread is descheduled, is stopped, or gets a signal
 * within the sequence, the kernel does not continue it, but ends it; the copy then loads the gate
 * again before it repeats the piece.
 *
 * Invariants:
 * - Between the loads of the gate and each store of the sequence the thread was not descheduled.
 *   So if a thread is observed stopped after its gate was closed, it stores nothing more.
 * - The last 64 bytes of a copy, or fewer, are the last to be stored, and their last store ends the
 *   sequence: it is not repeated. Bytes before it may be stored twice before it is.
 *
 * Needs an x86-64 processor, and threads that the C library has registered (glibc 2.35).
 */

#ifndef RSOFT_GATE_H
#define RSOFT_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct rsoft_gate {
	const uint64_t *open;
	uint64_t open_value;
	const uint32_t *alive;
	uint64_t alive_value;
	void *rseq; /* of the calling thread; set by rsoft_gate_begin() */
};

/* Start copies by the calling thread; false: not possible in this thread. */
bool rsoft_gate_begin(struct rsoft_gate *gate);

/* End them. */
void rsoft_gate_end(const struct rsoft_gate *gate);

/*
 * Copy between ranges that do not overlap. Return the number of bytes copied: fewer than length if
 * the gate is closed, or memory is not mapped.
 */
uint64_t rsoft_gate_copy(
		const struct rsoft_gate *gate, void *to, const void *from, uint64_t length);

#endif /* RSOFT_GATE_H */
