# SPDX-License-Identifier: BSD-3-Clause
"""The charts of bench.py, drawn by gnuplot."""

import subprocess

COMMON = """set terminal svg size 840,400 dynamic font "sans-serif,13" noenhanced background "white"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set key top left reverse Left
set style line 1 lc rgb "#0b6e4f" lw 2.5 pt 7 ps 0.6
set style line 2 lc rgb "#c8553d" lw 2 pt 5 ps 0.6
set style line 3 lc rgb "#7a7a7a" lw 2 pt 9 ps 0.6
set style line 4 lc rgb "#3d5a9e" lw 2 pt 11 ps 0.6
"""
COLOURS = {1: 0x0b6e4f, 2: 0xc8553d, 3: 0x7a7a7a, 4: 0x3d5a9e}


def plot(path, text, series):
    """Draw lines: series is a list of (title, [(x, y)...])."""
    blocks, parts = [], []
    for number, (title, points) in enumerate(series, 1):
        if points:
            lines = "".join(f"{x} {y:.4g}\n" for x, y in points)
            blocks.append(f"$d{number} << E\n{lines}E\n")
            parts.append(f"$d{number} using 1:2 with linespoints ls {number} title \"{title}\"")
    gnuplot(path, "".join(blocks) + text + "plot " + ", ".join(parts) + "\n")


def gnuplot(path, text):
    """Run gnuplot."""
    subprocess.run(["gnuplot"], input=f"{COMMON}set output \"{path}\"\n{text}", text=True,
                   check=True)


def values(rows, prefix, key="value", in_ns=False):
    """Return the points of a sweep: (the number at the end of the row's name, the best value)."""
    points = []
    for name, row in rows.items():
        number = name[len(prefix):]
        if name.startswith(prefix) and number.isdigit():
            value = row[key]["best"]
            if in_ns and row["unit"] == "GB/s":
                value = int(number) / value
            points.append((int(number), value))
    return sorted(points)


def bandwidth(rows, path):
    """WRITEs over their size."""
    lines = (("rmem, WRITE in one process", "write_size_", "value"),
             ("UCX posix, put to another process", "ucx_put_", "value"),
             ("memcpy", "write_size_", "baseline"),
             ("rmem, WRITE to another process", "wire_host_two_size_", "value"))
    series = [(title, [(size, size / took) for size, took in values(rows, prefix, key, True)])
              for title, prefix, key in lines]
    plot(path, """set key bottom right
set logscale x 2
set logscale y
set xlabel "bytes"
set ylabel "GB/s"
set xtics ("8" 8, "64" 64, "512" 512, "4K" 4096, "32K" 32768, "256K" 262144, "1M" 1048576)
""", series)


def latency(rows, path):
    """One way of a ping-pong of 64 bytes, at several percentiles or the mean."""
    columns = (("rmem\\n1 process", ["pingpong64_p50", "pingpong64_p99", "pingpong64_p999"]),
               ("rmem\\n2 proc., mean", ["wire_shm_two_pingpong64"]),
               ("UCX am", ["ucx_am_p50", "ucx_am_p99", "ucx_am_p999"]),
               ("UCX tag", ["ucx_tag_p50", "ucx_tag_p99", "ucx_tag_p999"]),
               ("libfabric\\nmean", ["fi_shm_mean"]))
    data = ""
    for title, names in columns:
        took = [f"{rows[name]['value']['median'] / 2:.0f}" for name in names if name in rows]
        data += f'"{title}" {" ".join(took + ["-"] * (3 - len(took)))}\n'
    gnuplot(path, f"$d << E\n{data}E\n" + """set style data histogram
set style histogram cluster gap 1
set style fill solid
set ylabel "ns, one way"
set logscale y
set datafile missing "-"
set xtics font ",11"
set key above
set bmargin 4
plot $d using 2:xtic(1) ls 1 title "median", $d using 3 ls 2 title "99 %", \\
    $d using 4 ls 3 title "99.9 %"
""")


def growth(rows, path):
    """The cost of a request over the number of objects, as ratios to the fewest."""
    lines = (("WRITE of 64 B, over the number of MRs", "write64_mrs_"),
             ("WRITE of 64 B, over the number of QPs", "write64_qps_"),
             ("lease, over the number held", "lease_held_"))
    plot(path, """set logscale x 2
set xlabel "MRs, QPs or leases"
set ylabel "cost, ratio to few"
set yrange [0:*]
set xtics ("1" 1, "16" 16, "256" 256, "4096" 4096, "65536" 65536, "1048576" 1048576)
""", [(title, values(rows, prefix, "ratio")) for title, prefix in lines])


def bars(name, label, data):
    """The commands that plot bars with their values; data is a list of (title, value, style)."""
    kept = [bar for bar in data if bar[1] is not None]
    lines = "".join(f'{n} "{title}" {value:.4g} {COLOURS[style]}\n'
                    for n, (title, value, style) in enumerate(kept))
    return f"""${name} << E
{lines}E
set boxwidth 0.7
set style fill solid
set title "{label}"
set yrange [0:*]
set offsets 0.2, 0.2, graph 0.12, 0
set xtics font ",10"
set bmargin 4
plot ${name} using 1:3:4:xtic(2) with boxes lc rgb variable notitle, \\
    ${name} using 1:3:(sprintf("%.3g", $3)) with labels offset 0,0.7 notitle
"""


def median(rows, name, factor=1.0):
    """The median of a row, or None."""
    return rows[name]["value"]["median"] * factor if name in rows else None


def others(rows, path):
    """Work that UCX and libfabric do as well, for README."""
    sent = (("rmem\\n1 proc.", median(rows, "pingpong64_p50", 0.5), 1),
            ("rmem\\n2 proc.", median(rows, "wire_shm_two_pingpong64", 0.5), 1),
            ("UCX\\n(am)", median(rows, "ucx_am_p50", 0.5), 2),
            ("UCX\\n(tag)", median(rows, "ucx_tag_p50", 0.5), 2),
            ("libfabric\\nshm", median(rows, "fi_shm_mean", 0.5), 4))
    written = (("rmem\\n1 proc.", median(rows, "write64_burst32"), 1),
               ("rmem\\n2 proc.", median(rows, "wire_host_two_size_64"), 1),
               ("UCX\\nput", median(rows, "ucx_put_64"), 2))
    gnuplot(path, "set multiplot layout 1,2\n" +
            bars("sent", "message of 64 bytes, one way: ns", sent) +
            bars("written", "WRITE or put of 64 bytes: ns", written) + "unset multiplot\n")


def rate(rows, path):
    """Operations of 64 bytes per second, and of 8 bytes."""
    names = (("WRITE\\n8 B", "write_size_8", 1), ("WRITE\\n64 B", "write64_burst32", 1),
             ("SEND\\n64 B", "send64_rate", 1),
             ("2 proc.\\n8 B", "wire_host_two_size_8", 1),
             ("UCX put\\n8 B", "ucx_put_8", 2), ("UCX put\\n64 B", "ucx_put_64", 2),
             ("UCX am\\n64 B", "ucx_am_rate", 2))
    data = [(title, 1e3 / rows[name]["value"]["median"] if name in rows else None, style)
            for title, name, style in names]
    for title, name in (("memcpy\\n64 B", "write64_burst32"), ("rte_ring\\n64 B", "send64_rate")):
        data.append((title, 1e3 / rows[name]["baseline"]["median"] if name in rows else None, 3))
    gnuplot(path, bars("d", "million operations per second", data))


def control(rows, path):
    """The requests that change keys, in the order of their cost, and a WRITE."""
    names = (("LOCAL_INV", "local_inv_burst32", "value", 1), ("REG_MR", "reg_mr_burst32", "value", 1),
             ("BIND_MW", "mw_bind_burst32", "value", 1),
             ("lease", "lease_grant_revoke_burst32", "value", 1),
             ("WRITE 64 B", "write64_burst32", "value", 1),
             ("pool get+put", "pool_sge_bulk32", "value", 1),
             ("rte_mempool", "pool_sge_bulk32", "baseline", 3),
             ("CAS", "reg_mr_burst32", "baseline", 3))
    data = [(title, rows[name][key]["median"] if name in rows else None, style)
            for title, name, key, style in names]
    gnuplot(path, bars("d", "ns per request or buffer, in bursts of 32", data))


# Name: function, what it needs, caption.
CHARTS = {
    "others": (others, {"pingpong64_p50", "ucx_am_p50", "write64_burst32"},
               "64-byte messages and WRITEs"),
    "rate": (rate, {"write_size_8", "ucx_put_8", "write64_burst32"}, "operations per second"),
    "bandwidth": (bandwidth, {"write_size_8", "ucx_put_8"}, "bandwidth over size"),
    "latency": (latency, {"pingpong64_p50", "ucx_am_p50"}, "latency of 64-byte messages"),
    "control": (control, {"reg_mr_burst32", "mw_bind_burst32"}, "requests that change keys"),
    "growth": (growth, {"write64_mrs_1", "write64_qps_1", "lease_held_64"}, "cost as work grows"),
}


def draw(result, directory, prefix=""):
    """Draw the charts whose rows were measured; return their names."""
    drawn = []
    for name, (function, needed, _) in CHARTS.items():
        if needed <= set(result["rows"]) and not result.get("by_hand"):
            path = f"{directory}/{prefix}{name}.svg"
            function(result["rows"], path)
            clean(path)
            drawn.append(name)
    return drawn


def clean(path):
    """Remove blanks at the ends of lines, and empty lines at the end."""
    with open(path, encoding="utf-8") as lines:
        text = [line.rstrip() for line in lines]
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(text).rstrip("\n") + "\n")
