#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# dpdk-rmem-kv as a user runs it: each kind of lease, sealed or not, one and more clients, invalid
# options, Ctrl-C; and its checks with injected faults in the leases.
#
# usage: test_kv.sh PATH_TO_DPDK_RMEM_KV PATH_TO_DPDK_RMEM_KV_BROKEN [FUNCTION...]
#
# Needs no hugepages, no root, and one CPU. Prints a line for each case; exit status 0 or 1.

set -u
. "$(dirname -- "$0")/said.sh"

program=$(realpath -- "${1:?path to dpdk-rmem-kv}")
broken=$(realpath -- "${2:?path to dpdk-rmem-kv-broken}")
shift 2
enter_scratch

cpus=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
# No shared configuration: other DPDK programs may run at the same time.
eal=(--no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level=lib.eal:error
	--log-level=pmd.rmem.soft:error) # the checks use refused rkeys, which soft logs
# shellcheck disable=SC2034  # used by run()
one=("${eal[@]}" --lcores "0@($cpus)")
two=("${eal[@]}" --lcores "(0-1)@($cpus)")
# shellcheck disable=SC2034
same=("${eal[@]}" --lcores "(0-1)@${cpus%%[-,]*}")
# shellcheck disable=SC2034
four=("${eal[@]}" --lcores "(0-3)@($cpus)")
# shellcheck disable=SC2034
service=("${eal[@]}" --lcores "(0-2)@($cpus)" -S 2)
# Few, since lcores may share a CPU. The server polls until a lease has expired: leases are short.
few=(--keys 10 --gets 200 --lease-ms 200)

# run LCORES [options]: its output is in out and err, its exit status in rc.
run() {
	local -n lcores=$1
	shift
	"$program" "${lcores[@]}" -- "$@" >out 2>err </dev/null
	rc=$?
}

# held CLIENTS CHECKS GETS: each client reported its number of checks, and all passed.
held() {
	[ "$rc" = 0 ] && is_quiet && [ "$(grep -c ': yes$' out)" = $(($1 * $2)) ] &&
		! grep -q ': NO$' out && [ "$(grep -c "^client [0-9]*: $3 GETs " out)" = "$1" ] &&
		said out '^server: [0-9]+ PUTs; .* [1-9][0-9]* revoked, [1-9][0-9]* expired'
}

test_runs() {
	local backend
	head -c 32 /dev/urandom >key
	for backend in auto fast_reg mw umr; do
		run two --backend $backend "${few[@]}"
		held 1 4 200
		verdict "leases of backend $backend" $?
	done
	run two --seal key --backend mw "${few[@]}"
	if said err 'Operation not supported'; then
		echo 'skipped: built without libcrypto'
	else
		held 1 5 200
		verdict 'sealed descriptors' $?
		finds unseal '^client 1: unsealed descriptor refused: NO$' --seal key
	fi
	# Some clients still PUT values that others GET.
	run four --keys 50 --gets 500 --lease-ms 50
	held 3 4 500
	verdict 'three clients' $?
	run service --dev soft0,engine=1 --keys 2 --gets 100 --lease-ms 200
	held 1 4 100
	verdict 'requests on a service lcore' $?
	run two --value-size 65536 --keys 3 --gets 7 --lease-ms 200
	held 1 4 7
	verdict 'large values' $?
	run two --value-size 9 --keys 1 --gets 33 --lease-ms 200
	held 1 4 33
	verdict 'one small value' $?
	run two "${few[@]}" --lease-ms 50
	held 1 4 200
	verdict 'short leases' $?
	# On one CPU they end before the client runs again; on a faster machine they may be valid.
	run same "${few[@]}" --lease-ms 1
	if [ "$rc" = 0 ]; then held 1 4 200; else
		[ "$rc" = 2 ] && said err 'leases expire before they are used: --lease-ms is too short' &&
			! said err 'remote access'
	fi
	verdict 'too short leases are reported' $?
}

# finds FAULT LINE [options]: with the fault, the program ends with this line.
finds() {
	local what=$1 line=$2
	shift 2
	KV_BROKEN=$what "$broken" "${two[@]}" -- "${few[@]}" "$@" >out 2>err </dev/null
	rc=$?
	[ "$rc" = 2 ] && said out "$line"
	verdict "detected: fault in $what" $?
}

test_broken() {
	KV_BROKEN='' "$broken" "${two[@]}" -- "${few[@]}" >out 2>err </dev/null
	rc=$?
	held 1 4 200
	verdict 'without a fault all checks pass' $?
	KV_BROKEN=slow "$broken" "${two[@]}" -- "${few[@]}" >out 2>err </dev/null
	rc=$?
	held 1 4 200
	verdict 'the clock of the server may be slower' $?
	finds value '^client 1: value read through its lease: NO$'
	finds change '^client 1: changed descriptor refused: NO$'
	finds revoke '^client 1: revoked lease refused: NO$' --lease-ms 600000
	finds expire '^client 1: expired lease refused: NO$' --lease-ms 600000
	finds run '^client 1: 0 GETs '
	said err '^rmem-kv: client 1: after 0 GETs: Bad message$'
	verdict 'a wrong value of the run is reported' $?
	finds error '^client 1: 0 GETs '
	said err '^rmem-kv: client 1: after 0 GETs: Bad message$'
	verdict 'an error that is no errno is reported' $?
}

# refused ERROR [options]: exit status 1 and one line on stderr; no output of a server.
refused() {
	local error=$1
	shift
	run two "$@"
	[ "$rc" = 1 ] && said err "^rmem-kv: .*$error" && [ "$(grep -c '^rmem-kv: ' err)" = 1 ] &&
		! said err 'not a lease context' && ! said out '^server: '
	verdict "refused: $*" $?
}

test_options() {
	refused "unknown option '--kyes'" --kyes 1
	refused "unknown argument 'get'" get
	refused 'option --keys needs a value' --keys
	refused "bad value '0' for keys: .* 1 to 1000000" --keys 0
	refused "bad value '1000001' for keys: .* 1 to 1000000" --keys 1000001
	refused "bad value '7' for value-size: .* 8 to 65536" --value-size 7
	refused "bad value '65537' for value-size: .* 8 to 65536" --value-size 65537
	refused "bad value '-1' for gets" --gets -1
	refused "bad value '1x' for gets" --gets 1x
	refused "bad value '99999999999999999999' for gets" --gets 99999999999999999999
	refused "bad value '' for gets" --gets ''
	refused "bad value '0' for lease-ms: .* 1 to 3600000" --lease-ms 0
	refused "bad value 'tcp' for backend: auto, fast_reg, mw or umr" --backend tcp
	refused "cannot read 'missing': No such file" --seal missing
	refused "cannot read '.': Is a directory" --seal .
	printf 'short' >short
	refused "seal 'short' has 5 bytes: a key has 32" --seal short
	head -c 33 /dev/zero >long
	refused "seal 'long' has more than 32 bytes: a key has 32" --seal long
	refused "cannot create device 'hard0': No such device" --dev hard0
	refused "cannot create device 'soft0,colour=1': Invalid" --dev soft0,colour=1
	refused "cannot create device '$(printf '%0300d' 0)': Invalid" --dev "$(printf '%0300d' 0)"
	refused "1000000 keys of 1 clients, values of 65536 bytes, on 'soft0': Cannot allocate" \
		--keys 1000000 --value-size 65536
	refused "on 'soft0,max_qp=1': No space left" --dev soft0,max_qp=1
	run one
	[ "$rc" = 1 ] && said err '^rmem-kv: it takes 2 lcores, there is 1: .*--lcores'
	verdict 'refused: one lcore' $?
	run two --help
	[ "$rc" = 0 ] && said out '^Usage: dpdk-rmem-kv' 'lease-ms N' '1 to 3600000 .default 1000'
	verdict '--help' $?
	"$program" --help >out 2>err && said out '--no-huge' '^Usage: dpdk-rmem-kv' 'lease-ms'
	rc=$?
	verdict "EAL's --help has the options of the program" $rc
}

test_signals() {
	local signal pid
	for signal in INT TERM; do
		: >out
		"$program" "${two[@]}" -- --keys 5 --gets 0 --lease-ms 100 >out 2>err </dev/null &
		pid=$!
		until_seen $pid said out '^client 1: expired lease refused: yes$'
		kill -$signal $pid
		wait $pid
		rc=$?
		[ "$rc" = 0 ] && is_quiet && said out '^client 1: [0-9]+ GETs ' '^server: '
		verdict "SIG$signal ends it with the counts" $?
	done
	: >out
	"$program" "${two[@]}" -- --keys 5 --lease-ms 3600000 >out 2>err </dev/null &
	pid=$!
	until_seen $pid said out '^client 1: revoked lease refused: yes$'
	kill -INT $pid
	wait $pid
	rc=$?
	[ "$rc" = 2 ] && said err 'not checked, expired lease refused: Interrupted' &&
		said out '^client 1: 0 GETs ' '^server: '
	verdict 'a signal before the end of the checks is reported' $?
}

# Cases of checks and options are a separate test of meson.
[ $# != 0 ] || set -- test_runs test_signals
in_parallel "$@"
