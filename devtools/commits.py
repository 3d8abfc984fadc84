#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks commit messages, read as git log -z --format='%h %B' writes them; for check-commits.sh."""

import re
import sys

sys.dont_write_bytecode = True

import glossary  # noqa: E402 (in this folder)

MAX_SUBJECT = 60
MAX_LINE = 72
AREAS = ('app/kv', 'app/testrmem', 'devtools', 'doc', 'drivers/soft', 'drivers/verbs', 'dropin',
         'ibcm', 'lib/rmem', 'rmem_cache', 'rmem_cm', 'rmem_lease', 'rmem_pool', 'test', 'tree', 'usertools')
SUBJECT = re.compile(r'(?:%s): [a-z]\S* .*[^.]' % '|'.join(AREAS))
FIXES = re.compile(r'Fixes: [0-9a-f]{12} \(".+"\)')


def breaches(message):
    """Yield what is wrong with a commit message."""
    lines = message.rstrip('\n').split('\n')
    subject, body = lines[0], lines[2:]
    fixes = [line for line in body if line.startswith('Fixes:')]
    if not SUBJECT.fullmatch(subject):
        yield 'the subject is not "area: verb ..." without a period; areas: ' + ', '.join(AREAS)
    if len(subject) > MAX_SUBJECT:
        yield 'the subject has %d characters, the limit is %d' % (len(subject), MAX_SUBJECT)
    for words, instead in glossary.breaches(subject):
        yield '%s in the subject: write %s' % (words, instead)
    if len(lines) > 1 and lines[1]:
        yield 'no empty line after the subject'
    if not [line for line in body if line and line not in fixes]:
        yield 'no body: state why'
    for line in body:
        if len(line) > MAX_LINE and line not in fixes and ' ' in line.strip():
            yield 'a line of %d characters, the limit is %d' % (len(line), MAX_LINE)
    if re.match(r'\S+ fix(?:es|ed)?\b', subject) and not fixes:
        yield 'a fix without a line Fixes: <12 hex digits> ("subject")'
    for line in fixes:
        if not FIXES.fullmatch(line):
            yield '%s: not Fixes: <12 hex digits> ("subject")' % line


def self_test():
    """Each rule finds its breach, and only that."""
    good = 'doc: fix the units\n\nThey were swapped.\n\nFixes: 0123456789ab ("doc: add units")'
    cases = (
        (good, None),
        (good.replace('doc:', 'docs:'), 'areas'),
        (good.replace('fix the units', 'fix the units of ' + 'x' * 50), 'characters'),
        (good.replace('fix the units', 'tell the units'), 'tell in the subject'),
        (good.replace('units\n\n', 'units\n', 1), 'no empty line'),
        (good.replace('They were swapped.\n\n', ''), 'no body'),
        (good.replace('swapped', 'swapped ' * 9), 'a line of'),
        (good.split('\n\nFixes')[0], 'a fix without'),
        (good.replace('0123456789ab', '0123'), 'not Fixes'),
    )
    for message, expected in cases:
        found = list(breaches(message))
        if (expected is None) != (not found) or expected and expected not in ' '.join(found):
            sys.exit('commits.py: self-test: expected %s, found %s' % (expected, found))


def main():
    self_test()
    commits = [commit.split(' ', 1) for commit in sys.stdin.read().split('\0') if commit]
    errors = ['%s: %s' % (name, error) for name, text in commits for error in breaches(text)]
    for error in errors:
        print(error)
    print('%d commits, %d errors' % (len(commits), len(errors)))
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
