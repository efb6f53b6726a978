#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures training steps of a small character model on a CPU, eagerly in PyTorch and as a Rondo recording.

  bench/training_vs_torch.py --program BUILD/bench/rondo_bench [--seconds 2] [--json]

The step is that of `rondo_bench training --model character`: an embedding of 64 symbols, 8 characters of context, a
batch of 32, two matrix products with tanh between, cross entropy, Adam; at several widths. PyTorch has as many threads
as it may use processors. Rondo is measured before and after PyTorch; Rondo's figure is the mean of the two medians.
Times are host microseconds until the step is complete, medians. Target: recorded at least as fast as PyTorch's eager
step. It is printed and does not affect the exit status: 0 measured, 1 failed, 77 skipped, because PyTorch is missing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BATCH, CONTEXT, SYMBOLS, WIDTH, HIDDEN = 32, 8, 64, 16, (32, 128, 512)
SKIPPED, WARM_UPS = 77, 30


def load_torch():
    try:
        import torch
    except Exception as error:  # an installed PyTorch may fail to load
        print(f"skipped: no PyTorch: {error}", file=sys.stderr)
        sys.exit(SKIPPED)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    return torch


def make_step(torch, hidden):
    torch.manual_seed(1)
    layers = [torch.nn.Embedding(SYMBOLS, WIDTH), torch.nn.Flatten(), torch.nn.Linear(CONTEXT * WIDTH, hidden),
              torch.nn.Tanh(), torch.nn.Linear(hidden, SYMBOLS)]
    model, loss_of = torch.nn.Sequential(*layers), torch.nn.CrossEntropyLoss()
    adam = torch.optim.Adam(model.parameters(), lr=0.001, foreach=True)
    tokens = torch.randint(SYMBOLS, (BATCH, CONTEXT))

    def step():
        adam.zero_grad(set_to_none=True)
        loss_of(model(tokens), tokens[:, 0]).backward()
        adam.step()

    return step


def measure_torch(torch, hidden, seconds):
    step, times = make_step(torch, hidden), []
    for _ in range(WARM_UPS):
        step()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e6)
    return [statistics.median(times), min(times), max(times)]


def measure_rondo(arguments):
    times = {}
    for hidden in HIDDEN:
        sizes = ("--hidden", hidden, "--context", CONTEXT, "--embedding", WIDTH, "--vocabulary", SYMBOLS, "--batch", BATCH)
        done = subprocess.run([arguments.program, "training", "--model", "character", "--json", "--seconds",
                               str(2 * arguments.seconds), *map(str, sizes)], stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(done.stdout)
        for way in ("recorded", "eager"):
            times[hidden, way] = [result[way][name] for name in ("step_us", "step_us_min", "step_us_max")]
    return times


def both(before, after):
    return [statistics.mean((before[0], after[0])), min(before[1], after[1]), max(before[2], after[2])]


def shown(times):
    return f"{times[0]:9.1f} [{times[1]:.1f} - {times[2]:.1f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--seconds", type=float, default=2, help="time to measure each row (default 2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch = load_torch()
    before = measure_rondo(arguments)
    eager = {hidden: measure_torch(torch, hidden, arguments.seconds) for hidden in HIDDEN}
    after = measure_rondo(arguments)
    rows = []
    for hidden in HIDDEN:
        recorded, rondo_eager = (both(before[name], after[name]) for name in
                                ((hidden, "recorded"), (hidden, "eager")))
        rows.append({"hidden": hidden, "eager": eager[hidden], "rondo_eager": rondo_eager, "recorded": recorded,
                     "times_faster": eager[hidden][0] / recorded[0]})
    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "rows": rows}))
        return 0
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads; microseconds until a step is done")
    for row in rows:
        print(f"{row['hidden']:4} units: eager {shown(row['eager'])}, Rondo eager {shown(row['rondo_eager'])}, recorded "
              f"{shown(row['recorded'])}: {row['times_faster']:.1f} times faster than eager "
              f"({'met' if row['times_faster'] >= 1 else 'not met'})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
