#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Events of the port: its interface is set down and up, its address is removed and added.
#
# usage: test_link.sh PATH_TO_CONFORMANCE

export PATH="$PATH:/usr/sbin:/sbin"
if [ -z "${RMEM_TEST_LINK-}" ]; then
	if ! unshare -rn ip link set lo up 2>/dev/null; then
		echo 'skipped: no network namespace'
		exit 77
	fi
	RMEM_TEST_LINK=lo exec unshare -rn "$0" "$@"
fi

# run ADDRESS
run() {
	"$program" --no-huge --no-shconf -m 64 --no-pci --no-telemetry \
		--log-level='*rmem*:emergency' -- --dev "soft0,ip=$1" link
}

set -e
program=$1
ip link set lo up
run 127.0.0.1

# The state of the port is that of the carrier: the operational state of this interface is never "up".
export RMEM_TEST_LINK=rmem0
if ip link add name $RMEM_TEST_LINK type veth peer name rmem1 2>/dev/null; then
	ip link set rmem1 up
	ip addr add 10.78.0.1/24 dev $RMEM_TEST_LINK
	ip link set $RMEM_TEST_LINK mode dormant
	ip link set $RMEM_TEST_LINK up
	run 10.78.0.1
fi
