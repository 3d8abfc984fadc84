#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# dpdk-testrmem as a bench: latency, histogram, both directions, warm-up, scripts, sweeps.
#
# usage: test_testrmem_bench.sh PATH_TO_DPDK_TESTRMEM [FUNCTION...]
#
# Needs no hugepages, no root, and one CPU. Prints a line for each case; exit status 0 or 1.

set -u
. "$(dirname -- "$0")/testrmem.sh"

# The fields of --latency: all bursts are measured, in order of rank.
check_latency='
import csv, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
ranks = ["latency_min_us", "latency_p50_us", "latency_p99_us", "latency_p999_us", "latency_max_us"]
for row in rows:
    assert row["version"].count(".") == 2 and row["dev"] == "soft0,ip=127.0.16.31,pcap=\"x", row
    assert row["latency_bursts"] * 8 == row["ops"] > 0, row
    assert 0 < row[ranks[0]] and sorted(ranks, key=row.get) == ranks, row
    assert row[ranks[-1]] < row["seconds"] * 1e6, row
assert sum(row["latency_bursts"] for row in rows[:-1]) == rows[-1]["latency_bursts"], rows
table = list(csv.DictReader(open(sys.argv[2])))
assert [list(row.values()) for row in table] == [[str(row[key]) if type(row[key]) is not float
    else "%.6f" % row[key] for key in row] for row in rows], table
'

test_latency() {
	local mode
	for mode in write send lease; do
		rm -f lat.json lat.csv
		run three --dev 'soft0,ip=127.0.16.31,pcap="x' --mode "$mode" --latency --burst 8 --ops 4000 --json lat.json --csv lat.csv
		[ "$rc" = 0 ] && is_quiet && said out '^latency of a burst, us: min .* \(1000 bursts\)$' &&
			python3 -c "$check_latency" lat.json lat.csv 2>>err
		verdict "latency of mode $mode" $?
	done
	refused 'latency is not measured in mode mbuf' --mode mbuf --latency
	refused 'latency is not measured in mode copy' --mode copy --input a --output b --latency
	refused 'depth 4 is not burst 1' --latency --depth 4
	refused 'measured by the host of --connect' --latency --listen 127.0.0.1
	run one --latency --ops 1000
	[ "$rc" = 0 ] && said out 'burst 1, depth 1,' '\(1000 bursts\)$'
	verdict 'latency of single requests' $?
}

# The histogram has all bursts, and its rows rise to 100 %.
check_histogram='
import sys
lines = open(sys.argv[1]).read().split("up to us", 1)[1].splitlines()[1:]
rows = [line.split() for line in lines[:next(i for i, line in enumerate(lines) if ":" in line)]]
edges = [float(row[0]) for row in rows]
assert edges == sorted(set(edges)), rows
assert sum(int(row[1]) for row in rows) == 1000 and rows[0][1] != "0" != rows[-1][1], rows
sums = [float(row[3]) for row in rows]
assert sums == sorted(sums) and sums[-1] == 100, rows
'

test_histogram() {
	local mode
	for mode in write send lease; do
		run three --mode $mode --latency --histogram --ops 500
		[ "$rc" = 0 ] && is_quiet && python3 -c "$check_histogram" out 2>>err
		verdict "histogram of mode $mode" $?
	done
	refused 'histogram needs latency' --histogram
}

check_directions='
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert all(row["directions"] == 2 and row["dev"] == "soft0 soft1" for row in rows), rows
assert [row["ops"] for row in rows] == [1001, 1001, 2002], rows
'

test_bidirectional() {
	local mode
	for mode in write read send atomic odp inline; do
		run three --mode $mode --bidirectional --qps 2 --ops 1001 --dev soft0 --dev soft1 --json $mode.json
		[ "$rc" = 0 ] && is_quiet && said out ', both directions' '^verified: yes' &&
			python3 -c "$check_directions" $mode.json 2>>err
		verdict "mode $mode in both directions" $?
	done
	run one --mode send --bidirectional --burst 1 --depth 1 --ops 7 --dev soft0,max_qp=2
	[ "$rc" = 0 ] && said out '^total +7 ' '^verified: yes'
	verdict 'two directions of one pair take two QPs' $?
	run one --mode send --bidirectional --ops 2 --json sends.json --latency
	[ "$rc" = 0 ] && said out '\(2 bursts\)$'
	verdict 'both directions are measured' $?
	refused "needs 4 CQs \\(max_cq\\), device 'soft0,max_cq=3' has 3" --bidirectional --dev soft0,max_cq=3
	refused 'mode lease is not bidirectional' --mode lease --bidirectional
	refused 'mode mbuf is not bidirectional' --mode mbuf --bidirectional
	refused 'two hosts do not run bidirectionally' --bidirectional --listen 127.0.0.1
}

check_warm_up='
import json, sys
row = json.loads(open(sys.argv[1]).readlines()[-1])
assert row["warm_up_s"] == 0.5 and row["ops"] > 0, row
# The program ran for the warm-up too, and to start.
assert row["seconds"] + 0.5 <= float(sys.argv[3]) - float(sys.argv[2]), (row, sys.argv)
# A burst that the end of the warm-up interrupts may count for one and not for the other.
assert abs(row["latency_bursts"] - row["ops"]) <= 2, row
'

test_warm_up() {
	local before=$EPOCHREALTIME
	run one --latency --seconds 0.2 --warm-up 0.5 --json warm.json
	[ "$rc" = 0 ] && is_quiet && said out '^verified: yes' && ! said out 'within the warm-up' &&
		python3 -c "$check_warm_up" warm.json "$before" "$EPOCHREALTIME" 2>>err
	verdict 'warm-up is not counted' $?
	prompt one 'set warm-up 1000\nset seconds 1\nstart\nstop\nquit\n'
	[ "$rc" = 0 ] && said out '^within the warm-up of 1000.000 s$' '^verified: yes'
	verdict 'a run that ends during its warm-up is reported' $?
	refused 'warm-up needs a run limited by seconds, not by ops' --warm-up 1 --ops 1
	refused 'not by the end of a copy' --warm-up 1 --mode copy --input a --output b
	refused 'an option of the host of --connect' --warm-up 1 --listen 127.0.0.1
	refused "bad value 'auto' for warm-up" --warm-up auto
}

test_script() {
	printf '%s\n' '# A script' '' 'set mode send   # comment' 'set ops 1K' start wait \
		'set mode lease' start >bench
	run one --script bench --json script.json
	[ "$rc" = 0 ] && is_quiet && [ "$(grep -c '^verified: yes' out)" = 2 ] &&
		[ "$(grep -c '"lcore":"total","ops":1024,' script.json)" = 2 ] && said out '^mode lease on'
	verdict 'a script of two runs' $?
	printf 'set ops 1\nstart' >bench
	run one --script bench
	[ "$rc" = 0 ] && said out '^verified: yes'
	verdict 'a script without a newline at its end' $?
	local line
	for line in "begin|unknown command 'begin'" "set size 0|bad value '0' for size" \
		"set colour 1|unknown parameter 'colour'" 'set size|set needs a parameter and a value' \
		'set json x|json can be given on the command line only'; do
		printf 'start\n\n%s\n' "${line%|*}" >bench
		run one --script bench
		[ "$rc" = 1 ] && said err "^testrmem: ${line#*|}" "^testrmem: script 'bench' refused: line 3$" &&
			[ ! -s out ]
		verdict "nothing of a script with '${line%|*}' is executed" $?
	done
	refused "cannot read 'absent': No such file" --script absent
	refused "cannot read '/': Is a directory" --script /
	refused "cannot read '/dev/zero': not a regular file" --script /dev/zero
	mkfifo fifo
	refused "cannot read 'fifo': not a regular file" --script fifo
	refused 'a sweep cannot be combined with the prompt' --script bench --sweep size=1..2
	refused 'two hosts run without a prompt' --script bench --listen 127.0.0.1
}

test_sweep() {
	local pid
	rm -f sweep.csv
	run one --mode read --ops 1000 --sweep size=10..100 --csv sweep.csv
	[ "$rc" = 0 ] && is_quiet && [ "$(grep -c '^verified: yes' out)" = 4 ] &&
		[ "$(sed '1,/^ *size  /d' out | awk '{ print $1 }' | xargs)" = '10 20 40 80' ] &&
		[ "$(cut -d, -f 5,12,13 sweep.csv | xargs)" = "size_bytes,lcore,ops $(for size in 10 20 40 80; do
			echo "$size,0,1000 $size,total,1000"; done | xargs)" ]
	verdict 'a sweep of sizes' $?
	run one --ops 100 --latency --sweep burst=1..2
	[ "$rc" = 0 ] && [ "$(sed '1,/^ *burst .* p99 us$/d' out | awk '{ print $1, NF }' | xargs)" = '1 5 2 5' ]
	verdict 'a sweep of bursts, with latency' $?
	run one --ops 1000 --depth 64 --sweep burst=32..128
	[ "$rc" = 1 ] && said err 'depth 64 is less than burst 128' &&
		[ "$(sed '1,/^ *burst  /d' out | awk '{ print $1 }' | xargs)" = '32 64' ]
	verdict 'a sweep that ends early' $?
	: >out
	"$program" "${one[@]}" -- --seconds 0 --stats-period 0.1 --sweep size=32..64 >out 2>err </dev/null &
	pid=$!
	until_seen $pid said out 'Mops/s'
	kill -INT $pid
	wait $pid
	rc=$?
	[ "$rc" = 0 ] && [ "$(sed '1,/^ *size  /d' out | awk '{ print $1 }' | xargs)" = 32 ]
	verdict 'a sweep that is interrupted has the value of its last run' $?
	refused "bad value 'size=8' for sweep: want NAME=FROM..TO" --sweep size=8
	refused "bad value 'ops=1..2' for sweep: want NAME=FROM..TO" --sweep ops=1..2
	refused "bad value 'size=auto..2' for sweep: want NAME" --sweep size=auto..2
	refused "bad value 'size=9..8' for sweep: 9 is more than 8" --sweep size=9..8
	refused "bad value '4K' for burst: .* 1 to 1024" --sweep burst=8..4K
	refused 'a sweep cannot be combined with the prompt' --sweep size=1..2 -i
	refused 'two hosts run once' --sweep size=1..2 --listen 127.0.0.1
}

[ $# != 0 ] || set -- test_latency test_histogram test_bidirectional test_warm_up test_script test_sweep
in_parallel "$@"
