#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Apply the mutants of mutants.txt one at a time, and check that a test fails with each: build a copy
of the tree, run the likely killers, those that kill most first, then the rest of fast-tests.

usage: mutate.py [--list] [--check] [--only NAME[,NAME...]] [--sample N [--seed S]] [--quick] [--retry]
                 [--seconds N] [--state FILE]

--sample applies N mutants that are drawn at random from all functions (draw.py) instead of those of
mutants.txt. In the same tree, the same seed draws the same mutants.

A mutant is killed if it does not compile, if a test fails, or if a test exceeds the given seconds,
which should be several times the duration of the slowest test. The state file keeps the results, so
that an interrupted run can be resumed; a result is dropped when the text of its mutant changes. The
tree must first pass without a mutant, except with --only and --quick. A test that kills its first mutant
runs once without one, and is left out if it fails then too. --quick runs only the likely killers; a
mutant that they do not kill counts as not run. The last line has the score. The exit status is 1 if a
mutant survives without a reason, or does not match its file; of --sample, if more than 5 % survive.
"""

import argparse
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import draw

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, 'build-mutate')
TREE = os.path.join(WORK, 'tree')
# rmem-run of a tree finds its library there alone.
BUILD = os.path.join(TREE, 'build')
TEST_SECONDS = 90
# The timeout of tests in test/meson.build, which a factor changes.
MESON_SECONDS = 1800
# Minutes each, or not of what mutants break.
SLOW = re.compile(r'testrmem|telemetry|kv|trace_points|readme_program|doc_.*_match|chaos_conformance|(engine_)?chaos$')


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def read_mutants():
    """(name, file, text, replacement, what it breaks, likely killers, reason or None) of each."""
    mutants = []
    for part in re.split(r'\n\n(?=\[)', read(os.path.join(ROOT, 'devtools', 'mutants.txt')))[1:]:
        lines = re.sub(r'\n\n#.*', '', part, flags=re.S).rstrip('\n').split('\n')
        name, path, breaks = re.fullmatch(r'\[(\S+)\] (\S+): (.*)', lines[0]).groups()
        text, replacement, fields = [], [], {}
        for line in lines[1:]:
            if line[0] in '-+':
                (text if line[0] == '-' else replacement).append(line[1:])
            else:
                key, _, value = line.partition(': ')
                fields[key] = value
        mutants.append((name, path, '\n'.join(text), '\n'.join(replacement), breaks,
                        fields['tests'].split(), fields.get('reason')))
    return mutants


def check(mutants):
    """Messages on mutants whose text is not in their file exactly once."""
    names = [mutant[0] for mutant in mutants]
    for name, path, text, replacement, *_ in mutants:
        nb = read(os.path.join(ROOT, path)).count(text)
        if nb != 1:
            yield '%s: its text is %d times in %s' % (name, nb, path)
        elif text == replacement:
            yield '%s: changes nothing' % name
        elif names.count(name) != 1:
            yield '%s: two have this name' % name


def sync():
    """The copy as the tree is, with the times of files that are the same left alone."""
    listing = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '-co', '--exclude-standard'],
                             stdout=subprocess.PIPE, check=True).stdout.decode()
    for path in filter(None, listing.split('\0')):
        source, copy = os.path.join(ROOT, path), os.path.join(TREE, path)
        if not os.path.isfile(source):
            continue
        with open(source, 'rb') as file:
            data = file.read()
        if os.path.isfile(copy):
            with open(copy, 'rb') as file:
                if file.read() == data:
                    continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(source, copy)


def configure():
    if os.path.isfile(os.path.join(BUILD, 'build.ninja')):
        return
    done = run(['meson', 'setup', BUILD, TREE, '-Dbuildtype=debug', '-Doptimization=1',
                '-Ddebug_checks=true', '-Ddefault_library=static', '-Dapps=false'])
    if done.returncode != 0:
        sys.exit(done.stdout)


def ninja(*targets):
    return run(['ninja', '-C', BUILD, *targets])


@functools.lru_cache(maxsize=None)
def introspect(what):
    return json.loads(run(['meson', 'introspect', BUILD, '--' + what]).stdout)


def programs_of(names):
    """What ninja has to build for tests: the files of their commands, and their dependencies."""
    files = {target['id']: target['filename'] for target in introspect('targets')}
    needed = set()
    for test in introspect('tests'):
        if test['name'] in names:
            needed.update(test['cmd'])
            needed.update(path for target in test['depends'] for path in files[target])
    built = {path for paths in files.values() for path in paths}
    return sorted(os.path.relpath(path, BUILD) for path in needed & built)


def meson_tests(names, seconds):
    """(name, how) of the first test that fails, or None."""
    done = run(['meson', 'test', '-C', BUILD, '--no-rebuild', '--maxfail=1', '--num-processes=3',
                '--timeout-multiplier=%g' % (seconds / MESON_SECONDS), *names])
    if done.returncode == 0:
        return None
    found = re.search(r'^ *\d+/\d+ (?:.*/ )?(\S+) +(FAIL|TIMEOUT|ERROR)', done.stdout, re.M)
    return found.groups() if found else (done.stdout[-400:], 'ERROR')


def fast_tests():
    listing = run(['meson', 'test', '-C', BUILD, '--no-rebuild', '--list', '--suite',
                   'fast-tests']).stdout
    names = [line.split(' / ')[-1].strip() for line in listing.splitlines() if ' / ' in line]
    return [name for name in names if not SLOW.search(name)]


def stages(mutant, all_tests):
    """The lists of likely killers of a mutant, in the order in which they run."""
    if mutant[0].startswith('drawn-'):
        return draw.killers(mutant[1], all_tests)
    killers = [test for test in mutant[5] if test in all_tests]
    return [killers + [test for test in ('engine_' + name for name in killers) if test in all_tests]]


def kill(mutant, all_tests, seconds, is_quick):
    """(test, how) of the death of the mutant that is in the tree, or None."""
    lists = stages(mutant, all_tests)
    if not is_quick:
        lists.append([test for test in all_tests if not any(test in names for names in lists)])
    for names in filter(None, lists):
        if ninja(*programs_of(names)).returncode != 0:
            return 'build', ''
        found = meson_tests(names, seconds)
        if found is not None:
            return found
    return None


def try_one(mutant, all_tests, seconds, is_quick, proven):
    """How a mutant died, or None. Tests that fail without it are removed from all_tests."""
    path = os.path.join(TREE, mutant[1])
    whole = read(path)
    while True:
        write(path, whole.replace(mutant[2], mutant[3]))
        try:
            found = kill(mutant, all_tests, seconds, is_quick)
        finally:
            write(path, whole)
        if found is None or found[0] not in all_tests:
            return found and found[0]
        if found[0] not in proven:
            ninja(*programs_of(found[:1]))
            if meson_tests(found[:1], seconds) is None:
                proven.add(found[0])
        if found[0] in proven:
            return '%s (%s)' % (found[0], found[1].lower())
        print('mutate.py: left out, since it fails without a mutant: ' + found[0], flush=True)
        all_tests.remove(found[0])


def mark(mutant):
    return hashlib.sha256('\0'.join(mutant[1:4]).encode()).hexdigest()[:16]


def load(path):
    return json.loads(read(path)) if os.path.isfile(path) else {}


def prepare(has_baseline):
    os.makedirs(TREE, exist_ok=True)
    sync()
    configure()
    done = ninja()
    if done.returncode != 0:
        sys.exit('the tree does not build without a mutant:\n' + done.stdout[-2000:])
    all_tests = fast_tests()
    if not all_tests:
        sys.exit('no tests were found')
    failed = meson_tests(all_tests, MESON_SECONDS) if has_baseline else None
    if failed is not None:
        sys.exit('the tree fails without a mutant: %s (%s)' % failed)
    return all_tests


def outcome(mutant, done):
    if done is None:
        return 'not run'
    if done['killer'] is not None:
        return 'killed by ' + done['killer']
    return 'survives: ' + (mutant[6] or 'no test notices')


def report(mutants, state):
    """Print the score; how many survive without a reason."""
    done = [state.get(mutant[0]) for mutant in mutants]
    killed = sum(one is not None and one['killer'] is not None for one in done)
    lived = [mutant for mutant, one in zip(mutants, done)
             if one is not None and one['killer'] is None]
    reasons = [mutant for mutant in lived if mutant[6]]
    for mutant in lived:
        print('survives: %-20s %s: %s' % (mutant[0], mutant[4], mutant[6] or 'UNEXPLAINED'))
    print('mutate.py: %d mutants, %d killed, %d equivalent, %d survive, %d not run' % (
        len(mutants), killed, len(reasons), len(lived) - len(reasons), done.count(None)))
    return len(lived) - len(reasons)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--list', action='store_true', help='the mutants and what became of them')
    parser.add_argument('--check', action='store_true', help='that each matches its file, and end')
    parser.add_argument('--only', help='names, separated by commas')
    parser.add_argument('--sample', type=int, metavar='N', help='N mutants drawn at random')
    parser.add_argument('--seed', type=int, default=1, help='of those drawn; 1 by default')
    parser.add_argument('--quick', action='store_true', help='the likely killers alone')
    parser.add_argument('--retry', action='store_true', help='survivors once more')
    parser.add_argument('--seconds', type=int, default=TEST_SECONDS, help='for a test')
    parser.add_argument('--state', help='state file')
    args = parser.parse_args()
    args.state = args.state or os.path.join(WORK, 'drawn.json' if args.sample else 'state.json')
    return args


def is_due(args, before):
    return before is None or args.only or (args.retry and before['killer'] is None)


def main():
    args = arguments()
    known = draw.draw(ROOT, args.sample, args.seed) if args.sample else read_mutants()
    chosen = args.only.split(',') if args.only else [mutant[0] for mutant in known]
    mutants = [mutant for mutant in known if mutant[0] in chosen]
    unknown = set(chosen) - {mutant[0] for mutant in mutants}
    broken = ['%s: no such mutant' % name for name in sorted(unknown)] + list(check(known))
    for message in broken:
        print('mutate.py: ' + message)
    if broken:
        return 1
    state = {name: done for name, done in load(args.state).items()
             if any(name == mutant[0] and done['mark'] == mark(mutant) for mutant in known)}
    if args.list:
        for mutant in mutants:
            print('%-20s %-32s %s: %s' % (mutant[0], mutant[1], mutant[4],
                                          outcome(mutant, state.get(mutant[0]))))
    if args.list or args.check:
        return 0
    to_run = [mutant for mutant in mutants if is_due(args, state.get(mutant[0]))]
    all_tests = prepare(has_baseline=not args.only and not args.quick)
    proven = set()
    for mutant in to_run:
        start = time.monotonic()
        killer = try_one(mutant, all_tests, args.seconds, args.quick, proven)
        if killer is not None or not args.quick:
            state[mutant[0]] = {'mark': mark(mutant), 'killer': killer}
            write(args.state, json.dumps(state, indent=1, sort_keys=True) + '\n')
        print('%-20s %4.0f s  %s' % (mutant[0], time.monotonic() - start,
                                     outcome(mutant, state.get(mutant[0]))), flush=True)
    return 1 if report(mutants, state) * 100 > (5 * len(mutants) if args.sample else 0) else 0


if __name__ == '__main__':
    sys.exit(main())
