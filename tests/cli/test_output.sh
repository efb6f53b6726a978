#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Output that cannot be written is a failure, not lost silently, and never lands in a file of the tool's own.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
"$tool" train text --steps 1 --batch 4 --hidden 8 --save model --dump-graph step.json >/dev/null

# fails_to_write ARGUMENT...: exit status 1 and one line, with a full disk and without standard output.
fails_to_write() {
  local status=0
  "$tool" "$@" >/dev/full 2>err || status=$?
  [ "$status" -eq 1 ] || die "rondo $* >/dev/full: exit status $status"
  grep -q 'cannot write to standard output: No space left' err || die "rondo $* >/dev/full: $(cat err)"
  [ "$(wc -l <err)" -eq 1 ] || die "rondo $* >/dev/full: not one line: $(cat err)"
  status=0
  "$tool" "$@" >&- 2>err || status=$?
  [ "$status" -eq 1 ] || die "rondo $* >&-: exit status $status"
  grep -q 'standard output is closed' err || die "rondo $* >&-: $(cat err)"
}
fails_to_write --help
fails_to_write --version
fails_to_write devices
fails_to_write devices --json
fails_to_write train text --steps 1
fails_to_write train text --steps 1 --json
fails_to_write generate model --length 100000
fails_to_write generate model --json
fails_to_write graph step.json --dot
fails_to_write graph step.json
fails_to_write report step.json
fails_to_write check step.json --json
printf 'id,lower,upper,size\na,0,1,2\n' >buffers.csv
fails_to_write plan buffers.csv
fails_to_write plan buffers.csv --json

# A reader that goes away early.
status=0
"$tool" generate model --length 1000000 2>err | head -c 10 >/dev/null || status=${PIPESTATUS[0]}
[ "$status" -eq 1 ] || die "a closed pipe: exit status $status: $(cat err)"
grep -q 'cannot write to standard output: Broken pipe' err || die "a closed pipe: $(cat err)"

# Without standard input and standard error all goes on.
"$tool" devices <&- >out 2>&- || die "no standard input and error: exit status $?"
[ -s out ] || die "no standard input and error: no output"
status=0
"$tool" graph - <&- >out 2>err || status=$?
[ "$status" -eq 1 ] || die "no standard input: exit status $status"
