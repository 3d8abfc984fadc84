# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Roots of Debian, made by debootstrap with the mirror and keys of this machine, in which a gate runs
# commands. Sourced after common.sh and apt.sh, never run.
# shellcheck disable=SC2154  # their variables

# For the shell in the namespaces: enter the root $1, mounted at $2, and run a command in the directory $3.
# shellcheck disable=SC2016
enter='
	mount --bind "$1" "$2"
	cd "$2"
	mount -t proc proc proc
	mount -t sysfs -o ro sysfs sys
	mount --rbind /dev dev
	mount -t tmpfs tmpfs dev/shm
	mount -t tmpfs tmpfs run
	# After chroot no program could make a user namespace.
	pivot_root . mnt
	umount --lazy /mnt
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	exec env --chdir="$3" "${@:4}"'

# contained COMMAND...: run it in namespaces of its own. It ends with the shell that calls this. Job control
# gives it a process group, and this shell waits: so Ctrl-C ends this shell at once, where the command, the
# first process of a namespace, would ignore it.
contained() {
	set -m
	setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$@" </dev/null &
	set +m
	wait $!
}

# need_roots: ends a gate where no root can be made or entered. It tries the latter with that of this machine.
need_roots() {
	local tool mnt reason rc=0
	[ "$(id -u)" = 0 ] || skip "not root: cannot make a root of Debian"
	for tool in debootstrap unshare setpriv apt-get; do
		command -v $tool >/dev/null || skip "$tool is not installed"
	done
	mnt=$(mktemp -d)
	reason=$(contained bash -euc "$enter" - / "$mnt" / unshare --net true 2>&1) || rc=$?
	rmdir "$mnt"
	[ $rc = 0 ] || skip "no root can be entered: ${reason##*$'\n'}"
}

# own_root DIR: create the directory of roots, and keep others from it until this shell ends.
own_root() {
	local path=$root/$1/ fd
	mkdir -p "$1"
	exec {fd}<"$1"
	flock --nonblock "$fd" || die "$path: another process uses it"
	# What is mounted below a directory would be emptied with it.
	! grep -qF " ${path// /\\040}" /proc/self/mountinfo || die "$path: first unmount what is mounted there"
}

# make_root DIR SUITE: a minimal root in DIR/root, with an empty directory rmem, unless DIR/done exists.
make_root() {
	# shellcheck disable=SC2034  # own_archive sets it, which must not be that of the caller
	local proxy='' suite archive
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[ -z "$proxy" ] || export http_proxy=$proxy
	if [ ! -f "$1/done" ]; then
		own_archive
		say "making a root of $2"
		mkdir -p "$1"
		find "$1" -mindepth 1 -delete
		contained debootstrap --variant=minbase --keyring="$(keyring)" "$2" "$1/root" "$archive" \
			>"$1/debootstrap.log" 2>&1 || skip "no root of $2: $(tail -n 1 "$1/debootstrap.log")"
		mkdir "$1/root/rmem"
		echo force-unsafe-io >"$1/root/etc/dpkg/dpkg.cfg.d/rmem"
		# The mirror may be a snapshot.
		printf '%s\n' 'Acquire::Retries "3";' 'Acquire::Check-Valid-Until "false";' \
			>"$1/root/etc/apt/apt.conf.d/rmem"
		touch "$1/done"
	fi
	cp -L --remove-destination /etc/resolv.conf "$1/root/etc/resolv.conf" 2>/dev/null || true
}

# in_root DIR COMMAND...: run it in the directory rmem of the root.
in_root() {
	local dir=$root/$1/root
	HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		contained env -u TMPDIR -u XDG_RUNTIME_DIR bash -euc "$enter" - "$dir" "$dir" /rmem "${@:2}"
}

# copy_tree ROOT: the tree, and a build of before.
copy_tree() {
	find "$1/rmem" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	tree_files '*' | xargs -0 cp -a --parents -t "$1/rmem"
}
