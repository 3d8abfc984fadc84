#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The iSER initiator of a guest's kernel (ib_iser, open-iscsi, rdma_rxe) logs in to tgtd, which rmem-run
# of BUILD runs on this machine, without root: a file system is made, written, and read back. Runs in a
# user and network namespace. Exit status 77 where that is not permitted, or a program is not installed.
# usage: iser-host.sh KERNEL BUILD

kernel=$1
build=$2
. "$(dirname -- "$0")/host.sh"
run="$here/../../usertools/rmem-run"
ip=192.0.2.2
target=iqn.2026-01.rmem:disk
initiator=iqn.2026-01.rmem:guest
export RMEM_GUEST_MODULES='ib_iser sd_mod ext4'

# For an ordinary user the guest sees mount(8) as a program that another user than root owns, setuid.
mount() { busybox mount "$@"; }
umount() { busybox umount "$@"; }

# Commands of the guest.
guest() {
	node="iscsiadm -m node -T $target -p $ip:3260"
	echo "InitiatorName=$initiator" >/etc/iscsi/initiatorname.iscsi
	mkdir -p /run/lock/iscsi && iscsid || exit
	$node -o new -I iser >/dev/null &&
		$node -o update -n node.session.timeo.replacement_timeout -v 60 &&
		$node -o update -n node.conn[0].timeo.login_timeout -v 60 &&
		$node --login || exit
	# LUN 1 of the session.
	until disk=/dev/$(basename /sys/class/iscsi_session/session1/device/target*/*:1/block/*) && [ -b "$disk" ]; do
		sleep 0.1
	done
	mkfs.ext4 -q "$disk" && mkdir -p /tmp/disk && mount "$disk" /tmp/disk || exit
	head -c $((8 << 20)) /dev/urandom >/tmp/data
	cp /tmp/data /tmp/disk/data && umount /tmp/disk || exit
	echo 3 >/proc/sys/vm/drop_caches
	mount "$disk" /tmp/disk && cmp /tmp/data /tmp/disk/data && umount /tmp/disk || exit
	echo 'guest: read back what was written'
	$node --logout && echo 'guest: logged out'
}

case $3 in
guest)
	guest
	exit
	;;
inside) ;;
*)
	need tgtd tgtadm iscsid iscsiadm mkfs.ext4
	enter "$kernel" "$build"
	;;
esac

make_tap $ip

dir=$(mktemp -d)
server=
# tgtd waits on SIGTERM for sessions that have ended.
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
	rm -rf "$dir"' EXIT
export TGT_IPC_SOCKET="$dir/tgtd" # a user has no access to /var/run/tgtd

truncate -s 64M "$dir/disk"
"$run" --ip "$ip" tgtd -f --iser pool_sz_mb=128 --iscsi "portal=$ip:3261" >"$dir/log" 2>&1 &
server=$!
admin() { tgtadm --lld iser "$@"; }
until admin --op show --mode system >/dev/null 2>&1; do
	# Without the device it continues, by TCP alone.
	if ! kill -0 "$server" 2>/dev/null || grep -q 'Failed to initialize RDMA' "$dir/log"; then
		cat "$dir/log"
		exit 1
	fi
	sleep 0.1
done
admin --op new --mode target --tid 1 -T $target &&
	admin --op new --mode logicalunit --tid 1 --lun 1 -b "$dir/disk" &&
	admin --op bind --mode target --tid 1 -I ALL &&
	admin --op bind --mode target --tid 1 -Q $initiator || exit

"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 300 \
	--tap rmem0 -- "$here/iser-host.sh" "$kernel" "$build" guest >"$dir/guest" 2>&1
status=$?
cat "$dir/guest"
[ $status = 0 ] && grep -q 'guest: read back' "$dir/guest" && grep -q 'guest: logged out' "$dir/guest" &&
	echo PASS && exit
tail -n 30 "$dir/log"
[ $status = 77 ] && exit 77
echo "FAILED, status of the guest $status"
exit 1
