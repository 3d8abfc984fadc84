#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the C blocks of README.md and doc/*.md are code that is compiled.

usage: check_examples.py                check all blocks
       check_examples.py --print NAME   print the block of that name

A block after a line <!-- example: NAME --> equals, line by line, the text of one of
test/*/test_doc_*.c between /* example: NAME */ and /* end of example */. Any other block is found in
some C file of the tree. Indentation is ignored. A block of a diff is that of examples/l2fwd.c.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r'(?:^<!-- example: (\w+) -->\n+)?^```c\n(.*?)^```$', re.M | re.S)
REGION = re.compile(r'^\s*/\* example: (\w+) \*/\n(.*?)^\s*/\* end of example \*/$', re.M | re.S)


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def find(pattern):
    return sorted(os.path.relpath(path, ROOT)
                  for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))


def lines_of(text):
    """Lines without indentation, and without empty lines at both ends."""
    return '\n'.join(line.strip() for line in text.split('\n')).strip('\n')


def wrong_diffs():
    """Yield each block of a diff whose lines are not those of l2fwd and of l2fwd-plain."""
    def found(text, lines):
        return lines_of('\n'.join(lines)) in lines_of(text)

    before, after = read('examples/l2fwd-plain.c'), read('examples/l2fwd.c')
    # Declarations precede statements, with an empty line between.
    after = after.replace('\tstruct rte_mempool *mp;\n\n', '', 1)
    for page in find('README.md') + find('doc/*.md'):
        for match in re.finditer(r'^```diff\n(.*?)^```$', read(page), re.M | re.S):
            lines = match[1].splitlines()
            if not (found(before, [line[1:] for line in lines if line[0] != '+']) and
                    found(after, [line[1:] for line in lines if line[0] != '-'])):
                yield '%s: a diff that is not that of l2fwd:\n%s' % (page, match[1])


def blocks():
    """Yield (page, line, name or None, text) for each C block."""
    for page in find('README.md') + find('doc/*.md'):
        text = read(page)
        for found in BLOCK.finditer(text):
            yield page, text.count('\n', 0, found.start(2)), found.group(1), found.group(2)


def regions():
    """name -> (file, text) of each marked region."""
    found = {}
    for path in find('test/*/test_doc_*.c'):
        for name, text in REGION.findall(read(path)):
            if name in found:
                sys.exit('%s: a second example %s, the first is in %s' % (
                    path, name, found[name][0]))
            found[name] = path, text
    return found


def first_difference(page, code):
    page, code = page.split('\n'), code.split('\n')
    for i in range(max(len(page), len(code))):
        mine = page[i] if i < len(page) else None
        other = code[i] if i < len(code) else None
        if mine != other:
            return 'line %d of it is %r here and %r there' % (i + 1, mine, other)
    return 'no difference'


def check():
    sources = [lines_of(read(path)) for top in ('app', 'drivers', 'lib', 'test')
               for path in find(top + '/**/*.[ch]')]
    known = regions()
    shown = set()
    errors = list(wrong_diffs())
    nb_blocks = 0
    for page, line, name, text in blocks():
        nb_blocks += 1
        text = lines_of(text)
        if name is None:
            if not any('\n%s\n' % text in '\n%s\n' % source for source in sources):
                errors.append('%s:%d: this C block is no example and stands in no C file' % (
                    page, line))
            continue
        if name not in known:
            errors.append('%s:%d: test/*/test_doc_*.c has no example %s' % (page, line, name))
            continue
        shown.add(name)
        path, code = known[name]
        if text != lines_of(code):
            errors.append('%s:%d: example %s is not as in %s: %s' % (
                page, line, name, path, first_difference(text, lines_of(code))))
    for name in sorted(set(known) - shown):
        errors.append('%s: no page shows the example %s' % (known[name][0], name))
    if not shown:
        errors.append('no page has an example: is this the right tree?')
    for error in errors:
        print(error)
    print('%d C blocks, %d examples, %d errors' % (nb_blocks, len(shown), len(errors)))
    return 1 if errors else 0


def print_block(name):
    found = [text for _, _, block, text in blocks() if block == name]
    if len(found) != 1:
        sys.exit('%d blocks are named %s' % (len(found), name))
    sys.stdout.write(found[0])
    return 0


if __name__ == '__main__':
    if len(sys.argv) == 3 and sys.argv[1] == '--print':
        sys.exit(print_block(sys.argv[2]))
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    sys.exit(check())
