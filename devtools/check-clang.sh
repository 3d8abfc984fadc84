#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang, release, warnings as errors: with shared libraries and with static ones; the fast tests.

. "$(dirname -- "$0")/common.sh"
need clang meson ninja

for kind in shared static; do
	CC=$(compiler clang) setup_build "build-clang-$kind" -Dwerror=true -Dbuildtype=release \
		-Ddefault_library="$kind"
	ninja --quiet -k 0 -C "build-clang-$kind"
	run_suite "build-clang-$kind" fast-tests
done
