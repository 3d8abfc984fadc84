# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of programs ask of the files out and err; to be sourced.

# said FILE REGEX...: whether each is found in the file.
said() {
	local file=$1 regex
	shift
	for regex; do grep -Eq -- "$regex" "$file" || return 1; done
}

# is_quiet: nothing on stderr, but that an ordinary user may not pin so much.
is_quiet() {
	! grep -qv "can't be pinned: RLIMIT_MEMLOCK" err
}
