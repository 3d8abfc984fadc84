#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/secondary.c: a primary process serves a secondary one, and one that is killed.
# usage: test_example_secondary.sh PROGRAM

set -uo pipefail
. "$(dirname -- "$0")/../app/said.sh"
program=$(realpath -- "$1")

has_hugepages() {
	local dir
	dir=$(awk '$3 == "hugetlbfs" { print $2; exit }' /proc/mounts)
	[ -n "$dir" ] && [ -w "$dir" ] && [ "$(</proc/sys/vm/nr_hugepages)" -ge 64 ]
}
has_hugepages || { echo 'skipped: no hugepages in a mounted hugetlbfs'; exit 77; }

enter_scratch
options=(--no-pci --no-telemetry -m 64 --log-level=4)
waits='waiting for a secondary process'
ended='it has ended: all 255 buffers are in the pool'

has_lines() { # has_lines N TEXT
	[ "$(grep -cxF -- "$2" out)" = "$1" ]
}

"$program" -l 0 "${options[@]}" >out 2>err &
primary=$!
trap 'kill -KILL $primary 2>/dev/null; rm -rf -- "$scratch"' EXIT
rc=0
until_seen $primary has_lines 1 "$waits" || rc=$?
"$program" -l 1 "${options[@]}" --proc-type=secondary >out2 2>&1 || rc=$?
until_seen $primary has_lines 2 "$waits" || rc=$?
{ "$program" -l 1 "${options[@]}" --proc-type=secondary -- crash >out3 2>&1; } 2>/dev/null
[ $? = 137 ] || rc=1
until_seen $primary has_lines 3 "$waits" || rc=$?
kill -TERM $primary
wait $primary || rc=$?

grep -qx 'the WRITE succeeds' out2 || rc=1
has_lines 1 'written by process 2: hello from lcore 1' || rc=1
has_lines 2 "$ended" || rc=1
[ $rc = 0 ] || cat out err out2 out3
exit $rc
