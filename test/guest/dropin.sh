#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): verbs programs with rmem-run, on a host that also has the device rxe0 of
# the kernel. Prints a line for each part, and PASS or FAIL at the end.
# usage: dropin.sh BUILD

build=$1
tree=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)
run=$tree/usertools/rmem-run
class=/sys/class/infiniband
failed=0

try() {
	local name=$1 out
	shift
	out=$("$@" 2>&1) && echo "ok: $name" && return
	echo "FAILED: $name"
	echo "$out"
	failed=1
}

# both COMMAND...: its output has both devices.
# shellcheck disable=SC2317  # try calls it
both() {
	local out
	out=$("$@")
	echo "$out"
	grep -q rxe0 <<<"$out" && grep -q soft0 <<<"$out"
}

# same FILE: for the device of the kernel, the file of sysfs is read.
# shellcheck disable=SC2317  # try calls it
same() { [ "$("$run" cat "$class/rxe0/$1")" = "$(cat "$class/rxe0/$1")" ]; }

try ibv_devices both "$run" ibv_devices
for device in rxe0 soft0; do
	try "ibv_devinfo -v -d $device" "$run" ibv_devinfo -v -d $device
	try "ibv_rc_pingpong -d $device" "$tree/test/dropin/pair.sh" "$run" "$run" \
		ibv_rc_pingpong -d $device -g 0 -n 20
done
for device in rxe0 soft0; do
	try "dlopen, $device" "$run" "$build/test/dropin/test-dlopen" $device
done
try 'rxe0, files' same node_guid
for directory in $class ${class}_verbs /dev/infiniband; do
	try "$directory" test "$("$run" ls "$directory" | grep -cxE 'rxe0|soft0|uverbs0|uverbs256')" = 2
done
try 'both devices in one program' "$run" "$build/test/dropin/test-devices" soft0 rxe0
try 'the other one first' "$run" "$build/test/dropin/test-devices" rxe0 soft0

[ $failed = 0 ] && echo PASS || echo FAIL
exit $failed
