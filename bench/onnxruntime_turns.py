#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a model with onnxruntime in turns, like rondo_bench models --turns (turns.py).

  bench/onnxruntime_turns.py MODEL --data FOLDER --threads N [--profile FILE]

FOLDER has input_0.pb and so on. Inputs and outputs are bound once, so that a run copies none of them. The threads share
the process's processors. --profile writes onnxruntime's own profile of each operator. At the end it prints a JSON object:
the processor time of a run, the time and the processor time from reading the file to the first answer, and the peak of
the process beyond its imports.
"""
import argparse
import json
import sys
import time

import numpy
import onnx
import onnxruntime

WARM_UPS = 2


def read_status(field):
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) * 1024


def read_tensor(path):
    with open(path, "rb") as file:
        return numpy.ascontiguousarray(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read())))


class Model:
    def __init__(self, arguments):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = arguments.threads, 1, 3
        if arguments.profile:
            options.enable_profiling, options.profile_file_prefix = True, arguments.profile
        self.session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: read_tensor(f"{arguments.data}/input_{index}.pb")
                       for index, value in enumerate(self.session.get_inputs())}
        names = [value.name for value in self.session.get_outputs()]
        self.outputs = [onnxruntime.OrtValue.ortvalue_from_numpy(out) for out in self.session.run(None, self.inputs)]
        self.binding = self.session.io_binding()
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        for name, value in zip(names, self.outputs):
            self.binding.bind_ortvalue_output(name, value)

    def run(self):
        begin = time.perf_counter_ns()
        self.session.run_with_iobinding(self.binding)
        return (time.perf_counter_ns() - begin) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--profile", default="")
    arguments = parser.parse_args()
    start_bytes, begin, cpu_begin = read_status("VmRSS:"), time.perf_counter(), time.process_time()
    model = Model(arguments)
    first_seconds, first_cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    for _ in range(WARM_UPS):
        model.run()
    print("ready", flush=True)
    runs, begin = 0, time.process_time()
    for line in iter(sys.stdin.readline, ""):
        print(*(f"{model.run():.3f}" for _ in range(int(line))), flush=True)
        runs += int(line)
    cpu_us = (time.process_time() - begin) / max(runs, 1) * 1e6
    if arguments.profile:
        model.session.end_profiling()
    print(json.dumps({"cpu_us": cpu_us, "first_answer_seconds": first_seconds, "first_answer_cpu_seconds": first_cpu_seconds,
                      "peak_bytes": read_status("VmHWM:") - start_bytes}))


if __name__ == "__main__":
    main()
