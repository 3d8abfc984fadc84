#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The fast tests again as an ordinary user, where check-gcc.sh ran them as root.

. "$(dirname -- "$0")/common.sh"
need meson setpriv

[ "$(id -u)" = 0 ] || skip "not root: check-gcc.sh ran as an ordinary user already"
[ -x build/test/dpdk-test-rmem ] || die "nothing built, run devtools/check-gcc.sh first"

# The kernel's id for nobody: no rights, no home.
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs)
"${nobody[@]}" test -x "$root/build/test/dpdk-test-rmem" ||
	skip "an ordinary user can't reach $root"

# For EAL's runtime files, whose default place may belong to another user, and the tests' own.
XDG_RUNTIME_DIR=$(mktemp -d "${TMPDIR:-/tmp}/rmem-user.XXXXXX")
export XDG_RUNTIME_DIR TMPDIR=$XDG_RUNTIME_DIR
trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
chown 65534:65534 "$XDG_RUNTIME_DIR"

run_suite build fast-tests --logbase user --wrapper "${nobody[*]}"
