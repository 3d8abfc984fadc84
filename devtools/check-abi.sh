#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Compare the ABI of the libraries with the dumps in devtools/abi/, by abidiff. With --update, store
# the current ABI. Before 1.0 a change is permitted if the same commit updates the dump.

. "$(dirname -- "$0")/common.sh"
need abidw abidiff gzip meson ninja pkg-config

# Types of DPDK are part of some calls, so one version is the judge.
wanted=22.11
dpdk=$(pkg-config --modversion libdpdk)
[[ $dpdk == "$wanted".* ]] || skip "the dumps are of DPDK $wanted, here is $dpdk"

setup_install_build --prefix=/usr/local
ninja --quiet -k 0 -C build-install

tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-abi.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/headers"
mapfile -d '' -t headers < <(tree_files 'lib/*.h' | grep -zv '_priv\.h$')
cp -- "${headers[@]}" "$tmp/headers"

changed=0
for library in lib/*/; do
	name=$(basename "$library")
	object=build-install/lib/$name/lib$name.so
	if [ ! -e "$object" ]; then
		say "lib$name was not built: not compared"
		continue
	fi
	abidw --headers-dir "$tmp/headers" --drop-private-types --exported-interfaces-only \
		--no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --type-id-style hash \
		--out-file "$tmp/$name.abi" "$object"
	if [ "${1:-}" = --update ]; then
		mkdir -p devtools/abi
		gzip -9nc "$tmp/$name.abi" >"devtools/abi/$name.abi.gz"
		continue
	fi
	gzip -dc "devtools/abi/$name.abi.gz" >"$tmp/stored.abi"
	if ! abidiff "$tmp/stored.abi" "$tmp/$name.abi"; then
		say "lib$name changed; to store it with the change: devtools/check-abi.sh --update"
		changed=$((changed + 1))
	fi
done
[ "$changed" = 0 ] || die "$changed libraries differ from devtools/abi/"
