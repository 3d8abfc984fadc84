#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every installed header compiles alone, in C11 and in C++17, without a warning, and defines
# SOCKET_ID_ANY if a field takes it.

. "$(dirname -- "$0")/common.sh"
need gcc g++ pkg-config

# Headers of other projects are system headers, so that our warnings do not apply to them.
read -r -a dpdk <<<"$(pkg-config --cflags libdpdk | sed 's/-I */-isystem /g')"
flags=(-Wall -Wextra -Werror -fsyntax-only)
for dir in lib/*/; do flags+=(-I "$dir"); done

mapfile -d '' -t headers < <(tree_files 'lib/*.h' | grep -zv '_priv\.h$')
[ ${#headers[@]} != 0 ] || die "no headers in lib/"

failed=0
for header in "${headers[@]}"; do
	include="#include <${header##*/}>"
	if grep -q 'SOCKET_ID_ANY for any' "$header"; then
		include+=$'\nint any_socket(void);\nint any_socket(void) { return SOCKET_ID_ANY; }'
	fi
	# DPDK's own headers want _GNU_SOURCE in strict C11; g++ always defines it.
	gcc -x c -std=c11 -D_GNU_SOURCE "${flags[@]}" "${dpdk[@]}" - <<<"$include" ||
		{ say "$header does not compile alone in C11"; failed=1; }
	g++ -x c++ -std=c++17 "${flags[@]}" "${dpdk[@]}" - <<<"$include" ||
		{ say "$header does not compile alone in C++17"; failed=1; }
done
[ "$failed" = 0 ] || exit 1
say "${#headers[@]} headers"
