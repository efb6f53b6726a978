#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo_bench on a CUDA device, here one without a GPU: rows of the bare driver stand next to Rondo's, and what needs
# CUDA says so elsewhere.
source "$(dirname "$0")/support.sh" "$1"

printf 'id,lower,upper,size\na,0,2,3000000\nb,1,3,5000000\nc,2,4,3000000\n' >buffers.csv
succeeds change --device cuda:0 --seconds 0.1 --nodes 50 --json
json_holds 'all(.instantiate, .update, .patch_and_launch, .launch; .host_us > 0 and .bare_host_us > 0 and .ratio > 0)'

succeeds patch --device cuda:0 --seconds 0.1 --json
json_holds 'all(.rondo, .bare; (.readers | length) == 5 and all(.readers[]; .patched.host_us > 0) and
    all(.sizes[]; .copied.host_us > 0))'

succeeds conv --most 20 --seconds 0.1 --json
json_holds '.device == "cuda:0"' '[.cases[].name] == ["small", "smaller", "smallest", "halves 8, 1 x 1"]' \
  'all(.cases[] | .forward, .input_gradient, .weight_gradient; .by_cudnn and .cudnn_us > 0 and .own_us > 0 and .ratio > 0)'
RONDO_CUDNN_LEAST=1000000 succeeds conv --most 20 --seconds 0.1 --type bf16
grep -Eq '^smallest  forward +false ' out || die "what is too small is not marked: $(cat out)"
fails 1 'not a CUDA device' conv --device cpu
fails 2 'f32, bf16 or f16' conv --type f64

succeeds copies --device cuda:0 --seconds 0.1 --most 16384 --json
json_holds '(.cases | length) == 15' '(.crossings | length) == 5' \
  'all(.cases[]; .launch.host_us > 0 and .queued.host_us > 0 and .kernel_list.host_us > 0 and .kernel_buffer.host_us > 0)'
succeeds copies --device cuda:0 --seconds 0.1 --most 1024 --unaligned 3
succeeds copies --device cuda:0 --seconds 0.1 --most 1024 --host --json
json_holds '.host' 'all(.cases[]; .queued.host_us > 0 and .kernel_in_front.host_us > 0)'
fails 1 'not a CUDA device' copies --device cpu

succeeds capture --device cuda:0 --rounds 1 --json
json_holds '.device == "cuda:0"' 'all(.cases[]; .in_turn_us > 0 and .at_once_us > 0)'

# Graphs of the driver (AD-2).
succeeds import --device cuda:0 --seconds 0.1 --nodes 50 --json
json_holds '.device == "cuda:0"' '.nodes == 50' '.import_ratio > 0 and .hand_out_ratio > 0' \
  '.import.host_us > 0 and .hand_out_changed.host_us > 0'
fails 2 'no driver with graphs' import --device cpu

# Calls of trees, beside the driver's launch in turns.
succeeds tree --device cuda:0 --seconds 0.1 --shapes 5 --buffers buffers.csv --json
json_holds '.device == "cuda:0"' '.bare.host_us > 0' 'all(.calls[]; .added_to_bare_host_us != null)' \
  '.hit_allocations == 0' '.shapes.recordings == 5' '.path.ratio >= 1'
