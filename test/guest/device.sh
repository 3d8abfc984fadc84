#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): the programs of BUILD on the RDMA device of the guest. Prints a line for
# each failed part, and PASS or FAIL at the end.
# usage: device.sh BUILD

build=$1
eal='--no-huge -m 32 --no-shconf --no-pci --no-telemetry'
device='verbs0,ibdev=rxe0'
last_cpu=$(($(nproc) - 1))
two_lcores="--lcores 0@0,1@$last_cpu"
failed=0

verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	echo "FAILED, status $2: $1"
	failed=1
}

# shellcheck disable=SC2086  # several words
"$build/test/conformance/dpdk-test-rmem-conformance" $eal $two_lcores '--log-level=*rmem*:emergency' -- \
	--dev $device
verdict conformance $?

# shellcheck disable=SC2086  # several words
RMEM_TEST_LINK=dummy0 "$build/test/conformance/dpdk-test-rmem-conformance" $eal $two_lcores \
	'--log-level=*rmem*:emergency' -- --dev $device link
verdict 'events of the port' $?

# shellcheck disable=SC2086  # several words
"$build/test/conformance/dpdk-test-rmem-conformance" $eal $two_lcores '--log-level=*rmem*:emergency' -- \
	--dev $device --against soft0 --ops 2000
verdict 'as the software device' $?

# All backends; those that the device lacks are skipped, with the reason.
suites=lease_auto_autotest,lease_desc_autotest,lease_race_autotest
for backend in fast_reg mw umr; do
	for object in lease lease_bad lease_revoke lease_key lease_srq; do
		suites=$suites,${object}_${backend}_autotest
	done
done
# shellcheck disable=SC2086  # several words
DPDK_TEST=$suites RMEM_TEST_DEV=$device "$build/test/dpdk-test-rmem" $eal $two_lcores \
	'--log-level=*rmem*:emergency'
verdict leases $?

for mode in write read send mbuf atomic mw lease; do
	# shellcheck disable=SC2086  # several words
	"$build/app/dpdk-testrmem" $eal -l 0 -- --dev $device --mode $mode --burst 8 --ops 800 \
		--seconds 1000 --stats-period 0
	verdict "testrmem --mode $mode" $?
done

# shellcheck disable=SC2086  # several words
"$build/app/dpdk-rmem-kv" $eal $two_lcores -- --dev $device --keys 20 --gets 200
verdict dpdk-rmem-kv $?

# ports: which IDs of rdma_cm may share a port; the same lines as on soft0.
# shellcheck disable=SC2317 # verdict has its result
ports() {
	netdev=$(ip -o -4 addr | awk -v addr="$RMEM_ADDR" 'index($4, addr "/") == 1 { print $2 }')
	ip addr add 192.0.2.77/24 dev "$netdev" && ip -6 addr add fd00::77/64 dev "$netdev" nodad || return
	# The GIDs of the addresses are added by a worker of the kernel.
	until grep -qs 'ffff:c000:024d' /sys/class/infiniband/rxe0/ports/1/gids/* &&
		grep -qs '^fd00:.*:0077' /sys/class/infiniband/rxe0/ports/1/gids/*; do
		sleep 0.1
	done
	"$build/test/dropin/cm-ports" "$RMEM_ADDR" 192.0.2.77 fd00::77 |
		diff "${0%/*}/../dropin/cm_ports.txt" -
}
if [ -x "$build/test/dropin/cm-ports" ]; then
	ports
	verdict 'ports of rdma_cm' $?
fi

if [ -x "$build/test/dropin/errnos-cm" ]; then
	"${0%/*}/../dropin/groups.py" "${0%/*}/../dropin/errnos_cm.txt" rxe0 "$build/test/dropin/errnos-cm"
	verdict 'errnos of rdma_cm' $?
fi

# The same program prints the same lines on soft0, or those that the list has for this device.
"${0%/*}/../dropin/groups.py" "${0%/*}/../dropin/groups.txt" rxe0 "$build/test/dropin/test-groups"
verdict 'verbs program test-groups' $?
"${0%/*}/../dropin/groups.py" "${0%/*}/../dropin/errnos.txt" rxe0 "$build/test/dropin/test-errnos"
verdict 'verbs program test-errnos' $?

# On hugepages, of which the guest has some.
"$build/app/dpdk-testrmem" --in-memory --socket-limit=64 --no-pci --no-telemetry -l 0 -- \
	--dev $device --mode write --size 4096 --burst 8 --ops 800 --seconds 1000 --stats-period 0
verdict 'testrmem over hugepages' $?

# Few of these tests depend on the kernel.
case $(uname -r) in
6.1.*)
	"${0%/*}/bad.sh" "$build"
	verdict 'bad input' $?
	if [ -d "$build/lib/rmem_cm" ]; then
		"${0%/*}/kv.sh" "$build"
		verdict 'dpdk-rmem-kv as two processes' $?
	fi
	;;
esac

"${0%/*}/trouble.sh" "$build"
verdict 'testrmem in trouble' $?

[ $failed = 0 ] && echo PASS || echo FAIL
exit $failed
