#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# netns.sh COMMAND [ARGUMENT...]: run COMMAND between two network namespaces, which it reaches by the
# commands $NETNS_A and $NETNS_B, with the addresses 10.77.0.1 and 10.77.0.2, and 10.78.0.1 and
# 10.78.0.2, of a pair of veth. Exits with 77 if namespaces or veth are not permitted.

set -euo pipefail
if [ -z "${NETNS_A:-}" ]; then
	# As root of a user namespace an ordinary user may do this too.
	user=()
	[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
	unshare "${user[@]}" --net ip link add name rmem-a type veth peer name rmem-b 2>/dev/null || {
		echo "skipped: network namespaces or veth are not permitted"
		exit 77
	}
	NETNS_A="env" exec unshare "${user[@]}" --net "$0" "$@"
fi

PATH=$PATH:/usr/sbin:/sbin
coproc other { exec unshare --net sh -c 'echo; read -r _'; }
# shellcheck disable=SC2154  # of coproc
pid=$other_PID
trap 'kill "$pid"' EXIT
read -r _ <&"${other[0]}"
export NETNS_A NETNS_B="nsenter --target $pid --net"
ip link add name rmem-a type veth peer name rmem-b netns "$pid"
for net in 10.77.0 10.78.0; do
	ip addr add $net.1/24 dev rmem-a
	$NETNS_B ip addr add $net.2/24 dev rmem-b
done
for ns in "$NETNS_A" "$NETNS_B"; do $ns ip link set lo up; done
ip link set rmem-a up
$NETNS_B ip link set rmem-b up
"$@"
