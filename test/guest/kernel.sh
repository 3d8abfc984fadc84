#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fetch a Debian kernel for the guest, once: kernel.sh 6.1|new|VERSION DIR
#
# Prints the directory below DIR with vmlinuz, modules/ (uncompressed .ko files, named in load order) and
# version. Exit status 77, with the reason, if there is no such kernel. apt has a root of its own
# (devtools/apt.sh). The kernel is unpacked, never installed.

set -euo pipefail

# Modules to load, each after its dependencies. Built-in ones are omitted.
# rdma_rxe of 6.1 needs crc32_generic, an undeclared dependency.
wanted="virtio_pci virtio_console virtio_net 9p 9pnet_virtio overlay dummy veth crc32_generic"
wanted+=" rdma_rxe ib_uverbs rdma_ucm"
# Of one test; what a kernel does not have is left out.
extra=${RMEM_GUEST_MODULES:-}
wanted+=${extra:+ $extra}
# Suites of Debian with newer kernels than Debian 12, the preferred one first.
new_suites="trixie-backports forky"
fetch_limit=600

skip() {
	echo "skipped: $*" >&2
	exit 77
}

name=$1
cache=$2
case $name in
new) pattern='[0-9][0-9.]*' ;;
*) pattern=${name//./\\.}'(\.[0-9.]+)?' ;;
esac
dir=$cache/$name${extra:+-${extra// /-}}

is_cached() {
	[ -f "$dir/version" ] && [ "$(<"$dir/wanted")" = "$wanted" ]
}

mkdir -p "$cache" || exit
if is_cached; then
	echo "$dir"
	exit 0
fi
# One process fetches, others wait for it.
exec 9>"$cache/lock"
flock 9
if is_cached; then
	echo "$dir"
	exit 0
fi
for tool in apt-get apt-cache dpkg dpkg-deb depmod modprobe xz; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null ||
		skip "no kernel: $tool is not installed (devtools/install-deps.sh guest)"
done
PATH=$PATH:/usr/sbin:/sbin
[ "$(dpkg --print-architecture)" = amd64 ] || skip "no kernel: this is not a Debian amd64 machine"

tmp=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
mkdir "$tmp/tree"
# shellcheck source=../../devtools/apt.sh
. "$(dirname -- "$0")/../../devtools/apt.sh"
apt_root "$tmp"

# newest_image: print the newest kernel package, of no flavour, of the requested version.
newest_image() {
	timeout $fetch_limit apt-get "${private[@]}" update >"$tmp/log" 2>&1 </dev/null || return 1
	apt-cache "${private[@]}" pkgnames linux-image- |
		grep -xE "linux-image-$pattern(-[0-9]+|\+deb[0-9.]+)-amd64" | sort -V | tail -n 1
}

archive=$(mirror '(old)*(stable|testing)|unstable|sid|bullseye|bookworm|trixie|forky')
security=$(mirror '[a-z]+-security')
[ -n "$archive" ] || skip "no kernel: this machine's apt has no Debian archive"

image=
if [ "$name" = 6.1 ]; then
	use_suite "$archive" bookworm
	[ -z "$security" ] || use_suite "$security" bookworm-security
	image=$(newest_image) || true
else
	for suite in $new_suites; do
		: >"$tmp/sources.list"
		use_suite "$archive" "$suite"
		image=$(newest_image) || true
		[ -z "$image" ] || break
	done
fi
if [ -z "$image" ]; then
	sed 's/^/  /' "$tmp/log" >&2
	skip "no kernel $name to be had by apt"
fi

# Since 7.x the image package is empty and depends on two that have its parts.
parts=$(apt-cache "${private[@]}" depends "$image" |
	sed -nE 's/^ *Depends: (linux-(binary|modules)-.*)/\1/p')
echo "getting ${image#linux-image-} by apt, once" >&2
# shellcheck disable=SC2086  # a list of words
if ! (cd "$tmp" && timeout $fetch_limit apt-get "${private[@]}" download $image $parts) \
	>"$tmp/log" 2>&1 </dev/null; then
	sed 's/^/  /' "$tmp/log" >&2
	skip "the packages of kernel $name could not be fetched"
fi

version=${image#linux-image-}
tree=$tmp/tree
for deb in "$tmp"/*.deb; do
	dpkg-deb -x "$deb" "$tree"
done
[ -d "$tree/lib/modules" ] || ln -s usr/lib "$tree/lib"
depmod -b "$tree" "$version" 2>/dev/null

mkdir -p "$tmp/new/modules"
# shellcheck disable=SC2086  # a list of words
modprobe -C /dev/null -d "$tree" -S "$version" --show-depends -a $wanted 2>/dev/null |
	awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$tmp/order" || true
count=100
while read -r module; do
	count=$((count + 1))
	target=$tmp/new/modules/$count-$(basename "${module%.xz}")
	case $module in
	*.xz) xz -dc "$module" >"$target" ;;
	*) cp "$module" "$target" ;;
	esac
done <"$tmp/order"
cp "$tree/boot/vmlinuz-$version" "$tmp/new/vmlinuz" 2>/dev/null ||
	cp "$tree/lib/modules/$version/vmlinuz" "$tmp/new/vmlinuz"
grep -q /rdma_rxe.ko "$tmp/order" || skip "kernel $version has no rdma_rxe"
echo "$wanted" >"$tmp/new/wanted"
echo "$version" >"$tmp/new/version"
chmod -R a+rX "$tmp/new"
rm -rf "$dir"
mv "$tmp/new" "$dir"
echo "$dir"
