#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of doc/programs.md: the programs that the gate dropin runs, and their results.

usage: programs.py --check RELEASE FILE   compare the results of a run with the table
       programs.py --write [RELEASE FILE]...  update the table with them

FILE has a line for each row of the gate, as devtools/check-dropin.sh writes it: program, package,
version, what ran, what it needs, row, result, with tabs between. RELEASE is that of Debian. Without
arguments --write takes the last run on this machine and that in the root of devtools/check-platforms.sh.
"""

import os
import re
import shlex
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "doc/programs.md"
SCRIPTS = ("devtools/check-dropin.sh", "devtools/ecosystem.sh", "devtools/gallery.sh")
RUNS = (("12", "build/programs-12.tsv"), ("13", "build-trixie/root/rmem/build/programs-13.tsv"))
RELEASES = ("12", "13")
BEGIN, END = "<!-- programs.py: begin -->\n", "<!-- programs.py: end -->\n"
HEAD = ("| program | package | Debian 12 | Debian 13 | ran | needs |\n"
        "| --- | --- | --- | --- | --- | --- |\n")


def markup(text):
    """Return a text of the scripts as Markdown: names, options and variables are code."""
    return re.sub(r"(?<!\S)([^\s;:,(]*[_*{=][^\s]*?|-\w+)(?=[;:,.]?(?:\s|$))", r"`\1`", text)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def entries():
    """Return {(name, package, what, needs)}, in order, of the calls of program() in the scripts."""
    found = {}
    for path in SCRIPTS:
        text = read(path).replace("\\\n", "")
        for call in re.findall(r"^\s*program (?!in )(.*)$", text, re.M):
            words = shlex.split(call)
            found[entry_of(*words, *["-"] * (4 - len(words)))] = True
    return found


def entry_of(name, package, what, needs):
    return markup(name), package, markup(what), markup(needs)


def table():
    """Return the rows of the page: {(name, package, what, needs): {release: result}}."""
    text = read(PAGE)
    rows = {}
    for line in text[text.index(BEGIN) + len(BEGIN) + len(HEAD):text.index(END)].splitlines():
        name, package, first, second, what, needs = line.strip("| ").split(" | ")
        rows[(name, package, what, needs)] = dict(zip(RELEASES, (first, second)))
    return rows


def results(path):
    """Return {entry: "VERSION: RESULT"} of a run."""
    runs = {}
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for line in file:
            name, package, version, what, needs, row, result = line.rstrip("\n").split("\t")
            run = runs.setdefault(entry_of(name, package, what, needs), (version, []))
            if result == "skipped":
                run[1].append(f"{row} not run")
            elif result != "ok":
                run[1].append(f"{row} fails")
    return {entry: f"{version}: {', '.join(failed) or 'ok'}"
            for entry, (version, failed) in runs.items()}


def write(runs):
    found = {release: results(path) for release, path in runs}
    old = table()
    lines = []
    for entry in entries():
        name, package, what, needs = entry
        columns = [found[release].get(entry, "-") if release in found
                   else old.get(entry, {}).get(release, "-") for release in RELEASES]
        lines.append(f"| {name} | {package} | {' | '.join(columns)} | {what} | {needs} |\n")
    text = read(PAGE)
    with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
        file.write(text[:text.index(BEGIN) + len(BEGIN)] + HEAD + "".join(lines)
                   + text[text.index(END):])


def check(release, path):
    """Return the differences between a run and the page, those of versions apart."""
    page = table()
    broken = 0
    if release not in RELEASES:
        return 0
    for entry, result in results(path).items():
        stated = page.get(entry, {}).get(release, "no such row")
        if stated.split(": ")[-1] != result.split(": ", 1)[1]:
            print(f"{PAGE}: {entry[0]}: {stated}; the gate: {result}")
            broken += 1
        elif stated != result:
            print(f"{PAGE}: {entry[0]}: {stated}; here it is {result.split(':')[0]}")
    return broken


def breaches():
    """Yield the differences between the calls of program() and the rows of the page."""
    page, listed = table(), entries()
    for entry in listed:
        if entry not in page:
            yield f"{entry[0]}: no such row ({', '.join(entry[1:])}): programs.py --write"
    for entry in page:
        if entry not in listed:
            yield f"{entry[0]}: no program() has it ({', '.join(entry[1:])}): programs.py --write"


def main():
    args = sys.argv[1:]
    if args[:1] == ["--check"] and len(args) == 3:
        sys.exit(1 if check(*args[1:]) else 0)
    if args[:1] == ["--write"] and len(args) % 2 == 1:
        runs = list(zip(args[1::2], args[2::2]))
        write(runs or [run for run in RUNS if os.path.exists(os.path.join(ROOT, run[1]))])
        return
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
