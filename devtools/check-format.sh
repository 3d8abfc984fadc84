#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Check the format of every C file with .clang-format. With --fix, format them.

. "$(dirname -- "$0")/common.sh"

# Other versions lay out some lines differently, so one version is the judge.
wanted=14
tool=clang-format-$wanted
if ! command -v "$tool" >/dev/null; then
	need clang-format
	tool=clang-format
	"$tool" --version | grep -q "version $wanted\." ||
		skip "clang-format $wanted is the judge, here is $("$tool" --version)"
fi

mapfile -d '' -t files < <(tree_files '*.c' '*.h')
if [ ${#files[@]} = 0 ]; then
	die "no C files found"
elif [ "${1:-}" = --fix ]; then
	"$tool" -i "${files[@]}"
elif ! "$tool" --dry-run -Werror --ferror-limit=3 "${files[@]}"; then
	die "lay the files out with: devtools/check-format.sh --fix"
else
	say "${#files[@]} files"
fi
