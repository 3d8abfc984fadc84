#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rmem-top on a running dpdk-testrmem, in a terminal of tmux, and on replies that lack fields.

usage: test_rmem_top.py RMEM-TOP DPDK-TESTRMEM [DPDK-RMEM-KV]

The third one connects, unless rmem was built without librdmacm.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PREFIX = 'rmem_top_%d' % os.getpid()


def top(*args, prefix=PREFIX):
    return subprocess.run([TOP, '-f', prefix, *args], capture_output=True, text=True, check=False)


def wait_for(what, alive):
    """Wait as long as a process runs: the test has a limit."""
    while not what():
        assert alive.poll() is None, 'exit status %d' % alive.returncode
        time.sleep(0.02)


def rows(text, view):
    """Rows of a view in the last sample of batch mode, by header."""
    lines = text.split('\n%s: ' % view)[-1].split('\n')[1:]
    names = lines[0].split()
    return [dict(zip(names, line.split())) for line in lines[1:lines.index('')]]


def check_batch():
    first = top('-b', '-n', '1')
    assert first.returncode == 0 and not first.stderr, first
    assert re.match(r'rmem-top - .*file-prefix %s  DPDK' % PREFIX, first.stdout), first
    devs = rows(first.stdout, 'dev')
    assert [dev['DEVICE'] for dev in devs] == ['soft0', 'soft1'], devs
    assert all(dev['WR/s'] == '-' and dev['QP'] == '4' and dev['ERRORS'] == '0' for dev in devs), devs
    assert len(rows(first.stdout, 'qp')) == 8 and '\nqp: 8\n' in first.stdout, first
    two = top('-b', '-n', '2', '-d', '0.1', '-v', 'dev', '-v', 'lease', '-s', 'device', '-r')
    devs = rows(two.stdout, 'dev')
    assert [dev['DEVICE'] for dev in devs] == ['soft1', 'soft0'], devs
    assert 'qp:' not in two.stdout and len(rows(two.stdout, 'lease')) == 4, two
    reading, writing = os.pipe()
    os.close(reading)
    full = subprocess.run([TOP, '-f', PREFIX, '-b', '-n', '2', '-d', '0.1'], stdout=writing,
                          stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert not full.stderr, full


def check_statistic():
    """As rdma statistic prints links; the same counters in JSON."""
    out = top('--statistic')
    assert out.returncode == 0 and not out.stderr, out
    lines = [line.split() for line in out.stdout.splitlines()]
    assert [line[:2] for line in lines] == [['link', 'soft0/1'], ['link', 'soft1/1']], out
    for line in lines:
        values = dict(zip(line[2::2], line[3::2]))
        assert len(values) == 14 and all(value.isdigit() for value in values.values()), line
        assert values['sent_pkts'] == '0' and values['req_cqe_error'] == '0', line
    links = json.loads(top('--statistic', '--json').stdout)
    assert [(link['ifname'], link['port']) for link in links] == [('soft0', 1), ('soft1', 1)], links
    assert all(list(link)[2:] == lines[0][2::2] for link in links), links


def check_json():
    """Rates are those of the counters."""
    out = top('--json', '-n', '3', '-d', '0.2')
    samples = [json.loads(line) for line in out.stdout.splitlines()]
    assert len(samples) == 3 and not samples[0]['dev'][0]['rates_per_s'], out
    for old, new in zip(samples, samples[1:]):
        assert new['time_unix_s'] > old['time_unix_s'], out
        for before, after in zip(old['dev'], new['dev']):
            rise = after['send_wrs'] - before['send_wrs']
            assert rise >= 0 and after['id'] == before['id'], (before, after)
            # A program that had no processor in between has posted nothing.
            assert (after['rates_per_s']['send_wrs'] > 0) == (rise > 0), after
    if all(dev['rates_per_s']['send_wrs'] == 0 for new in samples[1:] for dev in new['dev']):
        check_json()
        return
    assert {qp['state'] for qp in samples[0]['qp']} == {'RTS'}, samples[0]
    assert samples[0]['pool'][0]['registrations'] == 1, samples[0]
    counts = samples[0]['counts']
    assert [counts[kind] for kind in ('dev', 'qp', 'pool', 'lease', 'cq')] == [2, 8, 2, 4, 8], counts


def parse_metrics(text):
    """Values by name and labels; each family has a type and is in one piece."""
    values, families, family = {}, [], None
    for line in text.splitlines():
        comment = re.fullmatch(r'# TYPE (rmem_\w+) (gauge|counter)', line)
        if comment:
            family = comment[1]
            assert (family.endswith('_total')) == (comment[2] == 'counter'), line
            families.append(family)
            continue
        name, labels, value = re.fullmatch(
            r'(\w+)((?:\{\w+="[^"]*"(?:,\w+="[^"]*")*\})?) (-?[\d.e+]+)', line).groups()
        assert name == family and name + labels not in values, line
        values[name + labels] = float(value)
    assert len(families) == len(set(families)), families
    return values


def check_prometheus():
    old = parse_metrics(top('--prometheus').stdout)
    new = parse_metrics(top('--prometheus').stdout)
    assert old['rmem_up'] == 1 and old['rmem_qp_count'] == 8, old
    assert old['rmem_dev_info{dev="soft1",driver="soft"}'] == 1, old
    counters = {name for name in old if '_total' in name}
    assert counters and all(new[name] >= old[name] for name in counters)
    assert old['rmem_pool_in_use{pool="tr_soft0"}'] > 0, old
    assert old['rmem_lease_count'] == 4, old


def check_errors():
    for args, text in ((('-b', '-v', 'nope'), "no view 'nope': the application has dev, qp, pool, lease"),
                       (('-b', '-s', 'nope'), "no column 'nope' to sort by: want one of DEVICE"),
                       ((), 'not a terminal: use --batch'),
                       (('-b', '-d', '0'), "'0' is out of range: 0.1 to 1000000"),
                       (('-b', '-n', '0'), "'0' is out of range: 1 to"),
                       (('--listen', 'x'), "'x' is not [ADDR:]PORT"),
                       (('--listen', '203.0.113.1:0'), 'cannot listen at 203.0.113.1 port 0')):
        out = top(*args)
        assert out.returncode in (1, 2) and text in out.stderr, (args, out)
        assert 'Traceback' not in out.stderr, out
    out = top('-b', prefix='rmem_absent')
    assert out.returncode == 1 and 'no application (--file-prefix of others: ' in out.stderr, out
    assert PREFIX in out.stderr, out
    assert PREFIX in top('-l').stdout.split()


def get(url):
    with urllib.request.urlopen(url) as reply:
        return reply.read().decode()


@contextlib.contextmanager
def exporter():
    with subprocess.Popen([TOP, '-f', PREFIX, '--listen', '0'], stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            yield 'http://127.0.0.1:%s/metrics' % server.stdout.readline().split()[-1], server
        finally:
            server.terminate()
    assert server.returncode == 0, server.returncode


def check_exporter(url):
    assert parse_metrics(get(url))['rmem_dev_count'] == 2
    try:
        get(url[:-7] + 'other')
        raise AssertionError('a page that does not exist')
    except urllib.error.HTTPError as error:
        assert error.code == 404, error


@contextlib.contextmanager
def terminal(folder):
    """A terminal of tmux with rmem-top, and a function that returns what it shows."""
    tmux = ['tmux', '-f', '/dev/null', '-S', os.path.join(folder, 'tmux')]
    status = os.path.join(folder, 'status')
    # Its default, the user's shell, may refuse to run anything.
    os.environ['SHELL'] = '/bin/sh'
    subprocess.run(tmux + ['new-session', '-d', '-x', '160', '-y', '40',
                           "'%s' -f %s -d 0.1; echo $? >'%s'; exec cat" % (TOP, PREFIX, status)],
                   check=True)

    def screen():
        return subprocess.run(tmux + ['capture-pane', '-p'], capture_output=True, text=True,
                              check=True).stdout

    def press(*keys):
        subprocess.run(tmux + ['send-keys', *keys], check=True)

    try:
        yield screen, press, status
    finally:
        subprocess.run(tmux + ['kill-server'], check=False)  # its failure would hide another


def check_live(screen, press, program):
    def seen(*regexes):
        wait_for(lambda: all(re.search(regex, screen(), re.M) for regex in regexes), program)

    # A rate of WRs in the row of a device, and the keys in the last line.
    seen(r'^rmem-top - ', r'^soft0 +soft +[\d.]+[kMG] ', r'^lease: 4$', r'^pool: 2$', r'q quit$')
    press('2')
    seen(r'^qp: 8$')
    wait_for(lambda: 'pool: 2' not in screen(), program)
    press('s')
    seen('sorted by QP')
    press('r')
    seen('sorted by QP, reversed')
    press('Down', 'Down', 'Down')
    wait_for(lambda: 'qp: 8' not in screen(), program)
    press('a')
    seen(r'^dev: 2$', r'^lease: 4$')


def check_program(folder, path):
    args = [path, '--no-huge', '-m', '256', '--no-pci', '-l', '0', '--file-prefix', PREFIX, '--', '-i',
            '--dev', 'soft0', '--dev', 'soft1', '--mode', 'lease', '--qps', '4', '--size', '256']
    has_tmux = shutil.which('tmux') is not None
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(subprocess.Popen(
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        stack.callback(program.kill)
        program.stdin.write('start\n')
        program.stdin.flush()
        wait_for(lambda: '\nlease: 4\n' in top('-b', '-n', '1').stdout, program)
        check_batch()
        check_statistic()
        check_json()
        check_prometheus()
        check_errors()
        url, server = stack.enter_context(exporter())
        check_exporter(url)
        if has_tmux:
            screen, press, status = stack.enter_context(terminal(folder))
            check_live(screen, press, program)
        out = program.communicate('quit\n')[0]
        assert program.returncode == 0, out
        assert get(url) == '# TYPE rmem_up gauge\nrmem_up 0\n'
        if has_tmux:
            wait_for(lambda: 'trying again' in screen() and 'no application' in screen(), server)
            press('q')
            wait_for(lambda: os.path.exists(status) and os.path.getsize(status), server)
            with open(status, encoding='ascii') as file:
                assert file.read() == '0\n'
    print('live view: %s' % ('checked in tmux' if has_tmux else 'skipped, no tmux'))


def check_cm(path):
    """The view of connections, while there is one and after its end, and that of their CM."""
    prefix = PREFIX + '_cm'
    ips = '127.0.24.3', '127.0.24.4'
    eal = [path, '--no-huge', '-m', '64', '--no-pci', '-l', '0', '--log-level=pmd.rmem.soft:error']
    app = ['--keys', '10', '--lease-ms', '500', '--dev']

    def conns():
        out = top('-b', '-n', '1', '-v', 'cm', prefix=prefix).stdout
        return rows(out, 'cm') if '\nCONN' in out else []

    with contextlib.ExitStack() as stack:
        server, client = [
            stack.enter_context(subprocess.Popen([*eal, *options], stdout=subprocess.PIPE,
                                                 stderr=subprocess.STDOUT, text=True))
            for options in (
                ['--file-prefix', prefix, '--', *app, 'soft0,ip=' + ips[0], '--listen', ips[0]],
                ['--no-shconf', '--no-telemetry', '--', *app, 'soft0,ip=' + ips[1], '--connect', ips[0],
                 '--wait-s', '600', '--gets', '0'])]
        stack.callback(client.kill)
        stack.callback(server.kill)
        found = []
        wait_for(lambda: found.extend(conn for conn in conns() if conn['STATE'] == 'ESTABLISHED') or found,
                 server)
        conn = found[0]
        assert (conn['SIDE'], conn['PEER'], conn['PORT'], conn['END']) == (
            'passive', ips[1], '7174', '-'), conn
        client.terminate()
        client.communicate()
        wait_for(lambda: ('disconnected_by_peer', conn['CONN']) in {
            (other['END'], other['CONN']) for other in conns()}, server)
        port, = rows(top('-b', '-n', '1', '-v', 'cm_port', prefix=prefix).stdout, 'cm_port')
        assert (port['CM'], port['BAD']) == ('soft0', '0') and int(port['RXREQ']) >= 1, port
        values = parse_metrics(top('--prometheus', prefix=prefix).stdout)
        assert values['rmem_cm_port_rx_dreq_total{cm_port="soft0"}'] >= 1, values
        server.terminate()
        out = server.communicate()[0]
    assert server.returncode == 0, out


class Fake:
    """Telemetry of another version: replies of a table, one for each command."""

    def __init__(self, replies, info=b'{"version": "DPDK 99", "pid": 1, "max_output_len": 16384}'):
        self.replies = replies
        self.info = info
        folder = os.path.join(os.environ['XDG_RUNTIME_DIR'], 'dpdk', 'fake')
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, 'dpdk_telemetry.v2')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        self.socket.listen(1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        connection = self.socket.accept()[0]
        connection.send(self.info)
        while command := connection.recv(1024).decode():
            reply = self.replies.get(command)
            if reply is None:
                break
            connection.send(reply if isinstance(reply, bytes)
                            else json.dumps({command.split(',')[0]: reply}).encode())
        connection.close()


def check_fake():
    replies = {'/': ['/rmem/dev', '/rmem/pool', '/rmem/mr'], '/rmem/dev': ['a b"\\'],
               '/rmem/dev,a b"\\': {'stats': {'new_counter': 3}, 'used': {'deep': {'er': 1}}, 'none': None},
               '/rmem/pool': {'count': 600, 'pools': ['p', 'cut', 'gone']}, '/rmem/pool,p': {'in_use': 1},
               '/rmem/pool,cut': b'{"/rmem/pool": {"in_us', '/rmem/pool,gone': {},
               '/rmem/mr': {'count': 1, 'mrs': ['m,1']}, '/rmem/mr,m,1': {'length': 7, 'owner': 'me'}}
    Fake(replies)
    out = top('-b', '-n', '1', prefix='fake')
    assert out.returncode == 0, out
    assert rows(out.stdout, 'mr') == [{'MR': 'm,1', 'LENGTH': '7', 'OWNER': 'me'}], out
    assert '(598 more are not listed by telemetry)' in out.stdout and 'INUSE' in out.stdout, out
    Fake(replies)
    out = top('--prometheus', prefix='fake')
    assert 'rmem_dev_new_counter_total{dev="a b\\"\\\\"} 3\n' in out.stdout, out
    assert 'rmem_dev_used_deep_er{dev="a b\\"\\\\"} 1\n' in out.stdout, out
    Fake({'/': ['/ethdev/list']})
    out = top('-b', prefix='fake')
    assert out.returncode == 1 and 'the application does not use rmem' in out.stderr, out
    Fake({'/': ['/rmem/dev']})
    out = top('-b', prefix='fake')
    assert out.returncode == 1 and 'fake: the application has ended' in out.stderr, out


def check_nonsense():
    """Another program at the socket: an error, or the replies that have a meaning."""
    for info in (b'x', b'[]', b'{}', b'{"version": "D", "pid": "x", "max_output_len": 1}',
                 b'{"version": "D", "pid": 1, "max_output_len": null}', b'[' * 1000):
        Fake({'/': ['/rmem/dev']}, info)
        out = top('-b', prefix='fake')
        assert out.returncode == 1 and 'fake/dpdk_telemetry.v2: no telemetry of DPDK: ' in out.stderr, out
    for replies in ({'/': 5}, {'/': [7]}, {'/': b'[1]'}):
        Fake(replies)
        out = top('-b', prefix='fake')
        assert out.returncode == 1 and 'the application does not use rmem' in out.stderr, out
    for devs in ({'count': 'x', 'devs': ['a']}, {'count': 2, 'devs': [[1], {}]}, [5, None], 'a', b'[' * 9999):
        Fake({'/': ['/rmem/dev', 7], '/rmem/dev': devs})
        out = top('-b', '-n', '1', prefix='fake')
        assert out.returncode == 0 and '\ndev: ' in out.stdout and not out.stderr, out


def main():
    with tempfile.TemporaryDirectory() as folder:
        # EAL's default directory may belong to another user.
        os.environ['XDG_RUNTIME_DIR'] = os.environ['RUNTIME_DIRECTORY'] = folder
        check_fake()
        check_nonsense()
        check_program(folder, sys.argv[2])
        if len(sys.argv) == 4:
            check_cm(os.path.abspath(sys.argv[3]))


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    TOP = os.path.abspath(sys.argv[1])
    main()
