#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): soft exchanges packets with rdma_rxe, in what is built in BUILD. rdma_rxe
# has an end of a virtual Ethernet cable; soft has the other one, in a network namespace, where its
# UDP port is free. Over IPv4, and a part of it over IPv6. A line for each part that failed, and at the end PASS or FAIL.
# usage: wire.sh BUILD

build=$1
rxe_ip=192.0.2.65
soft_ip=192.0.2.66
rxe_ip6=2001:db8::41
soft_ip6=2001:db8::42
eal='--no-huge -m 64 --no-shconf --no-pci --no-telemetry --log-level=lib.eal:error'
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	echo "FAILED, status $2: $1"
	failed=1
}

# MTU 9000 makes rxe's path MTU 4096.
make_net() {
	ip netns add wire &&
		ip link add cable0 mtu 9000 type veth peer name cable1 mtu 9000 netns wire &&
		ip addr add $rxe_ip/26 dev cable0 &&
		ip -6 addr add $rxe_ip6/64 dev cable0 nodad &&
		ip link set cable0 up &&
		ip -n wire addr add $soft_ip/26 dev cable1 &&
		ip -n wire -6 addr add $soft_ip6/64 dev cable1 nodad &&
		ip -n wire link set cable1 up &&
		rdma link add rxe1 type rxe netdev cable0 || return
	# The GIDs appear a little after the device.
	until gid4=$(gid_index ffff:c000:0241) && gid6=$(gid_index 2001:0db8:); do sleep 0.1; done
}

# gid_index TEXT: of the GID that has the text.
gid_index() {
	grep -ls "$1" /sys/class/infiniband/rxe1/ports/1/gids/* | sed 's,.*/,,' | grep .
}

# in_wire COMMAND...: it sees all RDMA devices, and the end of the cable that soft has.
in_wire() {
	nsenter --net=/run/netns/wire "$@"
}

# testrmem soft|rxe ARGS [OPTION...]: with more arguments of soft.
testrmem() {
	side=$1
	args=$2
	shift 2
	# shellcheck disable=SC2086  # several words
	if [ "$side" = soft ]; then
		in_wire "$build/app/dpdk-testrmem" $eal -l 0 -- --dev "soft0,ip=$soft_ip$args" "$@"
	else
		"$build/app/dpdk-testrmem" $eal -l 1 -- --dev "verbs0,ibdev=rxe1,cm=tcp" "$@"
	fi
}

# both LISTENER CONNECTOR ADDRESS ARGS MODE OPS
both() {
	testrmem "$1" "$4" --mode "$5" --listen "$3" >"$out/listen" 2>&1 &
	listener=$!
	until grep -q '^listening at' "$out/listen" || ! kill -0 $listener 2>/dev/null; do
		sleep 0.1
	done
	testrmem "$2" "$4" --mode "$5" --connect "$3" --ops "$6" --seconds 60 --stats-period 0 \
		>"$out/connect" 2>&1
	status=$?
	[ $status = 0 ] || kill $listener 2>/dev/null
	wait $listener
	[ "$status $?" = '0 0' ] && grep -q '^verified: yes' "$out/listen" "$out/connect"
	status=$?
	verdict "testrmem --mode $5 of $2 to $1 $4" $status
	[ $status = 0 ] || cat "$out/listen" "$out/connect"
}

make_net
verdict 'a cable with rdma_rxe at one end' $?

# interop ADDRESS GID [CASE]: the address of soft, and the index of the GID of rdma_rxe.
interop() {
	# shellcheck disable=SC2086  # several words
	in_wire env "PAIR_SOFT=ip=$1" PAIR_IBDEV=rxe1 "PAIR_GID=$2" ${3:+"RMEM_CASE=$3"} \
		DPDK_TEST=interop_autotest "$build/test/interop/dpdk-test-interop" $eal \
		'--log-level=*rmem*:emergency'
}

interop $soft_ip "$gid4"
verdict 'interop over IPv4' $?
# Little of it depends on the kernel.
case $(uname -r) in
6.1.*)
	interop $soft_ip6 "$gid6" requests_of_both_cross
	verdict 'interop over IPv6' $?
	both soft rxe $soft_ip '' mw 400
	;;
esac

[ $failed = 0 ] && echo PASS || echo FAIL
exit $failed
