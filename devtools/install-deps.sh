#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Install missing packages that rmem needs, with apt-get (Debian, Ubuntu).
# If none is missing it needs neither the network nor root.

set -euo pipefail

usage() {
	cat <<-EOF
	usage: ${0##*/} [build|programs|bench|guest|all]
	  build     what it takes to build and run rmem (the default)
	  programs  that, and the programs of verbs that devtools/check-dropin.sh runs
	  bench     the first, and what devtools/bench.sh needs
	  guest     the first, and what test/guest needs
	  all       the first, and what devtools/test.sh needs
	EOF
}

# One a line: the package, and the command that succeeds where it is there already. One with a question
# mark is left out where the release does not have it.
build_set='
gcc              command -v gcc
libc6-dev        test -e /usr/include/stdio.h
pkg-config       command -v pkg-config
meson            command -v meson
ninja-build      command -v ninja
libdpdk-dev      pkg-config --exists libdpdk
libssl-dev       pkg-config --exists libcrypto
libibverbs-dev   pkg-config --exists libibverbs
librdmacm-dev    pkg-config --exists librdmacm
python3          command -v python3
'
# shellcheck disable=SC2016  # for the shell that runs the command
programs_set='
ibverbs-utils    command -v ibv_devinfo
infiniband-diags PATH=$PATH:/usr/sbin:/sbin command -v ibstat
rdmacm-utils     command -v rping
qperf            command -v qperf
fio              command -v fio
python3-pyverbs  /usr/bin/python3 -c "import pyverbs"
python3-pytest   /usr/bin/python3 -c "import pytest"
ucx-utils        command -v ucx_perftest
libfabric-bin    command -v fi_pingpong
libfabric-dev    test -e /usr/include/rdma/fabric.h
openmpi-bin      command -v mpirun
libopenmpi-dev   command -v mpicc
perftest         command -v ib_write_bw
qemu-system-x86  command -v qemu-system-x86_64
mpich            command -v mpiexec.mpich
libmpich-dev     command -v mpicc.mpich
g++              command -v g++
libgloo-dev      test -e /usr/include/gloo/config.h
?dapl2-utils     command -v dtest
tgt              PATH=$PATH:/usr/sbin:/sbin command -v tgtd
libiscsi-bin     command -v iscsi-inq
qemu-utils       command -v qemu-img
qemu-block-extra compgen -G "/usr/lib/*/qemu/block-iscsi.so"
ceph-mon         command -v ceph-mon
ceph-osd         command -v ceph-osd
ceph-common      command -v rados
libjemalloc2     compgen -G "/usr/lib/*/libjemalloc.so.2"
libtcmalloc-minimal4 compgen -G "/usr/lib/*/libtcmalloc_minimal.so.4"
librpma-dev      test -e /usr/include/librpma.h
iproute2         PATH=$PATH:/usr/sbin:/sbin command -v ip
'
# shellcheck disable=SC2016  # for the shell that runs the command
check_set='
git              command -v git
clang            command -v clang
libclang-rt-dev  test -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")"
clang-format     command -v clang-format
clang-tidy       command -v clang-tidy
cppcheck         command -v cppcheck
cmake            command -v cmake
codespell        command -v codespell
debhelper        command -v dh
debootstrap      PATH=$PATH:/usr/sbin:/sbin command -v debootstrap
doxygen          command -v doxygen
furo             /usr/bin/python3 -c "import furo"
lintian          command -v lintian
mandoc           command -v mandoc
python3-myst-parser /usr/bin/python3 -c "import myst_parser"
python3-sphinx   command -v sphinx-build
shellcheck       command -v shellcheck
abigail-tools    command -v abidw
libsystemd-dev   pkg-config --exists libsystemd
dpdk-dev         command -v dpdk-telemetry.py
tshark           command -v tshark
tmux             command -v tmux
gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
qemu-user-static command -v qemu-aarch64-static
'
# shellcheck disable=SC2016  # for the shell that runs the command
guest_set='
qemu-system-x86   command -v qemu-system-x86_64
busybox-static    command -v busybox && ! ldd "$(command -v busybox)"
util-linux        command -v setpriv
iproute2          PATH=$PATH:/usr/sbin:/sbin command -v rdma
kmod              PATH=$PATH:/usr/sbin:/sbin command -v depmod
xz-utils          command -v xz
ibverbs-providers ls /usr/lib/*/libibverbs/librxe-*.so
ibverbs-utils     command -v ibv_rc_pingpong
perftest          command -v ib_write_bw
tgt               PATH=$PATH:/usr/sbin:/sbin command -v tgtd
open-iscsi        PATH=$PATH:/usr/sbin:/sbin command -v iscsid
rdmacm-utils      command -v rping
'

bench_set='
ucx-utils        command -v ucx_perftest
libfabric-bin    command -v fi_pingpong
gnuplot-nox      command -v gnuplot
util-linux       command -v taskset
'

# missing SET: the packages of the set whose command fails.
missing() {
	local package probe
	while read -r package probe; do
		if [ -z "$package" ] || bash -c "$probe" </dev/null >/dev/null 2>&1; then continue; fi
		[[ $package != \?* ]] || [ -n "$(apt-cache madison "${package#\?}" 2>/dev/null)" ] || continue
		printf '%s\n' "${package#\?}"
	done <<<"$1"
}

case ${1:-build} in
build) wanted=$build_set ;;
bench) wanted=$build_set$bench_set ;;
programs) wanted=$build_set$programs_set ;;
guest) wanted=$build_set$guest_set ;;
all) wanted=$build_set$programs_set$check_set$guest_set ;;
-h | --help) usage && exit 0 ;;
*) usage >&2 && exit 2 ;;
esac

mapfile -t packages < <(missing "$wanted")
if [ ${#packages[@]} = 0 ]; then
	echo "${0##*/}: everything is there"
	exit 0
fi
echo "${0##*/}: missing: ${packages[*]}"

if ! command -v apt-get >/dev/null; then
	echo "${0##*/}: no apt-get here: install the above by this system's own means" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "${0##*/}: not root, and no sudo: run this as root once:" >&2
		echo "  apt-get update && apt-get install --no-install-recommends ${packages[*]}" >&2
		exit 1
	fi
	as_root=(sudo)
fi
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)

# Package lists may be absent or older than what the server still has: fetch them first.
"${as_root[@]}" "${apt[@]}" update ||
	echo "${0##*/}: the package lists could not all be fetched, going on with what is there" >&2
mapfile -t packages < <(missing "$wanted") # with those that only the new lists have
"${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${packages[@]}" </dev/null >/dev/null

mapfile -t packages < <(missing "$wanted")
if [ ${#packages[@]} != 0 ]; then
	echo "${0##*/}: still missing after the install: ${packages[*]}" >&2
	exit 1
fi
echo "${0##*/}: installed"
