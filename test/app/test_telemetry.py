#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the replies of telemetry of a running dpdk-testrmem.

usage: test_telemetry.py DPDK-TESTRMEM [DPDK-RMEM-KV]

The second program connects, unless rmem was built without librdmacm.

Commands are sent to the socket that dpdk-telemetry.py uses, and one with that script, if it is
installed.
"""

import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from unittest.mock import ANY

PREFIX = 'rmem_telemetry_%d' % os.getpid()
SERVER_IP, CLIENT_IP = '127.0.24.1', '127.0.24.2'


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
    assert sum(client.ask('/rmem/qp,' + name)['stats']['send_wrs'] for name in qps['qps']) > 0
    assert qps['oldest'] in qps['qps'] and qps['oldest_age_ms'] >= 0, qps
    assert client.ask('/rmem/qp,hard0') == {'count': 0, 'qps': []}
    assert client.ask('/rmem/qp,soft0,0') is None
    # The name of the QPs is empty, and none is found by it.
    assert client.ask('/rmem/qp,soft0,') is None


def check_objects(client):
    for command, name in (('pd', 'pds'), ('mr', 'mrs'), ('cq', 'cqs')):
        objects = client.ask('/rmem/' + command)
        assert objects['count'] == len(objects[name]) > 0, objects
        for which in objects[name]:
            one = client.ask('/rmem/%s,%s' % (command, which))
            assert one['device'] == which.split(',')[0] and one['age_ms'] >= 0, one
    # The MR of a pool has its name, by which it is found too.
    mr = client.ask('/rmem/mr,soft0,tr_soft0')
    assert (mr['name'], mr['state'], mr['type']) == ('tr_soft0', 'VALID', 'user'), mr
    assert client.ask('/rmem/mr,soft0,' + mr['rkey']) == {**mr, 'age_ms': ANY}, mr
    assert client.ask('/rmem/mw') == {'count': 0, 'mws': []}
    assert client.ask('/rmem/mr,soft0,0x1') is None


def check_traces(client):
    assert client.ask('/rmem/trace')['enabled'] == 0
    assert client.ask('/rmem/trace,lib.rmem.mr.*') == {'enabled': 0, 'points': 1}
    assert client.ask('/rmem/trace')['enabled'] == 1
    assert client.ask('/rmem/trace,-lib.rmem.mr.*')['points'] == 1
    assert client.ask('/rmem/trace')['enabled'] == 0
    assert client.ask('/rmem/trace,no.such.point')['points'] == 0


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
    assert pool['failed_gets'] == 0 and pool['low_water'] <= pool['objects'], pool
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
    assert sum(lease['mrs'].values()) <= 16 and 'last_refusal' not in lease, lease
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
    check_objects(client)
    check_traces(client)
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


def conns(client, **wanted):
    """The connections that have these values."""
    listed = client.ask('/rmem/cm')
    assert listed['count'] == len(listed['conns']), listed
    found = [client.ask('/rmem/cm,' + name) for name in listed['conns']]
    return [conn for conn in found if conn and all(conn[key] == value for key, value in wanted.items())]


def established(client):
    """A connection and its QP, if it is the same before and after; the client may connect again."""
    for conn in conns(client, state='ESTABLISHED'):
        qp = client.ask('/rmem/qp,soft0,%d' % conn['qp_num'])
        if qp and qp['state'] == 'RTS' and client.ask('/rmem/cm,soft0,' + conn['local_id']) == conn:
            return conn, qp
    return None


def check_cm_up(client):
    found = []
    client.wait_for(lambda: found.append(established(client)) or found[-1])
    conn, qp = found[-1]
    assert (conn['device'], conn['side'], conn['end']) == ('soft0', 'passive', ''), conn
    assert (conn['local'], conn['peer']) == (SERVER_IP, CLIENT_IP), conn
    assert (conn['port_space'], conn['service_id']) == ('TCP', hex(0x106 << 16 | conn['port'])), conn
    assert int(conn['local_id'], 16) and int(conn['remote_id'], 16), conn
    assert qp['remote_qp_num'] == conn['remote_qp_num'], (qp, conn)
    assert client.ask('/rmem/cm,soft0,0x0') is None
    return conn


def check_cm_ended(client, conn):
    """The same connection, after the client has ended it."""
    ended = dict(conn, state='IDLE', end='disconnected by peer', retries=ANY)
    client.wait_for(lambda: client.ask('/rmem/cm_port,soft0')['conns'] == 0)
    assert conns(client, local_id=conn['local_id']) == [ended], (conns(client), conn)
    assert client.ask('/rmem/cm_port') == {'count': 1, 'ports': ['soft0']}
    port = client.ask('/rmem/cm_port,soft0')
    stats = port['stats']
    assert port['device'] == 'soft0' and port['ended'] == len(conns(client)) >= 1, port
    assert stats['rx_req'] >= 1 and stats['tx_rep'] >= 1 and stats['rx_rtu'] >= 1, port
    assert stats['rx_dreq'] >= 1 and stats['tx_drep'] >= 1, port
    assert stats['rx_sidr_req'] == stats['malformed'] == stats['refused'] == 0, port
    assert stats['qp1_rx'] >= stats['rx_req'] + stats['rx_rtu'] + stats['rx_dreq'], port
    assert client.ask('/rmem/cm_port,soft1') is None


def run_cm(path):
    """A server with telemetry, and a client that connects and ends."""
    eal = [path, '--no-huge', '-m', '64', '--no-pci', '-l', '0', '--log-level=pmd.rmem.soft:error']
    app = ['--keys', '10', '--lease-ms', '500', '--dev']
    server_args = [*eal, '--file-prefix', PREFIX, '--', *app, 'soft0,ip=' + SERVER_IP,
                   '--listen', SERVER_IP]
    client_args = [*eal, '--no-shconf', '--no-telemetry', '--', *app, 'soft0,ip=' + CLIENT_IP,
                   '--connect', SERVER_IP]
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT, 'text': True}
    with subprocess.Popen(server_args, **pipes) as server:
        try:
            client = Client(server)
            client.wait_for(lambda: client.ask('/rmem/cm_port')['count'] == 1)
            with subprocess.Popen([*client_args, '--gets', '0'], **pipes) as peer:
                try:
                    # Its last check at the start; it then reads until it is interrupted.
                    for line in peer.stdout:
                        if 'expired lease refused' in line:
                            break
                    conn = check_cm_up(client)
                    peer.send_signal(signal.SIGINT)
                    out = peer.communicate()[0]
                finally:
                    peer.kill()
            assert peer.returncode == 0, out
            check_cm_ended(client, conn)
            server.send_signal(signal.SIGINT)
            out = server.communicate()[0]
        finally:
            server.kill()
    assert server.returncode == 0, out


def main(path, kv=None):
    # EAL's default directory may belong to another user.
    with tempfile.TemporaryDirectory() as folder:
        os.environ['XDG_RUNTIME_DIR'] = folder
        run(path, 'write', 4, check_write)
        run(path, 'lease', 8, check_lease)
        if kv is not None:
            run_cm(kv)
    print('telemetry: devices, QPs, pools, leases and connections are told')


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
