# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# Programs of Debian that use verbs on soft0, most by another library: qperf, UCX,
# libfabric. Rows of devtools/check-dropin.sh, which sources it: it has try(), pair(), by_address(),
# $run, $tmp, and a copy of the installed tree that all users can read.

# has PROGRAM PACKAGE: whether it is installed.
has() {
	command -v "$1" >/dev/null || { say "$2 is not installed: $1 not run" && return 1; }
}
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"

# qperf_tests TEST...: each takes a second (by a number of messages, most of them do not end).
qperf_tests() {
	PAIR_OPTION=-lp PAIR_CLIENT="-t 1 -to 600 $* quit" pair qperf
}
if has qperf qperf; then
	program qperf qperf 'latency and bandwidth of RC, UC and UD, RDMA READ and WRITE, atomics; -cm1'
	for type in rc uc ud; do
		try "qperf, $type" qperf_tests "$type"_{lat,bw,bi_bw}
	done
	try 'qperf, RDMA of rc' qperf_tests rc_rdma_{read_lat,read_bw,write_lat,write_poll_lat,write_bw}
	try 'qperf, RDMA of uc' qperf_tests uc_rdma_{write_lat,write_poll_lat,write_bw}
	try 'qperf -cm1' qperf_tests -cm1 rc_{lat,bw} rc_rdma_{read,write}_bw
	try 'qperf, atomics' qperf_tests rc_{compare_swap,fetch_add}_mr ver_rc_{compare_swap,fetch_add}
fi

# That of Debian 13 is an MPI program if its input is no terminal, unless it has this option.
no_mpi=()
usage=$(ucx_perftest -h 2>/dev/null </dev/null || true)
! grep -q '^ *-P <0|1>' <<<"$usage" || no_mpi=(-P 0)

# ucx PAIR TRANSPORT TEST [ARGUMENT...]: a test of ucx_perftest by a function for two processes.
# Endpoints of RC connect by UD.
ucx() {
	local by=$1 tls=$2 test=$3
	shift 3
	UCX_NET_DEVICES=soft0:1 UCX_TLS=${tls/rc_verbs/rc_verbs,ud_verbs:aux},self \
		"$by" ucx_perftest "${no_mpi[@]}" -t "$test" -n 100 -w 1 "$@"
}
# uct TRANSPORT TEST [ARGUMENT...]: by the lower layer of UCX.
uct() { pair ucx_perftest "${no_mpi[@]}" -d soft0:1 -x "$1" -t "$2" -n 100 -w 1 "${@:3}"; }
by_nobody() {
	local by
	by="$nobody $(find "$tmp/copy" -name rmem-run)"
	test/dropin/pair.sh "$by" "$by" "$@"
}
ucx_in_one_process() {
	UCX_NET_DEVICES=soft0:1 UCX_TLS=rc_verbs,ud_verbs:aux timeout "$limit" "$run" \
		ucx_perftest "${no_mpi[@]}" -l -t "$1" -n 100 -w 1
}
# ucx_rails: a message of tags is split over two devices, by their counters.
ucx_rails() {
	local run="$run -d soft0 -d soft1"
	RMEM_IBV_STATS=$tmp/rails UCX_NET_DEVICES=soft0:1,soft1:1 UCX_TLS=rc_verbs,ud_verbs:aux,self \
		pair ucx_perftest "${no_mpi[@]}" -t tag_bw -n 20 -w 1 -s 1048576 || return
	cat "$tmp/rails"
	awk '{
		for (i = 1; i <= NF; i++)
			if (split($i, pair, "=") == 2 && pair[1] == "bytes")
				sum[$1] += pair[2]
	} END { exit sum["soft0:"] < 4194304 || sum["soft1:"] < 4194304 }' "$tmp/rails"
}
ucx_devices() {
	timeout "$limit" "$run" ucx_info -d >"$tmp/out" &&
		grep -A1 'Transport: rc_verbs' "$tmp/out" | grep 'Device: soft0:1' &&
		grep -A1 'Transport: ud_verbs' "$tmp/out" | grep 'Device: soft0:1'
}
if has ucx_perftest ucx-utils; then
	program UCX ucx-utils 'ucx_info, ucx_perftest: tag, active messages, put, get, atomics, stream; rc_verbs, ud_verbs' \
		'UCX_NET_DEVICES=soft0:1; UCX_TLS with ud_verbs:aux for rc_verbs'
	try 'ucx_info -d' ucx_devices
	for test in tag_{lat,bw} tag_sync_lat ucp_am_{lat,bw} ucp_put_{lat,bw} ucp_{get,add,fadd,swap,cswap} \
		stream_{lat,bw}; do
		try "ucx rc_verbs, $test" ucx pair rc_verbs "$test"
	done
	for test in tag_lat ucp_put_bw ucp_get stream_bw; do
		try "the same, 1 MiB, $test" ucx pair rc_verbs "$test" -s 1048576 -n 5
	done
	for test in tag_{lat,bw} ucp_am_lat ucp_put_{lat,bw} ucp_{get,add,fadd,swap,cswap} stream_{lat,bw}; do
		try "ucx ud_verbs, $test" ucx pair ud_verbs "$test"
	done
	try 'ucx, two devices' ucx_rails
	for test in am_lat put_{lat,bw} add_{lat,mr} fadd cswap; do
		try "uct rc_verbs, $test" uct rc_verbs "$test"
	done
	try 'uct rc_verbs, get' uct rc_verbs get -D zcopy -s 8192
	try 'uct ud_verbs, am_lat' uct ud_verbs am_lat
	for test in tag_lat ucp_get; do
		try "ucx in one process, $test" ucx_in_one_process "$test"
		try "ucx --ip, $test" ucx by_address rc_verbs "$test"
		[ "$(id -u)" != 0 ] || try "ucx of nobody, $test" ucx by_nobody rc_verbs "$test"
	done
fi

# libfabric PROVIDER TYPE DOMAIN: fi_pingpong by messages of all sizes.
libfabric() {
	PAIR_OPTION=-B/-P pair fi_pingpong -p "$1" -e "$2" -d "$3" -I 5 -S all
}
# The same by XRC, whose domain libfabric offers with shared receive contexts.
libfabric_xrc() {
	FI_VERBS_PREFER_XRC=1 FI_OFI_RXM_USE_SRX=1 FI_VERBS_XRCD_FILENAME=$tmp/xrcd \
		libfabric 'verbs;ofi_rxm' rdm soft0-xrc
}
# Its later versions no longer resolve the address of an endpoint of XRC.
has_xrc() { fi_info --version | grep -qE '^libfabric: 1\.([0-9]|1[0-9]|20)\.'; }
# on_one_cpu FUNCTION...: the first one that this process may use.
on_one_cpu() {
	local cpu
	cpu=$(taskset -cp $BASHPID | sed 's/.*: //; s/[-,].*//')
	(taskset -cp "$cpu" $BASHPID >/dev/null && "$@")
}
# The first address of an interface that is not the loopback one.
an_address() {
	PATH=$PATH:/usr/sbin:/sbin ip -4 -o addr show up scope global |
		awk 'NR == 1 { sub("/.*", "", $4); print $4 }'
}
# dmabufs_of_libfabric ADDRESS: the provider needs a symbol of the kernel, and soft0 does not.
dmabufs_of_libfabric() {
	echo 'ffffffff00000000 T ib_umem_dmabuf_get' >"$tmp/kallsyms"
	# shellcheck disable=SC2016  # of the other shell
	unshare -rm sh -c 'mount --bind "$0" /proc/kallsyms && exec "$@"' "$tmp/kallsyms" \
		timeout "$limit" "$run" "$tmp/fi_rma" "$1" >"$tmp/out" && grep 'FI_MR_DMABUF: registered' "$tmp/out"
}
fabrics() { timeout "$limit" "$run" fi_info -p verbs | grep 'domain: soft0'; }
if has fi_pingpong libfabric-bin; then
	program libfabric libfabric-bin 'fi_info, fi_pingpong: msg, dgram, rdm by ofi_rxm (RC; XRC to libfabric 1.20) and ofi_rxd; programs with RMA' \
		'an interface besides lo for msg and ofi_rxm'
	try 'fi_info -p verbs' fabrics
	try 'fi_pingpong, dgram' libfabric verbs dgram soft0-dgram
	try 'fi_pingpong, ofi_rxd' libfabric 'verbs;ofi_rxd' rdm soft0-dgram
	address=$(an_address) || address= # without iproute2
	if [ -n "$address" ]; then
		export PAIR_ADDRESS=$address
		try 'fi_pingpong, msg' libfabric verbs msg soft0
		try 'fi_pingpong, ofi_rxm' libfabric 'verbs;ofi_rxm' rdm soft0
		try 'the same, one CPU' on_one_cpu libfabric 'verbs;ofi_rxm' rdm soft0
		if has_xrc; then
			try 'fi_pingpong, XRC' libfabric_xrc
		else
			say "libfabric after 1.20: XRC not run"
		fi
		unset PAIR_ADDRESS
	else
		say "no network interface besides the loopback one: libfabric's msg, ofi_rxm not run"
	fi
fi

if [ -e /usr/include/rdma/fabric.h ]; then
	${CC:-cc} -o "$tmp/fi_mr" test/dropin/fi_mr.c -lfabric
	try 'MRs of libfabric' "$run" "$tmp/fi_mr"
	${CC:-cc} -D_GNU_SOURCE -o "$tmp/fi_rma" test/dropin/fi_rma.c -lfabric
	address=$(an_address) || address=
	[ -z "$address" ] || try 'RMA of libfabric' "$run" "$tmp/fi_rma" "$address"
	if [ -z "$address" ] || ! grep -q FI_MR_DMABUF /usr/include/rdma/fi_domain.h || ! unshare -rm true 2>/dev/null; then
		say "no FI_MR_DMABUF, no interface or no namespaces: dma-bufs of libfabric not run"
	else
		try 'dma-bufs of libfabric' dmabufs_of_libfabric "$address"
	fi
else
	say "libfabric-dev is not installed: test/dropin/fi_{mr,rma}.c not run"
fi
