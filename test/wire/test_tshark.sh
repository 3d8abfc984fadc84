#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The packets of the conformance suite, recorded with pcap=, are valid for tshark, and their ICRC is the
# one that zlib calculates: over a UDP socket with IPv4, and over an ethdev port with IPv6.
#
# usage: test_tshark.sh PATH_TO_CONFORMANCE

set -u
here=$(dirname -- "$(realpath -- "$0")")
. "$here/../app/said.sh"

program=$(realpath -- "${1:?path to dpdk-test-rmem-conformance}")
if ! command -v tshark >/dev/null; then
	echo 'skipped: no tshark (devtools/install-deps.sh all)'
	exit 77
fi
enter_scratch
# Configuration of tshark; no warning for root.
export HOME=$PWD

eal=(--no-huge --no-shconf -m 128 --no-pci --no-telemetry --log-level='*rmem*:emergency')
# tshark looks for protocols in the payload, which is random here.
options=(-o infiniband.identify_payload:FALSE --disable-protocol idp)
for name in $(tshark -G heuristic-decodes 2>/dev/null | awk '$1 == "infiniband.payload" { print $2 }'); do
	[ "$name" = ethertype ] || options+=(--disable-protocol "$name")
done

# record FILE ARGUMENTS CASES [EAL options]
record() {
	local file=$1 args=$2 cases=$3
	shift 3
	"$program" "${eal[@]}" "$@" -- --dev "soft0,loop=1,pcap=$file,$args" "$cases" >out 2>err \
		</dev/null
	rc=$?
	verdict "the conformance suite with $args" $rc
}

# dissect FILE NAME: each packet is RoCEv2, and none is malformed.
dissect() {
	tshark -r "$1" "${options[@]}" -Y '!infiniband || _ws.malformed' >out 2>err
	rc=$?
	[ "$rc" = 0 ] && [ ! -s out ]
	verdict "tshark dissects $2" $?
	"$here/check_icrc.py" "$1" >out 2>err
	rc=$?
	verdict "the ICRC of $2" $rc
}

passed=0 failed=0
record udp.pcap ip=127.0.16.1,mtu=1024 '*'
dissect udp.pcap 'packets over IPv4'
# tshark 4.0 knows the opcodes of XRC and not its header.
tshark -r udp.pcap -Y 'infiniband.bth.opcode >= 0xa0' -T fields -e infiniband.bth.opcode 2>err |
	sort -nu | tr '\n' ' ' >out
grep -q '164 .*170 .*172 .*176 177 178 .*180 .*183' out
verdict 'tshark finds opcodes of XRC' $?
record eth.pcap 'ip=2001:db8::9,port=eth:0,fault=loss:0.001;dup:0.1;reorder:4;seed:1' '*' \
	--vdev net_ring0
dissect eth.pcap 'packets over IPv6'
record bad.pcap 'ip=127.0.16.2,fault=corrupt:0.01;seed:2' right
! "$here/check_icrc.py" bad.pcap >out 2>err
verdict 'corrupted packets have another ICRC' $?
echo "$passed passed, $failed failed"
[ $failed = 0 ]
