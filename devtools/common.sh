# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions shared by the scripts here. Sourced, never run; changes to the root of the tree.

set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
cd -- "$root"

say() {
	printf '%s: %s\n' "${0##*/}" "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Ends a gate that has nothing to check here. The last line printed is the reason.
skip() {
	say "skipped: $*"
	exit 77
}

need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null ||
			die "$tool is not installed, run devtools/install-deps.sh all"
	done
}

# tree_files PATTERN...: the project's own files of such names ('*' for all), NUL separated:
# tracked or about to be, never build output.
tree_files() {
	local path
	local -a names=(-false)
	if git -c safe.directory="$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git -c safe.directory="$root" ls-files -z -co --exclude-standard -- "$@"
	else
		for path; do names+=(-o -path "./$path"); done
		find . \( -name .git -o -path './build*' \) -prune -o -type f \( "${names[@]}" \) \
			-printf '%P\0'
	fi | sort -z -u | while IFS= read -r -d '' path; do
		[ ! -f "$path" ] || printf '%s\0' "$path"
	done
}

# setup_build DIR [meson options]: configures DIR, from scratch if it can't be reconfigured.
setup_build() {
	local dir=$1
	shift
	if [ -e "$dir" ] && [ ! -w "$dir" ]; then
		die "$root/$dir belongs to $(stat -c %U "$dir"): remove it or run as that user"
	fi
	if [ ! -f "$dir/meson-private/coredata.dat" ]; then
		meson setup "$dir" "$@"
	elif ! reconfigure "$dir" "$@"; then
		meson setup --wipe "$dir" "$@"
	fi
}

# compiler NAME: what builds are configured with, by way of ccache where that is installed.
compiler() {
	if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi
}

# setup_main_build: configures build, which quickstart.sh and the gates gcc, user, huge and guest
# share; with the same options for all, so that nothing is compiled twice.
setup_main_build() {
	CC=$(compiler gcc) setup_build build -Dwerror=true -Ddefault_library=both
}

# setup_install_build [meson options]: configures build-install, which the gates abi and install share.
# Not optimized: types, exports and installed files do not depend on it.
setup_install_build() {
	setup_build build-install -Dbuildtype=debug -Ddefault_library=both -Dtests=false "$@"
}

# Compiler flags change by meson configure alone.
reconfigure() {
	local dir=$1
	shift
	if [ $# != 0 ]; then
		meson configure "$dir" "$@" || return
	fi
	meson setup --reconfigure "$dir"
}

# run_suite DIR SUITE [meson test options]: a suite without tests is a failure, not a pass.
# RMEM_AGAIN=N: if at most N tests failed, and no sanitizer reported a defect, they run once more, one at a time.
run_suite() {
	local dir=$1 suite=$2 rc=0 log=testlog again i
	shift 2
	[ -n "$(meson test -C "$dir" --no-rebuild --list --suite "$suite")" ] ||
		die "no test in suite $suite"
	set -- -C "$dir" --no-rebuild --print-errorlogs --suite "$suite" "$@"
	meson test "$@" || rc=$?
	for ((i = 1; i < $#; i++)); do
		[ "${!i}" != --logbase ] || log=${*:i+1:1}
	done
	[ "$rc" != 0 ] && [ "${RMEM_AGAIN:-0}" != 0 ] || return "$rc"
	mapfile -t again < <(devtools/failures.py --names "$dir/meson-logs/$log.json")
	[[ ${#again[@]} -gt 0 && ${#again[@]} -le $RMEM_AGAIN ]] || return "$rc"
	printf 'Run again: %d (%s)\n' "${#again[@]}" "${again[*]}"
	meson test "$@" --num-processes 1 "${again[@]}"
}

# compile_guest FILE: the guest of test/dropin/migrate.py, a kernel that runs on x86_64 alone.
compile_guest() {
	[ "$(uname -m)" = x86_64 ] || return
	${CC:-cc} -m32 -O2 -ffreestanding -nostdlib -static -no-pie -fno-pic -fno-stack-protector \
		-fcf-protection=none -mgeneral-regs-only \
		-Wl,--build-id=none,-Ttext=0x101000,--section-start=.multiboot=0x100000 \
		-o "$1" test/dropin/migrate_guest.c
}
