#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures a layer of nn.LSTM, nn.GRU or nn.RNN on a CPU, in PyTorch and as a Rondo recording.

  bench/recurrent_vs_torch.py --program BUILD/bench/rondo_bench [--threads 1,2] [--rounds 5] [--seconds 1]
                              [--cells lstm,gru] [--json]

Each row is evaluation without gradients, or a training step without an optimizer: the result, and the gradients of the
input, of both matrices and of both biases. PyTorch and Rondo run in turn for `--rounds` rounds, each of `--seconds`
seconds for each of them, with the same number of threads. Printed are medians of all of a row's runs in milliseconds,
minima in brackets, and the ratio of Rondo's time to PyTorch's: of the medians, of the minima, and of the median
processor times. Target: at most 1.05. It does not affect the exit status: 0 measured, 1 failed, 77 skipped, because
PyTorch is missing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SKIPPED, WARM_UPS = 77, 3
SIZES = ((64, 32, 256), (64, 32, 512), (64, 1, 256), (64, 1, 512))  # steps, batch, features and states


def load_torch():
    try:
        import torch
    except Exception as error:  # an installed PyTorch may fail to load
        print(f"skipped: no PyTorch: {error}", file=sys.stderr)
        sys.exit(SKIPPED)
    return torch


def make_torch(torch, cell, size, training):
    torch.manual_seed(1)
    steps, batch, width = size
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[cell](width, width)
    x = torch.randn(steps, batch, width, requires_grad=training)
    of = [x, *layer.parameters()]

    def train():
        torch.autograd.grad(layer(x)[0].sum(), of)

    def evaluate():
        with torch.inference_mode():
            layer(x)

    return train if training else evaluate


def measure_torch(run, seconds):
    times = []
    for _ in range(WARM_UPS):
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start, processor = time.perf_counter(), time.process_time()
        run()
        times.append(((time.perf_counter() - start) * 1e3, (time.process_time() - processor) * 1e3))
    return [(statistics.median(part), min(part)) for part in zip(*times)]


def measure_rondo(program, cell, size, training, threads, seconds):
    steps, batch, width = map(str, size)
    command = [program, "recurrent", "--json", "--cell", cell, "--steps", steps, "--batch", batch, "--features", width,
               "--hidden", width, "--seconds", str(seconds)] + ["--training"] * training
    environment = {**os.environ, "RONDO_CPU_WORKERS": str(threads)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    return [(result[name] / 1e3, result[name + "_min"] / 1e3) for name in ("total_us", "processor_us")]


def measure(torch, arguments, cell, size, training, threads):
    torch.set_num_threads(threads)
    run, rounds = make_torch(torch, cell, size, training), []
    for _ in range(arguments.rounds):
        rounds.append((measure_torch(run, arguments.seconds),
                       measure_rondo(arguments.program, cell, size, training, threads, arguments.seconds)))
    row = {"cell": cell, "steps": size[0], "batch": size[1], "hidden": size[2], "training": training,
           "threads": threads}
    for who, name in enumerate(("torch", "rondo")):
        row[name] = {"ms": statistics.median(r[who][0][0] for r in rounds), "min": min(r[who][0][1] for r in rounds),
                     "processor": statistics.median(r[who][1][0] for r in rounds)}
    row["ratio"] = {key: row["rondo"][key] / row["torch"][key] for key in row["torch"]}
    return row


def show(row):
    ratio = row["ratio"]
    print(f"{row['cell']:4} {row['batch']:2} x {row['steps']} x {row['hidden']} "
          f"{'training' if row['training'] else 'evaluation':10} {row['threads']} threads: "
          f"PyTorch {row['torch']['ms']:8.2f} [{row['torch']['min']:.2f}], "
          f"Rondo {row['rondo']['ms']:8.2f} [{row['rondo']['min']:.2f}]; "
          f"ratio {ratio['ms']:.2f}, of minima {ratio['min']:.2f}, of processor times {ratio['processor']:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default 1,2)")
    parser.add_argument("--cells", default="lstm,gru", help="lstm, gru, rnn (default lstm,gru)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--seconds", type=float, default=1, help="time of each in a round (default 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch, rows = load_torch(), []
    for cell in arguments.cells.split(","):
        for size in SIZES:
            for training in (False, True):
                for threads in map(int, arguments.threads.split(",")):
                    rows.append(measure(torch, arguments, cell, size, training, threads))
                    if not arguments.json:
                        show(rows[-1])
    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
