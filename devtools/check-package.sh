#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Build the Debian packages, check them with lintian, and use them in minimal roots: install, run
# debian/tests, remove, after which no file may stay. Roots have what the packages depend on; they are
# kept in build-package*/, and made again when the dependencies change.
#
# usage: check-package.sh [SUITE [ARCHITECTURE]]
#
# Without a suite the packages are built on this machine, for its Debian; otherwise in a root of the suite.
# With an architecture they are cross-built there, and dpdk-testrmem of them runs in an emulator.

. "$(dirname -- "$0")/common.sh"
. devtools/apt.sh
. devtools/root.sh

arch=${2-} in_root=no tools='dh doxygen dpkg-buildpackage lintian'
[ $# = 0 ] || in_root=yes tools='dpkg-deb lintian'
dir=build-package${1+-$1}
build=$dir/build${arch:+-$arch}
for tool in $tools; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done
need_roots

# copy_tree DIR: the files of the tree, in an empty directory.
copy_tree() {
	rm -rf "$1"
	mkdir -p "$1"
	tree_files '*' | xargs -0 cp -p --parents -t "$1"
}

# make_build_root: $build, a root with the build dependencies.
make_build_root() {
	local wanted
	wanted=$(sed '/^Package:/,$d' debian/control)
	make_root "$dir/base" "$suite"
	[ "$wanted" != "$(cat "$build/dependencies" 2>/dev/null)" ] || return 0
	say "installing the build dependencies, once"
	rm -rf "$build"
	cp -a "$dir/base" "$build"
	copy_tree "$build/root/rmem/rmem"
	# shellcheck disable=SC2016  # for the shell in the root
	in_root "$build" bash -euc '
		[ -z "$1" ] || dpkg --add-architecture "$1"
		install="apt-get -qq --yes --no-install-recommends"
		apt-get -qq update
		$install install build-essential ${1:+crossbuild-essential-$1}
		$install build-dep ${1:+--arch-only --host-architecture $1} /rmem/rmem
		apt-get clean' - "$arch" >"$dir/build.log" 2>&1 || failed
	echo "$wanted" >"$build/dependencies"
}

failed() {
	tail -n 40 "$dir/build.log"
	die "the packages could not be built"
}

build_packages() {
	local version out=$build/root/rmem options=(-b)
	version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build)
	[[ $(head -n 1 debian/changelog) == "rmem ($version) "* ]] ||
		die "debian/changelog: not of version $version"
	rm -f "$dir"/*.deb "$dir"/*.changes "$dir"/*.buildinfo
	export DEB_BUILD_OPTIONS="parallel=2 noautodbgsym"
	if [ $in_root = no ]; then
		copy_tree "$dir/rmem"
		(cd "$dir/rmem" && PATH=/usr/lib/ccache:$PATH dpkg-buildpackage -us -uc -b) >"$dir/build.log" 2>&1 ||
			failed
	else
		make_build_root
		[ -z "$arch" ] || options=(-B -a "$arch")
		rm -f "$out"/rmem_* "$out"/*.deb
		copy_tree "$out/rmem"
		in_root "$build" env --chdir=/rmem/rmem dpkg-buildpackage -us -uc "${options[@]}" \
			>"$dir/build.log" 2>&1 || failed
		mv "$out"/rmem_*.changes "$out"/rmem_*.buildinfo "$out"/*.deb "$dir"
	fi
	lintian --allow-root --fail-on error,warning "$dir"/rmem_*.changes
}
# files ROOT: what is in a root, except caches, logs and the databases of dpkg and apt.
files() {
	(cd "$dir/$1/root" && find . -mindepth 1 \( -path ./rmem -o -path ./tmp -o -path ./run \
		-o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg \) \
		-prune -o -printf '%P %y %m %l\n' | sort)
}

# prepare ROOT EXTRA PACKAGE...: make the root, with the dependencies of the packages, and with more.
prepare() {
	local name=$1 extra=$2
	shift 2
	dependencies=$extra$(for package; do dpkg-deb -f "$dir"/"$package"_*.deb Depends; done)
	make_root "$dir/base" "$suite"
	if [ "$dependencies" != "$(cat "$dir/$name/dependencies" 2>/dev/null)" ]; then
		rm -rf "${dir:?}/$name"
		cp -a "$dir/base" "$dir/$name"
	fi
	rm -rf "$dir/$name/root/rmem"
	mkdir -p "$dir/$name/root/rmem/doc"
	cp -r debian/tests "$dir"/*.deb "$dir/$name/root/rmem"
	cp doc/start.md "$dir/$name/root/rmem/doc"
	[ ! -f "$dir/$name/dependencies" ] || return 0
	say "$name: installing what the packages depend on, once"
	# shellcheck disable=SC2016,SC2086  # for the shell in the root; a list of words
	in_root "$dir/$name" bash -euc '
		debs=()
		for package in $2; do debs+=("$PWD/$package"_*.deb); done
		apt-get -qq update
		wanted=$(apt-get --no-install-recommends --simulate install "${debs[@]}" $1 |
			sed -n "s/^Inst \([^ ]*\).*/\1/p" | grep -v rmem)
		apt-get -qq --no-install-recommends --yes install $wanted >/dev/null
		apt-get clean' - "$extra" "$*" || die "$name: the dependencies could not be installed"
	echo "$dependencies" >"$dir/$name/dependencies"
}

# use ROOT TEST PACKAGE...: install the packages, run a test, and remove them. If it does not end, or fails,
# the root is made again.
use() {
	local name=$1 script=$2
	shift 2
	rm "$dir/$name/dependencies"
	files "$name" >"$dir/$name/before"
	say "$script:"
	# shellcheck disable=SC2016  # for the shell in the root
	if ! in_root "$dir/$name" unshare --net bash -euc '
		ip link set lo up
		debs=()
		for package in "${@:2}"; do debs+=("$PWD/$package"_*.deb); done
		trap "cat apt.log" ERR
		apt-get --yes --no-install-recommends install "${debs[@]}" >apt.log 2>&1
		trap - ERR
		tests/"$1"
		trap "cat apt.log" ERR
		apt-get --yes purge "${@:2}" >apt.log 2>&1' - "$script" "$@"; then
		die "$script failed"
	fi
	files "$name" >"$dir/$name/after"
	diff "$dir/$name/before" "$dir/$name/after" || die "$name: these files stay after the removal"
	echo "$dependencies" >"$dir/$name/dependencies"
}

# use_cross: the programs are of the architecture, and run in the build root by an emulator.
use_cross() {
	local machine=${arch/arm64/aarch64} emulator deb file
	for deb in "$dir"/*.deb; do
		[ "$(dpkg-deb -f "$deb" Architecture)" = "$arch" ] || die "$deb: not of $arch"
		rm -rf "$dir/tree"
		dpkg-deb -x "$deb" "$dir/tree"
		while IFS= read -r file; do
			readelf -h "$file" | grep -qi "Machine: *$machine" || die "$file: not of $arch"
		done < <(find "$dir/tree" -name '*.so.*' -type f -o -path '*/bin/dpdk-*')
	done
	emulator=$(command -v "qemu-$machine-static") || {
		say "built, and no program run: qemu-$machine-static is not installed"
		return
	}
	say "dpdk-testrmem by ${emulator##*/}:"
	rm "$build/dependencies" # the packages of that architecture replace some of them
	cp "$emulator" "$build/root/rmem"
	# shellcheck disable=SC2016  # for the shell in the root
	in_root "$build" bash -euc '
		apt-get --yes --no-install-recommends install ./librmem0_*.deb ./rmem-tools_*.deb >apt.log 2>&1 ||
			{ cat apt.log && exit 1; }
		"./$1" /usr/bin/dpdk-testrmem --no-huge -m 128 --no-pci --no-shconf --no-telemetry \
			--lcores "0@($2)" -- --mode lease --ops 10000 2>&1 | tee testrmem.out
		apt-get --yes purge librmem0 rmem-tools >apt.log 2>&1
		grep -q "^verified: yes" testrmem.out' - "${emulator##*/}" \
		"$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
}

own_archive
[ $in_root = no ] || suite=$1
own_root "$dir"
build_packages
if [ -n "$arch" ]; then
	cp "$dir"/*.deb "$build/root/rmem"
	use_cross
	exit
fi
prepare runtime 'ibverbs-utils iproute2 perftest' librmem0 rmem-tools
use runtime programs librmem0 rmem-tools
prepare devel 'cmake gcc iproute2 libc6-dev make man-db' librmem0 librmem-dev rmem-tools rmem-doc
use devel build librmem0 librmem-dev rmem-tools rmem-doc
