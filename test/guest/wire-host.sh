#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs of BUILD on this machine, with soft, exchange packets over a tap device with those in a guest,
# with rdma_rxe: dpdk-testrmem, and dpdk-rmem-kv with its server in the guest, which is killed and
# restarted while the client runs, then with its client in the guest. Runs in a user and network
# namespace, without root. Exit status 77 where that is not permitted.
# usage: wire-host.sh KERNEL BUILD

kernel=$1
build=$2
. "$(dirname -- "$0")/host.sh"
rxe_ip=192.0.2.1
soft_ip=192.0.2.2
eal='--no-huge -m 32 --no-shconf --no-pci --no-telemetry --log-level=lib.eal:error -l 0 --'
write='--mode write --size 64K --depth 16 --burst 8'
few='--keys 10 --lease-ms 2000'

# testrmem|kv DEV [OPTION...]: exec the program; for a subshell.
testrmem() {
	# shellcheck disable=SC2086  # several words
	exec "$build/app/dpdk-testrmem" $eal $write --dev "$@"
}

kv() {
	# shellcheck disable=SC2086  # several words
	exec "$build/app/dpdk-rmem-kv" $eal $few --dev "$@"
}

# until_seen PID REGEX FILE: wait for a line of the process, or for its end.
until_seen() {
	until grep -q "$2" "$3" || ! kill -0 "$1" 2>/dev/null; do sleep 0.1; done
}

# Commands of the guest: it prints a line when a server listens, and ends a server after a connection
# to port 7000.
guest() {
	rxe=verbs0,ibdev=rxe0
	(testrmem $rxe --listen $rxe_ip) || exit
	for signal in KILL INT; do
		(kv $rxe --listen $rxe_ip) &
		server=$!
		busybox nc -l -p 7000 >/dev/null
		kill -$signal $server
		wait $server
	done || exit
	(kv $rxe --connect $soft_ip --gets 20)
}

case $3 in
guest)
	guest
	exit
	;;
inside) ;;
*)
	enter "$kernel" "$build"
	;;
esac

make_tap $soft_ip

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 1000 --tap rmem0 -- "$here/wire-host.sh" "$kernel" \
	"$build" guest >"$dir/guest" 2>&1 &
guest=$!

# signal_guest: make it end the server.
signal_guest() {
	until bash -c "exec 3<>/dev/tcp/$rxe_ip/7000" 2>/dev/null || ! kill -0 $guest; do sleep 0.1; done
}

# verdict NAME STATUS: print the case; a failure ends the test.
verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	kill $guest 2>/dev/null
	wait $guest
	status=$?
	cat "$dir"/*
	[ $status = 77 ] && exit 77
	echo "FAILED, status $2: $1; status of the guest $status"
	exit 1
}

until_seen $guest '^listening at' "$dir/guest"
(testrmem 'soft0,ip=192.0.2.2,fault=loss:0.1;seed:1' --connect $rxe_ip --ops 80 --seconds 1000 \
	--stats-period 0) >"$dir/testrmem" 2>&1
verdict 'testrmem from soft here to rdma_rxe in the guest, one of ten packets lost' $?

until_seen $guest '^server: listening' "$dir/guest"
(kv soft0,ip=$soft_ip --connect $rxe_ip --gets 0 --wait-s 100) >"$dir/client" 2>&1 &
client=$!
until_seen $client '^client 1: expired lease refused: yes' "$dir/client"
signal_guest
until_seen $client '^client 1: values stored again' "$dir/client"
kill -INT $client
wait $client && [ "$(grep -c ': yes$' "$dir/client")" = 4 ] &&
	grep 'values stored again: 1$' "$dir/client"
verdict 'kv server in the guest, killed and restarted under a client here' $?

(kv soft0,ip=$soft_ip --listen $soft_ip) >"$dir/server" 2>&1 &
server=$!
until_seen $server '^server: listening' "$dir/server"
signal_guest
wait $guest && grep '^client 1: 20 GETs .*again: 0$' "$dir/guest" &&
	[ "$(grep -c '^client 1: .*: yes$' "$dir/guest")" = 4 ]
status=$?
kill -INT $server
wait $server
verdict 'kv client in the guest, server here' "$status"
grep '^server: [0-9]' "$dir/server" "$dir/guest"
echo PASS
