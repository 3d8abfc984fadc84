# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by the scripts whose programs run on this machine and in a guest, with a tap device between
# them: wire-host.sh, cm-host.sh, iser-host.sh. They run in a user and network namespace.

here=$(cd -- "$(dirname -- "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

# need PROGRAM...: end the test with status 77 if one is not installed.
need() {
	for program; do
		command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
	done
}

# enter KERNEL BUILD: run the script again, with the argument inside, in namespaces of its own. They
# have no network, so the kernel is fetched before.
enter() {
	if ! [ -w /dev/net/tun ] || ! unshare -rn true 2>/dev/null; then
		echo 'skipped: no tap device in a network namespace'
		exit 77
	fi
	"$here/kernel.sh" "$1" "${RMEM_GUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rmem/guest}" >/dev/null || exit
	exec unshare -rn "$0" "$1" "$2" inside
}

# make_tap IP...: the tap device rmem0, with these addresses of this machine.
make_tap() {
	ip tuntap add rmem0 mode tap && ip link set lo up && ip link set rmem0 mtu 9000 up || exit 77
	for ip; do ip addr add "$ip/24" dev rmem0 || exit 77; done
}
