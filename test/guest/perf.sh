#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run a perf test in the guest: perf.sh PROGRAM NAME, an autotest of the program; for guest_write4k and
# guest_wire*_write4k the program is dpdk-testrmem. Appends its JSON line to the file RMEM_PERF_JSON, as
# other perf tests do. RMEM_GUEST_KERNEL selects the kernel (6.1).

set -euo pipefail

json=${RMEM_PERF_JSON:-}
here=$(cd -- "$(dirname -- "$0")" && pwd)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
rc=0 options=()
# Instructions are counted, which other load does not change. rdma_rxe has the fast CRC of the CPU,
# as on a machine; in emulated time that is slower than tables.
if [ "$2" = guest_wire_write4k ]; then
	export RMEM_GUEST_MODULES=crc32_pclmul
	options=(--count)
fi
if [[ "$2" == *_write4k ]]; then
	command=("$here/write4k.sh" "$1" "$2")
else
	export DPDK_TEST=$2_perf_autotest RMEM_PERF_JSON=/proc/self/fd/1
	command=("$1" --no-pci --no-telemetry --no-huge -m 64 --no-shconf --log-level=lib.eal:error)
fi
"$here/run.sh" --kernel "${RMEM_GUEST_KERNEL:-6.1}" "${options[@]}" --timeout 500 "${command[@]}" >"$out" || rc=$?
cat "$out"
[ -z "$json" ] || grep '^{' "$out" >>"$json"
exit $rc
