#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run a command in a guest emulated by QEMU, whose kernel has an RDMA device (rdma_rxe). See
# doc/guest.md.

set -euo pipefail

usage() {
	cat <<-EOF
	usage: ${0##*/} [options] COMMAND [ARGUMENT...]
	Runs COMMAND in an emulated machine that has the RDMA device rxe0 and this machine's files,
	in the same folder and with the same environment. What it changes is gone afterwards.

	  --kernel NAME   6.1 (the default), new (the newest Debian has; on-demand paging), or a version
	  --hosts 1|2     two: both run COMMAND, wired together; output is prefixed by 1: and 2:
	  --cpus 1|2      CPUs of the guest; default 2, with two hosts 1
	  --count         one CPU, whose clock counts its instructions, 1 ns each; see doc/guest.md
	  --tap NAME      with one host: its network is this tap device of yours; see doc/guest.md
	  --again         run once more if the kernel of a guest crashes, also while it boots; may be repeated
	  --timeout SEC   limit of the guest, with its boot; default $limit
	  --hugepages N   of 2 MiB; default $pages
	  --mem MIB       memory of each guest; default $mem
	  --user          run COMMAND as an ordinary user (uid $user_uid, no limit on locked memory)
	  --help          print this

	COMMAND has RMEM_HOST (1 or 2), RMEM_ADDR and RMEM_PEER (IPv4) in its environment.
	Exit status: COMMAND's, or 2 wrong usage, 77 no kernel or tool to be had, 123 the kernel warned,
	124 the guest failed before COMMAND, 125 the guest died or time was up.
	EOF
}

limit=600
pages=64
mem=1024
uid=0
user_uid=65534
kernel=6.1
hosts=1
cpus=
count=
tap=
again=
args=("$@")

say() {
	echo "${0##*/}: $*" >&2
}

skip() {
	echo "skipped: $*" >&2
	exit 77
}

wrong() {
	say "$*; --help tells more"
	exit 2
}

# number OPTION VALUE LOW HIGH
number() {
	local is_number='^(0|[1-9][0-9]{0,6})$'
	[[ $2 =~ $is_number && $2 -ge $3 && $2 -le $4 ]] ||
		wrong "$1 takes a number from $3 to $4, not '$2'"
}

while [ $# != 0 ]; do
	case $1 in
	--help | -h)
		usage
		exit 0
		;;
	--again)
		again=1
		shift
		continue
		;;
	--count)
		count=1
		shift
		continue
		;;
	--user)
		uid=$user_uid
		shift
		continue
		;;
	--)
		shift
		break
		;;
	--kernel | --hosts | --cpus | --tap | --timeout | --hugepages | --mem)
		[ $# -gt 1 ] || wrong "$1 needs a value"
		;;
	-*) wrong "unknown option $1" ;;
	*) break ;;
	esac
	case $1 in
	--kernel)
		[[ $2 =~ ^(new|[0-9]+(\.[0-9]+)+)$ ]] || wrong "--kernel takes 6.1, new or a version, not '$2'"
		kernel=$2
		;;
	--hosts) number "$1" "$2" 1 2 && hosts=$2 ;;
	--cpus) number "$1" "$2" 1 2 && cpus=$2 ;;
	--tap)
		[[ $2 =~ ^[a-zA-Z0-9_-]{1,15}$ ]] || wrong "--tap takes a network device, not '$2'"
		tap=$2
		;;
	--timeout) number "$1" "$2" 1 86400 && limit=$2 ;;
	--hugepages) number "$1" "$2" 0 65536 && pages=$2 ;;
	--mem) number "$1" "$2" 256 1048576 && mem=$2 ;;
	esac
	shift 2
done
[ $# != 0 ] || wrong "no COMMAND"
[ -z "$tap" ] || [ "$hosts" = 1 ] || wrong "--tap and --hosts 2 exclude each other"
[ -z "$count" ] || [ "$hosts${cpus:-1}" = 11 ] || wrong "--count takes one host with one CPU"
[ $((pages * 2 + 192)) -le "$mem" ] || wrong "$pages hugepages take --mem $((pages * 2 + 192)) or more"

here=$(cd -- "$(dirname -- "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64 busybox rdma setpriv; do
	command -v $tool >/dev/null || skip "no $tool here (devtools/install-deps.sh guest)"
done
busybox=$(command -v busybox)
! ldd "$busybox" >/dev/null 2>&1 || skip "busybox is not static (devtools/install-deps.sh guest)"
cache=$(realpath -m -- "${RMEM_GUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rmem/guest}")
kernel_dir=$("$here/kernel.sh" "$kernel" "$cache")

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-guest.XXXXXX")
guests=() readers=() pipes=()
stop() {
	[ ${#guests[@]} = 0 ] || kill "${guests[@]}" 2>/dev/null || true
}
trap 'stop; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# make_command ARGUMENT...: write the script that bash of the guest runs.
make_command() {
	(
		unset OLDPWD XDG_RUNTIME_DIR RMEM_HOST RMEM_ADDR RMEM_PEER
		[ "$uid" = 0 ] || HOME=/tmp
		export -p
	)
	printf 'cd -- %q 2>/dev/null || { echo %q >&2 && exit 124; }\n' "$PWD" \
		"run.sh: the guest has no folder $PWD"
	printf 'exec --'
	printf ' %q' "$@"
	echo
}

mkdir -p "$tmp"/tree/{proc,sys,dev,root,share,over} "$tmp/share"
make_command "$@" >"$tmp/share/command"
cp "$busybox" "$tmp/tree/busybox"
cp "$here/guest-init.sh" "$tmp/tree/init"
cp -r "$kernel_dir/modules" "$tmp/tree/modules"
(cd "$tmp/tree" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$tmp/initrd"

# start_readers HOST: copy the output of the guest; they end after it.
start_readers() {
	local stream prefix=
	[ "$hosts" = 1 ] || prefix="$1: "
	mkfifo "$tmp/out.$1" "$tmp/err.$1"
	for stream in out err; do
		if [ $stream = out ]; then exec 5>&1; else exec 5>&2; fi
		if [ -z "$prefix" ]; then
			timeout $((limit + 10)) cat "$tmp/$stream.$1" >&5 &
		else
			timeout $((limit + 10)) sed -u "s/^/$prefix/" "$tmp/$stream.$1" >&5 &
		fi
		readers+=($!)
	done
	exec 5>&-
}

# An idle CPU that counts does not wait: its clock advances to the next timer.
accel=(-accel "tcg,thread=multi")
if [ -n "$count" ]; then
	cpus=1
	accel=(-accel "tcg,thread=single" -icount "shift=0,sleep=off")
fi

# start_guest HOST: timeout(1) limits its time, also if this script is killed. With "enhanced
# REP MOVSB" (erms) Linux clears and copies pages byte by byte, which is slow in emulation. Under load
# an emulated timer can miss Linux's check of timer interrupts, which panics (no_timer_check).
start_guest() {
	local host=$1 net=()
	local append="console=ttyS0 loglevel=5 panic=-1 oops=panic nowatchdog mitigations=off"
	append+=" no_timer_check"
	append+=" hugepages=$pages RMEM_HOST=$host RMEM_HOSTS=$hosts RMEM_PAGES=$pages RMEM_UID=$uid"
	append+=" RMEM_TAP=$tap"
	if [ "$hosts" = 2 ]; then
		net=(-netdev "dgram,id=net,local.type=unix,local.path=net.$host,remote.type=unix,remote.path=net.$((3 - host))"
			-device "virtio-net-pci,netdev=net,mac=52:54:00:00:02:0$host,romfile=")
	elif [ -n "$tap" ]; then
		net=(-netdev "tap,id=net,ifname=$tap,script=no,downscript=no"
			-device "virtio-net-pci,netdev=net,mac=52:54:00:00:02:0$host,romfile=")
	fi
	cd "$tmp"
	timeout -k 2 "$limit" qemu-system-x86_64 "${accel[@]}" -cpu max,-erms -smp "${cpus:-$((3 - hosts))}" -m "$mem" \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$kernel_dir/vmlinuz" -initrd initrd -append "$append" \
		-serial "file:console.$host" \
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=root,mount_tag=root \
		-fsdev local,id=share,path=share,security_model=none \
		-device virtio-9p-pci,fsdev=share,mount_tag=share \
		-device virtio-serial-pci \
		-chardev "file,id=out,path=out.$host" -device virtserialport,chardev=out,name=out \
		-chardev "file,id=err,path=err.$host" -device virtserialport,chardev=err,name=err \
		"${net[@]}" </dev/null >"qemu.$host" 2>&1 &
	guests[host]=$!
	cd "$OLDPWD"
}

# show_console HOST: print the end of the output of the kernel and QEMU.
show_console() {
	tail -n 100 "$tmp/qemu.$1" "$tmp/console.$1" 2>/dev/null | tr -d '\r' | sed 's/^/    /' >&2
}

# judge HOST STATUS: print the exit status for the guest, from the STATUS of timeout(1).
judge() {
	local share=$tmp/share guest=guest tainted
	[ "$hosts" = 1 ] || guest="guest $1"
	if [ -e "$share/tainted.$1" ]; then
		tainted=$(<"$share/tainted.$1")
		if ((tainted & (1 << 7 | 1 << 9))); then
			say "the $guest's kernel warned; its console ends with:"
			show_console "$1"
			echo 123
		else
			cat "$share/rc.$1"
		fi
	elif [ -n "${stopped[$1]:-}" ]; then
		say "the $guest was ended too"
		echo 0 # the other guest reports the error
	elif [ -e "$share/failed.$1" ]; then
		say "the $guest did not come up: $(<"$share/failed.$1")"
		show_console "$1"
		echo 124
	elif [ "$2" = 124 ] || [ "$2" = 137 ]; then
		say "the $guest was ended after $limit s"
		show_console "$1"
		echo 125
	elif [ -e "$share/started.$1" ]; then
		say "the $guest died; its console ends with:"
		show_console "$1"
		echo 125
	else
		say "the $guest did not come up; its console ends with:"
		show_console "$1"
		echo 124
	fi
}

for ((host = 1; host <= hosts; host++)); do
	start_readers $host
done
# Also open in this process, so that the readers end even if QEMU never opens them.
for ((host = 1; host <= hosts; host++)); do
	for stream in out err; do
		exec {pipe}<>"$tmp/$stream.$host"
		pipes+=("$pipe")
	done
done
for ((host = 1; host <= hosts; host++)); do
	start_guest $host
done

# If a guest ends without a result, end the other one.
statuses=() stopped=()
for ((left = hosts; left > 0; left--)); do
	status=0
	wait -n -p ended "${guests[@]}" || status=$?
	for host in "${!guests[@]}"; do
		[ "${guests[host]}" = "$ended" ] || continue
		statuses[host]=$status
		unset "guests[host]"
		if [ ! -e "$tmp/share/tainted.$host" ] && [ ${#guests[@]} != 0 ]; then
			stopped[3 - host]=1
			stop
		fi
	done
done
guests=()
for pipe in "${pipes[@]}"; do
	exec {pipe}>&-
done
wait "${readers[@]}" || true

result=0
for ((host = 1; host <= hosts; host++)); do
	status=$(judge $host "${statuses[host]}")
	case $result in
	12[345]) [ "$status" -le "$result" ] || result=$status ;;
	0) result=$status ;;
	*) [[ $status != 12[345] ]] || result=$status ;;
	esac
done
if [ -n "$again" ] && [[ $result = 12[45] ]] && grep -q 'Kernel panic' "$tmp"/console.*; then
	say 'once more, since the kernel crashed'
	rm -rf "$tmp"
	for i in "${!args[@]}"; do
		[ "${args[i]}" != --again ] || break
	done
	unset "args[i]"
	exec "$0" "${args[@]}"
fi
exit "$result"
