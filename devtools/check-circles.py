#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No call circles: in each directory below, calls between files lead one way.

A file is a .c with the .h of its stem. It calls another when a function or an initialiser in it
names a function or an object that the other defines. Found by name, so a pointer to a function
counts where it is taken, not where it is called.
"""

import os
import re
import sys

sys.dont_write_bytecode = True

import ctext  # noqa: E402 (in this folder)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Where the gate is on: the files of a directory; with /* also those below, as one.
DIRECTORIES = ('app/kv', 'app/testrmem', 'drivers/soft/*', 'drivers/verbs', 'dropin', 'dropin/preload', 'dropin/verbs',
               'env', 'ibcm', 'lib/rmem', 'lib/rmem_cache', 'lib/rmem_cm', 'lib/rmem_lease', 'lib/rmem_pool')

# Circles that stay: directory, files, and the reason.
JUSTIFIED = (
    ('lib/rmem', 'rmem_dev rmem_driver rmem_mp rmem_obj rmem_priv rmem_telemetry',
     'a device is an object, and the table of devices validates the handles of objects; '
     'secondary processes refer to both'),
)

_USED = re.compile(r'(?<!struct )(?<!enum )(?<!union )(?<![.>])\b[A-Za-z_]\w*\b')
_OBJECT = re.compile(r'^(?!extern\b|static\b|typedef\b|return\b)[A-Za-z_][\w *]*?\b(\w+)'
                     r'(?:\[[^\]\n]*\])*(?: __\w+(?:\([^)\n]*\))?)*(?: = | =$|;$)', re.M)


def sources(directory):
    """Paths of a directory's files, without it, and their text."""
    top = os.path.join(ROOT, directory.removesuffix('/*'))
    for folder, folders, paths in os.walk(top):
        folders[:] = sorted(folders) if directory.endswith('/*') else []
        for path in sorted(paths):
            if path.endswith(('.c', '.h')):
                with open(os.path.join(folder, path), encoding='utf-8') as file:
                    code = ctext.strip(file.read())
                path = os.path.relpath(os.path.join(folder, path), top)
                yield path, re.sub(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', '', code, flags=re.M)


def defined(path, code):
    """Names that other files see: functions, of a .c those that are not static, and objects."""
    lines = code.split('\n')
    for name, line, _ in ctext.functions(code):
        head = '\n'.join(lines[max(0, line - 8):line - 1])
        head = head[max(head.rfind('\n}'), head.rfind(';'), head.rfind('\n\n')) + 1:]
        if path.endswith('.h') or not re.search(r'^static\b', head, re.M):
            yield name
    if path.endswith('.c'):
        yield from (found.group(1) for found in _OBJECT.finditer(code))


def is_variable(name, body):
    """Whether the name is one of parameters and variables there, as dirfd is, and of no call."""
    return (re.search(r'\b(?:int|char \*|bool|uint\d+_t|size_t) ?%s\b *[,;)=]' % name, body) is not None
            and re.search(r'(?:&|\b)%s\(|&%s\b' % (name, name), body) is None)


def graph(directory):
    """File stem to {stem it calls: names it uses}."""
    texts = dict(sources(directory))
    owner = {}
    for path, code in texts.items():
        for name in defined(path, code):
            owner[name] = path[:-2]
    edges = {path[:-2]: {} for path in texts}
    for path, code in texts.items():
        body = re.sub(r'(?<!\w)REAL\(\w+\)', '', code)  # ribv_libc.h: a function of libc
        if path.endswith('.h'):  # a declaration is no call
            body = '\n'.join(re.findall(r'^\{\n.*?^\}', code, re.M | re.S))
        for name in set(_USED.findall(body)):
            if is_variable(name, body):
                continue
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
    unused = {entry[:2] for entry in JUSTIFIED}
    for directory in sys.argv[1:] or DIRECTORIES:
        edges = graph(directory)
        for circle in circles(edges):
            entry = directory, ' '.join(circle)
            if entry in unused:
                unused.discard(entry)
                continue
            breaches += 1
            print('%s: %d files call each other in a circle' % (directory, len(circle)))
            for stem in circle:
                for other in sorted(set(edges[stem]) & set(circle)):
                    print('  %s -> %s: %s' % (stem, other, ', '.join(sorted(edges[stem][other]))))
        print('check-circles.py: %s: %d files' % (directory, len(edges)))
    for directory, files in sorted(unused) if len(sys.argv) == 1 else ():
        breaches += 1
        print('%s: JUSTIFIED names a circle that is gone: %s' % (directory, files))
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
