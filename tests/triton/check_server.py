# SPDX-License-Identifier: MIT
"""Tests the backend in a real Triton Inference Server: check_server.py BUILD

The server runs on the loopback address. Each test is a function; the requirement that it shows is in its name: TS-1,
TS-2, TS-4, TS-5, TS-6 and TS-8, whose shared memory shows TS-3.
"""
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

import numpy
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shared_memory
from tritonclient.utils import InferenceServerException

import small_models

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEIGHTS = numpy.array(small_models.WEIGHTS, numpy.float32).reshape(small_models.FEATURES, small_models.SCORES)
START_SECONDS = 400  # of a machine that does much else

FIXED = """backend: "rondo"
max_batch_size: 16
dynamic_batching { max_queue_delay_microseconds: 2000 }
instance_group [ { kind: KIND_CPU count: 2 } ]
parameters { key: "history" value: { string_value: "1:10,4:5,16" } }
"""
ADAPTIVE = """backend: "rondo"
parameters { key: "max_sizes" value: { string_value: "2" } }
parameters { key: "allow_choose_sizes" value: { string_value: "1" } }
"""
# One request at a time, which waits for others in vain, so that the rest waits in the server.
PRIORITIES = """backend: "rondo"
max_batch_size: 16
dynamic_batching { priority_levels: 2 default_priority_level: 2 preferred_batch_size: 1 }
parameters { key: "max_queue" value: { string_value: "1" } }
parameters { key: "max_delay_us" value: { string_value: "5000" } }
"""
WRONG = """backend: "rondo"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP16 dims: [ 4 ] }, { name: "ids" data_type: TYPE_INT64 dims: [ 2 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""


def free_ports():
    """The first of three ports that are free."""
    while True:
        sockets = []
        try:
            for i in range(3):
                s = socket.socket()
                sockets.append(s)
                s.bind(("127.0.0.1", 0 if i == 0 else sockets[0].getsockname()[1] + i))
            return sockets[0].getsockname()[1]
        except (OSError, OverflowError):
            continue
        finally:
            for s in sockets:
                s.close()


class Server:
    """A server with a repository, until it is stopped."""

    def __init__(self, build, repository, log, models=("ranker", "batched"), options=()):
        self.port = free_ports()
        self.log = log
        self.models = models
        self.repository = repository
        command = [f"{ROOT}/scripts/serve", build, repository, "--model-control-mode=explicit", "--exit-timeout-secs=20",
                   "--strict-readiness=false", *[f"--load-model={model}" for model in models], *options]
        with open(log, "wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                            env={**os.environ, "RONDO_SERVE_PORT": str(self.port)})
        self.await_ready()
        self.http = tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.port}")  # of one thread
        self.grpc = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self.port + 1}")

    def await_ready(self):
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url()}/v2/models/{self.models[-1]}/ready", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(f"the server did not start:\n{open(self.log, encoding='utf-8').read()[-4000:]}")

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port + 2}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}

    def stop(self):
        self.http.close()
        self.grpc.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def inputs_of(rows, seed=0):
    random = numpy.random.default_rng(seed)
    return (random.integers(-8, 8, (rows, small_models.FEATURES)).astype(numpy.float32),
            random.integers(-1000, 1000, (rows, 2)))


def tensors_of(client, x, ids):
    tensors = [client.InferInput("x", x.shape, "FP32"), client.InferInput("ids", ids.shape, "INT64")]
    tensors[0].set_data_from_numpy(x)
    tensors[1].set_data_from_numpy(ids)
    return tensors


def check(result, x, ids):
    numpy.testing.assert_array_equal(result.as_numpy("scores"), x @ WEIGHTS)
    numpy.testing.assert_array_equal(result.as_numpy("twice"), ids * 2)


def ask(server, model, rows, seed=0):
    """By gRPC, whose client any thread may use."""
    x, ids = inputs_of(rows, seed)
    check(server.grpc.infer(model, tensors_of(tritonclient.grpc, x, ids)), x, ids)


def refused(call, text):
    try:
        call()
    except InferenceServerException as error:
        assert text in str(error), f"'{text}' is not in '{error}'"
        return
    raise AssertionError(f"not refused: {text}")


def test_ts1_a_configuration_is_completed(server):
    config = server.http.get_model_config("ranker")
    assert config["max_batch_size"] == 64
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"]] == [
        ("x", "TYPE_FP32", [4]), ("ids", "TYPE_INT64", [2])]
    assert [(o["name"], o["data_type"], o["dims"]) for o in config["output"]] == [
        ("scores", "TYPE_FP32", [3]), ("twice", "TYPE_INT64", [2])]


def test_ts1_a_model_that_does_not_load_says_why(server):
    refused(lambda: server.http.load_model("texts"), "input 'text' is a string")
    refused(lambda: server.http.load_model("wrong"), "TYPE_FP16 in the configuration and TYPE_FP32 in the model")


def test_ts2_requests_by_the_session_and_by_the_dynamic_batcher(server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for model, most in [("ranker", 64), ("batched", 16)]:
            list(pool.map(lambda i, m=model, n=most: ask(server, m, 1 + i % n, i), range(100)))


def test_ts2_a_reload_chooses_sizes_for_what_came(server):
    """In the background: a request is answered by the old sizes or by the new ones, and none is refused."""
    labels = '{device="cpu",model="learner",version="1"}'
    server.http.load_model("learner")
    for i in range(300):
        ask(server, "learner", 7, i)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        loaded = [False]

        def ask_until_loaded(seed):
            count = 0
            while not loaded[0] or count < 10:
                ask(server, "learner", 7, seed + count)
                count += 1
            return count

        futures = [pool.submit(ask_until_loaded, 1000 * i) for i in range(2)]
        os.utime(f"{server.repository}/learner/1/model.onnx")
        server.http.load_model("learner")
        loaded[0] = True
        assert all(f.result() >= 10 for f in futures)
    time.sleep(0.5)
    before = server.metrics()
    for i in range(50):
        ask(server, "learner", 7, i)
    time.sleep(0.5)
    after = server.metrics()
    changes = {name: after[f"rondo_{name}{labels}"] - before[f"rondo_{name}{labels}"]
               for name in ("request_rows", "padding_rows", "recorded_requests", "eager_requests")}
    assert changes["request_rows"] == 350 and changes["padding_rows"] == 0, changes


def test_ts2_sizes_are_chosen_again_on_request(server):
    """Also by themselves, if the regret is large, so that there may be more than one choice."""
    labels = '{device="cpu",model="adaptive",version="1"}'
    server.http.load_model("adaptive")
    x, ids = inputs_of(7)
    refused(lambda: server.http.infer("ranker", tensors_of(tritonclient.http, x, ids), parameters={"choose_sizes": True}),
            "'allow_choose_sizes' with the value 1")
    for i in range(200):
        ask(server, "adaptive", 7, i)
    check(server.http.infer("adaptive", tensors_of(tritonclient.http, x, ids), parameters={"choose_sizes": True}), x, ids)
    until, count = time.monotonic() + 100, 0
    while server.metrics()[f"rondo_size_choices{labels}"] < 1 and time.monotonic() < until:
        ask(server, "adaptive", 7, count)
        count += 1
    time.sleep(0.5)
    before = server.metrics()
    assert before[f"rondo_size_choices{labels}"] >= 1
    assert before[f"rondo_request_rows{labels}"] == 7 * (201 + count)
    for i in range(20):
        ask(server, "adaptive", 7, i)
    time.sleep(0.5)
    assert server.metrics()[f"rondo_padding_rows{labels}"] == before[f"rondo_padding_rows{labels}"]


def test_ts4_json_by_curl(server):
    body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]},
                                  {"name": "ids", "shape": [1, 2], "datatype": "INT64", "data": [5, 6]}]})
    answer = subprocess.run(["curl", "-sS", "-d", body, f"{server.url()}/v2/models/ranker/infer"], check=True,
                            stdout=subprocess.PIPE).stdout
    outputs = {o["name"]: o for o in json.loads(answer)["outputs"]}
    assert outputs["twice"] == {"name": "twice", "datatype": "INT64", "shape": [1, 2], "data": [10, 12]}
    numpy.testing.assert_array_equal(outputs["scores"]["data"], numpy.array([1, 2, 3, 4], numpy.float32) @ WEIGHTS)


def test_ts4_outputs_that_are_wanted(server):
    x, ids = inputs_of(3)
    wanted = [tritonclient.http.InferRequestedOutput("twice")]
    result = server.http.infer("ranker", tensors_of(tritonclient.http, x, ids), outputs=wanted)
    assert result.as_numpy("scores") is None
    numpy.testing.assert_array_equal(result.as_numpy("twice"), ids * 2)


def test_ts4_large_bodies(server):
    """They arrive in several pieces of memory."""
    x = numpy.ones((60000, small_models.FEATURES), numpy.float32)
    refused(lambda: server.http.infer("ranker", tensors_of(tritonclient.http, x, numpy.zeros((60000, 2), numpy.int64))),
            "batch")
    x, ids = inputs_of(60000)
    tensors = tensors_of(tritonclient.http, x, ids)
    check(server.http.infer("rows", tensors), x, ids)


def test_ts4_bad_requests_are_refused(server):
    x, ids = inputs_of(2)
    refused(lambda: server.http.infer("ranker", tensors_of(tritonclient.http, x, ids)[:1]), "expected 2 inputs")
    refused(lambda: server.http.infer("ranker", tensors_of(tritonclient.http, x[:, :3].copy(), ids)), "shape")
    refused(lambda: server.http.infer("rows", tensors_of(tritonclient.http, x, ids[:1].copy())), "rows")
    request = urllib.request.Request(f"{server.url()}/v2/models/ranker/infer", b"{\"inputs\": [")
    try:
        urllib.request.urlopen(request, timeout=5)
        raise AssertionError("a body that is no JSON was accepted")
    except urllib.error.HTTPError as error:
        assert error.code in (400, 500), error.code
    ask(server, "ranker", 2)


def test_ts4_timeouts(server):
    x, ids = inputs_of(1)
    for timeout in [1, 10000000]:
        try:
            check(server.http.infer("ranker", tensors_of(tritonclient.http, x, ids), timeout=timeout), x, ids)
        except InferenceServerException as error:
            assert timeout == 1 and "deadline" in str(error), str(error)


def test_ts4_priorities(server):
    """By the dynamic batcher of the server: a request of the first level overtakes those that wait."""
    waiting, answers = 100, []
    x, ids = inputs_of(1)
    server.http.load_model("priorities")

    def ask_with(priority):
        server.grpc.async_infer("priorities", tensors_of(tritonclient.grpc, x, ids),
                                lambda result, error: answers.append((priority, error)), priority=priority)

    for _ in range(waiting):
        ask_with(2)
    ask_with(1)
    until = time.monotonic() + 60
    while len(answers) <= waiting and time.monotonic() < until:
        time.sleep(0.01)
    assert all(error is None for _, error in answers), answers
    place = [priority for priority, _ in answers].index(1)
    assert len(answers) == waiting + 1 and place < 3 * waiting // 4, place


def test_ts5_statistics_and_metrics(server):
    before = server.http.get_inference_statistics("ranker")["model_stats"][0]
    for i in range(10):
        ask(server, "ranker", 3, i)
    after = server.http.get_inference_statistics("ranker")["model_stats"][0]
    assert after["inference_count"] - before["inference_count"] == 30
    assert after["execution_count"] - before["execution_count"] == 10
    assert after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"] == 10
    time.sleep(0.5)
    metrics = server.metrics()
    labels = '{device="cpu",model="ranker",version="1"}'
    assert metrics[f"rondo_request_rows{labels}"] == after["inference_count"]
    assert metrics[f"rondo_arena_bytes{labels}"] > 0
    modes = [metrics[f"rondo_{mode}_requests{labels}"] for mode in ("recorded", "split", "eager")]
    assert sum(modes) == after["inference_stats"]["success"]["count"]


def test_ts6_unload_and_load_under_load(server):
    def ask_until_unloaded(seed):
        for i in range(50):
            try:
                ask(server, "second", 1 + i % 4, seed + i)
            except InferenceServerException as error:
                assert any(text in str(error) for text in ("not ready", "unknown model", "not found", "unloading")), error
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(ask_until_unloaded, 100 * i) for i in range(4)]
        for _ in range(3):
            server.http.load_model("second")
            server.http.unload_model("second")
        assert all(f.result() for f in futures)


def test_ts6_two_versions(server):
    server.http.load_model("versions")
    x, ids = inputs_of(2)
    for version in ["1", "2"]:
        check(server.http.infer("versions", tensors_of(tritonclient.http, x, ids), model_version=version), x, ids)


def test_ts8_grpc(server):
    x, ids = inputs_of(5)
    check(server.grpc.infer("ranker", tensors_of(tritonclient.grpc, x, ids)), x, ids)
    results = []
    for _ in range(20):
        server.grpc.async_infer("ranker", tensors_of(tritonclient.grpc, x, ids),
                                lambda result, error: results.append((result, error)))
    until = time.monotonic() + 30
    while len(results) < 20 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(results) == 20
    for result, error in results:
        assert error is None, error
        check(result, x, ids)


def test_ts8_the_client_of_kserve(server):
    x, ids = inputs_of(3)
    inputs = json.dumps({"x": ["FP32", x.tolist()], "ids": ["INT64", ids.tolist()]})
    for form in ("json", "binary"):
        done = subprocess.run([sys.executable, "-B", f"{ROOT}/tests/triton/ask_by_kserve.py", server.url(), "ranker", form],
                              input=inputs, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-1000:]
        outputs = json.loads(done.stdout)
        numpy.testing.assert_array_equal(outputs["scores"], x @ WEIGHTS)
        numpy.testing.assert_array_equal(outputs["twice"], ids * 2)


def test_ts8_system_shared_memory(server):
    x, ids = inputs_of(4)
    sizes = [x.nbytes, ids.nbytes, 4 * small_models.SCORES * 4, ids.nbytes]
    name = f"rondo_{os.getpid()}"
    region = shared_memory.create_shared_memory_region(name, f"/{name}", sum(sizes))
    try:
        shared_memory.set_shared_memory_region(region, [x, ids])
        server.http.register_system_shared_memory(name, f"/{name}", sum(sizes))
        tensors = [tritonclient.http.InferInput("x", x.shape, "FP32"),
                   tritonclient.http.InferInput("ids", ids.shape, "INT64")]
        outputs = [tritonclient.http.InferRequestedOutput("scores"), tritonclient.http.InferRequestedOutput("twice")]
        for i, tensor in enumerate(tensors + outputs):
            tensor.set_shared_memory(name, sizes[i], sum(sizes[:i]))
        server.http.infer("ranker", tensors, outputs=outputs)
        scores = shared_memory.get_contents_as_numpy(region, numpy.float32, [4, small_models.SCORES], sum(sizes[:2]))
        twice = shared_memory.get_contents_as_numpy(region, numpy.int64, [4, 2], sum(sizes[:3]))
        numpy.testing.assert_array_equal(scores, x @ WEIGHTS)
        numpy.testing.assert_array_equal(twice, ids * 2)
    finally:
        server.http.unregister_system_shared_memory(name)
        shared_memory.destroy_shared_memory_region(region)


def write_repository(folder):
    ranker = small_models.ranker()
    small_models.write(folder, "ranker", ranker, 'backend: "rondo"\n')
    small_models.write(folder, "batched", ranker, FIXED)
    small_models.write(folder, "second", ranker, ADAPTIVE)
    small_models.write(folder, "learner", ranker,
                       'backend: "rondo"\nparameters { key: "max_sizes" value: { string_value: "2" } }\n')
    small_models.write(folder, "adaptive", ranker, ADAPTIVE)
    small_models.write(folder, "priorities", ranker, PRIORITIES)
    small_models.write(folder, "wrong", ranker, WRONG)
    small_models.write(folder, "texts", small_models.texts(), 'backend: "rondo"\n')
    small_models.write(folder, "versions", ranker, 'backend: "rondo"\nversion_policy: { all { } }\n')
    small_models.write(folder, "versions", ranker, version=2)
    small_models.write(folder, "rows", ranker, small_models.WITHOUT_BATCH)


def run_tests(tests, build, folder, models):
    """Runs the functions whose names begin with test_, each with a server of the repository. Exits after a failure."""
    tests = [function for name, function in sorted(tests.items()) if name.startswith("test_")]
    failures = 0
    server = Server(build, f"{folder}/repository", f"{folder}/log", models)
    try:
        for test in tests:
            try:
                test(server)
                print(f"{test.__name__}: passed")
            except Exception as error:  # pylint: disable=broad-except
                failures += 1
                print(f"{test.__name__}: {type(error).__name__}: {error}")
                traceback.print_exc()
    finally:
        code = server.stop()
    print(f"{len(tests) - failures} passed, {failures} failed; the server ended with {code}")
    if failures > 0 or code != 0:
        sys.exit(open(f"{folder}/log", encoding="utf-8").read()[-3000:])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        write_repository(f"{folder}/repository")
        run_tests(globals(), sys.argv[1], folder, ["rows", "ranker", "batched"])


if __name__ == "__main__":
    main()
