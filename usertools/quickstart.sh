#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rmem on a fresh machine: installs what is missing, builds, reserves hugepages, and shows a
# file copied and keys made and revoked. May be run again at any time.

. "$(dirname -- "$0")/../devtools/common.sh"

seconds=${1:-3}
if ! [[ $seconds =~ ^[1-9][0-9]{0,3}$ ]]; then
	echo "usage: ${0##*/} [seconds to measure for, 1 to 9999; 3 by default]" >&2
	exit 2
fi

cat <<EOF
rmem - registered memory for DPDK - on this machine, in five steps:
  1. install what is missing: compiler, meson, DPDK (Debian packages)
  2. build into $root/build; minutes the first time, seconds afterwards
  3. reserve 256 MiB of hugepages, or go on without
  4. copy a real file, every block through its own short-lived key
  5. make and revoke keys for $seconds s, and count
EOF

head_line() {
	printf '\n== %s\n' "$*"
}

tmp=
trap '[ -z "$tmp" ] || rm -rf "$tmp"' EXIT
trap 'echo; say "stopped"; exit 130' INT TERM

head_line "1. install what is missing"
devtools/install-deps.sh build

head_line "2. build"
[ -f build/build.ninja ] || setup_main_build >/dev/null
[ -w build ] || die "$root/build belongs to $(stat -c %U build): remove it or run as that user"
build() {
	if [ -t 1 ]; then ninja -C build; else ninja -C build --quiet; fi
}
if ! build; then
	echo "again, with warnings of this compiler not taken as errors"
	meson configure build -Dwerror=false
	build
fi
echo "build/app/dpdk-testrmem, build/test/dpdk-test-rmem"

head_line "3. hugepages"
pages=/sys/kernel/mm/hugepages/hugepages-2048kB
wanted=128

# Adds what is missing to the reservation, so that one made for others stays as it is.
reserve_hugepages() {
	local free total
	if [ ! -e $pages/nr_hugepages ]; then
		echo "this kernel has no 2 MiB hugepages"
		return 1
	fi
	free=$(<$pages/free_hugepages)
	if [ "$free" -lt $wanted ]; then
		total=$(($(<$pages/nr_hugepages) + wanted - free))
		echo "$free free, reserving up to $total (give back: echo 0 >$pages/nr_hugepages)"
		if [ "$(id -u)" = 0 ]; then
			echo $total 2>/dev/null >$pages/nr_hugepages || true
		elif command -v sudo >/dev/null; then
			sudo tee $pages/nr_hugepages <<<$total >/dev/null 2>&1 || true
		fi
		free=$(<$pages/free_hugepages)
	fi
	echo "$free of 2 MiB are free, it takes $wanted"
	[ "$free" -ge $wanted ]
}

# The first two CPUs this process may use, or the only one.
cpus=$(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , '\n' |
	while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done | head -n 2 | paste -sd,)

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-quickstart.XXXXXX")

# For EAL's runtime files, if any.
export XDG_RUNTIME_DIR=$tmp

# Free hugepages may still be out of reach: limited by a cgroup, or taken by now.
can_use_hugepages() {
	build/app/dpdk-testrmem "${eal[@]}" -- --mode copy --input "$file" --output "$tmp/copy" \
		>"$tmp/log" 2>&1 && return
	echo "EAL can't use them:"
	tail -n 3 "$tmp/log" | sed 's/^/    /'
	return 1
}

# A file that is surely there, and is some megabytes: the compiler proper.
file=$(gcc -print-prog-name=cc1)
[ -f "$file" ] || file=build/app/dpdk-testrmem

# Neither needs EAL's runtime files, whose default directory may belong to another user.
eal=(--in-memory --no-pci --no-telemetry -l "$cpus")
if ! reserve_hugepages || ! can_use_hugepages; then
	echo "going on without: --no-huge (slower, and root could reserve them)"
	eal=(--no-huge -m 256 --no-shconf --no-pci --no-telemetry -l "$cpus")
fi

testrmem() {
	echo "\$ build/app/dpdk-testrmem ${eal[*]} -- $*"
	build/app/dpdk-testrmem "${eal[@]}" -- "$@"
}

head_line "4. copy a real file"
testrmem --dev soft0 --mode copy --input "$file" --output "$tmp/copy"
cmp "$file" "$tmp/copy"
echo "cmp: the copy of $file is the same, byte for byte"

head_line "5. keys made and revoked"
testrmem --dev soft0 --mode fastreg --seconds "$seconds"

cat <<EOF

That was rmem on its software device: no RDMA hardware, no kernel module.
Next: doc/start.md for the API, doc/testrmem.md for what else the tool can do, or
  build/app/dpdk-testrmem ${eal[*]} -- --dev soft0 -i
EOF
