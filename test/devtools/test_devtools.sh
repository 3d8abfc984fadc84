#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Scripts of devtools/ and usertools/, in a copy of the tree, with fakes of meson, ninja and hugepages.
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

# fake NAME: write a program to bin/, from stdin.
fake() {
	{ echo '#!/bin/sh' && cat; } >"bin/$1"
	chmod +x "bin/$1"
}

# A copy of the scripts, in which hugepages are files of the test.
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
	# EAL, for which free hugepages are not accessible.
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

# options COMMAND: print the options that meson got.
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
	# (Root has a separate directory.)
	read -r -a command < <(grep 'dpdk-testrmem .* -i$' out)
	XDG_RUNTIME_DIR=/proc "$program" "${command[@]:1}" >out 2>err </dev/null
	verdict 'quickstart.sh: the last command works without a runtime directory' $?
}

# gate NAME: write a gate to tree/, from stdin.
gate() {
	{ printf '#!/usr/bin/env bash\n' && cat; } >"tree/devtools/check-$1.sh"
	chmod +x "tree/devtools/check-$1.sh"
}

# Fake gates, some of which wait for one of another lane; clang fails.
make_gates() {
	local name
	rm -rf tree
	make_tree
	nb_gates=0 long_gates=
	for name in $(tree/devtools/test.sh --help | tail -n +3); do
		nb_gates=$((nb_gates + 1))
		[[ $name != +* ]] || long_gates+="${name#+} "
		gate "${name#+}" <<<"echo ${name#+} >>ran"
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
	tree/devtools/test.sh all >out 2>err
	[ $? = 1 ] && [ "$(sort -u tree/ran | wc -l)" = $nb_gates ] && [ "$(wc -l <tree/ran)" = $nb_gates ] &&
		precedes gcc guest && precedes gcc user && precedes lint headers &&
		said out '^clang .* 3 tests  FAILED, status 3$' '^    Fail: 2$' '^gcc .* 3 tests  ok$' \
			'^huge .*  no hugepages$' "^$((nb_gates - 2 + 5)) passed, 3 failed, 1 skipped\$" '^test.sh: set all: ' &&
		[ "$(grep -c '^clang ' out)" = 2 ] && [ -s tree/build-logs/clang.log ]
	verdict 'test.sh all: every gate once, in lanes' $?
	[ "$(sed '1,/^gate clang/d' out | head -n 3 | xargs)" = \
		'a.c:1: y gate clang, test late: TIMEOUT, status -15 after 3.5 s: stuck' ] &&
		! said out 'PASS x' && ! said out 'no news'
	verdict 'test.sh: the output of failed tests after the table' $?
	sort tree/ran | grep -vxF -f <(tr ' ' '\n' <<<"${long_gates% }") >default
	rm tree/ran
	tree/devtools/test.sh >out 2>err
	[ $? = 1 ] && [ "$(wc -w <<<"$long_gates")" -ge 2 ] && sort tree/ran | cmp - default &&
		said out '^test.sh: default set: '
	verdict 'test.sh: by default all but the long gates' $?
	rm tree/ran
	tree/devtools/test.sh arm64 doc >out 2>err && [ "$(sort tree/ran | xargs)" = 'arm64 doc' ] &&
		said out '^test.sh: gates arm64 doc: '
	verdict 'test.sh: a long gate by name' $?
	rm tree/ran
	tree/devtools/test.sh doc gcc >out 2>err && [ "$(sort tree/ran | xargs)" = 'doc gcc' ]
	verdict 'test.sh: gates by name' $?
	gate own <<<'echo own >>ran'
	rm tree/ran
	tree/devtools/test.sh own doc own >out 2>err && [ "$(sort tree/ran | xargs)" = 'doc own' ]
	verdict 'test.sh: a gate of no lane, once' $?
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

# A suite with a test that fails the first time, and with one that always fails.
test_again() {
	rm -rf tree
	make_tree
	mkdir tree/suite
	cat >tree/suite/meson.build <<-'EOF'
		project('suite')
		test('good', find_program('true'), suite: 'once')
		test('rare', find_program('sh'), args: ['-c', 'test -e ../../ran || ! touch ../../ran'], suite: 'once')
		test('bad', find_program('false'), suite: 'bad')
		test('report', find_program('sh'), suite: 'report', args:
			['-c', 'test -e ../../ran || { touch ../../ran; echo "==1==ERROR: LeakSanitizer: x" >&2; exit 1; }'])
	EOF
	(cd tree && meson setup build suite) >out 2>&1 || verdict 'a project of meson' 1
	gate gcc <<<". devtools/common.sh; run_suite build once"
	gate clang <<<". devtools/common.sh; run_suite build bad --logbase other"
	gate asan <<<". devtools/common.sh; run_suite build report"
	RMEM_AGAIN=0 tree/devtools/test.sh gcc >out 2>err
	[ $? = 1 ] && said out '^gcc .* 2 tests  FAILED' '^2 passed, 2 failed'
	verdict 'test.sh: a test that fails once fails' $?
	rm ran
	RMEM_AGAIN=1 tree/devtools/test.sh gcc >out 2>err &&
		said out '^gcc .* 2 tests  ok, unstable: rare$' '^4 passed, 0 failed, 0 skipped$'
	verdict 'test.sh: or is run again and named, if that is allowed' $?
	RMEM_AGAIN=1 tree/devtools/test.sh clang >out 2>err
	[ $? = 1 ] && said out '^clang .* 1 tests  FAILED' '^1 passed, 2 failed, 0 skipped$'
	verdict 'test.sh: a test that fails twice fails' $?
	gate dropin <<<'echo "Row again: a (b)"; echo "Row again: c"'
	tree/devtools/test.sh dropin >out 2>err && said out '^dropin .* ok, unstable: a .b., unstable: c$'
	verdict 'test.sh: rows of programs that were run again' $?
	rm ran
	RMEM_AGAIN=1 tree/devtools/test.sh asan >out 2>err
	[ $? = 1 ] && said out '^asan .* FAILED'
	verdict 'test.sh: what a sanitizer reports is not run again' $?
}

# Values of nine rounds: 10 % slower in all of them, noise about the same value, 1 % slower, and a
# bandwidth that is half; of these only the first differs again.
test_bench() {
	(cd tree/devtools && python3 -B - <<-'EOF') >out 2>err
		import bench, bench_doc
		before = {name: {"value": [100.0] * 9} for name in ("slower", "noise", "little", "half")}
		after = {"slower": {"value": [110.0 + i for i in range(9)]},
		         "noise": {"value": [80.0, 125.0] * 4 + [100.0]},
		         "little": {"value": [101.0] * 9},
		         "half": {"value": [50.0] * 9, "unit": "GB/s"}}
		found = bench.differences(before, after)
		print([(name, ratio, round(p, 4)) for name, (ratio, p) in found.items()])
		print(list(bench.confirmed(found, {"slower": (1.1, 0.01), "half": (0.5, 0.01)})))
		row = {"unit": "ns", "bar": "ratio <= 2.5", "value": [5.0, 9.0, 6.0],
		       "baseline": [2.0, 2.0, 2.0], "ratio": [2.5, 4.5, 3.0], "name": "x"}
		for bar in ("ratio <= 2.5", "ratio <= 3", "value >= 7", "none"):
		    print(bench_doc.verdict(bench.summary(dict(row, bar=bar)), bar))
	EOF
	[ "$(xargs -d '\n' <out)" = "[('slower', 1.14, 0.0039), ('half', 2.0, 0.0039)] ['slower'] met at best met **missed** " ]
	verdict 'bench.sh: noise is no difference; verdicts' $?
	# A failure of one row keeps the others; at least one round runs.
	(cd tree/devtools && python3 -B - <<-'EOF') >out 2>err
		import bench
		def fails(_build, _arg):
		    raise bench.Failure("no such program")
		def row(_build, arg):
		    return [{"name": arg, "unit": "ns", "value": 1.0}]
		work = [("bad", fails, None), ("good", row, "good")]
		print(bench.measure(work, ["build"], 3, 0)[1:], bench.measure(work, ["a", "b"], 2)[0][1])
	EOF
	[ "$(<out)" = "(1, 1) {'good': {'name': 'good', 'unit': 'ns', 'value': [1.0, 1.0], 'job': 'good', 'baseline': [], 'ratio': []}}" ] &&
		said err 'bad: no such program'
	verdict 'bench.sh: a row that fails' $?
	# Each row is measured by the program that meson names, of each build.
	(cd tree/devtools && python3 -B - <<-'EOF') >out 2>err
		import bench, json
		tests = [{"name": name, "suite": ["rmem:perf-tests"], "cmd": ["perf.sh", f"test/{program}", name]}
		         for name, program in (("a", "one"), ("b", "two"), ("guest_c", "three"))]
		def run(command, env=None):
		    if command[0] == "meson":
		        return json.dumps(tests)
		    print(*command[1:])
		    return ""
		bench.run = run
		bench.build_programs("old")
		bench.rmem_row("old", "a")
		bench.rmem_row("new", "b")
	EOF
	[ "$(xargs <out)" = '-C old test/one test/two old/test/one a new/test/two b' ]
	verdict 'bench.sh: the program of a row' $?
	# The pages are those of the results in doc/bench.
	mkdir -p tree/doc/bench
	cp "$source/README.md" tree
	cp "$source/doc/performance.md" "$source/doc/scale.md" tree/doc
	cp "$source"/doc/bench/*.json tree/doc/bench
	fake gnuplot <<<'sed -n "s/^set output \"\(.*\)\"/\1/p" | xargs touch'
	(cd tree && PATH=$PWD/../bin:$PATH PYTHONPATH=devtools python3 -B - <<-'EOF') >out 2>err
		import glob, json, bench_doc
		for path in glob.glob("doc/bench/*.json"):
		    with open(path, encoding="ascii") as lines:
		        result = json.load(lines)
		    if not result.get("by_hand"):
		        bench_doc.write(result)
	EOF
	[ ! -s err ] && cmp "$source/doc/performance.md" tree/doc/performance.md >out 2>&1 &&
		cmp "$source/doc/scale.md" tree/doc/scale.md >out 2>&1 &&
		[ "$(grep -c 'bench/.*svg' tree/README.md)" = 1 ] &&
		for file in "$source"/doc/bench/*; do
			[ -e "tree/doc/bench/${file##*/}" ] || echo "${file##*/} is of no result" >>err
		done && [ ! -s err ]
	verdict 'bench.sh: the pages are those of the results' $?
	! tree/devtools/bench.sh --rounds -1 >out 2>err && said err 'rounds -1: at least 1' &&
		! tree/devtools/bench.sh --rounds 2 --against x --write >out 2>err &&
		said err 'not allowed with argument' &&
		! tree/devtools/bench.sh --rounds 5 --against x >out 2>err &&
		said err 'rounds 5: at least 6'
	verdict 'bench.sh: wrong arguments' $?
}

# Rules of check-style.py on files that break them.
test_style() {
	rm -rf tree
	make_tree
	(cd tree/devtools && PYTHONPATH=$PWD python3 -B - <<-'EOF') >out 2>err
		import importlib.util
		spec = importlib.util.spec_from_file_location("style", "check-style.py")
		style = importlib.util.module_from_spec(spec)
		spec.loader.exec_module(style)
		class Tree:
		    def __init__(self, texts):
		        self.texts, self.paths = texts, sorted(texts)
		    def text(self, path):
		        return self.texts[path]
		    named = style.Tree.named
		pages = Tree({"doc/long.md": "x\n" * 401, "doc/short.md": "x\n" * 400, "CHANGELOG.md": "x\n" * 500})
		print([path for path, _, _ in style.page_is_short(pages)])
		head = "/* SPDX */\n\n/*\n * Inside: a.\n * Callers: b.\n * Not known here: c.\n */\n"
		rooms = style.rooms
		rooms.FOLDERS, rooms.HEADS = (("env", ""), ("ibcm", ""), ("dropin", "")), {"env": "e.h", "ibcm": "i.h"}
		files = Tree({"env/e.h": head, "ibcm/i.h": head.replace("Callers", "Users"), "app/a.c": "int a;\n"})
		print([path for path, _, _ in rooms.folder_has_head(files)])
	EOF
	grep -qx "\['doc/long.md'\]" out
	verdict 'check-style.py: a page of more than 400 lines' $?
	grep -qx "\['app/a.c', 'devtools/rooms.py', 'ibcm/i.h'\]" out
	verdict 'check-style.py: folders that no header describes' $?
}

# check-externs.py on files with one finding of each rule.
test_externs() {
	rm -rf tree && make_tree
	mkdir tree/app
	printf '#include "tiny.h"\nint\nmain(void)\n{\n\treturn half() + low_sum() + top_max();\n}\n' >tree/app/top.c
	printf '#ifndef TINY_H\n#define TINY_H\n#endif\n' >tree/app/tiny.h
	printf 'int\nhalf(void)\n{\n\treturn 1;\n}\n' >tree/app/half.c
	cat >tree/app/low.c <<-'EOF'
		int
		low_sum(void)
		{
			return low_unused();
		}
		int
		low_unused(void)
		{
			return 2;
		}
		int
		top_max(void)
		{
			return 3;
		}
		__attribute__((cold)) static int
		low_static(void)
		{
			return 4;
		}
	EOF
	printf 'int\nother(void)\n{\n\treturn low_sum();\n}\n' >tree/app/other.c
	printf 'int\nuse(void)\n{\n\treturn other();\n}\n' >tree/app/more.c
	(cd tree/devtools && PYTHONPATH=$PWD python3 -B - <<-'EOF') >out 2>err
		import importlib.util
		spec = importlib.util.spec_from_file_location("externs", "check-externs.py")
		externs = importlib.util.module_from_spec(spec)
		spec.loader.exec_module(externs)
		externs.JUSTIFIED = (("unused", "app/more.c", "use", ""), ("split", "app/other.c", "*", ""),
		                     ("tiny", "gone", "*", ""))
		externs.main()
	EOF
	said out '^app/low.c: unused: .* low_unused\(\)' && said out '^app/low.c: strayed: top_max\(\) .*app/top.c' &&
		said out '^app/half.c: split: serves only app/top.c' && said out '^app/tiny.h: tiny: .*app/top.c' &&
		said out 'JUSTIFIED names nothing: tiny gone' && [ "$(wc -l <out)" = 6 ]
	verdict 'check-externs.py: each of its rules, and an excuse of nothing' $?
}

# released OPTION...: run release.sh with a clean tree of version 1.2.3.
released() {
	PATH=$PWD/bin:$PATH tree/devtools/release.sh --no-gates --seeds 0 --chaos 0 --mutants 0 "$@" >out 2>err
}

test_release() {
	rm -rf tree
	make_tree
	# shellcheck disable=SC2016  # for the program
	fake git <<<'case "$1" in rev-parse) echo 0123456789ab ;; esac'
	mkdir -p tree/lib/rmem tree/debian tree/build-fuzz/corpus tree/build/test/sim
	echo '#!/bin/sh' >tree/build/test/sim/dpdk-sim
	chmod +x tree/build/test/sim/dpdk-sim
	echo " version: '1.2.3'," >tree/meson.build
	echo '#define RMEM_VERSION RMEM_VERSION_NUM(1, 2, 3)' >tree/lib/rmem/rmem_version.h
	echo 'rmem (1.2.3) unstable' >tree/debian/changelog
	echo '## 1.2.3' >tree/CHANGELOG.md
	gate fuzz <<<'echo "check-fuzz.sh: skipped: no clang"; exit 77'
	released --fuzz 1
	[ $? = 1 ] && said out 'fuzz-of-1-s \| SKIPPED: check-fuzz.sh: skipped: no clang' 'versions \| [0-9]+ s, ' &&
		said err '1 steps have not passed'
	verdict 'release.sh: a step that is skipped has not passed' $?
	gate fuzz <<<'exit 0'
	released --fuzz 1 && said out 'fuzz-of-1-s \| [0-9]+ s, .* 1 s of fuzzing' && ! said out '^release.sh: versions$'
	verdict 'release.sh: resumed at the step that was skipped' $?
}

# make_roots: fakes, by which the tree makes roots of Debian without root.
make_roots() {
	rm -rf tree
	make_tree
	fake id <<<'echo 0'
	fake apt-config </dev/null
	fake apt-get <<<"echo \"'http://deb.invalid/dists/\$(. /etc/os-release && echo \$VERSION_CODENAME)/InRelease'\""
	fake debootstrap <<<"echo \$\$ >$PWD/started; exec sleep 1000"
	fake mount </dev/null
	fake umount </dev/null
	fake pivot_root </dev/null
	# As the real one: signals of the terminal do not end it, or the first process of its namespace.
	fake unshare <<-'EOF'
		trap '' INT TERM
		while :; do
			case $1 in
			-*) shift ;;
			*) exec "$@" ;;
			esac
		done
	EOF
}

test_roots() {
	local pid fd
	make_roots
	fake mount <<<'case "$*" in *sysfs*) echo "mount: sysfs: not permitted" >&2; exit 32 ;; esac'
	PATH=$PWD/bin:$PATH tree/devtools/check-platforms.sh >out 2>err
	[ $? = 77 ] && said out 'skipped: no root can be entered: mount: sysfs: not permitted$'
	verdict 'check-platforms.sh: skipped where a root cannot be entered' $?
	[ "$(id -u)" = 0 ] || return 0 # need_roots also runs the real unshare
	fake mount </dev/null
	mkdir tree/build-trixie
	exec {fd}<tree/build-trixie
	flock "$fd"
	PATH=$PWD/bin:$PATH tree/devtools/check-platforms.sh {fd}<&- >out 2>err
	[ $? = 1 ] && said err 'build-trixie/: another process uses it$' && [ ! -f started ]
	verdict 'check-platforms.sh: refused while another one runs' $?
	exec {fd}<&-
	set -m
	PATH=$PWD/bin:$PATH tree/devtools/check-platforms.sh >out 2>err &
	pid=$!
	set +m
	until_seen $pid test -s started
	kill -INT -- -$pid
	wait $pid
	# shellcheck disable=SC2016  # for eval
	[ $? = 130 ] && until_seen $$ eval '! kill -0 "$(<started)" 2>/dev/null'
	verdict 'check-platforms.sh: Ctrl-C ends it and what runs in a root' $?
}

test_quickstart
test_gates
test_again
test_bench
test_style
test_externs
test_release
test_roots

[ "$failed" = 0 ]
