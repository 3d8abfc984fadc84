#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# gcc with AddressSanitizer (leaks included), UndefinedBehaviorSanitizer and rmem's own debug
# checks; the fast tests. asan_dpdk.c lets it see the memory of rte_malloc() too.

. "$(dirname -- "$0")/common.sh"
need gcc meson ninja pkg-config

# Under sanitizers gcc guesses wrong about values; the other builds keep these warnings. Reports need
# lines and frames, no types.
guesses='-g1 -fno-omit-frame-pointer -Wno-format-truncation -Wno-maybe-uninitialized'
CC=$(compiler gcc) setup_build build-asan -Dwerror=true -Dbuildtype=debug -Doptimization=1 \
	-Ddebug_checks=true -Db_sanitize=address,undefined -Dc_args="$guesses"
ninja --quiet -k 0 -C build-asan

# Where a leak was allocated by way of DPDK's libraries, which keep no frame pointers, our callers are
# shown with fast_unwind_on_malloc=0, which takes several times as long.
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:strict_string_checks=1
export LSAN_OPTIONS=suppressions=$root/devtools/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

read -r -a dpdk <<<"$(pkg-config --cflags libdpdk)"
mkdir -p build-asan-dpdk
gcc -shared -fPIC -O1 -g -Wall -Wextra -Werror -o build-asan-dpdk/asan_dpdk.so \
	devtools/asan_dpdk.c "${dpdk[@]}"
# The sanitizer's own library is loaded after it: it replaces nothing that the sanitizer does.
ASAN_OPTIONS+=:verify_asan_link_order=0
wrapper="env LD_PRELOAD=$root/build-asan-dpdk/asan_dpdk.so"

# First: with a preload that sees nothing the rest proves less.
run_suite build-asan asan-tests --wrapper "$wrapper"
run_suite build-asan fast-tests --timeout-multiplier 4 --wrapper "$wrapper"
