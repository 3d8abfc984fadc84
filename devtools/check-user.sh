#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# If check-gcc.sh ran as root, run the tests of suite user again as an unprivileged user. They run in a
# copy, since that user may have no access to the tree.

. "$(dirname -- "$0")/common.sh"
need meson setpriv

[ "$(id -u)" = 0 ] || skip "not root: check-gcc.sh ran as an ordinary user already"
[ -x build/test/dpdk-test-rmem ] || die "nothing built, run devtools/check-gcc.sh first"

copy=$(mktemp -d "${TMPDIR:-/tmp}/rmem-user.XXXXXX")
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/tree" "$copy/run"
{
	tree_files '*'
	find build -type f \( -perm /111 -o -name '*.so*' \) -print0
	find build -type l -name '*.so*' -print0
} | xargs -0 cp -d --parents -t "$copy/tree"
chmod -R a+rX "$copy"
# The overflow uid of the kernel: no rights, no home.
chown 65534:65534 "$copy/run"

# meson's wrapper: runs a test of the tree in the copy. EAL's runtime files go to the user's own
# directory, as their default place may belong to another user.
cat >"$copy/as-user" <<EOF
#!/usr/bin/env bash
cd "$copy/tree/build"
[ -z "\${LD_LIBRARY_PATH:-}" ] || export LD_LIBRARY_PATH=\${LD_LIBRARY_PATH//"$root"/"$copy/tree"}
[ -z "\${LD_PRELOAD:-}" ] || export LD_PRELOAD=\${LD_PRELOAD//"$root"/"$copy/tree"}
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \\
	env XDG_RUNTIME_DIR="$copy/run" TMPDIR="$copy/run" "\${@//"$root"/"$copy/tree"}"
EOF
chmod 755 "$copy/as-user"

# check-gcc.sh kills at more instructions.
export RMEM_KILL_STRIDE=601 RMEM_KILLS=4
run_suite build user-tests --logbase user --wrapper "$copy/as-user"
