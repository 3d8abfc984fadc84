#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run one perf autotest: perf.sh PROGRAM NAME. Uses hugepages if enough are free, and one lcore on each
# of the first two permitted CPUs.

set -euo pipefail

program=$1
name=$2
need_pages=300 # of 2 MiB, for a million MRs or a pool of 256 MiB

free_pages=$(awk '/^HugePages_Free:/ { pages = $2 } /^Hugepagesize:/ { kib = $2 }
	END { print kib == 2048 ? pages : 0 }' /proc/meminfo)
lcores=$(python3 -c 'import os
cpus = sorted(os.sched_getaffinity(0))[:2]
print(",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate(cpus)))')
# Control threads run on the CPUs without an lcore, or else on the CPU of the main lcore.
[ "$name" != reg_parallel_1g ] || lcores="0@(${lcores//[0-9]@/})"

args=(--no-pci --no-telemetry --lcores "$lcores")
if [ "$free_pages" -ge "$need_pages" ]; then
	echo "on hugepages, lcores $lcores"
	args+=(--in-memory)
else
	echo "without hugepages ($free_pages of 2 MiB are free, $need_pages needed), lcores $lcores"
	args+=(--no-huge -m 1024 --no-shconf)
fi
export DPDK_TEST=${name}_perf_autotest
args+=(--log-level=lib.eal:error)
[[ "$name" = wire_eth_* ]] || exec "$program" "${args[@]}"

# In a network namespace with two veth pairs.
add_cables() {
	local end
	ip link add perf0 type veth peer name perf1
	ip link add perf2 type veth peer name perf3
	for end in 0 1 2 3; do
		sysctl -qw "net.ipv6.conf.perf$end.disable_ipv6=1"
		ip link set "perf$end" up
	done
}
if ! unshare -rn true 2>/dev/null; then
	echo "skipped: no permission to create a network namespace"
	exit 77
fi
export -f add_cables
# shellcheck disable=SC2016  # the inner shell expands them
exec unshare -rn bash -euc 'add_cables && exec "$0" "$@"' "$program" "${args[@]}"
