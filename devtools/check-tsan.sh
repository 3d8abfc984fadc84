#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# gcc with ThreadSanitizer; the tests of suite tsan, in which lcores race.

. "$(dirname -- "$0")/common.sh"
need gcc meson ninja pkg-config

# Two warnings are off: about fences, which ThreadSanitizer does not support and DPDK's headers use;
# and about values, which are false positives in this build alone.
guesses='-g1 -Wno-tsan -Wno-format-truncation -Wno-maybe-uninitialized'
CC=$(compiler gcc) setup_build build-tsan -Dwerror=true -Dbuildtype=debug -Doptimization=1 \
	-Db_sanitize=thread -Dc_args="$guesses"
ninja --quiet -k 0 -C build-tsan test/dpdk-test-rmem \
	test/conformance/dpdk-test-rmem-conformance lib/rmem_cache/librmem_cache_hooks.so \
	test/plain/dpdk-test-rmem-plain test/plain/dpdk-test-rmem-plain-conformance

read -r -a dpdk <<<"$(pkg-config --cflags libdpdk)"
mkdir -p build-tsan-dpdk
gcc -shared -fPIC -O1 -g -Wall -Wextra -Werror -Wno-tsan -fsanitize=thread \
	-o build-tsan-dpdk/tsan_dpdk.so devtools/tsan_dpdk.c "${dpdk[@]}"

# It needs a fixed part of the address space, which conflicts with strong randomization.
preload=$root/build-tsan-dpdk/tsan_dpdk.so:$root/build-tsan/lib/rmem_cache/librmem_cache_hooks.so
wrapper=(env "LD_PRELOAD=$preload")
if setarch "$(uname -m)" -R true 2>/dev/null; then
	wrapper=(setarch "$(uname -m)" -R "${wrapper[@]}")
fi
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
run_suite build-tsan tsan --timeout-multiplier 4 --wrapper "${wrapper[*]}"
