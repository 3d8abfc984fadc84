#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ibv_asyncwatch prints the events of a network interface that is set down and up, and whose address
# is removed and added. In a network namespace: unshare -rn watch_link.sh RMEM_RUN

set -eu
export PATH=$PATH:/usr/sbin:/sbin
log=$(mktemp)
trap 'cat "$log"; rm -f "$log"; kill "$pid"' EXIT

# await TEXT: a line of the program has it; else the program ends, or the caller's limit is exceeded.
await() {
	until grep -qw "$1" "$log"; do
		kill -0 "$pid"
		sleep 0.05
	done
	: >"$log"
}

ip link set lo up
"$1" --ip 127.0.0.1 ibv_asyncwatch -d soft0 >>"$log" &
pid=$!
await FD
ip link set lo down
await IBV_EVENT_PORT_ERR
ip link set lo up
await IBV_EVENT_PORT_ACTIVE
ip addr del 127.0.0.1/8 dev lo
await IBV_EVENT_GID_CHANGE
ip addr add 127.0.0.1/8 dev lo
await IBV_EVENT_GID_CHANGE
