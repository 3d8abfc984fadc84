# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Programs of Debian that were written for hardware, each with a use of its own: rows of
# devtools/check-dropin.sh, which sources it. Each compares the data that arrives, and each proves
# that it passed through soft0, by the counters that its processes report (through()). An entry of
# doc/programs.md begins with program(). Rows that take long are of the set `all` (RMEM_DROPIN_ALL).

# through BYTES PROCESSES COMMAND...: the requests of its processes transfer that much, and at least
# so many processes take part.
through() {
	local bytes=$1 processes=$2 rc=0
	shift 2
	rm -f "$tmp/stats"
	RMEM_IBV_STATS=$tmp/stats "$@" || rc=$?
	[ $rc = 0 ] || return $rc
	cat "$tmp/stats" || return
	awk -v bytes="$bytes" -v processes="$processes" '
		{
			for (i = 1; i <= NF; i++)
				if (split($i, pair, "=") == 2)
					of[pair[1]] = pair[2]
			sum += of["bytes"]
			nb += of["send_wrs"] + of["recv_wrs"] + of["wire_rx_bytes"] > 0
		}
		END {
			printf "%d processes, %d bytes by soft0\n", nb, sum
			exit sum < bytes || nb < processes
		}' "$tmp/stats"
}

# of_all: whether the rows that take long run.
of_all() { [ -n "${RMEM_DROPIN_ALL:-}" ]; }

# script FILE [ARGUMENT...]: one of test/dropin, which gets the command rmem-run. It compares the data
# and checks the counters itself; it exits with 0, 1, or 77 if something is not installed.
script() { timeout --foreground -k 5 "$limit" "test/dropin/$1" "$run" "${@:2}"; }

# The guest that migrates runs on the processor that QEMU emulates.
migrate() { timeout --foreground -k 5 "$limit" test/dropin/migrate.py "$@" "$run" "$tmp/guest"; }
if has qemu-system-x86_64 qemu-system-x86 && [ "$(uname -m)" = x86_64 ]; then
	compile_guest "$tmp/guest"
	program QEMU qemu-system-x86 'live migration of a running guest by rdma:, also with rdma-pin-all; one side killed'
	try 'QEMU, migration' through $((48 << 20)) 2 migrate
	try 'the same, rdma-pin-all' through $((48 << 20)) 2 migrate --pin-all
	try 'the same, source killed' through 1 1 migrate --kill source
	# How much was executed before the kill depends on the processors.
	try 'the same, target killed' through 1 1 migrate --kill target
fi

# dapl PROVIDER: dtest of uDAPL, which compares what both sides write; its server listens at TCP port 15828.
dapl_listens() { grep -qi ':3dd4 [0-9a-f:]* 0a ' /proc/net/tcp; }
dapl() {
	local rc=0 dtest server i
	if [ "$1" = scm ] && [ -z "$(an_address)" ]; then # its sockets have the address of the host
		echo 'no interface but the loopback one'
		return 77
	fi
	dtest="timeout --foreground -k 5 $limit $run dtest -P soft-$1 -W -D -b 65536 -B 100"
	for ((i = 0; i < 3000; i++)); do # that of another user of this host
		dapl_listens || break
		sleep 0.1
	done
	$dtest -s &
	server=$!
	until dapl_listens; do
		kill -0 $server || return
		sleep 0.02
	done
	$dtest -h 127.0.0.1 || rc=$?
	[ $rc = 0 ] || kill $server
	wait $server && return $rc
}
if has dtest dapl2-utils; then
	program uDAPL dapl2-utils 'dtest by its providers cma (rdma_cm), scm and ucm, dtestsrq by cma' \
		'DAT_OVERRIDE, a file with a line for each provider'
	export DAT_OVERRIDE=$tmp/dat.conf
	cat >"$DAT_OVERRIDE" <<-EOF
	soft-cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "127.0.0.1 0" ""
	soft-scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "soft0 1" ""
	soft-ucm u2.0 nonthreadsafe default libdaploucm.so.2 dapl.2.0 "soft0 1" ""
	EOF
	for provider in cma scm ucm; do
		try "dtest, $provider" through $((2 * 100 * 65536)) 2 dapl $provider
	done
	try 'dtestsrq, cma' through $((4 * 4096)) 2 env PAIR_PORT=45248 test/dropin/pair_cm.sh \
		"$run dtestsrq -P soft-cma" "$run dtestsrq -P soft-cma -h 127.0.0.1"
fi

# mpi_bytes RANKS: test/dropin/mpi_exchange.c transfers so many: messages of 1 byte to 1 MiB, then
# blocks, 132104 bytes for a rank in all: by alltoall and put to the others, by get from all of the next.
mpi_bytes() {
	local blocks=$((2 * ($1 - 1) + $1))
	[ "${#mpi_arguments[@]}" = 0 ] || blocks=$(($1 - 1))
	echo $(($1 * (1398101 + blocks * 132104)))
}

# mpi RANKS COMMAND...: the launcher, up to the number of ranks.
mpi_arguments=()
mpi() {
	HOME=$tmp/copy OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		timeout --foreground -k 5 "$limit" "${@:2}" "$1" "$(find "$tmp/copy" -name rmem-run)" "$tmp/copy/$mpi_program" \
		"${mpi_arguments[@]}"
}

# mpi_rows NAME COMMAND...: with 2 and 4 ranks.
mpi_rows() {
	local ranks
	for ranks in 2 4; do
		try "$1, $ranks ranks" through "$(mpi_bytes $ranks)" $ranks mpi $ranks "${@:2}"
	done
}
ucx_env=(env UCX_NET_DEVICES=soft0:1 'UCX_TLS=rc_verbs,ud_verbs:aux,self')
if has mpirun.openmpi openmpi-bin && has mpicc.openmpi libopenmpi-dev; then
	mpi_program=mpi_open
	mpicc.openmpi -O1 -o "$tmp/copy/$mpi_program" test/dropin/mpi_exchange.c
	launch=(mpirun.openmpi --oversubscribe --mca btl self)
	program 'Open MPI, UCX' openmpi-bin 'messages, alltoall, one-sided (put, get, accumulate, atomics); 2 and 4 ranks' \
		'UCX_NET_DEVICES, UCX_TLS (dropin_tests.md)'
	by_ucx=("${launch[@]}" --mca pml ucx --mca osc ucx -x UCX_NET_DEVICES -x UCX_TLS)
	mpi_rows 'Open MPI, UCX' "${ucx_env[@]}" "${by_ucx[@]}" -np
	# shellcheck disable=SC2086  # words
	[ "$(id -u)" != 0 ] || try 'the same, of nobody' mpi 2 $nobody "${ucx_env[@]}" "${by_ucx[@]}" -np
	program 'Open MPI, OFI' openmpi-bin 'as Open MPI by UCX; with Open MPI 5 no one-sided' \
		'an interface besides lo; mtl_ofi_provider_include "verbs;ofi_rxm"'
	if [ -n "$(an_address || true)" ]; then
		by_ofi=("${launch[@]}" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm')
		# Version 5 has none for endpoints of messages: MPI_Win_create() finds no component of osc.
		if grep -q 'osc: pt2pt' <<<"$(ompi_info)"; then by_ofi+=(--mca osc pt2pt); else mpi_arguments=(messages); fi
		mpi_rows 'Open MPI, OFI' "${by_ofi[@]}" -np
		mpi_arguments=()
	fi
fi
if has mpiexec.mpich mpich && has mpicc.mpich libmpich-dev; then
	mpi_program=mpi_mpich
	mpicc.mpich -O1 -o "$tmp/copy/$mpi_program" test/dropin/mpi_exchange.c
	launch=(env MPIR_CVAR_NOLOCAL=1 mpiexec.mpich)
	program 'MPICH, UCX' mpich 'as Open MPI by UCX' \
		'the same, and MPIR_CVAR_NOLOCAL=1: by default its ranks on one host use shared memory'
	mpi_rows 'MPICH, UCX' "${ucx_env[@]}" "${launch[@]}" -n
fi

# gloo RANKS: an all-reduce by its transport ibverbs.
gloo() {
	local rank rc=0 pids=()
	mkdir "$tmp/gloo"
	for ((rank = 0; rank < $1; rank++)); do
		timeout --foreground -k 5 "$limit" "$run" "$tmp/gloo_allreduce" $rank "$1" "$tmp/gloo" &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do wait "$rank" || rc=1; done
	rm -r "$tmp/gloo"
	return $rc
}
if [ -e /usr/include/gloo/config.h ] && has "${CXX:-c++}" g++; then
	program gloo libgloo-dev 'all-reduce (ring, ring in chunks, halving and doubling) by its transport ibverbs, 2 and 4 ranks'
	"${CXX:-c++}" -O1 -o "$tmp/gloo_allreduce" test/dropin/gloo_allreduce.cpp -lgloo -pthread
	for ranks in 2 4; do
		try "gloo, $ranks ranks" through $((ranks << 22)) $ranks gloo $ranks
	done
else
	say 'libgloo-dev is not installed: gloo not run'
fi

if PATH=$PATH:/usr/sbin:/sbin has tgtd tgt && has iscsi-inq libiscsi-bin && has qemu-img qemu-utils; then
	program 'tgt, libiscsi' tgt 'iSER: tgtd, iscsi-inq and qemu-img; 64 MiB written, read back and compared' \
		'an interface besides lo; tgt binds address and name of the initiator (test/dropin/iser.sh)'
	try 'tgtd, iSER' script iser.sh
fi

if has ceph-mon ceph-mon && has ceph-osd ceph-osd && has rados ceph-common; then
	program Ceph ceph-osd 'a monitor and an OSD; an object put and got by rados, all messages by ms_type async+rdma' \
		'ms_async_rdma_device_name soft0, and shorter queues (test/dropin/ceph.sh)'
	try 'Ceph, async+rdma' script ceph.sh
fi

if [ -e /usr/include/librpma.h ]; then
	program librpma librpma-dev 'WRITEs that are flushed and read back, messages; two processes'
	${CC:-cc} -O1 -o "$tmp/rpma" test/dropin/rpma.c -lrpma -libverbs
	try librpma through $((17 << 20)) 2 timeout --foreground -k 5 "$limit" "$run" "$tmp/rpma"
else
	say 'librpma-dev is not installed: librpma not run'
fi

# Allocators that give memory back at once, while it is registered.
purge() { env LD_PRELOAD="$1" MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0 TCMALLOC_RELEASE_RATE=10 \
	timeout --foreground -k 5 "$limit" "$run" "$tmp/purge"; }
entry=
${CC:-cc} -O1 -o "$tmp/purge" test/dropin/purge.c -libverbs
for allocator in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
	if grep -q "^\s*$allocator " <<<"$(/sbin/ldconfig -p)"; then
		try "memory of ${allocator%%.*}" through $((32 << 20)) 1 purge $allocator
	else
		say "$allocator is not installed: not run"
	fi
done

if compgen -G '/usr/lib/*/rsocket/librspreload.so' >/dev/null; then
	program librspreload librdmacm1 'a program of TCP sockets (test/dropin/rsocket.c) as rsockets, preloaded before or after the library of rmem-run' \
		'sockets of SOCK_CLOEXEC and of accept4() remain with the kernel'
	try 'librspreload' script rsocket.sh
fi

# recipe_pytest: the module of doc/recipes.md.
recipe_pytest() {
	sed -n '/^<!-- recipe: pytest -->$/,/^```$/p' doc/recipes.md | sed '1,2d; $d' >"$tmp/test_write.py"
	timeout --foreground -k 5 300 "$run" /usr/bin/python3 -m pytest -p no:cacheprovider "$tmp/test_write.py" |
		tee "$tmp/out"
	grep -q ' 3 passed' "$tmp/out"
}
if /usr/bin/python3 -c 'import pytest, pyverbs' 2>/dev/null; then
	try 'recipe, pytest' through $((1 << 20)) 1 recipe_pytest
else
	say 'python3-pytest is not installed: the recipe of doc/recipes.md not run'
fi
