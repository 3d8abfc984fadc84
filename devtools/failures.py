#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the output of failed gates and of their failed tests in few lines, since of a CI run only
the end is kept. usage: failures.py LOGS GATE..., where LOGS has a log of each gate;
failures.py --names JSON prints the names of the failed tests in a log of meson, or none if a
sanitizer reported a defect: such tests do not run again."""

import json
import pathlib
import re
import sys

LINES = 56  # in all,
MOST = 16  # of one test with its title,
LEAST = 5  # and no less of each test that is shown
WIDTH = 200

FAILED = ('FAIL', 'TIMEOUT', 'ERROR', 'INTERRUPT', 'UNEXPECTEDPASS')
PASSED = re.compile(r'\s*$|PASS |ok[: ]|EAL: (Detected|Selected|Physical)')
# The reason is at the start of a compiler's or sanitizer's report, not at its end.
CAUSE = re.compile(r'\S+\.[ch]:\d+|FAIL|.*(ERROR: |WARNING: ThreadSan|runtime error:| error: '
                   r'|\| FAILED, status)')
REPORT = re.compile(r'ERROR: \w+Sanitizer|WARNING: ThreadSan|runtime error:')
# A guest ends with its console; what ran is in the lines above.
GUEST_ENDED = re.compile(r'run\.sh: the guest')


def digest(text, most):
    """Return the lines from the first cause on, and the last ones."""
    lines = [line[:WIDTH] for line in text.splitlines() if not PASSED.match(line)]
    causes = [i for i, line in enumerate(lines) if CAUSE.match(line)]
    last = 1 + most // 4
    begin = max(causes[0] - 1, 0) if causes else len(lines)
    for i, line in enumerate(lines):
        if GUEST_ENDED.match(line):
            begin = min(begin, max(i - most // 2, 0))
            break
    if begin >= len(lines) - most:
        return lines[-most:]
    return lines[begin:begin + most - last - 1] + ['...'] + lines[-last:]


def shown_in(log, name):
    """Return what a test that meson did not capture printed between its two lines in the log."""
    part = re.search(r'/ %s +RUNNING(.*?)^.*/ %s ' % (re.escape(name), re.escape(name)), log,
                     re.DOTALL | re.MULTILINE)
    return part[1] if part else log


def failed_in(path):
    """Yield the name and the record of each test that failed, of a log of meson."""
    for line in path.read_text(errors='replace').splitlines() if path.exists() else ():
        test = json.loads(line)
        if test['result'] in FAILED:
            # "rmem:suite / name", of newer versions "suite - rmem:name"
            yield re.split(r' / |:', test['name'])[-1], test


def output_of(test):
    """Return what a test printed, if meson captured it."""
    return (test.get('stdout') or '') + (test.get('stderr') or '')


def failed_tests(log):
    """Yield title and output of the tests that failed in the runs of meson that a gate logged."""
    names = re.findall(r'^Full log written to (.*)\.txt$', log, re.MULTILINE)
    for path in (pathlib.Path(name + '.json') for name in dict.fromkeys(names)):
        for name, test in failed_in(path):
            text = output_of(test)
            yield ('test %s: %s, status %s after %.1f s' % (
                name, test['result'], test['returncode'], test['duration']),
                text if text.strip() else shown_in(log, name))


def main():
    """Share the lines among the failures."""
    if sys.argv[1] == '--names':
        tests = list(failed_in(pathlib.Path(sys.argv[2])))
        if any(REPORT.search(output_of(test)) for _, test in tests):
            return
        for name, _ in tests:
            print(name)
        return
    failed = []
    for gate in sys.argv[2:]:
        path = pathlib.Path(sys.argv[1]) / (gate + '.log')
        log = path.read_text(errors='replace') if path.exists() else ''
        for title, text in list(failed_tests(log)) or [('no test failed', log)]:
            failed.append(('gate %s, %s:' % (gate, title), text))
    shown = failed[:LINES // LEAST]
    for title, text in shown:
        print(title)
        for line in digest(text, min(MOST, LINES // len(shown)) - 1):
            print('    ' + line)
    if len(failed) > len(shown):
        print('and %d more' % (len(failed) - len(shown)))


if __name__ == '__main__':
    main()
