#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang-tidy (configured by .clang-tidy) and cppcheck on every C file that is built, but for those of
# the tests, which check-lint-tests.sh has.
#
# usage: check-lint.sh [tests]

. "$(dirname -- "$0")/common.sh"
need clang clang-tidy cppcheck meson python3

# The build is only configured, for the compile commands of clang. clang-tidy checks a file once for
# each command, so one command is kept for files of several programs.
CC=clang setup_build build-lint
mkdir -p build-lint/tidy
mapfile -t files < <(python3 - build-lint "${1-}" <<'EOF'
import json
import sys

build, part = sys.argv[1:]
with open(build + '/compile_commands.json', encoding='utf-8') as file:
    commands = {entry['file']: entry for entry in json.load(file)}
with open(build + '/tidy/compile_commands.json', 'w', encoding='utf-8') as file:
    json.dump(list(commands.values()), file)
for name in sorted(commands):
    if name.startswith('../') and name.endswith('.c') and name.startswith('../test/') == (part == 'tests'):
        print(name[3:])
EOF
)
[ ${#files[@]} != 0 ] || die "no C files in build-lint/compile_commands.json"

# Tests count on what they have just checked, return early when it fails, and their numbers
# are small; what they really leak or read wrongly is found by check-asan.sh.
lax=-bugprone-implicit-widening-of-multiplication-result
lax+=,-clang-analyzer-core.DivideZero
lax+=,-clang-analyzer-core.NonNullParamChecker
lax+=,-clang-analyzer-core.NullDereference
lax+=,-clang-analyzer-core.uninitialized.Assign
lax+=,-clang-analyzer-unix.Malloc

# tidy CHECKS ANALYZER FILE...: CHECKS are added to or taken from those of .clang-tidy.
tidy() {
	local checks=$1 analyzer=$2
	shift 2
	printf '%s\0' "$@" |
		xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p build-lint/tidy --checks="$checks" \
			--extra-arg=-Xclang --extra-arg=-analyzer-config \
			--extra-arg=-Xclang --extra-arg="$analyzer" \
			2> >(grep -v 'warnings\? generated\.$' >&2)
}

failed=0
say "clang-tidy over ${#files[@]} files"
# max-nodes limits the steps of the analyzer in a function; with its default of 225000, functions of that
# many paths take most of the time. In the tests that
# check-asan.sh runs it follows calls of small functions only; that takes a third of the steps.
if [ "${1-}" = tests ]; then
	mapfile -t programs < <(printf '%s\n' "${files[@]}" | grep '^test/dropin/')
	mapfile -t tests < <(printf '%s\n' "${files[@]}" | grep -v '^test/dropin/')
	tidy "$lax" max-nodes=75000 "${programs[@]}" || failed=1
	tidy "$lax" mode=shallow "${tests[@]}" || failed=1
else
	tidy "" max-nodes=75000 "${files[@]}" || failed=1
fi

# It does not read __typeof__, with which the drop-in calls the functions of libibverbs. readdir(3) is
# safe for one stream in one thread, and readdir_r(3) is deprecated.
mapfile -t includes < <(tree_files '*.h' | xargs -0 dirname | sort -u | sed 's/^/-I/')
cpp_check() {
	cppcheck --quiet --error-exitcode=1 --std=c11 --language=c -j "$(nproc)" -DRMEM_DEBUG \
		--enable=warning,performance,portability --inline-suppr \
		--library=posix --library=gnu --library=devtools/cppcheck.cfg \
		--suppress=missingInclude --suppress=missingIncludeSystem '--suppress=memleak:test/*' \
		'--suppress=leakReturnValNotUsed:test/*' \
		'--suppress=CastIntegerToAddressAtReturn:dropin/*' --suppress=readdirCalled \
		"${includes[@]}" "$@"
}

# conditional FILE.c: it, or its header, has code for some configurations only. RMEM_DEBUG adds checks
# alone, so it is always defined.
conditional() {
	cat "$1" "${1%.c}.h" 2>/dev/null | grep -E '^# *(el)?if' |
		grep -qvE '__cplusplus|_GNU_SOURCE|RMEM_DEBUG|_H$'
}

# Each file once, as on this machine; those with conditions in all configurations.
all_ways=() one_way=()
for file in "${files[@]}"; do
	if conditional "$file"; then all_ways+=("$file"); else one_way+=("$file"); fi
done
say "cppcheck over ${#files[@]} files, ${#all_ways[@]} of them in all configurations"
cpp_check -D__x86_64__ -D__linux__ "${one_way[@]}" || failed=1
[ ${#all_ways[@]} = 0 ] || cpp_check --force "${all_ways[@]}" || failed=1
exit $failed
