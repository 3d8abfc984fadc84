# SPDX-License-Identifier: BSD-3-Clause
"""The results of bench.py, of all machines in doc/bench, in the pages of doc/ and README.md."""

import glob
import json
import os
import re

import bench_chart

PAGE, SCALE, README = "doc/performance.md", "doc/scale.md", "README.md"
DIRECTORY = "doc/bench"
SWEEP = re.compile(r"(.*_(?:size|mrs|qps|held|bytes|put))_([0-9]+)$")
STEP = re.compile(r"scale_(.*?)_(qps|wire_qps|mrs)_([0-9]+)$")
OBJECTS = {"qps": "QPs", "wire_qps": "QPs, over the wire", "mrs": "MRs"}


def number(value):
    """Three digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def pair(row, key):
    """The best and the median of a row; or the range, of values noted by hand."""
    if row is None or key not in row:
        return []
    return row[key].get("range") or [row[key]["best"], row[key]["median"]]


def shown(row, key):
    """The median, or the range."""
    values = pair(row, key)
    if not values:
        return ""
    return number(values[1]) if "median" in row[key] else span(values)


def span(values):
    """A range."""
    return " to ".join(dict.fromkeys(map(number, values)))


def met(values, bar):
    """Whether the values meet a bar such as '<= 2.5': all of them, or one."""
    relation, limit = bar.split()[:2]
    each = [value <= float(limit) if relation == "<=" else value >= float(limit)
            for value in values]
    return "met" if all(each) else "met at best" if any(each) else "**missed**"


def verdict(row, bar):
    """Whether the value, or its ratio, meets the bar."""
    what, _, limit = bar.partition(" ")
    values = pair(row, what)
    return met(values, limit) if values else ""


def lines_of(title, rows):
    """A table of Markdown."""
    lines = [title, ["---"] * len(title), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cpu(result):
    """The name of a machine in a table."""
    return result["machine"]["cpu"]


def row_of(results, name):
    """A row of the first result that has it: its unit, its yardstick and its bar."""
    return next(result["rows"][name] for result in results if name in result["rows"]
                and "yardstick" in result["rows"][name])


def names_of(results, has_bar):
    """The rows with a bar or without, but those of sweeps, floors and others."""
    names = dict.fromkeys(name for result in results for name, row in result["rows"].items()
                          if "yardstick" in row)
    return [name for name in names if not SWEEP.match(name) and not name.endswith("_floor")
            and (row_of(results, name)["bar"] != "none") == has_bar]


def floor(result, name):
    """The ratio of the floor, and how far the row is above."""
    row, least = result["rows"].get(name), result["rows"].get(f"{name}_floor")
    if row is None or least is None:
        return ""
    of, ratio = least["ratio"]["median"], row["ratio"]["median"]
    return f"{number(of)} ({number(max(ratio / of, of / ratio))} x)"


def targets(results):
    """The rows with a bar: the ratio on each machine, and the floor."""
    title = ["row", "compared with", "bar"]
    for result in results:
        title += [cpu(result), "ratio", ""] + ([] if result.get("by_hand") else ["floor"])
    rows = []
    for name in names_of(results, True):
        one = row_of(results, name)
        cells = [f"`{name}`", one["yardstick"], one["bar"]]
        for result in results:
            row = result["rows"].get(name)
            value = shown(row, "value")
            cells += [f"{value} {one['unit']}" if value else "", shown(row, "ratio"),
                      verdict(row, one["bar"])]
            cells += [] if result.get("by_hand") else [floor(result, name)]
        rows.append(cells)
    return lines_of(title, rows)


def plain(results):
    """The rows without a bar."""
    results = [result for result in results if not result.get("by_hand")]
    title = ["row", "compared with"]
    for result in results:
        title += [cpu(result), "ratio"]
    rows = []
    for name in names_of(results, False):
        one = row_of(results, name)
        cells = [f"`{name}`", one["yardstick"]]
        for result in results:
            row = result["rows"].get(name)
            value = shown(row, "value")
            cells += [f"{value} {one['unit']}" if value else "", shown(row, "ratio")]
        rows.append(cells)
    return lines_of(title, rows)


# Work that others do as well: title, rows of rmem in one process and in two, of UCX, of libfabric,
# factor of the times, and the bar of rmem in one process, as a ratio to each of the others.
OTHERS = (
    ("message of 64 B, one way", "pingpong64_p50", "wire_shm_two_pingpong64", "ucx_am_p50",
     "fi_shm_mean", 0.5, "<= 0.5"),
    ("the same with tags", None, None, "ucx_tag_p50", None, 0.5, ""),
    ("WRITE or put of 64 B", "write64_burst32", "wire_host_two_size_64", "ucx_put_64", None, 1,
     "<= 0.5"),
    ("WRITE or put of 4 KiB", "write_size_4096", "wire_host_two_size_4096", "ucx_put_4096", None, 1,
     ""),
    ("WRITE or put of 64 KiB", "write_size_65536", "wire_host_two_size_65536", "ucx_put_65536", None,
     1, ""),
    ("SENDs or messages of 64 B, one after the other", "send64_rate", None, "ucx_am_rate", None, 1,
     ""),
)


def ns(row, factor):
    """The best and the median time of a row, or the range; of a bandwidth, that of its size."""
    values = pair(row, "value")
    if row and row["unit"] == "GB/s":
        values = [int(row["name"].rsplit("_", 1)[1]) / value for value in values]
    return [factor * value for value in values]


def others_lines(results, title, names, factor, bar):
    """The lines of the next table for one kind of work."""
    for result in results:
        rows = [result["rows"].get(name) for name in names]
        times = [ns(row, factor) for row in rows]
        if not any(times):
            continue
        cells = [span(time if "range" in row["value"] else time[1:]) if time else ""
                 for row, time in zip(rows, times)]
        ratios = [times[0][1] / max(other) for other in times[2:] if times[0] and other]
        judged = met([max(ratios)], bar) if bar and ratios else ""
        yield [title, cpu(result), *cells, ", ".join(map(number, ratios)), bar, judged]


def others(results):
    """Return the table of rmem and the others, of each machine."""
    lines = [line for work in OTHERS
             for line in others_lines(results, work[0], work[1:5], *work[5:])]
    return lines_of(["ns", "machine", "rmem, one process", "rmem, two processes", "UCX posix",
                     "libfabric shm", "ratio", "bar", ""], lines) if lines else ""


def steps(results):
    """The cost of each step with objects: a table for each kind and machine."""
    tables = {}
    for result in results:
        for name, row in result["rows"].items():
            match = STEP.match(name)
            if match:
                table = tables.setdefault((match[2], cpu(result)), {})
                table.setdefault(int(match[3]), {})[match[1].replace("_", " ")] = row
    parts = []
    for (kind, machine), table in tables.items():
        title = list(dict.fromkeys(step for row in table.values() for step in row))
        rows = [[str(count), *(shown(row.get(step), "value") for step in title)]
                for count, row in sorted(table.items())]
        parts.append(lines_of([f"{OBJECTS[kind]}, {machine}", *title], rows))
    return "\n\n".join(parts)


def sweeps(results):
    """The growth in each sweep: the ratio to its yardstick at the fewest and at the most."""
    rows = []
    for result in results:
        found = {}
        for name, row in result["rows"].items():
            match = SWEEP.match(name)
            if match and "ratio" in row and not match[1].endswith("size") and not STEP.match(name):
                found.setdefault(match[1], []).append((int(match[2]), row))
        for prefix, points in found.items():
            points.sort(key=lambda point: point[0])
            rows += [[f"`{prefix}_{count}`", cpu(result), row["yardstick"],
                      f"{shown(row, 'value')} {row['unit']}", shown(row, "ratio")]
                     for count, row in (points[0], points[-1])]
    return lines_of(["row", "machine", "compared with", "value", "ratio"], rows) if rows else ""


def about(result):
    """Describe the machine and the run of a result."""
    machine = result["machine"]
    if result.get("by_hand"):
        return f"- **{machine['cpu']}**: {machine['about']}. {result['note']}"
    return (f"- **{machine['cpu']}**, family {machine['family']}, model {machine['model']}: "
            f"{machine['cpus']} CPUs, {', '.join(machine['caches'])}; Linux {machine['kernel']}, "
            f"DPDK {machine['dpdk']}, {machine['compiler']}, {machine['ucx']}, "
            f"{machine['libfabric']}; {machine['free_hugepages']} hugepages free; "
            f"{rounds(result)} on {result['date']}, commit {result['commit']}, load "
            f"{result['load'][0]:.1f} to {result['load'][1]:.1f}.")


def rounds(result):
    """The number of rounds, in words."""
    return "one round" if result["rounds"] == 1 else f"{result['rounds']} rounds"


def slug(result):
    """The name of a machine's files."""
    return re.sub(r"[^a-z0-9]+", "-", result["machine"]["cpu"].lower()).strip("-")


def charts(result, names):
    """The charts of a machine, as links from doc/."""
    return [f"![{bench_chart.CHARTS[name][2]}: {cpu(result)}](bench/{slug(result)}-{name}.svg)"
            for name in names]


def sections(results, drawn):
    """The results as sections of each page; drawn has the names of the charts of each result."""
    def of(*names):
        return "\n".join(line for result, those in zip(results, drawn)
                         for line in charts(result, [name for name in those if name in names]))
    parts = ("\n".join(map(about, results)),
             "### Next to UCX and libfabric", of("others", "latency", "rate", "bandwidth"),
             others(results),
             "### Targets", targets(results), of("control"),
             "### Other rows", plain(results))
    growth = (steps(results), of("growth"), sweeps(results))
    return {PAGE: "\n\n".join(filter(None, parts)), SCALE: "\n\n".join(filter(None, growth))}


def text(results):
    """Return all tables."""
    return "\n\n".join(filter(None, [others(results), targets(results), steps(results),
                                     sweeps(results), plain(results)]))


# The rows in README: work, row.
COSTS = (
    ("pool get and put with keys, bulk 32", "pool_sge_bulk32"),
    ("WRITE of 64 bytes, all checks", "write64_burst32"),
    ("WRITE of 64 KiB", "write64k"),
    ("REG_MR", "reg_mr_burst32"),
    ("LOCAL_INV", "local_inv_burst32"),
    ("lease granted and revoked", "lease_grant_revoke_burst32"),
)


def readme(result):
    """The blocks of README: name -> text."""
    where = (f"{cpu(result)} (family {result['machine']['family']}, model "
             f"{result['machine']['model']}), measured by `devtools/bench.sh`, medians of "
             f"{rounds(result)}; lower is better.")
    notes = ("In one process `soft` checks the keys and copies the data. Between two processes a message is a packet in\n"
             "shared memory, and a WRITE a copy to [mapped memory](doc/wire_direct.md) by a key that the target can revoke.\n"
             "A UCX put is such a copy without a key. [performance.md](doc/performance.md) has all results.")
    picture = (f"![rmem, UCX and libfabric: messages and WRITEs of 64 bytes]"
               f"({DIRECTORY}/{slug(result)}-others.svg)")
    rows = [(title, result["rows"][name]) for title, name in COSTS if name in result["rows"]]
    return {"picture": f"{picture}\n\n{where}\n{notes}",
            "costs": lines_of(["", "cost", "ratio", "to"], [
                [title, f"{shown(row, 'value')} {row['unit']}", shown(row, "ratio"),
                 row["yardstick"]] for title, row in rows])}


def replace(path, blocks):
    """Replace the blocks of a page between their markers."""
    with open(path, encoding="utf-8") as lines:
        page = lines.read()
    for name, new in blocks.items():
        begin, end = f"<!-- bench.sh: {name} -->\n", "\n<!-- bench.sh: end -->"
        before, rest = page.split(begin, 1)
        page = before + begin + "\n" + new + "\n" + end + rest.split(end, 1)[1]
    with open(path, "w", encoding="utf-8") as out:
        out.write(page)


def write(result):
    """Keep the result and its charts in doc/, and replace the results in the pages."""
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(f"{DIRECTORY}/{slug(result)}.json", "w", encoding="ascii") as out:
        rows = ",\n".join(f'  "{name}": {json.dumps(row)}' for name, row in result["rows"].items())
        rest = json.dumps(dict(result, rows={}), indent=1)
        out.write(rest.replace('"rows": {}', f'"rows": {{\n{rows}\n }}') + "\n")
    results, drawn = [], []
    for path in sorted(glob.glob(f"{DIRECTORY}/*.json")):
        with open(path, encoding="ascii") as lines:
            results.append(json.load(lines))
        drawn.append(bench_chart.draw(results[-1], DIRECTORY, f"{slug(results[-1])}-"))
    for page, blocks in sections(results, drawn).items():
        replace(page, {"results": blocks})
    replace(README, readme(result))
