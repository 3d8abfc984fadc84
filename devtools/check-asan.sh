#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang, warnings as errors, static libraries; AddressSanitizer (leaks included),
# UndefinedBehaviorSanitizer and rmem's own debug checks; the fast tests. asan_dpdk.c makes it
# check the memory of rte_malloc() too.

. "$(dirname -- "$0")/common.sh"
need clang meson ninja pkg-config

# Debug information has lines only, which is enough for reports. Shared libraries use the functions
# of the sanitizer in the program.
CC=$(compiler clang) setup_build build-clang-asan -Dwerror=true -Dbuildtype=debug -Doptimization=1 \
	-Ddefault_library=static -Ddebug_checks=true -Db_sanitize=address,undefined -Db_lundef=false \
	-Dc_args='-g1 -fno-omit-frame-pointer'
ninja --quiet -k 0 -C build-clang-asan

# Where a leak was allocated by way of DPDK's libraries, which keep no frame pointers, our callers are
# shown with fast_unwind_on_malloc=0, which takes several times as long.
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:strict_string_checks=1
export LSAN_OPTIONS=suppressions=$root/devtools/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
UBSAN_OPTIONS+=:suppressions=$root/devtools/ubsan.supp

read -r -a dpdk <<<"$(pkg-config --cflags libdpdk)"
mkdir -p build-clang-asan-dpdk
clang -shared -fPIC -O1 -g -Wall -Wextra -Werror -o build-clang-asan-dpdk/asan_dpdk.so \
	devtools/asan_dpdk.c "${dpdk[@]}"
wrapper="env LD_PRELOAD=$root/build-clang-asan-dpdk/asan_dpdk.so"

# Processes start slowly with the sanitizers: check-gcc.sh kills at more instructions.
export RMEM_KILL_STRIDE=601 RMEM_KILLS=4

# First: with a preload that sees nothing the rest proves less.
run_suite build-clang-asan asan-tests --wrapper "$wrapper"
# Left out is what adds no code to check: two processes that lose packets, whose paths wire_sim and
# wire_conformance_*faults take; random inputs, of which check-fuzz.sh finds better ones with the
# same sanitizers; races without EAL, which run with it; tshark, for whose recordings
# wire_conformance_mtu has pcap=; counted instructions; and the scripts of devtools/.
run_suite build-clang-asan fast-tests --no-suite no-asan --timeout-multiplier 4 --wrapper "$wrapper"
