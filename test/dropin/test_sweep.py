#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rmem-run --sweep reports how a program takes each failure.

usage: test_sweep.py RMEM-RUN PROGRAM; the program is sweep.c
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

run, program = sys.argv[1:]
EXPECTED = {
    'pd_alloc:ENOMEM@nth:1': 'error',
    'mr_reg:ENOMEM@nth:1': 'crashed',
    'cq_create:ENOMEM@nth:1': 'error',
    'qp_create:ENOMEM@nth:1': 'error',
    'qp_modify:ENOMEM@nth:1': 'error',
    'qp_modify:ENOMEM@nth:2': 'error',
    'qp_modify:ENOMEM@nth:3': 'error',
    'post_send:ENOMEM@nth:1': 'corrupted',
    'any:RETRY_EXC_ERR@nth:1': 'corrupted',
    'any:QP_FATAL@nth:1': 'corrupted',
}


def sweep(*args):
    return subprocess.run([run, *args], capture_output=True, text=True, check=False)


def expect(what, holds, done):
    if not holds:
        sys.exit('%s: status %s\n%s%s' % (what, done.returncode, done.stdout, done.stderr))


with tempfile.TemporaryDirectory() as tmp:
    results, report = os.path.join(tmp, 'results'), os.path.join(tmp, 'report')
    done = sweep('--sweep=1/1', '--limit', '600', '--verify', 'grep -qx right ' + results, '--json', report,
                 program, results)
    expect('sweep', done.returncode == 1, done)
    with open(report, encoding='utf-8') as file:
        runs = {one['rule']: one for one in json.load(file)}
    found = {rule: one['result'] for rule, one in runs.items() if not rule.startswith('any:CQ_ERR')}
    expect('results %s' % found, found == EXPECTED, done)
    expect('the table', 'mr_reg:ENOMEM        |    1 |     0 |    0 |       1 |    0 |         0' in done.stdout, done)
    expect('a command that repeats it', 'rmem-run -d soft0,chaos=mr_reg:ENOMEM@nth:1 ' + program in done.stdout, done)
    expect('the stack of a crash', shutil.which('gdb') is None or ' in main (' in done.stdout, done)
    # Runs that fail end with an error: no line of theirs.
    expect('no line of an error', 'chaos=pd_alloc' not in done.stdout, done)

    # A run that hangs; others may be too slow for this limit.
    done = sweep('--sweep=1/1', '--limit', '2', '--json', report, program, results, 'hang')
    with open(report, encoding='utf-8') as file:
        runs = {one['rule']: one['result'] for one in json.load(file)}
    expect('a hang', done.returncode == 1 and runs['qp_create:ENOMEM@nth:1'] == 'hung', done)

    # Several at once, each with a file of its own.
    done = sweep('--sweep=1/1', '--limit', '600', '--jobs', '3', '--json', report, program, '/dev/null')
    if 'network namespaces are not permitted' not in done.stderr:
        with open(report, encoding='utf-8') as file:
            found = {one['rule']: one['result'] for one in json.load(file)}
        found = {rule: result for rule, result in found.items() if not rule.startswith('any:CQ_ERR')}
        wanted = {rule: result.replace('corrupted', 'well') for rule, result in EXPECTED.items()}
        expect('results at once %s' % found, done.returncode == 1 and found == wanted, done)

    # A program in a session of its own is ended too.
    pid_file = os.path.join(tmp, 'daemon')
    done = sweep('--sweep', 'sh', '-c', 'setsid sh -c "echo \\$\\$ >%s.new; mv %s.new %s; exec sleep 3600" & '
                 'until [ -e %s ]; do sleep 0.05; done' % ((pid_file,) * 4))
    with open(pid_file, encoding='utf-8') as file:
        expect('a daemon ends', not os.path.exists('/proc/%s' % file.read().strip()), done)

    # Ctrl-C leaves no program.
    pid_file = os.path.join(tmp, 'pid')
    with subprocess.Popen([run, '--sweep', 'sh', '-c', 'echo $$ >%s.new; mv %s.new %s; exec sleep 3600' % (
            (pid_file,) * 3)], stderr=subprocess.DEVNULL) as running:
        while not os.path.exists(pid_file):
            expect('it runs', running.poll() is None, done)
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
    with open(pid_file, encoding='utf-8') as file:
        left = os.path.exists('/proc/%s' % file.read().strip())
    expect('Ctrl-C: status %s' % running.returncode, running.returncode == 130 and not left, done)

    for args, status, text in (
            (['--sweep=2'], 2, '--sweep=2: not 1/N'),
            (['--sweep', '--limit', '0', 'true'], 2, '--limit 0: not a number'),
            (['--sweep', '--jobs', '0', 'true'], 2, '--jobs 0: not a number'),
            (['--sweep'], 2, 'no program'),
            (['--sweep', '-d', 'soft0,chaos=any:QP_FATAL', 'true'], 2, 'has its own chaos='),
            (['--sweep', '--foo', 'true'], 2, 'unknown option with --sweep: --foo'),
            (['--sweep', 'false'], 125, 'status 1 without faults'),
            (['--sweep', '--verify', 'false', 'true'], 125, 'wrong results without faults'),
            (['--sweep', '--with', 'false', 'true'], 125, 'does not listen'),
            (['--sweep', '--json', '/none/x', 'true'], 2, '--json /none/x: No such file'),
            (['--sweep', '--with', "'", 'true'], 2, 'No closing quotation'),
            (['--sweep', '-d', 'soft0', '-d', 'soft1', 'true'], 2, '-d twice'),
            (['--sweep', 'true'], 0, 'without faults: ')):
        done = sweep(*args)
        expect(' '.join(args), done.returncode == status and text in done.stdout + done.stderr, done)
