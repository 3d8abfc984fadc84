#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Build everything with gcc for arm64, warnings as errors; check the full fences in the code of
# drivers/soft; and run tests of the data path if qemu-user is installed. The packages to link with
# are downloaded once, and kept in build-arm64-root/.

. "$(dirname -- "$0")/common.sh"
. devtools/apt.sh
need meson ninja pkg-config

cross=aarch64-linux-gnu
packages='libc6-dev libdpdk-dev libibverbs-dev librdmacm-dev libssl-dev'
# No tests of paging: MADV_POPULATE_WRITE and process_vm_readv() do not work in the emulator.
tests='atomic cq fake_verbs_data fastreg grace guard_copy key lease_fast_reg lease_mw mbuf mem_fault mw mw_class pool qp
	queue rdma retry send umr wr_info'
# Object, and how many full fences it has at least (doc/memory_order.md).
fences='
mem_rsoft_grace           1
rsoft_post                2
rsoft_engine              1
queue_rsoft_req           1
wire_rwire_resp           1
wire_port_rwire_port_shm  2
'

[ "$(uname -m)" != aarch64 ] || skip "this is arm64: the other gates check it"
for tool in $cross-gcc $cross-objdump apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done

# fetch_root DIR: the packages, of this machine's Debian, unpacked. Fails if they can't be had.
fetch_root() {
	local dir=$1 suite archive deb
	own_archive
	rm -rf "$dir"
	mkdir -p "$dir/tree"
	apt_root "$dir" arm64
	use_suite "$archive" "$suite"
	# shellcheck disable=SC2086  # a list of words
	if ! apt-get "${private[@]}" update </dev/null ||
		! apt-get "${private[@]}" install --yes --download-only --no-install-recommends \
			$packages </dev/null; then
		skip "the packages for arm64 could not be fetched"
	fi
	for deb in "$dir"/archives/*.deb; do
		dpkg-deb -x "$deb" "$dir/tree"
	done
	rm -rf "$dir/archives"
}

# write_cross ROOT FILE: meson's description of the machine. Its pkg-config files are those of ROOT.
write_cross() {
	local libdir=$1/usr/lib/$cross/pkgconfig:$1/usr/share/pkgconfig ccache=
	! command -v ccache >/dev/null || ccache="'ccache', "
	cat >"$2" <<-MESON
		[binaries]
		c = [$ccache'$cross-gcc', '--sysroot=$1']
		ar = '$cross-gcc-ar'
		strip = '$cross-strip'
		pkgconfig = 'pkg-config'
		exe_wrapper = ['qemu-aarch64-static', '-L', '$1']

		[properties]
		sys_root = '$1'
		pkg_config_libdir = '$libdir'

		[host_machine]
		system = 'linux'
		cpu_family = 'aarch64'
		cpu = 'armv8-a'
		endian = 'little'
	MESON
}

if [ ! -f build-arm64-root/done ] || [ "$(<build-arm64-root/done)" != "$packages" ]; then
	say "fetching packages for arm64, once"
	fetch_root build-arm64-root
	write_cross "$root/build-arm64-root/tree" build-arm64-root/cross.ini
	rm -rf build-arm64
	echo "$packages" >build-arm64-root/done
fi
if [ ! -f build-arm64/build.ninja ]; then
	rm -rf build-arm64
	meson setup build-arm64 --cross-file build-arm64-root/cross.ini -Dwerror=true \
		-Doptimization=1 -Ddefault_library=static \
		-Dc_args='-Wno-format-truncation -Wno-maybe-uninitialized'
fi
ninja --quiet -k 0 -C build-arm64

while read -r object wanted; do
	[ -n "$object" ] || continue
	file=build-arm64/lib/rmem/librmem.a.p/.._.._drivers_soft_$object.c.o
	nb=$($cross-objdump -d --no-show-raw-insn "$file" | grep -cE $'\tdmb[ \t]+ish$' || true)
	[ "$nb" -ge "$wanted" ] || die "$object.c has $nb full fences, expected: $wanted or more"
done <<<"$fences"
say "the full fences are in the code"

if ! command -v qemu-aarch64-static >/dev/null; then
	say "built, and no test run: qemu-aarch64-static is not installed"
	exit 0
fi
# shellcheck disable=SC2086  # a list of words
meson test -C build-arm64 --no-rebuild --print-errorlogs --timeout-multiplier 4 $tests
