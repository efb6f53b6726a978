#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures steps of whole networks, in turns: a Rondo recording, eager PyTorch and torch.compile.

  bench/networks_vs_torch.py --program BUILD/bench/rondo_bench [--networks NAME,...] [--threads 1,2] [--rounds 5]
                             [--seconds 0.5] [--ways eager,compile] [--out FILE] [--weights FOLDER] [--device cuda:0]

The networks are those of bench/networks and bench/networks_torch.py. Each of the three runs in a process of its own, on
the first N processors, from the same weights and inputs; the losses of their first steps must agree within 1e-4 of the
loss, or within 2e-2 in bf16. When all are ready, each takes a turn of as many steps as fit into --seconds, in an order
that rotates; the processes that do not have the turn wait. A turn's time is the median of its steps. A table has the
median of the turns, and their ratio: the median over the rounds of Rondo's turn divided by the turn of the better of
PyTorch's two ways. Memory is the peak of a process beyond what it has when its libraries are loaded: for PyTorch after
its import, for Rondo after it has found oneDNN and CBLAS; the better one counts. torch.compile takes minutes, once: its results stay in --weights, where the weights are, too.

On a GPU the ways may also be `graph`, a torch.cuda.CUDAGraph of the whole step. No processors are chosen there, and
memory is the peak of what PyTorch allocates on the GPU, and Rondo's arena and states.

--out writes a part for bench/comparison.py page, after each network. What the file has of other networks and threads
stays: use one build for all. Targets: at most 1.05 of the better of eager and torch.compile, and 0.7
of its memory. They are printed and do not affect the exit status: 0 measured, 1 failed, 77 skipped, because PyTorch or
safetensors is missing.
"""
import argparse
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
from comparison import Part, processor, read_rows
from turns import Runner, first_processors, measure_in_turns

SKIPPED, LOSSES, TIME_TARGET, MEMORY_TARGET = 77, 4, 1.05, 0.7
HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = [sys.executable, f"{HERE}/networks_torch.py"]
WAYS = {"rondo": "Rondo", "eager": "PyTorch, eager", "compile": "PyTorch, compiled", "graph": "PyTorch, CUDA graph"}


def make_runner(way, network, threads, arguments):
    common = ["--network", network, "--weights", weights_of(network, arguments), "--losses", str(LOSSES),
              "--device", arguments.device]
    command = ([arguments.program, "networks", *common, "--turns", "--json"] if way == "rondo"
               else [*TORCH, *common, "--way", way, "--threads", str(threads)])
    return Runner(way, command, first_processors(threads if arguments.device == "cpu" else None),
                  f"{arguments.weights}/errors-{way}.txt",
                  {"TORCHINDUCTOR_CACHE_DIR": f"{os.path.abspath(arguments.weights)}/compiled"})


def weights_of(network, arguments):
    return os.path.join(arguments.weights, f"{network}.safetensors")


def make_weights(network, arguments):
    path = weights_of(network, arguments)
    if not os.path.exists(path):
        subprocess.run([*TORCH, "--network", network, "--weights", path, "--write"], check=True)


def start(network, threads, arguments, part):
    """The runners that are ready; None if Rondo's is not. What else fails is omitted."""
    runners = []
    for way in ("rondo", *arguments.ways.split(",")):  # one at a time, so that all take their first steps with the machine to themselves
        runner = make_runner(way, network, threads, arguments)
        if runner.is_ready():
            runners.append(runner)
        elif way == "rondo":
            sys.exit(f"networks_vs_torch: rondo_bench networks --network {network}: {runner.failure()}")
        else:
            part.miss(f"{network}, {way}: {runner.failure()}")
    return runners


def losses_differ(network, results):
    limit = 2e-2 if network.endswith("bf16") else 1e-4
    expected = next(result for way, result in results.items() if way != "rondo")["losses"]
    return [way for way, result in results.items()
            if any(abs(a - b) > limit * abs(b) for a, b in zip(result["losses"], expected))]


def measure(network, threads, arguments, part):
    make_weights(network, arguments)
    runners = start(network, threads, arguments, part)
    steps = measure_in_turns(runners, arguments.rounds, arguments.seconds)
    results = {runner.way: runner.end() for runner in runners}
    if arguments.device != "cpu":
        memory = results["rondo"]["memory"]
        results["rondo"]["peak_bytes"] = memory["planned"] + memory["states"]
    wrong = losses_differ(network, results)
    if "rondo" in wrong:
        sys.exit(f"networks_vs_torch: {network}: the losses differ: {({way: results[way]['losses'] for way in results})}")
    for way in wrong:
        part.miss(f"{network}, {way}: its losses {results.pop(way)['losses']} are not those of the others")
    runners = [runner for runner in runners if runner.way in results]
    return summarize(network, threads, steps, runners, results)


def summarize(network, threads, steps, runners, results):
    by_way = {runner.way: runner for runner in runners}
    own, others = by_way["rondo"], [runner for runner in runners if runner.way != "rondo"]
    best = min(others, key=lambda runner: statistics.median(runner.turns))
    ratio = statistics.median(a / b for a, b in zip(own.turns, best.turns))
    memory = {way: result["peak_bytes"] for way, result in results.items()}
    least = min(bytes for way, bytes in memory.items() if way != "rondo")
    return {"network": network, "threads": threads, "steps": steps, "better": best.way, "ratio": ratio,
            "ratio_of_minima": min(own.steps) / min(min(runner.steps) for runner in others),
            "memory_ratio": memory["rondo"] / least, "peak_bytes": memory,
            "step_us": {way: {"median": statistics.median(runner.turns), "min": min(runner.steps),
                              "max": max(runner.steps)} for way, runner in by_way.items()},
            "losses": {way: result["losses"] for way, result in results.items()}}


def sorted_rows(rows, names):
    order = list(names)
    return [rows[key] for key in sorted(rows, key=lambda key: (order.index(key[0]), key[1]))]


def add_tables(part, rows, device):
    """One table of times for each number of threads, and one of memory."""
    part.tables, part.details = [], rows
    counts = sorted({row["threads"] for row in rows})
    ways = [way for way in WAYS if any(way in row["step_us"] for row in rows)]
    columns = [WAYS[way] for way in ways]
    for threads in counts:
        measured = [row for row in rows if row["threads"] == threads]
        lines = [[row["network"], *(row["step_us"].get(way, {}).get("median", 0) / 1e3 or None for way in ways)]
                 for row in measured]
        where = f"{threads} thread{'s' if threads > 1 else ''}" if device == "cpu" else "on a GPU"
        part.add(f"Steps of networks, {where}",
                 "Until a step is done: training with its update, or inference. The last column is of turns one after "
                 "the other, not of the medians.", "ms", columns, lines, [1 / row["ratio"] for row in measured])
    what = ("Peak of the process beyond what it has when its libraries are loaded, with one thread." if device == "cpu"
            else "Peak of what PyTorch allocates on the GPU; Rondo's arena and states.")
    part.add("Memory of networks", what, "MB", columns,
             [[row["network"], *(row["peak_bytes"].get(way, 0) / 1e6 or None for way in ways)]
              for row in rows if row["threads"] == counts[0]])


def show(row):
    times = "  ".join(f"{way} {row['step_us'][way]['median'] / 1e3:8.2f} ms" for way in row["step_us"])
    print(f"{row['network']:17} {row['threads']} threads  {times}  ratio {row['ratio']:.2f} of {row['better']} "
          f"({'met' if row['ratio'] <= TIME_TARGET else 'missed'}; minima {row['ratio_of_minima']:.2f})  "
          f"memory {row['memory_ratio']:.2f} ({'met' if row['memory_ratio'] <= MEMORY_TARGET else 'missed'})", flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--networks", help="names, separated by commas (default: all)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas (default 1,2)")
    parser.add_argument("--ways", default="eager,compile", help="PyTorch's ways (default eager,compile)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N (default cpu)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn (default 0.5)")
    parser.add_argument("--weights", default="build/networks", help="folder for weights and torch.compile's results")
    parser.add_argument("--out", help="file for all figures")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    try:
        import torch
        import safetensors
        from networks_torch import NETWORKS
    except Exception as error:  # an installed PyTorch may fail to load
        print(f"skipped: no PyTorch: {error}", file=sys.stderr)
        return SKIPPED
    counts = [int(count) for count in arguments.threads.split(",")] if arguments.device == "cpu" else [1]
    os.makedirs(arguments.weights, exist_ok=True)
    is_cpu = arguments.device == "cpu"
    part, rows = Part("networks" if is_cpu else "gpu networks", arguments.out), read_rows(arguments.out, ("network", "threads"))
    part.hardware = processor() if is_cpu else torch.cuda.get_device_name(arguments.device)
    part.versions = {"PyTorch": torch.__version__, "safetensors": safetensors.__version__}
    part.commands = ["bench/networks_vs_torch.py --program build/release/bench/rondo_bench --out FILE" +
                     ("" if is_cpu else f" --device {arguments.device} --ways {arguments.ways}")]
    for network in arguments.networks.split(",") if arguments.networks else NETWORKS:
        for threads in counts:
            row = measure(network, threads, arguments, part)
            rows[network, threads] = row
            show(row)
            add_tables(part, sorted_rows(rows, NETWORKS), arguments.device)
    part.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
