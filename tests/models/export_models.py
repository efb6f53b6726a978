#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports the networks of tests/models/exported_networks.py as ONNX files, with inputs and what onnxruntime computes from them.

  tests/models/export_models.py FOLDER [--sizes small,full] [--networks NAME,...] [--again]

FOLDER/SIZE/NAME gets model.onnx and, as ONNX's own tests have them, test_data_set_N/input_I.pb and output_I.pb: the
first set has a batch of one, the second has a larger one and, where they vary, other lengths. Small networks are
exported twice, by PyTorch's exporter (NAME) and by its older one, which traces (NAME.traced); full ones by the first.
FOLDER/light/NAME are the whole architectures that the package onnx has, with its expected outputs. FOLDER/SIZE also
gets networks that onnxruntime.quantization makes of others (NAME.int8). `tolerance` has how far outputs may be from the
expected ones: of their size, and in addition. FOLDER/detectors/NAME are models whose shapes depend on data. What is
there is not made again without --again.
"""
import argparse
import contextlib
import dataclasses
import functools
import glob
import os
import shutil
import sys
import warnings

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy
import onnx
import onnxruntime
import torch
from onnxruntime import quantization
from onnxruntime.quantization import shape_inference

from exported_networks import DETECTORS, NETWORKS
from torch_export import export, flat

BATCHES = {"small": (1, 3), "full": (1, 8)}
QUANTIZED = ("mlp", "resnet50")
NOT_TRACED = ("gpt2",)  # the older exporter has no aten::diff
FLOATS_NEAR = (1e-4, 1e-6)
FULL_NEAR = 1e-5  # in addition, of the largest output of a full network: its longer sums leave more of what cancels
DETECTORS_NEAR = (1e-4, 1e-3)  # exponentials of what random weights compute make boxes
INTEGERS_NEAR = 0.03  # of the largest output: some steps of eight bits, which the order of sums may turn round


# Inputs and outputs --------------------------------------------------------------------------------------------------


def write_tensor(path, name, array):
    with open(path, "wb") as file:
        file.write(onnx.numpy_helper.from_array(array, name).SerializeToString())


def run_model(path, inputs):
    """The names and values of inputs and outputs, in the order of the model.

    Without its optimizations, because with them, integers of eight bits are summed in sixteen where the processor has no
    better instruction, and saturate.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    outputs = session.run(None, {name: inputs[name] for name in names})
    return [(name, inputs[name]) for name in names], list(zip([out.name for out in session.get_outputs()], outputs))


def write_tolerance(folder, relative, absolute):
    with open(f"{folder}/tolerance", "w", encoding="utf-8") as file:
        file.write(f"{relative:g} {absolute:g}\n")


def write_data(folder, network, batches):
    """Writes sets of inputs and onnxruntime's outputs. Returns the largest output."""
    largest = 0
    for step, batch in enumerate(batches):
        path = f"{folder}/test_data_set_{step}"
        os.makedirs(path, exist_ok=True)
        inputs = {name: tensor.numpy() for name, tensor in flat(network.inputs(batch, step)).items()}
        for kind, values in zip(("input", "output"), run_model(f"{folder}/model.onnx", inputs)):
            for number, (name, array) in enumerate(values):
                write_tensor(f"{path}/{kind}_{number}.pb", name, array)
        largest = max(largest, *(float(abs(array).max()) for _, array in values))
    return largest


# Exporting -----------------------------------------------------------------------------------------------------------


def make_network(name, size, folder, is_traced):
    torch.manual_seed(1)
    network = NETWORKS[name](size)
    network.module.eval()
    os.makedirs(folder, exist_ok=True)
    export(network, network.inputs(2, 1), f"{folder}/model.onnx", is_traced)
    relative, absolute = FLOATS_NEAR
    largest = write_data(folder, network, BATCHES[size])
    write_tolerance(folder, relative, max(absolute, FULL_NEAR * largest) if size == "full" else absolute)


def is_clear(path, inputs):
    """Whether what a detector finds does not change with small differences, such as those of rounding: no two scores
    are as good as equal, and no overlap of boxes is near the limit."""
    _, expected = run_model(path, inputs)
    for _ in range(6):
        moved = {name: values * (1 + 1e-6 * torch.randn(values.shape).numpy()) for name, values in inputs.items()}
        for (_, one), (_, other) in zip(expected, run_model(path, moved)[1]):
            if one.shape != other.shape or abs(one.astype(float) - other).max(initial=0) > 0.02:
                return False
    return True


def clear_inputs(network, path, batch, step):
    for _ in range(50):
        inputs = network.inputs(batch, step)
        if is_clear(path, {name: tensor.numpy() for name, tensor in flat(inputs).items()}):
            return inputs
    raise RuntimeError("what the detector finds changes with the rounding of each of 50 pictures")


def make_detector(name, folder):
    """Only the older exporter takes them."""
    torch.manual_seed(1)
    network = DETECTORS[name]()
    network.module.eval()
    os.makedirs(folder, exist_ok=True)
    export(network, network.inputs(1, 0), f"{folder}/model.onnx", is_traced=True)
    clear = functools.partial(clear_inputs, network, f"{folder}/model.onnx")
    write_data(folder, dataclasses.replace(network, inputs=clear), (1, 1))
    write_tolerance(folder, *DETECTORS_NEAR)


# Quantised and light models ------------------------------------------------------------------------------------------


class Samples(quantization.CalibrationDataReader):
    def __init__(self, network, count):
        self.left = [{name: tensor.numpy() for name, tensor in flat(network.inputs(1, 0)).items()}
                     for _ in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def make_quantized(name, size, of, folder):
    """Weights by channels as I8, values as U8, both in pairs of QuantizeLinear and DequantizeLinear."""
    torch.manual_seed(1)
    network = NETWORKS[name](size)
    os.makedirs(folder, exist_ok=True)
    prepared = f"{folder}/prepared.onnx"
    shape_inference.quant_pre_process(f"{of}/model.onnx", prepared)
    quantization.quantize_static(prepared, f"{folder}/model.onnx", Samples(network, 8), per_channel=True,
                                 quant_format=quantization.QuantFormat.QDQ,
                                 activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)
    os.remove(prepared)
    write_tolerance(folder, 0, INTEGERS_NEAR * write_data(folder, network, BATCHES[size]))


def dummy_input(value):
    """What the runner of the package onnx feeds its light models: numbers from 0 up, by the size of the input."""
    shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    count = int(numpy.prod(shape))
    return (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)


def make_light(source, folder):
    model = onnx.load(source)
    data = f"{folder}/test_data_set_0"
    os.makedirs(data, exist_ok=True)
    shutil.copy(source, f"{folder}/model.onnx")
    initial = {value.name for value in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initial]
    for index, value in enumerate(inputs):
        write_tensor(f"{data}/input_{index}.pb", value.name, dummy_input(value))
    shutil.copy(source.replace(".onnx", "_output_0.pb"), f"{data}/output_0.pb")
    write_tolerance(folder, *FLOATS_NEAR)


# The whole -----------------------------------------------------------------------------------------------------------


def jobs(arguments):
    """The folder of each model and a function that fills it."""
    root, wanted = arguments.folder, arguments.networks.split(",") if arguments.networks else list(NETWORKS)
    light = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/light/light_*.onnx")
    for source in sorted(glob.glob(light)) if not arguments.networks else []:
        name = os.path.basename(source)[len("light_"):-len(".onnx")]
        yield f"{root}/light/{name}", functools.partial(make_light, source)
    for name in DETECTORS if not arguments.networks else [name for name in wanted if name in DETECTORS]:
        yield f"{root}/detectors/{name}", functools.partial(make_detector, name)
    for size in arguments.sizes.split(","):
        for name in [name for name in wanted if name in NETWORKS]:
            folder = f"{root}/{size}/{name}"
            yield folder, functools.partial(make_network, name, size, is_traced=False)
            if size == "small" and name not in NOT_TRACED:
                yield f"{folder}.traced", functools.partial(make_network, name, size, is_traced=True)
            if name in QUANTIZED:
                yield f"{folder}.int8", functools.partial(make_quantized, name, size, folder)


def make(folder, fill):
    """Makes the folder as a whole, so that one that was interrupted is not taken for a finished one."""
    partial = f"{folder}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # exporters talk
        fill(folder=partial)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(partial, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--sizes", default="small,full")
    parser.add_argument("--networks")
    parser.add_argument("--again", action="store_true", help="also make what is there")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    made, failed = 0, []
    for folder, fill in jobs(arguments):
        if os.path.exists(folder) and not arguments.again:
            continue
        try:
            make(folder, fill)
            made += 1
            print(folder, flush=True)
        except Exception as error:  # an exporter may refuse a network; the others are still wanted
            failed.append(folder)
            print(f"{folder}: {type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error) else ''}",
                  file=sys.stderr, flush=True)
    print(f"{made} models made, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
