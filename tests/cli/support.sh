#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sourced by the tests of the tool: bash test_X.sh PATH_OF_THE_TOOL. Gives $tool, an empty folder to work in, and checks
# that say what is wrong and end the test.
set -euo pipefail

tool=$(realpath "$1")
# shellcheck disable=SC2034 # for the tests
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

if ! command -v jq >/dev/null; then
  echo "the tests of the tool read its JSON with jq, which is not installed" >&2
  exit 1
fi

die() {
  echo "FAILED: $1" >&2
  exit 1
}

# fails STATUS PATTERN ARGUMENT...: the tool ends with that exit status, prints nothing on standard output, and on
# standard error one line that matches the extended regular expression. Standard input is passed on.
fails() {
  local expected=$1 pattern=$2 status=0
  shift 2
  "$tool" "$@" >out 2>err || status=$?
  [ "$status" -eq "$expected" ] || die "rondo $*: exit status $status, not $expected: $(cat err)"
  [ ! -s out ] || die "rondo $*: failed, but printed: $(head -c 200 out)"
  [ "$(wc -l <err)" -eq 1 ] || die "rondo $*: not one line on standard error: $(cat err)"
  grep -Eq -- "$pattern" err || die "rondo $*: '$(cat err)' does not match '$pattern'"
}

# succeeds ARGUMENT...: the tool ends with 0 and says nothing on standard error; its output is in the file `out`.
succeeds() {
  "$tool" "$@" >out 2>err || die "rondo $*: exit status $?: $(cat err)"
  [ ! -s err ] || die "rondo $*: said on standard error: $(cat err)"
}

# json_holds FILTER...: `out` is exactly one JSON object, in which every filter is true.
json_holds() {
  [ "$(jq -s 'length == 1 and (.[0] | type == "object")' out)" = true ] || die "not one JSON object: $(cat out)"
  for filter in "$@"; do
    [ "$(jq "$filter" out)" = true ] || die "$filter does not hold in: $(cat out)"
  done
}

# A text of 4000 bytes with a vocabulary of 27, the same everywhere.
make_text() {
  awk 'BEGIN { for (i = 0; i < 4000; i++) { s = (s * 1103515245 + 12345) % 2147483648
         printf "%c", (s % 5 == 0) ? 32 : 97 + (i * 7 + int(s / 65536) % 3) % 26 } }'
}

# A list of five buffers.
make_buffers() {
  printf '%s\n' id,lower,upper,size a,0,3,4000000 b,1,2,6000000 c,2,5,6000000 d,3,4,0 e,4,6,4000000
}
