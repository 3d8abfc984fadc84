#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Everything CI runs: installs what is missing, runs every gate, continues after a failure, and
# closes with one line of counts (each gate is one, each test a gate ran is one).

. "$(dirname -- "$0")/common.sh"

# Gates in the order they run, each a script under devtools/. What needs no build is first, and
# user, huge and guest run what gcc built. Those of one line run at the same time: guest and
# fuzz leave a CPU idle for some of the time, and the others do not depend on time.
gates='
tree
model headers
gcc
user
huge
asan
clang
tsan
guest lint
fuzz doc abi install
'

if [ $# != 0 ]; then
	case $1 in
	-*)
		printf 'usage: %s [gate...]\ngates, all of them by default:%s' "${0##*/}" "$gates"
		exit 2
		;;
	esac
	for gate; do
		[ -x "devtools/check-$gate.sh" ] || die "no gate $gate; --help lists them"
	done
	gates=$(printf '%s\n' "$@")
fi

logs=build-logs
mkdir -p "$logs" || die "can't write in $root"
passed=0 failed=0 skipped=0
started=$SECONDS

# count_tests LOG: adds up the counts of each run of meson test in the log.
count_tests() {
	local ok bad skip
	read -r ok bad skip < <(awk '
		/^(Ok|Expected Fail): +[0-9]+ *$/ { ok += $NF }
		/^(Fail|Unexpected Pass|Timeout): +[0-9]+ *$/ { bad += $NF }
		/^Skipped: +[0-9]+ *$/ { skip += $NF }
		END { print ok + 0, bad + 0, skip + 0 }' "$1")
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	tests=$((ok + bad + skip))
}

# run_gate NAME COMMAND...: leaves the output, the seconds and the status in the logs.
run_gate() {
	local name=$1 begin=$SECONDS rc=0
	rm -f "$logs/$name.status"
	shift
	"$@" </dev/null >"$logs/$name.log" 2>&1 || rc=$?
	echo "$((SECONDS - begin)) $rc" >"$logs/$name.status"
}

# report_gate NAME: prints a line, and counts.
report_gate() {
	local name=$1 log=$logs/$1.log seconds rc tests
	read -r seconds rc <"$logs/$name.status" || die "$name did not end"
	count_tests "$log"
	printf '%-12s %4d s  ' "$name" "$seconds"
	[ "$tests" = 0 ] || printf '%3d tests  ' "$tests"
	case $rc in
	0) passed=$((passed + 1)) && echo ok ;;
	77) skipped=$((skipped + 1)) && sed -n '$s/^[^:]*: //p' "$log" ;;
	*)
		failed=$((failed + 1))
		echo "FAILED, status $rc; $log ends with:"
		tail -n "${RMEM_TAIL:-40}" "$log" | sed 's/^/    /'
		;;
	esac
}

say "everything CI runs; what it prints is in $logs/"
run_gate install-deps devtools/install-deps.sh all
report_gate install-deps
while read -r -a line; do
	for gate in "${line[@]}"; do
		run_gate "$gate" "devtools/check-$gate.sh" &
	done
	wait
	for gate in "${line[@]}"; do
		report_gate "$gate"
	done
done <<<"$gates"

say "$(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
