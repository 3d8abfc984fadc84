#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ceph.sh COMMAND...: run a monitor and an OSD of Ceph on a device of rmem by the command, rmem-run, and
# put and get an object with rados; all of their messages pass through the device (ms_type = async+rdma).
# The OSD keeps objects in memory. Exits with 77 if a program is not installed.
#
# Of Ceph: its queues are shorter than by default, since each process registers all of its buffers at
# once; its connections are set up by TCP, on the port of the monitor and those of the OSD.

set -uo pipefail
run=("$@")
PATH=$PATH:/usr/sbin:/sbin
for program in ceph ceph-mon ceph-osd monmaptool rados; do
	command -v $program >/dev/null || { echo "$program is not installed" && exit 77; }
done

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-ceph.XXXXXX")
size=$((4 << 20))
fsid=$(</proc/sys/kernel/random/uuid)
monitor=v1:127.0.0.1:$((20000 + RANDOM % 10000))
pids=()
end() {
	local pid
	for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
fail() {
	echo "$*"
	tail -n 20 "$tmp"/{mon,osd,out} 2>/dev/null
	exit 1
}

# A single OSD, and no keys of cephx.
cat >"$tmp/ceph.conf" <<EOF
[global]
fsid = $fsid
mon host = $monitor
mon initial members = a
mon data = $tmp/mon.data
mon data avail crit = 1
auth cluster required = none
auth service required = none
auth client required = none
osd data = $tmp/osd.data
osd objectstore = memstore
memstore device bytes = $((1 << 28))
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd class update on start = false
osd crush update on start = false
osd fast shutdown = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms type = async+rdma
ms bind msgr2 = false
ms async op threads = 1
ms async rdma device name = soft0
ms async rdma buffer size = 65536
ms async rdma receive buffers = 1024
ms async rdma receive queue len = 256
ms async rdma send buffers = 64
run dir = $tmp
admin socket = $tmp/\$name.asok
log file = $tmp/\$name.log
EOF
export CEPH_CONF=$tmp/ceph.conf

# of COMMAND...: a command of the cluster, on the device; its output is in $tmp/out. The ceph program may
# ask the monitor before it knows the cluster's fsid, with any messenger, and is refused then.
of() {
	local status=1
	for _ in {1..10}; do
		timeout --foreground -k 5 300 "${run[@]}" "$@" >"$tmp/out" 2>&1 && return
		status=$?
		grep -q 'EPERM: problem getting command descriptions' "$tmp/out" || break
	done
	fail "$*: status $status"
}

mkdir "$tmp/mon.data" "$tmp/osd.data"
monmaptool --create --fsid "$fsid" --addv a "$monitor" "$tmp/monmap" >"$tmp/out" 2>&1 || fail monmaptool
ceph-mon --mkfs -i a --monmap "$tmp/monmap" >"$tmp/out" 2>&1 || fail 'ceph-mon --mkfs'
export RMEM_IBV_STATS=$tmp/stats
"${run[@]}" ceph-mon -i a -f >"$tmp/mon" 2>&1 &
pids=($!)
osd=$(</proc/sys/kernel/random/uuid)
of ceph osd new "$osd"
of ceph osd crush add osd.0 1 root=default host=host
of ceph-osd -i 0 --mkfs --osd-uuid "$osd"
"${run[@]}" ceph-osd -i 0 -f >"$tmp/osd" 2>&1 &
pids+=($!)
of ceph osd pool create pool 8

head -c $size /dev/urandom >"$tmp/data"
of rados -p pool put object "$tmp/data"
of rados -p pool get object "$tmp/back"
sha256sum "$tmp/data" "$tmp/back" | sed "s|$tmp/||"
cmp "$tmp/data" "$tmp/back" || fail 'what was read differs'
# The OSD informs the monitor that it ends, which rados does not wait for.
for pid in "${pids[1]}" "${pids[0]}"; do
	kill "$pid"
	wait "$pid" || fail "process $pid: status $?"
done
pids=()
# rados sends the object, and the OSD sends it back.
awk -v size=$size '
	/ (rados|ceph-osd),/ {
		for (i = 1; i <= NF; i++)
			if (split($i, pair, "=") == 2 && pair[1] == "bytes")
				sum[/ rados,/ ? "rados" : "osd"] += pair[2]
		print
	}
	END { exit sum["rados"] < size || sum["osd"] < size }' "$tmp/stats" ||
	fail 'the object did not pass through the device'
