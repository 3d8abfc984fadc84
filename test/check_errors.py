#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the table of calls in doc/errors.md has the errnos of the headers.

A row is | `rmem_call()` | EINVAL, ENOMEM | ... |. Where a header has "what rmem_other()
returns", the errnos of that one are included.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = 'doc/errors.md'
FUNCTION = re.compile(r'/\*\*((?:[^*]|\*(?!/))*)\*/\n([\w\s*]+?\b(rmem_\w+)\s*\([^;{]*\))\s*[;{]')
ROW = re.compile(r'^\| `(rmem_\w+)\(\)` \| ([A-Z, ]*) \|', re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def documented():
    """call -> (header, text after @return) of each public function."""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, 'lib/*/*.h'))):
        if path.endswith('_priv.h'):
            continue
        path = os.path.relpath(path, ROOT)
        for doc, _, name in FUNCTION.findall(read(path)):
            found[name] = path, doc.partition('@return')[2]
    return found


def errnos(calls, name):
    text = calls[name][1]
    names = set(re.findall(r'-(E[A-Z]+)', text))
    for other in re.findall(r'what (rmem_\w+)\(\)\s+(?:\*\s+)?returns', text):
        names |= errnos(calls, other)
    return names


def main():
    calls = documented()
    rows = {name: set(filter(None, re.split(r',\s*', text.strip())))
            for name, text in ROW.findall(read(PAGE))}
    errors = []
    for name in sorted(calls):
        want, got = errnos(calls, name), rows.get(name, set())
        if want != got:
            errors.append('%s: %s(): %s says %s, here is %s' % (
                PAGE, name, calls[name][0], ', '.join(sorted(want)) or 'nothing',
                ', '.join(sorted(got)) or 'nothing'))
    for name in sorted(set(rows) - set(calls)):
        errors.append('%s: %s() is in no header' % (PAGE, name))
    if not rows:
        errors.append('%s: no table of calls' % PAGE)
    for error in errors:
        print(error)
    print('%d calls, %d rows, %d errors' % (len(calls), len(rows), len(errors)))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
