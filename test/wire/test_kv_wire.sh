#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Server and clients of dpdk-rmem-kv in separate processes, over UDP and shared memory: all checks,
# with and without injected faults; a killed and restarted server, a killed client, Ctrl-C at any time,
# and refused arguments.
#
# usage: test_kv_wire.sh PATH_TO_DPDK_RMEM_KV PATH_TO_DPDK_TESTRMEM PATH_TO_KV_PEER

set -u
. "$(dirname -- "$0")/../app/said.sh"

program=$(realpath -- "${1:?path to dpdk-rmem-kv}")
testrmem=$(realpath -- "${2:?path to dpdk-testrmem}")
peer=$(realpath -- "${3:?path to kv-peer}")
enter_scratch

cpus=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
eal=(--no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level=lib.eal:error
	--log-level=pmd.rmem.soft:error) # the checks use refused rkeys, which soft logs
# The server polls until a lease has expired: leases are short.
few=(--keys 10 --lease-ms 500)

# Each function that starts processes ends the remaining ones, also after a failed case.
end_left() {
	local left
	left=$(jobs -p)
	# shellcheck disable=SC2086  # one word each
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
}

# serve ADDRESS ARGS [options]: start a server; its process id is in server, its output in
# server.out and server.err.
serve() {
	local address=$1 args=$2
	shift 2
	: >server.out
	"$program" "${eal[@]}" --lcores "0@($cpus)" -- --dev "soft0,ip=$address$args" \
		--listen "$address" "$@" >server.out 2>server.err </dev/null &
	server=$!
	until_seen "$server" said server.out '^server: listening at'
}

# connect ADDRESS ARGS PEER [options]: start a client; its process id is in client, its output in out
# and err.
connect() {
	local address=$1 args=$2 peer=$3
	shift 3
	: >out
	: >err
	"$program" "${eal[@]}" --lcores "${lcores:-0}@($cpus)" -- \
		--dev "soft0,ip=$address$args" --connect "$peer" "$@" >out 2>err </dev/null &
	client=$!
}

# run ADDRESS ARGS PEER [options]: run a client to its end; its exit status is in rc.
run() {
	connect "$@"
	ended "$client"
}

# ended PID [SIGNAL]: send the signal, and wait; the exit status is in rc.
ended() {
	[ $# = 1 ] || kill "-$2" "$1"
	wait "$1" 2>/dev/null
	rc=$?
}

# held CLIENTS CHECKS GETS: each client reported its checks, and all passed.
held() {
	[ "$rc" = 0 ] && ! said err '^rmem-kv: ' && [ "$(grep -c ': yes$' out)" = $(($1 * $2)) ] &&
		! grep -q ': NO$' out && [ "$(grep -c "^client [0-9]*: $3 GETs " out)" = "$1" ]
}

# server_ends NAME: after Ctrl-C the server ends with status 0, and each lease it granted has ended.
server_ends() {
	ended "$server" INT
	cp server.out out
	cp server.err err
	[ "$rc" = 0 ] && ! said err '^rmem-kv: ' && awk '/^server: [0-9]+ PUTs/ {
			found = 1
			exit $4 != $6 + $10 + $12 + $14
		}
		END { if (!found) exit 1 }' server.out
	verdict "$1" $?
}

test_runs() {
	trap end_left EXIT
	serve 127.0.11.2 '' "${few[@]}"
	run 127.0.11.1 '' 127.0.11.2 "${few[@]}" --gets 500
	held 1 4 500 && said out '^client 1: connected to 127.0.11.2 port' 'stored again: 0$'
	verdict 'server and client in two processes' $?
	lcores='(0-1)' run 127.0.11.1 '' 127.0.11.2 "${few[@]}" --gets 60
	held 2 4 60
	verdict 'two clients at a time, after another one' $?
	server_ends 'the server has all leases back'

	head -c 32 /dev/urandom >key
	serve 127.0.11.2 '' "${few[@]}" --seal key
	run 127.0.11.1 '' 127.0.11.2 "${few[@]}" --gets 60 --seal key
	held 1 5 60
	verdict 'sealed descriptors between two processes' $?
	server_ends 'the server that sealed has all leases back'

	serve 127.0.11.2 ",port=shm:kv-$$" "${few[@]}"
	run 127.0.11.1 ",port=shm:kv-$$" 127.0.11.2 "${few[@]}" --gets 60
	held 1 4 60
	verdict 'server and client over shared memory' $?
	server_ends 'the server has all leases back over shared memory'
}

test_faults() {
	local faults=',mtu=256,fault=loss:0.01;dup:0.1;reorder:4;corrupt:0.005;trunc:0.005'
	trap end_left EXIT
	head -c 32 /dev/urandom >key
	serve 127.0.11.4 "$faults" "${few[@]}" --seal key
	run 127.0.11.3 "$faults" 127.0.11.4 "${few[@]}" --gets 40 --seal key
	held 1 5 40
	verdict 'packets lost, duplicated, reordered and corrupted' $?
	server_ends 'the server has all leases back after faults'
}

test_server_killed() {
	trap end_left EXIT
	serve 127.0.11.6 '' "${few[@]}"
	connect 127.0.11.5 '' 127.0.11.6 "${few[@]}" --gets 0 --wait-s 600
	until_seen "$client" said out '^client 1: expired lease refused: yes$'
	ended "$server" KILL
	until_seen "$client" said err 'peer 127.0.11.6: no answer to a request'
	serve 127.0.11.6 '' "${few[@]}"
	until_seen "$client" said out '^client 1: values stored again after [0-9]+ GETs$'
	ended "$client" INT
	[ "$rc" = 0 ] && said out '^client 1: [1-9][0-9]* GETs .*; values stored again: 1$' &&
		[ "$(grep -c ': yes$' out)" = 4 ]
	verdict 'a server killed and restarted under a running client' $?
	server_ends 'the restarted server has all leases back'
	said server.out '^server: 1[0-9] PUTs; [1-9]' # more if an answer was lost
	verdict 'the restarted server got each value again' $?
}

test_client_killed() {
	trap end_left EXIT
	serve 127.0.11.8 '' "${few[@]}" --clients 1
	connect 127.0.11.7 '' 127.0.11.8 "${few[@]}" --gets 0
	until_seen "$client" said out '^client 1: expired lease refused: yes$'
	ended "$client" KILL
	run 127.0.11.7 '' 127.0.11.8 "${few[@]}" --gets 60 --wait-s 600
	held 1 4 60
	verdict 'the only connection is free again after its client was killed' $?
	server_ends 'the server has all leases back after a client was killed'
}

# A PUT of another client waits for the lease of one that posts no receives, and so stops the server's queue.
test_client_without_receives() {
	local silent
	trap end_left EXIT
	serve 127.0.11.12 '' "${few[@]}" --lease-ms 3600000
	"$peer" "${eal[@]}" --lcores "0@($cpus)" -- ip=127.0.11.13 127.0.11.12 10 3600000 >peer.out \
		2>peer.err </dev/null &
	silent=$!
	until_seen "$silent" said peer.out '^a lease, and no receive$'
	connect 127.0.11.14 '' 127.0.11.12 "${few[@]}" --lease-ms 3600000
	until_seen "$client" said out '^client 1: revoked lease refused: yes$'
	ended "$silent"
	verdict 'a client that posts no receives ends its connection alone' $rc
	ended "$client" INT
	server_ends 'the server has the lease back of a client that posts no receives'
}

# The client with the only connection waits for the end of a lease. The other one is refused twice in
# a row, so the first refusal did not end that connection. If it connects, since a slow machine ended
# the connection, it disconnects and tries again.
test_no_connection() {
	local first tries refusals=0
	trap end_left EXIT
	serve 127.0.11.10 '' "${few[@]}" --clients 1 --lease-ms 3600000
	connect 127.0.11.9 '' 127.0.11.10 "${few[@]}" --lease-ms 3600000 --wait-s 600
	first=$client
	until_seen "$first" said out '^client 1: revoked lease refused: yes$'
	mv out first.out
	mv err first.err
	for ((tries = 0; tries < 10 && refusals < 2; tries++)); do
		connect 127.0.11.11 '' 127.0.11.10 "${few[@]}" --lease-ms 3600000 --wait-s 0
		if until_seen "$client" said out '^client [0-9]+: connected'; then
			ended "$client" INT
			refusals=0
			continue
		fi
		ended "$client"
		[ "$rc" = 1 ] || break
		said err '^rmem-kv: cannot connect to 127.0.11.10 port [0-9]+: Connection timed' || break
		refusals=$((refusals + 1))
	done
	[ $refusals = 2 ]
	verdict 'no connection is free: reported, and the client that has it is not affected' $?
	ended "$first" INT
	mv first.out out
	mv first.err err
	[ "$rc" = 2 ] && said out '; [1-9][0-9]* connections lost' && # the refused READ ended one
		said err 'not checked, expired lease refused: Interrupted'
	verdict 'Ctrl-C of the client that has the connection' $?
	server_ends 'Ctrl-C of a server that held a lease'
}

test_signals() {
	trap end_left EXIT
	connect 127.0.12.1 '' 127.0.12.2 "${few[@]}" --wait-s 600
	until_seen "$client" said err 'peer 127.0.12.2: no answer to a request'
	ended "$client" INT
	[ "$rc" = 1 ] && said err '^rmem-kv: cannot connect to 127.0.12.2 .*: Interrupted'
	verdict 'Ctrl-C while waiting for a server' $?

	serve 127.0.12.2 ''
	server_ends 'Ctrl-C of a server without clients'

	serve 127.0.12.2 '' --keys 100000
	connect 127.0.12.1 '' 127.0.12.2 --keys 100000
	until_seen "$client" said out '^client 1: connected'
	ended "$client" INT
	[ "$rc" = 2 ] && said err '^rmem-kv: client 1: values not stored: Interrupted'
	verdict 'Ctrl-C while storing values' $?
	server_ends 'Ctrl-C of a server whose client has left'

	serve 127.0.12.2 '' "${few[@]}" --lease-ms 3600000
	connect 127.0.12.1 '' 127.0.12.2 "${few[@]}" --lease-ms 3600000
	until_seen "$client" said out '^client 1: revoked lease refused: yes$'
	ended "$client" INT
	[ "$rc" = 2 ] && said err 'not checked, expired lease refused: Interrupted'
	verdict 'Ctrl-C during the checks' $?
	server_ends 'Ctrl-C of a server whose client has left during the checks'

	serve 127.0.12.2 '' "${few[@]}"
	connect 127.0.12.1 '' 127.0.12.2 "${few[@]}" --gets 0 --wait-s 600
	until_seen "$client" said out '^client 1: expired lease refused: yes$'
	mv out client.out
	server_ends 'Ctrl-C of a server with a client'
	mv client.out out
	ended "$client" INT
	[ "$rc" = 0 ] && said out '^client 1: [0-9]+ GETs .*; [1-9][0-9]* connections lost'
	verdict 'Ctrl-C of a client whose server has ended' $?

	serve 127.0.12.2 '' "${few[@]}"
	connect 127.0.12.1 '' 127.0.12.2 "${few[@]}" --gets 0 --wait-s 600
	until_seen "$client" said out '^client 1: expired lease refused: yes$'
	kill -STOP "$server"
	ended "$client" INT
	[ "$rc" = 0 ] && said out '^client 1: [0-9]+ GETs '
	verdict 'Ctrl-C of a client whose server does not answer' $?
	kill -CONT "$server"
	server_ends 'the server goes on after a stop'
}

# refused NAME REGEX DEV [options]: exit status 1, and an error with the reason.
refused() {
	local name=$1 regex=$2 dev=$3
	shift 3
	"$program" "${eal[@]}" --lcores "0@($cpus)" -- --dev "$dev" "$@" >out 2>err </dev/null
	rc=$?
	[ "$rc" = 1 ] && said err "^rmem-kv: .*$regex" && [ "$(grep -c '^rmem-kv: ' err)" = 1 ] &&
		! said out '^server: [0-9]'
	verdict "refused: $name" $?
}

test_refusals() {
	trap end_left EXIT
	refused 'both sides at once' 'one of --listen and --connect, not both' soft0,ip=127.0.12.3 \
		--listen 127.0.12.3 --connect 127.0.12.4
	refused 'no address' "'127.0.12' is not an IPv4 or IPv6 address" soft0,ip=127.0.12.3 \
		--listen 127.0.12
	refused 'no clients' "bad value '0' for clients: .* 1 to 64" soft0,ip=127.0.12.3 \
		--listen 127.0.12.3 --clients 0
	refused 'a time that is none' "bad value '1s' for wait-s: .* 0 to 3600" soft0 \
		--connect 127.0.12.4 --wait-s 1s
	refused 'no process' 'cannot connect to 127.0.12.4 port [0-9]+: Connection timed out' \
		soft0,ip=127.0.12.3 --connect 127.0.12.4 --wait-s 0
	refused 'a listener at an address of no device' \
		'cannot listen at 127.0.12.5 port [0-9]+: the device has no such address' \
		soft0,ip=127.0.12.3 --listen 127.0.12.5
	refused 'to connect with a device without an address' \
		'cannot connect to 127.0.12.4 .*: the device has no such address' \
		soft0 --connect 127.0.12.4 --wait-s 0

	serve 127.0.12.4 '' "${few[@]}"
	refused 'other keys' 'client and server differ: keys is 11 here, 10 on the peer' \
		soft0,ip=127.0.12.3 --connect 127.0.12.4 --keys 11
	refused 'other values' 'differ: value-size is 65 here, 64 on' soft0,ip=127.0.12.3 \
		--connect 127.0.12.4 "${few[@]}" --value-size 65
	refused 'other leases' 'differ: lease-ms is 50 here, 500 on' soft0,ip=127.0.12.3 \
		--connect 127.0.12.4 "${few[@]}" --lease-ms 50
	head -c 32 /dev/urandom >key
	refused 'a seal of one side' 'differ: seal is 1 here, 0 on' soft0,ip=127.0.12.3 \
		--connect 127.0.12.4 "${few[@]}" --seal key
	run 127.0.12.3 '' 127.0.12.4 "${few[@]}" --gets 50
	held 1 4 50
	verdict 'a client that matches, after those that do not' $?
	said server.err 'client and server differ: keys is 10 here, 11 on the peer'
	verdict 'the server reports clients that do not fit' $?
	ended "$server" INT
	[ "$rc" = 0 ]
	verdict 'clients that do not match do not affect the server' $?

	"$testrmem" "${eal[@]}" --lcores "0@($cpus)" -- --dev soft0,ip=127.0.12.4 --mode write \
		--listen 127.0.12.4 >other.out 2>other.err </dev/null &
	server=$!
	until_seen "$server" said other.out '^listening at'
	refused 'another program' 'the peer is not this program' soft0,ip=127.0.12.3 \
		--connect 127.0.12.4
	kill "$server" 2>/dev/null # unless it ended because of this peer
	wait "$server"
}

in_parallel test_runs test_faults test_server_killed test_client_killed test_client_without_receives \
	test_no_connection test_signals test_refusals
