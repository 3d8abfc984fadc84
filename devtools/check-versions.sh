#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Other versions of rdma-core: that of each suite of Debian named (trixie and sid by default). Build the drop-in
# library with its headers, warnings as errors; compare the exports of its libraries with those of the drop-in
# (check-exports.py); and run the test of its new functions. Packages are downloaded and unpacked, not installed;
# with RMEM_KEEP=1 those of the run before are used.

. "$(dirname -- "$0")/common.sh"
. devtools/apt.sh
need cc meson ninja nm pkg-config

packages='libibverbs-dev libibverbs1 librdmacm-dev librdmacm1t64'

# fetch SUITE DIR: its packages, unpacked in DIR/tree. Fails, with a reason in DIR/log, if they can't be had.
fetch() {
	local suite archive deb
	own_archive
	suite=$1
	rm -rf "$2"
	apt_root "$2"
	use_suite "$archive" "$suite"
	# shellcheck disable=SC2086  # a list of words
	(apt-get "${private[@]}" update && cd "$2" && apt-get "${private[@]}" download $packages) \
		</dev/null >"$2/log" 2>&1 || return 1
	mkdir "$2/tree"
	for deb in "$2"/*.deb; do dpkg-deb -x "$deb" "$2/tree"; done
	rm -rf "$2"/*.deb "$2/lists"
}

# describe TREE: pkg-config files of the unpacked packages, whose headers are those of a system. Prints the folder.
describe() {
	local file from
	from=$(dirname -- "$(find "$1/usr" -name libibverbs.pc)")
	mkdir -p "$1/pkgconfig"
	for file in "$from"/lib{ibverbs,rdmacm}.pc; do
		sed -E "s#/usr#$1/usr#; /^Requires.private/d; s#^Cflags:.*#Cflags: -isystem $1/usr/include#" \
			"$file" >"$1/pkgconfig/${file##*/}"
	done
	echo "$1/pkgconfig"
}

# check SUITE
check() {
	local dir=build-versions-$1 tree=$root/build-versions-$1/packages/tree libraries version
	if [ "${RMEM_KEEP:-0}" = 0 ] || [ ! -d "$tree" ]; then
		fetch "$1" "$dir/packages" || {
			say "$1: not checked: $(tail -n 1 "$dir/packages/log")"
			return 0
		}
	fi
	libraries=$(describe "$tree")
	version=$(sed -n 's/^Version: *//p' "$libraries/libibverbs.pc")
	PKG_CONFIG_PATH=$libraries CC=$(compiler gcc) setup_build "$dir/build" -Dwerror=true -Dtests=false \
		-Dapps=false -Dbuildtype=debug -Ddefault_library=static >"$dir/log" 2>&1 || {
		tail -n 20 "$dir/log"
		return 1
	}
	ninja --quiet -k 0 -C "$dir/build" dropin/librmem_ibv.so dropin/librmem_ibv_core.so || return 1
	devtools/check-exports.py "$tree" "$dir/build/dropin/librmem_ibv.so" || return 1
	checked+=" $1 (rdma-core $version)"
	grep -q ibv_create_comp_cntr "$tree/usr/include/infiniband/verbs.h" || return 0
	cc -Wall -Wextra -Werror -D_GNU_SOURCE -isystem "$tree/usr/include" -o "$dir/test" \
		test/dropin/test_versions.c "$dir/build/dropin/librmem_ibv.so" -l:libibverbs.so.1 -pthread || return 1
	LD_PRELOAD=$root/$dir/build/dropin/librmem_ibv.so timeout 300 "$dir/test"
}

checked='' failed=''
[ $# != 0 ] || set -- trixie sid
for suite; do check "$suite" || failed+=" $suite"; done
[ -z "$failed" ] || die "FAILED:$failed"
[ -n "$checked" ] || skip "no suite could be fetched"
say "built, compared and tested:$checked"
