#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Merges what the programs of bench/run printed: bench/table.py [--json OUT] FILE...

Prints tables in Markdown: times of all engines by shape, cold and contended replays, graph against stream with the
figures of "CUDA Graph in TensorFlow", training, planning, graph memory, host costs, and each target, the measured
value, and whether it was met. With --json, also writes one object with the objects of all programs and the targets
(JSON: bars).

A series has one value for each round: the minimum if a round has several. A figure is the median of a series, with its
minimum and maximum. Ratios are computed within each round.
"""
import argparse
import json
import math
import statistics
import sys

SHAPES = ("line32", "branch2x16", "fork30", "line1000", "dag10k", "grid4096")


def markdown_table(columns, rows):
    """Lines of a table whose cells are texts."""
    def line(cells):
        return "|" + "".join(f" {text} |" if text else " |" for text in cells)

    yield line(columns)
    yield "|---" * len(columns) + "|"
    yield from map(line, rows)


# Cells ---------------------------------------------------------------------------------------------------------------


def in_ns(value):
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.2f} ms"
    if size >= 1e3:
        return f"{value / 1e3:.{1 if size >= 1e4 else 2}f} us"
    return f"{value:.{0 if size >= 10 else 1}f} ns"


def exact(value):
    return f"{value:.4f}"


def plain(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def count(value):
    return f"{value:.0f}"


def mib(value):
    return f"{value / (1 << 20):.2f} MiB"


def cell(series, text):
    """"median [smallest - largest]", or a dash."""
    values = list(series.values())
    if not values:
        return "-"
    median = text(statistics.median(values))
    return median if len(values) == 1 else f"{median} [{text(min(values))} - {text(max(values))}]"


# Series --------------------------------------------------------------------------------------------------------------


def least_by_round(pairs):
    series = {}
    for number, value in pairs:
        series[number] = min(value, series.get(number, math.inf))
    return series


def ratio(a, b):
    return {number: a[number] / b[number] for number in a if b.get(number)}


def difference(a, b):
    return {number: a[number] - b[number] for number in a if number in b}


def scaled(series, factor):
    return {number: value * factor for number, value in series.items()}


class Rows:
    """All rows of all programs, as (round, row)."""

    MEMORY = (("bytes", "bytes", 1), ("profile_us", "profile", 1e3), ("instantiate_us", "instantiate", 1e3),
              ("first_us", "first", 1e3), ("again_us", "relaunch", 1e3), ("remaps", "remaps", 1),
              ("alternating_us", "alternate", 1e3), ("alternating_remaps", "moves", 1))

    def __init__(self, programs):
        self.items = []
        for program in programs:
            rows = program["rows"] if "rows" in program else self.object_rows(program)
            self.items += [(program.get("round", 1), row) for row in rows]
        self.rounds = max((number for number, _ in self.items), default=0)

    def object_rows(self, program):
        """Converts a command's single object into measures, in nanoseconds."""
        result = program["result"]
        for way in result.get("ways", ()):  # rondo bench memory: "memory INPUT WAY QUANTITY"
            for field, quantity, scale in self.MEMORY:
                if field in way:
                    row = {"measure": f"memory {program['input']} {way['way']} {quantity}", "median": scale * way[field]}
                    yield {**row, "ratio": way["ratio"]} if field == "bytes" else row
        for row in result.get("threads", ()):  # rondo bench launch
            yield {"measure": f"launch_threads_{row['threads']}", "median": 1e3 * row["host_us"]}
        for way in ("recorded", "eager") if "hidden" in result else ():  # rondo_bench training
            yield {"measure": f"train_{result['hidden']}_{way}", "median": 1e3 * result[way]["step_us"]}
            yield {"measure": f"train_{result['hidden']}_{way}_host", "median": 1e3 * result[way]["host_us"]}

    def replays(self, body, place="spread", gap_us=0):
        return [(number, row) for number, row in self.items if "measure" not in row and row["body"] == body and
                row["place"] == place and row["gap_us"] == gap_us]

    def series(self, engine, shape, body, column="total_ns", place="spread", gap_us=0, threads=0):
        """The series of an engine with this thread count; 0: the fastest count of each round."""
        return least_by_round((number, row[column]) for number, row in self.replays(body, place, gap_us)
                              if row["engine"] == engine and row["shape"] == shape and threads in (0, row["threads"]))

    def best_peer(self, shape, body):
        """The fastest peer in each round, without Rondo and the hand-written bounds."""
        return least_by_round((number, row["total_ns"]) for number, row in self.replays(body)
                              if row["shape"] == shape and not row["engine"].startswith(("rondo", "bound")))

    def measure(self, name, field="median"):
        return least_by_round((number, row[field]) for number, row in self.items
                              if row.get("measure") == name and row.get(field) is not None)

    def measures(self, begin):
        """Names of the measures that have a ratio, in the order of their first appearance."""
        return dict.fromkeys(row["measure"] for _, row in self.items
                             if row.get("measure", "").startswith(begin) and row.get("ratio", 0) > 0)


# Tables --------------------------------------------------------------------------------------------------------------

SECTIONS = (
    ("Empty bodies: time of one replay until complete", "empty", "spread", 0, "total_ns", SHAPES[:5]),
    ("Empty bodies: the launch call", "empty", "spread", 0, "launch_ns", SHAPES[:5]),
    ("Bodies of one microsecond: time of one replay", "microsecond", "spread", 0, "total_ns", SHAPES[:5]),
    ("One kernel of 4096 blocks of 200 ns", "block", "spread", 0, "total_ns", SHAPES[5:]),
    ("Empty bodies: from the first node's start to the last one's end", "span", "spread", 0, "total_ns", SHAPES[:3]),
    ("After a rest of 5 ms: empty bodies, time of one replay", "empty", "spread", 5000, "total_ns", SHAPES[:3]),
    ("After a rest of 5 ms: empty bodies, the launch call", "empty", "spread", 5000, "launch_ns", SHAPES[:3]),
    ("All threads on one processor: empty bodies", "empty", "one", 0, "total_ns", SHAPES[:3]),
    ("All threads on one processor: bodies of one microsecond", "microsecond", "one", 0, "total_ns", SHAPES[:3]),
)

# CUDA Graph in TensorFlow, 2021: 32 empty kernels on an A100. The document says milliseconds; it must mean
# microseconds.
DOCUMENT = ("4.43 us / 65.25 us = 14.7; device 28.12 us / 60.67 us = 2.2",
            "3.17 us / 69.25 us = 21.8; device 15.47 us / 83.46 us = 5.4",
            "4.28 us / 93.75 us = 21.9; device 21.32 us / 161.79 us = 7.6")

MEASURES = {
    "clock": "reading the clock",
    "hand_over": "hand-over between two spinning threads",
    "wake_call": "waking a sleeper after 5 ms, for the caller",
    "wake_to_run": "waking a sleeper after 5 ms, until it runs",
    "idle_cpu": "an idle device: processor time in a second",
    "launch_threads_1": "one launch call, 1 thread launching",
    "launch_threads_2": "one launch call, 2 threads at once",
    "launch_threads_4": "one launch call, 4 threads at once",
    "launch_threads_8": "one launch call, 8 threads at once",
}


def section(rows, body, place, gap_us, column, shapes):
    """A table of engines by shape, as columns and rows."""
    engines = dict.fromkeys((row["engine"], row["threads"]) for _, row in rows.replays(body, place, gap_us)
                            if row["shape"] in shapes)
    return ("engine", "threads", *shapes), [
        (engine, str(threads), *(cell(rows.series(engine, shape, body, column, place, gap_us, threads), in_ns)
                                 for shape in shapes)) for engine, threads in engines]


def graph_against_stream(rows):
    def cells(stream, shape, body, column):
        a, b = rows.series(stream, shape, body, column), rows.series("rondo", shape, body, column)
        return cell(b, in_ns), cell(a, in_ns), cell(ratio(a, b), plain)

    columns = ("shape", "graph, host", "stream, host", "ratio", "graph, total", "stream, total", "ratio",
               "graph, first to last", "stream, first to last", "ratio", "A100, graph / stream")
    streams = ("rondo-stream", "rondo-streams", "rondo-streams")
    return columns, [(shape, *cells(stream, shape, "empty", "launch_ns"), *cells(stream, shape, "empty", "total_ns"),
                      *cells(stream, shape, "span", "total_ns"), document)
                     for shape, stream, document in zip(SHAPES, streams, DOCUMENT)]


def training(rows):
    manners = ("recorded", "eager", "recorded_host", "eager_host")
    return ("hidden units", "recorded", "eager", "recorded, host", "eager, host"), [
        (str(hidden), *(cell(rows.measure(f"train_{hidden}_{manner}"), in_ns) for manner in manners))
        for hidden in (32, 128, 512)]


def plans(rows):
    return ("input, way", "time", "peak to lower bound"), [
        (name.removeprefix("plan "), cell(rows.measure(name), in_ns), cell(rows.measure(name, "ratio"), exact))
        for name in rows.measures("plan ")]


def memory(rows):
    columns = (("profile", in_ns), ("instantiate", in_ns), ("first", in_ns), ("relaunch", in_ns), ("remaps", count),
               ("alternate", in_ns), ("moves", count))
    return ("input, way", "held", "to the bound", "making the profile", "instantiate", "first launch", "launch",
            "remaps in 100", "launch on two streams alternately", "remaps in 100"), [
        (name[len("memory "):-len(" bytes")], cell(rows.measure(name), mib), cell(rows.measure(name, "ratio"), exact),
         *(cell(rows.measure(name.removesuffix("bytes") + quantity), text) for quantity, text in columns))
        for name in rows.measures("memory ")]


# Targets -------------------------------------------------------------------------------------------------------------


class Bar:
    def __init__(self, name, text, sense, bound, series):
        self.name, self.text, self.at_least, self.bound, self.series = name, text, sense == "at least", bound, series

    @property
    def median(self):
        return statistics.median(self.series.values()) if self.series else None

    @property
    def met(self):
        if not self.series:
            return None
        return self.median >= self.bound if self.at_least else self.median <= self.bound

    @property
    def sense(self):
        return "at least" if self.at_least else "at most"

    def as_object(self):
        values = self.series.values()
        return {"bar": self.name, "unit": {in_ns: "ns", count: "count"}.get(self.text, "ratio"), "sense": self.sense,
                "bound": self.bound, "median": self.median, "min": min(values, default=None),
                "max": max(values, default=None), "met": self.met}

    def as_row(self):
        met = {None: "not measured", True: "met", False: "**not met**"}[self.met]
        return self.name, f"{self.sense} {self.text(self.bound)}", cell(self.series, self.text), met


def launch_bars(rows):
    large = rows.series("rondo", "dag10k", "empty", "launch_ns")
    bare = rows.series("bound-async", "dag10k", "empty", "launch_ns")
    yield Bar("launch call, 32 nodes", in_ns, "at most", 150, rows.series("rondo", "line32", "empty", "launch_ns"))
    yield Bar("launch call, 10,000 nodes", in_ns, "at most", 150, large)
    # Not compared with 32 nodes: 10,000 evict the launch's data from L1 for any engine.
    yield Bar("launch call, 10,000 nodes, against a bare hand-over", plain, "at most", 1.5, ratio(large, bare))
    for body, name in (("empty", "empty bodies"), ("microsecond", "bodies of 1 us")):
        yield Bar(f"a kernel enqueued on a stream, {name}", in_ns, "at most", 100,
                  scaled(rows.series("rondo-stream", "line32", body, "launch_ns"), 1 / 32))
    for shape, bound in (("line32", 10), ("line1000", 2), ("dag10k", 2)):
        yield Bar(f"empty {shape} against the plain loop", plain, "at most", bound,
                  ratio(rows.series("rondo", shape, "empty"), rows.series("rondo-loop", shape, "empty")))


def peer_bars(rows):
    """With long bodies all good engines reach the same limit, and the best of about twenty beats it slightly by chance,
    so 0.97 counts as equal."""
    cases = [(shape, "empty", 3 if shape in SHAPES[:3] else 10) for shape in SHAPES[:5]]
    cases += [(shape, "microsecond", 0.97) for shape in SHAPES[:5]] + [("grid4096", "block", 0.97)]
    for shape, body, bound in cases:
        yield Bar(f"{shape}, {body} bodies: times faster than the best peer", plain, "at least", bound,
                  ratio(rows.best_peer(shape, body), rows.series("rondo", shape, body)))


def share_bars(rows):
    """Two threads at best halve the time. fork30: 15 nodes on each, plus fork and join alone: 17/32."""
    for shape, body, ideal, bound in (("branch2x16", "microsecond", 1 / 2, 0.93), ("fork30", "microsecond", 17 / 32, 0.90),
                                      ("dag10k", "microsecond", 1 / 2, 0.95), ("grid4096", "block", 1 / 2, 0.96)):
        yield Bar(f"{shape}, {body} bodies: share of the ideal of two threads", plain, "at least", bound,
                  ratio(scaled(rows.series("rondo-loop", shape, body), ideal), rows.series("rondo", shape, body)))


def waiting_bars(rows):
    wake = rows.measure("wake_call")
    for name, column in (("the launch call", "launch_ns"), ("launch and wait", "total_ns")):
        cold = rows.series("rondo", "line32", "empty", column, gap_us=5000)
        yield Bar(f"cold line32: {name} over the bare wake call", in_ns, "at most", 3000, difference(cold, wake))
    yield Bar("line32 with all threads on one processor", in_ns, "at most", 10000,
              rows.series("rondo", "line32", "empty", place="one"))
    yield Bar("processor time of an idle device in a second", in_ns, "at most", 100000, rows.measure("idle_cpu"))


def training_bars(rows):
    for hidden in (32, 128, 512):
        yield Bar(f"training step, {hidden} hidden units: recorded against eager", plain, "at most", 1,
                  ratio(rows.measure(f"train_{hidden}_recorded"), rows.measure(f"train_{hidden}_eager")))


def plan_bars(rows):
    for name in ("random", "training", "inference"):
        fast = f"plan {name} 100000 fast"
        yield Bar(f"planning 100,000 buffers, {name}", in_ns, "at most", 7e8, rows.measure(fast))
        yield Bar(f"planning 100,000 buffers, {name}: peak to lower bound", exact, "at most", 1.001,
                  rows.measure(fast, "ratio"))
        yield Bar(f"planning 1,000,000 buffers, {name}", in_ns, "at most", 1e10, rows.measure(f"plan {name} 1000000 fast"))
    for name in ("random", "fork-join", "streams", "layered"):
        for sizes in ("powers", "uniform", "heavy", "network"):
            for chains in (2, 4, 8):
                yield Bar(f"planning 10,000 nodes on {chains} chains, {name}, {sizes}: peak to bound", exact, "at most",
                          1.07, rows.measure(f"plan {name} DAG, {sizes}, 10000 nodes on {chains} chains 200ms", "ratio"))
                yield Bar(f"planning 100,000 nodes on {chains} chains, {name}, {sizes}", in_ns, "at most", 2e9,
                          rows.measure(f"plan {name} DAG, {sizes}, 100000 nodes on {chains} chains fast"))


def memory_bars(rows):
    for name in ("random", "training", "inference"):
        for way in ("profiled", "relocated"):
            begin = f"memory {name} 1000 {way}"
            yield Bar(f"graph memory, {name}, {way}: bytes held to the bound", exact, "at most", 1.01,
                      rows.measure(f"{begin} bytes", "ratio"))
            yield Bar(f"graph memory, {name}, {way}: remaps in steady state", count, "at most", 0,
                      rows.measure(f"{begin} remaps"))


BARS = (launch_bars, peer_bars, share_bars, waiting_bars, training_bars, plan_bars, memory_bars)

# The whole -----------------------------------------------------------------------------------------------------------


def print_table(title, columns, rows):
    print(f"\n## {title}\n")
    print("\n".join(markdown_table(columns, rows)))


def print_tables(rows, bars):
    print(f"Medians of {rows.rounds} rounds [smallest - largest of the rounds' medians].")
    for title, *of in SECTIONS:
        columns, lines = section(rows, *of)
        if lines:
            print_table(title, columns, lines)
    print_table("Graph against stream: 32 empty kernels", *graph_against_stream(rows))
    print_table("A training step of a language model", *training(rows))
    print_table("Planning memory", *plans(rows))
    print_table("Graph memory", *memory(rows))
    print_table("Machine and host", ("what", "time"),
                [(text, cell(rows.measure(name), in_ns)) for name, text in MEASURES.items()])
    print_table("Targets", ("what", "target", "measured", ""), [bar.as_row() for bar in bars])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    programs = []
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            programs.append(json.loads(text))
        except json.JSONDecodeError as error:  # an interrupted program; bench/run names it
            print(f"bench/table.py: {path} is omitted: {error}", file=sys.stderr)
    rows = Rows(programs)
    bars = [bar for make in BARS for bar in make(rows)]
    print_tables(rows, bars)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"rounds": rows.rounds, "bars": [bar.as_object() for bar in bars], "programs": programs}, file,
                      indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
