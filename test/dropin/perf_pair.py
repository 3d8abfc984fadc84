#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times programs in two processes.

usage: perf_pair.py ROW RMEM_RUN TEST_PROGRAM VM_PINGPONG PERF_CM
ROW is dropin_write_lat (the baseline is pingpong64 of TEST_PROGRAM, the floor VM_PINGPONG),
dropin_write_bw64k (the baseline is process_vm_writev()), dropin_send_lat or dropin_ucx_tag_lat
(the baseline is ucx_perftest over shared memory),
dropin_cm_connect (that of PERF_CM, over TCP) or dropin_cm_parallel (a connection at a time). With RMEM_PERF_JSON=FILE the row is appended to that file. Exits
with 77 if a program of perftest or ucx-utils that the row needs is not installed.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SIZE = 65536
BURST = 64
ROUNDS = 3
LAT_ROUNDS = 8  # each takes a second
PAIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pair.sh")


def perftest(run, *command):
    """Return the columns of the last line of the table that the client prints."""
    env = dict(os.environ, PAIR_LIMIT="280")
    out = subprocess.run(
        [PAIR, run, run, *command], check=True, env=env, stdout=subprocess.PIPE, text=True)
    rows = [line.split() for line in out.stdout.splitlines()]
    return [row for row in rows if row and row[0].isdigit()][-1]


def pingpong(program):
    """Return the round trip of pingpong64 in one process, in ns."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as rows:
        env = dict(os.environ, DPDK_TEST="pingpong64_perf_autotest", RMEM_PERF_JSON=rows.name)
        args = ["--no-huge", "-m", "64", "--no-pci", "--no-telemetry", "--no-shconf"]
        subprocess.run([program, *args], check=True, env=env, stdout=subprocess.DEVNULL)
        row = json.loads(rows.readline())
        assert row["unit"] == "ns", row
        return row["value"]


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def process_vm():
    """Return the bandwidth of process_vm_writev() to a child, in MB/s of 2^20 bytes."""
    libc = ctypes.CDLL(None, use_errno=True)
    buf = ctypes.create_string_buffer(b"x" * SIZE, SIZE)
    iov = (Iovec * BURST)(*[Iovec(ctypes.addressof(buf), SIZE)] * BURST)
    end, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(begin)
        os.read(end, 1)
        os._exit(0)
    begun = time.monotonic()
    n = 0
    while time.monotonic() - begun < 0.5:
        if libc.process_vm_writev(pid, iov, BURST, iov, BURST, 0) != SIZE * BURST:
            sys.exit("process_vm_writev: " + os.strerror(ctypes.get_errno()))
        n += BURST
    rate = n * SIZE / 2**20 / (time.monotonic() - begun)
    os.close(begin)
    os.waitpid(pid, 0)
    return rate


def report(name, unit, value, yardstick, baseline, bar):
    ratio = value / baseline
    print(f"{name}: {value:.0f} {unit}, {yardstick} {baseline:.0f} {unit}, ratio {ratio:.3f}, {bar}")
    if "RMEM_PERF_JSON" in os.environ:
        row = dict(name=name, value=value, unit=unit, baseline=baseline, ratio=ratio)
        with open(os.environ["RMEM_PERF_JSON"], "a", encoding="utf-8") as rows:
            rows.write(json.dumps(row) + "\n")


def write_lat(run):
    """Return the median round trip of ib_write_lat, in ns; print the longest one."""
    # One way, in us.
    rows = [perftest(run, "ib_write_lat", "-n", "100000") for _ in range(ROUNDS)]
    print("dropin_write_lat: longest of 100000: %.0f us" % min(2 * float(row[3]) for row in rows))
    return 2000 * min(float(row[4]) for row in rows)


def tag_lat(tls, run):
    """Return the median of one way of tag_lat of UCX by these transports, in ns."""
    run = f"env UCX_NET_DEVICES=soft0:1 UCX_TLS={tls},self {run}"
    args = ("-t", "tag_lat", "-s", "2", "-n", "20000", "-f")
    return 1000 * float(perftest(run, "ucx_perftest", *args)[1])


def latency(name, run):
    """Measure alternately with the baseline, since the host changes the CPUs of this machine."""
    values, baselines = [], []
    for _ in range(LAT_ROUNDS):
        baselines.append(tag_lat("posix", ""))
        if name == "dropin_ucx_tag_lat":
            values.append(tag_lat("rc_verbs,ud_verbs:aux", run))
        else:
            values.append(1000 * float(perftest(run, "ib_send_lat", "-n", "20000")[4]))
    bar = "bar <= 3" if name == "dropin_ucx_tag_lat" else "bar <= 1.5"
    report(name, "ns", min(values), "tag_lat of UCX", min(baselines), bar)


def connections(name, run, program):
    """Time connections of rdma_cm."""
    out = subprocess.run([run, program], stdout=subprocess.PIPE, text=True, check=True).stdout
    took = {key: float(value) for key, value in map(str.split, out.splitlines())}
    if name == "dropin_cm_connect":
        report(name, "us", took["connect"], "TCP: connect, accept, close", took["tcp"], "bar <= 6")
    else:
        one_by_one = 1000 * took["connect"]
        report(name, "us", took["parallel"], "1000 connections in turn", one_by_one, "bar <= 0.5")


def need(program, package):
    if shutil.which(program) is None:
        print(f"skipped: {package} is not installed")
        sys.exit(77)


def main():
    name, run, program, vm_pingpong, perf_cm = sys.argv[1:]
    if name.startswith("dropin_cm_"):
        connections(name, run, perf_cm)
        return
    need("ib_write_bw", "perftest")
    if name == "dropin_write_lat":
        baseline = min(pingpong(program) for _ in range(ROUNDS))
        report(name, "ns", write_lat(run), "pingpong64", baseline, "bar <= 4")
        floor = subprocess.run([vm_pingpong], stdout=subprocess.PIPE, text=True, check=False)
        if floor.returncode == 0:
            report(name + "_floor", "ns", float(floor.stdout), "pingpong64", baseline, "bar none")
    elif name in ("dropin_send_lat", "dropin_ucx_tag_lat"):
        need("ucx_perftest", "ucx-utils")
        latency(name, run)
    else:
        assert name == "dropin_write_bw64k", name
        args = ("ib_write_bw", "-s", str(SIZE), "-n", "2000")
        value = max(float(perftest(run, *args)[3]) for _ in range(ROUNDS))
        baseline = max(process_vm() for _ in range(ROUNDS))
        report(name, "MB/s", value, "process_vm_writev()", baseline, "bar >= 0.9")


main()
