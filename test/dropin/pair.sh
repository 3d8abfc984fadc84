#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pair.sh SERVER CLIENT PROGRAM [ARGUMENT...]: run PROGRAM as server and as client that connects to it
# over TCP at PAIR_ADDRESS, 127.0.0.1 by default, each with a command prefix of its own
# ("usertools/rmem-run --ip 127.0.0.2"). Succeeds if both do.
# PAIR_LIMIT: seconds, 900 by default.
# PAIR_PORT: the first TCP port to try; by default a random one.
# PAIR_OPTION: option for the port, -p by default, or "SERVER/CLIENT".
# PAIR_CLIENT: additional arguments of the client.
# PAIR_KILL: kill the server after this time (as sleep(1)), while the client runs; then succeeds if
# the client fails by itself. PROGRAM must be one that takes longer than the limit otherwise.

set -uo pipefail
exec 2>/dev/null # messages of the shell on killed processes
read -ra server_run <<<"$1"
read -ra client_run <<<"$2"
shift 2
# Without -F perftest exits if it can't measure the CPU's frequency, as on a loaded machine.
[[ $1 != ib_*_bw && $1 != ib_*_lat ]] || set -- "$@" -F
limit=${PAIR_LIMIT:-900}
option=${PAIR_OPTION:--p}
read -ra client_args <<<"${PAIR_ADDRESS:-127.0.0.1} ${PAIR_CLIENT:-}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-pair.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
listening() { grep -qi ":$(printf %04x "$port") [0-9a-f:]* 0a " /proc/net/tcp /proc/net/tcp6; }

port=${PAIR_PORT:-$((20000 + RANDOM % 12000))}
while listening; do port=$((port + 1)); done
# The signal must reach the program, not timeout(1).
[ -n "${PAIR_KILL:-}" ] || server_run=(timeout --foreground -k 5 $((limit + 20)) "${server_run[@]}")
"${server_run[@]}" "$@" "${option%/*}" "$port" >"$tmp/server" 2>&1 &
server=$!
while ! listening && kill -0 "$server"; do sleep 0.02; done
timeout --foreground -k 5 "$limit" \
	"${client_run[@]}" "$@" "${option#*/}" "$port" "${client_args[@]}" >"$tmp/client" 2>&1 &
client=$!
trap 'kill "$server" "$client"; rm -rf "$tmp"; exit 1' INT TERM
runs=
if [ -n "${PAIR_KILL:-}" ]; then
	sleep "$PAIR_KILL"
	kill -0 "$client" && runs=1
	kill -9 "$server"
fi
wait "$client"
client=$?
# A server whose client failed waits forever.
[ $client = 0 ] || kill "$server"
wait "$server"
server=$?
if [ -n "${PAIR_KILL:-}" ]; then
	if [ -n "$runs" ] && [ $server = 137 ] && [ $client != 0 ] && [ $client -lt 124 ]; then exit 0; fi
elif [ $server = 0 ] && [ $client = 0 ]; then
	cat "$tmp/client"
	exit 0
fi
echo "server: status $server"
cat "$tmp/server"
echo "client: status $client"
cat "$tmp/client"
exit 1
