#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Writes DPDK's rte_rcu_qsbr.h with the order that ThreadSanitizer has to see.
#
# usage: tsan-header.sh HEADER OUTPUT
#
# Readers of acked_token rely on more than its relaxed order states: what they do next depends on
# the value, which every CPU keeps in order. ThreadSanitizer uses the stated order only, so loads
# become acquire and stores release. Fails when the header has accesses of another form.

set -euo pipefail
header=${1:?path of rte_rcu_qsbr.h} output=${2:?path to write}

# Up to DPDK 23.07 by __atomic builtins and a plain load, then by rte_stdatomic.h.
token='&v->acked_token,[[:space:]]*'
sed -Ez -e 's/^/#pragma GCC system_header\n/' \
	-e 's/\(t <= v->acked_token\)/(t <= __atomic_load_n(\&v->acked_token, __ATOMIC_ACQUIRE))/g' \
	-e "s/(__atomic_load_n\($token)__ATOMIC_RELAXED/\1__ATOMIC_ACQUIRE/g" \
	-e "s/(__atomic_store_n\(${token}acked_token,[[:space:]]*)__ATOMIC_RELAXED/\1__ATOMIC_RELEASE/g" \
	-e "s/(rte_atomic_load_explicit\($token)rte_memory_order_relaxed/\1rte_memory_order_acquire/g" \
	-e "s/(rte_atomic_store_explicit\(${token}acked_token,[[:space:]]*)rte_memory_order_relaxed/\1rte_memory_order_release/g" \
	"$header" >"$output"

# count REGEX: how often it is in the output, over line ends.
count() {
	{ grep -Ezo -- "$1" "$output" || true; } | tr -cd '\0' | wc -c
}

loads=$(count "load[a-z_]*\($token(__ATOMIC_ACQUIRE|rte_memory_order_acquire)")
stores=$(count "store[a-z_]*\(${token}acked_token,[[:space:]]*(__ATOMIC_RELEASE|rte_memory_order_release)")
all=$(count '&v->acked_token')
if [ "$loads" != 1 ] || [ "$stores" != 2 ] || [ "$all" != 3 ]; then
	rm -f "$output"
	echo "${0##*/}: $header: acked_token has $loads acquire loads (1 expected), $stores release" \
		"stores (2) and $all atomic accesses (3): adapt this script to this DPDK" >&2
	exit 1
fi
