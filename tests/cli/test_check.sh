#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo check: finds the mistakes of a dumped graph (GM-5, GM-18), and refuses what is no graph (bad input).
source "$(dirname "$0")/support.sh" "$1"

kernel='{"name": "saxpy", "block_threads": 256, "parameters": [{"access": "write", "bytes": 8, "alignment": 8}]}'
# graph NODE...: a dump with one kernel and these nodes.
graph() {
  local IFS=,
  printf '{"rondo_graph": 1, "name": "step", "kernels": [%s], "nodes": [%s]}\n' "$kernel" "$*"
}
alloc='{"number": 0, "kind": "alloc", "name": "scratch", "bytes": 4096, "allocation": "scratch", "address": "0x10000",
  "dependencies": []}'
# kernel_node NUMBER ADDRESS DEPENDENCIES
kernel_node() {
  printf '{"number": %s, "kind": "kernel", "name": "saxpy", "kernel": 0, "grid": [1, 1, 1], "arguments": ["%s"],
    "dependencies": [%s]}' "$1" "$2" "$3"
}
# free_node NUMBER DEPENDENCIES
free_node() {
  printf '{"number": %s, "kind": "free", "name": "", "address": "0x10000", "dependencies": [%s]}' "$1" "$2"
}

graph "$alloc" "$(kernel_node 1 0x10000 0)" "$(free_node 2 1)" >fine.json
succeeds check fine.json
[ "$(cat out)" = '0 errors, 0 warnings' ] || die "a graph without mistakes: $(cat out)"
succeeds check - --json <fine.json
json_holds '.errors == 0' '.warnings == 0' '.findings == []' '.file == "-"'

# finds REASON: two.json has that error, and it is said in text and JSON, with the remedy.
finds() {
  local status=0
  "$tool" check two.json >out 2>err || status=$?
  [ "$status" -eq 1 ] || die "$1: exit status $status: $(cat out err)"
  grep -q "^error: $1: " out || die "$1 is not found: $(cat out)"
  grep -q 'rondo check: two.json: 1 mistake was found' err || die "$1: $(cat err)"
  status=0
  "$tool" check two.json --json >out 2>err || status=$?
  [ "$status" -eq 1 ] || die "$1, --json: exit status $status"
  json_holds ".findings[0] | .severity == \"error\" and .reason == \"$1\" and (.message | length) > 0" '.errors == 1'
}
graph "$alloc" "$(kernel_node 1 0x10000 '')" "$(free_node 2 '0, 1')" >two.json
finds NOT_ALLOCATED
json_holds '.findings[0] | .node == 1 and .from == 0 and .to == 1 and .allocation == "scratch"'
graph "$alloc" "$(kernel_node 1 0x10000 0)" "$(free_node 2 0)" >two.json
finds USE_AFTER_FREE
json_holds '.findings[0] | .node == 1 and .from == 1 and .to == 2'
graph "$alloc" "$(kernel_node 1 0x10000 0)" "$(free_node 2 1)" "$(free_node 3 2)" >two.json
finds DOUBLE_FREE

# Warnings count too, unless they are left out: what the kernels write is not known to the byte.
graph "$alloc" "$(kernel_node 1 0x10000 0)" "$(kernel_node 2 0x10000 0)" "$(free_node 3 '1, 2')" >race.json
status=0
"$tool" check race.json --json >out 2>err || status=$?
[ "$status" -eq 1 ] || die "a warning: exit status $status"
json_holds '.errors == 0' '.warnings == 1' '.findings[0].severity == "warning"' '.findings[0].reason == "RACE"'
succeeds check race.json --no-warnings
[ "$(cat out)" = '0 errors, 0 warnings' ] || die "--no-warnings: $(cat out)"
succeeds check race.json --no-warnings --json
json_holds '.warnings == 0' '.findings == []'

# A dump without addresses cannot be looked at, and does not pass.
sed 's/"address": "0x10000",//; s/"arguments": \["0x10000"\]/"arguments": [null]/g' fine.json >bare.json
status=0
"$tool" check bare.json >out 2>err || status=$?
[ "$status" -eq 1 ] || die "a dump without addresses: exit status $status"
grep -Eq '^warning: NO_ADDRESS: .*Dump the graph with its addresses' out || die "no addresses: $(cat out)"

# A recorded training step has none; --most bounds what is printed, not what is counted.
make_text >text
succeeds train text --steps 1 --batch 4 --hidden 8 --dump-graph step.json --json
succeeds check step.json --json
json_holds '.errors == 0' '.warnings == 0'
graph "$alloc" "$(kernel_node 1 0x10000 '')" "$(kernel_node 2 0x10000 '')" "$(free_node 3 '0, 1, 2')" >many.json
"$tool" check many.json --most 1 >out 2>err && die "mistakes, but exit status 0"
[ "$(grep -c '^error' out)" -eq 1 ] || die "--most 1 printed: $(cat out)"
grep -q '^2 errors' out || die "not two errors: $(cat out)"
grep -Eq '^[0-9]+ more not shown' out || die "no word on the rest: $(cat out)"

# No graph.
fails 1 'missing: No such file' check missing
printf '' >empty
fails 1 'empty: the file is empty' check empty
head -c 200 fine.json >shortened
fails 1 'shortened: .*line' check shortened
graph "$alloc" "$(free_node 1 7)" >lost.json
fails 1 'lost.json: .*nodes\[1\].*dependencies' check lost.json
graph "$alloc" "$(kernel_node 1 0x10000 0 | sed 's/"kernel": 0/"kernel": 3/')" >lost.json
fails 1 'lost.json: .*nodes\[1\].*kernel' check lost.json
graph "$alloc" "$(free_node 1 2)" "$(free_node 2 1)" >cycle.json
fails 1 'cycle.json: .*(cycle|1 -> 2)' check cycle.json
fails 2 '--most takes a whole number from 1' check fine.json --most 0
