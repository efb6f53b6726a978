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
early=(text --batch 16 --context 4 --embedding 8 --hidden 32 --learning-rate 0.05 --compare 0 --steps 4000
  --validation 50 --validate-every 20 --patience 3)
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
succeeds train "${early[@]}" --json --save part --checkpoint part.checkpoint --stop-after $((done - 30))
succeeds train "${early[@]}" --json --save part --checkpoint part.checkpoint --resume part.checkpoint
json_holds '.validation.stopped_early' ".steps_done == $done"
cmp early.checkpoint part.checkpoint || die "two parts gave another checkpoint"
cmp early part || die "two parts gave another model"

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
fails 1 'a checkpoint of training with --validation 50, not 0' train "${early[@]:0:13}" --steps 4000 --resume early.checkpoint
