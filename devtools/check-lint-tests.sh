#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-lint.sh for the C files of the tests.

set -euo pipefail
exec "$(dirname -- "$0")/check-lint.sh" tests
