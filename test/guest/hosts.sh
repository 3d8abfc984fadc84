#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in both guests (run.sh --hosts 2): the tests of rdma_cm in BUILD; then dpdk-testrmem, where the
# first host listens and the second connects; at the end the link of the second one is set down. Prints a
# line for each case, and PASS or FAIL at the end.
# usage: hosts.sh BUILD

build=$1
failed=0
out=$(mktemp)

verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	echo "FAILED: $1"
	failed=1
}

# testrmem [options]: exec it; for a subshell.
testrmem() {
	exec "$build/app/dpdk-testrmem" --no-huge -m 32 --no-shconf --no-pci --no-telemetry -l 0 \
		-- --dev verbs0,ibdev=rxe0 --size "$size" --depth 16 --burst 8 --qps 2 "$@"
}

# The other host may not listen yet.
connect() {
	tries=0 rc=1
	while [ $rc = 1 ] && [ $tries != 20 ]; do
		(testrmem --connect "$RMEM_PEER" "$@")
		rc=$?
		tries=$((tries + 1))
	done
	return $rc
}

DPDK_TEST=guest_cm_autotest RMEM_TEST_ARGS=ibdev=rxe0 "$build/test/verbs/dpdk-test-verbs" \
	--no-huge -m 32 --no-shconf --no-pci --no-telemetry '--log-level=*rmem*:emergency'
verdict 'rdma_cm' $?

for mode in write read send mw atomic; do
	size=4K
	[ $mode = atomic ] && size=8
	if [ "$RMEM_HOST" = 1 ]; then
		(testrmem --mode $mode --listen "$RMEM_ADDR")
	else
		connect --mode $mode --ops 400 --seconds 1000 --stats-period 0
	fi
	verdict "testrmem --mode $mode" $?
done

size=4K
if [ "$RMEM_HOST" = 1 ]; then
	(testrmem --mode write --listen "$RMEM_ADDR")
	rc=$?
else
	connect --mode write --seconds 60 --stats-period 0.2 >"$out" 2>&1 &
	pid=$!
	until grep -q Mops "$out" || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	ip link set eth0 down
	wait $pid
	rc=$?
	cat "$out"
fi
[ $rc = 2 ]
verdict "a link is disconnected, status $rc" $?

[ $failed = 0 ] && echo PASS || echo FAIL
exit $failed
