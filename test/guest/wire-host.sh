#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# dpdk-testrmem of BUILD on this machine, with soft, and in a guest, with rdma_rxe, exchange packets
# over a tap device. All of it in a user and network namespace, so an ordinary user may do it. Exit
# status 77 where that is not permitted.
# usage: wire-host.sh KERNEL BUILD

kernel=$1
build=$2
here=$(cd -- "$(dirname -- "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
app="$build/app/dpdk-testrmem --no-huge -m 64 --no-shconf --no-pci --no-telemetry"
app="$app --log-level=lib.eal:error -l 0 --"
run='--mode write --size 64K --depth 16 --burst 8'

if [ "$3" != inside ]; then
	if ! [ -w /dev/net/tun ] || ! unshare -rn true 2>/dev/null; then
		echo 'skipped: no tap device in a network namespace'
		exit 77
	fi
	exec unshare -rn "$0" "$kernel" "$build" inside
fi

ip tuntap add rmem0 mode tap && ip link set lo up && ip link set rmem0 mtu 9000 up &&
	ip addr add 192.0.2.2/24 dev rmem0 || exit 77

out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck disable=SC2086  # several words
"$here/run.sh" --kernel "$kernel" --timeout 300 --tap rmem0 -- $app --dev verbs0,ibdev=rxe0,cm=tcp \
	$run --listen 192.0.2.1 >"$out" 2>&1 &
guest=$!
until grep -q '^listening at' "$out" || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
# shellcheck disable=SC2086  # several words
$app --dev 'soft0,ip=192.0.2.2,fault=loss:0.1;seed:1' $run --connect 192.0.2.1 --ops 80 \
	--seconds 120 --stats-period 0
status=$?
[ $status = 0 ] || kill $guest 2>/dev/null
wait $guest
rc=$?
cat "$out"
[ $rc = 77 ] && exit 77
[ "$status $rc" = '0 0' ] && echo PASS && exit 0
echo "FAIL: status $status here, $rc in the guest"
exit 1
