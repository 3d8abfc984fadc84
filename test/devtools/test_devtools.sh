#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs scripts of devtools/ as the gates do.
#
# usage: test_devtools.sh
#
# Prints a line for each case; exit status 0 or 1.

set -u
. "$(dirname -- "$0")/../app/said.sh"

source=$(cd -- "$(dirname -- "$0")/../.." && pwd)
enter_scratch
failed=0

# verdict NAME RC
verdict() {
	if [ "$2" = 0 ]; then
		printf 'ok: %s\n' "$1"
	else
		printf 'FAILED: %s\n' "$1"
		sed 's/^/    /' out err 2>/dev/null
		failed=$((failed + 1))
	fi
}

# DPDK 22.11.
cat >old.h <<'EOF'
	if (acked_token != __RTE_QSBR_CNT_MAX)
		__atomic_store_n(&v->acked_token, acked_token,
			__ATOMIC_RELAXED);
	if (acked_token != __RTE_QSBR_CNT_MAX)
		__atomic_store_n(&v->acked_token, acked_token,
			__ATOMIC_RELAXED);
	if (likely(t <= v->acked_token)) {
EOF
# DPDK 24.11.
cat >new.h <<'EOF'
		rte_atomic_store_explicit(&v->acked_token, acked_token,
			rte_memory_order_relaxed);
		rte_atomic_store_explicit(&v->acked_token, acked_token,
			rte_memory_order_relaxed);
	acked_token = rte_atomic_load_explicit(&v->acked_token,
						rte_memory_order_relaxed);
	if (likely(t <= acked_token)) {
EOF
sed 's/v->acked_token/v->acked/' new.h >other.h

# header NAME: made for ThreadSanitizer, in made.h.
header() {
	"$source/devtools/tsan-header.sh" "$1.h" made.h >out 2>err
}

test_tsan_header() {
	header old && [ "$(grep -c __ATOMIC_RELEASE made.h)" = 2 ] && ! grep -q RELAXED made.h &&
		said made.h '^#pragma GCC system_header' \
			't <= __atomic_load_n\(&v->acked_token, __ATOMIC_ACQUIRE\)\)'
	verdict 'tsan-header.sh: DPDK 22.11' $?
	header new && [ "$(grep -c order_release made.h)" = 2 ] && ! grep -q relaxed made.h &&
		[ "$(grep -c order_acquire made.h)" = 1 ]
	verdict 'tsan-header.sh: DPDK 24.11' $?
	! header other && said err '0 acquire loads \(1 expected\)' && [ ! -e made.h ]
	verdict 'tsan-header.sh: a header it does not know' $?
}

test_tsan_header

[ "$failed" = 0 ]
