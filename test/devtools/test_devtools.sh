#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs scripts of devtools/ and usertools/ in a copy, with meson, ninja and hugepages that are fakes.
#
# usage: test_devtools.sh PATH_TO_DPDK_TESTRMEM
#
# Prints a line for each case; exit status 0 or 1.

set -u
. "$(dirname -- "$0")/../app/said.sh"

source=$(cd -- "$(dirname -- "$0")/../.." && pwd)
program=$(realpath -- "${1:?path to dpdk-testrmem}")
enter_scratch
failed=0

# verdict NAME RC
verdict() {
	if [ "$2" = 0 ]; then
		printf 'ok: %s\n' "$1"
	else
		printf 'FAILED: %s\n' "$1"
		sed 's/^/    /' out err meson.log 2>/dev/null
		failed=$((failed + 1))
	fi
}

# fake NAME: a program of that name in bin/, from stdin.
fake() {
	{ echo '#!/bin/sh' && cat; } >"bin/$1"
	chmod +x "bin/$1"
}

# A copy of the scripts, whose hugepages are files here.
make_tree() {
	mkdir -p bin tree "mm/hugepages/hugepages-2048kB"
	cp -r "$source/devtools" "$source/usertools" tree
	sed -i "s|/sys/kernel/mm|$PWD/mm|" tree/usertools/quickstart.sh
	echo 128 | tee mm/hugepages/hugepages-2048kB/{nr,free}_hugepages >/dev/null
	printf '#!/bin/sh\n' >tree/devtools/install-deps.sh
	fake meson <<-EOF
		echo "\$*" >>"$PWD/meson.log"
		case "\$*" in
		setup*) mkdir -p build/meson-private && touch build/build.ninja build/meson-private/coredata.dat ;;
		test*--list*) echo a test ;;
		esac
	EOF
	fake ninja <<-EOF
		mkdir -p build/app
		cp "$PWD/bin/testrmem" build/app/dpdk-testrmem
	EOF
	# EAL with hugepages that are free and out of reach.
	fake testrmem <<-'EOF'
		case "$*" in *--in-memory*) echo 'EAL: Cannot init memory' >&2 && exit 1 ;; esac
		while [ $# != 0 ]; do
			[ "$1" != --input ] || input=$2
			[ "$1" != --output ] || cp "$input" "$2"
			shift
		done
	EOF
	fake gcc </dev/null
}

# options COMMAND: those that meson got with it.
options() {
	sed -n "s/^$1 build //p" meson.log | tr ' ' '\n' | grep '^-D' | sort
}

test_quickstart() {
	local wanted
	make_tree
	: >meson.log
	PATH=$PWD/bin:$PATH tree/usertools/quickstart.sh 1 >out 2>err &&
		said out "EAL can't use them" 'EAL: Cannot init memory' 'going on without' \
			'^\$ build/app/dpdk-testrmem --no-huge .* --mode fastreg'
	verdict 'quickstart.sh: hugepages that are free and out of reach' $?
	wanted=$(options setup)
	PATH=$PWD/bin:$PATH tree/devtools/check-gcc.sh >out.gcc 2>&1
	[ -n "$wanted" ] && [ "$(options configure)" = "$wanted" ]
	verdict 'quickstart.sh and check-gcc.sh configure alike' $?
	# (Root has a directory of its own for it.)
	read -r -a command < <(grep 'dpdk-testrmem .* -i$' out)
	XDG_RUNTIME_DIR=/proc "$program" "${command[@]:1}" >out 2>err </dev/null
	verdict 'quickstart.sh: the last command works without a runtime directory' $?
}

test_quickstart

[ "$failed" = 0 ]
