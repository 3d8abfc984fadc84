#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest: server and client processes of dpdk-rmem-kv in BUILD, connected with rdma_cm.
# Prints a line for each case; exit status 0 or 1.
# usage: kv.sh BUILD

build=$1
failed=0
dir=$(mktemp -d)

verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	cat "$dir"/*
	echo "FAILED: $1"
	failed=1
}

# kv [options]: exec it; for a subshell.
kv() {
	exec "$build/app/dpdk-rmem-kv" --no-huge -m 32 --no-shconf --no-pci --no-telemetry \
		--lcores 0 -- --dev verbs0,ibdev=rxe0 --keys 20 --lease-ms 3000 "$@"
}

# until_seen PID REGEX FILE: wait for a line in the output of the process.
until_seen() {
	until grep -q "$2" "$dir/$3" || ! kill -0 "$1" 2>/dev/null; do sleep 0.1; done
}

serve() {
	: >"$dir/server"
	(kv --listen "$RMEM_ADDR") >"$dir/server" 2>&1 &
	server=$!
	until_seen $server '^server: listening' server
}

serve
(kv --connect "$RMEM_ADDR" --gets 200) >"$dir/client" 2>&1
verdict 'kv server and client in two processes' $?

: >"$dir/client"
(kv --connect "$RMEM_ADDR" --gets 0 --wait-s 100) >"$dir/client" 2>&1 &
client=$!
until_seen $client '^client 1: expired lease refused: yes' client
kill -KILL $server
wait $server
serve
until_seen $client '^client 1: values stored again' client
kill -INT $client
wait $client && grep 'values stored again: 1$' "$dir/client"
verdict 'kv server killed and restarted' $?
kill -INT $server
wait $server && grep '^server: 2[0-9] PUTs' "$dir/server"
verdict 'kv server ends' $?

rm -rf "$dir"
exit $failed
