#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what the backend rondo adds in a Triton Inference Server, beside a backend that only copies.

  bench/serving_overhead.py --build BUILD [--bytes 64,65536,1048576] [--clients 1,8] [--rounds 9] [--seconds 1]

Models of one operator, y = x + x, are asked over HTTP on the loopback address, with binary tensors of one row of
--bytes. The backend that copies (bench/triton/copy_backend.c) has the same inputs and outputs. Turns of both follow each
other in one server. A ratio is the median over the rounds of Rondo's turn divided by the other's, of the median time of
an answer, and of the server's processor time for each request. The target is 1.05 for the time. Before that,
bench_execute measures the execute call without a server, whose target is 20 us beside rondo_session_run. Targets are
printed and do not affect the exit status: 0 measured, 1 failed, 77 skipped.

It runs in build/triton-environment, which tests/triton/run makes. BUILD has the target bench_triton.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
import serving_vs_onnxruntime as serving

NAMES = ("rondo", "copies")
TARGET = 1.05


def write_models(repository, size):
    """y = x + x in the backend rondo, and a model of the same shapes that copies. Returns their names."""
    import small_models
    columns = size // 4
    content = small_models.model([small_models.node("Add", ["x", "x"], ["y"])],
                                 [small_models.value_info("x", small_models.FLOAT, ["batch", columns])],
                                 [small_models.value_info("y", small_models.FLOAT, ["batch", columns])])
    names = [f"bytes{size}.{name}" for name in NAMES]
    small_models.write(repository, names[0], content, 'backend: "rondo"\n')
    tensors = "".join(f'{kind} [ {{ name: "{name}" data_type: TYPE_FP32 dims: [ {columns} ] }} ]\n'
                      for kind, name in (("input", "x"), ("output", "y")))
    small_models.write(repository, names[1], content, f'backend: "copies"\nmax_batch_size: {serving.MOST_ROWS}\n{tensors}'
                       'instance_group [ { kind: KIND_CPU count: 1 } ]\n')
    return names


def measure(server, requests, clients, arguments):
    """Turns in an order that rotates; the first of each is not counted."""
    turns = {name: [] for name in NAMES}
    for turn in range(arguments.rounds + 1):
        for i in range(2):
            which = (turn + i) % 2
            before = server.processor_seconds()
            _, times = serving.take_turn(server.port, requests[which], clients, arguments.seconds)
            if turn > 0:
                turns[NAMES[which]].append((statistics.median(times) * 1e6,
                                            (server.processor_seconds() - before) / len(times) * 1e6))
    return [([statistics.median(turn[key] for turn in turns[name]) for name in NAMES],
             statistics.median(a[key] / b[key] for a, b in zip(*turns.values()))) for key in (0, 1)]


def measure_all(server, arguments):
    import numpy
    for size in (int(text) for text in arguments.bytes.split(",")):
        names = write_models(server.repository, size)
        x = numpy.random.default_rng(1).uniform(-1, 1, (1, size // 4)).astype(numpy.float32)
        requests = []
        for name in names:
            server.load(name)
            requests.append(serving.http_request(name, [("x", "FP32", x)], ["y"]))
        for request, factor in zip(requests, (2, 1)):
            numpy.testing.assert_array_equal(serving.ask_once(server.port, request)["y"], factor * x[0])
        for clients in (int(text) for text in arguments.clients.split(",")):
            (us, ratio), (cpu, cpu_ratio) = measure(server, requests, clients, arguments)
            print(f"{size:8} bytes {clients:3} clients  median us {us[0]:8.1f} {us[1]:8.1f}  ratio {ratio:5.3f} "
                  f"({'met' if ratio <= TARGET else 'missed'})  processor us {cpu[0]:8.1f} {cpu[1]:8.1f}  "
                  f"ratio {cpu_ratio:5.3f}", flush=True)
        for name in names:
            server.unload(name)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="a build with the target bench_triton")
    parser.add_argument("--bytes", default="64,65536,1048576", help="of a tensor (default 64,65536,1048576)")
    parser.add_argument("--clients", default="1,8", help="numbers of clients (default 1,8)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1, help="length of a turn (default 1)")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    build = os.path.abspath(arguments.build)
    try:
        import tritonclient.http  # noqa: F401, of check_server
    except ImportError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return serving.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(build, folder)
        try:
            subprocess.run([f"{build}/bench/bench_execute", f"{build}/triton/rondo/libtriton_rondo.so",
                            f"{server.repository}/first"], check=True)
            os.symlink(f"{build}/triton/copies", f"{folder}/backends/copies")
            measure_all(server, arguments)
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
