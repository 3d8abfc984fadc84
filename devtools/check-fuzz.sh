#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer on the wire of drivers/soft, its port over shared memory and its XRC domains, on the
# communication manager, on commands of rdma_cm, and on arguments, rules, telemetry, descriptors,
# commands and messages, with AddressSanitizer and UndefinedBehaviorSanitizer, each for
# RMEM_FUZZ_SECONDS (15). Results are in build-fuzz/: crash-*, and corpus*/ with the inputs that
# reached new code. To repeat a crash:
#   build-fuzz/test/wire/dpdk-test-wire-fuzz build-fuzz/crash-...

. "$(dirname -- "$0")/common.sh"
need clang meson ninja

CC=$(compiler clang) setup_build build-fuzz -Dfuzz=true -Dapps=false -Ddefault_library=static \
	-Dbuildtype=debug -Doptimization=1 -Ddebug_checks=true -Db_sanitize=address,undefined \
	-Db_lundef=false '-Dc_args=-g1 -fsanitize=fuzzer-no-link'
ninja --quiet -C build-fuzz test/wire/dpdk-test-wire-fuzz test/wire/dpdk-test-text-fuzz \
	test/wire/dpdk-test-shm-fuzz test/wire/dpdk-test-xrc-fuzz \
	test/ibcm/dpdk-test-ibcm-fuzz test/dropin/dpdk-test-cm-fuzz
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# fuzz PROGRAM CORPUS [OPTION...]
fuzz() {
	mkdir -p "build-fuzz/$2"
	"build-fuzz/test/$1" -artifact_prefix=build-fuzz/ \
		-max_len=8192 -error_exitcode=1 -use_value_profile=1 -print_final_stats=1 -verbosity=1 \
		"-max_total_time=${RMEM_FUZZ_SECONDS:-15}" "${@:3}" "build-fuzz/$2" 2>&1 | tail -n 30
}

# The devices are open until the end.
ASAN_OPTIONS=detect_leaks=0 fuzz wire/dpdk-test-wire-fuzz corpus
ASAN_OPTIONS=detect_leaks=0 fuzz wire/dpdk-test-shm-fuzz corpus-shm
ASAN_OPTIONS=detect_leaks=0 fuzz wire/dpdk-test-xrc-fuzz corpus-xrc
fuzz wire/dpdk-test-text-fuzz corpus-text
fuzz ibcm/dpdk-test-ibcm-fuzz corpus-ibcm
# Connections take many steps.
fuzz dropin/dpdk-test-cm-fuzz corpus-cm -max_len=2048 -len_control=0
