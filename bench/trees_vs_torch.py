#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures calls of a multi-layer perceptron in half precision, in PyTorch's CUDAGraph Trees and a Rondo tree.

  bench/trees_vs_torch.py --program BUILD/bench/rondo_bench [--device cuda:0] [--calls 300] [--json]

Rondo is measured before and after PyTorch, on the same GPU in the same run; Rondo's figure is the mean of the two
medians. A call is all that a program does for a step: it marks the step, calls the model with an input, and returns the
output. Times are host microseconds, medians: of the call, and until its work is complete. For reference, the table also
shows PyTorch's own replay of one recorded graph, which takes no inputs.

Targets: at least 25 times less host time than CUDAGraph Trees, and at most their total time. They are printed and do
not affect the exit status: 0 measured, 1 failed, 77 skipped, because PyTorch, a GPU that it can use, a compiler for its
models, or cuBLAS is missing.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import time

SHAPES = ((4, 256, 8), (32, 256, 8), (32, 1024, 64))  # layers, width, batch
SKIPPED = 77
WARM_UPS = 30
HOST_BAR = 25


class Skip(Exception):
    """The reason why nothing can be measured."""


def load_torch(device):
    try:
        import torch
    except Exception as error:  # an installed PyTorch may fail to load
        raise Skip(f"no PyTorch: {error}") from error
    if not torch.cuda.is_available():
        raise Skip("PyTorch finds no GPU that it can use")
    torch.cuda.set_device(int(device.rpartition(":")[2] or 0))
    torch.set_grad_enabled(False)
    return torch


def measure(torch, call, calls):
    """Medians in microseconds: of the call, and until its work is complete."""
    for _ in range(WARM_UPS):
        call()
    host, total = [], []
    for _ in range(calls):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        queued = time.perf_counter()
        torch.cuda.synchronize()
        host.append((queued - begin) * 1e6)
        total.append((time.perf_counter() - begin) * 1e6)
    return {"host_us": statistics.median(host), "total_us": statistics.median(total)}


def make_model(torch, layers, width):
    modules = []
    for _ in range(layers):
        modules += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*modules).cuda().half().eval()


def measure_replay(torch, model, x, calls):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    return measure(torch, graph.replay, calls)


def measure_trees(torch, model, inputs, calls):
    """Alternates two inputs, as the Rondo side does."""
    compiled = torch.compile(model, mode="reduce-overhead")
    state = {"next": 0}

    def call():
        torch.compiler.cudagraph_mark_step_begin()
        state["next"] ^= 1
        compiled(inputs[state["next"]])

    try:
        call()
    except Exception as error:
        raise Skip(f"PyTorch cannot compile a model here: {error}") from error
    return measure(torch, call, calls)


def measure_torch(torch, shape, calls):
    layers, width, batch = shape
    model = make_model(torch, layers, width)
    inputs = [torch.randn(batch, width, device="cuda", dtype=torch.half) for _ in range(2)]
    trees = measure_trees(torch, model, inputs, calls)
    replay = measure_replay(torch, model, inputs[0], calls)
    torch._dynamo.reset()
    return trees, replay


def environment_with(torch):
    """Adds PyTorch's cuBLAS to the library path, for machines without one."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    folders = sorted(glob.glob(os.path.join(packages, "nvidia", "*", "lib")))
    paths = [path for path in (os.environ.get("LD_LIBRARY_PATH"), *folders) if path]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(paths)} if paths else dict(os.environ)


def measure_rondo(torch, arguments, shape):
    command = [arguments.program, "mlp", "--device", arguments.device, "--json"]
    for name, number in zip(("layers", "width", "batch", "calls"), (*shape, arguments.calls)):
        command += [f"--{name}", str(number)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env=environment_with(torch))
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if result["products"] != "cuBLAS":
        raise Skip("no cuBLAS for Rondo, so the work would differ")
    return result


def measure_shape(torch, arguments, shape):
    before = measure_rondo(torch, arguments, shape)
    trees, replay = measure_torch(torch, shape, arguments.calls)
    after = measure_rondo(torch, arguments, shape)
    rondo = {name: (before[name] + after[name]) / 2 for name in ("host_us", "total_us")}
    return {
        "layers": shape[0], "width": shape[1], "batch": shape[2],
        "torch_trees": trees, "torch_replay": replay, "rondo": rondo, "rondo_runs": [before, after],
        "host_ratio": trees["host_us"] / rondo["host_us"], "total_ratio": trees["total_us"] / rondo["total_us"],
    }


def meets_bars(row):
    return row["host_ratio"] >= HOST_BAR and row["total_ratio"] >= 1


def show(result):
    print(f"PyTorch {result['torch']} on {result['gpu']}; microseconds, medians of host / until done")
    print(f"{'perceptron':26} {'CUDAGraph Trees':>18} {'its graph alone':>18} {'Rondo':>18} {'host':>7} {'total':>7}")
    for row in result["rows"]:
        name = f"{row['layers']} x {row['width']}, batch {row['batch']}"
        cells = (f"{row[side]['host_us']:8.2f} /{row[side]['total_us']:8.2f}"
                 for side in ("torch_trees", "torch_replay", "rondo"))
        print(f"{name:26} {' '.join(cells)} {row['host_ratio']:7.1f} {row['total_ratio']:7.2f}"
              f"  {'met' if meets_bars(row) else 'missed'}")
    print(f"targets: at least {HOST_BAR} times less host time, and at most the same total time")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--device", default="cuda:0", help="Rondo's name of the GPU (default cuda:0)")
    parser.add_argument("--calls", type=int, default=300, help="number of measured calls (default 300)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    try:
        torch = load_torch(arguments.device)
        rows = [measure_shape(torch, arguments, shape) for shape in SHAPES]
    except Skip as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED
    result = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "host_bar": HOST_BAR,
              "bars_are_met": all(meets_bars(row) for row in rows), "rows": rows}
    if arguments.json:
        print(json.dumps(result))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
