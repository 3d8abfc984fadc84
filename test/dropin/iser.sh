#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# iser.sh COMMAND...: run tgtd and the initiators of libiscsi and QEMU on a device of rmem by the
# command, rmem-run; 64 MiB are written to the disk by iSER, read back and compared. Exits with 77 if
# a program is not installed. An interface other than the loopback one is needed.
#
# tgt of 1.0.85 admits an initiator by iSER only if both its address and its name are bound to the target
# (by TCP one of the two suffices): login status 515 otherwise.

set -uo pipefail
run=("$@")
PATH=$PATH:/usr/sbin:/sbin
for program in tgtd tgtadm iscsi-inq qemu-img ip; do
	command -v $program >/dev/null || { echo "$program is not installed" && exit 77; }
done
qemu-img --help | grep -q 'Supported formats:.* iscsi' || compgen -G '/usr/lib/*/qemu/block-iscsi.so' >/dev/null ||
	{ echo "qemu-img has no iSCSI: install qemu-block-extra" && exit 77; }
address=$(ip -4 -o addr show up scope global | awk 'NR == 1 { sub("/.*", "", $4); print $4 }')
[ -n "$address" ] || { echo "no interface but the loopback one" && exit 77; }

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-iser.XXXXXX")
target=iqn.2026-01.rmem:disk initiator=iqn.2026-01.rmem:initiator
size=$((64 << 20))
export TGT_IPC_SOCKET=$tmp/socket # not /var/run/tgtd, which may belong to another user
port=3260 # of iSER; tgtd takes its own option for another one for invalid if errno was set before
server=
end() {
	if [ -n "$server" ]; then
		kill -KILL "$server" 2>/dev/null # on SIGTERM it waits for sessions that have ended
		wait "$server" 2>/dev/null
	fi
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
fail() {
	echo "$*"
	tail -n 20 "$tmp"/{tgtd,out} 2>/dev/null
	exit 1
}

truncate -s $size "$tmp/disk"
head -c $size /dev/urandom >"$tmp/data"
"${run[@]}" -d soft0,direct=0 tgtd -f --iser pool_sz_mb=128 --iscsi "portal=$address:$((20000 + RANDOM % 10000))" >"$tmp/tgtd" 2>&1 &
server=$!
admin() { tgtadm --lld iser "$@"; }
until admin --op show --mode system >/dev/null 2>&1; do
	kill -0 "$server" 2>/dev/null || fail 'tgtd ended'
	! grep -q 'Failed to initialize RDMA' "$tmp/tgtd" || fail 'tgtd continues by TCP alone'
	sleep 0.1
done
set_up() {
	admin --op new --mode target --tid 1 -T $target &&
		admin --op new --mode logicalunit --tid 1 --lun 1 -b "$tmp/disk" &&
		admin --op bind --mode target --tid 1 -I ALL &&
		admin --op bind --mode target --tid 1 -Q $initiator
}
set_up || fail 'tgtadm'

export RMEM_IBV_STATS=$tmp/stats
timeout --foreground -k 5 300 "${run[@]}" iscsi-inq -i $initiator "iser://$address:$port/$target/1" >"$tmp/out" 2>&1 ||
	fail "iscsi-inq: status $?"
grep -q 'Peripheral Device Type:DIRECT_ACCESS' "$tmp/out" || fail 'iscsi-inq: no disk'
# libiscsi has buffers of 256 KiB for iSER, and QEMU does not know.
disk=driver=blkdebug,max-transfer=131072,image.driver=iscsi,image.transport=iser
disk+=,image.portal=$address:$port,image.target=$target,image.lun=1,image.initiator-name=$initiator
timeout --foreground -k 5 300 "${run[@]}" qemu-img convert -n -f raw --target-image-opts "$tmp/data" "$disk" \
	>"$tmp/out" 2>&1 || fail "write: status $?"
cmp "$tmp/data" "$tmp/disk" || fail 'the disk differs from what was written'
timeout --foreground -k 5 300 "${run[@]}" qemu-img convert --image-opts -O raw "$disk" "$tmp/back" >"$tmp/out" 2>&1 ||
	fail "read: status $?"
sha256sum "$tmp/data" "$tmp/back" | sed "s|$tmp/||"
cmp "$tmp/data" "$tmp/back" || fail 'what was read differs'
# All of it are packets. The target, which is killed, reports nothing.
awk -v size=$size '
	/ qemu-img,/ {
		for (i = 1; i <= NF; i++)
			if (split($i, pair, "=") == 2)
				of[pair[1]] = pair[2] > of[pair[1]] + 0 ? pair[2] : of[pair[1]]
		print
	}
	END { exit of["wire_tx_bytes"] + 0 < size || of["wire_rx_bytes"] + 0 < size }' "$tmp/stats" ||
	fail 'the data did not pass through the device'
