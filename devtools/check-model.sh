#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The ordering protocols of drivers/soft under the C11 memory model (doc/memory_order.md): first the
# explorer by litmus tests whose verdicts are known, then the protocols with the orders of the source.

. "$(dirname -- "$0")/common.sh"
need cc python3

devtools/rc11_test.py
devtools/litmus.py

# The same tests for the tools of others are C programs.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-model.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
devtools/litmus.py --write "$tmp"
for program in "$tmp"/*.c; do
	cc -std=c11 -Wall -Wextra -Werror -Wno-unused-variable -fsyntax-only "$program"
done
