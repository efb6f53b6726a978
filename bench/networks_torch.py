#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The networks of rondo_bench networks (bench/networks) in PyTorch, and their steps.

  bench/networks_torch.py --network NAME --weights FILE --write
  bench/networks_torch.py --network NAME --weights FILE [--way eager|compile|graph] [--losses N] [--device cuda:0]

With --write it makes the file: random weights, and inputs as input.NAME. Otherwise it takes turns: it reads numbers of
steps from standard input, and answers each with the times in microseconds, like rondo_bench networks --turns. At the end
it prints a JSON object. The parameters have the same names and shapes as in bench/networks; `compile` is torch.compile
of the network and its loss, and `graph` a torch.cuda.CUDAGraph of the whole step. Optimizers are fused where PyTorch
has fused ones. Peaks of memory are of the process, or on a GPU of what PyTorch allocated there.
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

WARM_UPS, CACHED = 2, 128


# Transformers --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    """A transformer's block, which normalises before its two parts, or after their sums."""

    def __init__(self, width, heads, gelu, causal=False, normalises_after=False):
        super().__init__()
        self.heads, self.gelu, self.causal, self.normalises_after = heads, gelu, causal, normalises_after
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.hidden, self.output = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x, mask):
        batch, context, width = x.shape
        q, k, v = self.qkv(x).view(batch, context, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.join(y.transpose(1, 2).reshape(batch, context, width))

    def feed_forward(self, x):
        return self.output(functional.gelu(self.hidden(x), approximate=self.gelu))

    def forward(self, x, mask=None):
        if self.normalises_after:
            x = self.norm1(x + self.attend(x, mask))
            return self.norm2(x + self.feed_forward(x))
        x = x + self.attend(self.norm1(x), mask)
        return x + self.feed_forward(self.norm2(x))


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, context, batch):
        super().__init__()
        self.sizes = (batch, context, vocabulary)
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        for table in (self.tokens, self.places):  # as GPT-2 does; with PyTorch's default, logits reach the hundreds
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads, "tanh", causal=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def inputs(self):
        batch, context, vocabulary = self.sizes
        return {name: torch.randint(vocabulary, (batch, context)) for name in ("tokens", "labels")}

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


class Bert(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, context, batch, classes):
        super().__init__()
        self.sizes = (batch, context, vocabulary, classes)
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.parts, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, "none", normalises_after=True) for _ in range(layers))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, classes)

    def inputs(self):
        batch, context, vocabulary, classes = self.sizes
        return {"tokens": torch.randint(vocabulary, (batch, context)), "parts": torch.randint(2, (batch, context)),
                "lengths": torch.randint(context // 2, context + 1, (batch,)), "labels": torch.randint(classes, (batch,))}

    def forward(self, tokens, parts, lengths, labels):
        mask = torch.arange(tokens.shape[1]) < lengths[:, None, None, None]
        x = self.norm(self.tokens(tokens) + self.places.weight + self.parts(parts))
        for block in self.blocks:
            x = block(x, mask)
        return functional.cross_entropy(self.head(torch.tanh(self.pool(x[:, 0]))), labels)


class Vit(nn.Module):
    def __init__(self, layers, width, heads, patch, edge, batch, classes):
        super().__init__()
        self.sizes = (batch, edge, classes)
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Embedding((edge // patch) ** 2 + 1, width)
        self.blocks = nn.ModuleList(Block(width, heads, "none") for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def inputs(self):
        batch, edge, classes = self.sizes
        return {"images": torch.randn(batch, 3, edge, edge), "labels": torch.randint(classes, (batch,))}

    def forward(self, images, labels):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(self.norm(x[:, 0])), labels)


class LlamaBlock(nn.Module):
    def __init__(self, width, hidden, heads, groups):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.qkv = nn.Linear(width, (heads + 2 * groups) * self.head, bias=False)
        self.join = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def project(self, x, angles):
        """q, k and v as [batch, heads, context, head]; q and k are rotated."""
        batch, context, _ = x.shape
        rows = self.qkv(self.norm1(x)).view(batch, context, -1, self.head).transpose(1, 2)
        q, k, v = rows.split((self.heads, self.groups, self.groups), 1)
        cos, sin = angles

        def rotate(y):
            first, second = y.chunk(2, -1)
            return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

        return rotate(q), rotate(k), v

    def finish(self, x, q, k, v, causal):
        repeats = self.heads // self.groups
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.join(y.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def forward(self, x, angles):
        return self.finish(x, *self.project(x, angles), True)


class Llama(nn.Module):
    def __init__(self, layers, width, hidden, heads, groups, vocabulary, context, batch):
        super().__init__()
        self.sizes = (batch, context, vocabulary)
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, hidden, heads, groups) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        angles = torch.outer(torch.arange(context).float(), 10000.0 ** (-torch.arange(0, size, 2).float() / size))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def inputs(self):
        batch, context, vocabulary = self.sizes
        return {name: torch.randint(vocabulary, (batch, context)) for name in ("tokens", "labels")}

    def forward(self, tokens, labels):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, (self.cos, self.sin))
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


class LlamaDecode(Llama):
    """One token behind a cache of CACHED tokens."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        batch, context, _ = self.sizes
        first = self.blocks[0]
        self.caches = [[torch.zeros(batch, first.groups, context, first.head) for _ in "kv"] for _ in self.blocks]

    def inputs(self):
        batch, _, vocabulary = self.sizes
        return {"tokens": torch.randint(vocabulary, (batch, 1)), "length": torch.tensor(CACHED)}

    def forward(self, tokens, length):
        del length
        x, row = self.tokens(tokens), slice(CACHED, CACHED + 1)
        for block, (k_cache, v_cache) in zip(self.blocks, self.caches):
            q, k, v = block.project(x, (self.cos[row], self.sin[row]))
            k_cache[:, :, row], v_cache[:, :, row] = k, v
            x = block.finish(x, q, k_cache[:, :, : CACHED + 1], v_cache[:, :, : CACHED + 1], False)
        return self.head(self.norm(x))


# Images --------------------------------------------------------------------------------------------------------------


class ResnetBlock(nn.Module):
    def __init__(self, width, to, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, to, 3, stride, 1, bias=False), nn.BatchNorm2d(to)
        self.conv2, self.norm2 = nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to)
        self.changes = stride != 1 or width != to
        if self.changes:
            self.shortcut, self.shortcut_norm = nn.Conv2d(width, to, 1, stride, bias=False), nn.BatchNorm2d(to)

    def forward(self, x):
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(y + (self.shortcut_norm(self.shortcut(x)) if self.changes else x))


class Resnet18(nn.Module):
    def __init__(self, batch, channels, edge, classes):
        super().__init__()
        self.sizes = (batch, channels, edge, classes)
        self.conv, self.norm = nn.Conv2d(channels, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        self.blocks = nn.Sequential(*(ResnetBlock(widths[i // 2 + i % 2], widths[i // 2 + 1],
                                                  2 if i > 0 and i % 2 == 0 else 1) for i in range(8)))
        self.head = nn.Linear(512, classes)

    def inputs(self):
        batch, channels, edge, classes = self.sizes
        images = {"images": torch.randn(batch, channels, edge, edge)}
        return {**images, "labels": torch.randint(classes, (batch,))} if self.training else images

    def forward(self, images, labels=None):
        x = functional.max_pool2d(torch.relu(self.norm(self.conv(images))), 3, 2, 1)
        x = self.head(self.blocks(x).mean((2, 3)))
        return x if labels is None else functional.cross_entropy(x, labels)


class Pair(nn.Module):
    """Two convolutions with their norms."""

    def __init__(self, channels, to):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to)
        self.conv2, self.norm2 = nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to)

    def forward(self, x):
        return torch.relu(self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x))))))


class UpPair(Pair):
    def __init__(self, to):
        super().__init__(2 * to, to)
        self.enlarge = nn.ConvTranspose2d(2 * to, to, 2, 2)

    def forward(self, x, side):
        return super().forward(torch.cat((side, self.enlarge(x)), 1))


class Unet(nn.Module):
    def __init__(self, batch, channels, edge, classes, levels=3, width=16):
        super().__init__()
        self.sizes = (batch, channels, edge, classes)
        self.down = nn.ModuleList(Pair(width << (i - 1) if i else channels, width << i) for i in range(levels))
        self.middle = Pair(width << (levels - 1), width << levels)
        self.up = nn.ModuleList(UpPair(width << i) for i in range(levels))
        self.head = nn.Conv2d(width, classes, 1)

    def inputs(self):
        batch, channels, edge, classes = self.sizes
        return {"images": torch.randn(batch, channels, edge, edge), "labels": torch.randint(classes, (batch, edge, edge))}

    def forward(self, images, labels):
        x, sides = images, []
        for pair in self.down:
            sides.append(pair(x))
            x = functional.max_pool2d(sides[-1], 2)
        x = self.middle(x)
        for pair, side in zip(reversed(self.up), reversed(sides)):
            x = pair(x, side)
        return functional.cross_entropy(self.head(x), labels)


# Others --------------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, make, layers, width, hidden, vocabulary, steps, batch):
        super().__init__()
        self.sizes = (steps, batch, vocabulary)
        self.tokens, self.recurrent = nn.Embedding(vocabulary, width), make(width, hidden, layers)
        self.head = nn.Linear(hidden, vocabulary)

    def inputs(self):
        steps, batch, vocabulary = self.sizes
        return {name: torch.randint(vocabulary, (steps, batch)) for name in ("tokens", "labels")}

    def forward(self, tokens, labels):
        x, _ = self.recurrent(self.tokens(tokens))
        return functional.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class Dlrm(nn.Module):
    def __init__(self, batch, dense, tables, rows, width):
        super().__init__()
        self.sizes = (batch, dense, tables, rows)
        parts = tables + 1
        self.bottom = self.layers(dense, 512, 256, 64, width)
        self.top = self.layers(width + parts * tables // 2, 512, 256, 1)
        self.tables = nn.ModuleList(nn.Embedding(rows, width, sparse=True) for _ in range(tables))

    @staticmethod
    def layers(*widths):
        return nn.ModuleList(nn.Linear(*pair) for pair in zip(widths, widths[1:]))

    def inputs(self):
        batch, dense, tables, rows = self.sizes
        parts = tables + 1
        pairs = [i * parts + k for i in range(parts) for k in range(i)]
        return {"dense": torch.rand(batch, dense), "rows": torch.randint(rows, (tables, batch)),
                "pairs": torch.tensor(pairs), "clicks": torch.randint(2, (batch,)).float()}

    def forward(self, dense, rows, pairs, clicks):
        x = dense
        for layer in self.bottom:
            x = torch.relu(layer(x))
        all_rows = torch.stack([x] + [table(row) for table, row in zip(self.tables, rows)], 1)
        products = (all_rows @ all_rows.transpose(1, 2)).flatten(1).index_select(1, pairs)
        x = torch.cat((x, products), 1)
        for layer in self.top[:-1]:
            x = torch.relu(layer(x))
        return functional.binary_cross_entropy_with_logits(self.top[-1](x).flatten(), clicks)


# The table -----------------------------------------------------------------------------------------------------------

ADAMW, MOMENTUM, SGD = "adamw", "momentum", "sgd"
RECURRENT = (2, 64, 256, 128, 64, 16)
# bench/networks/network.c has the same table. The optimizer is None for inference.
NETWORKS = {
    "gpt2_0.9m": (lambda: Gpt2(4, 128, 4, 128, 64, 8), ADAMW),
    "gpt2_14m": (lambda: Gpt2(8, 384, 6, 256, 128, 4), ADAMW),
    "gpt2_124m": (lambda: Gpt2(12, 768, 12, 50257, 128, 1), ADAMW),
    "gpt2_14m_bf16": (lambda: Gpt2(8, 384, 6, 256, 128, 4), ADAMW),
    "llama_32m": (lambda: Llama(10, 512, 1376, 8, 4, 3072, 128, 2), ADAMW),
    "llama_32m_decode": (lambda: LlamaDecode(10, 512, 1376, 8, 4, 3072, 256, 1), None),
    "resnet18": (lambda: Resnet18(8, 3, 128, 100), MOMENTUM),
    "resnet18_eval": (lambda: Resnet18(1, 3, 224, 1000), None),
    "dlrm_1000": (lambda: Dlrm(128, 13, 26, 1000, 16), SGD),
    "dlrm_100000": (lambda: Dlrm(128, 13, 26, 100000, 16), SGD),
    "bert": (lambda: Bert(4, 256, 4, 30522, 128, 8, 2), ADAMW),
    "vit": (lambda: Vit(12, 192, 3, 16, 224, 4, 1000), ADAMW),
    "lstm": (lambda: Recurrent(nn.LSTM, *RECURRENT), ADAMW),
    "gru": (lambda: Recurrent(nn.GRU, *RECURRENT), ADAMW),
    "unet": (lambda: Unet(4, 1, 64, 2), ADAMW),
}


def make_network(name):
    make, optimizer = NETWORKS[name]
    torch.manual_seed(1)
    network = make().train(optimizer is not None)
    return network, network.inputs(), optimizer


def make_optimizer(network, name, capturable):
    if name == ADAMW:
        return torch.optim.AdamW(network.parameters(), lr=0.001, weight_decay=0.01, fused=True, capturable=capturable)
    if name == MOMENTUM:
        return torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, fused=True)
    return torch.optim.SGD(network.parameters(), lr=0.001)  # fused SGD takes no sparse gradients


def make_step(network, inputs, optimizer_name, is_bf16, way):
    forward, kind = network, next(network.parameters()).device.type
    if way == "compile":
        from torch._inductor import config  # not at the top: the memory of eager steps would contain it

        config.cpp.dynamic_threads = True  # one compilation serves all numbers of threads
        forward = torch.compile(network)
    if optimizer_name is None:
        def infer():
            with torch.no_grad():
                return forward(**inputs)
        return infer
    optimizer = make_optimizer(network, optimizer_name, way == "graph")

    def train():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(kind, torch.bfloat16, enabled=is_bf16):
            loss = forward(**inputs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return train


def capture(step):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        step()
    return graph.replay


# Turns ---------------------------------------------------------------------------------------------------------------


def status_bytes(field):
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def peak_bytes(device, start_bytes):
    return status_bytes("VmHWM:") - start_bytes if device == "cpu" else torch.cuda.max_memory_allocated(device)


def time_step(step, device):
    begin = time.perf_counter()
    step()
    if device != "cpu":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - begin) * 1e6


def write_weights(network, inputs, path):
    from safetensors.torch import save_file

    states = {name: state for name, state in network.state_dict().items() if state.is_floating_point()}
    values = {f"input.{name}": value if value.is_floating_point() else value.int() for name, value in inputs.items()}
    save_file({name: value.contiguous() for name, value in {**states, **values}.items()}, path)


def load_weights(network, inputs, path):
    from safetensors import safe_open

    with safe_open(path, "pt") as file, torch.no_grad():
        for name, state in network.state_dict().items():
            if state.is_floating_point():
                state.copy_(file.get_tensor(name))
        for name, value in inputs.items():
            value.copy_(file.get_tensor(f"input.{name}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", required=True, choices=NETWORKS)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--way", choices=("eager", "compile", "graph"), default="eager")
    parser.add_argument("--losses", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_default_device(arguments.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # F32 is exact in Rondo, too
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # the peak begins again
    start_bytes = status_bytes("VmRSS:")
    network, inputs, optimizer = make_network(arguments.network)
    if arguments.write:
        write_weights(network, inputs, arguments.weights)
        return 0
    load_weights(network, inputs, arguments.weights)
    step = make_step(network, inputs, optimizer, arguments.network.endswith("bf16"), arguments.way)
    results = [step() for _ in range(arguments.losses + WARM_UPS)]
    losses = [float(loss) for loss in results[: arguments.losses]] if optimizer else []
    del results
    if arguments.way == "graph":
        step = capture(step)
    print("ready", flush=True)
    for line in sys.stdin:
        print(*(f"{time_step(step, arguments.device):.3f}" for _ in range(int(line))), flush=True)
    print(json.dumps({"losses": losses, "peak_bytes": peak_bytes(arguments.device, start_bytes)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
