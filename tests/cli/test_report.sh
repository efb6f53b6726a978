#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo report and rondo train --report: a page of a dumped graph, and of the recorded step with the time of each node
# (GX-7); a page that compares trainings (PR-12).
source "$(dirname "$0")/support.sh" "$1"
make_text >text
succeeds train text --steps 5 --batch 4 --hidden 8 --dump-graph step.json --report step.html --json
kernels=$(jq .kernels out)

# holds FILE TEXT...: a whole page, with each text in it.
holds() {
  local page=$1
  shift
  [ "$(head -c 15 "$page")" = '<!DOCTYPE html>' ] || die "$page is no page: $(head -c 100 "$page")"
  [ "$(tail -1 "$page")" = '</html>' ] || die "$page has no end"
  for part in "$@"; do
    grep -Fq -- "$part" "$page" || die "$page lacks '$part'"
  done
  if grep -Eq ' src=|href="[^#]|url\(' "$page"; then die "$page needs something from outside"; fi
}

holds step.html '<dt>Nodes</dt><dd>'"$kernels"'</dd>' '0 errors, 0 warnings' '<dt>All nodes</dt>' 'tokens: ' 'loss: ' \
  'bytes, live at once'
[ "$(grep -c 'class="time"' step.html)" -ge 1 ] || die "the recorded step has no times"
[ "$(grep -c '<tr id="row-n' step.html)" -eq "$kernels" ] || die "not a row for each of $kernels kernels"

# The training's own sections come first: curves of losses and times with their figures, also of a part of a training.
holds step.html '<h1>rondo train: a character model of text</h1>' '<a href="#host-0">Losses</a>' \
  '<a href="#host-1">Times of steps</a>' 'Steps also run eagerly: 5; their losses are identical' \
  '<dt>Eager</dt>' 'aria-label="Losses, nats a byte over steps"' 'Times of steps as a table'
[ "$(grep -c '<rect .*<title>step [1-5]: ' step.html)" -eq 10 ] || die "not five steps in each of two curves"
part=(text --steps 60 --batch 4 --hidden 8 --json)
succeeds train "${part[@]}" --checkpoint part --stop-after 30
succeeds train "${part[@]}" --resume part --report part.html
holds part.html 'Steps also run eagerly: 20'
[ "$(grep -c '<rect .*<title>step [3-6][0-9]: ' part.html)" -eq 60 ] || die "not the steps after the checkpoint"

succeeds report step.json --output page.html
[ ! -s out ] || die "--output, but printed: $(head -c 100 out)"
holds page.html "<dt>Nodes</dt><dd>$kernels</dd>" 'no times were measured' '<h1>train</h1>'
succeeds report step.json -o letter.html
cmp letter.html page.html || die "-o and --output differ"
succeeds report step.json
cmp out page.html || die "standard output has another page"
succeeds report - --title 'A <title>' --no-addresses <step.json
cp out titled.html
holds titled.html '<h1>A &lt;title&gt;</h1>'
if grep -q 0x7f titled.html; then die "--no-addresses left addresses"; fi

fails 1 'missing: No such file' report missing
head -c 300 step.json >shortened
fails 1 'shortened: .*line' report shortened
fails 1 'no regular file' report step.json --output .
fails 1 'step.json cannot be written: it is the FILE that is read' report step.json --output step.json
fails 1 'nowhere/page.html cannot be written' report step.json -o nowhere/page.html
fails 1 'no regular file' train text --steps 1 --report .
fails 2 '-o needs a value' report step.json -o
fails 2 "no option '-x'" report step.json -x

# Results of trainings: curves of those that have values, and a table in which what differs stands out.
train_run() {
  local file=$1
  shift
  succeeds train text --batch 4 --hidden 8 --json "$@"
  mv out "$file"
}
train_run first --steps 30 --validation 20 --validate-every 10
train_run 'a <second>' --steps 40 --compare 0 --seed 2
train_run begun --steps 40 --validation 20 --validate-every 15 --checkpoint begun.checkpoint --stop-after 20
train_run resumed --steps 40 --validation 20 --validate-every 15 --resume begun.checkpoint
succeeds report first 'a <second>' resumed -o runs.html
holds runs.html '<h1>rondo train: 3 runs</h1>' 'aria-label="Losses, nats a byte over steps"' '<th>Run 1: first</th>' \
  'aria-label="Validation losses, nats a byte over steps"' '<th>Run 2: a &lt;second&gt;</th>' \
  '<tr class="differs"><td>Seed</td><td>1</td><td>2</td><td>1</td></tr>' \
  '<tr><td>Batch</td><td>4</td><td>4</td><td>4</td></tr>' \
  '<tr class="differs"><td>Steps</td><td>30</td><td>40</td><td>40</td></tr>' \
  '<tr class="differs"><td>Steps before, of the checkpoint</td><td>0</td><td>0</td><td>20</td></tr>' \
  "<td>Least validation loss</td><td>$(jq .validation.best_loss first | cut -c 1-5)"
[ "$(grep -c '>run [123]</text>' runs.html)" = 5 ] || die "not the keys of three losses and two validations"
[ "$(grep -c '^<tr><td>run 3</td><td class="number">2[1-9]\|^<tr><td>run 3</td><td class="number">3[0-9]' runs.html)" -ge 19 ] ||
  die "not the steps of the resumed run"
[ "$(grep -o "<td>run 3</td><td class=\"number\">30</td><td class=\"number\">[0-9.]*" runs.html | tail -1)" = \
  "<td>run 3</td><td class=\"number\">30</td><td class=\"number\">$(jq '.validation.losses[0].loss' resumed | xargs printf %.6g)" ] ||
  die "not the validation after step 30"
if grep -q 'Layers\|Tokens a second' runs.html; then die "a row without values"; fi
succeeds report - --title 'One & only' <first
cp out one.html
holds one.html '<h1>One &amp; only</h1>' '<th>Run 1: standard input</th>'

fails 1 'step.json: it is not the result of a training: use a file that rondo train --json wrote' report first step.json
fails 1 'first cannot be written: it is the FILE that is read' report step.json first -o first
fails 2 "unexpected argument 'first'" report $(printf 'first %.0s' {1..9})
head -c 300 first >shortened
fails 1 'shortened: line [0-9]+ is no JSON: ' report first shortened
refuse() {
  jq "$1" first >wrong
  fails 1 "wrong: $2: use a file that rondo train --json wrote" report wrong first
}
refuse 'del(.losses)' "its 'losses' are not one for each step"
refuse '.losses_from = 1' "its 'losses_from' is no step before the run"
refuse '.losses[3] = null' "its 'losses' are not all numbers"
refuse '.losses |= .[1:]' "its 'losses' are not one for each step"
refuse '.steps_done = 0' "its 'steps_before' and 'steps_done' are no steps"
refuse '.steps_before = -1' "its 'steps_before' and 'steps_done' are no steps"
refuse '.steps_done = 1e18' "its 'steps_before' and 'steps_done' are no steps"
refuse '.loss_history = 1' "it is not the result of a training"
for step in 0 31 10 '"x"' null; do
  refuse ".validation.losses[1].step = $step" "its 'validation' has something else than losses after its steps"
done
refuse '.validation.losses[0].loss = "x"' "its 'validation' has something else than losses after its steps"
