#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Other versions of Debian than this machine's: for each suite (trixie by default) make a root with
# debootstrap and the mirror of this machine's apt, and run usertools/quickstart.sh and the gates gcc and
# dropin there; build and use the Debian packages, and cross-build those of arm64 (check-package.sh). The gate
# dropin runs as root and as an ordinary user at the same time. On sid, which changes daily, quickstart.sh and
# the gate gcc run alone. Roots and builds are kept in build-SUITE/ and build-package-SUITE/.

. "$(dirname -- "$0")/common.sh"
. devtools/apt.sh
. devtools/root.sh

# alone_in_root DIR COMMAND...: in the root, on a host without peers: the gates of one lane of
# devtools/test.sh use the same addresses. libfabric needs an interface besides the loopback one.
alone_in_root() {
	# shellcheck disable=SC2016  # for the shell in the root
	in_root "$1" unshare --net bash -euc '
		mount -t sysfs -o ro sysfs /sys
		ip link set lo up
		if ip link add rmem0 type veth peer name rmem1; then
			ip address add 198.18.0.1/24 dev rmem0
			ip link set rmem0 up
			ip link set rmem1 up
		fi
		exec "$@"' - "${@:2}"
}

# check SUITE
check() {
	local suite=$1 dir=build-$1 rc=0
	local user='setpriv --reuid=user --regid=user --clear-groups env HOME=/home/user'
	own_root "$dir"
	make_root "$dir" "$suite"
	copy_tree "$dir/root"
	in_root "$dir" usertools/quickstart.sh 1
	in_root "$dir" devtools/install-deps.sh programs
	say "$suite: $(in_root "$dir" gcc --version | head -n 1)," \
		"DPDK $(in_root "$dir" pkg-config --modversion libdpdk)"
	in_root "$dir" true
	[ "$suite" != sid ] || return 0

	in_root "$dir" sh -c 'id user >/dev/null 2>&1 || useradd --create-home user'
	# Both runs write this file of meson, so it must not become root's.
	in_root "$dir" touch build/meson-logs/install-log.txt
	in_root "$dir" chown -R user:user /rmem
	say "$suite: the gate dropin as root"
	# shellcheck disable=SC2086  # a list of words
	alone_in_root "$dir" $user devtools/check-dropin.sh >"$dir/user.log" 2>&1 &
	user_run=$!
	trap 'kill -KILL "$user_run" 2>/dev/null || true' EXIT
	alone_in_root "$dir" devtools/check-dropin.sh || rc=1
	wait "$user_run" || rc=1
	trap - EXIT
	say "$suite: the gate dropin as an ordinary user"
	cat "$dir/user.log"
	return $rc
}

need_roots
[ $# != 0 ] || set -- trixie
for suite; do check "$suite"; done
