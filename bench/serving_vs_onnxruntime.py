#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures models in one Triton Inference Server, in turns: the backend rondo, and the server's Python backend with
onnxruntime.

  bench/serving_vs_onnxruntime.py --build BUILD [--models build/models] [--names NAME,...] [--clients 1,8,32]
                                  [--rounds 5] [--seconds 2] [--out FILE]

The models are those of `make models`. Each is loaded once for each backend; that of Python runs the requests that the
server's dynamic batcher brings it as one batch. Clients ask over HTTP on the loopback address, each again as soon as it
has its answer, with binary tensors of one row. They are connections of one thread, which also measures. The backends
take turns of --seconds. A ratio is the median over the rounds of Rondo's turn divided by the other's. Processor time is
that of the server and its children, for each request. Answers of both are compared before.

--out writes a part for bench/comparison.py page, after each measurement. What the file has of other models and clients
stays. Targets: 1.5 times the requests of the Python backend for small models (fewer than 5 ms), 1.0 for large ones, and
0.8 of the time within which 99 % of the answers come. They are printed and do not affect the exit status: 0 measured,
1 failed, 77 skipped, because a package or the models are missing.

It runs in build/triton-environment, which tests/triton/run makes, with onnx and onnxruntime.
"""
import argparse
import glob
import json
import os
import selectors
import socket
import statistics
import sys
import sysconfig
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
from comparison import Part, processor, read_rows

SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BACKENDS = ("rondo", "onnxruntime")
TITLES = ("Rondo", "Python backend, onnxruntime")
MOST_ROWS = 8
SMALL_MS, SMALL, LARGE, TAIL = 5, 1.5, 1.0, 0.8
# The models: their folders, and parameters of the backend rondo.
MODELS = {"mlp": ("full/mlp", {}), "dlrm": ("full/dlrm", {}), "resnet50": ("full/resnet50", {}),
          "vit": ("full/vit", {}), "bert": ("full/bert", {"dimensions": "s27=128"})}
PYTHON_MODEL = '''
import json
import sys
sys.path.insert(0, "PACKAGES")
import numpy
import onnxruntime
import triton_python_backend_utils as utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.inputs = [tensor["name"] for tensor in config["input"]]
        self.outputs = [tensor["name"] for tensor in config["output"]]
        path = config["parameters"]["path"]["string_value"]
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        """All requests as one batch."""
        given = [[utils.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs]
                 for request in requests]
        joined = given[0] if len(given) == 1 else [numpy.concatenate(each) for each in zip(*given)]
        results = self.session.run(self.outputs, dict(zip(self.inputs, joined)))
        responses, first = [], 0
        for each in given:
            end = first + len(each[0])
            responses.append(utils.InferenceResponse([
                utils.Tensor(name, result[first:end]) for name, result in zip(self.outputs, results)]))
            first = end
        return responses
'''


# The server --------------------------------------------------------------------------------------------------------


def link_backends(build, folder):
    """A folder with both backends; the process that runs Python code is for the version of this Python."""
    server = f"{sysconfig.get_path('purelib')}/pytriton/tritonserver"
    os.makedirs(f"{folder}/python")
    os.symlink(f"{build}/triton/rondo", f"{folder}/rondo")
    for file in os.listdir(f"{server}/backends/python"):
        os.symlink(f"{server}/backends/python/{file}", f"{folder}/python/{file}")
    os.symlink(f"{server}/python_backend_stubs/{sys.version_info[0]}.{sys.version_info[1]}/triton_python_backend_stub",
               f"{folder}/python/triton_python_backend_stub")


def text_parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


def write_model(repository, name, path, parameters):
    os.makedirs(f"{repository}/{name}/1", exist_ok=True)
    for data in glob.glob(f"{path}*"):  # with weights in a file of their own
        os.symlink(data, f"{repository}/{name}/1/{os.path.basename(data)}")
    with open(f"{repository}/{name}/config.pbtxt", "w", encoding="utf-8") as file:
        file.write('backend: "rondo"\n' + "".join(text_parameter(*item) for item in parameters.items()))


def write_python_model(repository, name, path, config):
    """With the inputs and outputs of the same model in the other backend."""
    os.makedirs(f"{repository}/{name}/1", exist_ok=True)
    with open(f"{repository}/{name}/1/model.py", "w", encoding="utf-8") as file:
        file.write(PYTHON_MODEL.replace("PACKAGES", sysconfig.get_path("purelib")))
    tensors = "".join(
        f'{kind} [ {{ name: "{t["name"]}" data_type: {t["data_type"]} dims: [ {", ".join(map(str, t["dims"]))} ] }} ]\n'
        for kind in ("input", "output") for t in config[kind])
    with open(f"{repository}/{name}/config.pbtxt", "w", encoding="utf-8") as file:
        file.write(f'backend: "python"\nmax_batch_size: {config["max_batch_size"]}\ndynamic_batching {{ }}\n{tensors}'
                   'instance_group [ { kind: KIND_CPU count: 1 } ]\n' + text_parameter("path", path))


class Server:
    """tests/triton/check_server.py's, with both backends."""

    def __init__(self, build, folder):
        sys.path.insert(0, f"{ROOT}/tests/triton")
        import check_server
        link_backends(build, f"{folder}/backends")
        import small_models
        small_models.write(f"{folder}/repository", "first", small_models.ranker(), 'backend: "rondo"\n')
        self.repository, self.log = f"{folder}/repository", f"{folder}/log"
        self.server = check_server.Server(build, self.repository, self.log, ["first"],
                                          [f"--backend-directory={folder}/backends",
                                           f"--backend-config=rondo,default-max-batch-size={MOST_ROWS}"])
        self.port = self.server.port

    def call(self, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v2/{path}", body)
        with urllib.request.urlopen(request, timeout=600) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def load(self, name):
        try:
            self.call(f"repository/models/{name}/load", b"{}")
        except OSError as error:
            said = error.read().decode() if hasattr(error, "read") else str(error)
            with open(self.log, encoding="utf-8", errors="replace") as file:
                sys.exit(f"serving_vs_onnxruntime: {name}: {said}\n{file.read()[-2000:]}")

    def unload(self, name):
        self.call(f"repository/models/{name}/unload", b"{}")
        while any(model["name"] == name and model.get("state") in ("READY", "UNLOADING")
                  for model in self.call("repository/index", b"{}")):
            time.sleep(0.05)

    def processor_seconds(self):
        """Of the server's process and its children."""
        wanted, seconds = {self.server.process.pid}, 0
        for pid in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if pid in wanted or int(fields[1]) in wanted:
                wanted.add(pid)
                seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    def stop(self):
        self.server.stop()


# Clients -----------------------------------------------------------------------------------------------------------


def http_request(name, inputs, outputs):
    """The bytes of a request with binary tensors."""
    import numpy
    datas = [numpy.ascontiguousarray(data).tobytes() for _, _, data in inputs]
    head = json.dumps({
        "inputs": [{"name": tensor, "datatype": kind, "shape": list(data.shape),
                    "parameters": {"binary_data_size": len(bytes_)}}
                   for (tensor, kind, data), bytes_ in zip(inputs, datas)],
        "outputs": [{"name": output, "parameters": {"binary_data": True}} for output in outputs]}).encode()
    body = head + b"".join(datas)
    return (f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


class Refused(Exception):
    """An answer that is an error."""


class Client:
    """A connection with one request on its way."""

    def __init__(self, port, request):
        self.request, self.answer, self.missing, self.began = request, bytearray(), None, 0
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self):
        self.answer.clear()
        self.missing = None
        self.began = time.perf_counter()
        self.socket.sendall(self.request)

    def has_answer(self):
        """Reads what has come."""
        piece = self.socket.recv(1 << 20)
        if not piece:
            sys.exit("serving_vs_onnxruntime: the server closed a connection")
        self.answer += piece
        if self.missing is None:
            head, end, _ = bytes(self.answer).partition(b"\r\n\r\n")
            if not end:
                return False
            if b" 200 " not in head[:16]:
                raise Refused(f"{bytes(self.answer)[-500:]}")
            fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
            self.missing = len(head) + len(end) + int(fields[b"content-length"])
            self.json_bytes = int(fields.get(b"inference-header-content-length", b"0"))
        return len(self.answer) == self.missing

    def body(self):
        return bytes(self.answer).partition(b"\r\n\r\n")[2]


def ask_patiently(port, request):
    """On a busy machine, the process that runs Python code is late at first, and the server then takes it for dead."""
    for _ in range(20):
        try:
            return ask_once(port, request)
        except Refused as error:
            said = error
            time.sleep(1)
    raise said


def ask_once(port, request):
    """The answer's output data, in the order of its outputs."""
    import numpy
    client = Client(port, request)
    client.ask()
    while not client.has_answer():
        pass
    client.socket.close()
    body = client.body()
    head, at, results = json.loads(body[:client.json_bytes]), client.json_bytes, {}
    for output in head["outputs"]:
        size = output["parameters"]["binary_data_size"]
        results[output["name"]] = numpy.frombuffer(body[at:at + size], numpy.float32)
        at += size
    return results


def take_turn(port, request, count, seconds):
    """`count` clients ask for some seconds. Returns answers a second, and the times of the answers."""
    selector, times = selectors.DefaultSelector(), []
    clients = [Client(port, request) for _ in range(count)]
    begin = time.perf_counter()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.ask()
    end, left = begin + seconds, count
    while left > 0:
        for key, _ in selector.select():
            client = key.data
            if not client.has_answer():
                continue
            now = time.perf_counter()
            times.append(now - client.began)
            if now < end:
                client.ask()
                continue
            selector.unregister(client.socket)
            client.socket.close()
            left -= 1
    return len(times) / (time.perf_counter() - begin), times


# Measuring ---------------------------------------------------------------------------------------------------------


def read_inputs(folder, config):
    """The test data of the model, as triples of name, type and array."""
    import numpy
    import onnx
    inputs = []
    for index, tensor in enumerate(config["input"]):
        with open(f"{folder}/test_data_set_0/input_{index}.pb", "rb") as file:
            data = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
        inputs.append((tensor["name"], tensor["data_type"].removeprefix("TYPE_"), numpy.ascontiguousarray(data)))
    return inputs


def check_answers(name, answers):
    import numpy
    rondo, other = answers
    for output in other:
        scale = max(1.0, float(numpy.abs(other[output]).max()))
        if not numpy.allclose(rondo[output], other[output], rtol=1e-3, atol=1e-3 * scale):
            sys.exit(f"serving_vs_onnxruntime: {name}: output '{output}' of the backends differs")


def load_model(server, name, models):
    """Loads the model in both backends; returns the request for each."""
    folder, given = MODELS[name]
    folder = os.path.abspath(f"{models}/{folder}")
    path, identifier = f"{folder}/model.onnx", name.replace(" ", "_").replace("(", "").replace(")", "")
    names = [f"{identifier}.{backend}" for backend in BACKENDS]
    write_model(server.repository, names[0], path, given)
    server.load(names[0])
    config = server.call(f"models/{names[0]}/config")
    write_python_model(server.repository, names[1], path, config)
    server.load(names[1])
    inputs, outputs = read_inputs(folder, config), [output["name"] for output in config["output"]]
    requests = [http_request(each, inputs, outputs) for each in names]
    check_answers(name, [ask_patiently(server.port, request) for request in requests])
    return names, requests


def percentile(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, int(share * len(times)))]


def measure(server, requests, clients, arguments):
    """Turns in an order that rotates; the first two are not counted."""
    turns = {backend: [] for backend in BACKENDS}
    for request in requests:
        take_turn(server.port, request, clients, min(1, arguments.seconds))
    for turn in range(arguments.rounds):
        for i in range(2):
            which = (turn + i) % 2
            before = server.processor_seconds()
            rate, times = take_turn(server.port, requests[which], clients, arguments.seconds)
            turns[BACKENDS[which]].append({
                "rate": rate, "median_ms": statistics.median(times) * 1e3, "p99_ms": percentile(times, 0.99) * 1e3,
                "requests": len(times), "cpu_us": (server.processor_seconds() - before) / len(times) * 1e6})
    row = {"clients": clients, "requests": {b: sum(turn["requests"] for turn in turns[b]) for b in BACKENDS}}
    for key in ("rate", "median_ms", "p99_ms", "cpu_us"):
        row[key] = {b: statistics.median(turn[key] for turn in turns[b]) for b in BACKENDS}
        row[f"{key}_ratio"] = statistics.median(a[key] / b[key] for a, b in zip(*turns.values()))
    return row


def is_small(row):
    """By what one client waits for, of the faster backend."""
    return min(row["median_ms"].values()) / row["clients"] < SMALL_MS


def show(row):
    rates, tails = row["rate"], row["p99_ms"]
    target = SMALL if is_small(row) else LARGE
    print(f"{row['model']:14} {row['clients']:3} clients  requests/s {rates['rondo']:9.1f} {rates['onnxruntime']:9.1f}  "
          f"ratio {row['rate_ratio']:5.2f} ({'met' if row['rate_ratio'] >= target else 'missed'})  99 % within ms "
          f"{tails['rondo']:8.2f} {tails['onnxruntime']:8.2f}  ratio {row['p99_ms_ratio']:5.2f} "
          f"({'met' if row['p99_ms_ratio'] <= TAIL else 'missed'})  processor time ratio {row['cpu_us_ratio']:.2f}",
          flush=True)


def add_tables(part, rows):
    part.tables, part.details = [], rows
    for clients in sorted({row["clients"] for row in rows}):
        some = [row for row in rows if row["clients"] == clients]
        said = f"{clients} client{'s' if clients > 1 else ''}"
        part.add(f"Served requests, {said}", "Time divided by the number of answers.", "ms", TITLES,
                 [[row["model"], *(1e3 / row["rate"][b] for b in BACKENDS)] for row in some],
                 [row["rate_ratio"] for row in some])
        part.add(f"Served requests, {said}, 99 %", "Time within which 99 % of the answers come.", "ms", TITLES,
                 [[row["model"], *(row["p99_ms"][b] for b in BACKENDS)] for row in some],
                 [1 / row["p99_ms_ratio"] for row in some])
        part.add(f"Served requests, {said}, processor time", "Of the server and its children, for each request.", "ms",
                 TITLES, [[row["model"], *(row["cpu_us"][b] / 1e3 for b in BACKENDS)] for row in some],
                 [1 / row["cpu_us_ratio"] for row in some])


def measure_all(server, arguments, part):
    rows = read_rows(arguments.out, ("model", "clients"))
    names = arguments.names.split(",") if arguments.names else list(MODELS)
    for name in names:
        loaded, requests = load_model(server, name, arguments.models)
        for clients in (int(count) for count in arguments.clients.split(",")):
            rows[name, clients] = row = {"model": name, **measure(server, requests, clients, arguments)}
            show(row)
            add_tables(part, [rows[key] for key in sorted(rows)])
        for model in loaded:
            server.unload(model)
    part.end()


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="a build with the backend (target rondo_triton)")
    parser.add_argument("--models", default="build/models")
    parser.add_argument("--names", help=f"of {', '.join(MODELS)}, separated by commas (default: all)")
    parser.add_argument("--clients", default="1,8,32", help="numbers of clients, separated by commas (default 1,8,32)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="length of a turn (default 2)")
    parser.add_argument("--out", help="file for all figures")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    try:
        import onnx
        import onnxruntime
        import tritonclient.http  # noqa: F401, of check_server
        from importlib.metadata import version
    except ImportError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return SKIPPED
    if not os.path.isdir(arguments.models):
        print(f"skipped: there is no {arguments.models}: `make models` makes it", file=sys.stderr)
        return SKIPPED
    part = Part("serving", arguments.out)
    part.hardware = processor()
    part.versions = {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__,
                     "nvidia-pytriton": version("nvidia-pytriton")}
    part.commands = ["make models", "bench/serving_vs_onnxruntime.py --build build/release --out FILE"]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.abspath(arguments.build), folder)
        try:
            measure_all(server, arguments, part)
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
