#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures rmem, UCX, libfabric and memcpy in turn, and draws charts; see doc/performance.md.

. "$(dirname -- "$0")/common.sh"

# bench.py calls this with --setup once its arguments are known to be right.
[ "${1-}" = --setup ] || exec python3 devtools/bench.py "$@"
devtools/install-deps.sh bench
say 'building'
setup_main_build >/dev/null
