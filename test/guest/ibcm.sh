#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): the communication manager of ibcm/ and that of the kernel connect, reject,
# disconnect and resolve. rdma_rxe has one end of a veth pair; dpdk-test-ibcm-peer of BUILD has a UDP
# socket at the other end, in a network namespace. Prints a line for each part, and PASS or FAIL at the
# end.
# usage: ibcm.sh BUILD

peer=$1/test/ibcm/dpdk-test-ibcm-peer
rxe_ip=192.0.2.65
peer_ip=192.0.2.66
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	echo "FAILED, status $2: $1"
	cat "$out/kernel" "$out/peer"
	failed=1
}

make_net() {
	ip netns add wire &&
		ip link add cable0 type veth peer name cable1 netns wire &&
		ip addr add $rxe_ip/26 dev cable0 &&
		ip link set cable0 up &&
		ip -n wire addr add $peer_ip/26 dev cable1 &&
		ip -n wire link set cable1 up &&
		rdma link add rxe1 type rxe netdev cable0 || return
	# The GIDs appear after the device, with a delay.
	until grep -qs ffff:c000:0241 /sys/class/infiniband/rxe1/ports/1/gids/*; do sleep 0.1; done
}

# peer MODE PORT COUNT: run the peer.
peer() {
	nsenter --net=/run/netns/wire "$peer" $peer_ip $rxe_ip "$@" >"$out/peer" 2>&1
}

# until_seen PID FILE TEXT: wait for a line of the process, or for its end.
until_seen() {
	until grep -q "$3" "$2" || ! kill -0 "$1" 2>/dev/null; do sleep 0.1; done
}

# events WANT: the events of the peer, sorted and in one line, are these.
events() {
	[ "$(grep -v -e ready -e malformed "$out/peer" | sort | tr '\n' ' ')" = "$1 " ] &&
		grep -q '^malformed 0,' "$out/peer"
}

# to_kernel SERVER... -- MODE PORT COUNT: the peer connects to a program of the kernel.
to_kernel() {
	server=
	while [ "$1" != -- ]; do
		server="$server $1"
		shift
	done
	shift
	# shellcheck disable=SC2086  # several words
	$server >"$out/kernel" 2>&1 &
	pid=$!
	until rdma resource show cm_id | grep -q LISTEN || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	peer "$@"
	status=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	return $status
}

# from_kernel MODE PORT COUNT: start the peer; its process is pid.
from_kernel() {
	: >"$out/peer"
	peer "$@" &
	pid=$!
	until_seen $pid "$out/peer" ready
}

: >"$out/kernel"
: >"$out/peer"
for program in ucmatose udaddy; do
	command -v $program >/dev/null || { echo "skipped: no $program (devtools/install-deps.sh guest)" && exit 77; }
done
make_net
verdict 'a cable with rdma_rxe at one end' $?

to_kernel ucmatose -b $rxe_ip -c 3 -C 0 -p 7471 -- connect 7471 3 &&
	events 'DISCONNECTED DISCONNECTED DISCONNECTED REP REP REP TIMEWAIT_EXIT TIMEWAIT_EXIT TIMEWAIT_EXIT'
verdict 'three connections to the kernel' $?

peer connect 7499 1 && events 'REJECTED 8'
verdict 'the kernel has no listener' $?

from_kernel accept 7471 3
ucmatose -s $peer_ip -c 3 -C 0 -p 7471 >"$out/kernel" 2>&1
wait $pid && events 'DISCONNECTED DISCONNECTED DISCONNECTED ESTABLISHED ESTABLISHED ESTABLISHED REQ REQ REQ TIMEWAIT_EXIT TIMEWAIT_EXIT TIMEWAIT_EXIT'
verdict 'three connections from the kernel' $?

from_kernel reject 7471 1
ucmatose -s $peer_ip -c 1 -C 0 -p 7471 >"$out/kernel" 2>&1
wait $pid && events 'REQ TIMEWAIT_EXIT' && grep -q 'REJECTED, error: 28' "$out/kernel"
verdict 'a request from the kernel is rejected' $?

from_kernel hold 7471 1
ucmatose -s $peer_ip -c 1 -C 0 -p 7471 >"$out/kernel" 2>&1 &
client=$!
until_seen $pid "$out/peer" REQ
kill -KILL $client
wait $pid && events 'REJECTED 4 REQ TIMEWAIT_EXIT'
verdict 'the process of the kernel that has requested is killed' $?

to_kernel udaddy -b $rxe_ip -c 1 -C 1 -- resolve 7174 1 && events 'SIDR_REP 0'
verdict 'a service ID of the kernel is resolved' $?

peer resolve 7175 1 && events 'SIDR_REP 1'
verdict 'the kernel does not have the service ID' $?

# It waits for datagrams then.
from_kernel accept 7174 1
: >"$out/kernel"
stdbuf -oL udaddy -s $peer_ip -c 1 -C 1 >"$out/kernel" 2>&1 &
client=$!
until_seen $client "$out/kernel" 'initiating data transfers'
kill $client
wait $pid && events 'SIDR_REQ TIMEWAIT_EXIT' && grep -q 'initiating data transfers' "$out/kernel"
verdict 'a service ID is resolved by the kernel' $?

[ $failed = 0 ] && echo PASS || echo FAIL
exit $failed
