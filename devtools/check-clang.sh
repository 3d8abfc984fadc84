#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang, release, warnings as errors, static libraries; the fast tests. Those with shared libraries
# are run by check-gcc.sh; the objects of both kinds are the same, as static ones are PIC.

. "$(dirname -- "$0")/common.sh"
need clang meson ninja

CC=$(compiler clang) setup_build build-clang -Dwerror=true -Dbuildtype=release \
	-Ddefault_library=static
ninja --quiet -k 0 -C build-clang
run_suite build-clang fast-tests
