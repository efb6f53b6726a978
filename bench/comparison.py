#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Rondo with its alternatives, on one page.

  bench/comparison.py cpu --build BUILD --out FILE [--peers FOLDER] [--lists CSV,...] [--under COMMAND]
  bench/comparison.py gpu --build BUILD --out FILE [--device cuda:0] [--buffers FOLDER] [--dry-run]
  bench/comparison.py show FILE
  bench/comparison.py page --cpu FILE --gpu FILE [--networks FILE] --out docs/comparison.md

`cpu` replays the same graphs with Rondo and with the engines that were found at the build (bench/CMakeLists.txt), and
plans the same lists of buffers with Rondo and with MiniMalloc. --under gives a command to run each program with, such
as taskset. Two engines have no Debian package. To measure them, put Taskflow's headers into build/peers/taskflow before
the build, and build MiniMalloc in FOLDER/minimalloc (default FOLDER: build/peers), or pass --minimalloc and --lists.
`gpu` compares launches, changes and memory with the bare driver, and calls, training steps and memory with PyTorch;
what is missing (PyTorch, a GPU) is reported and omitted. --dry-run prints the commands. `cpu` and `gpu` each write a
JSON file with hardware, versions, commands, date and tables, and so do bench/networks_vs_torch.py,
bench/models_vs_onnxruntime.py, bench/models_vs_torch.py and bench/serving_vs_onnxruntime.py, whose files --networks
takes. In all tables, lower is better. `page` makes docs/comparison.md from such files.

Each replay figure is the median of three runs, for the engine's fastest variant and thread count; each run's figure is
itself a median. Below each table, the page lists the rows where Rondo is slower, and why (CAUSES).
Exit status: 0 measured, 1 failed, 77 nothing to compare with.
"""
import argparse
import datetime
import glob
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
from table import markdown_table

SKIPPED = 77
SHAPES = {"line32": "a line of 32", "branch2x16": "two branches of 16", "fork30": "fork of 30, and join",
          "line1000": "a line of 1000", "dag10k": "a random DAG of 10,000"}
ENGINES = [("Rondo", "rondo_bench", ("rondo",)),
           ("Taskflow", "peer_taskflow", ("taskflow", "taskflow-spin")),
           ("oneTBB", "peer_tbb", ("tbb", "tbb-light", "tbb-async")),
           ("OpenMP, gcc", "peer_openmp_gcc", ("omp-gcc-task", "omp-gcc-region")),
           ("OpenMP, clang", "peer_openmp_clang", ("omp-clang-task", "omp-clang-region")),
           ("PoCL command buffer", "peer_pocl", ("pocl-recorded",)),
           ("StarPU", "peer_starpu", ("starpu",))]
# The parts that other programs measure, by their kind.
HEADS = {"networks": "Networks on a CPU, beside PyTorch", "gpu networks": "Networks on a GPU, beside PyTorch",
         "models": "Models in ONNX files on a CPU, beside onnxruntime",
         "gpu models": "Models in ONNX files on a GPU, beside PyTorch",
         "serving": "Models served over HTTP on a CPU, beside Triton's Python backend"}
# Why Rondo is slower, by prefix of the table's title, then by prefix of the row's name; "" is any row.
CAUSES = {
    "Launching a graph": {
        "": "Rondo's launch is the driver's, after 84 instructions of its own; identical execs of the driver "
            "differ by up to 60 ns (bench/results/2026-11-21-h200-changing.md), in a line of 3200 by up to 8 % "
            "(bench/results/2026-11-23-h200-feed.md)"},
    "Changing a graph": {
        "making it": "the driver's calls are the same, but Rondo first verifies and plans a graph of its own: 722 "
                     "instructions for each node to make it, and 1093 to instantiate it "
                     "(bench/results/2026-11-23-making.md)",
        "updating": "203 instructions for each node, to find the differences, and one driver call for each node that "
                    "differs; the bare driver updates all with one call (bench/results/2026-11-23-changing.md)",
        "patching": "497 instructions and one more driver call, which checks that the device's context is current: "
                    "without a current context, the driver ends the process (bench/results/2026-11-23-changing.md)"},
    "Steps of networks, on a GPU": {
        "gpt2_14m": "the difference is within that of two runs"},
    "Served requests": {
        "resnet50": "of processor time it takes less; the machine was busy, and there were few answers in a turn "
                    "(bench/results/2026-11-30-serving.md)",
        "vit": "as for resnet50"},
    "Replaying a graph of tasks of one microsecond": {
        "": "the bodies take nearly all of this time, and the clock of this virtual machine's processors changes: "
            "within minutes, the same body alone takes from 893 to 998 ns",
        "a random DAG": "a thread that loses its processor to a neighbour keeps its task, and the tasks after it "
                        "wait (bench/results/2026-11-21-xeon-2-processors.md)"},
}
HERE = os.path.dirname(os.path.abspath(__file__))


class Part:
    """The results of one run. The file is written after each table, so an interrupted run keeps them."""

    def __init__(self, kind, out):
        self.commands, self.tables, self.versions, self.missing = [], [], {}, []
        self.details = None  # figures that the page does not show
        self.kind, self.hardware, self.out, self.has_ended = kind, "", out, False

    def add(self, title, text, unit, columns, rows, times=None):
        """Adds no table if no alternative was measured. times: for each row, how many times better Rondo is, if that was
        measured in pairs; otherwise the figures are divided."""
        if any(value is not None for row in rows for value in row[2:]):
            self.tables.append({"title": title, "text": text, "unit": unit, "columns": columns, "rows": rows,
                                **({"times": times} if times else {})})
            self.save()

    def miss(self, what):
        if what in self.missing:
            return
        self.missing.append(what)
        print(f"bench/comparison: omitted: {what}", file=sys.stderr)

    def as_object(self):
        commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                                check=False).stdout.strip()
        return {"kind": self.kind, "date": datetime.date.today().isoformat(), "commit": commit or "an exported tree",
                "hardware": self.hardware, "versions": self.versions, "commands": self.commands,
                "missing": self.missing + ([] if self.has_ended else ["what was not measured before an interruption"]),
                "tables": self.tables, **({"details": self.details} if self.details else {})}

    def save(self):
        if self.out:
            with open(self.out, "w", encoding="utf-8") as file:
                json.dump(self.as_object(), file, indent=1)
                file.write("\n")

    def end(self):
        self.has_ended = True
        self.save()


def read_rows(path, keys):
    """The details of a file that a part was written to, by these keys; {} if there is no such file."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {tuple(row[key] for key in keys): row for row in json.load(file)["details"]}


def run_json(command, part, environment=None, said=None):
    """Returns the JSON that a program prints; on failure, notes it as missing and returns None."""
    print("bench/comparison: " + " ".join(command), file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        part.miss(f"{said or os.path.basename(command[0])}: {lines[-1]}")
        return None
    return json.loads(done.stdout)


# CPU ---------------------------------------------------------------------------------------------------------------


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    release = platform.release().partition("-")[0]  # after it: who built the kernel
    return f"{os.cpu_count()} processors ({names[0] if names else platform.machine()}), {platform.system()} {release}"


def replays(arguments, part):
    """Nanoseconds for each (engine, shape, body): the median of three runs, for the fastest variant."""
    with_steps = subprocess.run([f"{arguments.build}/bench/bound_static", "steps"], capture_output=True, text=True,
                                check=True).stdout.split()
    environment = {**dict(setting.split("=", 1) for setting in with_steps if "=" in setting),
                   "BENCH_BUDGET_MS": str(arguments.budget_ms), "BENCH_BODIES": "empty,microsecond",
                   "BENCH_SHAPES": ",".join(arguments.shapes), "STARPU_SILENT": "1"}
    runs = {}  # (engine, shape, body): {(variant, threads): the time of each run}
    for _ in range(3):
        for name, program, variants in ENGINES:
            path = f"{arguments.build}/bench/{program}"
            if not os.path.exists(path):
                part.miss(f"{name}: not found when the benches were built")
                continue
            command = [path, "replay", "--json"] if name == "Rondo" else [path]
            result = run_json([*arguments.under, *command], part, {**environment, "BENCH_ENGINES": ",".join(variants)},
                              name)
            if result is None:
                continue
            if result["version"]:
                part.versions[name] = result["version"]
            for row in result["rows"]:
                if row.get("engine") in variants and "total_ns" in row:
                    times = runs.setdefault((name, row.get("shape"), row.get("body")), {})
                    times.setdefault((row["engine"], row.get("threads")), []).append(row["total_ns"])
    measured = {name for name, _, _ in runs}  # in at least one run
    part.missing = [what for what in part.missing if what.partition(":")[0] not in measured]
    return {key: min(statistics.median(each) for each in times.values()) for key, times in runs.items()}


def in_us(nanoseconds):
    return None if nanoseconds is None else nanoseconds / 1e3


def add_replays(arguments, part):
    medians = replays(arguments, part)
    columns = [name for name, _, _ in ENGINES]
    for body, title, text in (("empty", "Replaying a graph of empty tasks", "what the engine itself costs"),
                              ("microsecond", "Replaying a graph of tasks of one microsecond",
                               "how well it uses the processors")):
        part.add(title, f"Until the replay is complete: {text}.", "us", columns,
                 [[SHAPES[shape], *(in_us(medians.get((name, shape, body))) for name in columns)]
                  for shape in arguments.shapes])


def search_ms(command, limit, pattern):
    """The smaller of the program's own search times in two runs, in ms; None if a run found nothing."""
    least = None
    for _ in range(2):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit + 10)
        except subprocess.TimeoutExpired:
            return None
        said = re.search(pattern, done.stdout + done.stderr)
        if done.returncode != 0 or not said or float(said.group(1)) > limit:
            return None
        least = min(float(said.group(1)) * 1e3, least or math.inf)
    return least


def revision_of(folder):
    """The revision of the repository whose root is `folder`; "" if it is not a root."""
    if not os.path.exists(os.path.join(folder, ".git")):
        return ""
    return subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          check=False).stdout.strip()


def add_plans(arguments, part):
    """Packs each list into the capacity in its file name (NAME.CAPACITY.csv), or into its lower bound."""
    if not os.path.exists(arguments.minimalloc):
        part.miss(f"MiniMalloc: there is no {arguments.minimalloc} (--help)")
        return
    part.versions["MiniMalloc"] = revision_of(f"{arguments.peers}/minimalloc") or "unknown"
    tool, out, rows = f"{arguments.build}/tools/rondo/rondo", arguments.out + ".plan", []
    for path in arguments.lists:
        name = os.path.basename(path)
        capacity = name.split(".")[1] if name.count(".") == 2 else None
        if capacity is None:
            bound = run_json([tool, "plan", path, "--fast", "--json"], part)
            capacity = str(bound["lower_bound"])
        rondo = [*arguments.under, tool, "plan", path, "--capacity", capacity,
                 "--budget-ms", str(arguments.limit * 1000), "--json"]
        other = [*arguments.under, arguments.minimalloc, f"--capacity={capacity}", f"--input={path}", f"--output={out}",
                 f"--timeout={arguments.limit}s"]
        rows.append([f"{name.split('.')[0]}, into {capacity} bytes",
                     search_ms(rondo, arguments.limit, r'"seconds": ([0-9.e-]+)'),
                     search_ms(other, arguments.limit, r"Elapsed time ([0-9.]+)s")])
        print(f"bench/comparison: {rows[-1]}", file=sys.stderr)
    if os.path.exists(out):
        os.remove(out)
    part.add("Packing buffers into a capacity",
             "The search time that each program reports, until every buffer fits: Rondo on two threads, MiniMalloc on "
             f"one. A dash: nothing found within {arguments.limit} seconds. A to K are MiniMalloc's own lists.",
             "ms", ["Rondo", "MiniMalloc"], rows)


def cpu(arguments):
    part = Part("cpu", arguments.out)
    part.hardware = processor()
    part.commands = ["make bench"]
    if arguments.only != "plans":
        add_replays(arguments, part)
    if arguments.only != "replays":
        add_plans(arguments, part)
    return part


# GPU ---------------------------------------------------------------------------------------------------------------


def add_launches(part, tool, program, device):
    result = run_json([tool, "bench", "launch", "--device", device, "--json"], part)
    if result:
        part.hardware = result["device_description"]
        part.add("Launching a graph of empty kernels",
                 "Host time of the launch call, or of enqueueing the same kernels.", "us",
                 ["Rondo", "bare driver, graph", "bare driver, streams"],
                 [[shape["name"], shape["bare"]["beside_bare"]["host_us"], shape["bare"]["beside_bare"]["bare_host_us"],
                   shape["bare"]["stream"]["host_us"]] for shape in result["shapes"] if "bare" in shape])
    result = run_json([program, "change", "--device", device, "--json"], part)
    if result:
        names = {"instantiate": "making it", "update": "updating all of it",
                 "patch_and_launch": "patching one node and launching"}
        part.add(f"Changing a graph of {result['nodes']} kernels", "Host time.", "us", ["Rondo", "bare driver"],
                 [[text, result[name]["host_us"], result[name]["bare_host_us"]] for name, text in names.items()])


def add_memory(part, tool, device, folder):
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))) if folder else []:
        result = run_json([tool, "bench", "memory", path, "--device", device, "--json"], part)
        script = f"{HERE}/memory_vs_torch.py"
        torch = run_json([sys.executable, script, "--buffers", path, "--device", device, "--json"], part,
                         said="PyTorch's private pool")
        if result:
            ways = {way["way"]: way["bytes"] / result["page_bound"] for way in result["ways"]}
            rows.append([os.path.basename(path)[:-4], ways.get("profiled"), ways.get("driver") or None,
                         torch and torch["bytes"] / result["page_bound"]])
    if not folder:
        part.miss("memory inside graphs: no --buffers FOLDER was given")
    part.add("Memory inside a graph", "Bytes held for the allocations of a model, divided by the maximum of live "
             "bytes, in whole pages of the device.", "times", ["Rondo", "CUDA memory nodes", "PyTorch's private pool"], rows)


def add_calls(part, program, device):
    result = run_json([sys.executable, f"{HERE}/trees_vs_torch.py", "--program", program, "--device", device, "--json"],
                      part, said="PyTorch's CUDAGraph Trees")
    if result:
        part.versions["PyTorch"] = result["torch"]
        part.add("A call of a recorded perceptron", "host: time of the call; done: time until its work is complete. "
                 "CUDAGraph.replay alone takes no inputs.", "us",
                 ["Rondo's tree", "PyTorch's CUDAGraph Trees", "PyTorch's CUDAGraph.replay alone"],
                 [[f"{row['layers']} layers of {row['width']}, batch {row['batch']}{text}",
                   *(row[side][key] for side in ("rondo", "torch_trees", "torch_replay"))]
                  for row in result["rows"] for key, text in (("host_us", ": host"), ("total_us", ": done"))])


def add_steps(part, program, device):
    result = run_json([sys.executable, f"{HERE}/gpt_vs_torch.py", "--program", program, "--device", device, "--json"], part,
                      said="PyTorch's training step")
    rows, memory = [], []
    for row in result["rows"] if result else []:
        graph = row["torch_graph"] or {}
        rows.append([f"{row['type']}: host", row["recorded"]["host_us"], graph.get("host_us"),
                     row["torch_eager"]["host_us"]])
        rows.append([f"{row['type']}: done", row["recorded"]["step_us"], graph.get("total_us"),
                     row["torch_eager"]["total_us"]])
        memory.append([row["type"], row["memory"]["planned"] / 1e6, graph.get("pool_bytes", 0) / 1e6 or None])
    part.add("A training step of a small GPT", "host: time of the calls; done: time until the step is complete.", "us",
             ["Rondo, recorded", "PyTorch, step in one CUDAGraph", "PyTorch, eager"], rows)
    part.add("Memory of that step", "Rondo: memory between operators; PyTorch: the graph's private pool.", "MB",
             ["Rondo", "PyTorch's private pool"], memory)


def driver_version():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.split("\n", maxsplit=1)[0].strip() if done.returncode == 0 else None


def gpu(arguments):
    part = Part("gpu", arguments.out)
    version = driver_version()
    if version:
        part.versions["driver"] = version
    tool, program = f"{arguments.build}/tools/rondo/rondo", f"{arguments.build}/bench/rondo_bench"
    part.commands = ["tests/gpu/bench --buffers FOLDER"]
    add_launches(part, tool, program, arguments.device)
    if not part.hardware:
        return part
    add_memory(part, tool, arguments.device, arguments.buffers)
    add_calls(part, program, arguments.device)
    add_steps(part, program, arguments.device)
    return part


def print_commands(arguments):
    tool, scripts = f"{arguments.build}/tools/rondo/rondo", f"--device {arguments.device} --json"
    program = f"{arguments.build}/bench/rondo_bench"
    for command in (f"{tool} bench launch", f"{tool} bench memory FILE", f"{program} change"):
        print(f"{command} {scripts}")
    print(f"bench/memory_vs_torch.py --buffers FILE {scripts}")
    print(f"bench/trees_vs_torch.py --program {program} {scripts}")
    print(f"bench/gpt_vs_torch.py --program {program} {scripts}")


# The page ------------------------------------------------------------------------------------------------------------


def figure(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value >= 100 else f"{value:.2f}"


def best_other(row):
    others = [value for value in row[2:] if value is not None]
    return min(others) / row[1] if others and row[1] else None


def rows_with_times(table):
    """The rows, each with the best alternative's figure divided by Rondo's."""
    return zip(table["rows"], table.get("times") or map(best_other, table["rows"]))


def prose(text):
    return textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)


def cause_of(title, name):
    """The cause with the longest matching prefix, or ""."""
    causes = next((rows for begin, rows in CAUSES.items() if title.startswith(begin)), {})
    return causes.get(max((begin for begin in causes if name.startswith(begin)), key=len, default=None), "")


def behind_lines(table):
    """Lists the rows where an alternative is at least 0.5 % better, grouped by cause."""
    causes = {}
    for row, times in rows_with_times(table):
        if (times or 1) < 0.995:
            causes.setdefault(cause_of(table["title"], row[0]) or "the cause is not known", []).append(row[0])
    if causes:
        rows = "; ".join(f"{', '.join(names)}: {cause}" for cause, names in causes.items())
        yield from prose(f"Rondo is behind in: {rows}.")
        yield ""


def table_lines(table):
    yield f"### {table['title']}"
    yield ""
    unit = {"us": "Microseconds.", "ms": "Milliseconds.", "MB": "Megabytes.", "times": ""}[table["unit"]]
    yield from prose(f"{table['text']} {unit}".strip())
    yield ""
    yield from markdown_table(["", *table["columns"], "best alternative / Rondo"],
                              ([row[0], *(figure(value) for value in row[1:]), figure(times)]
                               for row, times in rows_with_times(table)))
    yield ""
    yield from behind_lines(table)


def part_lines(part):
    versions = "".join(f"; {name} {version}" for name, version in part["versions"].items())
    yield from prose(f"Measured {part['date']} on {part['hardware']}, at {part['commit']}{versions}.")
    yield ""
    if part.get("note"):
        yield from prose(part["note"])
        yield ""
    yield "```sh"
    yield f"# Needs {'a real GPU' if part['kind'].startswith('gpu') else 'an idle machine'}"
    yield from (command for command in part["commands"])
    yield "```"
    yield ""
    for table in part["tables"]:
        yield from table_lines(table)
    if part["missing"]:
        yield from prose("Omitted: " + "; ".join(part["missing"]) + ".")
        yield ""


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def picture(parts):
    """One bar for each row: the best alternative's figure divided by Rondo's, logarithmic."""
    rows = [(table["title"], row[0], times) for part in parts for table in part["tables"]
            for row, times in rows_with_times(table) if times]
    middle, unit, top, line = 560, 110, 46, 17
    lines, at, title = [], top, None
    for group, name, times in rows:
        if group != title:
            at += 10
            lines.append(f'<text class="head" x="10" y="{at + 12}">{escape(group)}</text>')
            at, title = at + line, group
        length = unit * math.log10(times)
        begin, bar = min(middle, middle + length), max(abs(length), 1)
        lines.append(f'<text class="name" x="{middle - 130}" y="{at + 12}">{escape(name)}</text>'
                     f'<path class="{"more" if length >= 0 else "less"}" d="M{begin:.1f} {at + 3}h{bar:.1f}v10'
                     f'h-{bar:.1f}z"/><text x="{max(middle, middle + length) + 6:.1f}" y="{at + 12}">'
                     f'{figure(times)}</text>')
        at += line
    height = at + 16
    scale = "".join(f'<path class="rule" d="M{middle + unit * n} {top - 6}V{height - 10}"/>'
                    f'<text class="tick" x="{middle + unit * n}" y="{top - 12}">{10 ** n if n >= 0 else 0.1:g}</text>'
                    for n in range(-1, 4))
    style = ("svg{background:#fff}text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1b2733}.head{font-weight:600}"
             ".name{text-anchor:end}.tick{text-anchor:middle;fill:#56636f}.rule{stroke:#e1e6eb}.more{fill:#3f79b0}"
             ".less{fill:#b3261e}@media (prefers-color-scheme:dark){svg{background:#14191e}text{fill:#e4e9ee}"
             ".rule{stroke:#2a323a}.tick{fill:#9aa7b4}.more{fill:#6fb3ee}.less{fill:#ff8a80}}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="960" height="{height}" '
            f'viewBox="0 0 960 {height}" '
            f'aria-label="The best alternative\'s figure divided by Rondo\'s">\n<style>{style}</style>\n'
            f'<text class="tick" x="{middle + unit}" y="14">best alternative / Rondo: right of 1, Rondo is better'
            f'</text>\n{scale}\n' + "\n".join(lines) + "\n</svg>\n")


def page(arguments):
    parts = []
    for path in (arguments.gpu, arguments.cpu, *arguments.networks):
        with open(path, encoding="utf-8") as file:
            parts.append(json.load(file))
    lines = ["# Comparison", "",
             "This page compares Rondo with its alternatives. The figures of a table were measured in the same run on",
             "the same machine. In all tables, lower is better. `bench/comparison.py page` made this page; `make bench`",
             "repeats the CPU part, `tests/gpu/bench` the GPU part, and `bench/networks_vs_torch.py` that of networks.",
             "[bench/results](../bench/results) has all other measurements.", "",
             "![The best alternative's figure divided by Rondo's](pictures/comparison.svg)", "", "## On a GPU", "",
             *part_lines(parts[0]), "## On a CPU", "", *part_lines(parts[1])]
    for part in parts[2:]:
        lines += [f"## {HEADS[part['kind']]}", "", *part_lines(part)]
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")
    folder = os.path.join(os.path.dirname(os.path.abspath(arguments.out)), "pictures")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "comparison.svg"), "w", encoding="utf-8") as file:
        file.write(picture(parts))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    root = os.path.dirname(HERE)
    for name in ("cpu", "gpu"):
        way = ways.add_parser(name)
        way.add_argument("--build", default="build/release")
        way.add_argument("--out", required=name == "cpu")
        way.add_argument("--under", default="", help="command to run each program with, such as taskset")
    way = ways.choices["cpu"]
    way.add_argument("--peers", default=f"{root}/build/peers")
    way.add_argument("--minimalloc")
    way.add_argument("--lists")
    way.add_argument("--limit", type=int, default=10, help="seconds to search for a plan")
    way.add_argument("--budget-ms", type=int, default=60)
    way.add_argument("--only", choices=("replays", "plans"))
    way.add_argument("--shapes", default=",".join(SHAPES))
    way = ways.choices["gpu"]
    way.add_argument("--device", default="cuda:0")
    way.add_argument("--buffers")
    way.add_argument("--dry-run", action="store_true")
    ways.add_parser("show").add_argument("file")
    way = ways.add_parser("page")
    way.add_argument("--cpu", required=True)
    way.add_argument("--gpu", required=True)
    way.add_argument("--networks", nargs="*", default=[])
    way.add_argument("--out", required=True)
    arguments = parser.parse_args()
    if arguments.way == "cpu":
        arguments.minimalloc = arguments.minimalloc or f"{arguments.peers}/minimalloc/build/minimalloc"
        own = sorted(glob.glob(f"{arguments.peers}/minimalloc/benchmarks/challenging/*.csv"))
        every = [*own, f"{root}/docs/pictures/gpt-step.csv"]
        arguments.lists = arguments.lists.split(",") if arguments.lists else every
        arguments.shapes = arguments.shapes.split(",")
    if arguments.way in ("cpu", "gpu"):
        arguments.under = arguments.under.split()
    return arguments


def main():
    arguments = read_arguments()
    if arguments.way == "page":
        page(arguments)
        return 0
    if arguments.way == "show":
        with open(arguments.file, encoding="utf-8") as file:
            print("\n".join(part_lines(json.load(file))))
        return 0
    if arguments.way == "gpu" and arguments.dry_run:
        print_commands(arguments)
        return 0
    part = (cpu if arguments.way == "cpu" else gpu)(arguments)
    part.end()
    print("\n".join(part_lines(part.as_object())))
    return 0 if part.tables else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
