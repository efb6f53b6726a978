# SPDX-License-Identifier: MIT
"""Keeps the backend in a real Triton Inference Server under fire (TS-9): under_fire.py BUILD SECONDS

Clients ask at nine tenths of the rate that they reach at first. Meanwhile others vanish in the middle of a request, send
garbage, absurd shapes and wrong types, or give no time; sizes are chosen again; texts are written step by step and as
streams, and some are abandoned; a model is loaded and unloaded, also while its sizes are chosen; and a signal stops the
whole server for a moment. In the end each good request has its right answer, and the server has not grown. All of this
is on the loopback address, by a fixed number of threads that pause between requests.

Calls of gRPC are not cancelled here: this server, 2.51, may end itself if many are (its InferHandlerState).
"""
import http.client
import json
import os
import random
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

import numpy
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

import check_models
import check_server

CLIENTS = 4
MODELS = ["ranker", "batched", "adaptive"]
PROMPT, TOKENS = b"the cow ", 8
MAX_IDLE_MS = 5000
AWAY = ("not ready", "unknown model", "not found", "unloading")  # what a model that is not loaded answers


class Fire:
    """What all threads share."""

    def __init__(self, server, text):
        self.server, self.end = server, threading.Event()
        self.text = text  # that the model `writer` writes: its tokens
        self.lock, self.counts, self.latencies, self.faults = threading.Lock(), {}, [], []

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def run(self, name, action, pause):
        """Repeats an action until the end; what it raises is a fault of the server."""
        source = random.Random(name)
        while not self.end.is_set():
            try:
                action(self, source)
                self.count(name)
            except Exception as error:  # pylint: disable=broad-except
                with self.lock:
                    self.faults.append(f"{name}: {type(error).__name__}: {error}\n{traceback.format_exc()[-600:]}")
            self.end.wait(pause() if callable(pause) else pause)


def ask_right(fire, source):
    start = time.monotonic()
    check_server.ask(fire.server, source.choice(MODELS), source.randint(1, 12), source.randrange(1 << 30))
    with fire.lock:
        fire.latencies.append(time.monotonic() - start)


def ask_what_comes_and_goes(fire, source):
    try:
        check_server.ask(fire.server, "second", source.randint(1, 4), source.randrange(1 << 30))
    except InferenceServerException as error:
        assert any(text in str(error) for text in AWAY), error


def choose_sizes_of(fire, source, model):
    x, ids = check_server.inputs_of(source.randint(1, 12), source.randrange(1 << 30))
    check_server.check(fire.server.grpc.infer(model, check_server.tensors_of(tritonclient.grpc, x, ids),
                                              parameters={"choose_sizes": True}), x, ids)


def choose_sizes(fire, source):
    choose_sizes_of(fire, source, "adaptive")


def write_by_steps(fire, source):
    """A request for each token. Some texts are abandoned, whose slots others get after a while."""
    steps = source.randint(1, 3) if source.random() < 0.05 else TOKENS
    name, tokens = source.randint(1, 1 << 60), check_models.tokens_of(fire.server, PROMPT)
    for i in range(steps):
        sent = time.monotonic()
        try:
            result = fire.server.grpc.infer("stepper", check_models.step_inputs(tritonclient.grpc, tokens),
                                            sequence_id=name, sequence_start=i == 0, sequence_end=i == TOKENS - 1)
        except InferenceServerException as error:
            assert f"had no request for {MAX_IDLE_MS} ms" in str(error), error
            assert sent - before > 0.9 * MAX_IDLE_MS / 1000, error
            return
        before, tokens = sent, result.as_numpy("token").astype(numpy.int32)
        assert tokens[0, 0] == fire.text[i], (i, tokens, fire.text)


def write_as_stream(fire, source):
    """One request for all tokens. Some clients leave after the first ones."""
    body = json.dumps({"tokens": check_models.tokens_of(fire.server, PROMPT)[0].tolist(), "seed": 1, "temperature": 0.0,
                       "max_tokens": TOKENS})
    connection = http.client.HTTPConnection("127.0.0.1", fire.server.port, timeout=60)
    try:
        connection.request("POST", "/v2/models/writer/generate_stream", body)
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        if source.random() < 0.1:
            answer.readline()
            return
        lines = [line for line in answer.read().decode().splitlines() if line.startswith("data:")]
    finally:
        connection.close()
    assert [json.loads(line[len("data:"):])["token"] for line in lines] == fire.text, lines


def is_gone(server, name):
    with urllib.request.urlopen(urllib.request.Request(f"{server.url()}/v2/repository/index", b"{}"), timeout=60) as answer:
        return all(model.get("state") != "UNLOADING" for model in json.load(answer) if model["name"] == name)


def load_and_unload(fire, source):
    """A model is loaded again when it is gone: this server, 2.51, may end itself if the two overlap."""
    fire.server.grpc.load_model("second")
    if source.random() < 0.5:
        choose_sizes_of(fire, source, "second")
    fire.end.wait(source.uniform(0, 0.3))
    fire.server.grpc.unload_model("second")
    while not is_gone(fire.server, "second"):
        time.sleep(0.005)


def post(fire, path, body, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", fire.server.port, timeout=60)
    try:
        connection.request("POST", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def send_garbage(fire, source):
    body = source.randbytes(source.choice([1, 100, 20000]))
    headers = {"Inference-Header-Content-Length": str(source.choice([0, 7, len(body), 1 << 60]))}
    status, _ = post(fire, f"/v2/models/{source.choice(MODELS)}/infer", body, source.choice([{}, headers]))
    assert 400 <= status < 600, status


def send_absurd_tensors(fire, source):
    """Of at most some MB: the server's own reader of JSON allocates what a shape says, and ends itself if it cannot."""
    x = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
    ids = {"name": "ids", "shape": [1, 2], "datatype": "INT64", "data": [5, 6]}
    x.update(source.choice([{"shape": [1 << 20, 4]}, {"shape": [-1, 4]}, {"shape": [1, 3]}, {"shape": [1 << 62, 1 << 62]},
                            {"shape": []}, {"datatype": "FP16"}, {"datatype": "BYTES", "data": ["a"] * 4}, {"name": "y"},
                            {"shape": [1000, 4], "data": [0.5] * 4000}, {"data": "no list"}]))
    status, _ = post(fire, "/v2/models/ranker/infer", json.dumps({"inputs": [x, ids]}))
    assert 400 <= status < 600, (status, x)


def vanish(fire, source):
    """Closes the connection in the middle of a body, or before the answer, with a reset."""
    x, ids = check_server.inputs_of(2, source.randrange(1000))
    body = json.dumps({"inputs": [
        {"name": "x", "shape": [2, 4], "datatype": "FP32", "data": x.flatten().tolist()},
        {"name": "ids", "shape": [2, 2], "datatype": "INT64", "data": ids.flatten().tolist()}]}).encode()
    head = f"POST /v2/models/ranker/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", fire.server.port), timeout=10) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall((head + body)[:source.choice([len(head) // 2, len(head) + len(body) // 2, len(head + body)])])


def give_no_time(fire, source):
    x, ids = check_server.inputs_of(1)
    try:
        check_server.check(fire.server.grpc.infer("ranker", check_server.tensors_of(tritonclient.grpc, x, ids),
                                                  timeout=source.choice([1, 50])), x, ids)
    except InferenceServerException as error:
        assert "deadline" in str(error) or "imeout" in str(error), error


def stop_for_a_moment(fire, source):
    os.kill(fire.server.process.pid, signal.SIGSTOP)
    time.sleep(source.uniform(0.02, 0.3))
    os.kill(fire.server.process.pid, signal.SIGCONT)


# What disturbs the server, and the seconds between two times.
FIRE = [(ask_what_comes_and_goes, 0.01), (load_and_unload, 0.2), (send_garbage, 0.02), (send_absurd_tensors, 0.02),
        (vanish, 0.02), (give_no_time, 0.02), (choose_sizes, 1), (write_by_steps, 0.02), (write_by_steps, 0.02),
        (write_as_stream, 0.02), (write_as_stream, 0.02), (stop_for_a_moment, 3)]


def resources(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    folder = f"/proc/{server.process.pid}"
    with open(f"{folder}/status", encoding="utf-8") as file:
        status = dict(line.split(":", 1) for line in file)
    return {"kilobytes": int(status["VmRSS"].split()[0]), "threads": int(status["Threads"]),
            "files": len(os.listdir(f"{folder}/fd"))}


def first_rate(fire, seconds):
    """Requests a second of all clients, if each asks again at once."""
    threads = [threading.Thread(target=fire.run, args=(f"warm-up {i}", ask_right, 0)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    fire.end.set()
    for thread in threads:
        thread.join()
    fire.end.clear()
    return len(fire.latencies) / seconds


def burn(server, seconds):
    """All threads for some seconds; returns the fire and the resources before and after."""
    text = check_models.write_on(server, check_models.tokens_of(server, PROMPT), TOKENS)
    rate = first_rate(Fire(server, text), min(5, seconds / 4))
    fire = Fire(server, text)
    source = random.Random(0)
    threads = [threading.Thread(target=fire.run, args=(f"asked {i}", ask_right,
                                                       lambda: source.expovariate(0.9 * rate / CLIENTS)))
               for i in range(CLIENTS)]
    threads += [threading.Thread(target=fire.run, args=(f"{action.__name__} {i}", action, pause))
                for i, (action, pause) in enumerate(FIRE)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 2)
    before = resources(server)
    time.sleep(seconds / 2)
    fire.end.set()
    for thread in threads:
        thread.join()
    time.sleep(2)
    return fire, before, resources(server)


def report(fire, before, after, seconds):
    times = sorted(fire.latencies)
    print(json.dumps({"seconds": seconds, "requests": len(times), "faults": len(fire.faults), "counts": fire.counts,
                      "median_ms": round(times[len(times) // 2] * 1e3, 2),
                      "p99_ms": round(times[len(times) * 99 // 100] * 1e3, 2), "before": before, "after": after}))
    for fault in fire.faults[:5]:
        print(fault)


def has_grown(before, after):
    """Between the middle and the end: pools of the server and of the C library grow for some seconds."""
    return (after["kilobytes"] > 1.05 * before["kilobytes"] + 49152 or after["threads"] > before["threads"] + 8 or
            after["files"] > before["files"] + 16)


def write_repository(build, folder):
    check_server.write_repository(folder)
    saved = check_models.train_writer(build, folder)
    config = check_models.DECOUPLED + check_models.parameter("slots", 4)
    shutil.copy(saved, check_models.add_model(folder, "writer", config))
    parameters = {"slots": 8, "evict_idle": 0, "max_idle_ms": MAX_IDLE_MS}
    config = "".join(check_models.parameter(key, value) for key, value in parameters.items())
    shutil.copy(saved, check_models.add_model(folder, "stepper", config))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, seconds = sys.argv[1], float(sys.argv[2])
    os.environ["MALLOC_ARENA_MAX"] = "2"  # of the server: one more for each thread would look like a leak
    with tempfile.TemporaryDirectory() as folder:
        write_repository(build, f"{folder}/repository")
        server = check_server.Server(build, f"{folder}/repository", f"{folder}/log",
                                     (*MODELS, "scores", "writer", "stepper"))
        try:
            fire, before, after = burn(server, seconds)
            check_server.ask(server, "ranker", 2)
            report(fire, before, after, seconds)
            assert not fire.faults and not has_grown(before, after)
        finally:
            code = server.stop()
            if code != 0:
                print(open(f"{folder}/log", encoding="utf-8", errors="replace").read()[-3000:])
        assert code == 0, f"the server ended with {code}"
    print(f"under fire: nothing lost, nothing wrong, nothing grown in {seconds:.0f} s")


if __name__ == "__main__":
    main()
