#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the autotests of traces with and without --trace, and reads what was saved.

usage: test_trace.py DPDK-TEST-RMEM [DPDK-TEST-CM-MAD]

The second program has the autotest of connections, which is not built without librdmacm. The
autotests print what has to be in the trace. Each point that the libraries register must be in
it and in doc/telemetry.md.
"""

import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, 'doc', 'telemetry.md')
POINT = re.compile(r'RTE_TRACE_POINT_REGISTER\(\s*\w+,\s*([\w.]+)\)')
ERRORS = re.compile(r'`([^`]+)` selects the errors')
ROW = re.compile(r'^\| `(lib\.rmem\.[\w.]+)` \| ([^|]*) \|', re.M)
EVENT = re.compile(r'event \{\s*id = (\d+);\s*name = "([\w.]+)";\s*fields := struct \{(.*?)\};\s*\};',
                   re.S)
FIELD = re.compile(r'(\w+) (\w+)(?:\[\d+\])?;')
EAL = ['--no-huge', '-m', '256', '--no-shconf', '--no-pci', '--no-telemetry',
       '--log-level=*rmem*:emergency']
HEADER = 56
FORMATS = {'uint16_t': 'H', 'uint32_t': 'I', 'uint64_t': 'Q', 'int32_t': 'i', 'uintptr_t': 'Q',
           'size_t': 'Q', 'string_bounded_t': '32s'}


def read(path, mode='r'):
    with open(path, mode) as file:
        return file.read()


def points(has_cm):
    """Names of the points that the libraries register, of connections alone or of all others."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, 'lib', '*', '*_trace_points.c')):
        if (os.path.basename(os.path.dirname(path)) == 'rmem_cm') == has_cm:
            names.update(POINT.findall(read(path)))
    assert len(names) > (0 if has_cm else 30), names
    return names


def run(program, env, *options):
    done = subprocess.run([program, *EAL, *options], env={**os.environ, **env}, check=False,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit('%s ended with %d:\n%s' % (' '.join(done.args), done.returncode, done.stdout))
    return [line[len('wanted: '):] for line in done.stdout.splitlines()
            if line.startswith('wanted: ')]


def parse_metadata(path):
    """id -> (name, fields as (type, name))."""
    return {int(number): (name, FIELD.findall(fields))
            for number, name, fields in EVENT.findall(read(path))}


def parse_stream(path, events):
    """The events of a stream, as (name, {field: value})."""
    data = read(path, 'rb')
    assert struct.unpack_from('<I', data)[0] == 0xc1fc1fc1, path
    at = HEADER
    while at + 8 <= len(data):
        name, fields = events[struct.unpack_from('<Q', data, at)[0] >> 48]
        at += 8
        values = {}
        for kind, field in fields:
            value, = struct.unpack_from('<' + FORMATS[kind], data, at)
            at += struct.calcsize('<' + FORMATS[kind])
            if isinstance(value, bytes):
                value = value.split(b'\0')[0].decode()
            values[field] = str(value)
        yield name, values
        at = (at + 7) // 8 * 8


def parse_trace(folder):
    paths = glob.glob(os.path.join(folder, '*', 'metadata'))
    assert len(paths) == 1, paths
    events = parse_metadata(paths[0])
    found = []
    for path in glob.glob(os.path.join(os.path.dirname(paths[0]), 'channel*')):
        found.extend(parse_stream(path, events))
    return events, found


def is_there(line, found):
    name, *fields = line.split()
    wanted = [field.split('=') for field in fields]
    return any(name == other and all(values[field] == value for field, value in wanted)
               for other, values in found)


def trace_of(program, tests):
    """What the tests want, the points of the program by number, and the trace."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = run(program, {'DPDK_TEST': tests, 'RMEM_TEST_TRACE': 'lib.rmem'},
                     '--trace=lib.rmem.*', '--trace-dir=' + folder)
        return (wanted, *parse_trace(folder))


def check_on(program):
    wanted, events, found = trace_of(program, 'trace_lease_autotest,trace_autotest')
    registered = {name for name, _ in events.values() if name.startswith('lib.rmem.')}
    assert registered == points(False), registered ^ points(False)
    assert {name for name, _ in found} == points(False), {name for name, _ in found} ^ points(False)
    missing = [line for line in wanted if not is_there(line, found)]
    assert len(wanted) > 40 and not missing, missing
    # Nothing else is as good.
    assert not is_there('lib.rmem.pool.create name=other', found)
    print('%d events of %d points, %d looked for' % (len(found), len(registered), len(wanted)))
    return events


def check_cm(program):
    wanted, events, found = trace_of(program, 'cm_trace_autotest')
    names = {name for name, _ in found}
    assert points(True) <= names, points(True) - names
    missing = [line for line in wanted if not is_there(line, found)]
    assert len(wanted) == 6 and not missing, missing
    return {number: event for number, event in events.items() if event[0] in points(True)}


def check_errors(program):
    """The pattern that the documentation gives for errors enables those of all libraries alone."""
    pattern = ERRORS.search(read(PAGE)).group(1)
    with tempfile.TemporaryDirectory() as folder:
        run(program, {'DPDK_TEST': 'trace_lease_autotest,trace_autotest', 'RMEM_TEST_TRACE': 'error'},
            '--trace=' + pattern, '--trace-dir=' + folder)
        names = {name for name, _ in parse_trace(folder)[1]}
    wanted = {name for name in points(False) if 'error' in name}
    assert wanted and names == wanted, names ^ wanted


def check_off(program):
    with tempfile.TemporaryDirectory() as folder:
        wanted = run(program, {'DPDK_TEST': 'trace_lease_autotest,trace_autotest'},
                     '--trace-dir=' + folder)
        assert wanted and not os.listdir(folder), os.listdir(folder)
    print('nothing is saved with traces off')


def check_page(*all_events):
    """The table in the documentation names the points and their fields."""
    rows = dict(ROW.findall(read(PAGE)))
    names = points(False) | points(True)
    assert set(rows) == names, set(rows) ^ names
    for name, fields in (event for events in all_events for event in events.values()):
        if name in rows:
            told = re.findall(r'`(\w+)`', rows[name])
            assert told == [field for _, field in fields], (name, told, fields)
    print('%s tells the same %d points' % (os.path.relpath(PAGE, ROOT), len(rows)))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    all_events = [check_on(program)]
    if len(sys.argv) == 3:
        all_events.append(check_cm(os.path.abspath(sys.argv[2])))
    check_errors(program)
    check_off(program)
    check_page(*all_events)


if __name__ == '__main__':
    main()
