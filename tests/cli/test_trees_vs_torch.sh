#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/trees_vs_torch.py with a PyTorch that only looks like one, and with programs in the place of Rondo's: what it says
# of both sides, and that it skips where there is nothing to compare.
source "$(dirname "$0")/support.sh" "$1"

script=$here/../../bench/trees_vs_torch.py
source "$here/support_torch.sh"

cat >modules/torch.py <<'END'
import contextlib, time
__version__, half = "0.0", "half"
class cuda:
    is_there = True
    is_available = staticmethod(lambda: cuda.is_there)
    set_device = synchronize = staticmethod(lambda *_: None)
    get_device_name = staticmethod(lambda: "a GPU")
    current_stream = staticmethod(lambda: cuda.Stream())
    stream = graph = staticmethod(lambda *_: contextlib.nullcontext())
    class Stream:
        wait_stream = staticmethod(lambda *_: None)
    class CUDAGraph:
        replay = staticmethod(lambda: time.sleep(1e-5))
class nn:
    Linear, ReLU = (staticmethod(lambda *_: None),) * 2
    class Sequential:
        def __init__(self, *modules): pass
        def cuda(self): return self
        half = eval = cuda
        def __call__(self, x): time.sleep(1e-4)
class compiler:
    cudagraph_mark_step_begin = staticmethod(lambda: None)
class _dynamo:
    reset = staticmethod(lambda: None)
set_grad_enabled = randn = lambda *_, **__: None
compile = lambda model, mode: model
END
program() {
  printf '#!/bin/sh\ncase "$*" in "mlp --device cuda:0 --json "*" --calls 5") ;; *) exit 3 ;; esac\necho %s\n' "'$1'" >program
  chmod +x program
}
program '{"products": "cuBLAS", "host_us": 2.0, "total_us": 20.0}'
run 0 --program ./program --calls 5 --json
json_holds '.torch == "0.0"' '.gpu == "a GPU"' '[.rows[].layers] == [4, 32, 32]' \
  'all(.rows[]; .torch_trees.host_us >= 100 and .torch_replay.host_us >= 10 and .rondo.host_us == 2 and
    .host_ratio >= 50 and .total_ratio >= 5)' '.bars_are_met'
run 0 --program ./program --calls 5
grep -Eq '^4 x 256, batch 8 .* met$' out || die "no row: $(cat out)"

program '{"products": "cuBLAS", "host_us": 1e9, "total_us": 1e9}'
run 0 --program ./program --calls 5
grep -Eq '^32 x 1024, batch 64 .* missed$' out || die "a target is met: $(cat out)"
program '{"products": "own", "host_us": 2.0, "total_us": 20.0}'
run 77 --program ./program --calls 5
grep -q 'skipped: no cuBLAS' err || die "no reason: $(cat err)"
run 1 --program /bin/false --calls 5
grep -q 'exit status 1' err || die "no reason: $(cat err)"
sed -i 's/is_there = True/is_there = False/' modules/torch.py
run 77 --program ./program
sed -i 's/is_there = False/is_there = True/; s/^compile = .*/compile = lambda model, mode: lambda x: 1 \/ 0/' modules/torch.py
program '{"products": "cuBLAS", "host_us": 2.0, "total_us": 20.0}'
run 77 --program ./program --calls 5
grep -q 'skipped: PyTorch cannot compile a model here: division by zero' err || die "no reason: $(cat err)"
