# SPDX-License-Identifier: MIT
"""Asks a model by KServe's client: ask_by_kserve.py URL MODEL json|binary <inputs, >outputs

Inputs and outputs are JSON: by name, the type and the values. It is a program of its own because KServe's client and
Triton's for gRPC cannot be loaded into one process: both define the protocol's messages.
"""
import asyncio
import json
import sys

import kserve
import numpy
from kserve.utils.numpy_codec import to_np_dtype


async def infer(url, model, is_binary, values):
    inputs = []
    for name, (datatype, value) in values.items():
        array = numpy.array(value, to_np_dtype(datatype))
        inputs.append(kserve.InferInput(name, list(array.shape), datatype))
        inputs[-1].set_data_from_numpy(array, binary_data=is_binary)
    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
    try:
        return await client.infer(url, kserve.InferRequest(model, inputs), model_name=model)
    finally:
        await client.close()


def main():
    url, model, form = sys.argv[1:]
    result = asyncio.run(infer(url, model, form == "binary", json.load(sys.stdin)))
    json.dump({output.name: output.as_numpy().tolist() for output in result.outputs}, sys.stdout)


if __name__ == "__main__":
    main()
