#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo serve gpt (PR-5): texts at once and one at a time are the same, figures agree with each other, and bad input is
# named.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
succeeds train text --model gpt --context 24 --layers 2 --width 16 --heads 2 --steps 30 --batch 4 --compare 0 --save gpt

small=(--seconds 0.05 --clients 4 --tokens 9 --prompt 12)
succeeds serve gpt gpt --load "${small[@]}" --temperature 0 --json
json_holds '.clients == 4 and .slots == 4' '.slot_bytes == 2 * 2 * 24 * 16 * 4' '.rounds >= 3' \
  '.lengths[0].length == 1 and .lengths[0].graph_rows == [4, 2, 1]' '.lengths[-1].length <= 12' \
  '(.lengths | length) <= 4' '.rounds as $n | [.alone, .together] | all(.sequences == 4 * $n and .tokens == 36 * $n)' \
  '[.alone, .together] | all(.tokens_per_second > 0 and .token_us > 0 and .first_token_us > 0)' \
  '.alone.batch_rows == 1 and .together.batch_rows >= 1 and .together.batch_rows <= 4' '.gain > 0' \
  '.texts == 4 * .rounds and .same_texts > 0 and .same_texts <= .texts' '.state_bytes > 0 and .arena_bytes > 0'

# With one client, both ways are the same.
succeeds serve gpt gpt --load "${small[@]}" --clients 1 --sizes 1 --lengths 1 --json
json_holds '.lengths | length == 1 and .[0].graph_rows == [1]' '.texts == .same_texts' '.together.batch_rows == 1'

succeeds serve gpt gpt --load "${small[@]}" --seed 7 --workers 2
for row in 'model +gpt, [0-9.]+ million parameters, 4 slots of 6144 bytes' 'recorded +in [0-9.]+ s: length 1 for ' \
  ' +tokens/s' 'one at a time +[0-9.]+' '4 at once +[0-9.]+' 'gain +[0-9.]+ times the tokens a second' \
  'texts +[0-9]+ of [0-9]+ are the same' 'bytes +[0-9]+ of states'; do
  grep -Eq "^($row)" out || die "no row '$row' in: $(cat out)"
done

fails 2 '--load is required' serve gpt gpt
fails 2 'FILE is missing' serve gpt --load
fails 1 'missing' serve gpt missing --load
fails 1 '--prompt 20 and --tokens 9 are more than the 24 tokens' serve gpt gpt --load --prompt 20 --tokens 9
fails 1 'nowhere' serve gpt gpt --load "${small[@]}" --device nowhere
succeeds train text --steps 2 --batch 2 --context 4 --embedding 4 --hidden 4 --compare 0 --save character
fails 1 'of the kind character, which has no caches' serve gpt character --load
