#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure rmem, UCX, libfabric and memcpy in turn, over several rounds.

usage: devtools/bench.sh [--rounds N] [--minutes N] [--rows PATTERN] [--against REV | --write]

It needs two CPUs and prints tables. The results of each round, with the CPU, the caches, the
kernel and the load, are in build-bench/result.json, with the charts in the same directory.
"""

import argparse
import contextlib
import fnmatch
import functools
import glob
import json
import math
import os
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import bench_chart
import bench_doc

OUT = "build-bench"
SIZES = sorted({8 << (2 * i) for i in range(9)} | {64, 4096, 65536, 1 << 20})
NEED_PAGES = 800  # hugepages of 2 MiB; test/perf/perf.sh uses them if 300 are free
PAGES = "/proc/sys/vm/nr_hugepages"
LEAST_ROUNDS = 6  # below, the sign test cannot find a difference


class Failure(Exception):
    """A command failed; its message names it."""


def run(command, env=None):
    """Run a command to its end and return what it prints."""
    done = subprocess.run(command, env=dict(os.environ, **(env or {})), text=True, timeout=900,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode not in (0, 77):
        raise Failure(f"{shlex.join(command)}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def run_pair(command, server_options, client_options, port, env=None):
    """Run a server and a client, each on a CPU of its own; return what the client prints."""
    cpus = sorted(os.sched_getaffinity(0))
    env = dict(os.environ, **(env or {}))
    with tempfile.TemporaryFile("w+") as log:
        with subprocess.Popen(["taskset", "-c", str(cpus[-1]), *command, *server_options],
                              env=env, stdout=log, stderr=log) as server:
            try:
                wait_listen(server, port)
                return run(["taskset", "-c", str(cpus[0]), *command, *client_options], env)
            finally:
                server.terminate()


def free_port():
    """Return a TCP port that no socket is bound to."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def wait_listen(server, port):
    """Return once a socket listens on the port."""
    while server.poll() is None:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table, encoding="ascii") as lines:
                sockets = [line.split() for line in lines][1:]
            if any(s[1].endswith(f":{port:04X}") and s[3] == "0A" for s in sockets):
                return
        time.sleep(0.01)
    raise Failure(f"the server of port {port} ended")


# Each of these functions measures once and returns rows as perf_report() of the tests writes them.

@functools.lru_cache
def programs(build):
    """The perf tests of rmem in a build that this program runs: name -> its program."""
    tests = json.loads(run(["meson", "introspect", "--tests", build]))
    return {test["name"]: test["cmd"][-2] for test in tests
            if any("perf-tests" in suite for suite in test["suite"])
            and not test["name"].startswith(("guest_", "dropin_", "verbs_"))}


def rmem_row(build, name):
    """Run a perf test of rmem."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as rows:
        run(["test/perf/perf.sh", f"{build}/{programs(build)[name]}", name],
            {"RMEM_PERF_JSON": rows.name})
        return [json.loads(line) for line in rows]


def ucx(test, size, count, rank=50):
    """Run ucx_perftest on shared memory; return the columns of its last line."""
    port = free_port()
    options = ["-p", str(port)]
    out = run_pair(["ucx_perftest"], options, ["127.0.0.1", *options, *test, "-s", str(size), "-n",
                   str(count), "-R", str(rank), "-f", "-v"], port, {"UCX_TLS": "posix,self"})
    titles, values = [line.split(",") for line in out.splitlines() if "," in line][-2:]
    return dict(zip(titles, map(float, values)))


def ucx_put(_build, size):
    """WRITEs by a memcpy to mapped memory of the other process."""
    count = max(2000, min(1000000, (1 << 30) // size))
    took = ucx(["-d", "memory", "-x", "posix", "-t", "put_bw"], size, count)["overall_lat"] * 1e3
    if size >= 4096:
        return [{"name": f"ucx_put_{size}", "unit": "GB/s", "value": size / took}]
    return [{"name": f"ucx_put_{size}", "unit": "ns/op", "value": took}]


def ucx_am_rate(_build, _name):
    """Active messages that follow each other."""
    took = ucx(["-d", "memory", "-x", "posix", "-t", "am_bw"], 64, 1000000)["overall_lat"] * 1e3
    return [{"name": "ucx_am_rate", "unit": "ns/op", "value": took}]


def ucx_lat(_build, name):
    """One way of a ping-pong, of active messages or of tagged ones."""
    test = {"am": ["-d", "memory", "-x", "posix", "-t", "am_lat"], "tag": ["-t", "tag_lat"]}[name]
    rows = []
    for rank, title in ((50, "p50"), (99, "p99"), (99.9, "p999")):
        took = ucx(test, 64, 200000, rank)
        percentile = next(took[title] for title in took if title.endswith("percentile_lat"))
        rows.append({"name": f"ucx_{name}_{title}", "unit": "ns", "value": 2e3 * percentile})
    return rows


def fabric_lat(_build, _name):
    """The ping-pong of libfabric over shared memory."""
    port = free_port()
    options = ["-p", "shm", "-e", "rdm", "-I", "200000", "-S", "64"]
    out = run_pair(["fi_pingpong"], [*options, "-B", str(port)],
                   [*options, "-P", str(port), "127.0.0.1"], port)
    return [{"name": "fi_shm_mean", "unit": "ns", "value": 2e3 * float(out.split()[-2])}]


def jobs(build, pattern):
    """Return what to measure: (name, function, argument)."""
    rows = [(name, rmem_row, name) for name in programs(build)]
    rows += [(f"ucx_put_{size}", ucx_put, size) for size in SIZES]
    rows += [("ucx_am", ucx_lat, "am"), ("ucx_tag", ucx_lat, "tag"), ("fi_shm", fabric_lat, None),
             ("ucx_am_rate", ucx_am_rate, None)]
    return [row for row in rows if fnmatch.fnmatch(row[0], pattern)]


def progress(text):
    """Show what is being measured, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def measure_job(job, build, rows):
    """Measure once, and add the values to the rows; a failure leaves them as they are."""
    name, function, arg = job
    try:
        new = function(build, arg)
    except (Failure, subprocess.TimeoutExpired, OSError, ValueError) as failure:
        progress("")
        print(f"{name}: {failure}", file=sys.stderr)
        return 1
    for row in new:
        into = rows.setdefault(row["name"], dict(row, job=name, value=[], baseline=[], ratio=[]))
        for key in ("value", "baseline", "ratio"):
            into[key] += [row[key]] if key in row else []
    return 0


def measure(work, builds, rounds, minutes=math.inf):
    """Return the rows of each build, name -> row with the values of all rounds, and the counts.

    The builds take turns in each round, and in the order, so that a change of the machine affects
    all of them. No round starts that may end after so many minutes.
    """
    results = [{} for _ in builds]
    start, failed, number = time.monotonic(), 0, 0
    while number < rounds and (number == 0 or
                               (time.monotonic() - start) * (number + 1) / number <= minutes * 60):
        for job in work:
            progress(f"round {number + 1} of {rounds}: {job[0]}")
            pairs = list(zip(builds, results))
            for build, rows in pairs[::-1] if number % 2 else pairs:
                failed += measure_job(job, build, rows)
        number += 1
    progress("")
    return results, number, failed


@contextlib.contextmanager
def hugepages():
    """Reserve hugepages where that is permitted and too few are free; release them at the end."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        memory = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    missing = NEED_PAGES - memory["HugePages_Free"]
    if missing <= 0 or memory["Hugepagesize"] != 2048 or not os.access(PAGES, os.W_OK) \
            or memory["MemAvailable"] < 3 * NEED_PAGES * 2048:
        yield
        return
    with open(PAGES, encoding="ascii") as pages:
        before = int(pages.read())
    try:
        with open(PAGES, "w", encoding="ascii") as pages:
            pages.write(str(before + missing))
        yield
    finally:
        with open(PAGES, "w", encoding="ascii") as pages:
            pages.write(str(before))


def summary(row):
    """Return the row with the best and the median of its values instead of all of them."""
    best = max if row["unit"] == "GB/s" else min
    out = {key: row[key] for key in ("name", "unit", "yardstick", "bar") if key in row}
    for key in ("value", "baseline"):
        if row[key]:
            out[key] = {"best": best(row[key]), "median": statistics.median(row[key]),
                        "all": row[key]}
    if row["ratio"]:
        best = max if ">=" in row["bar"] or row["unit"] == "GB/s" else min
        out["ratio"] = {"best": best(row["ratio"]), "median": statistics.median(row["ratio"])}
    return out


def machine():
    """Describe the machine."""
    with open("/proc/cpuinfo", encoding="ascii") as lines:
        cpu = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    caches = []
    for index in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size = (open(f"{index}/{name}", encoding="ascii").read().strip()
                             for name in ("level", "type", "size"))
        caches.append(f"L{level} {kind} {size}")
    with open("/proc/meminfo", encoding="ascii") as lines:
        pages = next(int(line.split()[1]) for line in lines if line.startswith("HugePages_Free"))
    return {"cpu": cpu.get("model name", "unknown"), "family": cpu.get("cpu family"),
            "model": cpu.get("model"), "caches": caches, "cpus": len(os.sched_getaffinity(0)),
            "kernel": os.uname().release.split("-")[0], "free_hugepages": pages,
            "compiler": run(["gcc", "--version"]).splitlines()[0],
            "dpdk": run(["pkg-config", "--modversion", "libdpdk"]).strip(),
            "ucx": "UCX " + run(["ucx_info", "-v"]).splitlines()[0].split()[-1],
            "libfabric": run(["fi_info", "--version"]).splitlines()[1].replace(":", "")}


def differences(before, after):
    """Return the rows that differ by more than noise: name -> (median ratio of times, p).

    Each round has one value of both trees, measured one after the other. If they did not differ,
    either would be the larger one with probability 1/2. p is the probability that as many rounds or
    more agree on one direction by chance (the sign test). A row differs if p < 0.05 and the median
    of the ratios differs from 1 by more than 3 %.
    """
    found = {}
    for name, row in after.items():
        if name not in before:
            continue
        ratios = [new / old for new, old in zip(row["value"], before[name]["value"])]
        if row.get("unit") == "GB/s":
            ratios = [1 / ratio for ratio in ratios]
        larger = sum(ratio > 1 for ratio in ratios)
        agree = max(larger, len(ratios) - larger)
        p = 2 * sum(math.comb(len(ratios), k) for k in range(agree, len(ratios) + 1))
        p = min(1.0, p / 2 ** len(ratios))
        ratio = statistics.median(ratios)
        if p < 0.05 and abs(ratio - 1) > 0.03:
            found[name] = ratio, p
    return found


def confirmed(first, second):
    """Return the rows that differ in both measurements, in the same direction."""
    return {name: (second[name][0], first[name][1] * second[name][1]) for name in first
            if name in second and (first[name][0] > 1) == (second[name][0] > 1)}


def build_programs(build):
    """Build the programs of the perf tests."""
    run(["ninja", "-C", build, *sorted(set(programs(build).values()))])


def build_of(revision):
    """Build a revision in a directory of its own; return its build directory."""
    name = run(["git", "rev-parse", "--short=12", f"{revision}^{{commit}}"]).strip()
    tree = f"{OUT}/{name}"
    if not os.path.isdir(tree):
        run(["git", "worktree", "add", "--detach", tree, name])
    if not os.path.isdir(f"{tree}/build"):
        # As the build of this tree, see setup_main_build.
        run(["meson", "setup", f"{tree}/build", tree, "-Ddefault_library=both"],
            {"CC": "ccache gcc"} if shutil.which("ccache") else {})
    build_programs(f"{tree}/build")
    return f"{tree}/build"


def compare(args):
    """Print the rows that differ from those of another revision, and return their number.

    Of many rows some differ by chance: those found are measured again.
    """
    builds = [build_of(args.against), "build"]
    known = {job[0] for job in jobs(builds[0], args.rows)}
    work = [job for job in jobs("build", args.rows) if job[1] is rmem_row and job[0] in known]
    (before, after), _, failed = measure(work, builds, args.rounds)
    found = differences(before, after)
    if found:
        print(f"to confirm: {', '.join(found)}")
        sources = {name: job for job in work for name in after if after[name]["job"] == job[0]}
        again = [job for job in work if job in [sources[name] for name in found]]
        (old, new), _, more = measure(again, builds, args.rounds)
        found, failed = confirmed(found, differences(old, new)), failed + more
    for name, (ratio, p) in found.items():
        print(f"{name:28} {ratio:6.3f} of the time before, p = {p:.5f}")
    print(f"{len(found)} of {len(after)} rows differ by more than noise, in {args.rounds} rounds")
    if failed:
        print(f"{failed} measurements failed")
    return len(found) + failed


def report(args):
    """Measure all rows, print the tables and draw the charts; return the exit status."""
    work = jobs("build", args.rows)
    if not work:
        raise Failure(f"--rows {args.rows}: no such row")
    result = {"machine": machine(), "commit": run(["git", "rev-parse", "--short=12", "HEAD"]).strip(),
              "date": time.strftime("%Y-%m-%d"), "load": [os.getloadavg()[0]]}
    (rows,), result["rounds"], failed = measure(work, ["build"], args.rounds, args.minutes)
    result["load"].append(os.getloadavg()[0])
    result["rows"] = {name: summary(row) for name, row in rows.items()}
    with open(f"{OUT}/result.json", "w", encoding="ascii") as out:
        json.dump(result, out, indent=1)
    print(bench_doc.text([result]))
    bench_chart.draw(result, OUT)
    if args.write:
        bench_doc.write(result)
    return int(failed != 0)


def arguments():
    """Parse the arguments."""
    parser = argparse.ArgumentParser(prog="devtools/bench.sh",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, help="default 5, with --against 9")
    parser.add_argument("--minutes", type=float, default=10,
                        help="start no round that may end later; default 10; not with --against")
    parser.add_argument("--rows", default="*", metavar="PATTERN", help="such as 'write64*'")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--against", metavar="REV", help="compare with this revision instead")
    group.add_argument("--write", action="store_true",
                       help="replace this CPU's results in doc/bench, doc/performance.md and README.md")
    args = parser.parse_args()
    if args.rounds is None:
        args.rounds = 9 if args.against else 5
    least = LEAST_ROUNDS if args.against else 1
    if args.rounds < least:
        parser.error(f"--rounds {args.rounds}: at least {least}")
    if args.write and args.rows != "*":
        parser.error(f"--rows {args.rows}: --write needs all rows")
    if len(os.sched_getaffinity(0)) < 2:
        parser.error("two CPUs are needed, this process may use one")
    return args


def main():
    """Build and measure."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    subprocess.run(["devtools/bench.sh", "--setup"], check=True)
    build_programs("build")
    os.makedirs(OUT, exist_ok=True)
    with hugepages():
        return compare(args) != 0 if args.against else report(args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, subprocess.CalledProcessError) as failed_command:
        sys.exit(f"bench.sh: {failed_command}")
    except KeyboardInterrupt:
        sys.exit(130)
