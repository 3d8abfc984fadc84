#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# all_to_all.sh RMEM_RUN PROGRAM PROCESSES ROUNDS SECONDS: all_to_all.c by shared memory and by UDP, in
# namespaces of its own. No file and no name of a socket is left; exits with 77 if they are not permitted.

set -euo pipefail
if [ -z "${ALL_TO_ALL_INSIDE:-}" ]; then
	user=()
	[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
	unshare "${user[@]}" --net --mount true 2>/dev/null || {
		echo "skipped: namespaces are not permitted"
		exit 77
	}
	ALL_TO_ALL_INSIDE=1 exec unshare "${user[@]}" --net --mount "$0" "$@"
fi

PATH=$PATH:/usr/sbin:/sbin
ip link set lo up
directories=(/dev/shm /var/tmp)
case $PWD in /tmp/*) ;; *) directories+=(/tmp) ;; esac
for directory in "${directories[@]}"; do mount -t tmpfs none "$directory"; done

for port in host udp; do
	"$1" "$2" "$3" "$4" "$5" "$port"
	if { find "${directories[@]}" -mindepth 1; grep rmem /proc/net/unix || true; } | grep .; then
		echo "left by $port"
		exit 1
	fi
done
