#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two processes of test/dropin/cm_states.c connect, by rmem-run of BUILD on this machine and by the kernel's rdma_cm with
# rdma_rxe in a guest. One is killed in each state of the connection. If it is the guest's, the one here gets the event
# that cm_states.txt has, releases all, and leaves no connection; if it is ours, the kernel's request fails by its timeout
# or is rejected by a new process with the same address, and that process connects. Runs in a user and network namespace. Exit status 77 where that is
# not permitted.
# usage: cm-killed-host.sh KERNEL BUILD

kernel=$1
build=$2
. "$(dirname -- "$0")/host.sh"
rxe_ip=192.0.2.1
ip=192.0.2.2
port=7200
run="$here/../../usertools/rmem-run"
program=$build/test/dropin/cm_states
table=$here/../dropin/cm_states.txt
# States, the side that is killed, and that of the guest, of cases in which the process here is killed. The two passive
# ones: after the request was received, and after the reply was sent.
own='req wait-req active passive
established run active passive
run req passive active
run rep passive active
run established passive active'

# side ACTIVE PASSIVE WHICH: set command and state of the active or the passive side.
side() {
	if [ "$3" = active ]; then command=connect state=$1; else command=listen state=$2; fi
}

# cases: all lines "ACTIVE PASSIVE KILLED SIDE|LINES", SIDE of which is that of the guest's process.
cases() {
	while IFS='|' read -r states lines _; do
		[[ $states == '#'* ]] || echo "$states ${states##* }|$lines"
	done <"$table"
	echo "$own"
}

# await FILE LINE PID: wait for a line of the process.
await() {
	until grep -q "^$2" "$1"; do
		kill -0 "$3" 2>/dev/null || return
		sleep 0.1
	done
}

# connect_to_killed PASSIVE: a process of the guest connects to one that is killed in that state, then replaced.
connect_to_killed() {
	busybox nc -l -p 7000 >/dev/null
	"$program" connect $ip $port run >/tmp/out 2>&1 <&5 &
	pid=$!
	[ "$1" = req ] || { await /tmp/out RDMA_CM_EVENT_CONNECT_RESPONSE $pid && echo "$n waiting"; }
	busybox nc -l -p 7000 >/dev/null
	[ "$1" = req ] || kill -KILL $pid # no message of the other one arrives
	wait $pid
	sed "s/^/$n: /" /tmp/out
	echo "$n ended"
}

# Commands of the guest. Its lines "N stopped", "N waiting" and so on are what its process printed last; the machine then
# connects to port 7000.
guest() {
	local n=0 active passive killed mine pid
	mkfifo /tmp/in
	exec 5<>/tmp/in
	cases >/tmp/cases
	while IFS='|' read -r states _ <&6; do
		n=$((n + 1))
		read -r active passive killed mine <<<"$states"
		[ "$killed $mine" != 'passive active' ] || { connect_to_killed "$passive" && continue; }
		side "$active" "$passive" "$mine"
		address=$rxe_ip last=stopped
		[ "$command" = listen ] || address=$ip
		[ "$killed" = "$mine" ] || last='listening'
		while :; do
			: >/tmp/out
			"$program" $command $address $port "$state" >/tmp/out 2>&1 <&5 &
			pid=$!
			[ $command = connect ] || { await /tmp/out listening $pid && echo "$n listening"; }
			await /tmp/out $last $pid && break
			# It does not listen yet.
			wait $pid || grep -q 'status 8' /tmp/out || { cat /tmp/out && exit 1; }
		done
		if [ "$killed" = "$mine" ]; then
			echo "$n stopped"
			busybox nc -l -p 7000 >/dev/null
			kill -KILL $pid
			wait $pid
			echo "$n killed"
			continue
		fi
		# The process of the machine is killed after the one here has its state.
		[[ $state != wait* ]] || { await /tmp/out waiting $pid && echo "$n waiting"; }
		[ "$state" != run ] || { await /tmp/out RDMA_CM_EVENT_ESTABLISHED $pid && echo "$n waiting"; }
		busybox nc -l -p 7000 >/dev/null
		if [ "$state" = run ]; then
			kill -KILL $pid # no message of the other one arrives
		else
			echo go >&5
		fi
		wait $pid
		sed "s/^/$n: /" /tmp/out
		echo "$n ended"
	done 6</tmp/cases
	while rdma resource show cm_id | grep -q cm_states || rdma resource show qp | grep -q cm_states; do sleep 0.1; done
	echo 'guest: nothing left'
}

case $3 in
guest)
	guest
	exit
	;;
inside) ;;
*)
	need rdma
	enter "$kernel" "$build"
	;;
esac

make_tap $ip

dir=$(mktemp -d)
mkfifo "$dir/in"
exec 5<>"$dir/in"
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 1000 --tap rmem0 -- "$here/cm-killed-host.sh" "$kernel" \
	"$build" guest >"$dir/guest" 2>&1 &
guest=$!

# verdict NAME STATUS: print the case; a failure ends the test.
verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	kill $guest 2>/dev/null
	wait $guest
	status=$?
	tail -n 100 "$dir"/{guest,out,cm}
	[ $status = 77 ] && exit 77
	echo "FAILED, status $2: $1; status of the guest $status"
	exit 1
}

# of_guest LINE: wait for the line of the guest.
of_guest() {
	until grep -q "^$1" "$dir/guest"; do
		kill -0 $guest 2>/dev/null || verdict "the guest, before '$1'" 1
		sleep 0.1
	done
}

signal_guest() {
	until bash -c "exec 3<>/dev/tcp/$rxe_ip/7000" 2>/dev/null || ! kill -0 $guest; do sleep 0.1; done
}

# start COMMAND ADDRESS STATE [PORT]: the process here.
start() {
	rm -f "$dir/cm"
	: >"$dir/out"
	RMEM_IBV_CM=$dir/cm "$run" --ip "$ip" "$program" "$1" "$2" "${4:-$port}" "$3" >"$dir/out" 2>&1 <&5 &
	pid=$!
}

n=0
cases >"$dir/cases"
while IFS='|' read -r states lines <&6; do
	n=$((n + 1))
	read -r active passive killed theirs <<<"$states"
	[ "$theirs" = active ] && mine=passive || mine=active
	side "$active" "$passive" "$mine"
	address=$ip
	[ $command = listen ] || { address=$rxe_ip && of_guest "$n listening"; }
	start "$command" "$address" "$state"
	if [ "$killed $mine" = 'passive passive' ]; then
		await "$dir/out" listening $pid
		signal_guest
		await "$dir/out" stopped $pid
		[ "$passive" = req ] || of_guest "$n waiting"
		kill -KILL $pid
		wait $pid 2>/dev/null
		start listen "$ip" run $((port + 1))
		await "$dir/out" listening $pid
		signal_guest
		of_guest "$n ended"
		kill -KILL $pid
		wait $pid 2>/dev/null
		[ "$passive" != req ] || grep -q "^$n: RDMA_CM_EVENT_REJECTED, status 8" "$dir/guest"
		verdict "$active and $passive, the process here killed" $?
		continue
	fi
	if [ "$killed" = "$mine" ]; then
		await "$dir/out" stopped $pid
		of_guest "$n waiting"
		kill -KILL $pid
		wait $pid 2>/dev/null
		signal_guest
		of_guest "$n ended"
		[ "$active" != req ] || grep -q "^$n: RDMA_CM_EVENT_UNREACHABLE, status -110" "$dir/guest"
		verdict "$active and $passive, the process here killed" $?
		continue
	fi
	of_guest "$n stopped"
	[[ $state != wait* ]] || await "$dir/out" waiting $pid
	[ "$states" != 'established run active active' ] || await "$dir/out" RDMA_CM_EVENT_ESTABLISHED $pid
	signal_guest
	of_guest "$n killed"
	[[ $state != wait* ]] || echo go >&5
	wait $pid
	got=$(paste -sd';' "$dir/out")
	[ "$got" = "$lines" ] && ! grep '  state: ' "$dir/cm" | grep -vqE 'IDLE|TIMEWAIT'
	verdict "$active and $passive, the $killed side in the guest killed: $got" $?
done 6<"$dir/cases"
wait $guest && grep -q '^guest: nothing left' "$dir/guest"
verdict 'the guest has no connection and no QP left' $?
echo PASS
