#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in a guest (run.sh): invalid configurations of a device, with dpdk-testrmem. Each is refused with
# status 1 and one log line of the driver, which is compared. Sets the network interface down and up
# again. Prints a line for each unexpected result, and the number of tests.
# usage: bad.sh BUILD

# A copy in a directory of the guest, since an ordinary user may have no access to BUILD.
dir=$(mktemp -d /tmp/bad.XXXXXX)
(cd "$1" && find app/dpdk-testrmem lib/*/lib*.so* -maxdepth 0 ! -type d -print0 |
	xargs -0 cp -d --parents -t "$dir")
chmod -R a+rX "$dir"
app=$dir/app/dpdk-testrmem
eal='--no-huge -m 32 --no-shconf --no-pci --no-telemetry -l 0'
run='--mode write --burst 8 --ops 100 --seconds 1000 --stats-period 0 --size 4096'
uverbs=/dev/infiniband/uverbs0
netdev=$(rdma link show rxe0/1 | sed -n 's/.*netdev \([^ ]*\).*/\1/p')
out=$dir/out
trap 'rm -rf "$dir"' EXIT
failed=0
cases=0

fail() {
	echo "FAILED: $*"
	sed 's/^/    /' "$out"
	failed=$((failed + 1))
}

# refused LINE COMMAND...: the driver logs this line, a regular expression, and no other.
refused() {
	line=$1
	shift
	cases=$((cases + 1))
	"$@" >"$out" 2>&1
	status=$?
	[ $status = 1 ] || fail "exit status $status, not 1: $*"
	grep -q "^rmem_verbs: .*$line" "$out" || fail "no line '$line': $*"
	# (Of a notice, where the kernel has on-demand MRs.)
	[ "$(grep '^rmem_verbs: ' "$out" | grep -vc 'on-demand MRs are not offered')" = 1 ] ||
		fail "more than one line: $*"
	if grep -q 'hugepages' "$out"; then
		fail "hugepages have nothing to do with it: $*"
	fi
}

# open ARGUMENTS [OPTION...]: with a device of these arguments.
open() {
	args=$1
	shift
	# shellcheck disable=SC2086  # several words
	"$app" $eal -- --dev "verbs0$args" $run "$@"
}

# open_as_user KIB ARGUMENTS [OPTION...]: as an ordinary user with this limit of locked memory.
# shellcheck disable=SC2317  # refused calls it
open_as_user() {
	kib=$1 args=$2
	shift 2
	# shellcheck disable=SC2016,SC2086  # for the other shell; several words
	setpriv --reuid=65534 --regid=65534 --clear-groups -- env XDG_RUNTIME_DIR=/tmp \
		sh -c 'ulimit -l "$1" && shift && exec "$@"' sh "$kib" \
		"$app" $eal -- --dev "verbs0$args" $run "$@"
}

refused "ibdev=mlx5_9: no such RDMA device (rxe0)\$" open ,ibdev=mlx5_9
refused 'rxe0: port=2: no such port (1 to 1)$' open ,port=2
refused 'port 1 has no usable GID 9 among' open ,gid=9
refused 'port 1 has no usable GID 1\.2\.3\.4 among' open ,gid=1.2.3.4
refused 'port 1 has no usable GID banana among' open ,gid=banana
refused "mtu='1000': invalid value (active, 256, 512, 1024, 2048, 4096)\$" open ,mtu=1000

# The limit is reached when the device is probed, by the first MR, or by a later one.
refused 'probe: ibv_reg_mr: .*RLIMIT_MEMLOCK allows 0 bytes.*raise it with ulimit' open_as_user 0 ''
refused 'ibv_reg_mr: .*RLIMIT_MEMLOCK allows 65536 bytes.*raise it with ulimit' \
	open_as_user 64 '' --depth 64
refused 'ibv_reg_mr: .*RLIMIT_MEMLOCK allows 1572864 bytes.*raise it with ulimit' \
	open_as_user 1536 '' --depth 256

chmod 600 $uverbs
refused "rxe0: cannot be opened: Permission denied ($uverbs must be readable and writable)\$" \
	open_as_user unlimited ''
chmod 666 $uverbs

ip addr flush dev "$netdev"
refused "port 1 has no usable GID $RMEM_ADDR among .*configure an address of its network interface" \
	open ",gid=$RMEM_ADDR"
refused 'rxe0: no QP can be connected over port 1 by GID 0, fe80::.*: configure an address' \
	open ''
ip link set "$netdev" down
refused 'port 1 is not active: state [0-9]* (check the link)$' open ''

# Afterwards the device works. The address becomes a GID with a delay.
ip link set "$netdev" up
ip addr add "$RMEM_ADDR/24" dev "$netdev"
until open ",gid=$RMEM_ADDR" >"$out" 2>&1; do
	:
done
[ $failed = 0 ] && echo "$cases kinds of bad input, each refused with one line"
exit $((failed != 0))
