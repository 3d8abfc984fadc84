#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs of rdma_cm, unmodified, connect over a tap device: by rmem-run of BUILD on this machine,
# without root, and by the kernel's rdma_cm with rdma_rxe in a guest. Each program has its server on
# either side once. Runs in a user and network namespace. Exit status 77 where that is not permitted,
# or a program is not installed.
# usage: cm-host.sh KERNEL BUILD

kernel=$1
build=$2
. "$(dirname -- "$0")/host.sh"
rxe_ip=192.0.2.1
# Each process here has an address of its own.
rping_ip=192.0.2.2
ucmatose_ip=192.0.2.3
udaddy_ip=192.0.2.4

run="$here/../../usertools/rmem-run"

# until_ok COMMAND...: a server that does not listen yet rejects.
until_ok() {
	n=0
	until timeout 60 "$@"; do
		n=$((n + 1))
		[ $n -lt 5 ] || return 1
		sleep 1
	done
}

# client NAME COMMAND...: in the guest.
client() {
	name=$1
	shift
	timeout 100 "$@"
	rc=$?
	[ $rc = 0 ] && echo "guest: $name ok" && return
	echo "guest: $name: status $rc"
	exit 1
}

# Commands of the guest: clients, then servers.
guest() {
	client 'rping -c' rping -c -a $rping_ip -C 20 -V
	client 'ucmatose -s' ucmatose -s $ucmatose_ip -C 10
	client 'udaddy -s' udaddy -s $udaddy_ip -C 10
	rping -s -C 20 -V &
	rping=$!
	ucmatose -C 10 &
	ucmatose=$!
	udaddy -C 10 &
	udaddy=$!
	rping -s -C 20 -V -p 7175 &
	lossy=$!
	echo 'guest: servers started'
	wait $rping && echo 'guest: rping -s ok' || exit
	wait $ucmatose && echo 'guest: ucmatose ok' || exit
	wait $udaddy && echo 'guest: udaddy ok' || exit
	wait $lossy && echo 'guest: rping -s -p 7175 ok' || exit
}

case $3 in
guest)
	guest
	exit
	;;
inside) ;;
*)
	need rping ucmatose udaddy
	enter "$kernel" "$build"
	;;
esac

make_tap $rping_ip $ucmatose_ip $udaddy_ip

dir=$(mktemp -d)
rping='' ucmatose='' udaddy=''
end() {
	for pid in $rping $ucmatose $udaddy; do kill "$pid" 2>/dev/null; done
	rm -rf "$dir"
}
trap end EXIT
"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 400 --tap rmem0 -- "$here/cm-host.sh" "$kernel" \
	"$build" guest >"$dir/guest" 2>&1 &
guest=$!

# verdict NAME STATUS: print the case; a failure ends the test.
verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	kill $guest 2>/dev/null
	wait $guest
	status=$?
	tail -n 100 "$dir"/*
	[ $status = 77 ] && exit 77
	echo "FAILED, status $2: $1; status of the guest $status"
	exit 1
}

# served PID: wait for a server here, or the end of the guest.
served() {
	while kill -0 "$1" 2>/dev/null && kill -0 $guest 2>/dev/null; do sleep 0.1; done
	if kill "$1" 2>/dev/null; then return 1; fi
	wait "$1"
}

"$run" --ip $rping_ip rping -s -C 20 -V >"$dir/rping" 2>&1 &
rping=$!
"$run" --ip $ucmatose_ip ucmatose -C 10 >"$dir/ucmatose" 2>&1 &
ucmatose=$!
"$run" --ip $udaddy_ip udaddy -C 10 >"$dir/udaddy" 2>&1 &
udaddy=$!
served $rping
verdict 'rping: server here, client on rdma_rxe in the guest' $?
served $ucmatose
verdict 'ucmatose: server here' $?
served $udaddy
verdict 'udaddy: server here' $?

until grep -q 'servers started' "$dir/guest" || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
until_ok "$run" --ip $rping_ip rping -c -a $rxe_ip -C 20 -V >"$dir/rping" 2>&1
verdict 'rping: server on rdma_rxe in the guest, client here' $?
until_ok "$run" --ip $ucmatose_ip ucmatose -s $rxe_ip -C 10 >"$dir/ucmatose" 2>&1
verdict 'ucmatose: client here' $?
until_ok "$run" --ip $udaddy_ip udaddy -s $rxe_ip -C 10 >"$dir/udaddy" 2>&1
verdict 'udaddy: client here' $?
until_ok "$run" -d "soft0,ip=$rping_ip,fault=loss:0.05;seed:1" rping -c -a $rxe_ip -C 20 -V -p 7175 \
	>"$dir/rping" 2>&1
verdict 'rping: client here, one of twenty of its packets lost' $?
wait $guest && [ "$(grep -c '^guest: .* ok$' "$dir/guest")" = 7 ]
verdict 'all programs of the guest' $?
echo PASS
