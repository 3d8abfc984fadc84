#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# recipe.sh DOCUMENT COMMAND PROGRAM: the recipe of DOCUMENT for code that reconnects, with PROGRAM in place of
# ./my_program, and the command rmem-run. Both of its runs have the three failures, and then a connection.

set -euo pipefail
document=$1 run=$2 program=$(readlink -f -- "$3")
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-recipe.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
awk '/^## / { is_in = /reconnects/ } is_in && /^```/ { is_code = !is_code; next } is_in && is_code' "$document" |
	sed "s|usertools/rmem-run|$run|; s|\./my_program|$program|" >"$tmp/recipe"
cd "$tmp"
bash -eu recipe >out
cat out
[ "$(grep -c '^4 attempts$' out)" = 2 ]
[ "$(grep -c '^RDMA_CM_EVENT_REJECTED, status 8$' out)" = 2 ]
[ "$(grep -c '^RDMA_CM_EVENT_UNREACHABLE, status -110$' out)" = 2 ]
[ "$(grep -c '^RDMA_CM_EVENT_ADDR_ERROR, status -110$' out)" = 2 ]
[ "$(grep -c ' cm_' log)" = 3 ]
