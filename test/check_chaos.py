#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of chaos= that the source has is in doc/chaos.md, with the clause that permits it."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
SOURCE = 'drivers/soft/chaos/rsoft_chaos_faults.c'
PAGE = 'doc/chaos.md'


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def table(source, name):
    """The text of an array."""
    return re.search(r'\b%s(?:\[\w*\])? = \{\n(.*?)\n\};' % name, source, re.S).group(1)


def rules(source):
    """Yield (site, fault or None, clause) of each rule."""
    clauses = dict(re.findall(r'#define CLAUSE_(\w+) +"([^"]*)"', source))
    for name in re.findall(r'\{"(\w+)",', table(source, r'opcodes\[RMEM_WR_OPCODE_NB\]')):
        yield name, None, clauses['STATUS']
    for name in re.findall(r'\{"(\w+)",', table(source, 'calls')):
        yield name, None, clauses['POST' if 'post' in name else 'CALL']
    for name in re.findall(r'RMEM_ASYNC_(\w+)', re.search(r' events\[\] = \{(.*?)\}', source).group(1)):
        yield 'RDMA_WRITE', name, clauses['EVENT']
    entries = re.findall(r'\{"(\w+)", "(\w+)",(.*?)\},', table(source, 'others'), re.S)
    for site, fault, rest in entries:
        clause = re.search(r'"([^"]*)"\s*$', rest)
        yield site, fault, clause.group(1) if clause else ''


def documented(page, site, fault, clause):
    """Whether a row of a table has the rule, and the clause in its last cell, or for a site alone in the text."""
    if fault is None:
        return re.search(r'\b%s\b' % site, page) and clause in page
    for row in page.splitlines():
        cells = [cell.strip() for cell in row.split('|')[1:-1]]
        if len(cells) < 3 or clause not in cells[-1]:
            continue
        if '`%s:%s' % (site, fault) in cells[0] or ('`%s`' % fault in cells[0] and site in cells[0]) or (
                fault in cells[0] and '`%s`' % site in cells[0]):
            return True
    return False


def main():
    source, page = read(SOURCE), read(PAGE)
    found = list(rules(source))
    wrong = [(site, fault, clause) for site, fault, clause in found
             if not clause or not documented(page, site, fault, clause)]
    for site, fault, clause in wrong:
        print('%s: no row for %s:%s with the clause "%s"' % (PAGE, site, fault or 'any', clause))
    print('%d rules, %d without a clause' % (len(found), len(wrong)))
    return 1 if wrong or len(found) < 40 else 0


if __name__ == '__main__':
    sys.exit(main())
