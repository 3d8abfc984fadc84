#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# killed.sh RMEM_RUN: kill server and client of ib_write_bw with SIGKILL at different times after their
# start. They leave no file and no name of a socket, and the next two work. In namespaces of its own;
# exits with 77 if they are not permitted.

set -uo pipefail
. "$(dirname -- "$0")/clean_ns.sh"

run=$1

for phase in 0 0.01 0.02 0.05 0.1 0.2 0.5 1; do
	"$run" ib_write_bw -D 30 >/dev/null 2>&1 &
	server=$!
	sleep $phase
	"$run" ib_write_bw -D 30 127.0.0.1 >/dev/null 2>&1 &
	client=$!
	sleep $phase
	kill -9 $server $client
	wait $server $client 2>/dev/null
	if left; then
		echo "left after $phase s"
		exit 1
	fi
done
TMPDIR=/dev/shm test/dropin/pair.sh "$run" "$run" ib_write_bw -n 20
