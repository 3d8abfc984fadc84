#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in both guests (run.sh --hosts 2): dpdk-testrmem of BUILD, where the first host listens and
# the second connects. A line for each mode, and at the end PASS or FAIL.
# usage: hosts.sh BUILD

build=$1
failed=0

for mode in write read send mw; do
	set -- "$build/app/dpdk-testrmem" --no-huge -m 128 --no-shconf --no-pci --no-telemetry -l 0 \
		-- --dev verbs0,ibdev=rxe0 --mode $mode --size 4K --depth 16 --burst 8 --ops 400 \
		--qps 2 --seconds 30 --stats-period 0
	if [ "$RMEM_HOST" = 1 ]; then
		"$@" --listen "$RMEM_ADDR"
		rc=$?
	else
		# The other may not listen yet.
		tries=0 rc=1
		while [ $rc = 1 ] && [ $tries != 10 ]; do
			"$@" --connect "$RMEM_PEER"
			rc=$?
			tries=$((tries + 1))
		done
	fi
	[ $rc = 0 ] && echo "ok: testrmem --mode $mode" && continue
	echo "FAILED, status $rc: testrmem --mode $mode"
	failed=1
done

[ $failed = 0 ] && echo PASS || echo FAIL
exit $failed
