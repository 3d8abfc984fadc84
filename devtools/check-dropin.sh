#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Verbs programs, unmodified, on soft0 by usertools/rmem-run: program | result | time. And each
# function of the installed libibverbs that takes an object is one of librmem_ibv.so.

. "$(dirname -- "$0")/common.sh"
need nm

library=build/dropin/librmem_ibv.so
core=build/dropin/librmem_ibv_core.so
[ -e "$library" ] || die "nothing built, run devtools/check-gcc.sh first"

# Functions that take no object of a device of rmem: texts, files of sysfs, the parts for drivers,
# and objects that the device does not have.
passed='ibv_ack_async_event ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern
ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern ibv_destroy_ah ibv_destroy_comp_channel
ibv_destroy_srq ibv_dofork_range ibv_dontfork_range ibv_event_type_str ibv_fork_init
ibv_get_cq_event ibv_get_device_name ibv_get_sysfs_path ibv_is_fork_initialized
ibv_modify_srq ibv_node_type_str ibv_port_state_str ibv_query_srq ibv_rate_to_mbps
ibv_rate_to_mult ibv_read_ibdev_sysfs_file ibv_read_sysfs_file ibv_register_driver
ibv_unimport_dm ibv_wc_status_str'

# functions LIBRARY: the public functions it defines.
functions() {
	nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' |
		grep -E '^_?ibv_' | grep -v '^ibv_cmd_' | sort -u
}

real=$(ldd "$core" | awk '$1 ~ /^libibverbs/ { print $3 }')
missing=$(functions "$real" |
	grep -vxF -f <(functions "$library") -f <(tr ' ' '\n' <<<"$passed") | tr '\n' ' ' || true)
[ -z "$missing" ] || die "not in $library, though $real exports it: $missing"
differ=$(comm -3 <(functions "$library") <(functions "$core") | tr '\n' ' ')
[ -z "$differ" ] || die "in one of $library and $core only: $differ"

failed=0
# try NAME COMMAND...: a row.
try() {
	local name=$1 begin=${EPOCHREALTIME/./} rc=0
	shift
	timeout 50 "$@" >"$tmp/log" 2>&1 || rc=$?
	if [ $rc = 0 ]; then rc=ok; else rc="FAILED, status $rc" failed=1; fi
	printf '%-24s | %-6s | %5d ms\n' "$name" "$rc" $(((${EPOCHREALTIME/./} - begin) / 1000))
	[ "$rc" = ok ] || tail -n 20 "$tmp/log"
}

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-dropin.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
run=usertools/rmem-run
try test-verbs "$run" build/test/dropin/test-verbs
try test-handles "$run" build/test/dropin/test-handles
if command -v ibv_devinfo >/dev/null; then
	try ibv_devices "$run" --list
	try 'ibv_devinfo -v' "$run" ibv_devinfo -v -d soft0
else
	say "ibverbs-utils is not installed: ibv_devices, ibv_devinfo not run"
fi
try 'true (no verbs)' "$run" true
try test-preload build/test/dropin/test-preload "$root/$library"
DESTDIR=$tmp/root meson install -C build --no-rebuild --quiet >/dev/null
try 'test-verbs, installed' "$(find "$tmp/root" -name rmem-run)" build/test/dropin/test-verbs

# pyverbs' own tests, of the package: exactly those of the list pass, no other fails.
suite=/usr/share/doc/rdma-core/tests
if /usr/bin/python3 -c 'import pyverbs' 2>/dev/null && [ -d $suite ]; then
	begin=${EPOCHREALTIME/./}
	cp -r $suite "$tmp/tests"
	gunzip -qf "$tmp"/tests/*.gz || true
	run=$root/$run
	(cd "$tmp" && timeout 50 "$run" /usr/bin/python3 tests/run_tests.py --dev soft0 --gid 0 -v) \
		>"$tmp/log" 2>&1 || true
	result=$(test/dropin/pyverbs.py "$tmp/log" test/dropin/pyverbs.txt) || failed=1
	printf '%-24s | %-6s | %5d ms\n' pyverbs "$result" \
		$(((${EPOCHREALTIME/./} - begin) / 1000))
else
	say "python3-pyverbs is not installed: its tests not run"
fi
[ $failed = 0 ]
