# SPDX-License-Identifier: MIT
"""Writes the small ONNX models that tests serve: small_models.py FOLDER makes a model repository of them.

The files are written field by field, in the encoding of Protocol Buffers, so that no package is needed.
"""
import os
import struct
import sys

FLOAT, INT64, STRING = 1, 7, 8


def number(value):
    encoded = b""
    value &= (1 << 64) - 1
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def integer(field, value):
    return number(field << 3) + number(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return number(field << 3 | 2) + number(len(value)) + value


def value_info(name, kind, dims):
    shape = b"".join(data(1, data(2, d) if isinstance(d, str) else integer(1, d)) for d in dims)
    return data(1, name) + data(2, data(1, integer(1, kind) + data(2, shape)))


def tensor(name, dims, values):
    return (b"".join(integer(1, d) for d in dims) + integer(2, FLOAT) + data(8, name) +
            data(9, struct.pack(f"<{len(values)}f", *values)))


def node(operator, inputs, outputs):
    return (b"".join(data(1, name) for name in inputs) + b"".join(data(2, name) for name in outputs) +
            data(3, outputs[0]) + data(4, operator))


def model(nodes, inputs, outputs, initializers=()):
    graph = (b"".join(data(1, n) for n in nodes) + data(2, "graph") + b"".join(data(5, i) for i in initializers) +
             b"".join(data(11, i) for i in inputs) + b"".join(data(12, o) for o in outputs))
    return integer(1, 8) + data(2, "small_models") + data(7, graph) + data(8, data(1, "") + integer(2, 17))


FEATURES, SCORES = 4, 3
WEIGHTS = [(i % 5 - 2) / 2 for i in range(FEATURES * SCORES)]


def ranker():
    """scores [batch, 3] = x [batch, 4] weights, and twice the ids [batch, 2]."""
    return model([node("MatMul", ["x", "w"], ["scores"]), node("Add", ["ids", "ids"], ["twice"])],
                 [value_info("x", FLOAT, ["batch", FEATURES]), value_info("ids", INT64, ["batch", 2])],
                 [value_info("scores", FLOAT, ["batch", SCORES]), value_info("twice", INT64, ["batch", 2])],
                 [tensor("w", [FEATURES, SCORES], WEIGHTS)])


def texts():
    """A model with strings, which cannot be served."""
    return model([node("Identity", ["text"], ["same"])], [value_info("text", STRING, ["batch", 1])],
                 [value_info("same", STRING, ["batch", 1])])


def write(folder, name, content, config=None, version=1):
    os.makedirs(f"{folder}/{name}/{version}", exist_ok=True)
    with open(f"{folder}/{name}/{version}/model.onnx", "wb") as file:
        file.write(content)
    if config is not None:
        with open(f"{folder}/{name}/config.pbtxt", "w", encoding="utf-8") as file:
            file.write(config)


# For the ranker: the first dimension is in the configuration, so a request has any number of rows.
WITHOUT_BATCH = """backend: "rondo"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }, { name: "ids" data_type: TYPE_INT64 dims: [ -1, 2 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ -1, 3 ] }, { name: "twice" data_type: TYPE_INT64 dims: [ -1, 2 ] } ]
"""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1], "ranker", ranker(), 'backend: "rondo"\n')


if __name__ == "__main__":
    main()
