#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rsocket.sh COMMAND...: a program of plain sockets, rsocket.c, as server and client over librspreload,
# on a device of rmem by the command, rmem-run; then with librspreload preloaded before the library of
# rmem-run. Each compares the data it gets back. The server listens at no port of the kernel. Exits
# with 77 if librspreload is not installed.

set -uo pipefail
run=("$@")
here=$(dirname -- "$0")
preload=$(compgen -G '/usr/lib/*/rsocket/librspreload.so' | head -n 1)
[ -n "$preload" ] || { echo "librspreload is not installed" && exit 77; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-rsocket.XXXXXX")
server=
end() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
"${CC:-cc}" -O1 -o "$tmp/rsocket" "$here/rsocket.c" || exit

# run_before: as rmem-run, which preloads its library first; here it is the second one.
# shellcheck disable=SC2016 # of the inner shell
run_before() { "${run[@]}" bash -c 'LD_PRELOAD=$0:$LD_PRELOAD exec "$@"' "$preload" "$@"; }
run_after() { LD_PRELOAD=$preload "${run[@]}" "$@"; }

export RMEM_IBV_STATS=$tmp/stats
for order in after before; do
	port=$((20000 + RANDOM % 12000))
	rm -f "$tmp/stats" "$tmp/ready"
	mkfifo "$tmp/ready"
	run_$order timeout --foreground -k 5 300 "$tmp/rsocket" $port server >"$tmp/ready" &
	server=$!
	read -r line <"$tmp/ready" # it listens
	if [ "$line" != listens ] || grep -qi ":$(printf %04x $port) [0-9a-f:]* 0a " /proc/net/tcp /proc/net/tcp6; then
		echo "$order: the server listens at a port of the kernel, or not at all" && exit 1
	fi
	run_$order timeout --foreground -k 5 300 "$tmp/rsocket" $port || exit
	wait "$server" || exit
	server=
	awk -v order=$order '
		/ rsocket,/ {
			for (i = 1; i <= NF; i++)
				if (split($i, pair, "=") == 2)
					sum[pair[1]] += pair[2]
		}
		END {
			printf "librspreload %s: %d bytes by soft0\n", order, sum["bytes"]
			exit sum["bytes"] < 2000000
		}' "$tmp/stats" || exit
done
