#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures PyTorch's private pool when one capture allocates and frees a list of buffers in order.

  bench/memory_vs_torch.py --buffers FILE [--device cuda:0] [--json]

The list has the format of `rondo plan`: id,lower,upper,size. The buffers are tensors of bytes in one CUDAGraph. The
size of its private pool is the growth of PyTorch's reserved memory during the capture. Exit status: 0 measured, 1
failed, 77 skipped, because PyTorch or a GPU that it can use is missing.
"""
import argparse
import csv
import json
import sys

from trees_vs_torch import SKIPPED, Skip, load_torch


def read_events(path):
    """Allocs and frees in order of time; frees come before allocs of the same time."""
    events = []
    with open(path, encoding="utf-8", newline="") as file:
        for index, row in enumerate(csv.DictReader(file)):
            events.append((int(row["lower"]), 1, index, int(row["size"])))
            events.append((int(row["upper"]), 0, index, 0))
    return sorted(events)


def pool_bytes(torch, events):
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    graph, live = torch.cuda.CUDAGraph(), {}
    with torch.cuda.graph(graph):
        for _, begins, index, size in events:
            if begins:
                live[index] = torch.empty(size, dtype=torch.uint8, device="cuda")
                live[index][:1].zero_()
            else:
                del live[index]
    return torch.cuda.memory_reserved() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buffers", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        torch = load_torch(arguments.device)
    except Skip as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED
    held = pool_bytes(torch, read_events(arguments.buffers))
    print(json.dumps({"file": arguments.buffers, "torch": torch.__version__, "bytes": held}) if arguments.json
          else f"{held} bytes in PyTorch's private pool")
    return 0


if __name__ == "__main__":
    sys.exit(main())
