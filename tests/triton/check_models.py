# SPDX-License-Identifier: MIT
"""Tests models that are no ONNX files in a real Triton Inference Server: check_models.py BUILD

They are the examples as shared objects, and models that `rondo train --save` writes: one of them writes texts in
sequences. BUILD has the targets rondo_tool and
rondo_served_examples.
"""
import json
import os
import queue
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy
import tritonclient.grpc
import tritonclient.http

from check_server import refused, run_tests

RHYME = b"hey diddle diddle the cow jumped over the moon "
TABLES, ROWS, DENSE, BAG = 8, 50, 13, 2  # of examples/recommender.c
CONTEXT = 16  # of examples/gpt.c


def read_weights(path):
    """The tensors and the metadata of a safetensors file."""
    types = {"F32": numpy.float32, "I32": numpy.int32}
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        content = file.read()
    metadata = header.pop("__metadata__", {})
    return {name: numpy.frombuffer(content[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}, metadata


def infer(server, model, **inputs):
    tensors = []
    for name, values in inputs.items():
        kind = {numpy.dtype("float32"): "FP32", numpy.dtype("int32"): "INT32"}[values.dtype]
        tensors.append(tritonclient.http.InferInput(name, values.shape, kind))
        tensors[-1].set_data_from_numpy(values)
    return server.http.infer(model, tensors)


def layers(weights, name, x, ends_with_relu):
    for i in range(2):
        x = x @ weights[f"{name}.{i}.weight"] + weights[f"{name}.{i}.bias"]
        x = numpy.maximum(x, 0) if i == 0 or ends_with_relu else x
    return x


def recommend(weights, dense, rows):
    """What examples/recommender.c computes."""
    x = layers(weights, "bottom", dense, True)
    vectors = numpy.concatenate([x[:, None], weights["tables"][rows].sum(axis=2)], axis=1)
    pairs = (vectors @ vectors.transpose(0, 2, 1)).reshape(len(x), -1)[:, weights["pairs"]]
    return layers(weights, "top", numpy.concatenate([x, pairs], axis=1), False)


def test_ts1_the_recommender_of_the_examples(server):
    weights, _ = read_weights(f"{server.repository}/recommender/1/weights.safetensors")
    random = numpy.random.default_rng(1)
    for count in (1, 5, 64):
        dense = random.uniform(-1, 1, (count, DENSE)).astype(numpy.float32)
        rows = (random.integers(0, ROWS, (count, TABLES, BAG)) + numpy.arange(TABLES)[:, None] * ROWS).astype(numpy.int32)
        logits = infer(server, "recommender", dense=dense, rows=rows).as_numpy("logits")
        numpy.testing.assert_allclose(logits, recommend(weights, dense, rows), rtol=1e-3, atol=1e-3)


def test_ts1_the_gpt_of_the_examples(server):
    text = RHYME[RHYME.index(b"the cow") - CONTEXT:RHYME.index(b"the cow")]
    for _ in range(28):
        window = numpy.frombuffer(text[-CONTEXT:], numpy.uint8).astype(numpy.int32)[None]
        logits = infer(server, "gpt", tokens=window).as_numpy("logits")
        text += bytes([logits[0, -1].argmax()])
    assert text[CONTEXT:] == b"the cow jumped over the moon", text


def test_ts1_a_saved_model_of_the_kind_character(server):
    weights, metadata = read_weights(f"{server.repository}/character/1/model.safetensors")
    vocabulary = bytes.fromhex(metadata["vocabulary"])
    tokens = numpy.array([[vocabulary.index(b) for b in RHYME[i:i + 8]] for i in range(7)], numpy.int32)
    logits = infer(server, "character", tokens=tokens).as_numpy("logits")
    hidden = numpy.tanh(weights["embedding"][tokens].reshape(7, -1) @ weights["hidden.weight"] + weights["hidden.bias"])
    numpy.testing.assert_allclose(logits, hidden @ weights["output.weight"] + weights["output.bias"], rtol=1e-4, atol=1e-4)


def tokens_of(server, text):
    _, metadata = read_weights(f"{server.repository}/writer/1/model.safetensors")
    vocabulary = bytes.fromhex(metadata["vocabulary"])
    return numpy.array([[vocabulary.index(b) for b in text]], numpy.int32)


def write_on(server, tokens, count):
    """The most likely tokens, by the scores of the same model served without sequences."""
    written = []
    while len(written) < count:
        window = numpy.zeros((1, 32), numpy.int32)
        window[0, :tokens.shape[1]] = tokens
        logits = infer(server, "scores", tokens=window).as_numpy("logits")
        written.append(int(logits[0, tokens.shape[1] - 1].argmax()))
        tokens = numpy.append(tokens, [[written[-1]]], axis=1).astype(numpy.int32)
    return written


def step_inputs(client, tokens):
    tensors = [client.InferInput("tokens", tokens.shape, "INT32"), client.InferInput("seed", [1, 1], "INT64"),
               client.InferInput("temperature", [1, 1], "FP32")]
    for tensor, values in zip(tensors, [tokens, numpy.ones((1, 1), numpy.int64), numpy.zeros((1, 1), numpy.float32)]):
        tensor.set_data_from_numpy(values)
    return tensors


class Stream:
    """A gRPC stream. Answers are kept by the id of their request."""

    def __init__(self, server):
        self.client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.port + 1}")
        self.answers = queue.Queue()
        self.client.start_stream(lambda result, error: self.answers.put((result, error)))

    def ask(self, name, model, tokens, **options):
        self.client.async_stream_infer(model, step_inputs(tritonclient.grpc, tokens), request_id=name, **options)

    def take(self):
        """The id of a request, a token, and whether it is the last one."""
        result, error = self.answers.get(timeout=60)
        if error is not None:
            raise error
        response = result.get_response()
        return response.id, int(result.as_numpy("token")[0, 0]), response.parameters["triton_final_response"].bool_param

    def close(self):
        self.client.stop_stream()
        self.client.close()


def test_ts4_tokens_are_streamed(server):
    """More texts at once than there are slots."""
    expected = write_on(server, tokens_of(server, b"the cow "), 16)
    stream = Stream(server)
    texts = {f"text {i}": [] for i in range(9)}
    for name in texts:
        stream.ask(name, "writer", tokens_of(server, b"the cow "), parameters={"max_tokens": 16})
    ended = set()
    while len(ended) < len(texts):
        name, token, is_final = stream.take()
        assert name not in ended
        texts[name].append(token)
        ended |= {name} if is_final else set()
    assert all(tokens == expected for tokens in texts.values()), (texts, expected)
    stream.close()


def test_ts4_steps_of_sequences(server):
    """By HTTP, two sequences in turn; and by a stream, sent without waiting."""
    expected = write_on(server, tokens_of(server, b"the cow "), 8)
    tokens = {7: tokens_of(server, b"the cow "), "user": tokens_of(server, b"the cow ")}
    for i, token in enumerate(expected):
        for name in tokens:
            result = server.http.infer("stepper", step_inputs(tritonclient.http, tokens[name]), sequence_id=name,
                                       sequence_start=i == 0, sequence_end=i == 7)
            tokens[name] = result.as_numpy("token").astype(numpy.int32)
            assert tokens[name][0, 0] == token
    refused(lambda: server.http.infer("stepper", step_inputs(tritonclient.http, tokens[7]), sequence_id=7),
            "sequence 7 is not open")
    stream = Stream(server)
    for i, token in enumerate(expected):
        step = tokens_of(server, b"the cow ") if i == 0 else numpy.array([[expected[i - 1]]], numpy.int32)
        stream.ask(str(i), "writer", step, sequence_id=9, sequence_start=i == 0, sequence_end=i == 7)
    for i, token in enumerate(expected):
        assert stream.take() == (str(i), token, True)
    stream.close()


def translate_step(server, name, step, token, source=None):
    tensors = [tritonclient.http.InferInput("tokens", [1, 1], "INT32")]
    tensors[0].set_data_from_numpy(numpy.array([[token]], numpy.int32))
    if source is not None:
        tensors.append(tritonclient.http.InferInput("source", source.shape, "INT32"))
        tensors[1].set_data_from_numpy(source)
    return int(server.http.infer("translate", tensors, sequence_id=name, sequence_start=source is not None,
                                 sequence_end=step == 7).as_numpy("scores").argmax())


def test_ts4_sources_of_sequences(server):
    """An encoder and a decoder: the same texts one after the other, and in turn."""
    sources = {name: (numpy.arange(8 + name)[None] * 7 % 40 + name).astype(numpy.int32) % 40 for name in (1, 2, 3)}
    alone, together = {name: [0] for name in sources}, {name: [0] for name in sources}
    for name, source in sources.items():
        for step in range(8):
            alone[name].append(translate_step(server, name, step, alone[name][-1], source if step == 0 else None))
    for step in range(8):
        for name, source in sources.items():
            together[name].append(translate_step(server, name, step, together[name][-1], source if step == 0 else None))
    assert alone == together and alone[1] != alone[2], (alone, together)
    refused(lambda: translate_step(server, 4, 0, 0), "sequence 4 is not open")


def test_ts4_sequences_by_the_scheduler_of_the_server(server):
    """It keeps to as many sequences as it is told."""
    expected = write_on(server, tokens_of(server, b"the cow "), 4)
    stream = Stream(server)
    for i in range(4):
        for name in range(1, 7):
            step = tokens_of(server, b"the cow ") if i == 0 else numpy.array([[expected[i - 1]]], numpy.int32)
            stream.ask(f"{name}", "scheduled", step, sequence_id=name, sequence_start=i == 0, sequence_end=i == 3)
    texts = {f"{name}": [] for name in range(1, 7)}
    for _ in range(24):
        name, token, _ = stream.take()
        texts[name].append(token)
    assert all(tokens == expected for tokens in texts.values()), (texts, expected)
    stream.close()


def test_ts4_generate_stream_by_curl(server):
    expected = write_on(server, tokens_of(server, b"the cow "), 6)
    body = json.dumps({"tokens": tokens_of(server, b"the cow ")[0].tolist(), "seed": 1, "temperature": 0.0,
                       "max_tokens": 6})
    answer = subprocess.run(["curl", "-sS", "-d", body, f"{server.url()}/v2/models/writer/generate_stream"], check=True,
                            stdout=subprocess.PIPE).stdout.decode()
    tokens = [json.loads(line[len("data:"):])["token"] for line in answer.splitlines() if line.startswith("data:")]
    assert tokens == expected, answer
    refused(lambda: server.http.infer("stepper", step_inputs(tritonclient.http, tokens_of(server, b"the cow ")),
                                      parameters={"max_tokens": 2}), "decoupled: true")


def add_model(folder, name, config=""):
    os.makedirs(f"{folder}/{name}/1")
    with open(f"{folder}/{name}/config.pbtxt", "w", encoding="utf-8") as file:
        file.write(f'backend: "rondo"\n{config}')
    return f"{folder}/{name}/1"


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def train_writer(build, folder):
    """Trains a GPT and serves it as `scores`, without sequences; returns its file."""
    with open(f"{folder}/../text", "wb") as file:
        file.write(RHYME * 20)
    version = add_model(folder, "scores", parameter("slots", 0))
    subprocess.run([f"{build}/tools/rondo/rondo", "train", f"{folder}/../text", "--model", "gpt", "--steps", "80",
                    "--context", "32", "--layers", "2", "--width", "32", "--save", f"{version}/model.safetensors"],
                   check=True, stdout=subprocess.DEVNULL)
    return f"{version}/model.safetensors"


def write_repository(build, folder):
    for name in ("recommender", "gpt"):
        version = add_model(folder, name)
        shutil.copy(f"{build}/examples/{name}.so", f"{version}/model.so")
        subprocess.run([f"{build}/examples/{name}", "cpu", f"{version}/weights.safetensors"], check=True,
                       stdout=subprocess.DEVNULL)
    shutil.copy(f"{build}/examples/translate.so", f"{add_model(folder, 'translate')}/model.so")
    saved = train_writer(build, folder)
    oldest = "sequence_batching { oldest { max_candidate_sequences: 2 } max_sequence_idle_microseconds: 60000000 }\n"
    for name, config in [("writer", DECOUPLED + parameter("slots", 4)), ("stepper", ""),
                         ("scheduled", DECOUPLED + oldest + parameter("slots", 2))]:
        shutil.copy(saved, add_model(folder, name, config))
    version = add_model(folder, "character")
    subprocess.run([f"{build}/tools/rondo/rondo", "train", f"{folder}/../text", "--model", "character", "--steps", "50",
                    "--save", f"{version}/model.safetensors"], check=True, stdout=subprocess.DEVNULL)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        write_repository(sys.argv[1], f"{folder}/repository")
        run_tests(globals(), sys.argv[1], folder, ["recommender", "gpt", "scores", "writer", "stepper",
                                                  "scheduled", "character", "translate"])


if __name__ == "__main__":
    main()
