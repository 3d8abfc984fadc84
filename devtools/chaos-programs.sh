#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run programs under faults of chaos= with ten seeds each, and print the table of
# doc/chaos_programs.md: program | fault | runs that ended well, with an error, crashed, hung. One process
# of a pair has the faults, the other none.
# usage: chaos-programs.sh [-s SEEDS] [-l LIMIT] [NAME...]; without NAME, each program that is installed. Exit
# code 1 if a program of rmem crashed or hung, or one without errors in its faults failed.

. "$(dirname -- "$0")/common.sh"
seeds=10 limit=60
while getopts s:l: option; do
	case $option in
	s) seeds=$OPTARG ;;
	l) limit=$OPTARG ;;
	*) die 'usage: chaos-programs.sh [-s SEEDS] [-l LIMIT] [NAME...]' ;;
	esac
done
shift $((OPTIND - 1))
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-chaos.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
run=usertools/rmem-run
cpus=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
bin=build

# Faults by name. "delays" are those that no program may notice but by time.
declare -A rules=(
	[error]='any:RETRY_EXC_ERR@p:0.01@times:1'
	[calls]='mr_reg:ENOMEM@p:0.1@times:1+cq_create:ENOMEM@p:0.1@times:1+qp_create:ENOMEM@p:0.1@times:1+qp_modify:ENOMEM@p:0.05@times:1+post_send:ENOMEM@p:0.01@times:1+post_recv:ENOMEM@p:0.01@times:1'
	[delays]='recv:RNR_NAK@p:0.02@naks:2+cq:LATE@p:0.05@polls:10+loss:0.01+dup:0.01+reorder:4'
	# Fewer, for programs to which the others are more than delays (doc/chaos_programs.md).
	[qemu-delays]='loss:0.001+dup:0.01'
	[tgtd-delays]='loss:0.001+dup:0.01'
)

# pair SERVER CLIENT: run two programs, the second with faults; %p is a port.
pair() {
	local port=$((20000 + RANDOM % 12000)) server client status=0
	read -ra server <<<"${1//%p/$port}"
	read -ra client <<<"${2//%p/$port}"
	timeout -k 2 $((limit + 20)) "$run" "${server[@]}" >"$tmp/server" 2>&1 </dev/null &
	local pid=$!
	local i
	for ((i = 0; i < 200; i++)); do
		! listens $port || break
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	timeout -k 2 "$limit" "$run" -d "$device" "${client[@]}" >"$tmp/client" 2>&1 </dev/null || status=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null || true
	return $status
}

listens() {
	grep -qi ":$(printf %04x "$1") [0-9a-f:]* 0a " /proc/net/tcp /proc/net/tcp6 ||
		grep -q "@rmem_rdma_cm/[^/]*/$1/l/" /proc/net/unix
}

# alone PROGRAM...: one that has no peer, or starts it.
alone() {
	timeout -k 2 "$limit" "$run" -d "$device" "$@" >"$tmp/client" 2>&1 </dev/null
}

# A script of test/dropin: each rmem-run of it has the faults.
script() {
	cat >"$tmp/rmem-run" <<-END
	#!/bin/bash
	if [ "\$1" = -d ]; then set -- -d "\$2,${device#soft0,}" "\${@:3}"; else set -- -d "$device" "\$@"; fi
	exec "$root/$run" "\$@"
	END
	chmod +x "$tmp/rmem-run"
	timeout -k 2 $((limit * 2)) "${@//%run/$tmp/rmem-run}" >"$tmp/client" 2>&1 </dev/null
}

ucx=(env UCX_NET_DEVICES=soft0:1 'UCX_TLS=rc_verbs,ud_verbs:aux,self')
run_program() {
	case $1 in
	ibv_rc_pingpong) pair "$1 -p %p" "$1 -p %p localhost" ;;
	ib_write_bw | ib_send_bw) pair "$1 -F -n 500 -p %p" "$1 -F -n 500 -p %p localhost" ;;
	rping) pair 'rping -s -p %p -C 20' 'rping -c -a 127.0.0.1 -p %p -C 20' ;;
	ucx_perftest) pair "${ucx[*]} ucx_perftest -p %p" "${ucx[*]} ucx_perftest 127.0.0.1 -p %p -t tag_bw -n 500 -w 10" ;;
	fi_pingpong) pair 'fi_pingpong -p verbs -e msg -B %p' 'fi_pingpong -p verbs -e msg -P %p 127.0.0.1' ;;
	fio)
		pair 'fio --ioengine=rdma --port=%p --bs=64k --size=4m --name=job --rw=read --iodepth=64 --output=/dev/null' \
			'fio --ioengine=rdma --port=%p --bs=64k --size=4m --name=job --rw=write --verb=write --hostname=127.0.0.1 --iodepth=16'
		;;
	mpirun)
		alone "${ucx[@]}" mpirun --allow-run-as-root --oversubscribe --mca btl self --mca pml ucx -x UCX_NET_DEVICES \
			-x UCX_TLS -np 2 "$tmp/mpi_exchange" messages
		;;
	qemu) script test/dropin/migrate.py %run "$tmp/migrate_guest" ;;
	tgtd) script test/dropin/iser.sh %run ;;
	dpdk-testrmem)
		timeout -k 2 "$limit" $bin/app/dpdk-testrmem --no-huge -m 256 --no-pci --no-telemetry --no-shconf -- \
			--dev "$device,ip=192.0.2.1,port=shm:chaos$$,loop=1" --ops 3000 --warm-up 0 --stats-period 0 >"$tmp/client" 2>&1
		;;
	dpdk-rmem-kv)
		timeout -k 2 "$limit" $bin/app/dpdk-rmem-kv --no-huge -m 256 --no-pci --no-telemetry --no-shconf \
			--lcores "0@($cpus),1@($cpus)" -- --dev "$device,ip=192.0.2.1,port=shm:chaos$$,loop=1" --keys 20 --gets 1000 \
			--lease-ms 500 >"$tmp/client" 2>&1
		;;
	esac
}

has_program() {
	case $1 in
	qemu) command -v qemu-system-x86_64 && compile_guest "$tmp/migrate_guest" ;;
	mpirun) command -v mpirun && mpicc -O1 -o "$tmp/mpi_exchange" test/dropin/mpi_exchange.c ;;
	dpdk-*) [ -x "$bin/app/$1" ] ;;
	*) command -v "$1" ;;
	esac
} >/dev/null 2>&1

failed=0
# row NAME FAULT: the results of each seed.
row() {
	local seed status well=0 error=0 crashed=0 hung=0 injected=0 first=
	for ((seed = 1; seed <= seeds; seed++)); do
		device=soft0,chaos=${rules[$1-$2]-${rules[$2]}}+seed:$seed+log:$tmp/log
		rm -f "$tmp/log"
		status=0
		run_program "$1" || status=$?
		[ ! -e "$tmp/log" ] || injected=$((injected + $(grep -c @ "$tmp/log" || true)))
		case $status in
		0) well=$((well + 1)) ;;
		124 | 137) hung=$((hung + 1)) first+=" hung:$seed" ;;
		129 | 13[0-68-9]) crashed=$((crashed + 1)) first+=" crashed:$seed" ;;
		*) error=$((error + 1)) ;;
		esac
		[ $status = 0 ] || { mkdir -p "${KEEP:-$tmp/keep}" && cp "$tmp/client" "${KEEP:-$tmp/keep}/$1-$2-$seed"; }
	done
	printf '%-16s | %-6s | %4d | %5d | %7d | %4d | %8d |%s\n' "$1" "$2" $well $error $crashed $hung $injected "$first"
	[ "$2" != delays ] || [ $well = "$seeds" ] || failed=1
	[[ $1 != dpdk-* ]] || [ $((crashed + hung)) = 0 ] || failed=1
}

[ $# != 0 ] || set -- ibv_rc_pingpong ib_write_bw ib_send_bw rping ucx_perftest fi_pingpong fio mpirun qemu tgtd dpdk-testrmem dpdk-rmem-kv
echo 'program          | fault  | well | error | crashed | hung | injected | seeds'
for name; do
	has_program "$name" || { echo "$name is not installed" && continue; }
	for fault in error calls delays; do row "$name" $fault; done
done
exit $failed
