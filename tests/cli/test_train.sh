#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo train: both runs give the same losses (FW-4, FW-5, FW-9), the loss falls, and texts and devices that are not
# fit to train on or with are refused (bad input).
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--steps 200 --batch 16 --context 4 --embedding 8 --hidden 32 --learning-rate 0.02)

succeeds train text "${small[@]}" --json --save model --dump-graph step.json
json_holds '.device == "cpu"' '.steps == 200' '.identical' '.loss_first > 2.5 and .loss_first < 4.5' \
  '.loss_last < .loss_first - 0.5' \
  '.vocabulary == 27' '.parameters == 27 * 8 + 4 * 8 * 32 + 32 + 32 * 27 + 27' '.kernels > 5' \
  '.memory.lower_bound <= .memory.planned and .memory.planned <= .memory.sum and .memory.lower_bound > 0' \
  '.memory.host > 0' \
  '[.recorded, .eager] | all(.step_us > 0 and .host_us > 0 and .step_us_min <= .step_us and
    .step_us <= .step_us_max and .host_us_min <= .host_us and .host_us <= .host_us_max and .host_us <= .step_us)'
[ -s model ] || die "the model was not written"
[ -s step.json ] || die "the graph was not written"
cp out first

# PR-12: all losses, the first and the mean of the last twentieth among them.
jq -e '(.losses | length) == 200 and (.losses[0] - .loss_first | fabs) < 1e-6 and
  ((.losses[190:] | add / 10) - .loss_last | fabs) < 1e-6' out >/dev/null || die "not all losses: $(cat out)"

# Nothing is compared, which changes nothing else.
succeeds train text "${small[@]}" --json --compare 0 --save same --report report.html
json_holds '.identical == null' '.steps_compared == 0' '.eager == null' '.recorded.step_us > 0'
[ "$(jq .losses out)" = "$(jq .losses first)" ] || die "--compare 0 gave other losses"
cmp -s model same || die "--compare 0 gave another model"
succeeds train text --steps 2 --compare 0
grep -q '^losses   not compared' out || die "no word on the comparison: $(cat out)"
if grep -q '^eager' out; then die "times of runs that were not made: $(cat out)"; fi

# Progress tells how long it will take, on a terminal.
if command -v script >/dev/null && script -qefc true /dev/null </dev/null >/dev/null 2>&1; then
  script -qefc "'$tool' train text --steps 1000" said </dev/null >/dev/null 2>&1
  grep -Eq 'recorded: [0-9]+ of 1000 steps, loss [0-9.]+, [0-9]+ s left' said || die "no time to go: $(head -c 600 said)"
fi

# The same seed gives the same training, with another number of workers too; another seed another one.
losses() { jq -c '[.loss_first, .loss_last]' "$1"; }
succeeds train text "${small[@]}" --json --workers 3
[ "$(losses out)" = "$(losses first)" ] || die "the same seed gave other losses"
succeeds train text "${small[@]}" --json --seed 2
[ "$(losses out)" != "$(losses first)" ] || die "another seed gave the same losses"

# A text of 40 kB in the default sizes. Of the licence that every Debian has, a small model learns much in a few steps.
for _ in 1 2 3 4 5 6 7 8 9 10; do cat text; done >longer
succeeds train longer --steps 20 --json
json_holds '.text_bytes == 40000' .identical
licence=/usr/share/common-licenses/GPL-3
if [ -r $licence ]; then
  succeeds train --steps 300 --hidden 64 --batch 32 --json
  json_holds ".text == \"$licence\"" '.loss_first > 4' '.loss_last < 2.7' .identical
else
  fails 1 "$licence: No such file or directory; name another TEXT" train
fi

# A gpt learns from all bytes of its context.
tiny=(--model gpt --context 16 --layers 2 --width 16 --heads 2 --batch 4)
succeeds train text "${tiny[@]}" --steps 40 --learning-rate 0.01 --json --save gpt
json_holds '.model == "gpt"' '.identical' '.layers == 2' '.heads == 2' '.embedding == null' \
  '.loss_first > 3 and .loss_first < 3.6' '.loss_last < .loss_first - 0.3' \
  '.parameters == 27 * 16 + 16 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16 + 16 * 27'
succeeds train text "${tiny[@]}" --steps 2
grep -q '^model    gpt, [0-9]* parameters: context 16, layers 2, width 16, heads 2$' out || die "no sizes: $(cat out)"
fails 2 'width 30 is not a multiple of 4 heads' train text --model gpt --width 30 --heads 4
fails 2 'width 514 with 2 heads gives heads of size 257; the maximum is 256' train text --model gpt --width 514 --heads 2
fails 2 'the model gpt has no --hidden' train text --model gpt --hidden 8
fails 2 'the model character has no --layers' train text --layers 2
fails 2 "--model takes character or gpt, not 'rnn'" train text --model rnn
fails 1 'needs about [0-9.]+ GiB' train text --model gpt --batch 1000000 --context 1024 --width 4096 --heads 64

# For people, and from standard input.
succeeds train - "${small[@]}" <text
grep -q 'identical: both runs' out || die "no word on the losses: $(cat out)"
grep -q '^recorded ' out || die "no row for the recorded run: $(cat out)"

# Any bytes can be learnt.
head -c 3000 "$tool" >bytes
succeeds train bytes --steps 5 --json
json_holds .identical

# A trace is JSON and has the kernels of both runs by name: of every step, the one of the streams and the graph's node.
succeeds train text --steps 5 --trace trace.json --json
kernels=$(jq .kernels out)
jq -e --argjson kernels "$kernels" '
  def names(area): [.[] | select(.cat == area and .ph == "B") | .name];
  names("node") as $nodes | [names("stream")[] | select(. != "copy" and . != "fill")] as $streams |
  ($nodes | length) == 5 * $kernels and ($streams | length) >= 5 * $kernels and
  ($nodes | unique) == ($streams | unique) and ($nodes | index("matmul_f32")) != null and
  all(.[] | select(.ph == "B"); .tid > 0) and any(.[]; .name == "thread_name") and
  ([.[] | select(.ph == "B")] | length) == ([.[] | select(.ph == "E")] | length)' trace.json >/dev/null ||
  die "the trace lacks something"

printf '' >empty
printf 'x' >one
printf '%12s' x >twelve
printf '%100s' '' >same
fails 1 'missing: No such file or directory' train missing
fails 1 'empty: the file is empty' train empty
fails 1 'one: 1 byte is too few' train one --context 4
fails 1 'twelve: 12 bytes are too few; a context of 12 needs at least 13' train twelve --context 12
fails 1 'same: all its bytes are the same' train same
fails 1 ': Is a directory' train .
fails 1 '/dev/zero: larger than the [0-9]+ MiB' train /dev/zero
for device in nonsense cpu:99 'cpu:' CPU cuda:7; do
  fails 1 "$device" train text --device "$device"
done
fails 1 'nowhere/model cannot be written: .*No such file or directory' train text --save nowhere/model
fails 1 'cannot be written: it is no regular file' train text --save .
fails 1 'nowhere/graph cannot be written: .*No such file or directory' train text --steps 1 --dump-graph nowhere/graph
fails 1 'nowhere/trace' train text --steps 1 --trace nowhere/trace
fails 1 'needs about [0-9.]+ GiB, but .cpu. has [0-9.]+: lower --batch' train text --batch 1000000 --context 256 \
  --embedding 1024 --hidden 16384

# What is written is in the place of nothing that is read, or written too; devices take all.
cp text read
mkdir -p folder
ln -sf ../read folder/link
for option in --save --checkpoint --report --dump-graph --trace; do
  fails 1 'read cannot be written: it is the TEXT that is read; name another file' train read "$option" read
  fails 1 'folder/link cannot be written: it is the TEXT that is read' train read "$option" folder/link
done
cmp text read || die "a text that is read was written over"
fails 1 './both cannot be written: it is the file of --trace' train text --save ./both --trace folder/../both
fails 1 'graph cannot be written: it is the file of --trace' train text --dump-graph graph --trace graph
succeeds train text "${small[@]}" --steps 2 --checkpoint going-on --stop-after 1
fails 1 'going-on cannot be written: it is the file of --resume' train text "${small[@]}" --steps 2 \
  --resume going-on --save going-on
succeeds train text "${small[@]}" --steps 2 --resume going-on --checkpoint going-on --dump-graph /dev/null \
  --trace /dev/null

# FW-7: what is recorded, what not and why, and what it gains; the training is the same.
succeeds train text "${small[@]}" --steps 30 --explain --json --save explained.safetensors
json_holds '.explanation.rondo_compiled == 1' '.explanation.recorded' '.explanation.nodes > 0' \
  '.explanation.gain.is_measured and .explanation.gain.total_gain > 0 and .explanation.gain.host_us > 0' \
  '.explanation.inputs == 2' 'all(.explanation.advice[]; (.kind | length) > 0 and (.message | length) > 0)'
succeeds train text "${small[@]}" --steps 30 --json --save plain.safetensors
cmp -s explained.safetensors plain.safetensors || die "--explain changes what is trained"
succeeds train text "${small[@]}" --steps 30 --explain
grep -q "^program 'train' on cpu:0: recorded, a run is one launch of " out || die "no explanation in: $(cat out)"
grep -Eq '^  memory  *1[.][0-9]{4} of its lower bound; results live at once .*, in the program.s order ' out ||
  die "no memory in: $(cat out)"
grep -q '^  gain  *measured: host ' out || die "no gain in: $(cat out)"
