#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tool on a CUDA device, here one without a GPU: rondo devices lists it, train and generate run on it and agree with
# the CPU.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--steps 10 --batch 16 --context 4 --embedding 8 --hidden 32)

succeeds devices
grep -Eq '^cuda:0 .* multiprocessors, ' out || die "no CUDA device: $(cat out)"
grep -Eq '^cuDNN +convolutions on CUDA devices: .*libcudnn.so.9$' out || die "no cuDNN: $(cat out)"

succeeds train text "${small[@]}" --json --save model
cp out cpu
succeeds train text "${small[@]}" --json --device cuda:0 --save model.cuda
json_holds '.device == "cuda:0"' .identical '.kernels > 5' '.memory.planned >= .memory.lower_bound'
[ "$(jq -s '.[0].loss_last as $cpu | .[1].loss_last | (. - $cpu | fabs) <= 1e-4 * $cpu' cpu out)" = true ] ||
  die "the losses of the devices differ: $(jq -sc 'map(.loss_last)' cpu out)"

succeeds train text "${small[@]}" --device cuda:0
grep -Eq '^device +cuda:0: .*, [0-9]+ multiprocessors$' out || die "no word on the device: $(cat out)"

# Beside the driver without Rondo.
succeeds bench launch --device cuda:0 --seconds 0.1 --launches 64 --json
json_holds 'all(.shapes[]; .bare.stream.host_us > 0 and .bare.graph.host_us > 0 and .bare.speedup.host > 0 and
    (.bare.beside_bare | .host_ratio > 0 and .device_ratio >= 0 and .bare_host_us > 0))' \
  '[.launch_call[].nodes] == [32, 10000]' 'all(.launch_call[]; .bare.beside_bare.host_ratio > 0)' \
  'all(.shapes[]; .bare.beside_bare.launches == 64)'

printf 'id,lower,upper,size\na,0,2,3000000\nb,1,3,5000000\nc,2,4,3000000\n' >buffers.csv
succeeds bench memory buffers.csv --device cuda:0 --json
json_holds '[.ways[].way] == ["online", "profiled", "relocated", "driver"]' 'all(.ways[]; .again_us > 0)'

succeeds bench change --device cuda:0 --seconds 0.1 --nodes 50 --json
json_holds 'all(.instantiate, .update, .patch_and_launch, .launch; .host_us > 0 and .bare_host_us > 0 and .ratio > 0)'

succeeds bench patch --device cuda:0 --seconds 0.1 --json
json_holds 'all(.rondo, .bare; (.readers | length) == 5 and all(.readers[]; .patched.host_us > 0) and
    all(.sizes[]; .copied.host_us > 0))'

succeeds bench conv --most 20 --seconds 0.1 --json
json_holds '.device == "cuda:0"' '[.cases[].name] == ["small", "smaller", "smallest"]' \
  'all(.cases[] | .forward, .input_gradient, .weight_gradient; .by_cudnn and .cudnn_us > 0 and .own_us > 0 and .ratio > 0)'
RONDO_CUDNN_LEAST=1000000 succeeds bench conv --most 20 --seconds 0.1 --type bf16
grep -Eq '^smallest .*\*/' out || die "what is too small is not marked: $(cat out)"
fails 1 'no CUDA device' bench conv --device cpu
fails 2 'f32, bf16 or f16' bench conv --type f64

succeeds bench copies --device cuda:0 --seconds 0.1 --most 16384 --json
json_holds '(.cases | length) == 15' '(.crossings | length) == 5' \
  'all(.cases[]; .launch.host_us > 0 and .queued.host_us > 0 and .kernel_list.host_us > 0 and .kernel_buffer.host_us > 0)'
succeeds bench copies --device cuda:0 --seconds 0.1 --most 1024 --unaligned 3
succeeds bench copies --device cuda:0 --seconds 0.1 --most 1024 --host --json
json_holds '.host' 'all(.cases[]; .queued.host_us > 0 and .kernel_in_front.host_us > 0)'
fails 1 'no CUDA device' bench copies --device cpu

succeeds bench capture --device cuda:0 --rounds 1 --json
json_holds '.device == "cuda:0"' 'all(.cases[]; .in_turn_us > 0 and .at_once_us > 0)'

# Calls of trees, beside the driver's launch in turns.
succeeds bench tree --device cuda:0 --seconds 0.1 --shapes 5 --buffers buffers.csv --json
json_holds '.device == "cuda:0"' '.bare.host_us > 0' 'all(.calls[]; .added_to_bare_host_us != null)' \
  '.hit_allocations == 0' '.shapes.recordings == 5' '.path.ratio >= 1'

succeeds generate model.cuda --length 60 --temperature 0 --json --device cuda:0
json_holds '.device == "cuda:0"' .identical '.length == 60'
