#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Install to a temporary prefix; build an external application and an external driver with pkg-config
# from it, shared and static, and with CMake, and run them. The tree must remain unchanged.

. "$(dirname -- "$0")/common.sh"
need cc cmake git make meson ninja nm pkg-config

tree_state() {
	tree_files '*' | xargs -0 cksum
}

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-install.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
before=$(tree_state)

setup_install_build --prefix="$tmp/rmem"
ninja --quiet -k 0 -C build-install
meson install -C build-install --no-rebuild --quiet

libdir=$(dirname "$(find "$tmp/rmem" -name librmem.so | head -n 1)")
[ -f "$libdir/pkgconfig/rmem.pc" ] || die "no rmem.pc was installed"
export PKG_CONFIG_PATH=$libdir/pkgconfig XDG_RUNTIME_DIR=$tmp

# The exports of a library are exactly those of its map.
for library in lib/*/; do
	name=$(basename "$library")
	[ "$name" != rmem_cm ] || pkg-config --exists libibverbs librdmacm || continue
	diff <(sed -n 's/^\t\(rmem_[a-z0-9_]*\);.*/\1/p' "$library/version.map" | sort) \
		<(nm -D --defined-only "$libdir/lib$name.so" | sed -n 's/.* [A-Z] \(rmem_\w*\).*/\1/p' | sort) ||
		die "lib$name.so does not export what $library""version.map says (<)"
done

# A static program has the names of all archives: each global symbol has a prefix of rmem.
for archive in "$libdir"/librmem*.a; do
	foreign=$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' |
		grep -vE '^(__)?(ibcm|rmem|rsoft|rwire|rverbs)_' | sort -u | tr '\n' ' ' || true)
	[ -z "$foreign" ] || die "${archive##*/}: global symbols without a prefix of rmem: $foreign"
done

# consumer NAME: runs it outside the tree, like an external application.
consumer() {
	cd "$tmp"
	"$@" --no-huge -m 64 --no-pci --no-telemetry
	cd "$root"
}

cp devtools/consumer/main.c "$tmp"
read -r -a flags <<<"$(pkg-config --cflags --libs rmem)"
cc -Wall -Wextra -o "$tmp/shared" "$tmp/main.c" "${flags[@]}"
say "shared:"
LD_LIBRARY_PATH=$libdir consumer ./shared

# An external driver: that of doc/writing_a_driver.md.
{
	echo '#include <string.h>'
	for part in state dev objects qp fp driver; do
		test/check_examples.py --print "null_$part"
	done
	cat devtools/consumer/driver.c
} >"$tmp/driver.c"
cc -Wall -Wextra -o "$tmp/driver" "$tmp/driver.c" "${flags[@]}"
say "driver:"
LD_LIBRARY_PATH=$libdir consumer ./driver

# What doc/start.md has users do with a prefix of their own, with nothing else set.
say "doc/start.md:"
mkdir "$tmp/hello"
test/check_examples.py --print readme >"$tmp/hello/hello.c"
# shellcheck disable=SC2016  # not to be expanded
commands=$(sed -n '/^## Use from/,/^## /{/^libdir=/,/^```/{/^```/!p}}' doc/start.md)
(cd "$tmp/hello" && env -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH HOME="$tmp" bash -euc "$commands") |
	tee "$tmp/hello/out"
grep -qx 'SUCCESS: hello' "$tmp/hello/out" || die "the smallest program does not say SUCCESS"

say "CMake:"
# shellcheck disable=SC2016  # not to be expanded
sed -n '/^```cmake/,/^```/{/^```/!p}' doc/start.md >"$tmp/hello/CMakeLists.txt"
cmake -S "$tmp/hello" -B "$tmp/hello/build" -DCMAKE_PREFIX_PATH="$tmp/rmem" >"$tmp/hello/out"
cmake --build "$tmp/hello/build" >>"$tmp/hello/out" || { cat "$tmp/hello/out"; exit 1; }
consumer hello/build/hello | tee "$tmp/hello/out"
grep -qx 'SUCCESS: hello' "$tmp/hello/out" || die "the smallest program, built by CMake, does not say SUCCESS"

# The example that others start from: as installed, and built from its own files alone.
kv=(--no-huge -m 64 --no-pci --no-telemetry --no-shconf
	--lcores "(0-1)@($(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status))"
	-- --keys 5 --gets 100 --lease-ms 100)
mkdir "$tmp/kv"
cp app/kv/*.[ch] "$tmp/kv"
rm "$tmp/kv/conn_none.c"
cc -Wall -Wextra -o "$tmp/kv/kv" "$tmp"/kv/*.c "${flags[@]}"
cd "$tmp"
say "rmem/bin/dpdk-rmem-kv:" # finds the libraries itself, also where the prefix was moved
mv "$tmp/rmem" "$tmp/moved"
env -u LD_LIBRARY_PATH moved/bin/dpdk-rmem-kv "${kv[@]}"
mv "$tmp/moved" "$tmp/rmem"
say "kv/kv:"
LD_LIBRARY_PATH=$libdir kv/kv "${kv[@]}"
cd "$root"

# The examples as a user builds them, from what is installed.
cp -r "$tmp/rmem/share/rmem/examples" "$tmp"
make -s -C "$tmp/examples"
for program in lease pool l2fwd-plain l2fwd extbuf reconnect storage; do
	say "example $program:"
	LD_LIBRARY_PATH=$libdir consumer "examples/$program" --no-shconf --vdev net_null0 --vdev net_null1
done

# Without the shared libraries, only the archives are left to link with.
rm "$libdir"/librmem*.so*
read -r -a flags <<<"$(pkg-config --cflags rmem) $(pkg-config --static --libs rmem)"
cc -Wall -Wextra -o "$tmp/static" "$tmp/main.c" "${flags[@]}"
say "static:"
consumer ./static

diff <(echo "$before") <(tree_state) || die "the tree changed meanwhile"
