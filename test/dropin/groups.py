#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare what a program prints with a list of lines.

usage: groups.py LIST DEVICE COMMAND...

COMMAND gets DEVICE as its last argument. Lines of LIST: "step: result", and after "|" the results on
other devices than soft0, if they differ; "-" if these may lack the step. Prints each difference; exit
code 1 if there is one.
"""
import subprocess
import sys


def expected(line, device):
    """The lines that are allowed."""
    step, results = line.split(': ', 1)
    results, _, others = results.partition(' | ')
    if device != 'soft0' and others:
        return [f'{step}: {other}' for other in others.split('; ')]
    return [f'{step}: {results}']


def differences(wanted, found, device):
    """The lines that are not as wanted."""
    lines = iter(found)
    line = next(lines, None)
    for want in wanted:
        step = want.split(': ', 1)[0]
        allowed = expected(want, device)
        if f'{step}: -' in allowed and not (line or '').startswith(f'{step}: '):
            continue
        if line not in allowed:
            yield f'{line}, expected {" or ".join(allowed)}'
        line = next(lines, None)
    yield from (f'{rest}, expected nothing' for rest in [line, *lines] if rest is not None)


def main():
    with open(sys.argv[1], encoding='utf-8') as lines:
        wanted = [line for line in lines.read().splitlines() if not line.startswith('#')]
    run = subprocess.run(sys.argv[3:] + [sys.argv[2]], stdout=subprocess.PIPE, text=True,
                         check=False)
    found = run.stdout.splitlines()
    bad = [] if run.returncode == 0 else [f'status {run.returncode}']
    bad += differences(wanted, found, sys.argv[2])
    print('\n'.join(bad) if bad else f'{len(found)} lines as expected')
    return 1 if bad else 0


sys.exit(main())
