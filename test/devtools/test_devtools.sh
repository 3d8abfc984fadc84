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

# gate NAME: a gate of that name in tree/, from stdin.
gate() {
	{ printf '#!/usr/bin/env bash\n' && cat; } >"tree/devtools/check-$1.sh"
	chmod +x "tree/devtools/check-$1.sh"
}

# Gates that are fakes, each of which waits for one of another lane; clang fails.
make_gates() {
	local name
	rm -rf tree
	make_tree
	nb_gates=0
	for name in $(tree/devtools/test.sh --help | tail -n +3); do
		nb_gates=$((nb_gates + 1))
		gate "$name" <<<"echo $name >>ran"
	done
	gate headers <<<'until grep -qx lint ran; do sleep 0.02; done; echo headers >>ran'
	gate gcc <<<'echo gcc >>ran; echo "Ok: 3"'
	gate huge <<<'echo huge >>ran; echo "check-huge.sh: no hugepages"; exit 77'
	gate clang <<'EOF'
echo clang >>ran
echo 'Ok: 1'
echo 'Fail: 2'
echo "Full log written to $PWD/log.txt"
exit 3
EOF
	cat >tree/log.json <<-'EOF'
		{"name": "a / fine", "result": "OK", "returncode": 0, "duration": 1.5, "stdout": "no news\n"}
		{"name": "a / bad", "result": "FAIL", "returncode": 1, "duration": 2.5, "stdout": "PASS x\na.c:1: y\n"}
		{"name": "a / late", "result": "TIMEOUT", "returncode": -15, "duration": 3.5, "stderr": "stuck\n"}
	EOF
}

# precedes NAME NAME: the gates ran in that order.
precedes() {
	grep -xE "$1|$2" tree/ran | tr '\n' ' ' | grep -qx "$1 $2 "
}

test_gates() {
	local pid
	make_gates
	tree/devtools/test.sh >out 2>err
	[ $? = 1 ] && [ "$(sort -u tree/ran | wc -l)" = $nb_gates ] && [ "$(wc -l <tree/ran)" = $nb_gates ] &&
		precedes gcc guest && precedes gcc user && precedes lint headers &&
		said out '^clang .* 3 tests  FAILED, status 3$' '^    Fail: 2$' '^gcc .* 3 tests  ok$' \
			'^huge .*  no hugepages$' "^$((nb_gates - 2 + 5)) passed, 3 failed, 1 skipped\$" &&
		[ "$(grep -c '^clang ' out)" = 2 ] && [ -s tree/build-logs/clang.log ]
	verdict 'test.sh: every gate once, in lanes' $?
	[ "$(sed '1,/^gate clang/d' out | head -n 3 | xargs)" = \
		'a.c:1: y gate clang, test late: TIMEOUT, status -15 after 3.5 s: stuck' ] &&
		! said out 'PASS x' && ! said out 'no news'
	verdict 'test.sh: the output of failed tests after the table' $?
	rm tree/ran
	tree/devtools/test.sh doc gcc >out 2>err && [ "$(sort tree/ran | xargs)" = 'doc gcc' ]
	verdict 'test.sh: gates by name' $?
	gate asan <<<'trap "echo asan >>ended" EXIT; trap exit TERM; echo >>asan; sleep 1000 & wait'
	gate lint <<<'trap "echo lint >>ended" EXIT; trap exit TERM; echo >>lint; sleep 1000 & wait'
	tree/devtools/test.sh asan lint >out 2>err &
	pid=$!
	until_seen $pid test -s tree/asan -a -s tree/lint
	kill -TERM $pid
	wait $pid
	[ $? = 143 ] && [ "$(sort -u tree/ended | xargs)" = 'asan lint' ] && [ ! -s err ]
	verdict 'test.sh: a signal ends the gates' $?
}

test_quickstart
test_gates

[ "$failed" = 0 ]
