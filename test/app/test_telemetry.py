#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the replies of telemetry of a running dpdk-testrmem.

usage: test_telemetry.py DPDK-TESTRMEM

Commands are sent to the socket that dpdk-telemetry.py uses, and one with that script, if it is
installed.
"""

import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PREFIX = 'rmem_telemetry_%d' % os.getpid()


def socket_path():
    """The path of the socket, which depends on the user of the program."""
    tops = ('/var/run/dpdk', os.path.join(os.environ.get('XDG_RUNTIME_DIR', '/tmp'), 'dpdk'))
    for top in tops:
        for path in glob.glob(os.path.join(top, PREFIX, 'dpdk_telemetry.v2')):
            return path
    return None


class Client:
    """Waits without a limit while the program runs: the test has one."""

    def __init__(self, program):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.program = program
        self.size = 0
        self.wait_for(self.connect)

    def connect(self):
        try:
            self.socket.connect(socket_path() or 'none')
            self.size = json.loads(self.socket.recv(1024))['max_output_len']
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def wait_for(self, what):
        while not what():
            if self.program.poll() is not None:
                sys.exit('exit status %d:\n%s' % (self.program.returncode,
                                                  self.program.stdout.read()))
            time.sleep(0.02)

    def ask(self, command):
        self.socket.send(command.encode())
        answer = json.loads(self.socket.recv(self.size))
        return answer[command.split(',')[0]]


def check_devs(client):
    assert client.ask('/rmem/dev') == ['soft0', 'soft1']
    dev = client.ask('/rmem/dev,soft0')
    assert (dev['name'], dev['driver']) == ('soft0', 'soft'), dev
    assert dev['qps'] == {'used': 4, 'max': 256} and dev['pds']['used'] == 1, dev
    assert dev['mrs']['used'] == 2 and dev['max_mr_size'] == 1 << 47, dev
    assert int(dev['capabilities'], 16) != 0, dev
    assert dev['stats']['errors'] == 0, dev
    before = dev['stats']['send_wrs']
    client.wait_for(lambda: client.ask('/rmem/dev,soft0')['stats']['send_wrs'] > before)
    assert client.ask('/rmem/dev,soft1')['qps'] == {'used': 4, 'max': 8}
    assert client.ask('/rmem/dev,hard0') is None


def check_qps(client):
    qps = client.ask('/rmem/qp')
    assert qps['count'] == 8 and len(qps['qps']) == 8, qps
    of_dev = client.ask('/rmem/qp,soft1')
    assert of_dev['count'] == 4, of_dev
    assert all(re.fullmatch(r'soft1,\d+', name) for name in of_dev['qps']), of_dev
    assert set(of_dev['qps']) < set(qps['qps'])
    peers = {}
    for name in of_dev['qps']:
        qp = client.ask('/rmem/qp,' + name)
        assert name == '%s,%d' % (qp['device'], qp['qp_num']), qp
        assert qp['state'] == 'RTS' and qp['send']['max'] > 0, qp
        peers[qp['qp_num']] = qp['remote_qp_num']
    assert all(peers[peers[num]] == num for num in peers), peers
    assert client.ask('/rmem/qp,hard0') == {'count': 0, 'qps': []}
    assert client.ask('/rmem/qp,soft0,0') is None


def check_pools(client):
    pools = client.ask('/rmem/pool')
    assert pools['count'] == 2 and sorted(pools['pools']) == ['tr_soft0', 'tr_soft1'], pools
    pool = client.ask('/rmem/pool,tr_soft0')
    assert pool['name'] == 'tr_soft0' and pool['object_size'] == 256, pool
    assert pool['in_use'] + pool['available'] == pool['objects'], pool
    assert pool['in_use'] >= 2 * 16, pool
    assert list(pool['registrations']) == ['0'], pool
    reg = pool['registrations']['0']
    assert (reg['device'], reg['mrs'], reg['access']) == ('soft0', 1, '0x40000001'), pool
    assert reg['bytes'] >= 256 * pool['objects'], pool
    assert client.ask('/rmem/pool,no such') is None


def check_leases(client):
    leases = client.ask('/rmem/lease')
    assert leases['count'] == 8 and set(leases['leases']) < set(client.ask('/rmem/qp')['qps']), leases
    name = leases['leases'][0]
    lease = client.ask('/rmem/lease,' + name)
    assert name == '%s,%d' % (lease['device'], lease['qp_num']), lease
    assert lease['backend'] == 'fast-register MRs' and lease['max_leases'] == 64, lease
    assert lease['keys'] >= lease['min_keys'] == 16 and lease['peak_keys'] <= 64, lease
    assert lease['leases'] <= lease['peak_leases'] <= 16, lease
    assert lease['failed'] == lease['keys_replaced'] == lease['expired'] == 0, lease
    before = lease['revoked']
    client.wait_for(lambda: client.ask('/rmem/lease,' + name)['revoked'] > before)
    assert client.ask('/rmem/lease,soft0,0') is None


def check_stock_script():
    script = shutil.which('dpdk-telemetry.py')
    if script is None:
        print('skipped: no dpdk-telemetry.py')
        return
    out = subprocess.run([sys.executable, script, '-f', PREFIX], input='/rmem/dev\nquit\n', text=True,
                         capture_output=True, check=False)
    assert 'soft1' in out.stdout, out


def check_write(client):
    client.wait_for(lambda: client.ask('/rmem/qp')['count'] == 8)
    assert client.ask('/rmem/lease') == {'count': 0, 'leases': []}
    check_devs(client)
    check_qps(client)
    check_pools(client)
    check_stock_script()


def check_lease(client):
    client.wait_for(lambda: client.ask('/rmem/lease')['count'] == 8)
    check_leases(client)


def run(path, mode, qps, check):
    args = [path, '--no-huge', '-m', '256', '--no-pci', '-l', '0', '--file-prefix', PREFIX, '--', '-i',
            '--dev', 'soft0', '--dev', 'soft1,max_qp=%d' % (2 * qps), '--mode', mode, '--qps', str(qps),
            '--size', '256', '--burst', '8', '--depth', '16']
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as program:
        try:
            program.stdin.write('start\n')
            program.stdin.flush()
            check(Client(program))
            out = program.communicate('quit\n')[0]
        finally:
            program.kill()
    assert program.returncode == 0, out


def main(path):
    # EAL's default directory may belong to another user.
    with tempfile.TemporaryDirectory() as folder:
        os.environ['XDG_RUNTIME_DIR'] = folder
        run(path, 'write', 4, check_write)
        run(path, 'lease', 8, check_lease)
    print('telemetry: devices, QPs, pools and leases are told')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
