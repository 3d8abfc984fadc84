#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_failover.sh EXAMPLE RMEM-CTL [EAL-OPTION...]: a port of each device is down in turn, and up again.

set -euo pipefail
example=$1 control=$2
shift 2
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-failover.XXXXXX")
out=$tmp/out
"$example" "$@" -- 3600 >"$out" 2>&1 &
pid=$!
end() {
	kill -KILL "$pid" 2>/dev/null || true
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

# until_shows TEXT COMMAND...: until the output of the command has it, while the example runs.
until_shows() {
	local text=$1
	shift
	until "$@" | grep -qF -- "$text"; do
		kill -0 "$pid" 2>/dev/null || { cat "$out" && exit 1; }
		sleep 0.1
	done
}
until_shows 'soft1: port 1 ACTIVE' "$control" -p "$pid" list
"$control" -p "$pid" port soft0 down
until_shows 's: soft0: RETRY_EXC_ERR; ' cat "$out"
"$control" -p "$pid" port soft0 up
"$control" -p "$pid" port soft1 down
until_shows 's: soft1: RETRY_EXC_ERR; ' cat "$out"
"$control" -p "$pid" port soft1 up
kill -INT "$pid"
wait "$pid" || { cat "$out" && exit 1; }
cat "$out"
grep -qE '^[1-9][0-9]* messages arrived, none is lost' "$out" && grep -q '^failovers: 2,' "$out"
