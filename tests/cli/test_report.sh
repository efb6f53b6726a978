#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo report and rondo train --report: a page of a dumped graph, and of the recorded step with the time of each node
# (GX-7).
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
