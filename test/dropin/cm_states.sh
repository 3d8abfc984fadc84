#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cm_states.sh CM_STATES RUN...: two processes of the program by the command, rmem-run, on one host. One is killed in
# each state of a connection: the other gets the event that cm_states.txt has, releases all, and leaves no connection.

set -uo pipefail
program=$1
shift
table=$(dirname -- "$0")/cm_states.txt
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-states.XXXXXX")
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
mkfifo "$tmp/in"
exec 5<>"$tmp/in"
port=$((20000 + RANDOM % 12000))

# seen FILE LINE PID: wait for a line of the process.
seen() {
	until grep -q "^$2" "$1"; do
		kill -0 "$3" 2>/dev/null || { cat "$1" && exit 1; }
		sleep 0.02
	done
}

# start SIDE COMMAND STATE: its process id is in pids.
start() {
	: >"$tmp/$1"
	RMEM_IBV_CM=$tmp/$1.cm "${run[@]}" "$program" "$2" 127.0.0.1 "$port" "$3" >"$tmp/$1" 2>&1 <&5 &
	pids[$1]=$!
}

run=("$@")
failed=0
while IFS='|' read -r states wanted of_host; do
	[[ $states != '#'* ]] || continue
	read -r active passive killed <<<"$states"
	port=$((port + 1)) pids=()
	rm -f "$tmp"/*.cm
	start 1 listen "$passive"
	seen "$tmp/1" listening "${pids[1]}"
	start 0 connect "$active"
	[ "$killed" = active ] && victim=0 || victim=1
	other=$((1 - victim))
	seen "$tmp/$victim" stopped "${pids[victim]}"
	[[ $states != *wait* ]] || seen "$tmp/$other" waiting "${pids[other]}"
	[ "$states" != 'established run active' ] || seen "$tmp/1" RDMA_CM_EVENT_ESTABLISHED "${pids[1]}"
	kill -KILL "${pids[victim]}"
	wait "${pids[victim]}" 2>/dev/null
	[[ $states != *wait* ]] || echo go >&5
	wait "${pids[other]}" # its last line is printed when all calls have succeeded
	got=$(paste -sd';' "$tmp/$other")
	if [ "$got" = "${of_host:-$wanted}" ] &&
		! grep '  state: ' "$tmp/$other.cm" | grep -vqE 'IDLE|TIMEWAIT'; then
		echo "ok: $states"
		continue
	fi
	echo "FAILED: $states: got '$got', want '${of_host:-$wanted}'"
	grep '  state: ' "$tmp/$other.cm"
	failed=1
done <"$table"
exit $failed
