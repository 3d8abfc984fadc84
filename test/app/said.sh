# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions of the tests of programs. Sourced, never run. The output of a program is in out and err.

# enter_scratch: change to a new directory, which is removed at the end. EAL has its runtime files there
# too, since their default directory may belong to another user.
enter_scratch() {
	scratch=$(mktemp -d) || exit 1
	trap 'rm -rf -- "$scratch"' EXIT
	export XDG_RUNTIME_DIR=$scratch
	mkfifo -- "$scratch/never" || exit 1
	mkdir -- "$scratch/files" && cd -- "$scratch/files" || exit 1
}

# until_seen PID COMMAND...: wait until the command succeeds or the process has ended.
until_seen() {
	local pid=$1
	shift
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || { "$@"; return; }
		read -rt 0.02 <>"$scratch/never" || true # a sleep without a process
	done
}

# verdict NAME RC: count and print a case; if it failed, print the output of the program.
verdict() {
	if [ "$2" = 0 ]; then
		printf 'ok: %s\n' "$1"
		passed=$((passed + 1))
	else
		printf '%s\n' "FAILED, status ${rc:-none}: $1
$(sed 's/^/    /' out err listen.out listen.err server.err 2>/dev/null)"
		failed=$((failed + 1))
	fi
}

# in_parallel FUNCTION...: run them concurrently, each in a directory of its own, since programs mostly
# start and wait; print how many cases passed and failed. Fails if a case failed, or a function had
# none.
in_parallel() {
	local name
	for name; do
		(
			passed=0 failed=0
			mkdir "$name" && cd "$name" && "$name"
			echo "$passed $failed" >"$scratch/$name"
		) &
	done
	wait
	for name; do cat "$scratch/$name" || echo 0 1; done |
		awk '{ passed += $1; failed += $2 + ($1 + $2 == 0) }
			END { print passed + 0 " passed, " failed + 0 " failed"; exit failed != 0 }'
}

# `said FILE REGEX...`: whether each is found in the file. Starts no process: it is called in loops.
said() {
	local file=$1 regex line lines
	shift
	{ mapfile -t lines <"$file"; } 2>/dev/null || return 1
	for regex; do
		for line in "${lines[@]}"; do
			[[ $line =~ $regex ]] && continue 2
		done
		return 1
	done
}

# is_quiet: stderr is empty, except for the limit of pinned memory of an ordinary user, and for refused
# rkeys: the programs test revoked ones.
is_quiet() {
	! grep -Eqv "not pinned: [0-9]+ bytes \(RLIMIT_MEMLOCK|rkey of the peer is not valid: 0x" err
}
