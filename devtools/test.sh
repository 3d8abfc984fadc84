#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what is missing, runs the gates, continues after a failure, and closes with a table, the
# output of what failed, the set of gates that ran, and one line of counts (each gate is one, each test
# a gate ran is one).

. "$(dirname -- "$0")/common.sh"

# Gates, each a script under devtools/. A line is a lane: lanes run at the same time, the gates of
# one lane in their order. Tests of the first lane use the same addresses, so they run one gate at a
# time; user, huge, dropin and the guests run what gcc built. The second lane waits for emulated
# processors and for packages; the last one computes in the time that is left, the gates that use all
# CPUs at its end. Gates with a + repeat suites of others as another user or on another kernel or
# machine, search for what no rule names, or make packages: they are not in the default set, but in the
# set `all`, which CI runs.
lanes=(
	'headers gcc +user huge dropin tsan clang asan'
	'guest +guest-new +package +recipes'
	'tree model doc abi install +versions +arm64 lint +lint-tests +fuzz'
)

case ${1-} in
'') gate_set='default set' ;;
all)
	gate_set='set all'
	export RMEM_FUZZ_SECONDS=${RMEM_FUZZ_SECONDS:-60} RMEM_DROPIN_ALL=1
	;;
-*)
	printf 'usage: %s [all | gate...]\n' "${0##*/}"
	printf 'gates, by default those without +, which check each rule once; CI runs all:\n'
	printf '%s\n' "${lanes[@]}"
	exit 2
	;;
*)
	gate_set="gates $*"
	for gate; do
		[ -x "devtools/check-$gate.sh" ] || die "no gate $gate; --help lists them"
	done
	;;
esac

# is_wanted GATE: of the lanes.
is_wanted() {
	case $gate_set in
	'default set') [[ $1 != +* ]] ;;
	'set all') ;;
	*) [[ $wanted == *" ${1#+} "* ]] ;;
	esac
}

wanted=" $* "
for lane in "${!lanes[@]}"; do
	line=
	for gate in ${lanes[lane]}; do
		if is_wanted "$gate"; then line+="${gate#+} "; fi
	done
	lanes[lane]=$line
done
if [[ $gate_set == gates* ]]; then
	for gate; do # those of no lane
		[[ " ${lanes[*]}" == *" $gate "* ]] || lanes[2]+="$gate "
	done
fi

# The same tree gives the same result; release.sh draws seeds.
export RMEM_SEED=${RMEM_SEED:-1}

logs=build-logs
mkdir -p "$logs" || die "can't write in $root"
failed_gates=() passed=0 failed=0 skipped=0 cpu=0 table=
started=$SECONDS
declare -A gate_of=() lane_of=() # of the processes that run gates

# Each gate is a process group; on SIGTERM meson ends its tests, and test/guest/run.sh its guest.
end_gates() {
	local pid pids
	trap '' HUP INT TERM
	mapfile -t pids < <(jobs -p)
	for pid in "${pids[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
	wait || true
	for pid in "${pids[@]}"; do
		kill -KILL -- "-$pid" 2>/dev/null || true # what was just being started
	done
	say 'ended by a signal'
	exit "$1"
}
trap 'end_gates 129' HUP
trap 'end_gates 130' INT
trap 'end_gates 143' TERM

# count_tests LOG: adds up the counts of each run of meson test in the log.
count_tests() {
	local ok bad skip
	read -r ok bad skip < <(awk '
		/^Run again: [0-9]+ / { bad -= $3 }
		/^(Ok|Expected Fail): +[0-9]+ *$/ { ok += $NF }
		/^(Fail|Unexpected Pass|Timeout): +[0-9]+ *$/ { bad += $NF }
		/^Skipped: +[0-9]+ *$/ { skip += $NF }
		END { print ok + 0, bad + 0, skip + 0 }' "$1")
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	tests=$((ok + bad + skip))
}

# run_gate NAME COMMAND...: leaves the output, the seconds and the status in the logs.
run_gate() {
	local name=$1 rc=0 TIMEFORMAT='%0R %0U %0S'
	rm -f "$logs/$name.status"
	shift
	{ time "$@" </dev/null >"$logs/$name.log" 2>&1; } 2>"$logs/$name.times" || rc=$?
	echo "$(<"$logs/$name.times") $rc" >"$logs/$name.status"
}

# report_gate NAME: prints a line, and counts.
report_gate() {
	local name=$1 log=$logs/$1.log seconds user system rc tests line
	[ -f "$logs/$name.status" ] || echo '0 0 0 1' >"$logs/$name.status" # it was killed
	read -r seconds user system rc <"$logs/$name.status"
	count_tests "$log"
	cpu=$((cpu + user + system))
	printf -v line '%-12s %4d s %5d CPU s  %9s  ' "$name" "$seconds" $((user + system)) \
		"$([ "$tests" = 0 ] || echo "$tests tests")"
	case $rc in
	0)
		passed=$((passed + 1)) line+=ok
		line+=$(sed -n 's/^Row again: /, unstable: /p; s/^Run again: [0-9]* (\(.*\))$/, unstable: \1/p' "$log" | tr -d '\n')
		;;
	77) skipped=$((skipped + 1)) line+=$(sed -n '$s/^[^:]*: //p' "$log") ;;
	*) failed=$((failed + 1)) failed_gates+=("$name") line+="FAILED, status $rc" ;;
	esac
	printf '%s\n' "$line"
	table+=$line$'\n'
	[ "$rc" = 0 ] || [ "$rc" = 77 ] || {
		echo "$log ends with:"
		tail -n "${RMEM_TAIL:-40}" "$log" | sed 's/^/    /'
	}
}

# start_gate LANE: its next gate, unless the lane is busy or has to wait for gcc.
start_gate() {
	local lane=$1 gate
	gate=${lanes[lane]%% *}
	[[ -n $gate && " ${lane_of[*]} " != *" $lane "* ]] || return 0
	[[ $gate != guest* || " ${lanes[0]} ${gate_of[*]} " != *' gcc '* ]] || return 0
	lanes[lane]=${lanes[lane]#"$gate"}
	lanes[lane]=${lanes[lane]# }
	(
		trap : HUP INT TERM # until the gate has ended
		[ "$lane" != 2 ] || renice -n 19 -p "$BASHPID" >/dev/null
		run_gate "$gate" "devtools/check-$gate.sh"
	) &
	gate_of[$!]=$gate lane_of[$!]=$lane
}

say "$gate_set; what the gates print is in $logs/"
run_gate install-deps devtools/install-deps.sh all
report_gate install-deps
set -m
while true; do
	for lane in "${!lanes[@]}"; do
		start_gate "$lane"
	done
	[ ${#gate_of[@]} != 0 ] || break
	wait -n -p ended "${!gate_of[@]}" || true
	gate=${gate_of[$ended]}
	unset "gate_of[$ended]" "lane_of[$ended]"
	report_gate "$gate"
done

seconds=$((SECONDS - started))
printf '\n%s' "$table"
[ "$failed" = 0 ] || devtools/failures.py "$logs" "${failed_gates[@]}" || true
say "$gate_set: $((seconds / 60)) min $((seconds % 60)) s; $((cpu / 60)) min $((cpu % 60)) s of CPU time"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
