#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tool on a CUDA device, here one without a GPU: rondo devices lists it, train and generate run on it and agree with
# the CPU.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--steps 10 --batch 16 --context 4 --embedding 8 --hidden 32)

succeeds devices
grep -Eq '^cuda:0 .* multiprocessors, ' out || die "no CUDA device: $(cat out)"
grep -Eq '^cuDNN +convolutions and attention on CUDA devices: .*libcudnn.so.9$' out || die "no cuDNN: $(cat out)"

succeeds train text "${small[@]}" --json --save model
cp out cpu
succeeds train text "${small[@]}" --json --device cuda:0 --save model.cuda
json_holds '.device == "cuda:0"' .identical '.kernels > 5' '.memory.planned >= .memory.lower_bound'
[ "$(jq -s '.[0].loss_last as $cpu | .[1].loss_last | (. - $cpu | fabs) <= 1e-4 * $cpu' cpu out)" = true ] ||
  die "the losses of the devices differ: $(jq -sc 'map(.loss_last)' cpu out)"

succeeds train text "${small[@]}" --device cuda:0
grep -Eq '^device +cuda:0: .*, [0-9]+ multiprocessors$' out || die "no word on the device: $(cat out)"

# Next to the driver without Rondo.
succeeds bench launch --device cuda:0 --seconds 0.1 --launches 64 --json
json_holds 'all(.shapes[]; .bare.stream.host_us > 0 and .bare.graph.host_us > 0 and .bare.speedup.host > 0 and
    (.bare.beside_bare | .host_ratio > 0 and .device_ratio >= 0 and .bare_host_us > 0))' \
  '[.launch_call[].nodes] == [32, 10000]' 'all(.launch_call[]; .bare.beside_bare.host_ratio > 0)' \
  'all(.shapes[]; .bare.beside_bare.launches == 64)'

printf 'id,lower,upper,size\na,0,2,3000000\nb,1,3,5000000\nc,2,4,3000000\n' >buffers.csv
succeeds bench memory buffers.csv --device cuda:0 --json
json_holds '[.ways[].way] == ["online", "profiled", "relocated", "driver"]' 'all(.ways[]; .again_us > 0)'

succeeds generate model.cuda --length 60 --temperature 0 --json --device cuda:0
json_holds '.device == "cuda:0"' .identical '.length == 60'

# MM-2, MM-5: torchrun and srun say where NCCL's rank 0 is. The first rank of a machine has its first GPU.
unset OMPI_COMM_WORLD_SIZE PMI_SIZE NCCL_COMM_ID MASTER_ADDR MASTER_PORT
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 fails 1 'rank 0: the ranks of torchrun: .*MASTER_ADDR' \
  train text "${small[@]}" --data-parallel --device cuda
RANK=1 WORLD_SIZE=2 LOCAL_RANK=5 fails 1 "rank 1: --device: .*'cuda:5'" train text "${small[@]}" --data-parallel --device cuda
RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 succeeds train text "${small[@]}" --data-parallel --device cuda --json
