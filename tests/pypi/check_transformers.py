# SPDX-License-Identifier: MIT
"""Compares examples/transformers_tokens with the transformers library (PR-10).

  check_transformers.py PROGRAM      PROGRAM: examples/transformers_tokens
  check_transformers.py --make FOLDER   writes the two models of examples/transformers, and their tokens

Models of several shapes with random weights are saved by the library: in one file and in several, in F32, F16 and BF16.
From each, the program and the library write tokens after some prompts. They are the same where the library's logits
leave no doubt which token is the most probable.
"""
import os
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

WORDS = 64
COUNT = 8
DOUBT = 1e-3  # a difference of logits that rounding may turn round
PROMPTS = [[5, 17, 42], [0], [63, 1, 2, 3, 5, 8, 13, 21, 34, 55]]


def gpt2(**options):
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=32, initializer_range=0.6, bos_token_id=0,
                                      eos_token_id=0, **options))


def llama(**options):
    return LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, max_position_embeddings=32, initializer_range=0.6,
                                        **options))


SMALL_GPT2 = {"n_layer": 2, "n_embd": 16, "n_head": 2}
SMALL_LLAMA = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2,
               "intermediate_size": 40}

# The name, how the model is made, the type of its weights, and the largest file.
MODELS = [
    ("gpt2", lambda: gpt2(**SMALL_GPT2), torch.float32, "16KB"),
    ("llama", lambda: llama(**SMALL_LLAMA), torch.bfloat16, "8KB"),
    ("gpt2 in one file", lambda: gpt2(n_layer=3, n_embd=48, n_head=4, n_inner=100), torch.float32, "1GB"),
    ("gpt2 in f16", lambda: gpt2(n_layer=1, n_embd=32, n_head=1), torch.float16, "4KB"),
    ("llama with tied embeddings", lambda: llama(**SMALL_LLAMA, tie_word_embeddings=True), torch.float32, "8KB"),
    ("llama with wide heads", lambda: llama(num_hidden_layers=3, hidden_size=48, num_attention_heads=6,
                                            num_key_value_heads=1, head_dim=16, intermediate_size=128,
                                            rms_norm_eps=1e-5), torch.float32, "1GB"),
]


def save(number, folder):
    _, make, kind, largest = MODELS[number]
    torch.manual_seed(number + 3)
    make().to(kind).save_pretrained(folder, max_shard_size=largest)


def write_by_library(model, prompt):
    """The tokens after a prompt, up to the first that is in doubt."""
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(COUNT):
            best = torch.topk(model(torch.tensor([tokens])).logits[0, -1], 2)
            if best.values[0] - best.values[1] < DOUBT:
                break
            tokens.append(int(best.indices[0]))
    return tokens[len(prompt):]


def write_by_program(program, folder, prompt):
    command = [program, "cpu", folder, str(COUNT), *map(str, prompt)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [int(token) for token in output.rpartition(":")[2].split()]


def check(program, number, folder):
    save(number, folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for prompt in PROMPTS:
        wanted = write_by_library(model, prompt)
        got = write_by_program(program, folder, prompt)
        if not wanted or got[:len(wanted)] != wanted:
            sys.exit(f"{MODELS[number][0]}, after {prompt}: {got}, by transformers {wanted}")
    print(f"{MODELS[number][0]}: the tokens of transformers {transformers.__version__}")


def make_examples(folder):
    for number in range(2):
        name = MODELS[number][0]
        save(number, f"{folder}/{name}")
        os.remove(f"{folder}/{name}/generation_config.json")
        model = transformers.AutoModelForCausalLM.from_pretrained(f"{folder}/{name}", dtype=torch.float32).eval()
        print(f"transformers/{name}:", *write_by_library(model, PROMPTS[0]))


def main():
    transformers.utils.logging.disable_progress_bar()
    if len(sys.argv) == 3 and sys.argv[1] == "--make":
        make_examples(sys.argv[2])
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for number in range(len(MODELS)):
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], number, folder)
    print(f"{len(MODELS)} passed, 0 failed")


if __name__ == "__main__":
    main()
