#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Migrates a running guest between two processes of QEMU by RDMA, each run by a command.

usage: migrate.py [--pin-all] [--kill source|target] RMEM_RUN GUEST
GUEST is migrate_guest.c, compiled; it writes to its memory all the time and verifies it. The
memory of both processes is compared when the source has stopped, and the guest must continue in
the target. With --kill one of the two is killed while pages are sent: a target without its source
ends by itself; a source without its target reports the failure and its guest continues.
"""

import argparse
import contextlib
import filecmp
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

MIB = 64
LIMIT = 200  # seconds for a step, on a machine under load
SLOW = 4 << 20  # bytes per second, so that the migration can be interrupted


class Failed(Exception):
    """A step failed."""


def until(what, condition):
    """Wait for a condition and return its value."""
    end = time.monotonic() + LIMIT
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"not within {LIMIT} s: {what}")
        time.sleep(0.02)
    return value


class Machine:
    """A process of QEMU."""

    def __init__(self, name, directory, command, arguments):
        self.name = name
        self.serial = os.path.join(directory, name + ".serial")
        self.memory = os.path.join(directory, name + ".memory")
        self.log = os.path.join(directory, name + ".log")
        path = os.path.join(directory, name + ".qmp")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*command, "-serial", "file:" + self.serial,
                 "-qmp", f"unix:{path},server=on,wait=off", *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.qmp = None
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        until(f"{name} listens", lambda: self.connect(path) or self.ended())
        try:
            self.qmp = self.socket.makefile("rw", encoding="utf-8")
            self.qmp.readline()
            self.call("qmp_capabilities")
        except (OSError, ValueError) as error:
            raise Failed(f"{name}: {error}") from error

    def connect(self, path):
        """Whether it listens; its socket has a name before it does."""
        try:
            self.socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def ended(self):
        return self.process.poll() is not None

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def call(self, command, **arguments):
        """Return the result of a command; events are skipped."""
        self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while True:
            line = self.qmp.readline()
            if line == "":
                raise Failed(f"{self.name} closed its monitor")
            reply = json.loads(line)
            if "error" in reply:
                raise Failed(f"{self.name}: {command}: {reply['error']['desc']}")
            if "return" in reply:
                return reply["return"]

    def status(self):
        return self.call("query-migrate").get("status", "none")

    def last_round(self):
        """The last round of the guest, or -1."""
        with open(self.serial, encoding="ascii", errors="replace") as serial:
            lines = serial.read().split("\n")[:-1]
        bad = [line for line in lines if line.startswith("bad")]
        if bad:
            raise Failed(f"the guest in the {self.name}: {bad[0]}")
        return int(lines[-1].split()[1]) if lines else -1

    def wait_rounds(self, after, nb=3):
        """Wait until the guest has done rounds after that one."""
        until(f"rounds in the {self.name}", lambda: self.last_round() >= after + nb)

    def save(self):
        self.call("pmemsave", val=0, size=MIB << 20, filename=self.memory)

    def quit(self):
        with contextlib.suppress(Failed, OSError):
            self.call("quit")
        if self.process.wait(LIMIT) != 0:
            raise Failed(f"{self.name}: status {self.process.returncode}")


def is_free(port):
    """Whether no process of the host has that port of rdma_cm."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as sockets:
        return not any(line.rstrip().endswith(f"/{port}") for line in sockets)


def compare(source, target):
    until("migrated", lambda: source.status() == "completed" or source.status() == "failed")
    if source.status() != "completed":
        raise Failed("the migration failed")
    until("the target has all", lambda: target.call("query-status")["status"] != "inmigrate")
    for machine in source, target:
        machine.save()
    if not filecmp.cmp(source.memory, target.memory, shallow=False):
        raise Failed("the memory of source and target differs")
    last = source.last_round()
    target.call("cont")
    target.wait_rounds(last)
    info = source.call("query-migrate")
    print(f"migrated {MIB} MiB: {info['ram']['transferred'] >> 20} MiB in {info['total-time']} ms, "
          f"stopped for {info['downtime']} ms; the memory of both is equal, and the guest goes on "
          f"from round {last} to {target.last_round()}")
    for machine in source, target:
        machine.quit()


def interrupt(source, target, killed):
    sent = until("pages are sent", lambda: source.call("query-migrate").get(
        "ram", {}).get("transferred", 0) >> 20)
    if source.status() != "active":
        raise Failed(f"not interrupted: {source.status()} after {sent} MiB")
    if killed == "source":
        source.process.send_signal(signal.SIGKILL)
        if until("the target ends", target.ended) and target.process.returncode == 0:
            raise Failed("the target ended with status 0")
        print(f"the source was killed after {sent} MiB; the target ended with status "
              f"{target.process.returncode}")
        return
    target.process.send_signal(signal.SIGKILL)
    until("the source reports it", lambda: source.status() == "failed")
    source.wait_rounds(source.last_round())
    print(f"the target was killed after {sent} MiB; the source reports it, its guest runs")
    source.quit()


def migrate(args, directory, machines):
    command = [args.run, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
               "-machine", "pc", "-accel", "tcg", "-m", str(MIB), "-kernel", args.guest]
    port = next(port for port in iter(lambda: random.randrange(20000, 32000), 0) if is_free(port))
    uri = f"rdma:127.0.0.1:{port}"
    machines.append(source := Machine("source", directory, command, []))
    source.wait_rounds(-1)
    machines.append(target := Machine("target", directory, command, ["-S", "-incoming", "defer"]))
    for machine in machines:
        machine.call("migrate-set-capabilities", capabilities=[
            {"capability": "rdma-pin-all", "state": args.pin_all}])
    if args.kill:
        source.call("migrate-set-parameters", **{"max-bandwidth": SLOW})
    target.call("migrate-incoming", uri=uri)
    source.call("migrate", uri=uri)
    if args.kill:
        interrupt(source, target, args.kill)
    else:
        compare(source, target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pin-all", action="store_true")
    parser.add_argument("--kill", choices=("source", "target"))
    parser.add_argument("run")
    parser.add_argument("guest")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("migrate.py: terminated"))
    machines = []
    with tempfile.TemporaryDirectory(prefix="rmem-migrate.") as directory:
        try:
            migrate(args, directory, machines)
        except Failed as failure:
            for machine in machines:
                print(f"{machine.name}:\n{machine.text()}", file=sys.stderr)
            sys.exit(f"migrate.py: {failure}")
        finally:
            for machine in machines:
                machine.process.kill()
                machine.process.wait()


if __name__ == "__main__":
    main()
