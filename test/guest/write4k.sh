#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): WRITEs of 4 KiB by dpdk-testrmem against those of ib_write_bw, of the
# same depth, burst and MTU, on one QP, in turn. Prints the best of both and a JSON line.
# usage: write4k.sh TESTRMEM [ROUNDS]

set -euo pipefail

testrmem=$1
rounds=${2:-9}
ops=10240 # a multiple of the burst, required by ib_write_bw
size=4096 depth=128 burst=32 mtu=4096
# The IPv4 one, which the driver takes too.
gid=1
name=guest_write4k

if ! command -v ib_write_bw >/dev/null; then
	echo "skipped: no ib_write_bw here (devtools/install-deps.sh guest)"
	exit 77
fi
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# Million operations a second. A list of requests is posted, and the last of it signaled, as testrmem
# does. Both have processor 0; the server has no work.
by_perftest() {
	local args=(-d rxe0 -x "$gid" -s "$size" -t "$depth" -l "$burst" -Q "$burst" -m "$mtu" -q 1 -F)
	args+=(-n "$ops" -N --output=message_rate)
	taskset -c 1 ib_write_bw "${args[@]}" >"$tmp/server" 2>&1 &
	server=$!
	until taskset -c 0 ib_write_bw "${args[@]}" "$RMEM_ADDR" >"$tmp/client" 2>"$tmp/why"; do
		# Not started yet, or ended.
		kill -0 "$server" 2>/dev/null || break
	done
	wait "$server" || { cat "$tmp/server" "$tmp/why" >&2 && return 1; }
	server=
	grep -E '^ *[0-9.]+ *$' "$tmp/client" | tail -n 1
}

by_testrmem() {
	"$testrmem" --no-huge -m 256 --no-shconf --no-pci --no-telemetry -l 0 --log-level=lib.eal:error \
		-- --dev verbs0,ibdev=rxe0,gid=$gid,mtu=$mtu --mode write --size $size --burst $burst \
		--depth $depth --ops $ops --seconds 0 --stats-period 0 --json "$tmp/json" \
		>"$tmp/testrmem" 2>&1 || { cat "$tmp/testrmem" >&2 && return 1; }
	sed -n 's/.*"lcore":"total".*"mops_per_s":\([0-9.]*\).*/\1/p' "$tmp/json"
}

for ((round = 1; round <= rounds; round++)); do
	baseline=$(by_perftest)
	value=$(by_testrmem)
	echo "$round: ib_write_bw $baseline, testrmem $value Mops/s"
	echo "$baseline $value" >>"$tmp/rounds"
done
awk -v name=$name '
	$1 > best { best = $1 }
	$2 > value { value = $2 }
	END {
		ratio = best > 0 ? value / best : 0
		printf "%-18s %10.4f Mops/s, ib_write_bw %.4f Mops/s, ratio %.3f (bar: ratio >= 0.95)\n",
			name, value, best, ratio
		printf "{\"name\": \"%s\", \"value\": %.6f, \"unit\": \"Mops/s\", " \
			"\"baseline\": %.6f, \"ratio\": %.4f}\n", name, value, best, ratio
		exit ratio == 0
	}' "$tmp/rounds"
