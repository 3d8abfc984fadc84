#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run Doxygen on the public headers, warnings as errors. Pages: build-doc/html.

. "$(dirname -- "$0")/common.sh"
need doxygen

mkdir -p build-doc
rm -f build-doc/warnings
rc=0
{ cat doc/Doxyfile; echo OUTPUT_DIRECTORY = build-doc; echo WARN_LOGFILE = build-doc/warnings; } |
	doxygen - >/dev/null 2>&1 || rc=$?
[ ! -s build-doc/warnings ] || { cat build-doc/warnings >&2; exit 1; }
[ $rc = 0 ] || die "doxygen failed, status $rc"
pages=$(find build-doc/html -name 'rmem*_8h.html' | wc -l)
[ "$pages" != 0 ] || die "doxygen made no page of any header"
say "$pages headers"
