#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): WRITEs of 4 KiB by dpdk-testrmem and by ib_write_bw, with the same depth,
# burst and MTU, on one QP, alternately. Prints the best of both and a JSON line.
# guest_write4k: on rdma_rxe; guest_wire_write4k: between two processes on soft, over UDP;
# guest_wire_shm_write4k: over shared memory. With one CPU, which counts instructions (run.sh --count), the
# server has it too, and rounds differ by little.
# usage: write4k.sh TESTRMEM [NAME [ROUNDS]]

set -euo pipefail

testrmem=$1
name=${2:-guest_write4k}
rounds=${3:-9}
ops=10240 # a multiple of the burst, required by ib_write_bw
size=4096 depth=128 burst=32 mtu=4096
# The IPv4 GID, which the driver uses too.
gid=1
# With one CPU a thread of the requester, which polls, would only take turns with it.
server_cpu=1 requester=
if [ "$(nproc)" = 1 ]; then
	server_cpu=0 requester=,progress=poll
	rounds=${3:-2} ops=20480
fi
bar=0.95
eal=(--no-huge --no-shconf --no-pci --no-telemetry --log-level=lib.eal:error)
write=(--mode write --size "$size" --burst "$burst" --depth "$depth")

if ! command -v ib_write_bw >/dev/null; then
	echo "skipped: no ib_write_bw here (devtools/install-deps.sh guest)"
	exit 77
fi
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# Million operations per second. As in testrmem, a list of requests is posted and its last one is
# signaled. Both run on CPU 0; the server is passive.
by_perftest() {
	local args=(-d rxe0 -x "$gid" -s "$size" -t "$depth" -l "$burst" -Q "$burst" -m "$mtu" -q 1 -F)
	args+=(-n "$ops" -N --output=message_rate)
	taskset -c $server_cpu ib_write_bw "${args[@]}" >"$tmp/server" 2>&1 &
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
	"$testrmem" "${eal[@]}" -m 256 -l 0 -- --dev verbs0,ibdev=rxe0,gid=$gid,mtu=$mtu "${write[@]}" \
		--ops $ops --seconds 0 --stats-period 0 --json "$tmp/json" \
		>"$tmp/testrmem" 2>&1 || { cat "$tmp/testrmem" >&2 && return 1; }
	mops
}

# In a network namespace, where the UDP port of rdma_rxe is free. All threads run on CPU 0, as those of
# ib_write_bw: the control thread of the listening side runs on a CPU without an lcore of its process,
# and its lcore sleeps.
by_wire() {
	local wire=(nsenter --net=/run/netns/wire "$testrmem" "${eal[@]}" -m 64)
	: >"$tmp/server"
	"${wire[@]}" -l $server_cpu -- --dev "soft0,ip=127.0.0.1,mtu=$mtu$port" "${write[@]}" --listen 127.0.0.1 \
		>"$tmp/server" 2>&1 &
	server=$!
	until grep -q '^listening' "$tmp/server"; do
		kill -0 "$server" || { cat "$tmp/server" >&2 && return 1; }
		sleep 0.1
	done
	"${wire[@]}" -l 0 -- --dev "soft0,ip=127.0.0.2,mtu=$mtu$port$requester" "${write[@]}" \
		--connect 127.0.0.1 --ops $ops --seconds 0 --stats-period 0 --json "$tmp/json" \
		>"$tmp/testrmem" 2>&1 || { cat "$tmp/testrmem" >&2 && return 1; }
	wait "$server" || { cat "$tmp/server" >&2 && return 1; }
	server=
	mops
}

mops() {
	sed -n 's/.*"lcore":"total".*"mops_per_s":\([0-9.]*\).*/\1/p' "$tmp/json"
}

by=by_testrmem port=
if [ "$name" != guest_write4k ]; then
	by=by_wire bar=1.5
	[ "$name" = guest_wire_write4k ] || port=,port=shm:guest,share=1
	ip netns add wire
	ip -n wire link set lo up
fi
for ((round = 1; round <= rounds; round++)); do
	baseline=$(by_perftest)
	value=$($by)
	echo "$round: ib_write_bw $baseline, testrmem $value Mops/s"
	echo "$baseline $value" >>"$tmp/rounds"
done
awk -v name="$name" -v bar=$bar '
	$1 > best { best = $1 }
	$2 > value { value = $2 }
	END {
		ratio = best > 0 ? value / best : 0
		printf "%-18s %10.4f Mops/s, ib_write_bw %.4f Mops/s, ratio %.3f (bar: ratio >= %s)\n",
			name, value, best, ratio, bar
		printf "{\"name\": \"%s\", \"value\": %.6f, \"unit\": \"Mops/s\", " \
			"\"baseline\": %.6f, \"ratio\": %.4f}\n", name, value, best, ratio
		exit ratio == 0
	}' "$tmp/rounds"
