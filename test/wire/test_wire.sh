#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two processes of one host exchange packets over UDP and shared memory: modes of dpdk-testrmem, with
# and without injected faults; a killed peer; refused arguments.
#
# usage: test_wire.sh PATH_TO_DPDK_TESTRMEM [FUNCTION...]

set -u
self=$(realpath -- "$0")
. "$(dirname -- "$0")/../app/said.sh"

program=$(realpath -- "${1:?path to dpdk-testrmem}")
shift
enter_scratch

cpus=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
eal=(--no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level=lib.eal:error
	--lcores "0@($cpus)")

# All but mbuf, lease and copy.
modes='write read send atomic fastreg mw umr odp inline'

# listen ADDRESS ARGS MODE [options]: start a target; its process id is in listener.
listen() {
	local address=$1 args=$2 mode=$3
	shift 3
	rm -f listen.out
	"$program" "${eal[@]}" -- --dev "soft0,ip=$address$args" \
		--mode "$mode" --listen "$address" "$@" >listen.out 2>listen.err </dev/null &
	listener=$!
	until_seen "$listener" said listen.out '^listening at'
}

# transfer NAME ADDRESS ARGS PEER PEER_ARGS MODE OPS [options]: both sides verify the data and end
# with status 0.
transfer() {
	local name=$1 address=$2 args=$3 peer=$4 peer_args=$5 mode=$6 ops=$7 status
	shift 7
	listen "$peer" "$peer_args" "$mode" "$@"
	"$program" "${eal[@]}" -- --dev "soft0,ip=$address$args" \
		--mode "$mode" --connect "$peer" --ops "$ops" --seconds 600 "$@" >out 2>err </dev/null
	rc=$?
	[ "$rc" = 0 ] || kill "$listener"
	wait "$listener" 2>/dev/null
	status=$?
	[ "$rc $status" = '0 0' ] && said out '^verified: yes' "^total +$ops .* 0\$" &&
		said listen.out '^verified: yes'
	verdict "$name" $?
}

test_modes() {
	local mode
	for mode in $modes; do
		transfer "mode $mode between two processes" 127.0.2.1 '' 127.0.2.2 '' "$mode" 2000
	done
}

test_faults() {
	local faults=',mtu=256,fault=loss:0.01;dup:0.1;reorder:4;corrupt:0.005;trunc:0.005' mode
	for mode in $modes; do
		transfer "mode $mode with packets lost, duplicated, reordered and corrupted" \
			127.0.3.1 "$faults" 127.0.3.2 "$faults" "$mode" 200
	done
}

test_loss() {
	local mode
	for mode in $modes; do
		transfer "mode $mode with one of ten packets of the connecting side lost" \
			127.0.10.1 ,fault=loss:0.1 127.0.10.2 '' "$mode" 32 --depth 16 --burst 8
		transfer "mode $mode with one of ten packets of the listening side lost" \
			127.0.10.1 '' 127.0.10.2 ,fault=loss:0.1 "$mode" 32 --depth 16 --burst 8
	done
}

test_loss_of_both() {
	local mode loss='fault=loss:0.1;seed'
	for mode in $modes; do
		transfer "mode $mode with one of ten packets of both sides lost" \
			127.0.18.1 ",$loss:3" 127.0.18.2 ",$loss:4" "$mode" 32 --depth 16 --burst 8
	done
	transfer 'shared memory with one of ten packets of both sides lost' \
		127.0.18.1 ",$loss:3,port=shm:loss-$$" 127.0.18.2 ",$loss:4,port=shm:loss-$$" write 32 \
		--depth 16 --burst 8
}

test_shm() {
	local mode port=",port=shm:test-$$"
	local faults="$port,mtu=256,fault=loss:0.01;dup:0.1;reorder:4;corrupt:0.005;trunc:0.005"
	for mode in $modes; do
		transfer "mode $mode over shared memory" \
			127.0.8.1 "$port" 127.0.8.2 "$port" "$mode" 2000
	done
	transfer 'shared memory with packets lost, duplicated, reordered and corrupted' \
		127.0.8.1 "$faults" 127.0.8.2 "$faults" write 200
}

# The kernel permits it for processes of one user.
test_share() {
	local mode port=",port=shm:share-$$"
	for mode in write send mw odp; do
		transfer "mode $mode over shared memory, with payloads in the memory of their sender" \
			127.0.21.1 "$port,share=1" 127.0.21.2 "$port,share=1" "$mode" 2000 --size 64K --depth 8 \
			--burst 4
	done
	transfer 'only the sender shares its memory' \
		127.0.21.1 "$port,share=1" 127.0.21.2 "$port" write 2000 --size 64K --depth 8 --burst 4
	transfer 'only the receiver maps memory' \
		127.0.21.1 "$port" 127.0.21.2 "$port,share=1" write 2000 --size 64K --depth 8 --burst 4
}

# Neither side has a thread; service lcores receive packets and execute posted requests.
test_engine() {
	local mode args=,engine=1,progress=engine
	eal=("${eal[@]/#0@*/(0-1)@($cpus)}" -S 1)
	for mode in write read send atomic; do
		transfer "mode $mode between two processes with engines" \
			127.0.20.1 "$args" 127.0.20.2 "$args" "$mode" 2000
	done
	transfer 'shared memory and engines' \
		127.0.20.1 "$args,port=shm:engine-$$" 127.0.20.2 "$args,port=shm:engine-$$" write 2000
}

# The address of a killed process is free; the address of a running one is not, for any user.
test_shm_names() {
	local port="port=shm:names-$$" first
	listen 127.0.8.3 ",$port" write
	first=$listener
	run_refused 'an address of shared memory that another process has' \
		"port=shm:names-$$: ip=127.0.8.3 is in use by process $first of user $(id -u)" \
		"soft0,ip=127.0.8.3,$port"
	local other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	if [ "$(id -u)" = 0 ] && chmod a+x . && mkdir other && chown 65534 other &&
		"${other[@]}" test -x "$program"; then
		XDG_RUNTIME_DIR=$PWD/other "${other[@]}" "$program" "${eal[@]}" -- \
			--dev "soft0,ip=127.0.8.3,$port" --mode write --ops 1 >out 2>err </dev/null
		rc=$?
		[ "$rc" != 0 ] && said err "is in use by process $first of user 0"
		verdict 'an address of shared memory that another user has' $?
	fi
	kill -KILL "$first"
	wait "$first" 2>/dev/null
	transfer 'an address of shared memory that a dead process had' \
		127.0.8.4 ",$port" 127.0.8.3 ",$port" write 2000
}

# wire_conformance_eth sends packets through one.
test_eth() {
	eal+=(--vdev net_ring0)
	run_refused 'mtu= above that of the ethdev port' 'mtu=2048: above the MTU of the interface .*1024' \
		soft0,ip=127.0.14.1,port=eth:0,mtu=2048
	run_refused 'an ethdev port twice' 'port=eth:0: .*: Device or resource busy' \
		soft0,ip=127.0.14.1,port=eth:0 --dev soft1,ip=127.0.14.2,port=eth:0
	run_refused 'an ethdev port that is missing' 'port=eth:7: no such ethdev port; there are 1' \
		soft0,ip=127.0.14.1,port=eth:7
	run_refused 'an ethdev port out of range' 'port=eth:99: not the number of an ethdev port' \
		soft0,ip=127.0.14.1,port=eth:99
	run_refused 'an ethdev port that is no number' 'port=eth:net_ring0: not the number' \
		soft0,ip=127.0.14.1,port=eth:net_ring0
	run_refused 'an ethdev port for two addresses' 'port=eth:0: not an ethdev port for each address' \
		'soft0,ip=127.0.14.1;127.0.14.2,port=eth:0'
	run_refused 'ethdev ports for one address' "port=eth:0;1: not the number" \
		'soft0,ip=127.0.14.1,port=eth:0;1'
	run_refused 'a neighbour of the other family' "neigh=: '192.0.2.1@02:.*' is not ADDRESS@MAC" \
		soft0,ip=2001:db8::1,port=eth:0,neigh=192.0.2.1@02:00:00:00:00:01
}

# The survivor ends with RETRY_EXC_ERR.
test_killed() {
	listen 127.0.4.2 '' write
	"$program" "${eal[@]}" -- --dev soft0,ip=127.0.4.1 --mode write --connect 127.0.4.2 \
		--seconds 60 --stats-period 0.2 >out 2>err </dev/null &
	local connector=$!
	until_seen "$connector" said out 'Mops/s'
	kill -KILL "$listener"
	wait "$connector"
	rc=$?
	cat out err >all
	[ "$rc" = 2 ] && said all RETRY_EXC_ERR
	verdict 'a peer that is killed is reported' $?
	wait "$listener" 2>/dev/null
}

test_nobody() {
	"$program" "${eal[@]}" -- --dev soft0,ip=127.0.15.1 --mode write --connect 127.0.15.2 \
		>out 2>err </dev/null
	rc=$?
	[ "$rc" = 1 ] && said err 'peer 127.0.15.2: no answer to a request' 'port 7174: no answer: no such process'
	verdict 'no process at the address is reported' $?
}

test_interrupted() {
	local signal
	for signal in INT TERM; do
		listen 127.0.21.1 '' write
		kill -$signal "$listener"
		wait "$listener"
		rc=$?
		[ "$rc" = 1 ] && said listen.err 'no peer for QP pair 0 at 127.0.21.1: interrupted'
		verdict "SIG$signal while no peer has connected" $?
	done
}

# Packets of shared memory reach only ports of the same name.
test_mismatch() {
	local args
	listen 127.0.22.2 ",port=shm:a-$$" write
	for args in '' ",port=shm:b-$$"; do
		"$program" "${eal[@]}" -- --dev "soft0,ip=127.0.22.1$args" --mode write \
			--connect 127.0.22.2 --ops 1 >out 2>err </dev/null
		rc=$?
		[ "$rc" = 1 ] && said err 'no answer: no such process, or port= is another one there'
		verdict "another port= than that of the listener: '$args'" $?
	done
	kill "$listener"
	wait "$listener"
}

# run_refused NAME REGEX DEV [options]: it does not start, and logs the value.
run_refused() {
	local name=$1 regex=$2 dev=$3
	shift 3
	"$program" "${eal[@]}" -- --dev "$dev" --mode write --ops 1 "$@" >out 2>err </dev/null
	rc=$?
	[ "$rc" != 0 ] && said err "$regex"
	verdict "$name" $?
}

# The same as in rdma_rxe.
test_port_in_use() {
	listen 127.0.5.9 '' write
	run_refused 'UDP port 4791 that another process has' 'ip=127.0.5.9: UDP port 4791 is in use' \
		soft0,ip=127.0.5.9
	kill -KILL "$listener"
	wait "$listener" 2>/dev/null
}

test_refusals() {
	run_refused 'ip= that is no address' "ip=192.0.2: not an" soft0,ip=192.0.2
	run_refused 'ip= of another host' 'ip=192.0.2.1: not an address of this host' \
		soft0,ip=192.0.2.1
	run_refused 'an address twice' 'ip=127.0.5.1: device 0 of this process has this address' \
		soft0,ip=127.0.5.1 --dev soft1,ip=127.0.5.1
	run_refused 'an address twice, of different ports' \
		'ip=127.0.5.1: device 0 of this process has this address' \
		soft0,ip=127.0.5.1 --dev "soft1,ip=127.0.5.1,port=shm:twice-$$"
	run_refused 'control=1 without ip=' 'control=: not supported without ip=' soft0,control=1
	run_refused 'control=1 without a thread' 'control=1: needs progress=thread' \
		soft0,ip=127.0.5.2,progress=poll,control=1
	run_refused 'mtu= that is no MTU' 'mtu=1000: not a path MTU' soft0,ip=127.0.5.2,mtu=1000
	run_refused 'mtu= out of range' "mtu='8192': invalid value" soft0,ip=127.0.5.2,mtu=8192
	run_refused 'a fault that is unknown' "fault=lost:1: 'lost:1' is not loss" \
		'soft0,ip=127.0.5.2,fault=lost:1'
	run_refused 'a probability over 1' "fault=loss:1.1: 'loss:1.1' is not loss" \
		'soft0,ip=127.0.5.2,fault=loss:1.1'
	run_refused 'pcap= in no directory' 'pcap=/nowhere/a: No such file' \
		soft0,ip=127.0.5.2,pcap=/nowhere/a
	run_refused 'port= that is unknown' 'port=tcp: not udp, shm:NAME or eth:NUMBER' \
		soft0,ip=127.0.5.2,port=tcp
	run_refused 'a name of shared memory that is empty' "port=shm:: the name is not 1 to 31" \
		soft0,ip=127.0.5.2,port=shm:
	run_refused 'a name of shared memory that is a path' "port=shm:a/b: the name is not" \
		soft0,ip=127.0.5.2,port=shm:a/b
	run_refused 'neigh= of a UDP port' 'neigh=.*: only ports of port=eth have neighbours' \
		soft0,ip=127.0.5.2,neigh=192.0.2.1@02:00:00:00:00:01
	run_refused 'share=1 of a UDP port' 'share=1: only peers of port=shm map memory' \
		soft0,ip=127.0.5.2,share=1
	run_refused 'share=1 without a guard' 'share=1: not supported with odp_guard=0' \
		soft0,ip=127.0.5.2,port=shm:test,share=1,odp_guard=0
	run_refused 'neigh= without ip=' 'neigh=: not supported without ip=' \
		soft0,neigh=192.0.2.1@02:00:00:00:00:01
	run_refused 'port= without ip=' 'port=: not supported without ip=' soft0,port=udp
	run_refused 'fault= without ip=' 'fault=: not supported without ip=' 'soft0,fault=loss:0'
	run_refused 'engine= without progress=engine' 'engine= needs progress=engine' \
		soft0,ip=127.0.5.2,engine=1
	run_refused 'progress=engine without engine=' 'engine= needs progress=engine' \
		soft0,ip=127.0.5.2,progress=engine
}

# In a separate network namespace, where that is permitted.
test_interface() {
	local up='ip link set lo up mtu 1500 && exec "$@"'
	export PATH=$PATH:/usr/sbin:/sbin
	if ! unshare -rn sh -c "$up" sh true 2>/dev/null; then
		echo 'skipped: no network namespace'
		verdict 'mtu= above the MTU of the interface' 0
		return
	fi
	unshare -rn sh -c "$up" sh "$program" "${eal[@]}" -- --dev soft0,ip=127.0.0.1,mtu=2048 \
		--mode write --ops 1 >out 2>err </dev/null
	rc=$?
	[ "$rc" = 1 ] && said err 'mtu=2048: above the MTU of the interface .*1024'
	verdict 'mtu= above the MTU of the interface' $?
}

# There the UDP port is privileged, and the file belongs to another user.
test_permission() {
	local up='ip link set lo up && echo 5000 >/proc/sys/net/ipv4/ip_unprivileged_port_start &&
		exec setpriv --bounding-set -net_bind_service,-dac_override "$@"'
	export PATH=$PATH:/usr/sbin:/sbin
	if ! unshare -rn sh -c "$up" sh true 2>/dev/null; then
		echo 'skipped: no network namespace'
		verdict 'no permission' 0
		return
	fi
	unshare -rn sh -c "$up" sh "$program" "${eal[@]}" -- --dev soft0,ip=127.0.0.1 \
		--mode write --ops 1 >out 2>err </dev/null
	rc=$?
	[ "$rc" != 0 ] && said err 'ip=127.0.0.1: .*: Permission denied'
	verdict 'no permission for the UDP port' $?
	: >locked && chmod 400 locked
	unshare -rn sh -c "$up" sh "$program" "${eal[@]}" -- \
		--dev "soft0,ip=127.0.0.1,port=shm:locked-$$,pcap=locked" \
		--mode write --ops 1 >out 2>err </dev/null
	rc=$?
	[ "$rc" != 0 ] && said err 'pcap=locked: Permission denied'
	verdict 'no permission for the file of pcap=' $?
}

# Runs in the namespace of test_ipv6.
test_over_ipv6() {
	local faults=,mtu=512,fault=loss:0.01
	transfer 'mode mw over IPv6' fd00::1 '' fd00::2 '' mw 1000
	transfer 'mode read over IPv6 with packets lost' fd00::1 $faults fd00::2 $faults read 200
}

# The loopback interface has one IPv6 address: two are added, in a namespace.
test_ipv6() {
	local up='ip link set lo up && ip addr add fd00::1/128 dev lo && '
	up+='ip addr add fd00::2/128 dev lo && exec "$@"'
	export PATH=$PATH:/usr/sbin:/sbin
	if ! unshare -rn sh -c "$up" sh true 2>/dev/null; then
		echo 'skipped: no network namespace, or no IPv6'
		verdict 'IPv6' 0
		return
	fi
	unshare -rn sh -c "$up" sh "$self" "$program" test_over_ipv6 >out 2>err </dev/null
	rc=$?
	verdict 'IPv6' $rc
}

# By default the cases that depend on permissions of the user; others are further tests of meson.
[ $# != 0 ] || set -- test_share test_shm_names test_eth test_port_in_use test_refusals \
	test_interface test_permission test_ipv6
in_parallel "$@"
