#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# chaos.sh COMMAND: ibv_rc_pingpong on a device of rmem by the command, rmem-run. The client gets the
# error of a rule; the log of that run injects the same again; without rules it succeeds; rules that are
# not permitted are refused. Exits with 77 if the program is not installed.

set -uo pipefail
run=$1
type -P ibv_rc_pingpong >/dev/null || exit 77
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-chaos.XXXXXX")
server=
trap 'kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
listening() { grep -qi ":$(printf %04x "$port") [0-9a-f:]* 0a " /proc/net/tcp /proc/net/tcp6; }

wrong() {
	echo "chaos.sh: $1"
	cat "$tmp"/*
	exit 1
}

# client ARGUMENT...: the exit status of a client with these arguments of rmem-run; output in $tmp/client.
client() {
	local rc=0
	port=$((20000 + RANDOM % 12000))
	while listening; do port=$((port + 1)); done
	timeout 900 "$run" ibv_rc_pingpong -p "$port" >"$tmp/server" 2>&1 &
	server=$!
	while ! listening && kill -0 "$server" 2>/dev/null; do sleep 0.02; done
	timeout 900 "$run" "$@" ibv_rc_pingpong -p "$port" 127.0.0.1 >"$tmp/client" 2>&1 || rc=$?
	# A server whose client failed waits forever.
	[ $rc = 0 ] || kill "$server"
	wait "$server" 2>/dev/null
	return $rc
}

cat >"$tmp/rules" <<END
# The hundredth message.
SEND:RETRY_EXC_ERR@qp:1@nth:100
log:$tmp/log
END
client --chaos "$tmp/rules" && wrong 'no failure by a rule'
grep -q 'transport retry counter exceeded' "$tmp/client" || wrong 'another failure'
grep -q ' SEND:RETRY_EXC_ERR@qp:1@nth:100 # QP .*(IBTA 11.6.2)$' "$tmp/log" || wrong 'not in the log'
client --chaos-replay "$tmp/log" && wrong 'no failure by a log'
grep -q 'transport retry counter exceeded' "$tmp/client" || wrong 'another failure by a log'
client -d soft0,chaos=RDMA_READ:RETRY_EXC_ERR || wrong 'failure by a rule that does not match'
# The longest ones but a few bytes: the device still has the defaults of rmem-run.
client -d "soft0,chaos=RDMA_READ:RETRY_EXC_ERR$(printf '+RDMA_READ:RETRY_EXC_ERR%.0s' {1..41})" ||
	wrong 'failure with rules of 1000 bytes'
"$run" -d soft0,chaos=SEND:REM_ACCESS_ERR ibv_devices >"$tmp/client" 2>&1 && wrong 'illegal rule'
grep -q 'no status of SEND here.*RNR_RETRY_EXC_ERR' "$tmp/client" || wrong 'not the permitted ones'
"$run" --chaos-replay "$tmp/rules" ibv_devices >"$tmp/client" 2>&1 && wrong 'rules as a log'
grep -q 'not a log of this version' "$tmp/client" || wrong 'not why'
exit 0
