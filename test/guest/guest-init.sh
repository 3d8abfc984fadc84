#!/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# Process 1 of the guest, started by the kernel from the initramfs that run.sh makes.
#
# Mounts the root file system of the host (read-only, with an overlay in memory), creates rxe0, runs
# /share/command, reports the result to run.sh in /share, and resets the machine, which ends QEMU.
# Variables on the kernel command line, set by run.sh, are in the environment: RMEM_HOST (1 or 2),
# RMEM_HOSTS, RMEM_PAGES, RMEM_UID and RMEM_TAP (not empty: eth0 leads to the machine).

PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

root=/root # root file system of the command
share=

fail() {
	echo "guest-init: $*"
	[ -z "$share" ] || echo "$*" >"$share/failed.$RMEM_HOST"
	reboot -f
}

# must MESSAGE COMMAND...: if the command fails, end the guest with the message.
must() {
	what=$1
	shift
	"$@" || fail "$what"
}

# await MESSAGE COMMAND...: retry until it succeeds. run.sh limits the time.
await() {
	echo "guest-init: waiting for $1"
	shift
	until "$@" >/dev/null 2>&1; do
		usleep 50000
	done
}

mount_9p() {
	mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$2" "$1" "$3"
}

# port NAME: print the device of the virtio port.
port() {
	for name in /sys/class/virtio-ports/*/name; do
		if [ "$(cat "$name")" = "$1" ]; then
			name=${name%/name}
			echo "/dev/${name##*/}"
			return
		fi
	done
	return 1
}

make_root() {
	mount -t tmpfs tmpfs /over &&
		mkdir /over/lower /over/upper /over/work &&
		mount_9p root ro,cache=loose /over/lower &&
		mount -t overlay -o lowerdir=/over/lower,upperdir=/over/upper,workdir=/over/work \
			overlay "$root" &&
		mount -t proc proc "$root/proc" &&
		mount -t sysfs sysfs "$root/sys" &&
		mount -t devtmpfs dev "$root/dev" &&
		mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/dev/hugepages" &&
		mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" &&
		mount -t devpts devpts "$root/dev/pts" &&
		mount -t tmpfs -o mode=755 tmpfs "$root/run" &&
		mount -t hugetlbfs -o mode=1777 hugetlbfs "$root/dev/hugepages"
}

# EAL loads all drivers of DPDK, which takes longer in emulation than most tests. Only these are
# visible: the driver of mempools, which every program needs, those of wire.sh, and net_ring, with
# which dpdk-test-rmem is linked.
hide_drivers() {
	for dir in "$root"/usr/lib/*/dpdk/pmds-*; do
		[ -e "$dir/librte_mempool_ring.so" ] || continue
		mkdir -p /drivers &&
			cp -P "$dir"/librte_mempool_ring.so* "$dir"/librte_bus_[pv]*.so* \
				"$dir"/librte_net_af_packet.so* "$dir"/librte_net_ring.so* /drivers &&
			mount -t tmpfs -o mode=755 tmpfs "$dir" &&
			cp -P /drivers/* "$dir" || return
	done
}

# MTU 9000 makes rxe's path MTU 4096.
make_net() {
	netdev=eth0
	if [ "${RMEM_HOSTS:?}$RMEM_TAP" = 1 ]; then
		netdev=dummy0
		[ -d /sys/class/net/dummy0 ] || ip link add dummy0 type dummy || return
	fi
	ip link set lo up &&
		ip link set "$netdev" mtu 9000 &&
		ip addr add "$RMEM_ADDR/24" dev "$netdev" &&
		ip link set "$netdev" up &&
		chroot "$root" rdma link add rxe0 type rxe netdev "$netdev" &&
		chmod 666 "$root"/dev/infiniband/*
}

# The IPv4 GID appears after the device, with a delay.
rxe_is_up() {
	grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state &&
		grep -q "ffff:c000:020$RMEM_HOST\$" /sys/class/infiniband/rxe0/ports/1/gids/*
}

# kill_rest: end remaining processes of the command, except those that forward its output.
kill_rest() {
	for pid in /proc/[0-9]*; do
		pid=${pid#/proc/}
		case $pid in
		1 | "$out_pid" | "$err_pid") ;;
		*) kill -9 "$pid" ;;
		esac
	done 2>/dev/null
}

/busybox mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
	must "the module ${module##*/} does not load" insmod "$module"
done
must "no shared folder" mount_9p share cache=none /share
share=/share
must "no root file system" make_root
must "no drivers of DPDK" hide_drivers

RMEM_ADDR=192.0.2.$RMEM_HOST
RMEM_PEER=192.0.2.$((3 - RMEM_HOST))
[ "$RMEM_HOSTS$RMEM_TAP" != 1 ] || RMEM_PEER=$RMEM_ADDR
export RMEM_ADDR RMEM_PEER RMEM_HOST
must "no rxe device" make_net
[ "$(cat /proc/sys/vm/nr_hugepages)" = "$RMEM_PAGES" ] ||
	fail "only $(cat /proc/sys/vm/nr_hugepages) of $RMEM_PAGES hugepages: it takes more --mem"
await "rxe0" rxe_is_up
await "the peer" ping -c 1 -W 1 "$RMEM_PEER"

as_user=
if [ "$RMEM_UID" != 0 ]; then
	# (busybox would use its own setpriv, which has no --reuid.)
	as_user="/usr/bin/env setpriv --reuid=$RMEM_UID --regid=$RMEM_UID --clear-groups --"
fi
ulimit -l unlimited
must "no command" cp /share/command "$root/run/rmem-command"
chmod 644 "$root/run/rmem-command"

# A port can be opened only once, so the command writes to pipes.
mkfifo /out /err
cat /out >"$(port out)" &
out_pid=$!
cat /err >"$(port err)" &
err_pid=$!
echo "guest-init: the command starts"
: >"/share/started.$RMEM_HOST"
# shellcheck disable=SC2086  # a list of words
chroot "$root" $as_user /bin/bash /run/rmem-command </dev/null >/out 2>/err
echo "$?" >"/share/rc.$RMEM_HOST"

# The peer may need the device of this guest until its end.
[ "$RMEM_HOSTS" = 1 ] || await "the peer's end" [ -e "/share/rc.$((3 - RMEM_HOST))" ]
kill_rest
wait "$out_pid" "$err_pid"
cat /proc/sys/kernel/tainted >"/share/tainted.$RMEM_HOST"
reboot -f
