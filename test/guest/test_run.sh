#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Test run.sh: test_run.sh [--quick] [KERNEL], with the KERNEL of run.sh --kernel. Takes about three
# minutes, mostly for boots; --quick boots one guest. Exit status 77 if no guest can run.

set -euo pipefail

quick=
if [ "${1:-}" = --quick ]; then
	quick=1
	shift
fi
kernel=${1:-6.1}
here=$(cd -- "$(dirname -- "$0")" && pwd)
tmp=$(mktemp -d)
memory=
trap 'rm -rf "$tmp" "$memory"' EXIT
failed=0 cases=0

fail() {
	echo "FAILED: $*"
	failed=$((failed + 1))
	sed 's/^/    out: /' "$tmp/out"
	sed 's/^/    err: /' "$tmp/err"
}

# run STATUS ARGUMENT...: the exit status of run.sh is STATUS. Ends the test if no guest can run.
run() {
	local want=$1 rc=0
	shift
	cases=$((cases + 1))
	"$here/run.sh" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
	if [ "$rc" = 77 ] && [ "$want" != 77 ]; then
		cat "$tmp/err"
		exit 77
	fi
	[ "$rc" = "$want" ] || fail "run.sh ${*@Q}: exit status $rc, wanted $want"
}

# guest STATUS ARGUMENT...: as run, with the kernel of the test.
guest() {
	local want=$1
	shift
	run "$want" --kernel "$kernel" "$@"
}

# has out|err LINE: the stream has the line.
has() {
	cases=$((cases + 1))
	grep -qxE -- "$2" "$tmp/$1" || fail "no line '$2' in std$1"
}

test_arguments() {
	run 0 --help
	has out 'usage: run.sh \[options\] COMMAND .*'
	local args
	for args in '' '--nonsense true' '--kernel' '--kernel ../6.1 true' '--hosts 3 true' \
		'--cpus 3 true' '--count --cpus 2 true' '--count --hosts 2 true' '--timeout 0 true' \
		'--timeout 1m true' '--timeout 08 true' '--hugepages -1 true' \
		'--mem 64 true' '--mem 512 --hugepages 400 true' '--user'; do
		# shellcheck disable=SC2086  # a list of words
		run 2 $args
		has err 'run.sh: .*; --help tells more'
	done
}

# A machine whose apt has no Debian archive, and an empty cache.
test_no_kernel() {
	printf 'Dir::Etc::%s "/dev/null";\n' SourceList SourceParts >"$tmp/apt.conf"
	APT_CONFIG=$tmp/apt.conf RMEM_GUEST_CACHE=$tmp/cache run 77 true
	has err 'skipped: no kernel.*'
}

test_command() {
	echo before >"$tmp/file"
	mkdir "$tmp/folder with blanks"
	cd "$tmp/folder with blanks"
	cat >"$tmp/script" <<-'EOS'
		echo "arguments: $#: $1: $3"
		echo "folder: $PWD"
		echo "variable: $RMEM_TEST_VARIABLE"
		echo "addresses: $RMEM_HOST $RMEM_ADDR $RMEM_PEER"
		echo "complaint" >&2
		grep ^HugePages_Free: /proc/meminfo
		ibv_devinfo
		echo after >../file && echo "file: $(cat ../file)"
		sleep 1000 &
		exit 7
	EOS
	RMEM_TEST_VARIABLE="a 'quoted' \$word" guest 7 --hugepages 17 \
		sh "$tmp/script" "it's  \"one\" \$argument" '' 'last'
	has out "arguments: 3: it's  \"one\" \\\$argument: last"
	has out "folder: $tmp/folder with blanks"
	has out "variable: a 'quoted' \\\$word"
	has out 'addresses: 1 192\.0\.2\.1 192\.0\.2\.1'
	has err 'complaint'
	has out 'HugePages_Free: +17'
	has out 'hca_id:.*rxe0'
	has out '.*PORT_ACTIVE.*'
	has out '.*active_mtu:.*4096.*'
	has out 'file: after'
	cd "$here"
	[ "$(<"$tmp/file")" = before ] || fail "the guest changed a file of the host"
}

test_user() {
	cat >"$tmp/script" <<-'EOS'
		echo "user $(id -u), locked $(ulimit -l)"
		ibv_rc_pingpong -d rxe0 -g 1 -n 10 &
		until ibv_rc_pingpong -d rxe0 -g 1 -n 10 "$RMEM_PEER"; do :; done
		wait
	EOS
	# An ordinary user may have no access to this directory.
	cd /
	guest 0 --user bash -c "$(<"$tmp/script")"
	cd "$here"
	has out 'user 65534, locked unlimited'
	[ "$(grep -c '^10 iters in ' "$tmp/out")" = 2 ] || fail "no two ends of a ping-pong"
}

test_two_hosts() {
	cat >"$tmp/script" <<-'EOS'
		[ "$RMEM_HOST" = 2 ] || exec ibv_rc_pingpong -d rxe0 -g 1 -m 4096 -n 10
		until ibv_rc_pingpong -d rxe0 -g 1 -m 4096 -n 10 "$RMEM_PEER"; do :; done
		echo "peer $RMEM_PEER answered"
		exit 9
	EOS
	guest 9 --hosts 2 bash -c "$(<"$tmp/script")"
	has out '1: 10 iters in .*'
	has out '2: 10 iters in .*'
	has out '2: peer 192\.0\.2\.1 answered'
	# shellcheck disable=SC2016  # for the guest
	guest 125 --hosts 2 sh -c '[ $RMEM_HOST = 1 ] || echo c >/proc/sysrq-trigger; exec sleep 1000'
	has err 'run.sh: the guest 2 died; .*'
}

test_trouble() {
	guest 123 sh -c 'echo 512 >/proc/sys/kernel/tainted'
	has err "run.sh: the guest's kernel warned; .*"
	# The guest has a /dev/shm of its own.
	memory=$(mktemp -d /dev/shm/rmem-guest.XXXXXX)
	cd "$memory"
	guest 124 true
	has err 'run.sh: the guest has no folder .*'
	cd "$here"
	guest 125 --again sh -c 'echo c >/proc/sysrq-trigger; sleep 1000'
	has err 'run.sh: the guest died; .*'
	has err 'run.sh: once more, since the kernel crashed'
	guest 127 no-such-command
	# Linux panics if init ends.
	mkdir "$tmp/guest"
	cp "$here"/*.sh "$tmp/guest"
	printf '#!/busybox sh\nexit 1\n' >"$tmp/guest/guest-init.sh"
	here=$tmp/guest guest 124 --again --again true
	has err 'run.sh: the guest did not come up; .*'
	has err 'run.sh: once more, since the kernel crashed'
	cases=$((cases + 1))
	[ "$(grep -c 'once more' "$tmp/err")" = 2 ] || fail "not once for each --again"
}

test_time_limit() {
	local begin=$SECONDS
	guest 125 --timeout 15 sleep 1000
	has err 'run.sh: the guest was ended after 15 s'
	[ $((SECONDS - begin)) -lt 600 ] || fail "took $((SECONDS - begin)) s of 15"
}

# in_folder FOLDER: whether the working directory of a process is below it.
in_folder() {
	local link
	for link in /proc/[0-9]*/cwd; do
		[[ $(readlink "$link" 2>/dev/null) != "$1"/* ]] || return 0
	done
	return 1
}

test_ended_by_signal() {
	local rc=0 folder=$tmp/signal deadline
	mkdir "$folder"
	TMPDIR=$folder "$here/run.sh" --kernel "$kernel" sh -c 'echo up; sleep 1000' \
		>"$tmp/out" 2>"$tmp/err" &
	deadline=$((SECONDS + 600))
	until grep -q up "$tmp/out" || [ $SECONDS -ge $deadline ]; do
		sleep 0.2
	done
	in_folder "$folder" || fail "no QEMU found to end"
	kill $!
	wait $! || rc=$?
	cases=$((cases + 1))
	[ "$rc" = 143 ] || fail "ended by SIGTERM: exit status $rc"
	[ -z "$(ls "$folder")" ] || fail "left $(ls "$folder")"
	deadline=$((SECONDS + 600))
	while in_folder "$folder"; do
		[ $SECONDS -lt $deadline ] || { fail "QEMU goes on" && break; }
		sleep 0.2
	done
}

test_arguments
test_no_kernel
test_time_limit
if [ -z "$quick" ]; then
	test_command
	test_user
	test_two_hosts
	test_trouble
	test_ended_by_signal
fi
[ "$failed" = 0 ] || { echo "$failed of $cases failed" && exit 1; }
echo "$cases cases, all passed, kernel $kernel"
