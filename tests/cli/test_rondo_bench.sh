#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo_bench: every row exists and is plausible. change (GX-5), patch (TR-6), tree (TR-1, TR-4, TR-6): hits allocate
# nothing, and RONDO_LOG=tree shows the decisions (TR-8). decode (AD-5, AD-9): all results are right. training (FW-4,
# FW-9): both modes give the same losses. executor (SE-10): all modes give the same numbers. capture (SE-1, GX-11): in
# parallel and one after the other.
source "$(dirname "$0")/support.sh" "$1"

succeeds --help
sed -nE 's/^  ([a-z_]+) .*/\1/p' out >names
for name in $(cat names); do
  grep -q . names && succeeds "$name" --help
  head -1 out | grep -q "rondo_bench $name" || die "rondo_bench $name --help begins with: $(head -1 out)"
  ! grep -E '^.{81}' out || die "rondo_bench $name --help has lines of more than 80 columns"
done
grep -qx tree names || die "no tree among: $(cat names)"
fails 2 'a benchmark is missing'
fails 2 "no benchmark 'lunch'" lunch

make_buffers >buffers.csv
# Changes.
succeeds change --seconds 0.1 --nodes 50 --json
json_holds '.device == "cpu"' '.nodes == 50' \
  'all(.instantiate, .update, .patch_and_launch, .launch; .host_us > 0 and .host_us_min <= .host_us)'
succeeds change --seconds 0.1 --nodes 5
grep -q '^patch_and_launch ' out || die "no row of patching: $(cat out)"
fails 1 'nonsense' change --device nonsense

# Inputs elsewhere.
succeeds patch --seconds 0.1 --json
json_holds '.device == "cpu"' '.nodes == 32' '[.rondo.readers[].readers] == [1, 2, 4, 8, 16]' \
  'all(.rondo.readers[]; .launch.host_us > 0 and .patched.host_us > 0 and .patched.total_us >= .patched.host_us)' \
  '[.rondo.sizes[].bytes] == [4096, 16384, 65536, 262144, 1048576, 4194304]' \
  'all(.rondo.sizes[]; .copied.host_us > 0 and .crossing_host_readers >= 0)' '.bare == null'
succeeds patch --seconds 0.1 --nodes 16
grep -q '^16  patched ' out || die "no row of readers: $(cat out)"
fails 2 'nodes' patch --nodes 15
fails 1 'nonsense' patch --device nonsense

# Trees. The buffers above live across the functions that a path is cut into.
succeeds tree --seconds 0.1 --shapes 20 --buffers buffers.csv --parts 3 --json
json_holds '.device == "cpu"' '.nodes == 32' '.inputs == 8' '.launch.host_us > 0' '.bare == null' \
  '[.calls[].moving] == [0, 1, 1, 4, 4, 1, 0, 0, 1]' '[.calls[].readers] == [1, 1, 4, 1, 4, 1, 1, 1, 1]' \
  '[.calls[].binding] == ["none", "patch", "patch", "patch", "patch", "copy", "none", "none", "patch"]' \
  'all(.calls[]; .host_us > 0 and .host_us_min <= .host_us and .host_us <= .host_us_max and .total_us >= .host_us)' \
  '.hit_allocations == 0' '.shapes.recordings == 20 and .shapes.ratio >= 1 and .shapes.exec_host_bytes > 0' \
  '.path.recordings == 3' '.path.bound == 10000128' '.path.ratio >= 1' '.path.arena_used <= .path.arena_backed' \
  '.path.record_us > 0 and .path.replay_us > 0' '.path_recorded_singly.recordings == 3' \
  '.path_planned_again.recordings == 3' '.path_planned_again.ratio <= .path_recorded_singly.ratio'
succeeds tree --seconds 0.1 --shapes 2
grep -q '^four patched, 4 readers ' out || die "no row of a case: $(cat out)"
! grep -q '^path' out || die "a path without buffers: $(cat out)"
RONDO_LOG=tree "$tool" tree --seconds 0.01 --shapes 1 >out 2>err || die "exit status $?: $(tail -3 err)"
for text in "tree: 'layers' runs eagerly: WARM_UP" "tree: 'layers' is recorded: number 1" "tree: 'layers' is replayed"; do
  grep -qF "$text" err || die "no line '$text' in: $(head -20 err)"
done
fails 1 'nothing.csv' tree --seconds 0.01 --shapes 1 --buffers nothing.csv
fails 2 'nodes' tree --nodes 31

# A decoder's launch loop: nothing is wrong, and the regions hold no more after 100 tokens.
succeeds decode --tokens 400 --nodes 16 --seconds 0.1 --json
json_holds '.device == "cpu"' '.tokens == 400' '.kernels == 16' '.growth_bytes == 0' '(.forms | length) == 4' \
  'all(.forms[]; .wrong == 0 and .token_us > 0 and .token_us_min <= .token_us and .tokens_per_second > 0)'
succeeds decode --tokens 10 --nodes 2 --seconds 0.1
grep -q '^region, replayed ' out || die "no row of a form: $(cat out)"

# A training step.
step=(--context 16 --layers 2 --width 16 --heads 2 --batch 2 --vocabulary 20 --seconds 0.1)
for type in f32 bf16; do
  succeeds training "${step[@]}" --type $type --json
  json_holds '.device == "cpu"' ".type == \"$type\"" '.identical' '([.kernel_names[]] | add) == .kernels' \
    ".kernel_names.matmul_$type > 0" '.parameters == 20 * 16 + 16 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16 + 16 * 20' \
    'all(.recorded, .eager; .host_us > 0 and .host_us_min <= .host_us and .step_us >= .host_us)' \
    '.memory.planned >= .memory.lower_bound' '.memory | .order_peak > 0 and .order_peak <= .program_peak'
done
succeeds training "${step[@]}"
for text in '^program_peak ' '^kernels ' '^matmul_f32 ' '^eager '; do
  grep -q "$text" out || die "no '$text' in: $(cat out)"
done
fails 2 "--type takes f32, bf16 or f16, not 'i32'" training --type i32
fails 2 'width 30 is not a multiple of 4 heads' training --width 30
fails 1 'nonsense' training --device nonsense

succeeds training --model character --context 8 --embedding 4 --hidden 8 --batch 2 --vocabulary 20 --seconds 0.1 --json
json_holds '.hidden == 8' '.identical' '.width == null' '.recorded.step_us > 0'
fails 2 "no model 'other'; there are character or gpt" training --model other

# Runs by an executor.
small=(--seconds 0.1 --rows 8 --table-rows 50 --branches 6 --length 2 --width 16)
succeeds executor "${small[@]}" --threads 2 --expensive 0.001 --json
json_holds '.device == "cpu"' '.threads == 2' '[.programs[].program] == ["recommender", "tables", "branches"]' \
  'all(.programs[]; .identical and .operators > 0 and .nodes > 0 and .thread_nodes <= .nodes and .expensive > 0)' \
  'all(.programs[] | .line, .executor, .recorded; .host_us > 0 and .host_us_min <= .host_us and
    .total_us >= .host_us_min and .total_us_min <= .total_us)' \
  'all(.programs[]; .taken_line_us > 0 and .taken_executor_us > 0 and
    ((.taken == "executor") == (.taken_line_us >= 1.05 * .taken_executor_us)))'
succeeds executor "${small[@]}"
grep -q '^branches  executor ' out || die "no row of the branches: $(cat out)"
fails 1 'nonsense' executor --device nonsense

for device in cpu cpu:check; do
  # The device's handlers of faults stand where AddressSanitizer's would.
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0:handle_sigbus=0 \
    succeeds capture --rounds 2 --sizes 2 --streams 2 --device "$device" --json
  json_holds '.graphs == 4' '[.cases[].models] == [1, 2, 4]' \
    'all(.cases[]; .in_turn_us > 0 and .at_once_us > 0 and .scaling > 0)'
done
succeeds capture --rounds 1 --sizes 1 --model recommender --table-rows 10
grep -Eq '^ +4 .* +[0-9.]+$' out || die "no row of four models: $(cat out)"
fails 2 "no model 'other'" capture --model other
fails 1 'nonsense' capture --device nonsense
