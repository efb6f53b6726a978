#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo train --checkpoint and --resume: training that was stopped, by --stop-after, Ctrl-C, SIGTERM or SIGKILL, goes on
# as if it had not been, bit for bit; checkpoints of other trainings, damaged ones, a full disk and losses that are no
# numbers are said, and leave the last checkpoint whole. test_checkpoint.sh TOOL [DEVICE]
source "$(dirname "${BASH_SOURCE[0]}")/support.sh" "$1"
device=${2:-cpu}
make_text >text
small=(text --device "$device" --batch 8 --context 4 --embedding 8 --hidden 32)
forty=("${small[@]}" --steps 40)

same_results() {
  [ "$(jq -c '[.loss_first, .loss_last, .loss_history]' "$1")" = "$(jq -c '[.loss_first, .loss_last, .loss_history]' "$2")" ] ||
    die "other losses: $(cat "$1" "$2")"
}

# At once, and in two and in three parts.
succeeds train "${forty[@]}" --checkpoint whole --save whole.model --json
json_holds .identical '.steps_before == 0' '.steps_done == 40' '.steps_compared == 20' '.checkpoint == "whole"'
cp out whole.json
succeeds train "${forty[@]}" --checkpoint part --stop-after 20 --json
json_holds .identical '.steps_done == 20' '.steps == 40'
succeeds train "${forty[@]}" --checkpoint part --resume part --save part.model --json
json_holds .identical '.steps_before == 20' '.steps_done == 40' '.losses_from == 0'
cp out part.json
same_results whole.json part.json
[ "$(jq -c .losses part.json)" = "$(jq -c .losses whole.json)" ] || die "PR-12: not all losses: $(cat part.json)"
cmp whole part || die "the checkpoints differ"
cmp whole.model part.model || die "the models differ"
succeeds train "${forty[@]}" --checkpoint one --stop-after 1 --compare 1
grep -q '^stopped  after step 1$' out || die "no word on the stop: $(cat out)"
succeeds train "${forty[@]}" --checkpoint two --resume one --stop-after 33
succeeds train "${forty[@]}" --checkpoint three --resume two
grep -q '^resumed  after step 33, from two$' out || die "no word on the beginning: $(cat out)"
grep -q '^checkpoint three, after step 40$' out || die "no word on the checkpoint: $(cat out)"
cmp whole three || die "three parts gave another checkpoint"

# A gpt.
gpt=(text --device "$device" --model gpt --context 8 --layers 1 --width 8 --heads 2 --batch 2 --steps 12)
succeeds train "${gpt[@]}" --checkpoint gpt
succeeds train "${gpt[@]}" --checkpoint gpt_part --stop-after 5
succeeds train "${gpt[@]}" --checkpoint gpt_part --resume gpt_part
cmp gpt gpt_part || die "going on with a gpt gave another checkpoint"

# Without a checkpoint, all steps are compared, to the same losses.
succeeds train "${forty[@]}" --json
json_holds .identical '.steps_compared == 40'
same_results whole.json out

# Interrupted: the step is finished, the checkpoint written, and the command that is shown goes on.
long=("${small[@]}" --steps 1000000 --compare 1)

# interrupt SIGNAL STATUS: trains into `stopped`, and sends the signal when there is a checkpoint.
interrupt() {
  rm -f stopped
  set -m # a job of its own, which does not ignore the signal
  "$tool" train "${long[@]}" --checkpoint stopped --checkpoint-every 20 --stop 999999 >out 2>err &
  local child=$! status=0
  set +m
  until [ -e stopped ]; do
    kill -0 $child 2>/dev/null || die "training ended by itself: $(cat err)"
    sleep 0.02
  done
  kill "-$1" $child
  wait $child || status=$?
  [ "$status" -eq "$2" ] || die "$1: exit status $status, not $2: $(cat err)"
}

# go_on: runs the command that the interrupted tool has shown, 30 steps further, and compares with training at once.
go_on() {
  local step
  step=$(sed -nE 's/^rondo train: interrupted after step ([0-9]+) of 1000000; the checkpoint is stopped; resume with:$/\1/p' err)
  [ -n "$step" ] || die "no word on the interrupt: $(cat err)"
  [ ! -s out ] || die "results of a training that was interrupted: $(cat out)"
  [ "$(wc -l <err)" -eq 2 ] || die "not two lines: $(cat err)"
  [[ $(sed -n 2p err) == '  rondo train --resume stopped '*' text' ]] || die "no command: $(cat err)"
  [[ $(sed -n 2p err) != *--stop\ * ]] || die "it would stop again: $(cat err)"
  eval "set -- $(sed -n 2p err)"
  shift
  succeeds "$@" --stop-after $((step + 30)) --json
  cp out resumed.json
  succeeds train "${long[@]}" --checkpoint at_once --stop-after $((step + 30)) --json
  [ "$(jq .loss_history resumed.json)" = "$(jq .loss_history out)" ] || die "going on after step $step: other losses"
  cmp stopped at_once || die "going on after step $step gave another checkpoint"
}

interrupt INT 130
go_on
interrupt TERM 143
go_on
interrupt HUP 129
go_on

# The second one ends it at once. What stood at the checkpoint stands there.
cp part second
set -m
"$tool" train text --device "$device" --batch 512 --context 256 --embedding 32 --hidden 2048 --checkpoint second \
  >out 2>err &
child=$!
set +m
sleep 1
kill -INT $child
sleep 0.05
kill -INT $child 2>/dev/null || true
status=0
wait $child || status=$?
[ $status -eq 130 ] || die "the second Ctrl-C: exit status $status: $(cat err)"
cmp part second || grep -q 'interrupted after step' err || die "the second Ctrl-C lost the checkpoint"

# Killed at any moment: there is a checkpoint, it is whole, and it goes on.
for pause in 0.05 0.11 0.02 0.17; do
  cp one killed
  set -m
  "$tool" train "${forty[@]}" --checkpoint killed --resume one --checkpoint-every 1 --compare 1 >out 2>err &
  child=$!
  set +m
  sleep $pause
  kill -KILL $child 2>/dev/null || true
  wait $child 2>/dev/null || true
  cmp -s killed whole || succeeds train "${forty[@]}" --resume killed --checkpoint killed
  cmp killed whole || die "going on from what a killed process left gave something else"
done
left=$(find . -name '*.tmp')
[ -z "$left" ] || die "what the killed processes left was not removed: $left"

# Without a checkpoint there is nothing to go on from, but the model is saved as it is: of either run, the same one.
# cut_short OPTION...: trains without a checkpoint, and interrupts when so much was traced that some steps are made.
cut_short() {
  rm -f trace
  set -m
  "$tool" train "${small[@]}" --steps 1000000 --seed 5 --trace trace "$@" >out 2>err &
  local child=$! status=0
  set +m
  until [ -e trace ] && [ "$(wc -l <trace)" -gt 3000 ]; do
    kill -0 $child 2>/dev/null || die "training ended by itself: $(cat err)"
    sleep 0.02
  done
  kill -INT $child
  wait $child || status=$?
  [ $status -eq 130 ] || die "without a checkpoint: exit status $status: $(cat err)"
  [ ! -s out ] || die "results of a training that was interrupted: $(cat out)"
}
cut_short --compare 1
grep -Eq 'interrupted after step [0-9]+ of 1000000; with --checkpoint FILE, training could be resumed$' err ||
  die "no word on what is lost: $(cat err)"
for compare in 1 1000000; do
  rm -f cut.model
  cut_short --compare $compare --save cut.model
  words='the model at this step is saved in cut.model; with --checkpoint FILE, training could be resumed'
  step=$(sed -nE "s/^rondo train: interrupted after step ([0-9]+) of 1000000; $words\$/\1/p" err)
  [ -n "$step" ] || die "no word on the model: $(cat err)"
  [ "$step" -gt 1 ] || die "it was interrupted too early to tell"
  succeeds train "${small[@]}" --steps 1000000 --seed 5 --compare 1 --checkpoint till --stop-after "$step" \
    --save till.model
  cmp cut.model till.model || die "the model after step $step is another one (--compare $compare)"
done

# Of another training.
other() {
  fails 1 "part20: it is a checkpoint of training $1" train "${forty[@]}" --resume part20 "${@:2}"
}
succeeds train "${forty[@]}" --checkpoint part20 --stop-after 20
other 'with --batch 8, not 16: use that value, or train without --resume' --batch 16
other 'with --context 4, not 5' --context 5
other 'with --embedding 8, not 9' --embedding 9
other 'with --hidden 32, not 33' --hidden 33
other 'with --seed 1, not 2' --seed 2
other 'with --learning-rate 0.00[0-9]+, not 0.00[0-9]+' --learning-rate 0.0051
fails 1 'part20: it is a checkpoint of training with --model character, not gpt' train text --device "$device" \
  --steps 40 --model gpt --resume part20
tr a-y b-z <text >another
fails 1 'part20: it is a checkpoint of training on another text' train another "${forty[@]:1}" --resume part20
fails 1 'part20: 20 steps of its training are done; --stop-after must be larger' train "${forty[@]}" --resume part20 \
  --checkpoint next --stop-after 20
fails 1 'whole: 40 steps of its training are done; --steps must be larger' train "${forty[@]}" --resume whole
fails 1 "whole.model: it is no checkpoint: its metadata have no 'rondo.checkpoint'" train "${forty[@]}" \
  --resume whole.model
fails 1 'nowhere' train "${forty[@]}" --resume nowhere
fails 1 'text' train "${forty[@]}" --resume text
fails 1 'it is the TEXT that is read' train "${forty[@]}" --checkpoint text
fails 1 'it is the file of --checkpoint' train "${forty[@]}" --checkpoint x --save x
fails 2 'checkpoint-every needs --checkpoint' train "${forty[@]}" --checkpoint-every 5
fails 2 'stop-after needs --checkpoint' train "${forty[@]}" --stop-after 5

# PR-12: the end can be moved. Unless --steps is given, it is the checkpoint's; from the checkpoint on, the learning rate
# is that of the new number of steps.
succeeds train "${small[@]}" --resume part20 --checkpoint same --json
json_holds '.steps == 40' '.checkpoint_steps == 40' '.steps_done == 40' '(.losses | length) == 40'
cmp whole same || die "without --steps it is another training"
succeeds train "${small[@]}" --steps 60 --resume part20 --checkpoint further --json
json_holds '.steps == 60' '.checkpoint_steps == 40' '.steps_before == 20' '.steps_done == 60' '.identical'
cp out further.json
succeeds train "${small[@]}" --steps 60 --resume part20 --checkpoint further --stop-after 30
grep -q '^         the checkpoint is for 40 steps; from here on the learning rate follows the schedule of 60$' out ||
  die "no word on the learning rate: $(cat out)"
succeeds train "${small[@]}" --resume further --json
json_holds '.steps == 60' '.steps_before == 30' '.checkpoint_steps == 60'
same_results further.json out
succeeds train "${small[@]}" --steps 45 --resume whole --json
json_holds '.steps_before == 40' '.steps_done == 45'
succeeds train "${small[@]}" --steps 25 --resume part20 --json
json_holds '.steps_done == 25'
fails 1 'part20: 20 steps of its training are done; --steps must be larger' train "${small[@]}" --steps 20 --resume part20

# Damaged anywhere: cut off, or with another byte.
size=$(stat -c %s part20)
for ((at = 0; at < size; at += at < 40 ? 5 : 977)); do
  head -c "$at" part20 >damaged
  fails 1 'damaged: .*' train "${forty[@]}" --resume damaged
  byte=$(od -An -tu1 -j "$at" -N 1 part20)
  { head -c "$at" part20; printf "\\x$(printf %02x $((byte ^ 4)))"; tail -c +$((at + 2)) part20; } >damaged
  fails 1 'damaged: .*' train "${forty[@]}" --resume damaged
done
{ head -c -1 part20; printf 'x'; } >damaged
fails 1 "damaged: it was damaged: tensor 'output.weight.v' does not have its checksum" train "${forty[@]}" \
  --resume damaged

# A disk that is full, where one can be mounted: training goes on, and fails at its end; the old checkpoint is whole.
on_full_disk() {
  mkdir -p disk
  mount -t tmpfs -o "size=$(((size / 4096 + 2) * 4096))" none disk
  cp part20 disk/full
  local status=0
  "$tool" train "${forty[@]}" --resume disk/full --checkpoint disk/full --checkpoint-every 15 --save spared >out 2>err ||
    status=$?
  [ $status -eq 1 ] || die "a full disk: exit status $status: $(cat out err)"
  [ "$(grep -c 'disk/full cannot be saved: .* (ENOSPC 28, .*; training goes on$' err)" -eq 1 ] ||
    die "no warning of a full disk: $(cat err)"
  grep -q '^rondo train: step 40: the checkpoint could not be written: disk/full cannot be saved' err ||
    die "no error of a full disk: $(cat err)"
  cmp part20 disk/full || die "a full disk damaged the old checkpoint"
  cmp whole.model spared || die "the model was not saved when the checkpoint could not be"
  grep -q '^saved    spared$' out || die "no results when the checkpoint could not be written: $(cat out)"
  [ "$(ls disk)" = full ] || die "a full disk left a file: $(ls disk)"
}
export -f on_full_disk die
export tool size
declare -p forty >settings
for unshare in 'unshare -m' 'unshare -Urm'; do
  $unshare mount -t tmpfs none /mnt 2>/dev/null || continue
  $unshare bash -euc 'source ./settings; on_full_disk' || exit 1
  break
done

# Losses that are no numbers: what is kept is the last checkpoint of numbers.
succeeds train "${small[@]}" --steps 20 --learning-rate 3e37 --checkpoint numbers --stop-after 1
cp numbers before
status=0
"$tool" train "${small[@]}" --steps 20 --learning-rate 3e37 --compare 1 --checkpoint numbers --checkpoint-every 1 \
  >out 2>err || status=$?
[ $status -eq 1 ] || die "no numbers: exit status $status"
grep -Eq "step [23]: the loss is no longer a number; train again with a lower --learning-rate; the last good checkpoint, numbers, is of step [12]$" err ||
  die "no word on what happened: $(cat err)"
cmp before numbers || die "the last good checkpoint was not kept"

# The same in the validation after a step whose loss was a number.
status=0
"$tool" train "${small[@]}" --steps 20 --learning-rate 3e37 --compare 0 --validation 20 --validate-every 1 >out 2>err ||
  status=$?
[ $status -eq 1 ] || die "no numbers in the validation: exit status $status"
grep -Eq "validation, step [12]: the loss is no longer a number; train again with a lower --learning-rate$" err ||
  die "no word on what happened: $(cat err)"
