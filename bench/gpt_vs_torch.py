#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures training steps of a small GPT in PyTorch and as a Rondo recording.

  bench/gpt_vs_torch.py --program BUILD/bench/rondo_bench [--device cuda:0] [--types f32,bf16] [--seconds 3] [--json]

Both make the same step: 4 layers of width 128 with 4 heads, 128 tokens, a context of 64, a batch of 8, cross entropy,
AdamW. On a GPU, PyTorch runs it eagerly, and as one CUDAGraph of the whole step (fused, capturable AdamW). Both may use
TF32 in products of f32. In bf16, PyTorch's parameters are in bf16, too; Rondo's, and their moments, are in f32. On a
CPU, PyTorch runs it eagerly, with as many threads as there are processors. Rondo is measured before and after PyTorch,
on the same device in the same run; Rondo's figure is the mean of the two medians. Each type runs in a new process:
PyTorch's libraries allocate stream memory only once per process, which would distort later types. Times are host
microseconds, medians: of the calls of a step, and until the step is complete.

Targets on a GPU for the recorded step: at least 4 times faster than PyTorch's eager step, with at least 50 times less
host time; at most the time of Rondo's own eager step; at most the CUDAGraph's time (goal: 0.85 of it); at most half the
memory of the CUDAGraph's private pool. On a CPU: at most the time of PyTorch's eager step and of Rondo's. They are
printed and do not affect the exit status: 0 measured, 1 failed, 77 skipped, because PyTorch or a GPU that it can use is
missing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from trees_vs_torch import SKIPPED, Skip, environment_with

LAYERS, WIDTH, HEADS, VOCABULARY, CONTEXT, BATCH = 4, 128, 4, 128, 64, 8
WARM_UPS = 20
BARS = {"cuda": {"eager_total": 4, "eager_host": 50, "graph_total": 1, "rondo_eager_total": 1, "pool": 2},
        "cpu": {"eager_total": 1, "rondo_eager_total": 1}}


def kind_of(device):
    return "cpu" if device.startswith("cpu") else "cuda"


def load_torch(device):
    try:
        import torch
    except Exception as error:  # an installed PyTorch may fail to load
        raise Skip(f"no PyTorch: {error}") from error
    if kind_of(device) == "cpu":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        return torch
    if not torch.cuda.is_available():
        raise Skip("PyTorch finds no GPU that it can use")
    torch.cuda.set_device(int(device.rpartition(":")[2] or 0))
    torch.backends.cuda.matmul.allow_tf32 = True
    return torch


def attend(torch, q, k, v):
    """Uses PyTorch's own attention if it has one (2.0 and later)."""
    functional = torch.nn.functional
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    context = q.shape[-2]
    later = torch.ones(context, context, dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).masked_fill(later, float("-inf"))
    return scores.softmax(-1) @ v


def make_model(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
            self.qkv, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.hidden, self.output = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            batch, context, _ = x.shape
            heads = self.qkv(self.norms[0](x)).view(batch, context, 3, HEADS, WIDTH // HEADS)
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            seen = attend(torch, q, k, v)
            x = x + self.join(seen.transpose(1, 2).reshape(batch, context, WIDTH))
            return x + self.output(functional.gelu(self.hidden(self.norms[1](x))))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.register_buffer("at", torch.arange(CONTEXT))

        def forward(self, tokens, labels):
            scores = self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(self.at))))
            return functional.cross_entropy(scores.view(-1, VOCABULARY).float(), labels.view(-1))

    return Network()


def make_step(torch, kind, where):
    torch.manual_seed(0)
    model = make_model(torch).to(where).to(getattr(torch, {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}[kind]))
    fastest = {"fused": True, "capturable": True} if where == "cuda" else {"foreach": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **fastest)
    tokens, labels = (torch.randint(0, VOCABULARY, (BATCH, CONTEXT), device=where) for _ in range(2))

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(tokens, labels).backward()
        optimizer.step()

    return step


def measure(step, wait, seconds):
    """Medians in microseconds: of the calls, and until the step is complete."""
    for _ in range(WARM_UPS):
        step()
    host, total = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        wait()
        begin = time.perf_counter()
        step()
        queued = time.perf_counter()
        wait()
        host.append((queued - begin) * 1e6)
        total.append((time.perf_counter() - begin) * 1e6)
    return {"host_us": statistics.median(host), "total_us": statistics.median(total), "least_us": min(total),
            "most_us": max(total)}


def record(torch, step):
    """Captures the whole step. Returns the graph, and the bytes of its private pool."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph, torch.cuda.memory_reserved() - before


def measure_torch(torch, kind, where, seconds):
    """Measures the eager step and, on a GPU, the step as one graph."""
    step = make_step(torch, kind, where)
    if where == "cpu":
        return measure(step, lambda: None, seconds), None
    wait = torch.cuda.synchronize
    eager = measure(step, wait, seconds)
    graph, pool = record(torch, step)
    return eager, {**measure(graph.replay, wait, seconds), "pool_bytes": pool}


def measure_rondo(torch, arguments, kind):
    command = [arguments.program, "training", "--device", arguments.device, "--type", kind,
               "--seconds", str(arguments.seconds), "--tf32", "--json"]
    for name, value in (("layers", LAYERS), ("width", WIDTH), ("heads", HEADS), ("vocabulary", VOCABULARY),
                        ("context", CONTEXT), ("batch", BATCH)):
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env=environment_with(torch))
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def mean_of(runs, way):
    mean = {name: sum(run[way][name] for run in runs) / len(runs) for name in ("host_us", "step_us")}
    return {**mean, "least_us": min(run[way]["step_us_min"] for run in runs),
            "most_us": max(run[way]["step_us_max"] for run in runs)}


def measure_type(torch, arguments, kind):
    where = kind_of(arguments.device)
    before = measure_rondo(torch, arguments, kind)
    eager, graph = measure_torch(torch, kind, where, arguments.seconds)
    runs = [before, measure_rondo(torch, arguments, kind)]
    recorded, rondo_eager = mean_of(runs, "recorded"), mean_of(runs, "eager")
    ratios = {
        "eager_total": eager["total_us"] / recorded["step_us"],
        "eager_host": eager["host_us"] / recorded["host_us"],
        "rondo_eager_total": rondo_eager["step_us"] / recorded["step_us"],
    }
    if graph:
        ratios["graph_total"] = graph["total_us"] / recorded["step_us"]
        ratios["pool"] = graph["pool_bytes"] / before["memory"]["planned"]
    return {"type": kind, "kernels": before["kernels"], "torch_eager": eager, "torch_graph": graph,
            "recorded": recorded, "rondo_eager": rondo_eager, "memory": before["memory"], "ratios": ratios,
            "met": {name: ratios[name] >= bar for name, bar in BARS[where].items()}, "rondo_runs": runs}


def measure_apart(arguments, kind):
    """Measures one type in a new process."""
    command = [sys.executable, os.path.abspath(__file__), "--program", arguments.program, "--device", arguments.device,
               "--types", kind, "--seconds", str(arguments.seconds), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["rows"][0]


def show(result):
    print(f"PyTorch {result['torch']} on {result['device']}; microseconds, medians of host / until done")
    print(f"{'':6} {'eager':>20} {'CUDAGraph':>20} {'Rondo, eager':>20} {'Rondo recorded':>20}")
    for row in result["rows"]:
        sides = ((row["torch_eager"], "total_us"), (row["torch_graph"], "total_us"), (row["rondo_eager"], "step_us"),
                 (row["recorded"], "step_us"))
        print(f"{row['type']:6} " + " ".join(f"{side['host_us']:9.2f} /{side[total]:9.2f}" if side else f"{'-':>20}"
                                             for side, total in sides))
    for row in result["rows"]:
        for name, side in (("eager", row["torch_eager"]), ("CUDAGraph", row["torch_graph"]),
                           ("Rondo, eager", row["rondo_eager"]), ("recorded", row["recorded"])):
            if side:
                print(f"{row['type']:6} {name} until done: {side['least_us']:.2f} to {side['most_us']:.2f}")
    names = {"eager_total": "times faster than eager", "eager_host": "times less host time than eager",
             "graph_total": "times faster than the CUDAGraph", "rondo_eager_total": "times faster than Rondo's eager step",
             "pool": "times less memory than the CUDAGraph's pool"}
    for row in result["rows"]:
        for name, bar in result["bars"].items():
            verdict = "met" if row["met"][name] else "missed"
            print(f"{row['type']:6} {row['ratios'][name]:9.2f} {names[name]}; the target is {bar}: {verdict}")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--device", default="cuda:0", help="Rondo's name of the GPU or CPU (default cuda:0)")
    parser.add_argument("--types", default="f32,bf16", help="types to compute in (default f32,bf16)")
    parser.add_argument("--seconds", type=float, default=3, help="time to measure each variant (default 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    try:
        torch = load_torch(arguments.device)
    except Skip as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED
    kinds = arguments.types.split(",")
    rows = [measure_type(torch, arguments, kinds[0])] if len(kinds) == 1 else [measure_apart(arguments, k) for k in kinds]
    where = kind_of(arguments.device)
    name = torch.cuda.get_device_name() if where == "cuda" else f"{torch.get_num_threads()} processors"
    result = {"torch": torch.__version__, "device": name, "bars": BARS[where], "rows": rows}
    if arguments.json:
        print(json.dumps(result))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
