#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/gpt_vs_torch.py with a PyTorch that only looks like one, and with a program in the place of rondo_bench: what it
# says of both sides, and that it skips where there is nothing to compare.
source "$(dirname "$0")/support.sh" "$1"

script=$here/../../bench/gpt_vs_torch.py
source "$here/support_torch.sh"

cat >modules/torch.py <<'END'
import contextlib, time
from types import SimpleNamespace as Names
__version__, float32, bfloat16 = "0.0", "float32", "bfloat16"
class Anything:
    def __init__(self, *_, **__): pass
    def __call__(self, *_, **__): return self
    def __getattr__(self, _): return self
    def backward(self): time.sleep(1e-4)
class Stream(Anything):
    wait_stream = staticmethod(lambda *_: None)
class Graph(Anything):
    replay = staticmethod(lambda: time.sleep(1e-5))
reserved = iter(range(0, 1 << 40, 1 << 20))
cuda = Names(is_available=lambda: True, set_device=lambda *_: None, synchronize=lambda: None, empty_cache=lambda: None,
             get_device_name=lambda: "a GPU", current_stream=Stream, Stream=Stream, CUDAGraph=Graph,
             stream=lambda *_: contextlib.nullcontext(), graph=lambda *_: contextlib.nullcontext(),
             memory_reserved=lambda: next(reserved))
backends = Names(cuda=Names(matmul=Names(allow_tf32=False)))
nn = Names(Module=Anything, Embedding=Anything, Linear=Anything, LayerNorm=Anything, Sequential=Anything,
           ModuleList=lambda items: list(items), functional=Anything())
optim = Names(AdamW=Anything)
set_num_threads, get_num_threads = lambda _: None, lambda: 2
randint = lambda *_, **__: Anything()
manual_seed = arange = lambda *_: None
END
# program DEVICE HOST STEP: rondo_bench, by its times in microseconds.
program() {
  cat >program <<END
#!/bin/sh
case "\$*" in "training --device $1 --type "*" --seconds 0.02 --tf32 --json --layers 4 "*) ;; *) exit 3 ;; esac
echo '{"kernels": 100, "memory": {"planned": 4096},
  "recorded": {"host_us": $2, "step_us": $3, "step_us_min": $3, "step_us_max": $3},
  "eager": {"host_us": 50, "step_us": 60, "step_us_min": 55, "step_us_max": 70}}'
END
  chmod +x program
}
program cuda:0 1.0 5.0
run 0 --program ./program --seconds 0.02 --json
json_holds '.torch == "0.0"' '.device == "a GPU"' '[.rows[].type] == ["f32", "bf16"]' \
  'all(.rows[]; .kernels == 100 and .torch_eager.host_us >= 100 and .torch_graph.total_us >= 10 and
    .recorded == {"host_us": 1, "step_us": 5, "least_us": 5, "most_us": 5} and .rondo_eager.most_us == 70 and
    .ratios.eager_host >= 100 and .ratios.rondo_eager_total == 12 and .ratios.graph_total >= 2 and .ratios.pool == 256 and all(.met[]; .))'
run 0 --program ./program --seconds 0.02 --types bf16
grep -Eq "^bf16 +12.00 times faster than Rondo's eager step; the target is 1: met$" out || die "no line of a target: $(cat out)"

program cuda:0 1e9 1e9
run 0 --program ./program --seconds 0.02
grep -Eq '^f32 .* times faster than the CUDAGraph; the target is 1: missed$' out || die "a target is met: $(cat out)"
program cpu 1.0 5.0
run 0 --program ./program --device cpu --types f32 --seconds 0.02 --json
json_holds '.device == "2 processors"' '.bars | keys == ["eager_total", "rondo_eager_total"]' \
  'all(.rows[]; .torch_graph == null and .ratios.eager_total >= 20 and all(.met[]; .))'
run 0 --program ./program --device cpu --types f32 --seconds 0.02
run 1 --program /bin/false --seconds 0.02
grep -q 'exit status 1' err || die "no reason: $(cat err)"
sed -i 's/is_available=lambda: True/is_available=lambda: False/' modules/torch.py
run 77 --program ./program
