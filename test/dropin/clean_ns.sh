# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced first by a script, which runs in network and mount namespaces of its own from here on, with
# empty directories for shared memory and temporary files; it exits with 77 if they are not permitted.

if [ -z "${CLEAN_NS:-}" ]; then
	user=()
	[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
	unshare "${user[@]}" --net --mount true 2>/dev/null || {
		echo "skipped: namespaces are not permitted"
		exit 77
	}
	CLEAN_NS=1 exec unshare "${user[@]}" --net --mount "$0" "$@"
fi

PATH=$PATH:/usr/sbin:/sbin
ip link set lo up
directories=(/dev/shm /var/tmp)
case $PWD in /tmp/*) ;; *) directories+=(/tmp) ;; esac
for directory in "${directories[@]}"; do mount -t tmpfs none "$directory"; done

# left: print the files and names of sockets of processes that have ended; fails if there are none.
left() {
	{ find "${directories[@]}" -mindepth 1; grep rmem /proc/net/unix || true; } | grep .
}
