#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare a log of pyverbs' tests (run_tests.py -v) with the list of those that pass.

usage: pyverbs.py LOG LIST VERSION
Lines of LIST: a test; "since N" or "until N" if rdma-core has it from or up to that version alone; and
a condition if it may be skipped. '#' begins a comment. Any other test must be skipped. Prints each
difference; exit code 1 if there is one.
"""
import re
import sys

# "name (path) ... result"; a docstring may follow the path, and lines that the test, or a child of it
# that drops objects of its parent, prints the dots.
RESULT = re.compile(r'^(test_\w+) \(([\w.]+)\)(?:\n(?!test_).*?)? \.\.\. '
                    r'(?:(?!test_).*\n)*?(ok|skipped|FAIL|ERROR)\b', re.M)


def read_list(lines, version):
    """The tests of a version, each with its condition or an empty string."""
    listed = {}
    for line in lines:
        test, condition = (line.strip().split(None, 1) + ['', ''])[:2]
        if not test or test[0] == '#':
            continue
        limit = re.match(r'(since|until) (\d+)\s*', condition)
        if limit:
            condition = condition[limit.end():]
            if (version < int(limit[2])) if limit[1] == 'since' else (version > int(limit[2])):
                continue
        listed[test] = condition
    return listed


def main():
    with open(sys.argv[1], encoding='utf-8') as log:
        results = {m[2]: m[3] for m in RESULT.finditer(log.read())}
    with open(sys.argv[2], encoding='utf-8') as lines:
        listed = read_list(lines, int(sys.argv[3]))
    bad = []
    for test, result in sorted(results.items()):
        allowed = {'skipped'} if test not in listed else {'ok'}
        if listed.get(test):
            allowed.add('skipped')
        if result not in allowed:
            bad.append(f'{test}: {result}, expected {" or ".join(sorted(allowed))}')
    bad += [f'{test}: did not run' for test in sorted(listed) if test not in results]
    values = list(results.values())
    print(f'{values.count("ok")} ok, {values.count("skipped")} skipped, {len(bad)} unexpected')
    print('\n'.join(bad), file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
