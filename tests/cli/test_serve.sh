#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo serve and rondo session plan: figures agree with each other, histories are read, and bad input is named (SE-7,
# SE-11).
source "$(dirname "$0")/support.sh" "$1"

# A history: comments, blanks, counts, CR LF, no line end at the end.
printf '# rows,requests\n8,5\n\n 3 \n 12 , 2\r\n5' >few.txt
succeeds session plan --history few.txt --json --sizes 3
json_holds '.requests == 9' '.streams == 1' '(.graphs | length) >= 1' '(.graphs | length) <= 3' '.mean_us > 0' \
  '.padding >= 0 and .padding < 1' '.recorded + .split + .eager == 9' '.arena_bytes > 0' '.exec_bytes > 0' \
  '[.graphs[].rows] | . == (sort | reverse)' '[.graphs[] | .run_us > 0 and .eager_us > 0] | all' \
  '([.graphs[].requests] | add) <= 9' '.planned.arena_bytes == .arena_bytes' '.planned.state_bytes == .state_bytes' \
  '.planned.staging_bytes == .staging_bytes' '.planned.exec_bytes == .exec_bytes'
# Next to the chosen sizes, those of rules, which requests are padded to: 72 rows run in 76, 73, 73 and 75.
json_holds '[.ladders[].name] == ["chosen", "doubling", "halves", "triton", "four"]' \
  '(.ladders[0].rows | sort) == ([.graphs[].rows] | sort)' '.ladders[1].rows == [4, 8, 12]' \
  '.ladders[2].rows == [3, 4, 6, 8, 12]' '.ladders[3].rows == [1, 2, 3, 4, 6, 8, 12]' \
  '.ladders[4].rows == [3, 4, 8, 12]' \
  '[.ladders[1:][].padding * 1e6 | round] == [76, 73, 73, 75 | (1 - 72 / .) * 1e6 | round]' \
  '.ladders | all(.mean_us > 0 and .capture_us > 0 and .exec_bytes > 0)' \
  '([.ladders[1:][].arena_bytes] | unique | length) == 1' '.ladders[2].exec_bytes > .ladders[4].exec_bytes' \
  '.ladders[2:4] | .[0].mean_us == .[1].mean_us'
succeeds session plan --history - --model recommender --table-rows 50 --streams 2 --sizes 2 <few.txt
for row in 'graph +rows +run us' 'requests +9: ' 'mean +[0-9.]+ us' 'padding +[0-9.]+ % of rows' 'start-up' 'planned +[0-9]+ of states' 'bytes +[0-9]+ of states' 'sizes +graphs +padding % +mean us' 'chosen +[12] ' 'doubling +3 ' 'four +4 '; do
  grep -Eq "^$row" out || die "no row '$row' in: $(cat out)"
done
printf '7\n' >one.txt
succeeds session plan --history one.txt --json
json_holds '.ladders[0].rows == [7] and .ladders[1].rows == [7] and .ladders[4].rows == [2, 3, 5, 7]' \
  '.ladders | all(.padding == 0)'
# With a budget for a graph of 5 rows at most, larger requests take several.
succeeds session plan --history few.txt --sizes 1 --budget-bytes 60000 --json
json_holds '.ladders[0].rows | length == 1 and .[0] <= 5' '.ladders[1].rows == [4, 8, 12]' \
  '.ladders[0] | .rows[0] as $rows
    | ([[8, 5], [3, 1], [12, 2], [5, 1]] | map(.[1] * (.[0] / $rows | ceil) * $rows) | add) as $run
    | .padding - 1 + 72 / $run | fabs < 1e-6'

# Loads: what was asked for was answered, and nothing failed.
small=(--requests 4 --least 4 --most 16 --median 8 --seconds 0.2 --sizes 3)
succeeds serve dense --load "${small[@]}" --batch-rows 1 --clients 2 --spread 0.2 --json
json_holds '.model == "dense"' '.streams == 2' '.clients == 2' '.sizes == 4' '.graphs >= 1 and .graphs <= 3' '.rate > 0' \
  '[.closed_recorded, .closed_eager, .closed_chosen] | all(.answered > 0 and .waited_us > 0 and .median_us > .waited_us and .p999_us >= .median_us)' \
  '[.closed_recorded, .closed_eager, .closed_chosen, .open_recorded, .open_eager, .open_chosen]
    | all(.failed == 0 and .refused == 0 and .busy > 0 and .busy <= 1 and .processors > 0)' \
  '[.closed_recorded, .open_recorded] | all(.batch_requests >= 1 and .batching_us > 0 and .enqueue_us > 0)' \
  '[.closed_eager, .open_eager] | all(.enqueue_us == 0 and .batching_us > 0)' \
  '[.closed_eager, .open_eager] | all(.padding == 0)' '.gain > 0 and .gain_chosen > 0 and .median_ratio > 0' \
  '.answers.checked > 0 and .answers.identical > 0' '.decide_ns > 0' '.state_bytes > 0 and .staging_bytes > 0' 'has("choice") or has("ladders") or has("soak") | not'
succeeds serve recommender --load "${small[@]}" --table-rows 40 --rate 50 --streams 1 --delay-us 100 --history few.txt
for row in 'closed, recorded' 'closed, eager' 'closed, chosen' 'open, recorded' 'open, eager' 'open, chosen' \
  'recorded +[0-9.]+ times the requests, [0-9.]+ times the median' 'open loop +50.0 requests' 'batches +of [0-9.]+ requests, [0-9.]+ us each to form' 'bytes'; do
  grep -Eq "^$row" out || die "no row '$row' in: $(cat out)"
done

# Sizes next to the chosen ones, each request by itself, a page, and a soak with every kind of bad request.
succeeds serve recommender --load "${small[@]}" --table-rows 40 --batch 1 --regret --soak 1 --report page.html --json
json_holds '.choice | .tried >= 1 and .best_us > 0 and .regret >= 0 and .chosen_us >= .best_us' \
  '(.ladders | length) == 5 and (.ladders[0].rows | length) == .choice.alone' \
  '([.ladders[1:][].rows[-1]] | unique | length) == 1' '.ladders | all(.padding >= 0 and .padding < 1 and .mean_us > 0)' \
  '[.closed_recorded, .open_recorded] | all(.batched == 0)' '.curve_recorded | length == 8' \
  '.curve_eager | length == 8' \
  '.soak | .answered > 0 and .wrong == 0 and .stuck == 0 and .refused_shape + .not_numbers > 0' \
  '.soak | (.windows | length) >= 4' \
  '.soak | .p99_us >= .median_us and .resident_bytes_after > 0'
grep -q 'requests a second' page.html || die 'the page has no latency curve'
headings=$(grep -m 1 '<th>Load' page.html | grep -o '<th[ >]' | wc -l)
cells=$(grep -m 1 '<tr><td>' page.html | grep -o '<td[ >]' | wc -l)
[ "$headings" -eq "$cells" ] || die "a table of the page has $headings headings over $cells cells"
grep -q '</html>' page.html || die 'the page has no end'
command -v xmllint >/dev/null && { xmllint --noout page.html || die 'the page is not well-formed'; }

# A soak of the model that has no table to have a wrong index for.
succeeds serve dense --load "${small[@]}" --soak 1 --json
json_holds '.soak | .answered > 0 and .wrong == 0 and .stuck == 0 and .refused_index == 0' \
  '.soak | .not_numbers > 0 and .cancelled + .timed_out > 0'

# Look-ups on a device of their own, and the same undivided (SE-9).
succeeds serve recommender --load "${small[@]}" --table-rows 40 --look-ups cpu:1 --json
json_holds '.division.look_ups == "cpu:1"' '.division | .gain > 0 and .median_ratio > 0' \
  '.division.state_bytes >= 26 * 40 * 16 * 4 and .division.arena_bytes > 0' '.state_bytes > .division.state_bytes' \
  '[.closed_recorded, .closed_undivided, .open_undivided] | all(.answered > 0 and .failed == 0)'
succeeds serve recommender --load "${small[@]}" --table-rows 40 --look-ups cpu --soak 1
for row in 'look-ups +on cpu' 'divided +[0-9.]+ times the requests of undivided' 'closed, undivided' \
  'soak .*none wrong'; do
  grep -Eq "^$row" out || die "no row '$row' in: $(cat out)"
done

# Bad input is named.
fails 2 '--look-ups requires recommender' serve dense --load --look-ups cpu
fails 2 '--regret does not support a divided model' serve recommender --load --look-ups cpu --regret
fails 1 'nowhere' serve recommender --load --table-rows 4 --look-ups nowhere
fails 2 '--load is required' serve dense
fails 2 "no model 'other'" serve other --load
fails 2 'least 9 is more than --most 8' serve dense --load --least 9 --most 8
fails 2 'median 5 is not between' serve dense --load --least 9 --most 18 --median 5
fails 1 'none/page.html' serve dense --load --report none/page.html
fails 2 "there is no action 'go'; there is plan" session go
fails 2 "no model 'other'" session plan --model other
printf '5\nx\n' >bad.txt
fails 1 "bad.txt, line 2: 'x' is not ROWS or ROWS,REQUESTS with ROWS from 1 to [0-9]+" session plan --history bad.txt
printf '0\n' >bad.txt
fails 1 "bad.txt, line 1: '0'" session plan --history bad.txt
printf '5,\n' >bad.txt
fails 1 "bad.txt, line 1: '5,'" session plan --history bad.txt
printf '#\n' >bad.txt
fails 1 'bad.txt: the file contains no requests' session plan --history bad.txt
fails 1 'none.txt' session plan --history none.txt
fails 1 'none of .* candidates fits the budgets' session plan --history few.txt --budget-bytes 1
