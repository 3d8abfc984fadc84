#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run unmodified verbs programs on soft0 with usertools/rmem-run: program | result | time. Then check
# that librmem_ibv.so defines each function of the installed libibverbs that takes an object.

. "$(dirname -- "$0")/common.sh"
need nm

library=build/dropin/librmem_ibv.so
core=build/dropin/librmem_ibv_core.so
[ -e "$library" ] || die "nothing built, run devtools/check-gcc.sh first"

# Functions that take no object of a device of rmem: texts, files of sysfs, the parts for drivers,
# and objects that the device does not have.
passed='ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern
ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern
ibv_dofork_range ibv_dontfork_range ibv_event_type_str ibv_fork_init
ibv_get_device_name ibv_get_sysfs_path ibv_is_fork_initialized
ibv_node_type_str ibv_port_state_str ibv_rate_to_mbps
ibv_rate_to_mult ibv_read_ibdev_sysfs_file ibv_read_sysfs_file ibv_register_driver
ibv_wc_status_str ibv_wr_opcode_str'

# functions LIBRARY: the public functions it defines.
functions() {
	nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' |
		grep -E '^_?ibv_' | grep -v '^ibv_cmd_' | sort -u
}

real=$(ldd build/test/dropin/test-verbs | awk '$1 ~ /^libibverbs/ { print $3 }')
missing=$(functions "$real" |
	grep -vxF -f <(functions "$library") -f <(tr ' ' '\n' <<<"$passed") | tr '\n' ' ' || true)
[ -z "$missing" ] || die "not in $library, though $real exports it: $missing"
differ=$(comm -3 <(functions "$library") <(functions "$core") | tr '\n' ' ')
[ -z "$differ" ] || die "in one of $library and $core only: $differ"
# Those that dlopen() returns have the same names, and no versions: dlvsym() would require them.
for names in build/dropin/librmem_ibv_names{,_cm}.so; do
	[ -e "$names" ] || continue
	differ=$(comm -3 <({ functions "$library" && echo ibv_get_device_name; } | sort) <(functions "$names") | tr '\n' ' ')
	[ -z "$differ" ] || die "in one of $library and $names only: $differ"
	! nm -D "$names" | grep -q @ || die "$names has symbol versions"
done

# Seconds after which a row ends that hangs, also on a machine that is busy with other work.
export limit=900
failed=0
entry=
# program NAME PACKAGE WHAT [NEEDS]: the rows that follow run it, as doc/programs.md lists it.
program() {
	local version
	# shellcheck disable=SC2016  # of dpkg-query
	version=$({ dpkg-query -W -f '${Version}' "$2" "$2t64" 2>/dev/null || true; } |
		sed 's/^[0-9]*://; s/-[^-]*$//; s/.*+really//; s/+.*//; s/\(~git[0-9]*\).*/\1/; s/~[^g].*//')
	printf -v entry '%s\t' "$1" "$2" "${version:--}" "$3" "${4--}"
}

# again LOG: whether a row that failed may run once more, as tests of run_suite do.
nb_again=0
again() {
	[ "$nb_again" -lt "${RMEM_AGAIN:-0}" ] && ! grep -qE 'ERROR: [A-Za-z]+Sanitizer|runtime error:' "$1"
}

# try NAME COMMAND...: a row; functions limit their time themselves. Status 77: not run, with a reason.
try() {
	local name=$1 begin=${EPOCHREALTIME/./} rc=0 result
	shift
	[ "$(type -t "$1")" = function ] || set -- timeout "$limit" "$@"
	"$@" >"$tmp/log" 2>&1 || rc=$?
	if [ $rc != 0 ] && [ $rc != 77 ] && again "$tmp/log"; then
		nb_again=$((nb_again + 1)) rc=0
		tail -n 20 "$tmp/log"
		printf 'Row again: %s\n' "$name"
		"$@" >"$tmp/log" 2>&1 || rc=$?
	fi
	case $rc in
	0) result=ok ;;
	77) result=skipped ;;
	*) result="FAILED, status $rc" failed=1 ;;
	esac
	printf '%-24s | %-6s | %5d ms\n' "$name" "$result" $(((${EPOCHREALTIME/./} - begin) / 1000))
	case $rc in
	0) ;;
	77) tail -n 1 "$tmp/log" ;;
	*) tail -n 20 "$tmp/log" ;;
	esac
	[ -z "$entry" ] || printf '%s%s\t%s\n' "$entry" "$name" "$result" >>"$tmp/programs"
}

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-dropin.XXXXXX")
clean() { chmod -R u+w "$tmp" && rm -rf "$tmp"; } # views of sysfs are read-only
trap clean EXIT
run=usertools/rmem-run
try test-verbs "$run" build/test/dropin/test-verbs
try test-async "$run" build/test/dropin/test-async
try test-cm "$run" build/test/dropin/test-cm
# cm_ports root|processes|user: which IDs may share a port; the same on a device of the kernel (test/guest/device.sh).
cm_ports() {
	local lines=test/dropin/cm_ports.txt as=() program=build/test/dropin/cm-ports runner=$run
	case $1 in
	processes)
		diff <(sed 's/listen:[^ ]*/ok/g' $lines | grep -v 'bind\|option') \
			<(timeout 300 "$run" $program 127.0.0.1 127.0.0.2 ::1 processes)
		return
		;;
	user)
		cp $program "$tmp/copy"
		program=$tmp/copy/cm-ports runner=$(find "$tmp/copy" -name rmem-run)
		as=("${user[@]}")
		;;
	esac
	timeout 300 "${as[@]}" "$runner" "$program" 127.0.0.1 127.0.0.2 ::1 >"$tmp/out"
	[ "$1" != user ] || grep -qx 'port 1, not root | bind access' "$tmp/out" || return
	diff $lines <(grep -v '^port 1' "$tmp/out")
}
if [ "$(id -u)" = 0 ]; then try 'ports of rdma_cm' cm_ports root; fi
try 'ports, two processes' cm_ports processes
try test-cm_peer "$run" build/test/dropin/test-cm_peer
try test-cm_poll "$run" build/test/dropin/test-cm_poll
try 'test-cm_poll --ip' "$run" --ip 127.0.0.1 build/test/dropin/test-cm_poll
try 'test-cm --ip' "$run" --ip 127.0.0.1 build/test/dropin/test-cm
try 'test-cm_exit --ip' "$run" --ip 127.0.0.1 build/test/dropin/test-cm_exit
try test-dm "$run" build/test/dropin/test-dm
try test-events "$run" build/test/dropin/test-events
try test-yield "$run" build/test/dropin/test-yield
try test-ud "$run" build/test/dropin/test-ud
try 'test-ud --ip' "$run" --ip 127.0.16.8 build/test/dropin/test-ud
try test-process "$run" build/test/dropin/test-process
try test-handles "$run" build/test/dropin/test-handles
try test-keys "$run" build/test/dropin/test-keys
try test-contexts "$run" build/test/dropin/test-contexts
try test-main_ends "$run" build/test/dropin/test-main_ends
try test-threads "$run" build/test/dropin/test-threads
try 'exports of libibverbs' devtools/check-exports.py
try test-files "$run" build/test/dropin/test-files
try test-paths "$run" build/test/dropin/test-paths
try test-memory "$run" build/test/dropin/test-memory
try 'test-memory, pin=require' "$run" -d soft0,pin=require build/test/dropin/test-memory
# shellcheck disable=SC2016 # of the inner shell
try 'cp -r, find, cd of /sys/class/infiniband' "$run" sh -c 'cp -r /sys/class/infiniband "$0/view" &&
	[ "$(cat "$0/view/soft0/node_type")" = "1: CA" ] &&
	[ "$(find /sys/class/infiniband -name lid)" = /sys/class/infiniband/soft0/ports/1/lid ] &&
	cd /sys/class/infiniband/soft0 && cd -P ../.. && [ "$(pwd -P)" = /sys/class ]' "$tmp"
try test-dlopen "$run" build/test/dropin/test-dlopen
try test-loader "$run" build/test/dropin/test-loader "$root/build/test/dropin/libearly.so"
try test-groups test/dropin/groups.py test/dropin/groups.txt soft0 "$run" build/test/dropin/test-groups
try test-errnos test/dropin/groups.py test/dropin/errnos.txt soft0 "$run" build/test/dropin/test-errnos
try errnos-cm test/dropin/groups.py test/dropin/errnos_cm.txt soft0 "$run" build/test/dropin/errnos-cm
# A program of DPDK has its own EAL, and ASan and valgrind see the memory of the library.
try 'dpdk-test-rmem' env DPDK_TEST=mr_autotest "$run" build/test/dpdk-test-rmem --no-huge -m 64 \
	--no-pci --no-telemetry --no-shconf
for name in files verbs; do
	${CC:-cc} -D_GNU_SOURCE -g -fsanitize=address -static-libasan -o "$tmp/asan" \
		"test/dropin/test_$name.c" -libverbs -pthread
	try "test-$name, ASan" "$run" "$tmp/asan"
done
if command -v valgrind >/dev/null; then
	# A thread that runs at the end has memory that is possibly lost.
	try 'test-verbs, valgrind' "$run" valgrind -q --error-exitcode=1 --leak-check=full \
		--errors-for-leak-kinds=definite build/test/dropin/test-verbs
else
	say "valgrind is not installed: not run"
fi
if command -v ibv_devinfo >/dev/null; then
	program 'ibv_devinfo, ibv_*_pingpong' ibverbs-utils 'RC, UC, UD, XRC and SRQs, by polling and by events; ibv_devices, ibv_asyncwatch'
	try ibv_devices "$run" --list
	try 'ibv_devinfo -v' "$run" ibv_devinfo -v -d soft0
else
	say "ibverbs-utils is not installed: ibv_devices, ibv_devinfo not run"
fi
entry=
try 'true (no verbs)' "$run" true
try test-preload build/test/dropin/test-preload "$root/$library"
DESTDIR=$tmp/root meson install -C build --no-rebuild --quiet >/dev/null
installed=$(find "$tmp/root" -name rmem-run)
try 'test-verbs, installed' "$installed" build/test/dropin/test-verbs
try '--sweep, installed' "$installed" --sweep true

# Two processes of a program, over the wire.
pair() { test/dropin/pair.sh "$run" "$run" "$@"; }
by_address() { test/dropin/pair.sh "$run --ip 127.0.16.8" "$run --ip 127.0.16.9" "$@"; }
# killed PROGRAM: the client ends by itself, and the next two processes work.
killed() {
	PAIR_KILL=$(printf '%d.%03d' $((RANDOM % 2)) $((RANDOM % 1000))) pair "$@" -D 36000 && pair "$@" -n 20
}

# The same over UDP: retries find that the server has ended.
killed_by_address() {
	PAIR_KILL=1.$((RANDOM % 10)) by_address "$@" -D 36000 && by_address "$@" -n 20
}

# by_users PROGRAM...: one of the two belongs to another user, which can read a copy of rmem.
by_users() {
	local other="setpriv --reuid=65534 --regid=65534 --clear-groups"
	test/dropin/pair.sh "$other $(find "$tmp/copy" -name rmem-run)" "$run" "$@" &&
		test/dropin/pair.sh "$run" "$other $(find "$tmp/copy" -name rmem-run)" "$@"
}

# little_memory PROGRAM...: both processes may lock 64 KiB of memory, and are not of root.
little_memory() {
	local user=(prlimit --memlock=65536:65536)
	[ "$(id -u)" != 0 ] || user+=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	user+=("$(find "$tmp/copy" -name rmem-run)")
	test/dropin/pair.sh "${user[*]}" "${user[*]}" "$@"
}

# many PROGRAM...: 50 pairs at a time.
many() {
	local i rc=0 pids=()
	for ((i = 0; i < 50; i++)); do
		PAIR_PORT=$((21000 + 10 * i)) pair "$@" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || rc=1; done
	return $rc
}

# cm PROGRAM SERVER-ARGUMENTS CLIENT-ARGUMENTS [OPTION]: two processes that connect by rdma_cm. The
# client's last argument is the server's address, preceded by an option, -a by default.
cm() {
	test/dropin/pair_cm.sh "$run $1 $2" "$run $1 $3 ${4--a} 127.0.0.1"
}
cm_by_address() {
	test/dropin/pair_cm.sh "$run --ip 127.0.16.8 $1 $2" "$run --ip 127.0.16.9 $1 $3 ${4--a} 127.0.16.8"
}
cm_by_users() {
	local other="setpriv --reuid=65534 --regid=65534 --clear-groups"
	other="$other $(find "$tmp/copy" -name rmem-run)"
	test/dropin/pair_cm.sh "$other $1 $2" "$run $1 $3 -a 127.0.0.1" &&
		test/dropin/pair_cm.sh "$run $1 $2" "$other $1 $3 -a 127.0.0.1"
}

# udpong_pair: rsockets of SOCK_DGRAM; the server waits at its UDP port, and does not end.
udpong_pair() {
	local port=$((22000 + RANDOM % 5000)) server rc=0
	timeout --foreground "$limit" "$run" udpong -b 127.0.0.1 -p $port &
	server=$!
	until grep -qi ":$(printf %04x $port) 00000000:0000" /proc/net/udp; do
		kill -0 $server || return
		sleep 0.05
	done
	timeout --foreground "$limit" "$run" udpong -s 127.0.0.1 -p $port -S 64 -C 100 -T e || rc=$?
	kill $server
	wait $server || true
	return $rc
}

# in_namespaces FUNCTION...: between two network namespaces; the function is one of these.
in_namespaces() {
	export run
	export -f "${1?}"
	# shellcheck disable=SC2016  # of the other shell
	test/dropin/netns.sh bash -c '"$@"' - "$@"
}
pair_in_namespaces() {
	PAIR_ADDRESS=10.77.0.1 test/dropin/pair.sh "$NETNS_A $run --ip 10.77.0.1" \
		"$NETNS_B $run --ip 10.77.0.2" "$@"
}
rping_in_namespaces() {
	test/dropin/pair_cm.sh "$NETNS_A $run --ip 10.77.0.1 rping -s -p %p -C 20 -V" \
		"$NETNS_B $run --ip 10.77.0.2 rping -c -p %p -C 20 -V -a 10.77.0.1"
}
# rails_in_namespaces: rping by the second device, which has the address on the route.
rails_in_namespaces() {
	local devs=("-d soft0,ip=10.77.0.1 -d soft1,ip=10.78.0.1" "-d soft0,ip=10.77.0.2 -d soft1,ip=10.78.0.2")
	rm -f "$tmp/rails"
	RMEM_IBV_STATS=$tmp/rails test/dropin/pair_cm.sh "$NETNS_A $run ${devs[0]} rping -s -p %p -C 20 -V" \
		"$NETNS_B $run ${devs[1]} rping -c -p %p -C 20 -V -a 10.78.0.1" &&
		[ "$(grep -c 'soft0: .* bytes=0 ' "$tmp/rails")" = 2 ] &&
		! grep 'soft1: .* bytes=0 ' "$tmp/rails"
}
fi_rma_in_namespace() {
	$NETNS_A "$run" -d soft0,ip=10.77.0.1 -d soft1,ip=10.78.0.1 "$tmp/fi_rma" 10.78.0.1 soft1
}
kv_in_namespaces() {
	local eal="build/app/dpdk-rmem-kv --no-huge --no-shconf -m 64 --no-pci --no-telemetry" rc=0 server
	eal+=" --lcores 0@($(taskset -cp $$ | sed 's/.*: //'))"
	eal+=" --log-level=pmd.rmem.soft:error --" # the checks have rkeys refused, which soft logs
	local options="--keys 10 --lease-ms 500"
	# shellcheck disable=SC2086  # words
	# It gets one SIGINT: the second one would end it at once.
	$NETNS_A timeout --foreground "$limit" $eal --dev soft0,ip=10.77.0.1 --listen 10.77.0.1 $options >"$tmp/kv" 2>&1 &
	server=$!
	until grep -q '^server: listening at' "$tmp/kv"; do
		kill -0 $server || { cat "$tmp/kv" && return 1; }
		sleep 0.05
	done
	# shellcheck disable=SC2086
	timeout "$limit" $NETNS_B $eal --dev soft0,ip=10.77.0.2 --connect 10.77.0.1 $options --gets 100 || rc=1
	kill -INT $server
	wait $server || rc=1
	[ $rc = 0 ] || cat "$tmp/kv"
	return $rc
}

# fio_pair VERB
fio_pair() {
	local fio="fio --ioengine=rdma --port=%p --bs=64k --size=4m --name=job"
	test/dropin/pair_cm.sh "$run $fio --rw=read --iodepth=64" \
		"$run $fio --rw=write --verb=$1 --hostname=127.0.0.1 --iodepth=16"
}

# fio_send: fio connects with rnr_retry_count 0, and waits forever after a message that found no receive
# yet. So three times at most.
fio_send() {
	local PAIR_LIMIT=120
	export PAIR_LIMIT
	fio_pair send || fio_pair send || fio_pair send
}

# recipe: the CI job of doc/dropin.md, in a directory with rmem built.
recipe() {
	mkdir "$tmp/ci"
	ln -s "$root" "$tmp/ci/rmem"
	sed -n '/^<!-- ci: /,/^```$/p' doc/dropin.md | sed '1,/^meson/d; $d' >"$tmp/ci/job"
	[ "$(wc -l <"$tmp/ci/job")" -ge 4 ] && (cd "$tmp/ci" && timeout "$limit" bash -eux job)
}

# recipe_fails: the same with a server that ends at once, and the job of each service; all end.
recipe_fails() {
	local file rc
	mkdir -p "$tmp/fails"
	ln -sfn "$root" "$tmp/fails/rmem"
	for file in doc/dropin.md .github/workflows/ci.yml .gitlab-ci.yml; do
		sed -n '/rmem-run ib_write_bw -n 100  *&/,/wait \$!/p' "$file" |
			sed 's/-n 100  *&/--none \&/; s/-n 100/-p 18601/; s|usertools/rmem-run|rmem-run|' >"$tmp/fails/job"
		grep -q 'none &' "$tmp/fails/job" && grep -q 'until rmem-run' "$tmp/fails/job" || return
		rc=0
		(cd "$tmp/fails" && PATH=$PWD/rmem/usertools:$PATH timeout "$limit" bash -ux job) || rc=$?
		[ $rc = 1 ] || return
	done
}

# ends STATUS TEXT COMMAND...: it exits with that status and text, and no line of another program.
ends() {
	local status=$1 text=$2 rc=0
	shift 2
	timeout "$limit" "$@" >"$tmp/out" 2>&1 || rc=$?
	cat "$tmp/out"
	[ $rc = "$status" ] && grep -qF -- "$text" "$tmp/out" && ! grep -qE '^(od|head|stat):' "$tmp/out"
}
refused() { ends 125 "$@"; }

# without DEVICE: a list of devices, with a line why that one is missing.
without() {
	local rc=0
	timeout "$limit" "$run" -d "$1" build/test/dropin/test-process >"$tmp/out" 2>&1 || rc=$?
	cat "$tmp/out"
	[ $rc = 125 ] && grep -qF "no device $1: " "$tmp/out"
}

# in_use: the second device at an address.
in_use() {
	local rc=0
	test/dropin/pair.sh "$run --ip 127.0.16.8" "$run --ip 127.0.16.8" ibv_rc_pingpong -g 0 \
		>"$tmp/out" || rc=$?
	cat "$tmp/out"
	[ $rc = 1 ] && grep -qF "127.0.16.8: UDP port 4791 is in use" "$tmp/out" &&
		grep -qx "client: status 125" "$tmp/out"
}

# execute_only: a program that the user cannot read; rmem-run prints nothing.
execute_only() {
	cp "$(type -P true)" "$tmp/copy/hidden"
	chmod 111 "$tmp/copy/hidden"
	"${user[@]}" "$(find "$tmp/copy" -name rmem-run)" "$tmp/copy/hidden" >"$tmp/out" 2>&1 &&
		! [ -s "$tmp/out" ]
}

user=()
# left_nothing: as another user; no file is left.
left_nothing() {
	mkdir -m 777 "$tmp/xdg"
	chmod 755 "$tmp"
	cp -r "$tmp"/root "$tmp/copy"
	cp build/test/dropin/test-verbs "$tmp/copy"
	chmod -R a+rX "$tmp/copy"
	[ "$(id -u)" != 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	XDG_RUNTIME_DIR=$tmp/xdg timeout "$limit" "${user[@]}" "$(find "$tmp/copy" -name rmem-run)" \
		"$tmp/copy/test-verbs" &&
		[ -z "$(ls -A "$tmp/xdg")" ]
}

# two_devices: a program finds both, and a pair of processes uses another one in each.
two_devices() {
	local two="$run -d soft0 -d soft1"
	$two ls /sys/class/infiniband | diff - <(printf 'soft0\nsoft1\n') &&
		test/dropin/pair.sh "$two ibv_rc_pingpong -d soft0" "$two ibv_rc_pingpong -d soft1" -n 100
}

# sanitize: nothing of programs of Debian, and the objects that another one leaves.
sanitize() {
	local by="$run --sanitize=2+abort" program
	for program in ibv_{rc,srq,ud}_pingpong; do
		test/dropin/pair.sh "$by" "$by" "$program" -n 100 | tee "$tmp/out" && ! grep sanitize "$tmp/out" || return
	done
	ends 0 'sanitize: process ' "$run" --sanitize build/test/dropin/test-sanitize leave
}

# view: programs find the files of the device; a static one reads one that is open.
view() {
	local class=/sys/class/infiniband
	${CC:-cc} -static -o "$tmp/bin/first" -x c - <<-EOF
	#include <stdio.h>
	int main(void) { return putchar(getchar()) != '4'; }
	EOF
	"$run" ls -l $class ${class}_verbs /dev/infiniband | grep -E '^d.* soft0$|^c.* uverbs256$' &&
		"$run" bash -ec "for dir in $class/*; do cat \$dir/fw_ver \$dir/ports/*/gids/0; done" &&
		"$run" sh -ec "cd $class/soft0/ports/1 && pwd && $tmp/bin/first <state && ls counters" &&
		"$run" find $class/soft0 -name lid | grep -x "$class/soft0/ports/1/lid"
}

mkdir -p "$tmp/bin" "$tmp/a b"
echo 'int main(void) { return 0; }' | ${CC:-cc} -static -x c - -o "$tmp/bin/static"
ln -s "$(type -P true)" "$tmp/bin/-x"
cp -r "$tmp/root" "$tmp/a b"
try 'static program' refused 'is linked statically' "$run" "$tmp/bin/static"
try 'directory with a space' refused 'a space' "$(find "$tmp/a b" -name rmem-run)" true
ln -s "$root/$run" "$tmp/link"
touch "$tmp/bin/plain"
mkfifo -m 755 "$tmp/bin/fifo"
head -c 40 "$(type -P true)" >"$tmp/bin/short"
head -c 100 "$(type -P true)" >"$tmp/bin/half"
chmod 755 "$tmp"/bin/{short,half}
try 'symlink to rmem-run' "$tmp/link" true
for file in plain fifo .; do
	try "not executable: $file" ends 126 'not executable' "$run" "$tmp/bin/$file"
done
for file in short half; do
	try "truncated ELF: $file" ends 126 'truncated ELF file' "$run" "$tmp/bin/$file"
done
try 'not found' ends 127 'not found' "$run" "$tmp/bin/none"
try "-d ''" ends 2 '-d needs a device' "$run" -d '' true
try "--ip ''" ends 2 '--ip needs an address' "$run" --ip '' true
try '-d --verbose' ends 2 '-d needs a device, not --verbose' "$run" -d --verbose true
try '--ip --verbose' ends 2 '--ip needs an address, not --verbose' "$run" --ip --verbose true
try '--ip and ip=' ends 2 'two addresses' "$run" --ip 127.0.16.8 -d soft0,ip=127.0.16.9 true
try '-d soft0 -d soft0' ends 2 'two devices are named soft0' "$run" -d soft0 -d soft0,ip=host true
try "-d 'soft0|soft1'" ends 2 '-d takes one device' "$run" -d 'soft0|soft1' true
try 'two faults' "$run" -d 'soft0,fault=dup:0.1;loss:0.1' build/test/dropin/test-process
try '--ip and two devices' ends 2 'give each its own ip=' "$run" -d soft0 -d soft1 --ip 127.0.16.8 true
nine=()
for i in {0..8}; do nine+=(-d "soft$i"); done
try 'nine devices' ends 2 '9 devices, and the limit is 8' "$run" "${nine[@]}" true
try '--list foo' ends 2 'takes no argument: foo' "$run" --list foo
try '--check, linked' ends 0 'linked with libibverbs' "$run" --check build/test/dropin/test-verbs
try '--check, dlopen' ends 0 'finds libibverbs with dlopen()' "$run" --check build/test/dropin/test-dlopen
try '--check, no verbs' ends 0 'libraries name libibverbs' "$run" --check true
try '--check, static' ends 125 'is linked statically' "$run" --check "$tmp/bin/static"
try '--check, a script' ends 0 'a script' "$run" --check "$run"
try '--check, two' ends 2 'takes one program: false' "$run" --check true false
try '--foo' ends 2 'unknown option: --foo' "$run" --foo true
try 'program named -x' env PATH="$tmp/bin:$PATH" "$run" -- -x
try 'builtin (echo)' "$run" echo
try 'CDPATH' env CDPATH="$tmp" "$installed" true
for device in verbs99 foo0 soft0,foo=1; do
	try "no $device" without "$device"
done
try 'ulimit -v 60000' refused 'no device soft0: no address space' \
	sh -c 'ulimit -v 60000; exec "$@"' - "$run" build/test/dropin/test-process
try 'no runtime directory' left_nothing
if [ "$(</proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 1 ]; then
	try 'ports of rdma_cm, a user' cm_ports user
fi
try 'files, by programs' view
if command -v ibv_rc_pingpong >/dev/null; then
	try 'two devices' two_devices
	try 'rmem-run --sanitize' sanitize
fi
try 'execute-only program' execute_only
# It reads the files of the device, without any of umad.
if PATH=$PATH:/usr/sbin:/sbin command -v ibstat >/dev/null; then
	program ibstat infiniband-diags 'ibstat soft0 1'
	PATH=$PATH:/usr/sbin:/sbin try ibstat ends 0 'State: Active' "$run" ibstat soft0 1
fi

if command -v ibv_rc_pingpong >/dev/null; then
	program 'ibv_devinfo, ibv_*_pingpong' ibverbs-utils 'RC, UC, UD, XRC and SRQs, by polling and by events; ibv_devices, ibv_asyncwatch'
	try ibv_rc_pingpong pair ibv_rc_pingpong -n 100
	try 'ibv_rc_pingpong -g 0' pair ibv_rc_pingpong -n 100 -g 0
	try 'the same, --ip' by_address ibv_rc_pingpong -n 100 -g 0
	try 'ibv_rc_pingpong -e' pair ibv_rc_pingpong -n 100 -e
	for program in ibv_uc_pingpong ibv_srq_pingpong; do
		try "$program -g 0" pair $program -n 100 -g 0
	done
	try ibv_uc_pingpong pair ibv_uc_pingpong -n 100
	try 'ibv_uc_pingpong -e' pair ibv_uc_pingpong -n 100 -e
	try ibv_ud_pingpong pair ibv_ud_pingpong -n 100
	try 'ibv_ud_pingpong -g 0' pair ibv_ud_pingpong -n 100 -g 0
	try 'the same, --ip' by_address ibv_ud_pingpong -n 100 -g 0
	try 'ibv_ud_pingpong -e' pair ibv_ud_pingpong -n 100 -e
	try ibv_srq_pingpong pair ibv_srq_pingpong -n 100
	try 'ibv_srq_pingpong -e' pair ibv_srq_pingpong -n 100 -e
	try ibv_xsrq_pingpong pair ibv_xsrq_pingpong -n 100
	try 'ibv_xsrq_pingpong -e' pair ibv_xsrq_pingpong -n 100 -e
	try 'ibv_xsrq_pingpong --ip' by_address ibv_xsrq_pingpong -n 100 -g 0
	try 'address in use' in_use
	if unshare -rn true 2>/dev/null; then
		try ibv_asyncwatch unshare -rn test/dropin/watch_link.sh "$run"
	else
		say "no network namespace: ibv_asyncwatch not run"
	fi
	[ "$(id -u)" != 0 ] || try 'two users' by_users ibv_rc_pingpong -n 100
fi
if command -v rping >/dev/null; then
	program 'programs of librdmacm' rdmacm-utils \
		'rping, ucmatose, udaddy, rdma_server, rdma_xserver and their clients, cmtime, rstream, riostream, udpong'
	rping=(rping '-s -p %p -C 20 -V' '-c -p %p -C 20 -V')
	try rping cm "${rping[@]}"
	try 'rping --ip' cm_by_address "${rping[@]}"
	[ "$(id -u)" != 0 ] || try 'rping, two users' cm_by_users "${rping[@]}"
	try 'rping, server killed' env PAIR_KILL=server test/dropin/pair_cm.sh \
		"$run rping -s -p %p" "$run rping -c -p %p -a 127.0.0.1"
	try 'rping, client killed' env PAIR_KILL=client test/dropin/pair_cm.sh \
		"$run rping -s -p %p" "$run rping -c -p %p -a 127.0.0.1"
	try ucmatose cm ucmatose '-p %p -c 4 -C 10' '-p %p -c 4 -C 10' -s
	try 'ucmatose --ip' cm_by_address ucmatose '-p %p -c 4 -C 10' '-p %p -c 4 -C 10' -s
	try 'udaddy --ip' env PAIR_PORT=7174 test/dropin/pair_cm.sh \
		"$run --ip 127.0.16.8 udaddy -c 2 -C 10" "$run --ip 127.0.16.9 udaddy -c 2 -C 10 -s 127.0.16.8"
	try 'cmtime --ip' env PAIR_ENDLESS=1 test/dropin/pair_cm.sh \
		"$run --ip 127.0.16.8 cmtime -p %p -c 50" "$run --ip 127.0.16.9 cmtime -p %p -c 50 -s 127.0.16.8"
	try 'udaddy' env PAIR_PORT=7174 test/dropin/pair_cm.sh \
		"$run udaddy -c 2 -C 10" "$run udaddy -c 2 -C 10 -s 127.0.0.1"
	try 'mckey' test/dropin/mckey.sh "$run"
	try rdma_server test/dropin/pair_cm.sh "$run rdma_server -p %p" "$run rdma_client -p %p -s 127.0.0.1"
	try 'rdma_xserver, RC' test/dropin/pair_cm.sh \
		"$run rdma_xserver -p %p" "$run rdma_xclient -p %p -s 127.0.0.1"
	try cmtime env PAIR_ENDLESS=1 test/dropin/pair_cm.sh \
		"$run cmtime -p %p -c 50" "$run cmtime -p %p -c 50 -s 127.0.0.1"
	for program in rstream riostream; do
		try $program cm $program '-p %p -S 4096 -C 100' '-p %p -S 4096 -C 100' -s
	done
	try udpong udpong_pair
else
	say "rdmacm-utils is not installed: its programs not run"
fi
if command -v fio >/dev/null; then
	program fio fio 'its engine rdma: write, read, send'
	for verb in write read; do
		try "fio, $verb" fio_pair $verb
	done
	try 'fio, send' fio_send
else
	say "fio is not installed: not run"
fi
if command -v ib_write_bw >/dev/null; then
	program perftest perftest \
		'ib_{write,read,send,atomic}_{bw,lat}: RC, UC, UD and XRC, -R, events, SRQs, up to 1000 QPs, one side killed'
	for program in ib_{write,read,send,atomic}_{bw,lat}; do
		try "$program -R" cm "$program" '-F -R -n 20 -p %p' '-F -R -n 20 -p %p' ''
	done
	try 'ib_send_bw -R -c UD' cm ib_send_bw '-F -R -c UD -n 20 -p %p' '-F -R -c UD -n 20 -p %p' ''
	try 'ib_write_bw -R --ip' cm_by_address ib_write_bw '-F -R -n 20 -p %p' '-F -R -n 20 -p %p' ''
	try 'ib_write_bw -R, killed' env PAIR_KILL=server test/dropin/pair_cm.sh \
		"$run ib_write_bw -F -R -D 36000 -p %p" "$run ib_write_bw -F -R -D 36000 -p %p 127.0.0.1"
	for program in ib_{write,read,send,atomic}_bw; do
		try "$program" pair "$program" -n 100
	done
	for program in ib_{write,read,send,atomic}_lat; do
		try "$program" pair "$program" -n 10
	done
	try 'ib_write_bw -a' pair ib_write_bw -a -n 5
	try 'ib_send_bw -a' pair ib_send_bw -a -n 5
	for program in ib_read_bw ib_{write,read,send}_lat; do
		try "$program -a" pair "$program" -a -n 5
	done
	try 'ib_write_bw -b' pair ib_write_bw -b -n 100
	try 'ib_send_bw -b' pair ib_send_bw -b -n 100
	try 'ib_read_bw -b' pair ib_read_bw -b -n 100
	try 'ib_atomic_bw -b' pair ib_atomic_bw -b -n 100
	try 'ib_write_bw -q 16' pair ib_write_bw -q 16 -n 20
	try 'ib_write_bw -q 1000' pair ib_write_bw -q 1000 -s 4096 -t 5 -n 10
	try 'ib_write_bw, 100 processes' many ib_write_bw -n 20 -u 20
	try 'ib_write_bw, ulimit -l 64' little_memory ib_write_bw -s 1048576 -n 20
	try 'ib_read_bw -q 16' pair ib_read_bw -q 16 -n 20
	for program in ib_{send,atomic}_bw; do
		try "$program -q 16" pair "$program" -q 16 -n 20
	done
	for program in ib_{write,read,send,atomic}_bw; do
		try "$program -D 1 -q 4" pair "$program" -D 1 -q 4
	done
	for program in ib_{write,read,send,atomic}_lat; do
		try "$program -D 1" pair "$program" -D 1
	done
	for program in ib_{write,send}_{bw,lat}; do
		try "$program -s 64 -I 64" pair "$program" -s 64 -I 64 -n 20
	done
	# Programs of WRITE have no -e.
	for program in ib_{read,send,atomic}_{bw,lat}; do
		try "$program -e" pair "$program" -e -n 20
	done
	for program in ib_send_{bw,lat}; do
		try "$program --use-srq" pair "$program" --use-srq -n 20
	done
	for program in ib_{write,send}_lat; do
		try "$program -c UC" pair "$program" -c UC -n 10
	done
	try 'ib_write_bw -c UC' pair ib_write_bw -c UC -n 100
	try 'ib_send_bw -c UC' pair ib_send_bw -c UC -n 100
	try 'ib_send_bw -c UD' pair ib_send_bw -c UD -n 100
	try 'ib_send_lat -c UD' pair ib_send_lat -c UD -n 10
	for program in ib_{send,write,read,atomic}_{bw,lat}; do
		try "$program -c XRC" pair "$program" -c XRC -n 20
	done
	for program in ib_{send,write,read,atomic}_bw; do
		try "$program -c XRC --ip" by_address "$program" -c XRC -n 20
	done
	try 'ib_send_bw -c XRC -q 16' pair ib_send_bw -c XRC -q 16 -n 20
	try 'ib_send_bw -c XRC -b' pair ib_send_bw -c XRC -b -n 100
	for program in ib_atomic_{bw,lat}; do
		try "$program -A" pair "$program" -A FETCH_AND_ADD -n 20
	done
	try 'ib_write_bw --ip' by_address ib_write_bw -n 100
	${CC:-cc} -D_GNU_SOURCE -o "$tmp/no_ptrace" test/dropin/no_ptrace.c
	for program in ib_write_bw ib_read_lat ib_send_bw; do
		try "$program, no ptrace" test/dropin/pair.sh "$tmp/no_ptrace $run" "$tmp/no_ptrace $run" \
			"$program" -n 20
	done
	try 'recipe of doc/dropin.md' recipe
	try 'recipe, server fails' recipe_fails
	try 'ib_write_bw, killed' killed ib_write_bw
	try 'ib_write_bw --ip, killed' killed_by_address ib_write_bw
	try 'ib_read_bw, killed' killed ib_read_bw
	try 'ib_send_bw, killed' killed ib_send_bw
else
	say "perftest is not installed: its programs not run"
fi

entry=
if test/dropin/netns.sh true >"$tmp/log"; then
	! command -v ib_write_bw >/dev/null || try 'both killed' test/dropin/killed.sh "$run"
	for program in ib_write_bw ib_send_lat; do
		if command -v $program >/dev/null; then
			try "$program, namespaces" in_namespaces pair_in_namespaces $program -n 20
		fi
	done
	if command -v ibv_rc_pingpong >/dev/null; then
		try 'ibv_rc_pingpong, the same' in_namespaces pair_in_namespaces ibv_rc_pingpong -n 20 -g 0
	fi
	export tmp
	if command -v rping >/dev/null; then
		try 'rping, the same' in_namespaces rping_in_namespaces
		try 'rping, two devices' in_namespaces rails_in_namespaces
	fi
	! [ -e "$tmp/fi_rma" ] || try 'RMA of libfabric, two devices' in_namespaces fi_rma_in_namespace
	try 'dpdk-rmem-kv, the same' in_namespaces kv_in_namespaces
else
	say "$(cat "$tmp/log"): programs not run between namespaces"
fi

. "$root/devtools/ecosystem.sh"
. "$root/devtools/gallery.sh"
entry=

# pyverbs' own tests, of the package: exactly those of the list pass, no other fails.
suite=/usr/share/doc/rdma-core/tests
if /usr/bin/python3 -c 'import pyverbs' 2>/dev/null && [ -d $suite ]; then
	begin=${EPOCHREALTIME/./}
	cp -r $suite "$tmp/tests"
	gunzip -qf "$tmp"/tests/*.gz || true
	run=$root/$run
	# Later ones run `rdma link`, which fails if the kernel has no RDMA.
	printf '#!/bin/sh\n%s "$@" 2>/dev/null || echo "[]"\n' "$(type -P rdma || echo false)" >"$tmp/bin/rdma"
	chmod 755 "$tmp/bin/rdma"
	# Three tests need hugepages, which root may be able to reserve.
	pages=/sys/kernel/mm/hugepages/hugepages-2048kB
	if [ -w $pages/nr_hugepages ] && [ "$(<$pages/free_hugepages)" -lt 16 ]; then
		had=$(<$pages/nr_hugepages)
		trap 'echo "$had" >$pages/nr_hugepages; clean' EXIT
		echo $((had + 16)) >$pages/nr_hugepages || true
	fi
	# 44 of 1.14.44.0. Warnings of Python would be among the results.
	version=$(pkg-config --modversion libibverbs | cut -d. -f3)
	(cd "$tmp" && PATH=$tmp/bin:$PATH PYTHONWARNINGS=ignore timeout "$limit" "$run" /usr/bin/python3 \
		tests/run_tests.py --dev soft0 --gid 0 -v) >"$tmp/log" 2>&1 || true
	# Two are for RoCE: an AH without a GRH, and an empty entry of the GID table. Not all are: children could not
	# use the address.
	(cd "$tmp" && PATH=$tmp/bin:$PATH PYTHONWARNINGS=ignore timeout "$limit" "$run" -d soft0,ip=127.0.16.10,control=1 \
		/usr/bin/python3 tests/run_tests.py --dev soft0 --gid 0 -v -k test_create_ah_roce \
		-k test_query_gid_ex_bad_flow) >>"$tmp/log" 2>&1 || true
	program pyverbs python3-pyverbs 'its own tests; tests of functions that soft0 lacks are skipped (dropin_tests.md)'
	rc=ok
	result=$(test/dropin/pyverbs.py "$tmp/log" test/dropin/pyverbs.txt "$version") || failed=1 rc=FAILED
	printf '%spyverbs\t%s\n' "$entry" "$rc" >>"$tmp/programs"
	printf '%-24s | %-6s | %5d ms\n' pyverbs "$result" \
		$(((${EPOCHREALTIME/./} - begin) / 1000))
else
	say "python3-pyverbs is not installed: its tests not run"
fi

# The results, of which doc/programs.md has those of the last run before a commit.
release=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_ID-}") || release=
if [ -n "$release" ] && [ -s "$tmp/programs" ]; then
	cp "$tmp/programs" "build/programs-$release.$$"
	mv -f "build/programs-$release.$$" "build/programs-$release.tsv" # root and a user may run it at a time
	devtools/programs.py --check "$release" "build/programs-$release.tsv" || failed=1
fi
[ $failed = 0 ]
