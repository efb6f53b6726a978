# SPDX-License-Identifier: MIT
"""The networks that export_models.py exports: their modules, with random weights, and their inputs.

NETWORKS has a row for each: a function that makes a Network in the size "small", which shows that it is imported rightly,
or "full", the size in which the architecture is known, which is measured. Inputs are given by their batch, and by `step`, 0
or 1: two different lengths where a network has any.
"""
import dataclasses
import typing

import torch
import torchvision
import transformers
from torch import nn


@dataclasses.dataclass
class Network:
    module: nn.Module
    inputs: typing.Callable  # (batch, step) -> {name: tensor}
    dimensions: dict  # {name of an input: {dimension: its name}}, of those that vary
    outputs: list  # names


def images(channels, edge):
    return lambda batch, step: {"images": torch.randn(batch, channels, edge, edge)}


def tokens(words, lengths):
    return lambda batch, step: {"tokens": torch.randint(words, (batch, lengths[step]))}


IMAGES = {"images": {0: "batch"}}


# Images --------------------------------------------------------------------------------------------------------------


class Scores(nn.Module):
    """A network of torchvision, whose input is called `images`."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(images)


def see_images(network, edge):
    """Batch norms get the means and variances of some images."""
    network.train()
    with torch.no_grad():
        for _ in range(3):
            network(torch.randn(4, 3, edge, edge))
    return network


def of_torchvision(network, edge):
    return Network(Scores(see_images(network, edge)), images(3, edge), IMAGES, ["scores"])


def resnet50(size):
    if size == "full":
        return of_torchvision(torchvision.models.resnet50(), 224)
    block = torchvision.models.resnet.Bottleneck
    return of_torchvision(torchvision.models.ResNet(block, [2, 1, 1, 1], num_classes=10, width_per_group=16), 64)


def mobilenet_v3(size):
    if size == "full":
        return of_torchvision(torchvision.models.mobilenet_v3_large(), 224)
    return of_torchvision(torchvision.models.mobilenet_v3_small(num_classes=10), 64)


def efficientnet(size):
    if size == "full":
        return of_torchvision(torchvision.models.efficientnet_b0(), 224)
    return of_torchvision(torchvision.models.efficientnet_b0(num_classes=10), 64)


class Logits(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(pixel_values=images).logits


def vit(size):
    sizes = {} if size == "full" else {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                                       "intermediate_size": 96, "image_size": 32, "patch_size": 8}
    config = transformers.ViTConfig(num_labels=1000 if size == "full" else 10, **sizes)
    return Network(Logits(transformers.ViTForImageClassification(config)), images(3, config.image_size), IMAGES,
                   ["scores"])


class Unet(nn.Module):
    """Pairs of convolutions; max pooling on the way down, transposed convolutions and concatenation on the way up."""

    def __init__(self, width, depth):
        super().__init__()
        widths = [width << level for level in range(depth)]
        self.down = nn.ModuleList(self.pair(inner, outer) for inner, outer in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * outer, outer, 2, stride=2) for outer in widths[-2::-1])
        self.join = nn.ModuleList(self.pair(2 * outer, outer) for outer in widths[-2::-1])
        self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(width, 2, 1)

    @staticmethod
    def pair(inner, outer):
        return nn.Sequential(*(layer for channels in (inner, outer) for layer in
                               (nn.Conv2d(channels, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU())))

    def forward(self, images):
        levels = []
        for pair in self.down:
            images = pair(self.pool(images) if levels else images)
            levels.append(images)
        for up, join, level in zip(self.up, self.join, levels[-2::-1]):
            images = join(torch.cat([level, up(images)], 1))
        return self.last(images)


def unet(size):
    edge = 256 if size == "full" else 32
    network = see_images(Unet(32, 4) if size == "full" else Unet(8, 3), edge)
    return Network(network, images(3, edge), IMAGES, ["mask"])


# Texts and sound -----------------------------------------------------------------------------------------------------


class NextTokens(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens):
        return self.network(input_ids=tokens, use_cache=False).logits


def gpt2(size):
    sizes = {} if size == "full" else {"n_layer": 2, "n_embd": 48, "n_head": 4, "vocab_size": 100, "n_positions": 64}
    config = transformers.GPT2Config(**sizes)
    return Network(NextTokens(transformers.GPT2LMHeadModel(config)),
                   tokens(config.vocab_size, [64, 96] if size == "full" else [12, 7]),
                   {"tokens": {0: "batch", 1: "length"}}, ["logits"])


class States(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens, mask, parts):
        out = self.network(input_ids=tokens, attention_mask=mask, token_type_ids=parts)
        return out.last_hidden_state, out.pooler_output


def bert(size):
    sizes = {} if size == "full" else {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4,
                                       "intermediate_size": 96, "vocab_size": 100, "max_position_embeddings": 64}
    config = transformers.BertConfig(**sizes)
    lengths = [128, 100] if size == "full" else [12, 9]

    def inputs(batch, step):
        length = lengths[step]
        used = torch.randint(length // 2, length + 1, (batch, 1))  # of each text; the rest is padding
        return {"tokens": torch.randint(config.vocab_size, (batch, length)),
                "mask": (torch.arange(length)[None] < used).long(), "parts": torch.randint(2, (batch, length))}

    return Network(States(transformers.BertModel(config)), inputs,
                   {name: {0: "batch", 1: "length"} for name in ("tokens", "mask", "parts")}, ["states", "pooled"])


class CachedStep(nn.Module):
    """Tokens behind a cache of keys and values, which is an input and, longer by these tokens, an output."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens, mask, places, past):
        cache = transformers.DynamicCache()
        for layer, (keys, values) in enumerate(past):
            cache.update(keys, values, layer)
        out = self.network(input_ids=tokens, attention_mask=mask, position_ids=places, past_key_values=cache,
                           use_cache=True)
        return out.logits, [(layer.keys, layer.values) for layer in out.past_key_values.layers]


def llama(size):
    sizes = ({"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 1408,
              "vocab_size": 8000} if size == "full" else
             {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 96,
              "vocab_size": 100})
    config = transformers.LlamaConfig(num_key_value_heads=2, max_position_embeddings=512, attn_implementation="eager",
                                      **sizes)
    pasts, head = ([127, 60] if size == "full" else [5, 8]), config.hidden_size // config.num_attention_heads

    def inputs(batch, step):
        past, new = pasts[step], 1 + 2 * step
        cache = [tuple(torch.randn(batch, 2, past, head) for _ in range(2)) for _ in range(config.num_hidden_layers)]
        return {"tokens": torch.randint(config.vocab_size, (batch, new)),
                "mask": torch.ones(batch, past + new, dtype=torch.long),
                "places": torch.arange(past, past + new)[None].repeat(batch, 1), "past": cache}

    return Network(CachedStep(transformers.LlamaForCausalLM(config)), inputs,
                   {"tokens": {0: "batch", 1: "new"}, "mask": {0: "batch", 1: "all"}, "places": {0: "batch", 1: "new"},
                    "past": {0: "batch", 2: "past"}},
                   ["logits", *(f"present.{layer}.{part}" for layer in range(config.num_hidden_layers)
                                for part in range(2))])


class Encoder(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, features):
        return self.network(input_features=features).last_hidden_state


def whisper(size):
    sizes = ({"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
             if size == "full" else
             {"d_model": 48, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 96,
              "max_source_positions": 40})
    config = transformers.WhisperConfig(decoder_layers=1, **sizes)
    encoder = transformers.WhisperModel(config).get_encoder()
    length = 2 * config.max_source_positions
    return Network(Encoder(encoder), lambda batch, step: {"features": torch.randn(batch, config.num_mel_bins, length)},
                   {"features": {0: "batch"}}, ["states"])


class Recurrent(nn.Module):
    def __init__(self, words, width, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, bidirectional=True)
        self.last = nn.Linear(2 * width, 5)

    def forward(self, tokens):
        states, _ = self.lstm(self.words(tokens))
        return self.last(states.mean(1))


def lstm(size):
    words, width, lengths = (10000, 256, [64, 40]) if size == "full" else (50, 16, [9, 6])
    return Network(Recurrent(words, width, 2), tokens(words, lengths),
                   {"tokens": {0: "batch", 1: "length"}}, ["scores"])


# Others --------------------------------------------------------------------------------------------------------------


def perceptron(*widths):
    layers = [layer for inner, outer in zip(widths, widths[1:]) for layer in (nn.Linear(inner, outer), nn.ReLU())]
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    """Numbers and categories; each category is one row of a table or the sum of several. Their products, pair by pair."""

    def __init__(self, rows, width, tables, bottom, top):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = perceptron(13, *bottom, width)
        self.top = nn.Sequential(perceptron((tables + 1) * tables // 2 + width, *top), nn.Linear(top[-1], 1))
        below = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", below[0] * (tables + 1) + below[1])

    def forward(self, numbers, categories):
        dense = self.bottom(numbers)
        looked_up = [table(categories[:, i]).sum(1) for i, table in enumerate(self.tables)]
        vectors = torch.stack([dense, *looked_up], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.top(torch.cat([dense, products.index_select(1, self.pairs)], 1)))


def dlrm(size):
    rows, width, tables, several = (100000, 64, 26, 2) if size == "full" else (50, 8, 4, 2)
    module = (Dlrm(rows, width, tables, [512, 256], [512, 256]) if size == "full" else
              Dlrm(rows, width, tables, [16], [16, 8]))
    return Network(module, lambda batch, step: {"numbers": torch.randn(batch, 13),
                                                "categories": torch.randint(rows, (batch, tables, several))},
                   {"numbers": {0: "batch"}, "categories": {0: "batch"}}, ["click"])


def mlp(size):
    widths = (784, 1024, 1024, 1024) if size == "full" else (20, 32, 16)

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(perceptron(*widths), nn.Linear(widths[-1], 10))

        def forward(self, x):
            return self.layers(x)

    return Network(Mlp(), lambda batch, step: {"x": torch.randn(batch, widths[0])}, {"x": {0: "batch"}}, ["scores"])


class Chain(nn.Module):
    """Fifty operators that compute next to nothing, so that what is left is the cost of a run."""

    def __init__(self):
        super().__init__()
        self.shifts = nn.ParameterList(torch.randn(64) for _ in range(25))

    def forward(self, x):
        for shift in self.shifts:
            x = torch.softmax(x + shift, -1)
        return x


def chain(size):
    return Network(Chain(), lambda batch, step: {"x": torch.randn(batch, 64)}, {"x": {0: "batch"}}, ["y"])


# Detectors -----------------------------------------------------------------------------------------------------------


class Found(nn.Module):
    """What a detector of torchvision finds in one image: how much that is depends on the image. Boxes are from 0 to 1."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, image):
        found = self.network([image])[0]
        return found["boxes"] / image.shape[-1], found["scores"], found["labels"]


def pictures(count, edge=320):
    """Random, but smooth, so that places differ."""
    return nn.functional.interpolate(torch.rand(count, 3, 20, 20), size=(edge, edge), mode="bilinear")


def of_detector(network, *modules):
    """With means and variances of some pictures. `modules` get features, one after the other."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        for _ in range(3):
            value = 2 * pictures(4) - 1
            for module in modules:
                value = module(value)
    network.eval()
    return Network(Found(network), lambda batch, step: {"image": pictures(1)[0]}, {}, ["boxes", "scores", "labels"])


def ssdlite():
    network = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=4, detections_per_img=20, topk_candidates=30, score_thresh=0.4)
    with torch.no_grad():
        for layers in network.head.classification_head.module_list:
            layers[-1].weight.mul_(4)  # scores are far from each other
    return of_detector(network, network.backbone, lambda features: network.head(list(features.values())))


def faster_rcnn():
    network = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=4, rpn_pre_nms_top_n_test=60, rpn_post_nms_top_n_test=20,
        box_detections_per_img=20)
    with torch.no_grad():  # scores are far from each other
        network.rpn.head.cls_logits.weight.mul_(8)
        network.roi_heads.box_predictor.cls_score.weight.mul_(0.3)
    return of_detector(network, network.backbone)


NETWORKS = {"gpt2": gpt2, "llama": llama, "bert": bert, "vit": vit, "resnet50": resnet50, "mobilenet_v3": mobilenet_v3,
            "efficientnet": efficientnet, "unet": unet, "whisper": whisper, "dlrm": dlrm, "lstm": lstm, "mlp": mlp,
            "chain": chain}

# Their shapes depend on data, so they run in parts. They have one size.
DETECTORS = {"ssdlite": ssdlite, "faster_rcnn": faster_rcnn}
