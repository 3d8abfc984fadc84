#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# dpdk-testrmem as a user runs it: every mode, invalid options, errors of files, Ctrl-C, the prompt.
#
# usage: test_testrmem.sh PATH_TO_DPDK_TESTRMEM [FUNCTION...]
#
# Needs no hugepages, no root, and one CPU. Prints a line for each case; exit status 0 or 1.

set -u
. "$(dirname -- "$0")/testrmem.sh"

# grants REQUEST MODE: the mode grants and revokes access to buffers.
grants() {
	run one --mode "$2" --ops 1000 --size 777
	[ "$rc" = 0 ] && said out '^revoked key refused: yes$' " $1 M/s +INV M/s" '^total +1000 +777000 '
	verdict "mode $2 refuses a revoked key and prints $1 and INV rates" $?
}

# mode copy has cases of its own
modes=(write read send mbuf atomic fastreg mw umr lease odp inline)

test_modes() {
	local mode lcores
	for lcores in one three; do
		for mode in "${modes[@]}"; do
			run $lcores --mode "$mode" --seconds 0.2 --stats-period 0.1 --qps 2
			[ "$rc" = 0 ] && said out '^verified: yes' '^total ' '^\[ .*M(ops|packets)/s.*GB/s' &&
				is_quiet
			verdict "mode $mode on $lcores lcore(s)" $?
		done
	done
	grants REG fastreg
	grants BIND mw
	grants UMR umr
	run one --mode lease --ops 1000 --size 777
	[ "$rc" = 0 ] && said out '^revoked lease refused: yes$' '^expired lease refused: yes$' \
		' GRANT M/s +INV M/s' '^total +1000 +777000 '
	verdict 'mode lease refuses a revoked and an expired lease' $?
	run one --mode mbuf --ops 1000 --size 777
	[ "$rc" = 0 ] && said out '^lcore +packets +bytes .* Mpackets/s +GB/s' '^total +1000 +777000 ' \
		'^chains of mbufs: 0 of 1000 packets$' '^tr_soft0: ([0-9]+) of \1 mbufs are free again$'
	verdict 'mode mbuf counts packets and frees every mbuf' $?
	run one --mode mbuf --ops 1000 --size 5000 --burst 7
	[ "$rc" = 0 ] && said out '^total +1000 +426[0-9]{4} ' '^chains of mbufs: 75[01] of 1000 packets$' \
		'^tr_soft0: ([0-9]+) of \1 mbufs are free again$'
	verdict 'mode mbuf forwards chains' $?
	run one --mode mbuf --ops 1000 --size 1 --burst 1 --depth 1
	[ "$rc" = 0 ] && said out '^total +1000 +1000 ' '^verified: yes'
	verdict 'mode mbuf forwards packets of a byte, one at a time' $?
	run one --mode mbuf --dev soft0 --dev soft1 --qps 3 --ops 1000
	[ "$rc" = 0 ] && said out '^tr_soft0: ([0-9]+) of \1 mbufs' '^tr_soft1: ([0-9]+) of \1 mbufs'
	verdict 'mode mbuf on two devices' $?
	run one --mode odp --ops 1000 --size 4096 --mrs 3
	[ "$rc" = 0 ] && said out '^page faults: [1-9][0-9]*$' '^total +1000 '
	verdict 'mode odp fetches pages' $?
	run one --mode inline --ops 1000
	[ "$rc" = 0 ] && said out '^received in the completion: 1000 of 1000 messages$'
	verdict 'mode inline receives in the completion' $?
	RMEM_SCATTER_TO_CQE=0 run one --mode inline --ops 1000
	[ "$rc" = 0 ] && said out '^received in the completion: 0 of 1000 messages$' '^verified: yes'
	verdict 'RMEM_SCATTER_TO_CQE=0 applies to mode inline' $?
}

test_shapes() {
	local mode
	for mode in "${modes[@]}"; do
		run one --mode "$mode" --burst 5 --depth 13 --ops 1001 --qps 3 --mrs 50
		[ "$rc" = 0 ] && said out '^verified: yes' '^total +1001 '
		verdict "mode $mode with odd numbers executes exactly --ops" $?
	done
	run one --mode write --dev soft0 --dev soft1,max_qp=8 --qps 2 --ops 1000
	[ "$rc" = 0 ] && said out '^mode write on soft0 soft1,max_qp=8:' '^verified: yes'
	verdict 'two devices' $?
	run one --mode write --size 1M --ops 100
	[ "$rc" = 0 ] && said out 'size 1048576, burst 32, depth 32' '^verified: yes'
	verdict 'large buffers lower the automatic depth' $?
}

check_json='
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert [row["lcore"] for row in rows] == [1, 2, "total"], rows
for row in rows:
    assert (row["mode"], row["size_bytes"], row["burst"], row["qps"], row["mrs"]) == \
        ("fastreg", 128, 16, 2, 1), row
    assert row["errors"] == 0 and row["seconds"] > 0, row
    assert row["bytes"] == 128 * row["ops"], row
    for name, count, unit in ("mops_per_s", "ops", 1e6), ("gbytes_per_s", "bytes", 1e9):
        assert abs(row[name] - row[count] / row["seconds"] / unit) <= 0.01 * row[name], row
assert rows[2]["ops"] == rows[0]["ops"] + rows[1]["ops"] == 20000, rows
'

# Requests execute on a service lcore.
test_engine() {
	# shellcheck disable=SC2034  # used by run()
	local -a service=("${eal[@]}" --lcores "(0-1)@($cpus)" -S 1)
	local mode shape
	for mode in "${modes[@]}"; do
		for shape in '--qps 2' '--burst 8 --depth 8' '--burst 1 --depth 1'; do
			# shellcheck disable=SC2086  # several words
			run service --dev soft0,engine=1 --mode "$mode" $shape --ops 8000 --seconds 0.5
			[ "$rc" = 0 ] && said out '^verified: yes' && is_quiet
			verdict "mode $mode on a service lcore, $shape" $?
		done
	done
}

# The main lcore, worker lcores and service lcores in one program.
test_service_and_workers() {
	# shellcheck disable=SC2034  # used by run()
	local -a last=("${eal[@]}" --lcores "(0-2)@($cpus)" -S 2)
	# shellcheck disable=SC2034
	local -a middle=("${eal[@]}" --lcores "(0-4)@($cpus)" -S "1,3")
	local mode
	for mode in write send lease; do
		run last --dev soft0,engine=1 --mode "$mode" --ops 2000
		[ "$rc" = 0 ] && is_quiet && said out '^1 +2000 ' '^total +2000 ' '^verified: yes'
		verdict "mode $mode with a worker and a service lcore" $?
	done
	run middle --dev soft0,engine=2 --mode write --ops 2000
	[ "$rc" = 0 ] && is_quiet && said out '^2 +2000 ' '^4 +2000 ' '^total +4000 ' '^verified: yes'
	verdict 'mode write with service lcores between the workers' $?
	run last --mode write --ops 2000
	[ "$rc" = 0 ] && is_quiet && said out '^1 +2000 ' '^total +2000 '
	verdict 'mode write with an idle service lcore' $?
}

test_json() {
	run three --mode fastreg --size 128 --burst 16 --qps 2 --ops 10000 --json rates.json
	[ "$rc" = 0 ] && python3 -c "$check_json" rates.json 2>>err
	verdict 'JSON is correct' $?
	run one --ops 1 --json missing/rates.json
	wants 'JSON in a missing directory' 1 "'missing/rates.json': No such file"
	run one --ops 1 --json /dev/full
	wants 'JSON on a full disk' 2 "'/dev/full': No space left"
}

test_options() {
	refused "unknown option '--sise'" --sise 64
	refused "unknown option '-x'" -x
	refused "unknown argument 'write'" write
	refused 'option --size needs a value' --size
	refused "bad value '0' for size: .* 1 to 1G" --size 0
	refused "bad value '2G' for size: .* 1 to 1G" --size 2G
	refused "bad value '64Q' for size" --size 64Q
	refused "bad value '-1' for size" --size -1
	refused "bad value '99999999999999999999' for ops" --ops 99999999999999999999
	refused "bad value '1025' for burst: .* 1 to 1024" --burst 1025
	refused "bad value '0' for qps" --qps 0
	refused "bad value '0' for mrs" --mrs 0
	refused "bad value '1x' for seconds" --seconds 1x
	refused "bad value '18446744073709551.9' for seconds" --seconds 18446744073709551.9
	refused "bad value 'x' for stats-period" --stats-period x
	refused "bad value 'move' for mode: .*write\\|read\\|send\\|mbuf\\|atomic\\|fastreg\\|mw\\|umr\\|lease\\|odp\\|inline\\|copy" --mode move
	refused 'depth 16 is less than burst 32' --depth 16
	refused 'size 16 is more than the 8 bytes of mode atomic' --mode atomic --size 16
	refused "cannot create device 'hard0'" --dev hard0
	refused "cannot create device 'soft0,colour=1'" --dev soft0,colour=1
	refused "cannot create device 'soft0,max_mr=0'" --dev soft0,max_mr=0
	refused "cannot create device 'soft0'" --dev soft0 --dev soft0
	refused 'one of --listen and --connect, not both' --listen 192.0.2.1 --connect 192.0.2.1
	refused 'mode lease is not for two hosts' --listen 192.0.2.1 --mode lease
	refused 'with 1 target MR, not 2' --connect 192.0.2.1 --mrs 2
	refused 'with 1 device each, not 2' --connect 192.0.2.1 --dev soft0 --dev soft1
	refused 'without a prompt' --listen 192.0.2.1 -i
	refused "'192.0.2' is not an IPv4 or IPv6 address" --connect 192.0.2
	refused "'host' is not an IPv4 or IPv6 address" --listen host
	refused '(cannot connect to 203.0.113.1 port 7174:|built without librdmacm)' \
		--connect 203.0.113.1
	refused '2 devices but only 1 QP pair' --dev soft0 --dev soft1
	refused "needs 11 MRs \\(max_mr\\), device 'soft0,max_mr=10' has 10" \
		--dev soft0,max_mr=10 --mrs 10
	refused "needs 8 QPs \\(max_qp\\), device 'soft0,max_qp=6' has 6" \
		--dev soft0,max_qp=6 --qps 4
	refused "takes up to 1025 pages of 4096 bytes, device 'soft0' registers 512" \
		--mode fastreg --size 4M --burst 1
	refused "needs 129 memory windows \\(max_mw\\), device 'soft0,max_mw=128' has 128" \
		--mode mw --dev soft0,max_mw=128
	refused "needs 65 bytes of an inline receive \\(size\\), device 'soft0' has 64" \
		--mode inline --size 65
	refused 'size 1025 is more than the 1024 bytes of mode inline' --mode inline --size 1025
	refused "needs 17 SGEs of a SEND \\(size\\), device 'soft0' has 16" --mode mbuf --size 32769
	refused "needs 8 QPs \\(max_qp\\), device 'soft0,max_qp=7' has 7" \
		--mode mbuf --dev soft0,max_qp=7 --qps 2
	refused "needs 8 CQs \\(max_cq\\), device 'soft0,max_cq=7' has 7" \
		--mode mbuf --dev soft0,max_cq=7 --qps 2
	refused 'depth 16 is less than burst 32' --mode mbuf --depth 16
	refused 'no memory for the pool .*: give EAL more' --mode mbuf --depth 16K
	refused 'input .* is for mode copy' --mode mbuf --input a
	refused 'no memory for the pool .*: give EAL more' --size 64M
	refused 'input .* is for mode copy' --input a
	refused 'mode copy needs an input' --mode copy --output b
	refused 'mode copy needs an output' --mode copy --input a
	run one --help
	[ "$rc" = 0 ] && said out '^Usage: dpdk-testrmem' '--stats-period' 'fastreg +REG_MR' \
		'default auto: 64; atomic 8, inline 32, copy 64K'
	verdict '--help' $?
	run none --ops 1
	[ "$rc" = 1 ] && said err 'EAL does not start.*--no-huge.*runtime directory --no-shconf'
	verdict 'EAL does not start: options that help are printed' $?
	"$program" --help >out 2>err && said out '--no-huge' '^Usage: dpdk-testrmem' '--stats-period'
	verdict "EAL's --help has the options of the program" $?
}

# copied NAME INPUT OUTPUT [options]: both files are equal.
copied() {
	local name=$1 input=$2 output=$3
	shift 3
	run three --mode copy --input "$input" --output "$output" "$@"
	[ "$rc" = 0 ] && cmp "$input" "$output" 2>>err && said out '^sums are equal$' &&
		[ "$(grep -Eo 'SHA-256 [0-9a-f]{64}' out | uniq | wc -l)" = 1 ] &&
		said out "$(sha256sum "$input" | cut -d' ' -f1)"
	verdict "$name" $?
}

# not_copied NAME RC ERROR INPUT OUTPUT [options]: no new file remains.
not_copied() {
	local name=$1 status=$2 error=$3 input=$4 output=$5 before
	shift 5
	before=$(ls)
	run one --mode copy --input "$input" --output "$output" "$@"
	[ "$(ls)" = "$before" ] || printf 'left behind: %s\n' "$(ls)" >>err
	wants "$name" "$status" "$error"
}

test_copy() {
	head -c 3000001 /dev/urandom >input
	printf 'x' >byte
	: >empty
	copied 'copy' input output
	copied 'copy over an old file' input output
	copied 'copy in small blocks' input output --size 1000 --qps 3 --burst 7
	copied 'copy in large blocks' input output --size 2000000 --burst 1
	copied 'copy of a byte' byte output
	copied 'copy of an empty file' empty output
	said out '^input is empty$'
	verdict 'an empty input is reported' $?
	ln -s output link
	copied 'copy to a symbolic link' input link
	[ -L link ] && cmp input output 2>>err
	verdict 'a link as output remains a link' $?
}

# Of a copy that is long enough for a line; retry with twice the bytes, up to 1 GiB.
test_copy_progress() {
	local bytes line='^\[ *[0-9.]+ s\] +[0-9.]+ % of [0-9]+ bytes, [0-9]+ s left$'
	for ((bytes = 1 << 20; bytes <= 1 << 30; bytes *= 2)); do
		truncate -s $bytes long
		run one --mode copy --size 16 --stats-period 0.01 --input long --output longer
		[ "$rc" != 0 ] || said out "$line" && break
	done
	[ "$rc" = 0 ] && said out "$line" " % of $bytes bytes, " && is_quiet &&
		awk '/ % of / { n = $4 + 0 < last; last = $4 + 0 } n || last > 100 { exit 1 }' out
	verdict 'a copy prints its progress' $?
	rm -f long longer
}

test_copy_errors() {
	: >out
	: >err
	mkdir folder
	echo old >old
	ln input hard
	not_copied 'missing input' 1 "'absent': No such file" absent new
	not_copied 'input is a directory' 1 "'folder': not a regular file" folder new
	not_copied 'input that fails to read' 1 "cannot read '/proc/self/mem'" /proc/self/mem new
	not_copied 'input of unknown size' 1 "'/proc/self/status' has 1 or more bytes, not 0" \
		/proc/self/status new
	if [ "$(id -u)" != 0 ]; then
		echo secret >secret
		chmod 0 secret
		not_copied 'unreadable input' 1 "cannot read 'secret': Permission denied" secret new
		chmod 500 folder
		not_copied 'unwritable directory' 1 "'folder/new': Permission denied" input folder/new
	fi
	not_copied 'same file' 1 "output 'input' is the same file as input" input input
	not_copied 'same file by another name' 1 "output 'hard' is the same file" input hard
	not_copied 'output in a missing directory' 1 "'absent/new': No such file" input absent/new
	not_copied 'output is a directory' 1 "'folder': Is a directory" input folder
	not_copied 'full disk' 2 "'/dev/full': No space left" input /dev/full
	not_copied 'output that forgets' 2 "'/dev/null' has 0 bytes" input /dev/null
	not_copied 'copy cut short' 2 'ended at 655360 of 3000001 bytes' input old --ops 10
	[ "$(cat old)" = old ]
	verdict 'a failed copy keeps the previous output' $?
}

# copy_and COMMAND...: run the command during a copy. If the copy succeeded, the command ran too late:
# retry with twice the bytes, up to 1 GiB.
copy_and() {
	local bytes
	for ((bytes = 1 << 23; bytes <= 1 << 30; bytes *= 2)); do
		echo old >old
		rm -f victim
		truncate -s $bytes victim
		"$program" "${one[@]}" -- --mode copy --size 16 --input victim --output old \
			>out 2>err </dev/null &
		pid=$!
		until_seen "$pid" compgen -G 'old.part.*' >/dev/null
		"$@"
		wait "$pid"
		rc=$?
		[ "$rc" = 0 ] || break
	done
}

# changing NAME ERROR COMMAND...: a copy while the command changes the input.
changing() {
	local name=$1 error=$2 pid
	shift 2
	copy_and "$@"
	[ "$rc" != 0 ] && said err "^testrmem: .*$error" && [ "$(cat old)" = old ] &&
		! compgen -G 'old.part.*' >/dev/null
	verdict "$name" $?
}

test_copy_changes() {
	changing 'vanishing input' "'victim' vanished" rm victim
	changing 'shrinking input' "'victim' (shrank|has)" truncate -s 1000 victim
	changing 'growing input' "'victim' (changed|has)" truncate -s +1000000 victim
}

test_signals() {
	local signal lcores mode pid
	for signal in INT TERM; do
		for lcores in one three; do
			for mode in fastreg mbuf; do
				local -n eal_options=$lcores
				: >out
				"$program" "${eal_options[@]}" -- --mode $mode --seconds 0 \
					--stats-period 0.1 >out 2>err </dev/null &
				pid=$!
				until_seen $pid said out 'M(ops|packets)/s'
				kill -$signal $pid
				wait $pid
				rc=$?
				[ "$rc" = 0 ] && said out '^total ' '^verified: yes' && is_quiet
				verdict "SIG$signal in mode $mode on $lcores lcore(s)" $?
			done
		done
	done
	# shellcheck disable=SC2016  # for eval
	copy_and eval 'kill -TERM $pid'
	[ "$rc" = 1 ] || [ "$rc" = 2 ] && [ "$(cat old)" = old ] && said err '^testrmem: ' &&
		! compgen -G 'old.part.*' >/dev/null
	verdict 'an interrupted copy removes its output' $?
}

test_prompt() {
	local lcores ops
	for lcores in one three; do
		prompt $lcores 'set size 4K\nstart\nshow stats\nshow pool\nstop\nshow mr\nquit\n'
		[ "$rc" = 0 ] && is_quiet && [ "$(grep -c '^mode write' out)" = 2 ] &&
			said out '^tr_soft0: .* buffers of 4096 bytes' '^  target ' '^verified: yes'
		verdict "prompt: start, show, stop on $lcores lcore(s)" $?
	done
	prompt one 'set mode mbuf\nset ops 1000\nstart\nwait\nshow pool\nshow mr\nset mode write\nstart\nquit\n'
	[ "$rc" = 0 ] && is_quiet && said out '^tr_soft0: .* mbufs of 2048 bytes' '^  mbufs '
	verdict 'prompt: mode mbuf, its pool and MRs' $?
	prompt one 'set ops 10\nstart\nwait\nset mrs 16M\nstart\nclear\nshow stats\nquit\n'
	[ "$rc" = 1 ] && said err 'needs 16777217 MRs' && said out '^verified: yes' '^no run yet'
	verdict 'prompt: clear after a run that did not start' $?
	prompt one 'help\nshow config\nshow device\nshow mr\nclear\nquit\n' --burst 7
	[ "$rc" = 0 ] && is_quiet && said out '^set <parameter> <value>' '^burst +7' \
		'^device soft0' '^no run yet: use start'
	verdict 'prompt: help and show before a run' $?
	for lcores in one three; do
		ops=300000
		[ $lcores = one ] || ops=600000
		prompt $lcores 'set ops 300000\nstart\nwait\nset mode fastreg\nstart' --json rates.json
		[ "$rc" = 0 ] && is_quiet && said out '^mode write on' '^mode fastreg on' &&
			[ "$(grep -c "\"lcore\":\"total\",\"ops\":$ops," rates.json)" = 2 ]
		verdict "prompt: wait, and the end of the input, wait for a run on $lcores lcore(s)" $?
	done
	prompt one 'start\nwait\n'
	[ "$rc" = 1 ] && said err 'the run has no limit to wait for: set ops or seconds' \
		'the input ended, and the run has no limit: stopped' && said out '^verified: yes'
	verdict 'prompt: a run without a limit that nothing can end' $?
	prompt one 'wait\nset mode fa\t\nset size au\t\nsho\tco\t\n' --size 1K
	[ "$rc" = 0 ] && is_quiet && said out '^mode +fastreg' '^size +auto \(64; atomic 8, inline 32, copy 64K\)'
	verdict 'prompt: TAB completes commands, settings and their values' $?
	prompt one 'set size 0\nset colour 1\nset json x\nshow x\nstop\nquit\n'
	[ "$rc" = 0 ] && said err "bad value '0' for size" "unknown parameter 'colour'" \
		'json can be given on the command line only' "unknown thing to show 'x'" 'not running'
	verdict 'prompt: errors are reported' $?
	prompt one 'stats\nquit\n'
	[ "$rc" = 0 ] && said err "unknown command 'stats': use show stats"
	verdict 'prompt: stats refers to show stats' $?
	prompt one 'start\nset size 8\nstart\nstop\nquit\n'
	[ "$rc" = 0 ] && said err '^testrmem: running: stop first$' '^testrmem: running already$'
	verdict 'prompt: no settings change while it runs' $?
	prompt one 'set mode copy\nset input absent\nset output new\nstart\nquit\n'
	[ "$rc" = 1 ] && said err "cannot read 'absent'" && said out 'testrmem> quit'
	verdict 'prompt: a start that fails, and the exit status' $?
	prompt one ''
	[ "$rc" = 0 ] && is_quiet
	verdict 'prompt: nothing to read' $?
}

# These cases share files.
test_copies() {
	test_copy
	test_copy_progress
	test_copy_errors
	test_copy_changes
}

# Cases with an engine are a separate test of meson.
[ $# != 0 ] || set -- test_modes test_shapes test_json test_options test_copies test_signals test_prompt
in_parallel "$@"
