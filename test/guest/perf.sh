#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a perf test in the guest: perf.sh PROGRAM NAME, an autotest of the program; for
# guest_write4k and guest_wire*_write4k the program is dpdk-testrmem. Appends its JSON line to the
# file that RMEM_PERF_JSON names, as those that run here do. RMEM_GUEST_KERNEL chooses the kernel
# (6.1).

set -euo pipefail

json=${RMEM_PERF_JSON:-}
here=$(cd -- "$(dirname -- "$0")" && pwd)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
rc=0
if [[ "$2" == *_write4k ]]; then
	command=("$here/write4k.sh" "$1" "$2")
else
	export DPDK_TEST=$2_perf_autotest RMEM_PERF_JSON=/proc/self/fd/1
	command=("$1" --no-pci --no-telemetry --no-huge -m 64 --no-shconf --log-level=lib.eal:error)
fi
"$here/run.sh" --kernel "${RMEM_GUEST_KERNEL:-6.1}" --timeout 500 "${command[@]}" >"$out" || rc=$?
cat "$out"
[ -z "$json" ] || grep '^{' "$out" >>"$json"
exit $rc
