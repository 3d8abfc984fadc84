#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The main build, gcc with warnings as errors, shared and static libraries; and the fast tests.

. "$(dirname -- "$0")/common.sh"
need gcc meson ninja

setup_main_build
ninja --quiet -k 0 -C build
run_suite build fast-tests
