#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo bench: every row is there and makes sense: launch (GX-6, GX-10), with the table of "CUDA Graph in TensorFlow";
# memory (GM-9), in every way; gain (FW-8).
source "$(dirname "$0")/support.sh" "$1"

succeeds bench launch --seconds 0.3 --json
json_holds '.device == "cpu"' '[.shapes[].nodes] == [32, 32, 32, 320, 3200]' '[.shapes[].streams] == [1, 2, 30, 1, 1]' \
  'all(.shapes[]; .samples > 0 and .loop_us > 0 and .speedup.host > 0 and .speedup.device > 0 and .speedup.total > 0)' \
  'all(.shapes[] | .stream, .graph; .host_us > 0 and .host_us_min <= .host_us and .host_us <= .host_us_max and
    .device_us >= 0 and .total_us >= .host_us_min and .total_us_min <= .total_us and .total_us <= .total_us_max)' \
  '[.reference_a100[].host_speedup] == [14.7, 21.8, 21.9]' '[.reference_a100[].device_speedup] == [2.2, 5.4, 7.6]' \
  '[.launch_call[].nodes] == [32, 10000]' 'all(.launch_call[]; .host_us > 0)' \
  '[.threads[].threads] == [1, 2, 4, 8]' 'all(.threads[]; .host_us > 0 and .host_us_min <= .host_us)'

succeeds bench launch --seconds 0.1 --workers 2
for text in 'line of 32  stream ' 'two branches of 16  graph ' 'fork 30 and join  speedup ' 'line of 320 ' 'line of 3200 ' \
  reference_a100 '^10000 ' '^ *8 '; do
  grep -q -- "$text" out || die "no '$text' in: $(cat out)"
done

fails 1 'nonsense' bench launch --device nonsense

# Memory: three ways, none of which holds less than lives at once.
make_buffers >buffers.csv
succeeds bench memory buffers.csv --json
json_holds '.device == "cpu"' '.buffers == 5' '.bound == 10000128' '.page_bound >= .bound' \
  '[.ways[].way] == ["online", "profiled", "relocated"]' \
  'all(.ways[]; .ratio >= 1 and .bytes >= 10000128 and .instantiate_us > 0 and .first_us > 0 and .again_us > 0 and
    .alternating_us > 0 and .remaps == 0 and .alternating_remaps >= 0)' '[.ways[].profile_us] | .[1] > 0'
succeeds bench memory - <buffers.csv
grep -Eq '^relocated +[0-9]+ +1(\.[0-9]+)? ' out || die "no row of a way: $(cat out)"
fails 1 'nothing.csv' bench memory nothing.csv
fails 1 'nonsense' bench memory buffers.csv --device nonsense

# What recording gains (FW-8).
succeeds bench gain --seconds 0.1 --json
json_holds '.device == "cpu"' '(.cases | length) > 15' '.costs.launch_host > 0' \
  'all(.cases[]; .kernels > 0 and .elements > 0 and .gain > 0 and .predicted.gain > 0 and
    .eager.total_us > 0 and .recorded.total_us > 0 and .predicted.recorded_total_us > 0)' \
  '.within_25_percent <= (.cases | length)'
succeeds bench gain --seconds 0.1
grep -q '^within_25_percent ' out || die "no summary: $(cat out)"
grep -q '^256 x 256  recorded ' out || die "no row of a case: $(cat out)"
fails 1 'nonsense' bench gain --device nonsense
