#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pair_cm.sh SERVER CLIENT: run two commands, the client when the server listens with rdma_cm. %p in
# them is a free port. Succeeds if both do.
# PAIR_LIMIT: seconds, 900 by default.
# PAIR_PORT: the port of a program that has no option for it.
# PAIR_ENDLESS: the server does not end.
# PAIR_KILL=server, or client: kill it with SIGKILL when both are connected; then succeeds if the other
# one ends by itself.

set -uo pipefail
exec 2>/dev/null # messages of the shell on killed processes
limit=${PAIR_LIMIT:-900}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-pair.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

is_by_address() { [[ $server_run == *--ip* || $server_run == *,ip=* ]]; }

# has STATE: whether a socket of the port listens (00010000 0005 01) or is connected (0005 03). With
# --ip: whether the server has its UDP port, which is before it listens.
has() {
	grep -q " $1 .*@rmem_rdma_cm/0[0-9a-f]*/$port/l/" /proc/net/unix ||
		{ is_by_address && grep -qi ':12B7 0*:0* ' /proc/net/udp; }
}

# Whether the client found no listener, and was refused, as by a kernel. perftest listens twice, and
# its client does not wait for the second time.
was_early() {
	is_by_address && [ -z "${PAIR_KILL:-}" ] &&
		grep -Eq 'RDMA_CM_EVENT_(REJECTED|UNREACHABLE)|Unexpected CM event' "$tmp/client"
}

# Whether a thread of rping read an event when the main thread had closed the channel. rping does not
# wait for that thread, which then ends the program with status 255, on a kernel, too.
was_late() {
	[[ "$server_run$client_run" == *rping* ]] &&
		grep -q '^rdma_get_cm_event: Bad file descriptor' "$tmp/server" "$tmp/client"
}

port=${PAIR_PORT:-$((20000 + RANDOM % 12000))}
while [ -z "${PAIR_PORT:-}" ] && grep -q "@rmem_rdma_cm/[^/]*/$port/" /proc/net/unix; do
	port=$((port + 1))
done
server_run=${1//%p/$port} client_run=${2//%p/$port}
# The signal must reach the program, not timeout(1).
[ "${PAIR_KILL:-}" = server ] || server_run="timeout --foreground -k 5 $limit $server_run"
[ "${PAIR_KILL:-}" = client ] || client_run="timeout --foreground -k 5 $limit $client_run"
trap 'kill "$server" "$client"; rm -rf "$tmp"; exit 1' INT TERM
# A client that was early runs again with a new server, which has longer each time.
for tries in {0..9}; do
	read -ra words <<<"$server_run"
	"${words[@]}" >"$tmp/server" 2>&1 &
	server=$!
	while ! has '00010000 0005 01' && kill -0 "$server"; do sleep 0.02; done
	[ "$tries" = 0 ] || sleep "0.$tries"
	read -ra words <<<"$client_run"
	"${words[@]}" >"$tmp/client" 2>&1 &
	client=$!
	runs=
	if [ -n "${PAIR_KILL:-}" ]; then
		while ! has '0005 03' && kill -0 "$server" && kill -0 "$client"; do sleep 0.02; done
		sleep "0.$((RANDOM % 10))"
		kill -0 "$server" && kill -0 "$client" && runs=1
		kill -9 "${!PAIR_KILL}"
	fi
	client_rc=0 server_rc=0 early=
	wait "$client" || client_rc=$?
	! was_early || early=1
	# A server whose client failed may wait forever.
	if [ -n "${PAIR_ENDLESS:-}$early" ] || { [ "$client_rc" != 0 ] && [ -z "${PAIR_KILL:-}" ]; }; then
		kill "$server"
	fi
	wait "$server" || server_rc=$?
	[ -n "$early" ] || was_late || break
done
case ${PAIR_KILL:-} in
server) [ -n "$runs" ] && [ "$server_rc" = 137 ] && [ "$client_rc" -lt 124 ] && exit 0 ;;
client) [ -n "$runs" ] && [ "$client_rc" = 137 ] && [ "$server_rc" -lt 124 ] && exit 0 ;;
*) [ "$server_rc" = 0 ] || [ -n "${PAIR_ENDLESS:-}" ] && [ "$client_rc" = 0 ] && cat "$tmp/client" && exit 0 ;;
esac
echo "server: status $server_rc"
cat "$tmp/server"
echo "client: status $client_rc"
cat "$tmp/client"
exit 1
