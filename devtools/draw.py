# SPDX-License-Identifier: BSD-3-Clause
"""Mutants drawn at random from all functions of the product, for mutate.py.

A mutant changes one line: an operator, a condition, a constant, or a statement that is left out. Lines that
only log or trace are not drawn.
"""

import os
import random
import re
import subprocess

import ctext

ROOMS = ('lib', 'drivers', 'dropin', 'ibcm')
# (pattern, replacement)
OPERATORS = [(re.compile(pattern), replacement) for pattern, replacement in (
    (r' == ', ' != '), (r' != ', ' == '), (r' < ', ' <= '), (r' <= ', ' < '), (r' > ', ' >= '),
    (r' >= ', ' > '), (r' && ', ' || '), (r' \|\| ', ' && '), (r'(?<=\w) \+ (?=\w)', ' - '),
    (r'(?<=\w) - (?=\w)', ' + '), (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r' \+= ', ' -= '),
    (r' \|= ', ' &= '), (r'(?<=if \()(?=.*\)( \{)?$)', '!'), (r'(?<=\breturn )0(?=;)', '-1'))]
STATEMENT = re.compile(r'^\t+(\(void\))?[\w>.\[\]*-]+(\(.*\)|( [-+|&^]?= .*)|\+\+|--);$')
NOT_DRAWN = re.compile(r'LOG|trace|printf|RMEM_FAIL|assert|^\t*(const|struct|u?int\w*|bool|size_t|char|void) ')
# (directory, pattern of the tests that are run first)
KILLERS = (
    ('drivers/soft/wire/', 'wire_'), ('drivers/soft/', 'conformance|random|engine_'),
    ('drivers/verbs/', 'fake_verbs'), ('dropin/cm/', 'dropin_cm'), ('dropin/', 'dropin_'),
    ('ibcm/', 'ibcm|cm_'), ('lib/rmem_cm/', 'cm'), ('lib/rmem_pool/', 'pool|mbuf|tracked|mempool'),
    ('lib/rmem_lease/', 'lease'), ('lib/rmem_cache/', 'cache|uffd'), ('lib/', 'conformance|mr|mw|cq|qp|srq|pd|dev'))


def killers(path, all_tests):
    pattern = next(pattern for room, pattern in KILLERS if path.startswith(room))
    return [test for test in all_tests if re.match(pattern, test)]


def _changes(line):
    """Yield each changed line."""
    if NOT_DRAWN.search(line):
        return
    for pattern, replacement in OPERATORS:
        for found in pattern.finditer(line):
            if replacement == '!':
                begin, end = found.start(), line.rindex(')')
                yield line[:begin] + '!(' + line[begin:end] + ')' + line[end:]
            else:
                yield line[:found.start()] + replacement + line[found.end():]
    if STATEMENT.match(line):
        yield re.match(r'\t+', line).group() + ';'


def _candidates(path, text):
    lines, code = text.split('\n'), ctext.strip(text).split('\n')
    for name, start, length in ctext.functions(text):
        for number in range(start, min(start + length, len(lines))):
            if code[number] == lines[number]:
                for changed in _changes(lines[number]):
                    yield path, name, number, changed


def _mutant(root, path, name, number, changed):
    """The change, with as many surrounding lines as make its text unique in the file."""
    with open(os.path.join(root, path), encoding='utf-8') as file:
        text = file.read()
    lines, around = text.split('\n'), 0
    while True:
        first, last = max(number - around, 0), number + around + 1
        before = '\n'.join(lines[first:last])
        if text.count(before) == 1:
            break
        around += 1
    after = '\n'.join([*lines[first:number], changed, *lines[number + 1:last]])
    return path, before, after, '%s(): %s => %s' % (name, lines[number].strip(), changed.strip())


def draw(root, number, seed):
    """Mutants as read_mutants() of mutate.py returns them, without their killers."""
    listing = subprocess.run(['git', '-C', root, 'ls-files', *(room + '/*.[ch]' for room in ROOMS)],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
    found = []
    for path in listing.split():
        with open(os.path.join(root, path), encoding='utf-8') as file:
            found += _candidates(path, file.read())
    drawn = random.Random(seed).sample(found, min(number, len(found)))
    return [('drawn-%d-%d' % (seed, place), *_mutant(root, *one), [], None)
            for place, one in enumerate(drawn, 1)]
