#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-guest.sh with the newest kernel of Debian, whose rdma_rxe has on-demand paging.

set -euo pipefail
exec "$(dirname -- "$0")/check-guest.sh" guest-new-tests
