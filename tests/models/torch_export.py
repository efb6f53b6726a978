# SPDX-License-Identifier: MIT
"""Exports a Network of exported_networks.py to an ONNX file, with PyTorch's exporter or its older one, which traces."""
import torch

TRACED_OPSET = 17


def flatten(name, value):
    """Tensors with their names; those of lists are numbered."""
    if torch.is_tensor(value):
        yield name, value
        return
    for index, item in enumerate(value):
        yield from flatten(f"{name}.{index}", item)


def flat(inputs):
    return dict(pair for name, value in inputs.items() for pair in flatten(name, value))


def shapes_of(network, inputs):
    """The dimensions that vary, nested as the inputs are."""
    def of(value, names):
        if torch.is_tensor(value):
            return {axis: torch.export.Dim.DYNAMIC for axis in names}
        return type(value)(of(item, names) for item in value)
    return {name: of(value, network.dimensions[name]) for name, value in inputs.items()}


def axes_of(network, inputs):
    return {name: axes for top, axes in network.dimensions.items() for name, _ in flatten(top, inputs[top])}


def export(network, inputs, path, is_traced):
    arguments = {"input_names": list(flat(inputs)), "output_names": network.outputs}
    if is_traced:
        torch.onnx.export(network.module, tuple(inputs.values()), path, dynamo=False, opset_version=TRACED_OPSET,
                          dynamic_axes=axes_of(network, inputs), **arguments)
    else:
        torch.onnx.export(network.module, tuple(inputs.values()), path, dynamo=True, verbose=False,
                          dynamic_shapes=shapes_of(network, inputs), **arguments)
