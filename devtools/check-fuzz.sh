#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer on the wire of drivers/soft, with AddressSanitizer and UndefinedBehaviorSanitizer, for
# RMEM_FUZZ_SECONDS (15). Results are in build-fuzz/: crash-*, and corpus/ with the inputs that
# reached new code. To repeat a crash:
#   build-fuzz/test/wire/dpdk-test-wire-fuzz build-fuzz/crash-...

. "$(dirname -- "$0")/common.sh"
need clang meson ninja

CC=$(compiler clang) setup_build build-fuzz -Dfuzz=true -Dapps=false -Ddefault_library=static \
	-Dbuildtype=debug -Doptimization=1 -Ddebug_checks=true -Db_sanitize=address,undefined \
	-Db_lundef=false -Dverbs=disabled '-Dc_args=-g1 -fsanitize=fuzzer-no-link'
ninja --quiet -C build-fuzz test/wire/dpdk-test-wire-fuzz
mkdir -p build-fuzz/corpus
# The device is open until the end.
export ASAN_OPTIONS=detect_leaks=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
build-fuzz/test/wire/dpdk-test-wire-fuzz -artifact_prefix=build-fuzz/ \
	-max_len=8192 -use_value_profile=1 -print_final_stats=1 -verbosity=1 \
	"-max_total_time=${RMEM_FUZZ_SECONDS:-15}" build-fuzz/corpus 2>&1 | tail -n 30
