# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# apt with the mirror and keys of this machine and a separate root: it leaves the installed packages
# and the package lists of the machine unchanged. Sourced, never run.

# apt_root DIR [ARCH]: create an empty root in DIR; sets the array private to the options of apt for it.
apt_root() {
	apt_dir=$(realpath -m -- "$1")
	mkdir -p "$apt_dir"/{lists,archives}/partial
	: >"$apt_dir/sources.list"
	touch "$apt_dir/status"
	private=(-qq -o "Dir::Etc::SourceList=$apt_dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$apt_dir/lists" -o "Dir::State::status=$apt_dir/status"
		-o "Dir::Cache=$apt_dir" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
		-o "APT::Sandbox::User=$(id -un)" -o APT::Update::Error-Mode=any
		-o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30
		-o Acquire::Languages=none)
	if [ $# = 2 ]; then
		private+=(-o "APT::Architecture=$2" -o "APT::Architectures=$2")
	fi
}

# mirror REGEX: the archive of which this machine's own apt takes a suite of such a name.
# (apt-get update --print-uris also works where the package lists are empty.)
mirror() {
	apt-get update --print-uris 2>/dev/null |
		sed -nE "s#^'([^']+)/dists/($1)/(In)?Release'.*#\1#p" | head -n 1
}

# own_archive: sets suite to this machine's own, archive to its mirror. Ends a gate that has none.
own_archive() {
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	archive=$(mirror "${suite:-none}")
	[ -n "$archive" ] || skip "this machine's apt has no Debian archive"
}

# keyring: the file of Debian's keys, or nothing.
keyring() {
	local file
	for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
		[ ! -r "$file" ] || { echo "$file" && return; }
	done
}

# use_suite URI SUITE: adds a suite to the root.
use_suite() {
	local keys
	keys=$(keyring)
	echo "deb ${keys:+[signed-by=$keys]} $1 $2 main" >>"$apt_dir/sources.list"
}
