#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Check commit messages: form, length, words, Fixes: lines.
# usage: check-commits.sh [RANGE]

. "$(dirname -- "$0")/common.sh"
need git python3

# The last commit before the rule was introduced.
base=b8ccc9675070

git() {
	command git -c safe.directory="$root" "$@"
}

git rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip "no history: not a git work tree"
range=${1:-$base..HEAD}
if [ $# = 0 ] && ! git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
	skip "the history has no commit $base"
fi
git log -z --no-merges --format="%h %B" "$range" | devtools/commits.py
