# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of programs share; to be sourced. A program's output is in the files out and err.

# enter_scratch: go to a new directory, removed at the end. EAL's runtime files go there too, since
# their default directory may belong to another user.
enter_scratch() {
	scratch=$(mktemp -d) || exit 1
	trap 'rm -rf -- "$scratch"' EXIT
	export XDG_RUNTIME_DIR=$scratch
	mkdir -- "$scratch/files" && cd -- "$scratch/files" || exit 1
}

# until_seen PID COMMAND...: wait until the command succeeds, or the process has ended without.
until_seen() {
	local pid=$1
	shift
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || { "$@"; return; }
		sleep 0.02
	done
}

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
