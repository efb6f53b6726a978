#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures whole models on a GPU, in turns: Rondo's recording of an ONNX file and PyTorch's CUDA graph of the module.

  bench/models_vs_torch.py --program BUILD/bench/rondo_bench [--device cuda:0] [--models build/gpu_models]
                           [--names gpt2,bert,resnet50] [--types f32,f16] [--batches 1,8] [--size full] [--way graph]
                           [--rounds 5] [--seconds 0.2] [--out FILE] [--json]

The models are networks of tests/models/exported_networks.py with random weights, which torch_turns.py exports once.
PyTorch runs the same modules in eval and inference mode, in a torch.cuda.CUDAGraph, or eagerly. Both have the same
inputs, whose values stay on the device. Types: f32 computes products exactly, tf32 lets both round their factors to
TF32, and f16 has weights, inputs and outputs of 16 bits. The outputs of both must agree: within 1e-3 of the largest
output, or 3e-2 in tf32 and f16.

Each runs in a process of its own. They take turns of as many runs as fit into --seconds, in an order that rotates. A
turn's time is the median of its runs, each until it is done; a ratio is the median over the rounds of Rondo's turn
divided by PyTorch's. Memory is, on a GPU, the peak of what PyTorch allocates there from the capture on, which has the
weights, and Rondo's arena and states; on a CPU it is the peak of the process beyond its imports. Memory beyond the
weights is less by the bytes of the module's parameters and buffers. The processes of a network for both batches start
together and wait for their turns: have enough memory for them, or give fewer --batches.

--out writes a part for bench/comparison.py page, after each network; what the file has of others stays. Targets: at
most 1.0 of PyTorch's time, and 0.7 of its memory. They are printed and do not affect the exit status: 0 measured, 1
failed, 77 skipped, because a package or the GPU is missing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
from comparison import Part, processor, read_rows
from turns import Runner, first_processors, measure_in_turns

SKIPPED, TIME_TARGET, MEMORY_TARGET = 77, 1.0, 0.7
HERE = os.path.dirname(os.path.abspath(__file__))
NEAR = {"f32": 1e-3, "tf32": 3e-2, "f16": 3e-2}
WAYS = {"graph": "PyTorch, CUDA graph", "eager": "PyTorch, eager"}


def fail(message):
    sys.exit(f"models_vs_torch: {message}")


def folder_of(name, kind, arguments):
    return f"{arguments.models}/{arguments.size}/{name}.{'f16' if kind == 'f16' else 'f32'}"


def torch_command(name, kind, arguments):
    return [sys.executable, f"{HERE}/torch_turns.py", "--network", name, "--models", arguments.models,
            "--size", arguments.size, "--type", kind]


def export_models(names, kinds, arguments):
    """All at once, because each takes most of a minute on one processor."""
    missing = {folder_of(name, kind, arguments): torch_command(name, kind, arguments)
               for name in names for kind in kinds if not os.path.exists(folder_of(name, kind, arguments))}
    started = {folder: subprocess.Popen([*command, "--write"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True) for folder, command in missing.items()}
    said = {folder: process.communicate()[1] for folder, process in started.items()}
    return {folder: (said[folder].strip().splitlines() or ["no message"])[-1]
            for folder, process in started.items() if process.returncode != 0}


# A network -----------------------------------------------------------------------------------------------------------


def make_pair(name, kind, batch, arguments):
    folder = folder_of(name, kind, arguments)
    data = f"{folder}/batch_{batch}"
    own = [arguments.program, "models", f"{folder}/model.onnx", "--data", data, "--output", f"{data}/rondo",
           "--device", arguments.device, "--turns", "--json", *(["--tf32"] if kind == "tf32" else [])]
    other = [*torch_command(name, kind, arguments), "--batch", str(batch), "--way", arguments.way,
             "--device", arguments.device]
    return [Runner(way, command, first_processors(None), f"{data}/errors-{way}-{kind}.txt")
            for way, command in (("rondo", own), ("torch", other))]


def start(name, kinds, batches, arguments, part):
    """The pairs whose two processes are ready, by type and batch."""
    pairs = {}
    for kind in kinds:  # f32 and tf32 write to the same folders: they start one after the other
        some = {(kind, batch): make_pair(name, kind, batch, arguments) for batch in batches}
        for key, pair in some.items():
            failures = [f"{runner.way}: {runner.failure()}" for runner in pair if not runner.is_ready()]
            distance = None if failures else compare_outputs(name, *key, arguments)
            if failures or distance > NEAR[kind]:
                reason = "; ".join(failures) or f"outputs differ by {distance:.2g} of the largest"
                part.miss(f"{name}, {kind}, batch of {key[1]}: {reason}")
                end_all(pair)
            else:
                pairs[key] = pair, distance
    return pairs


def end_all(pair):
    for runner in pair:
        runner.process.kill()
        runner.process.wait()


def compare_outputs(name, kind, batch, arguments):
    """The largest difference of an output's elements, divided by the largest element of PyTorch's output."""
    import numpy

    data, worst = f"{folder_of(name, kind, arguments)}/batch_{batch}", 0
    for file in os.listdir(f"{data}/torch"):
        own, other = (numpy.load(f"{data}/{way}/{file}").astype(numpy.float64) for way in ("rondo", "torch"))
        if own.shape != other.shape or not numpy.isfinite(own).all():
            return float("inf")
        worst = max(worst, float(abs(own - other).max() / abs(other).max()))
    return worst


def measure(pair, distance, arguments):
    own, other = pair
    runs = measure_in_turns(pair, arguments.rounds, arguments.seconds)
    results = {runner.way: runner.end() or fail(f"{runner.way}: {runner.failure()}") for runner in pair}
    weights = results["torch"]["weight_bytes"]
    peaks = {way: result["peak_bytes"] for way, result in results.items()}
    if arguments.device != "cpu":
        memory = results["rondo"]["memory"]
        peaks["rondo"] = memory["planned"] + memory["states"]
    return {"runs": runs * arguments.rounds, "difference": distance,
            "ratio": statistics.median(a / b for a, b in zip(own.turns, other.turns)),
            "ratio_of_minima": min(own.steps) / min(other.steps),
            "run_us": {runner.way: {"median": statistics.median(runner.turns), "min": min(runner.steps),
                                    "max": max(runner.steps)} for runner in pair},
            "peak_bytes": peaks, "memory_ratio": peaks["rondo"] / peaks["torch"], "weight_bytes": weights,
            "activation_ratio": (peaks["rondo"] - weights) / (peaks["torch"] - weights)}


# Results -------------------------------------------------------------------------------------------------------------


def label(row):
    return f"{row['model']}, {row['type']}, batch of {row['batch']}"


def memory_line(row, less):
    return [label(row), *(max(row["peak_bytes"][way] - less, 0) / 1e6 or None for way in ("rondo", "torch"))]


def add_tables(part, rows, arguments):
    part.tables, part.details = [], rows
    columns, where = ["Rondo", WAYS[arguments.way]], "on a CPU" if arguments.device == "cpu" else "on a GPU"
    part.add(f"Runs of models, {where}",
             "Until a run is done. The last column is of turns one after the other, not of the medians.", "ms", columns,
             [[label(row), *(row["run_us"][way]["median"] / 1e3 for way in ("rondo", "torch"))] for row in rows],
             [1 / row["ratio"] for row in rows])
    what = ("Peak of the process beyond its imports." if arguments.device == "cpu" else
            "Peak of what PyTorch allocates on the GPU from the capture on; Rondo's arena and states. With weights.")
    part.add(f"Memory of models, {where}", what, "MB", columns, [memory_line(row, 0) for row in rows])
    if arguments.device != "cpu":
        part.add("Memory of models on a GPU, beyond the weights", "The same, less the bytes of the module's weights.",
                 "MB", columns, [memory_line(row, row["weight_bytes"]) for row in rows])


def word(is_met):
    return "met" if is_met else "missed"


def show(row, file):
    times = "  ".join(f"{way} {row['run_us'][way]['median'] / 1e3:8.3f} ms" for way in row["run_us"])
    print(f"{label(row):28}  {times}  ratio {row['ratio']:.2f} ({word(row['ratio'] <= TIME_TARGET)}; minima "
          f"{row['ratio_of_minima']:.2f})  memory {row['peak_bytes']['rondo'] / 1e6:.1f} of "
          f"{row['peak_bytes']['torch'] / 1e6:.1f} MB, {row['memory_ratio']:.2f} "
          f"({word(row['memory_ratio'] <= MEMORY_TARGET)}), beyond the weights {row['activation_ratio']:.2f} "
          f"({word(row['activation_ratio'] <= MEMORY_TARGET)})  outputs differ by {row['difference']:.1e}",
          file=file, flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="rondo_bench of a build")
    parser.add_argument("--device", default="cuda:0", help="cpu or cuda:N (default cuda:0)")
    parser.add_argument("--models", default="build/gpu_models", help="folder for exported models and outputs")
    parser.add_argument("--names", default="gpt2,bert,resnet50", help="names, separated by commas")
    parser.add_argument("--types", default="f32,f16", help="f32, tf32 and f16, separated by commas (default f32,f16)")
    parser.add_argument("--batches", default="1,8", help="1 and 8, separated by commas (default 1,8)")
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--way", choices=WAYS, default="graph", help="how PyTorch runs (default graph)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn (default 0.2)")
    parser.add_argument("--out", help="file for all figures")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON to standard output")
    return parser.parse_args()


def why_skipped(arguments):
    try:
        import torch
    except Exception as error:  # an installed PyTorch may fail to load
        return f"no PyTorch: {error}"
    try:
        import numpy, onnx, onnxscript, torchvision, transformers
    except Exception as error:
        return str(error)
    return None if arguments.device == "cpu" or torch.cuda.is_available() else "PyTorch finds no GPU"


def make_part(arguments):
    import torch
    import transformers

    is_cpu = arguments.device == "cpu"
    part = Part("cpu torch models" if is_cpu else "gpu models", arguments.out)
    part.hardware = processor() if is_cpu else torch.cuda.get_device_name(arguments.device)
    part.versions = {"PyTorch": torch.__version__, "transformers": transformers.__version__}
    part.commands = ["bench/models_vs_torch.py --program build/gpu/bench/rondo_bench --out FILE" +
                     (f" --device cpu --way {arguments.way}" if is_cpu else "")]
    return part


def main():
    arguments = read_arguments()
    reason = why_skipped(arguments)
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED
    names, kinds = arguments.names.split(","), arguments.types.split(",")
    batches, said = [int(batch) for batch in arguments.batches.split(",")], sys.stderr if arguments.json else sys.stdout
    part, rows = make_part(arguments), read_rows(arguments.out, ("model", "type", "batch"))
    failures = export_models(names, kinds, arguments)
    for name in names:
        exported = [kind for kind in kinds if folder_of(name, kind, arguments) not in failures]
        for kind in set(kinds) - set(exported):
            part.miss(f"{name}, {kind}: {failures[folder_of(name, kind, arguments)]}")
        for (kind, batch), (pair, distance) in start(name, exported, batches, arguments, part).items():
            row = {"model": name, "type": kind, "batch": batch, **measure(pair, distance, arguments)}
            rows[name, kind, batch] = row
            show(row, said)
        add_tables(part, [rows[key] for key in sorted(rows)], arguments)
    part.end()
    if arguments.json:
        print(json.dumps(part.as_object()))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
