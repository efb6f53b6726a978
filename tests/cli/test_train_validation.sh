#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo train --validation, --patience and --sample-every (PR-12): the loss over the kept part falls and then rises, the
# best model is saved, training stops early, also when it is resumed; nothing else changes.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(text --batch 16 --context 4 --embedding 8 --hidden 32 --learning-rate 0.02 --compare 0)
half=("${small[@]}" --steps 200 --validation 50 --validate-every 25)

succeeds train "${half[@]}" --json --save best --report report.html
json_holds '.text_bytes == 2000' '.validation.percent == 50' '.validation.text_bytes == 2000' '.vocabulary == 27' \
  '[.validation.losses[].step] == [25, 50, 75, 100, 125, 150, 175, 200]' '.validation.stopped_early == false' \
  '.validation.losses[0].loss > .validation.best_loss' '.validation | .best_loss == ([.losses[].loss] | min)' \
  '.validation | .best_step as $best | .best_loss == (.losses[] | select(.step == $best) | .loss)'
cp out whole
# The page is measured with the step's inputs, which validation and samples have overwritten.
succeeds train "${half[@]}" --json --report report.html --explain --sample-every 50
json_holds '.explanation.gain.is_measured' '.recorded.seconds > 0'
[ "$(jq .losses out)" = "$(jq .losses whole)" ] || die "samples changed the losses"
grep -q '>validation</text>' report.html || die "the page has no curve of the validation"
grep -q '<dt>Validation</dt>' report.html || die "the page has no figure of the validation"

# What is trained on the same bytes without validation has the same losses.
head -c 2000 text >first_half
succeeds train first_half "${small[@]:1}" --steps 200 --json
[ "$(jq .losses out)" = "$(jq .losses whole)" ] || die "validation changed the losses"

# The saved model is that of the best step.
best=$(jq .validation.best_step whole)
succeeds train "${small[@]}" --steps 200 --validation 50 --validate-every 25 --save stopped --checkpoint c --stop-after "$best"
cmp -s best stopped || die "the saved model is not that of step $best"
grep -q "^saved    stopped, the model after step $best\$" out || die "no word on the model: $(cat out)"

# Training on 60 bytes fits them, and no other text: it stops early.
early=(text --batch 16 --context 4 --embedding 8 --hidden 32 --learning-rate 0.05 --steps 4000
  --validation 50 --validate-every 20 --patience 3 --compare 0)
head -c 120 text >short
early[0]=short
succeeds train "${early[@]}" --json --save early --checkpoint early.checkpoint
json_holds '.validation.stopped_early' '.steps_done < 4000' '.validation | .losses[-1].step - .best_step == 60' \
  '(.validation.losses | length) * 20 == .steps_done'
cp out early.json
done=$(jq .steps_done out)
succeeds train "${early[@]}"
grep -q "^stopped  after step $done: 3 validations gave no lower loss than before\$" out || die "no word: $(cat out)"
grep -q "^validation on the last 60 bytes of the text: .* nats a byte after step $((done - 60)), the least of " out ||
  die "no word on the validation: $(cat out)"

# In two parts, it stops at the same step, with the same checkpoint.
# The best model is in the checkpoint: the second part writes it.
succeeds train "${early[@]}" --json --checkpoint part.checkpoint --stop-after $((done - 30))
cp part.checkpoint stopped.checkpoint
succeeds train "${early[@]}" --json --save part --checkpoint part.checkpoint --resume part.checkpoint
json_holds '.validation.stopped_early' ".steps_done == $done" '.saved == "part"'
cmp early.checkpoint part.checkpoint || die "two parts gave another checkpoint"
cmp early part || die "two parts gave another model"
succeeds train "${early[@]}" --save part --resume stopped.checkpoint
grep -q "^validation .* after step $((done - 60)), before it was resumed; 2 since gave no lower loss\$" out ||
  die "no word on the earlier best: $(cat out)"

# So it is when the checkpoint is of the best step. Then, and without validation, it has no other tensors.
rm part
succeeds train "${early[@]}" --checkpoint part.checkpoint --stop-after $((done - 60))
grep -q 'best\.' early.checkpoint || die "the checkpoint lacks the best model"
if grep -q '"best\.' part.checkpoint; then die "the checkpoint has its own parameters twice"; fi
succeeds train "${early[@]}" --save part --resume part.checkpoint
cmp early part || die "another model than that of the checkpoint"

# An interrupt of any run saves it, and says so.
rm -f part trace
set -m
"$tool" train "${early[@]}" --steps 1000000 --compare 1000000 --save part --resume stopped.checkpoint --trace trace \
  >out 2>err &
child=$! status=0
set +m
until [ -e trace ] && [ "$(wc -l <trace)" -gt 3000 ]; do
  kill -0 $child 2>/dev/null || die "training ended by itself: $(cat err)"
  sleep 0.02
done
kill -INT $child
wait $child || status=$?
[ $status -eq 130 ] || die "interrupted: exit status $status: $(cat err)"
grep -q "; the model of step $((done - 60)), with the least validation loss, is saved in part; " err ||
  die "no word on the model: $(cat err)"
cmp early part || die "the interrupt saved another model"

# What stopped early does not resume with the same patience, but with more or none.
stopped='early.checkpoint: its training stopped after 3 validations without a lower loss; raise or leave out --patience'
fails 1 "$stopped" train "${early[@]}" --resume early.checkpoint
succeeds train "${early[@]}" --patience 5 --resume early.checkpoint --json
json_holds ".steps_done == $((done + 40))" '(.validation.losses | length) == 2'

# The comparison with the eager run is of the steps that both made.
compared=("${early[@]}" --compare 4000 --json)
succeeds train "${compared[@]}"
json_holds '.validation.stopped_early' '.identical' ".steps_compared == $done"
succeeds train "${early[@]:0:${#early[@]}-2}" --json
json_holds '.validation.stopped_early' '.identical' '.steps_compared == 20'

# The last step is validated too. If the training is given more steps, --patience does not count that one.
overfit=("${early[@]}" --patience 1000 --steps 190 --json --checkpoint overfit)
"$tool" train "${overfit[@]}" >out 2>err || die "$(cat err)"
json_holds '.validation.losses[-1].step == 190' '.validation | .best_step < 180 and .stopped_early == false'
since=$(jq '.validation | .best_step as $best | [.losses[].step | select(. > $best and . % 20 == 0)] | length' out)
grep -q "\"validations_since\":\"$since\"" overfit || die "not $since validations since the best: $(head -c 2000 overfit)"

# A patience that cannot end it is worth a warning.
words='there are too few validations in 190 steps, one every 20; use a lower --validate-every'
[ "$(cat err)" = "rondo train: --patience 1000 cannot end training early: $words" ] || die "no warning: $(cat err)"
"$tool" train "${overfit[@]}" --patience 9 >out 2>err || die "$(cat err)"
grep -q -- '--patience 9 cannot end' err || die "no warning: $(cat err)"
succeeds train "${overfit[@]}" --patience 8

# Samples change nothing.
for kind in character gpt; do
  sampled=(text --model "$kind" --steps 40 --batch 4 --context 8 --compare 0 --json)
  succeeds train "${sampled[@]}" --sample-every 15
  json_holds '[.samples[].step] == [15, 30]' '.samples | all(.text | utf8bytelength == 200)' \
    '.samples[0].text != .samples[1].text'
  cp out with_samples
  succeeds train "${sampled[@]}"
  [ "$(jq .losses out)" = "$(jq .losses with_samples)" ] || die "samples changed the losses of a $kind"
done
succeeds train text --steps 20 --compare 0 --sample-every 10
[ "$(grep -c '^sample   after step [12]0:$' out)" = 2 ] || die "no samples: $(cat out)"

# Bad input.
fails 2 '--patience needs --validation' train text --patience 3
fails 2 '--validate-every needs --validation' train text --validate-every 3
fails 2 'validation' train text --validation 51
fails 1 'leaves 118 bytes to train on and 2 to validate with; a context of 8 needs at least 9 of each' \
  train short --validation 2
fails 1 'a checkpoint of training with --validation 50, not 0' train "${early[@]:0:13}" --resume early.checkpoint
