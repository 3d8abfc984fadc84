#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No call circles: in each directory below, calls between files lead one way.

A file is a .c with the .h of its stem. It calls another when a function or an initialiser in it
names a function or an object that the other defines (calls.py).
"""

import sys

sys.dont_write_bytecode = True

import calls  # noqa: E402 (in this folder)

# Where the gate is on: the files of a directory; with /* also those below, as one.
DIRECTORIES = ('app/kv', 'app/testrmem', 'drivers/soft/*', 'drivers/verbs', 'dropin', 'dropin/cm',
               'dropin/preload', 'dropin/verbs', 'env', 'ibcm', 'ibcm/gsi', 'lib/rmem',
               'lib/rmem_cache', 'lib/rmem_cm', 'lib/rmem_lease', 'lib/rmem_pool')


def graph(directory):
    """File stem to {stem it calls: names it uses}."""
    texts = {path: calls.without_directives(code) for path, code in calls.sources(directory)}
    owner = {}
    for path, code in texts.items():
        for name in calls.defined(path, code):
            owner[name] = path[:-2]
    edges = {path[:-2]: {} for path in texts}
    for path, code in texts.items():
        for name in calls.used(path, code):
            if owner.get(name, path[:-2]) != path[:-2]:
                edges[path[:-2]].setdefault(owner[name], set()).add(name)
    return edges


def circles(edges):
    """Strongly connected components of more than one file (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in edges[node]:
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in edges:
        if node not in number:
            visit(node)
    return found


def main():
    breaches = 0
    for directory in sys.argv[1:] or DIRECTORIES:
        edges = graph(directory)
        for circle in circles(edges):
            breaches += 1
            print('%s: %d files call each other in a circle' % (directory, len(circle)))
            for stem in circle:
                for other in sorted(set(edges[stem]) & set(circle)):
                    print('  %s -> %s: %s' % (stem, other, ', '.join(sorted(edges[stem][other]))))
        print('check-circles.py: %s: %d files' % (directory, len(edges)))
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
