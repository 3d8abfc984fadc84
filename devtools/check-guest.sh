#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite and the programs on real rdma_rxe devices, in emulated guests with
# the kernel of Debian 12. Skipped if no kernel can be downloaded.
#
# usage: check-guest.sh [SUITE]; check-guest-new.sh names another suite

. "$(dirname -- "$0")/common.sh"
need meson qemu-system-x86_64 busybox rdma

[ -x build/test/dpdk-test-rmem ] || die "nothing built, run devtools/check-gcc.sh first"

suite=${1:-guest-tests}
run_suite build "$suite" --logbase "$suite" --verbose
log=build/meson-logs/$suite.txt
if ! grep -qE '^(Ok|Fail|Timeout): +[1-9]' "$log"; then
	skip "$(sed -n 's/^.*skipped: //p' "$log" | head -n 1)"
fi
