#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs of perftest, unmodified, between soft0 of rmem-run on this machine and rxe0 in a guest, over
# a tap device: each one with its server in the guest, and with its server here. Prints a line for each
# case, and PASS at the end. Runs in a user and network namespace, without root. Exit status 77 where
# that is not permitted.
# usage: wire-perftest.sh KERNEL

kernel=$1
here=$(cd -- "$(dirname -- "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
rxe_ip=192.0.2.1
soft_ip=192.0.2.2
soft="$here/../../usertools/rmem-run --ip $soft_ip"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# connect COMMAND...: a client. It ends at once until the server listens, and then is run again.
connect() {
	tries=0
	until "$@" >"$dir/out" 2>&1; do
		tries=$((tries + 1))
		grep -q "Couldn't connect" "$dir/out" && [ $tries != 200 ] || return
		sleep 0.1
	done
}

# run SIDE SERVER PORT PROGRAM...: the process of that side, "guest" or "here".
run() {
	side=$1 server=$2 port=$3
	shift 3
	prefix="timeout 300 $soft" device=soft0 peer=$rxe_ip
	[ "$side" = here ] || prefix='timeout 300' device=rxe0 peer=$soft_ip
	# shellcheck disable=SC2086  # words
	if [ "$side" = "$server" ]; then
		$prefix "$@" -d $device -F -p "$port" >"$dir/out" 2>&1
	else
		connect $prefix "$@" -d $device -F -p "$port" $peer
	fi
}

# both SIDE: the processes of that side, in order. 4 KiB is one packet, 64 KiB are 16. Perftest uses the
# number of READs that the other device offers, 128 of rxe0, of which soft0 has 16.
both() {
	port=18600
	for program in 'ib_write_bw -n 100 -s 4096' 'ib_write_bw -n 20' 'ib_send_bw -n 20' \
		'ib_read_bw -n 20 -o 16'; do
		for server in guest here; do
			port=$((port + 1))
			# shellcheck disable=SC2086  # words
			run "$1" $server $port $program
			status=$?
			[ $status = 0 ] && grep -qE '^ [0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+ ' "$dir/out" &&
				echo "ok: $program, server: $server" && continue
			cat "$dir/out"
			echo "FAILED, status $status: $program, server: $server, on $1"
			return 1
		done
	done
}

case $2 in
guest)
	busybox nc -l -p 7000 >/dev/null # the other side begins
	both guest
	exit
	;;
inside) ;;
*)
	if ! command -v ib_write_bw >/dev/null; then
		echo 'skipped: perftest is not installed'
		exit 77
	fi
	if ! [ -w /dev/net/tun ] || ! unshare -rn true 2>/dev/null; then
		echo 'skipped: no tap device in a network namespace'
		exit 77
	fi
	exec unshare -rn "$0" "$kernel" inside
	;;
esac

ip tuntap add rmem0 mode tap && ip link set lo up && ip link set rmem0 mtu 9000 up &&
	ip addr add $soft_ip/24 dev rmem0 || exit 77
"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 3000 --tap rmem0 -- "$here/wire-perftest.sh" \
	"$kernel" guest >"$dir/guest" 2>&1 &
guest=$!
# The guest listens when it has booted.
until bash -c "exec 3<>/dev/tcp/$rxe_ip/7000" 2>/dev/null || ! kill -0 $guest; do sleep 0.1; done
both here
status=$?
[ $status = 0 ] || kill $guest 2>/dev/null
wait $guest
guest_status=$?
[ "$status $guest_status" = '0 0' ] && echo PASS && exit
cat "$dir/guest"
[ $guest_status != 77 ] || exit 77
exit 1
