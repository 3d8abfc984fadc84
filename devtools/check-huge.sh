#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run the tests that require hugepages, if hugepages are reserved.

. "$(dirname -- "$0")/common.sh"
need meson

[ -x build/test/dpdk-test-rmem ] || die "nothing built, run devtools/check-gcc.sh first"

wanted_mb=128
free_mb=0
for size in /sys/kernel/mm/hugepages/hugepages-*kB; do
	[ -r "$size/free_hugepages" ] || continue
	kb=${size##*hugepages-}
	free_mb=$((free_mb + $(<"$size/free_hugepages") * ${kb%kB} / 1024))
done
[ $free_mb -ge $wanted_mb ] || skip "$free_mb MiB of hugepages are free, it takes $wanted_mb"

run_suite build huge-tests --logbase huge
