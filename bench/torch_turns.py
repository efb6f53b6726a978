#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a network of tests/models/exported_networks.py with PyTorch, in turns (turns.py).

  bench/torch_turns.py --network NAME --models FOLDER --write
  bench/torch_turns.py --network NAME --models FOLDER --batch N --way graph|eager [--device cuda:0]

The folder of a network is FOLDER/SIZE/NAME.TYPE. With --write, it gets model.onnx and, for each batch, the inputs in
batch_N/NAME.npy. Otherwise the network runs in eval and inference mode: `graph` is a torch.cuda.CUDAGraph of it. The
outputs of the first run are written to batch_N/torch/NAME.npy. At the end it prints a JSON object with the bytes of the
weights and the peak of memory: on a GPU, of what PyTorch allocates there from the capture on; on a CPU, of the process
beyond its imports.

--type is f32 (factors are exact), tf32 (they may be rounded to TF32) or f16 (all weights, inputs and outputs).
"""
import argparse
import contextlib
import json
import os
import sys

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
os.environ["HF_HUB_OFFLINE"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(f"{HERE}/../tests/models")

import numpy
import torch
from exported_networks import NETWORKS
from networks_torch import WARM_UPS, capture, peak_bytes, status_bytes, time_step
from torch_export import export, flat

BATCHES = (1, 8)


def folder_of(arguments):
    return f"{arguments.models}/{arguments.size}/{arguments.network}.{'f16' if arguments.type == 'f16' else 'f32'}"


def make_network(arguments):
    torch.manual_seed(1)
    network = NETWORKS[arguments.network](arguments.size)
    network.module.eval()
    return network


def make_inputs(network, batch, is_half):
    torch.manual_seed(batch)
    inputs = network.inputs(batch, 0)
    return {name: value.half() if is_half and value.is_floating_point() else value for name, value in inputs.items()}


def write_arrays(folder, arrays):
    os.makedirs(folder, exist_ok=True)
    for name, array in arrays.items():
        numpy.save(f"{folder}/{name}.npy", array.cpu().numpy())


def write(arguments):
    """Makes the folder of the network as a whole."""
    network, folder = make_network(arguments), folder_of(arguments)
    is_half = arguments.type == "f16"
    if is_half:
        network.module.half()
    partial = f"{folder}.partial"
    os.makedirs(partial, exist_ok=True)
    for batch in BATCHES:
        write_arrays(f"{partial}/batch_{batch}", flat(make_inputs(network, batch, is_half)))
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # exporters talk
        export(network, make_inputs(network, 2, is_half), f"{partial}/model.onnx", is_traced=False)
    os.rename(partial, folder)


def read_inputs(network, data, device):
    """Named as the parameters of the module are: none of these networks has lists of tensors."""
    names = flat(network.inputs(1, 0))
    return {name: torch.from_numpy(numpy.load(f"{data}/{name}.npy")).to(device) for name in names}


def make_step(module, inputs):
    def step():
        with torch.inference_mode():
            return module(**inputs)
    return step


def weight_bytes(module):
    return sum(value.nbytes for values in (module.parameters(), module.buffers()) for value in values)


def prepare(arguments):
    """The function that runs the network once, and the bytes of its weights."""
    network, data = make_network(arguments), f"{folder_of(arguments)}/batch_{arguments.batch}"
    module = network.module.to(arguments.device)
    if arguments.type == "f16":
        module.half()
    step = make_step(module, read_inputs(network, data, arguments.device))
    outputs = step()
    outputs = (outputs,) if torch.is_tensor(outputs) else outputs
    write_arrays(f"{data}/torch", dict(zip(network.outputs, outputs)))
    return step, weight_bytes(module)


def allow_tf32(is_allowed):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = is_allowed
    torch.backends.cudnn.benchmark = True  # shapes are fixed: PyTorch measures which convolution is fastest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", required=True, choices=NETWORKS)
    parser.add_argument("--models", required=True)
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--type", choices=("f32", "tf32", "f16"), default="f32")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--batch", type=int, choices=BATCHES, default=1)
    parser.add_argument("--way", choices=("graph", "eager"), default="graph")
    parser.add_argument("--device", default="cuda:0")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments)
        return 0
    start_bytes = status_bytes("VmRSS:")
    allow_tf32(arguments.type == "tf32")
    step, weights = prepare(arguments)
    for _ in range(WARM_UPS):
        step()
    if arguments.device != "cpu":  # the weights, inputs and what the graph takes: not what measuring convolutions took
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(arguments.device)
    if arguments.way == "graph":
        step = capture(step)
    print("ready", flush=True)
    for line in sys.stdin:
        print(*(f"{time_step(step, arguments.device):.3f}" for _ in range(int(line))), flush=True)
    print(json.dumps({"peak_bytes": peak_bytes(arguments.device, start_bytes), "weight_bytes": weights}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
