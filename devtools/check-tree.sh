#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The gates that need no build: layout, rules of the tree, calls between files, spelling, shell
# scripts, mutants, commit messages. Seconds.

. "$(dirname -- "$0")/common.sh"
need git python3 codespell

failed=0

# step NAME COMMAND...: runs it, continues after a failure; exit status 77 is a skip.
step() {
	local name=$1 rc=0
	shift
	"$@" || rc=$?
	if [ "$rc" != 0 ] && [ "$rc" != 77 ]; then
		say "$name FAILED"
		failed=$((failed + 1))
	fi
}

check_spelling() {
	tree_files '*' | grep -zv '^LICENSE$' |
		xargs -0 codespell --quiet-level=3 --ignore-words-list="$words"
}

check_shell() {
	if ! command -v shellcheck >/dev/null; then
		say "shell scripts not checked: shellcheck is not installed"
		return 77
	fi
	tree_files '*' | xargs -0 grep -lZE -m1 '^#!.*\bbash$|^# shellcheck shell=' |
		xargs -0 shellcheck --external-sources --source-path=SCRIPTDIR
}

# Words codespell takes for mistakes and that are none here.
words=fo,fro,mis,nd

step format devtools/check-format.sh
step rules devtools/check-style.py
step circles devtools/check-circles.py
step externs devtools/check-externs.py
step spelling check_spelling
step shell check_shell
step commits devtools/check-commits.sh
step mutants devtools/mutate.py --check
[ "$failed" = 0 ] || die "$failed of 8 steps failed"
