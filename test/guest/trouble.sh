#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): dpdk-testrmem of BUILD where two hosts, here both in one, do not get
# together, and where its device is removed under it. A line for each case, at the end PASS or FAIL.
# usage: trouble.sh BUILD

build=$1
device='verbs0,ibdev=rxe0'
last_cpu=$(($(nproc) - 1))
failed=0
dir=$(mktemp -d)

verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	echo "FAILED: $1"
	sed 's/^/    /' "$dir"/*
	failed=1
}

# testrmem NAME SIDE [options]: becomes it, its output in the file of that name. For a subshell.
testrmem() {
	name=$1 cpu=$(($2 * last_cpu))
	shift 2
	exec "$build/app/dpdk-testrmem" --no-huge -m 64 --no-shconf --no-pci --no-telemetry \
		-l $cpu -- --dev $device --depth 16 --burst 8 "$@" >"$dir/$name" 2>&1
}

# until_said NAME PID WORDS: waits for them in its output, or for its end.
until_said() {
	until grep -q "$3" "$dir/$1" 2>/dev/null || ! kill -0 "$2" 2>/dev/null; do sleep 0.1; done
}

# ends NAME PID STATUS WORDS: how it ended, with one error, and nothing left.
ends() {
	wait "$2"
	[ $? = "$3" ] && [ "$(grep -c '^testrmem: ' "$dir/$1")" = 1 ] &&
		grep -q "^testrmem: .*$4" "$dir/$1" && ! grep -q 'still in use\|cannot close device' "$dir/$1"
	verdict "$1: $4" $?
}

# refused NAME WORDS [options]: it does not start.
refused() {
	name=$1 words=$2
	shift 2
	testrmem "$name" 1 "$@" &
	ends "$name" $! 1 "$words"
}

is_up() {
	grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state 2>/dev/null &&
		grep -q "ffff:c000:020$RMEM_HOST\$" /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null
}

test_no_peer() {
	refused nobody 'no listener' --connect "$RMEM_ADDR"
	refused no_way 'cannot connect to 198.51.100.1 ' --connect 198.51.100.1
	refused not_ours 'cannot listen at 198.51.100.1 .* no such address' --listen 198.51.100.1
}

# listen [options]: until it listens; its process in $listener.
listen() {
	rm -f "$dir/listener"
	testrmem listener 0 --listen "$RMEM_ADDR" "$@" &
	listener=$!
	until_said listener $listener '^listening at'
}

# pair [options]: two hosts, at work; their processes in $listener and $connector.
pair() {
	listen --mode write --size 4K
	testrmem connector 1 --connect "$RMEM_ADDR" --mode write --size 4K --stats-period 0.2 &
	connector=$!
	until_said connector $connector Mops
}

test_other_peer() {
	listen --size 4K
	refused in_use 'port is in use' --listen "$RMEM_ADDR"
	refused connector 'size 64 here, 4096 on the other' --connect "$RMEM_ADDR" --size 64
	ends listener $listener 1 'size 4096 here, 64 on the other'
}

test_peer_dies() {
	pair
	kill -9 $connector
	wait $connector
	ends listener $listener 2 'the other host ended without a report'
}

test_removed_between_hosts() {
	pair
	rdma link delete rxe0
	ends connector $connector 2 ''
	ends listener $listener 2 ''
	rdma link add rxe0 type rxe netdev dummy0
	until is_up; do sleep 0.1; done
}

# On Linux 6.1 the removal waits for processes that have opened the device, without an event.
test_removed() {
	testrmem removed 0 --mode mw --seconds 5 --stats-period 0.2 &
	removed=$!
	until_said removed $removed Mops
	rdma link delete rxe0
	if grep -q '^verified: yes' "$dir/removed"; then
		wait $removed
		verdict 'removed without a report' $?
	else
		ends removed $removed 2 ''
	fi
}

if [ -d "$build/lib/rmem_cm" ]; then
	# Nothing of these depends on the kernel, but on rdma_cm and the program.
	case $(uname -r) in
	6.1.*)
		test_no_peer
		test_other_peer
		test_peer_dies
		;;
	esac
	test_removed_between_hosts
fi
test_removed

[ $failed = 0 ] && echo PASS || echo FAIL
rm -rf "$dir"
exit $failed
