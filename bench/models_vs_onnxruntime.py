#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures whole models in ONNX files, in turns: a Rondo recording and onnxruntime.

  bench/models_vs_onnxruntime.py --program BUILD/bench/rondo_bench [--models build/models] [--names NAME,...]
                                 [--threads 1,2] [--rounds 5] [--seconds 0.5] [--starts 3] [--out FILE]

The models are those of `make models`: the folders `light` and `full`, with a batch of one and, of `full`, of eight. Both
engines run in processes of their own on the first N processors, with the same inputs, which are bound once. They take
turns of as many runs as fit into --seconds, in an order that rotates. A turn's time is the median of its runs; a ratio is
the median over the rounds of Rondo's turn divided by onnxruntime's. The time until the first answer begins with reading
the file; it is the median of --starts processes. Memory is the peak of a process beyond its start, of onnxruntime beyond
its import. That both give the same results is what tests/models/check_models checks.

--out writes a part for bench/comparison.py page, after each model. What the file has of other models and threads stays:
use one build for all. Targets: a geometric mean of at most 1.0 of onnxruntime's time and none above 1.25; of models of
integers 1.1; 0.8 of its memory; its own time until the first answer; and of `chain`, whose operators compute next to
nothing, 0.3 of its time. They are printed and do not affect the exit status: 0 measured, 1 failed, 77 skipped, because
onnxruntime or the models are missing.
"""
import argparse
import glob
import math
import os
import statistics
import sys

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
from comparison import Part, processor, read_rows
from turns import Runner, first_processors, measure_in_turns

SKIPPED = 77
HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = {"light": (1,), "full": (1, 8)}
WORST, INTEGERS, CHAIN, MEMORY = 1.25, 1.1, 0.3, 0.8


def find_models(arguments):
    """The name, folder, batch and set of inputs of each model."""
    for size, batches in BATCHES.items():
        for path in sorted(glob.glob(f"{arguments.models}/{size}/*/model.onnx")):
            folder = os.path.dirname(path)
            name = os.path.basename(folder) + (" (light)" if size == "light" else "")
            if folder.endswith(".partial") or arguments.names and name.split()[0] not in arguments.names.split(","):
                continue
            for index, batch in enumerate(batches):
                yield name, path, batch, f"{folder}/test_data_set_{index}"


def make_runner(way, path, data, threads, arguments):
    command = ([arguments.program, "models", path, "--data", data, "--turns", "--json"] if way == "rondo" else
               [sys.executable, f"{HERE}/onnxruntime_turns.py", path, "--data", data, "--threads", str(threads)])
    return Runner(way, command, first_processors(threads), f"{arguments.models}/errors-{way}.txt")


def fail(name, runner):
    sys.exit(f"models_vs_onnxruntime: {name}, {runner.way}: {runner.failure()}")


def start(name, path, data, threads, arguments):
    runners = []
    for way in ("rondo", "onnxruntime"):  # one at a time, so that each loads with the machine to itself
        runner = make_runner(way, path, data, threads, arguments)
        if not runner.is_ready():
            fail(name, runner)
        runners.append(runner)
    return runners


def end(name, runner):
    """What the process says at its end."""
    return runner.end() or fail(name, runner)


def measure(name, path, batch, data, threads, arguments):
    results = {"rondo": [], "onnxruntime": []}
    for _ in range(arguments.starts - 1):
        for runner in start(name, path, data, threads, arguments):
            results[runner.way].append(end(name, runner))
    runners = start(name, path, data, threads, arguments)
    steps = measure_in_turns(runners, arguments.rounds, arguments.seconds)
    for runner in runners:
        results[runner.way].append(end(name, runner))
    rondo, other = runners
    first = {way: statistics.median(result["first_answer_seconds"] for result in of) for way, of in results.items()}
    first_cpu = {way: statistics.median(result["first_answer_cpu_seconds"] for result in of) for way, of in results.items()}
    memory = {way: statistics.median(result["peak_bytes"] for result in of) for way, of in results.items()}
    cpu = {way: of[-1]["cpu_us"] for way, of in results.items()}
    return {"model": name, "batch": batch, "threads": threads, "runs": steps * arguments.rounds,
            "ratio": statistics.median(a / b for a, b in zip(rondo.turns, other.turns)),
            "ratio_of_minima": min(rondo.steps) / min(other.steps),
            "run_us": {runner.way: {"median": statistics.median(runner.turns), "min": min(runner.steps)}
                       for runner in runners},
            "cpu_us": cpu, "cpu_ratio": cpu["rondo"] / cpu["onnxruntime"],
            "first_answer_seconds": first, "first_answer_ratio": first["rondo"] / first["onnxruntime"],
            "first_answer_cpu_seconds": first_cpu, "first_answer_cpu_ratio": first_cpu["rondo"] / first_cpu["onnxruntime"],
            "peak_bytes": memory, "memory_ratio": memory["rondo"] / memory["onnxruntime"]}


def target_of(row):
    return CHAIN if row["model"] == "chain" else INTEGERS if row["model"].endswith("int8") else WORST


def geometric_mean(rows, key="ratio"):
    return math.exp(statistics.fmean(math.log(row[key]) for row in rows)) if rows else None


def of_floats(rows):
    return [row for row in rows if target_of(row) == WORST]


def add_tables(part, rows):
    part.tables, part.details = [], rows
    columns, ways = ["Rondo", "onnxruntime"], ("rondo", "onnxruntime")
    for threads in sorted({row["threads"] for row in rows}):
        for batch in sorted({row["batch"] for row in rows}):
            some = [row for row in rows if row["threads"] == threads and row["batch"] == batch]
            where = f"batch of {batch}, {threads} thread{'s' if threads > 1 else ''}"
            mean = geometric_mean(of_floats(some))
            said = f" The geometric mean of Rondo / onnxruntime is {mean:.2f}." if mean else ""
            part.add(f"Models, {where}", f"Until a run is done.{said}", "ms", columns,
                     [[row["model"], *(row["run_us"][way]["median"] / 1e3 for way in ways)] for row in some])
    first = [row for row in rows if row["threads"] == rows[0]["threads"] and row["batch"] == 1]
    part.add("First answers of models", "From reading the file to the first answer, batch of 1.", "ms", columns,
             [[row["model"], *(row["first_answer_seconds"][way] * 1e3 for way in ways)] for row in first])
    part.add("Memory of models", "Peak of the process beyond its start, of onnxruntime beyond its import, batch of 1.",
             "MB", columns, [[row["model"], *(row["peak_bytes"][way] / 1e6 for way in ways)] for row in first])


def word(is_met):
    return "met" if is_met else "missed"


def show(row):
    times = "  ".join(f"{way} {row['run_us'][way]['median'] / 1e3:8.3f} ms" for way in row["run_us"])
    print(f"{row['model']:22} batch {row['batch']}  {row['threads']} threads  {times}  ratio {row['ratio']:.2f} "
          f"({word(row['ratio'] <= target_of(row))}; minima {row['ratio_of_minima']:.2f}, processor time {row['cpu_ratio']:.2f})  first answer "
          f"{row['first_answer_ratio']:.2f} ({word(row['first_answer_ratio'] <= 1)}; processor time "
          f"{row['first_answer_cpu_ratio']:.2f})  memory {row['memory_ratio']:.2f} "
          f"({word(row['memory_ratio'] <= MEMORY)})", flush=True)


def show_means(rows):
    for threads in sorted({row["threads"] for row in rows}):
        some = of_floats([row for row in rows if row["threads"] == threads])
        if some:
            print(f"{threads} threads: geometric means of {len(some)}: time {geometric_mean(some):.2f}, processor time "
                  f"{geometric_mean(some, 'cpu_ratio'):.2f}, first answer "
                  f"{geometric_mean(some, 'first_answer_ratio'):.2f} (processor time "
                  f"{geometric_mean(some, 'first_answer_cpu_ratio'):.2f}), memory {geometric_mean(some, 'memory_ratio'):.2f}")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--models", default="build/models")
    parser.add_argument("--names", help="names, separated by commas (default: all)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas (default 1,2)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn (default 0.5)")
    parser.add_argument("--starts", type=int, default=3, help="processes whose first answers are measured (default 3)")
    parser.add_argument("--out", help="file for all figures")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return SKIPPED
    models = list(find_models(arguments))
    if not models:
        print(f"skipped: no models in {arguments.models}: `make models` makes them", file=sys.stderr)
        return SKIPPED
    part = Part("models", arguments.out)
    rows = read_rows(arguments.out, ("model", "batch", "threads"))
    part.hardware = processor()
    part.versions = {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}
    part.commands = ["make models", "bench/models_vs_onnxruntime.py --program build/release/bench/rondo_bench --out FILE"]
    for name, path, batch, data in models:
        for threads in (int(count) for count in arguments.threads.split(",")):
            rows[name, batch, threads] = measure(name, path, batch, data, threads, arguments)
            show(rows[name, batch, threads])
            add_tables(part, [rows[key] for key in sorted(rows)])
    show_means(list(rows.values()))
    part.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
