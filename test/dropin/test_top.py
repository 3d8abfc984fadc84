#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rmem-top shows the connections of verbs programs: of two processes of cm_states.c.

usage: test_top.py RMEM-TOP RMEM-RUN CM_STATES
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile


def top(pid, *args):
    return subprocess.run([sys.executable, TOP, '-p', str(pid), *args], capture_output=True, text=True, check=False)


def start(command, port, env):
    """A process that stops when it is connected."""
    return subprocess.Popen([RUN, STATES, command, '127.0.0.1', str(port), 'established'],
                            stdout=subprocess.PIPE, text=True, env=env)


def wait_for(process, line):
    for got in process.stdout:
        if got.strip() == line:
            return
    sys.exit('no line "%s"' % line)


def objects(pid):
    out = top(pid, '--json', '-n', '1')
    assert out.returncode == 0 and not out.stderr, out
    return json.loads(out.stdout)


def check(active, passive, port):
    both = {'active': objects(active.pid), 'passive': objects(passive.pid)}
    conns = {}
    for side, sample in both.items():
        conns[side], = sample['cm']
        assert sample['counts'] == {'cm': 1, 'cm_port': 1}, sample
        assert sample['cm_port'][0]['conns'] == 1 and sample['cm_port'][0]['ended'] == 0, sample
        assert conns[side]['side'] == side and conns[side]['state'] == 'ESTABLISHED', sample
        assert conns[side]['port'] == port, sample
    assert conns['active']['qp_num'] == conns['passive']['remote_qp_num'], conns
    assert conns['active']['id'] == conns['passive']['remote_id'], conns
    text = top(passive.pid, '-b', '-n', '2', '-d', '0.1').stdout
    assert len(re.findall(r'^%s +ESTABLISHED +passive ' % conns['passive']['id'], text, re.M)) == 2, text
    metrics = top(passive.pid, '--prometheus').stdout
    assert re.search(r'^rmem_cm_port_rx_req_total\{.*\} 1$', metrics, re.M), metrics


def is_answered(pid, user):
    """Whether a process of the user gets a report."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect('\0rmem-cm/%d' % pid)
        os._exit(not socket.recv_fds(sock, 1, 1)[1])


def check_refusals(pid):
    own = top(os.getpid(), '-b', '-n', '1')
    assert own.returncode == 1 and 'no program with RMEM_IBV_CM' in own.stderr, own
    if os.getuid() == 0:
        assert is_answered(pid, 0) and not is_answered(pid, 65534)


def main():
    port = 20000 + os.getpid() % 12000
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, RMEM_IBV_CM=os.path.join(folder, 'cm'))
        passive = start('listen', port, env)
        active = None
        try:
            wait_for(passive, 'listening')
            active = start('connect', port, env)
            wait_for(active, 'stopped')
            wait_for(passive, 'stopped')
            check(active, passive, port)
            check_refusals(passive.pid)
        finally:
            for process in filter(None, (passive, active)):
                process.kill()
                process.wait()


TOP, RUN, STATES = sys.argv[1:]
main()
