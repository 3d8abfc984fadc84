#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Each gcc from 12 on and each clang from 14 on of other suites of Debian (trixie and sid by default) compiles the
# tree without a warning, in the roots of check-platforms.sh.

. "$(dirname -- "$0")/common.sh"
. devtools/apt.sh
. devtools/root.sh

# check SUITE
check() {
	local suite=$1 dir=build-$1 compiler rc=0
	local -a compilers
	own_root "$dir"
	make_root "$dir" "$suite"
	copy_tree "$dir/root"
	in_root "$dir" apt-get -q update
	in_root "$dir" devtools/install-deps.sh
	mapfile -t compilers < <(in_root "$dir" apt-cache pkgnames |
		grep -xE 'gcc-(1[2-9]|[2-9][0-9])|clang-(1[4-9]|[2-9][0-9])' | sort -V)
	[ ${#compilers[@]} != 0 ] || die "$suite: no compiler"
	for compiler in "${compilers[@]}"; do
		in_root "$dir" apt-get -q install --yes --no-install-recommends "$compiler"
		# shellcheck disable=SC2016  # for the shell in the root
		in_root "$dir" sh -euc '
			rm -rf build-compiler
			CC=$1 meson setup build-compiler -Dwerror=true >/dev/null
			ninja --quiet -k 0 -C build-compiler
			rm -rf build-compiler' - "$compiler" || rc=1
		say "$suite: $(in_root "$dir" "$compiler" --version | head -n 1): $([ $rc = 0 ] && echo ok || echo FAILED)"
		[ $rc = 0 ] || failed+=" $suite:$compiler"
		rc=0
	done
}

failed=
need_roots
[ $# != 0 ] || set -- trixie sid
for suite; do check "$suite"; done
[ -z "$failed" ] || die "FAILED:$failed"
