#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tool on a CUDA device, here one without a GPU: rondo devices lists it, train and generate run on it and agree with
# the CPU.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--steps 10 --batch 16 --context 4 --embedding 8 --hidden 32)

succeeds devices
grep -Eq '^cuda:0 .* multiprocessors, ' out || die "no CUDA device: $(cat out)"

succeeds train text "${small[@]}" --json --save model
cp out cpu
succeeds train text "${small[@]}" --json --device cuda:0 --save model.cuda
json_holds '.device == "cuda:0"' .identical '.kernels > 5' '.memory.planned >= .memory.lower_bound'
[ "$(jq -s '.[0].loss_last as $cpu | .[1].loss_last | (. - $cpu | fabs) <= 1e-4 * $cpu' cpu out)" = true ] ||
  die "the losses of the devices differ: $(jq -sc 'map(.loss_last)' cpu out)"

succeeds train text "${small[@]}" --device cuda:0
grep -Eq '^device +cuda:0: .*, [0-9]+ multiprocessors$' out || die "no word on the device: $(cat out)"

succeeds generate model.cuda --length 60 --temperature 0 --json --device cuda:0
json_holds '.device == "cuda:0"' .identical '.length == 60'
