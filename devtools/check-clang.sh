#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang, release, warnings as errors, static libraries: the tests of the data path, where the code that
# the optimizer generates matters, and of the drop-in, which sanitizers exclude. Nothing else is left
# out: check-gcc.sh runs every fast test in a release of gcc, and check-asan.sh most in a build of clang.

. "$(dirname -- "$0")/common.sh"
need clang meson ninja

CC=$(compiler clang) setup_build build-clang -Dwerror=true -Dbuildtype=release \
	-Ddefault_library=static -Dapps=false
mapfile -t tests < <(meson test -C build-clang --no-rebuild --list --suite fast-tests |
	sed 's,.*[:/] *,,' | grep -E '^(engine_)?(chaos|conformance|differential|dropin_)')
[ ${#tests[@]} -ge 10 ] || die "tests of the data path: ${#tests[@]}"
meson test -C build-clang --print-errorlogs "${tests[@]}"
