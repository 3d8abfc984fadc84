#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mckey.sh RUN: two processes of mckey receive the messages that a third one sends to a group. RUN is
# the command of rmem-run. The receivers are in the group when the names of their sockets are there.

set -uo pipefail
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-mckey.XXXXXX")
trap 'kill "${receivers[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
group=239.$((RANDOM % 256)).$((RANDOM % 256)).$((RANDOM % 256))
read -ra run <<<"$1"
receivers=()
before=$(grep -c '@rmem-mc/' /proc/net/unix)
for i in 1 2; do
	timeout "${PAIR_LIMIT:-900}" "${run[@]}" mckey -m "$group" -C 8 -S 512 >"$tmp/$i" 2>&1 &
	receivers+=($!)
done
while [ "$(grep -c '@rmem-mc/' /proc/net/unix)" -lt $((before + 2)) ] && kill -0 "${receivers[@]}"; do
	sleep 0.02
done
rc=0
timeout "${PAIR_LIMIT:-900}" "${run[@]}" mckey -m "$group" -s -C 8 -S 512 >"$tmp/0" 2>&1 || rc=1
for pid in "${receivers[@]}"; do
	wait "$pid" || rc=1
done
[ $rc = 0 ] || cat "$tmp"/*
exit $rc
