#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rmem-run --sanitize=ITEMS: JSON, suppressions, abort, and refused items.

usage: test_findings.py RMEM-RUN PROGRAM; the program is findings.c
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

run, program = sys.argv[1:]
tmp = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
report, rules = os.path.join(tmp.name, 'report'), os.path.join(tmp.name, 'rules')
# A report of each kind, and a function that its stacks have.
KINDS = {
    'dead': 'dead',
    'event': 'event',
    'freed': 'freed',
    'full': 'full',
    'key': 'key',
    'leak': 'leak',
    'poison': 'poison',
    'recv_written': 'recv_written',
    'unpolled': 'unpolled',
}


def expect(what, holds, done):
    if not holds:
        sys.exit('%s: status %s\n%s%s' % (what, done.returncode, done.stdout, done.stderr))


def execute(items, use, **env):
    done = subprocess.run([run, '--sanitize' + items, program, use], capture_output=True, text=True, check=False,
                          env={**os.environ, **env})
    expect('%s %s' % (items, use), done.returncode in (0, 2, 125, -signal.SIGABRT), done)
    return done


def reports(kind):
    """Reports of a kind in the file, which is removed."""
    with open(report, encoding='utf-8') as file:
        found = [json.loads(line) for line in file]
    os.unlink(report)
    return [one for one in found if one['kind'] == kind]


def suppress(text):
    with open(rules, 'w', encoding='utf-8') as file:
        file.write(text)
    return '=suppress:' + rules


def functions(one):
    return [call.get('function') for call in one.get('calls', []) + one.get('found_by', [])]


def test_kind(kind, function):
    done = execute('=poison+json:' + report, kind)
    expect('%s ends' % kind, done.returncode == 0 and 'end' in done.stdout, done)
    found = reports(kind)
    expect('a report of %s' % kind, len(found) >= 1 and 'sanitize: ' in done.stderr, done)
    one = found[0]
    expect('what it has', one['program'] == 'findings' and one['process'] > 0 and one['what'] in done.stderr, done)
    if 'calls' in one:
        expect('since when', one['us_ago'] >= 0 and one['thread'] > 0 and one['how'], done)
    expect('its stack: %s' % functions(one), function in functions(one), done)
    call = [call for call in one.get('calls', []) + one.get('found_by', []) if call.get('function') == function][0]
    expect('its module', call['module'] == program and call['address'].startswith('0x'), done)
    if shutil.which('addr2line'):
        expect('its line', call['file'].endswith('findings.c') and call['line'] > 0, done)
    done = execute(suppress('# others\n%s:%s\n' % (kind, function)) + '+poison+json:' + report, kind)
    expect('%s is suppressed' % kind, done.returncode == 0 and one['what'] not in done.stderr and
           not reports(kind), done)
    # The program has one of that kind to get there.
    done = execute(suppress('key:LOC_PROT_ERR' if kind != 'key' else '') + '+abort+poison+json:' + report, kind)
    expect('%s aborts' % kind, done.returncode == -signal.SIGABRT and len(reports(kind)) == 1, done)


def test_suppressions():
    for rule in ('leak:leak', 'leak:l*k', 'leak:findings.c', 'any:' + os.path.basename(program), 'leak:/findings # no'):
        if '.c' in rule and not shutil.which('addr2line'):
            continue
        done = execute(suppress(rule), 'leak')
        expect('suppressed by ' + rule, 'PD' not in done.stderr, done)
    done = execute(suppress('key:LOC_PROT_ERR'), 'key')
    expect('suppressed by its text', 'LOC_PROT_ERR) failed' not in done.stderr, done)
    for rule in ('full:leak', 'leak:other', '#leak:leak'):
        done = execute(suppress(rule), 'leak')
        expect('not suppressed by ' + rule, '2 PDs not destroyed; the first made ' in done.stderr, done)


def test_correct():
    done = execute('=2+abort+poison+json:' + report, 'correct')
    expect('a correct program', done.returncode == 0 and done.stderr == '', done)
    with open(report, encoding='utf-8') as file:
        expect('has no report', file.read() == '', done)
    os.unlink(report)


def test_two_devices():
    """The second device, which has no sanitize=, does not end the reports of the first."""
    done = subprocess.run([run, '-d', 'soft0,sanitize=1', '-d', 'soft1', program, 'key'], capture_output=True,
                          text=True, check=False)
    expect('of two devices', done.returncode == 0 and 'sanitize: QP 0x' in done.stderr, done)


def test_refused():
    allowed = 'allowed are 1, 2, abort, poison, json:FILE, suppress:FILE'
    for items, what in (('=abrt', '--sanitize=abrt: ' + allowed), ('=abort+3', '--sanitize=3: ' + allowed),
                        ('=json:', '--sanitize=json:: ' + allowed), ('=', 'needs an item: 1, 2, abort'),
                        ('=suppress:/none', '--sanitize=suppress:/none: no such file')):
        done = execute(items, 'correct')
        expect('refused: ' + items, done.returncode == 2 and what in done.stderr.splitlines()[0], done)
    for text, what in (('lek:main', 'line 1: unknown kind lek; allowed are changed, dead, dereg, '),
                       ('\nleak', 'line 2, "leak", is not KIND:PATTERN'), ('leak:', 'is not KIND:PATTERN')):
        done = execute(suppress(text), 'correct')
        expect('refused: ' + text, done.returncode == 125 and len(done.stderr.splitlines()) == 1 and
               'suppress:' + rules in done.stderr and what in done.stderr, done)
    for items, what in (('json:/none/none', 'No such file'), ('x', 'x: unknown item; allowed are abort, poison, json:FILE')):
        done = execute('', 'correct', RMEM_IBV_SANITIZE=items)
        expect('refused: ' + items, done.returncode == 125 and what in done.stderr, done)


for kind_of, function_of in KINDS.items():
    test_kind(kind_of, function_of)
test_suppressions()
test_correct()
test_two_devices()
test_refused()
tmp.cleanup()
