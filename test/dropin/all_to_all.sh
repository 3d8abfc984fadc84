#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# all_to_all.sh RMEM_RUN PROGRAM PROCESSES ROUNDS SECONDS: all_to_all.c by shared memory and by UDP, in
# namespaces of its own. No file and no name of a socket is left; exits with 77 if they are not permitted.

set -euo pipefail
. "$(dirname -- "$0")/clean_ns.sh"

for port in host udp; do
	"$1" "$2" "$3" "$4" "$5" "$port"
	if left; then
		echo "left by $port"
		exit 1
	fi
done
