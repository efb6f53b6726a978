#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo bench launch (GX-6, GX-10): every row is there and makes sense, with the table of "CUDA Graph in TensorFlow" beside
# it. rondo bench memory (GM-9): every way is there. rondo bench change (GX-5): every row is there.
# rondo bench patch (TR-6), rondo bench gain (FW-8): the same. rondo bench tree (TR-1, TR-4, TR-6): the same; hits allocate nothing, and what the
# library decides can be read with RONDO_LOG=tree (TR-8). rondo bench gpt (FW-4, FW-9): both ways give the same losses.
# rondo bench executor (SE-10): every program and way is there, and all give the same. rondo bench capture (SE-1, GX-11):
# models are captured at once and in turn.
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
for text in 'line of 32' 'two branches of 16' 'fork 30 and join' 'line of 320' 'line of 3200' 'A100' '10,000 nodes' \
  '8 threads'; do
  grep -q -- "$text" out || die "no '$text' in: $(cat out)"
done

fails 1 'nonsense' bench launch --device nonsense

# Memory: three ways, none of which holds less than lives at once.
cat >buffers.csv <<'END'
id,lower,upper,size
a,0,3,4000000
b,1,2,6000000
c,2,5,6000000
d,3,4,0
e,4,6,4000000
END
succeeds bench memory buffers.csv --json
json_holds '.device == "cpu"' '.buffers == 5' '.bound == 10000128' '.page_bound >= .bound' \
  '[.ways[].way] == ["online", "profiled", "relocated"]' \
  'all(.ways[]; .ratio >= 1 and .bytes >= 10000128 and .instantiate_us > 0 and .first_us > 0 and .again_us > 0 and
    .alternating_us > 0 and .remaps == 0 and .alternating_remaps >= 0)' '[.ways[].profile_us] | .[1] > 0'
succeeds bench memory - <buffers.csv
grep -Eq '^relocated +[0-9]+ +1\.' out || die "no row of a way: $(cat out)"
fails 1 'nothing.csv' bench memory nothing.csv
fails 1 'nonsense' bench memory buffers.csv --device nonsense

# Changes.
succeeds bench change --seconds 0.1 --nodes 50 --json
json_holds '.device == "cpu"' '.nodes == 50' \
  'all(.instantiate, .update, .patch_and_launch, .launch; .host_us > 0 and .host_us_min <= .host_us)'
succeeds bench change --seconds 0.1 --nodes 5
grep -q '^patch one and launch ' out || die "no row of patching: $(cat out)"
fails 1 'nonsense' bench change --device nonsense

# What recording gains (FW-8).
succeeds bench gain --seconds 0.1 --json
json_holds '.device == "cpu"' '(.cases | length) > 15' '.costs.launch_host > 0' \
  'all(.cases[]; .kernels > 0 and .elements > 0 and .gain > 0 and .predicted.gain > 0 and
    .unrecorded.total_us > 0 and .recorded.total_us > 0 and .predicted.recorded_total_us > 0)' \
  '.within_25_percent <= (.cases | length)'
succeeds bench gain --seconds 0.1
grep -q 'gains are predicted within 25 %' out || die "no summary: $(cat out)"
fails 1 'nonsense' bench gain --device nonsense

# Inputs elsewhere.
succeeds bench patch --seconds 0.1 --json
json_holds '.device == "cpu"' '.nodes == 32' '[.rondo.readers[].readers] == [1, 2, 4, 8, 16]' \
  'all(.rondo.readers[]; .launch.host_us > 0 and .patched.host_us > 0 and .patched.total_us >= .patched.host_us)' \
  '[.rondo.sizes[].bytes] == [4096, 16384, 65536, 262144, 1048576, 4194304]' \
  'all(.rondo.sizes[]; .copied.host_us > 0 and .crossing_host_readers >= 0)' '.bare == null'
succeeds bench patch --seconds 0.1 --nodes 16
grep -q '^  16 readers ' out || die "no row of readers: $(cat out)"
fails 2 'nodes' bench patch --nodes 15
fails 1 'nonsense' bench patch --device nonsense

# Trees. The buffers above live across the functions that a path is cut into.
succeeds bench tree --seconds 0.1 --shapes 20 --buffers buffers.csv --parts 3 --json
json_holds '.device == "cpu"' '.nodes == 32' '.inputs == 8' '.launch.host_us > 0' '.bare == null' \
  '[.calls[].moving] == [0, 1, 1, 4, 4, 1]' '[.calls[].readers] == [1, 1, 4, 1, 4, 1]' \
  '[.calls[].binding] == ["none", "patch", "patch", "patch", "patch", "copy"]' \
  'all(.calls[]; .host_us > 0 and .host_us_min <= .host_us and .host_us <= .host_us_max and .total_us >= .host_us)' \
  '.hit_allocations == 0' '.shapes.recordings == 20 and .shapes.ratio >= 1 and .shapes.exec_host_bytes > 0' \
  '.path.recordings == 3' '.path.bound == 10000128' '.path.ratio >= 1' '.path.arena_used <= .path.arena_backed' \
  '.path.record_us > 0 and .path.replay_us > 0' '.path_recorded_singly.recordings == 3' \
  '.path_planned_again.recordings == 3' '.path_planned_again.ratio <= .path_recorded_singly.ratio'
succeeds bench tree --seconds 0.1 --shapes 2
grep -q '^four patched, 4 readers ' out || die "no row of a case: $(cat out)"
! grep -q '^path ' out || die "a path without buffers: $(cat out)"
RONDO_LOG=tree "$tool" bench tree --seconds 0.01 --shapes 1 >out 2>err || die "exit status $?: $(tail -3 err)"
for text in "tree: 'layers' runs eagerly: WARM_UP" "tree: 'layers' is recorded: number 1" "tree: 'layers' is replayed"; do
  grep -qF "$text" err || die "no line '$text' in: $(head -20 err)"
done
fails 1 'nothing.csv' bench tree --seconds 0.01 --shapes 1 --buffers nothing.csv
fails 2 'nodes' bench tree --nodes 31

# A training step.
step=(--context 16 --layers 2 --width 16 --heads 2 --batch 2 --vocabulary 20 --seconds 0.1)
for type in f32 bf16; do
  succeeds bench gpt "${step[@]}" --type $type --json
  json_holds '.device == "cpu"' ".type == \"$type\"" '.identical' '([.kernel_names[]] | add) == .kernels' \
    ".kernel_names.matmul_$type > 0" '.parameters == 20 * 16 + 16 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16 + 16 * 20' \
    'all(.recorded, .unrecorded; .host_us > 0 and .host_us_min <= .host_us and .step_us >= .host_us)' \
    '.memory.planned >= .memory.lower_bound' '.memory | .order_peak > 0 and .order_peak <= .program_peak'
done
succeeds bench gpt "${step[@]}"
grep -Eq '^order of operators: results live at once [0-9]+ B, in the program.s order [0-9]+ B$' out ||
  die "no word on the order: $(cat out)"
grep -Eq '^kernels [0-9]+ a step: ' out || die "no kernels: $(cat out)"
fails 2 "--type takes f32, bf16 or f16, not 'i32'" bench gpt --type i32
fails 2 'a width of 30 is no multiple of 4 heads' bench gpt --width 30
fails 1 'nonsense' bench gpt --device nonsense

# Runs by an executor.
small=(--seconds 0.1 --rows 8 --table-rows 50 --branches 6 --length 2 --width 16)
succeeds bench executor "${small[@]}" --threads 2 --expensive 0.001 --json
json_holds '.device == "cpu"' '.threads == 2' '[.programs[].program] == ["recommender", "tables", "branches"]' \
  'all(.programs[]; .identical and .operators > 0 and .nodes > 0 and .thread_nodes <= .nodes and .expensive > 0)' \
  'all(.programs[] | .line, .executor, .recorded; .host_us > 0 and .host_us_min <= .host_us and
    .total_us >= .host_us_min and .total_us_min <= .total_us)' \
  'all(.programs[]; .taken_line_us > 0 and .taken_executor_us > 0 and
    ((.taken == "executor") == (.taken_line_us >= 1.05 * .taken_executor_us)))'
succeeds bench executor "${small[@]}"
grep -q '^branches ' out || die "no row of the branches: $(cat out)"
fails 1 'nonsense' bench executor --device nonsense

for device in cpu cpu:check; do
  # The device's handlers of faults stand where AddressSanitizer's would.
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0:handle_sigbus=0 \
    succeeds bench capture --rounds 2 --sizes 2 --streams 2 --device "$device" --json
  json_holds '.graphs == 4' '[.cases[].models] == [1, 2, 4]' \
    'all(.cases[]; .in_turn_us > 0 and .at_once_us > 0 and .scaling > 0)'
done
succeeds bench capture --rounds 1 --sizes 1 --model recommender --table-rows 10
grep -Eq '^ +4 +[0-9.]+ +[0-9.]+ +[0-9.]+$' out || die "no row of four models: $(cat out)"
fails 2 "no model 'other'" bench capture --model other
fails 1 'nonsense' bench capture --device nonsense
