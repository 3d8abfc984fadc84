#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer on the wire of drivers/soft and its port over shared memory, on the communication
# manager, and on arguments, rules, telemetry, descriptors, commands and messages, with
# AddressSanitizer and UndefinedBehaviorSanitizer, each for RMEM_FUZZ_SECONDS (15). Results are in
# build-fuzz/: crash-*, and corpus/, corpus-shm/, corpus-ibcm/ and corpus-text/ with the inputs that
# reached new code. To repeat a crash:
#   build-fuzz/test/wire/dpdk-test-wire-fuzz build-fuzz/crash-...

. "$(dirname -- "$0")/common.sh"
need clang meson ninja

CC=$(compiler clang) setup_build build-fuzz -Dfuzz=true -Dapps=false -Ddefault_library=static \
	-Dbuildtype=debug -Doptimization=1 -Ddebug_checks=true -Db_sanitize=address,undefined \
	-Db_lundef=false -Dverbs=disabled '-Dc_args=-g1 -fsanitize=fuzzer-no-link'
ninja --quiet -C build-fuzz test/wire/dpdk-test-wire-fuzz test/wire/dpdk-test-text-fuzz \
	test/wire/dpdk-test-shm-fuzz \
	test/ibcm/dpdk-test-ibcm-fuzz
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# fuzz PROGRAM CORPUS
fuzz() {
	mkdir -p "build-fuzz/$2"
	"build-fuzz/test/$1" -artifact_prefix=build-fuzz/ \
		-max_len=8192 -use_value_profile=1 -print_final_stats=1 -verbosity=1 \
		"-max_total_time=${RMEM_FUZZ_SECONDS:-15}" "build-fuzz/$2" 2>&1 | tail -n 30
}

# The devices are open until the end.
ASAN_OPTIONS=detect_leaks=0 fuzz wire/dpdk-test-wire-fuzz corpus
ASAN_OPTIONS=detect_leaks=0 fuzz wire/dpdk-test-shm-fuzz corpus-shm
fuzz wire/dpdk-test-text-fuzz corpus-text
fuzz ibcm/dpdk-test-ibcm-fuzz corpus-ibcm
