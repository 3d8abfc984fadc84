#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): dpdk-testrmem of BUILD as two hosts, both in this guest, that fail to
# connect, and while its device is removed. Prints a line for each case, and PASS or FAIL at the end.
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

# testrmem NAME SIDE [options]: exec it, with its output in the file NAME; for a subshell.
testrmem() {
	name=$1 cpu=$(($2 * last_cpu))
	shift 2
	exec "$build/app/dpdk-testrmem" --no-huge -m 32 --no-shconf --no-pci --no-telemetry \
		-l $cpu -- --dev $device --depth 16 --burst 8 "$@" >"$dir/$name" 2>&1
}

# until_said NAME PID WORDS: wait until its output has the words, or it ends.
until_said() {
	until grep -q "$3" "$dir/$1" 2>/dev/null || ! kill -0 "$2" 2>/dev/null; do sleep 0.1; done
}

# ends NAME PID STATUS WORDS: it ended with the status and one error, and released its objects.
ends() {
	wait "$2"
	[ $? = "$3" ] && [ "$(grep -c '^testrmem: ' "$dir/$1")" = 1 ] &&
		grep -q "^testrmem: .*$4" "$dir/$1" && ! grep -q 'still in use\|cannot close device' "$dir/$1"
	verdict "$1: $4" $?
}

# refused NAME WORDS [options]: it does not start, with this error.
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

# listen [options]: start it and wait until it listens; its process id is in $listener.
listen() {
	rm -f "$dir/listener"
	testrmem listener 0 --listen "$RMEM_ADDR" "$@" &
	listener=$!
	until_said listener $listener '^listening at'
}

# pair [options]: start two hosts that transfer data; their process ids are in $listener and $connector.
pair() {
	listen --mode write --size 4K
	rm -f "$dir/connector"
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
	# These depend on rdma_cm and the program, not on the kernel.
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
