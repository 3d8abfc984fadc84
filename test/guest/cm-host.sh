#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs of rdma_cm, unmodified, connect over a tap device: by rmem-run of BUILD on this machine,
# without root, and by the kernel's rdma_cm with rdma_rxe in a guest. Each program has its server on
# either side once, but cmtime here. A client of perftest 4.5 (-R) connects twice, and fails if the server
# does not listen for the second time yet: it loses three of ten packets, so that the second request may be
# sent again after a second, and runs again with a new server if that was not enough. mckey sends to a group in
# both directions. Runs in a user and network namespace. Exit status 77 where that is not permitted, or a
# program is not installed.
# usage: cm-host.sh KERNEL BUILD

kernel=$1
build=$2
. "$(dirname -- "$0")/host.sh"
rxe_ip=192.0.2.1
# Each process here has an address of its own.
rping_ip=192.0.2.2
ucmatose_ip=192.0.2.3
udaddy_ip=192.0.2.4
cmtime_ip=192.0.2.5
perftest_ip=192.0.2.6
rxe_ip6=fd00:2::1
rping_ip6=fd00:2::2
group=239.192.0.2

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

# cm_us FILE: microseconds for connect and disconnect of a connection, of cmtime.
cm_us() { awk '$1 == "connect" || $1 == "disconnect" { us += $NF } END { printf "%d\n", us }' "$1"; }

# cmtime to the server here, and to one in the guest.
compare_cmtime() {
	cmtime >/dev/null 2>&1 &
	server=$!
	for ip in $cmtime_ip $rxe_ip; do
		tries=0
		# Each server listens at some time.
		until timeout 100 cmtime -s $ip -c 20 >"/tmp/cmtime.$ip" 2>&1 &&
			[ "$(cm_us "/tmp/cmtime.$ip")" -gt 0 ]; do
			tries=$((tries + 1))
			[ $tries -lt 20 ] || exit 1
		done
	done
	kill $server
	here_us=$(cm_us /tmp/cmtime.$cmtime_ip) rxe_us=$(cm_us /tmp/cmtime.$rxe_ip)
	echo "cmtime: us per connection of rdma_rxe: $here_us to soft, $rxe_us to rdma_rxe," \
		"ratio $((here_us * 100 / rxe_us)) %"
	echo 'guest: cmtime -s ok'
}

# The server here is run again if the client has failed.
latency() {
	until timeout 100 ib_send_lat -R -F -n 100 -s 64 -d rxe0 $perftest_ip >/tmp/latency 2>&1; do
		cat /tmp/latency
		sleep 0.1
	done
	echo 'guest: ib_send_lat -R ok'
}

# Servers of perftest, each until its client has succeeded. The machine connects to port 7000 when a client has ended.
perftest_servers() {
	for program in ib_send_lat ib_write_bw; do
		word=
		until [ "$word" = ok ]; do
			timeout 300 $program -R -F -n 20 -s 64 -d rxe0 >/tmp/server 2>&1 &
			server=$!
			until rdma resource show cm_id | grep -q LISTEN || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
			echo "guest: $program listens"
			word=$(busybox nc -l -p 7000)
			[ "$word" = ok ] || kill $server 2>/dev/null
			wait $server
			status=$?
		done
		[ $status = 0 ] || exit
		echo "guest: $program -R server ok"
	done
}

# mckey receives, then sends when the receiver of the other side has joined. Datagrams may be lost (of eight,
# rdma_rxe of Linux 7.3 sometimes sends one): a sender runs again until the receiver has all of its messages.
multicast() {
	ip route add 239.0.0.0/8 dev eth0
	timeout 100 stdbuf -oL mckey -m $group -b $rxe_ip -C 8 -S 512 || exit
	echo 'guest: mckey ok'
	busybox nc -l -p 7000 >/dev/null
	busybox nc -l -p 7000 >/dev/null &
	receiver=$!
	while kill -0 $receiver 2>/dev/null; do
		timeout 100 mckey -m $group -b $rxe_ip -s -C 8 -S 512 || exit
	done
	echo 'guest: mckey -s ok'
}

# Commands of the guest: clients, then servers.
guest() {
	ip addr add $rxe_ip6/64 dev eth0 nodad
	client 'rping -c' rping -c -a $rping_ip -C 20 -V
	client 'ucmatose -s' ucmatose -s $ucmatose_ip -C 10
	client 'udaddy -s' udaddy -s $udaddy_ip -C 10
	client 'rping -c, IPv6' rping -c -a $rping_ip6 -C 20 -V
	compare_cmtime
	latency
	perftest_servers
	multicast
	rping -s -C 20 -V &
	rping=$!
	ucmatose -C 10 &
	ucmatose=$!
	udaddy -C 10 &
	udaddy=$!
	rping -s -C 20 -V -p 7175 &
	lossy=$!
	rping -s -a :: -C 20 -V -p 7176 &
	six=$!
	until [ "$(rdma resource show cm_id | grep LISTEN | grep -o 'pid [0-9]*' | sort -u | wc -l)" = 5 ]; do sleep 0.1; done
	echo 'guest: servers started'
	wait $rping && echo 'guest: rping -s ok' || exit
	wait $ucmatose && echo 'guest: ucmatose ok' || exit
	wait $udaddy && echo 'guest: udaddy ok' || exit
	wait $lossy && echo 'guest: rping -s -p 7175 ok' || exit
	wait $six && echo 'guest: rping -s, IPv6 ok' || exit
}

case $3 in
guest)
	guest
	exit
	;;
inside) ;;
*)
	need rping ucmatose udaddy cmtime mckey ib_send_lat ib_write_bw
	enter "$kernel" "$build"
	;;
esac

make_tap $rping_ip $ucmatose_ip $udaddy_ip $cmtime_ip $perftest_ip
ip addr add $rping_ip6/64 dev rmem0 nodad && ip route add 239.0.0.0/8 dev rmem0 || exit 77

dir=$(mktemp -d)
rping='' ucmatose='' udaddy='' six='' cmtime='' lat='' mckey=''
end() {
	for pid in $rping $ucmatose $udaddy $six $cmtime $lat $mckey; do kill "$pid" 2>/dev/null; done
	rm -rf "$dir"
}
trap end EXIT
"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 1000 --tap rmem0 -- "$here/cm-host.sh" "$kernel" \
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

# seen LINE FILE: wait for a line, or the end of the guest.
seen() {
	until grep -q "$1" "$dir/$2" || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
}

"$run" --ip $cmtime_ip cmtime >"$dir/cmtime" 2>&1 &
cmtime=$!
"$run" --ip $rping_ip6 rping -s -a :: -C 20 -V >"$dir/six" 2>&1 &
six=$!
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

served $six
verdict 'rping: server here, IPv6' $?
seen '^cmtime:' guest
kill $cmtime
wait $cmtime 2>/dev/null
cmtime=''
grep '^cmtime:' "$dir/guest"
verdict 'cmtime: server here' $?
until grep -q 'ib_send_lat -R ok' "$dir/guest" || ! kill -0 $guest 2>/dev/null; do
	timeout 300 "$run" --ip $perftest_ip ib_send_lat -R -F -n 100 -s 64 -d soft0 >"$dir/latency" 2>&1 &
	lat=$!
	until ! kill -0 $lat 2>/dev/null || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
	wait $lat
	status=$?
	[ $status != 0 ] || seen 'ib_send_lat -R ok' guest
done
grep -qE '^ 64 +100 ' "$dir/latency"
verdict 'ib_send_lat -R: server here' $?
# signal_guest: it listens at port 7000 once for each signal.
signal_guest() {
	until bash -c "exec 3<>/dev/tcp/$rxe_ip/7000" 2>/dev/null || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
}

# to_perftest PROGRAM: its client here; $n is the number of servers that listened before.
to_perftest() {
	for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		n=$((n + 1))
		until [ "$(grep -c ' listens$' "$dir/guest")" -ge $n ] || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
		timeout 100 "$run" -d "soft0,ip=$perftest_ip,fault=loss:0.3;seed:$seed" "$1" -R -F -n 20 -s 64 \
			-d soft0 $rxe_ip >"$dir/$1" 2>&1
		status=$?
		word=again
		[ $status != 0 ] || word=ok
		until bash -c "exec 3<>/dev/tcp/$rxe_ip/7000 && echo $word >&3" 2>/dev/null || ! kill -0 $guest; do sleep 0.1; done
		[ $status != 0 ] || return 0
	done
	return 1
}

n=0
for program in ib_send_lat ib_write_bw; do
	to_perftest $program
	verdict "$program -R: client here, three of ten of its packets lost" $?
done
seen 'joined dgid' guest
until grep -q '^guest: mckey ok' "$dir/guest" || ! kill -0 $guest 2>/dev/null; do
	"$run" --ip $udaddy_ip mckey -m $group -s -C 8 -S 512 >"$dir/mckey" 2>&1 || break
done
grep -q '^guest: mckey ok' "$dir/guest"
verdict 'mckey: sender here' $?
# A file of its own: the sender's has the line that is waited for.
: >"$dir/receiver"
timeout 300 stdbuf -oL "$run" --ip $udaddy_ip mckey -m $group -C 8 -S 512 >"$dir/receiver" 2>&1 &
mckey=$!
seen 'joined dgid' receiver
signal_guest
served $mckey
status=$?
signal_guest
verdict 'mckey: receiver here' $status

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
until_ok "$run" --ip $rping_ip6 rping -c -a $rxe_ip6 -C 20 -V -p 7176 >"$dir/rping" 2>&1
verdict 'rping: client here, IPv6' $?
wait $guest && [ "$(grep -c '^guest: .* ok$' "$dir/guest")" = 15 ]
verdict 'all programs of the guest' $?
echo PASS
