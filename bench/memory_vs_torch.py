#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch's private pool holds for the allocations of a list of buffers, made in a capture in their order.

  bench/memory_vs_torch.py --buffers FILE [--device cuda:0] [--json]

The list is that of `rondo plan`: id,lower,upper,size. Buffers are tensors of bytes in one CUDAGraph; what its private
pool holds is how much PyTorch's reserved memory grows in the capture. Exit status: 0 measured, 1 failed, 77 skipped,
without PyTorch or a GPU that it can use.
"""
import argparse
import csv
import json
import sys

from trees_vs_torch import SKIPPED, Skip, load_torch


def read_events(path):
    """Allocs and frees in order of time; what ends at a time is freed before what begins then."""
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
