#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tests/gpu/sanitize with a compute-sanitizer that only looks like one: which programs it runs and with what, how it
# tells what each came to, that none is lost where several run at once; and a suite on the fake driver, one launch at a
# time.
source "$(dirname "$0")/support.sh" "$1"

script=$here/../gpu/sanitize

# Shows what it was given, runs the program with the variables that are set for it, and has the last word.
mkdir bin
cat >bin/compute-sanitizer <<'END'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do
  case $1 in --tool) tool=$2 ;; esac
  echo "option $1 $2"
  shift 2
done
echo "serial $RONDO_TEST_SERIAL, device $RONDO_TEST_DEVICE, require $RONDO_REQUIRE"
RONDO_TEST_FAKE_CUDA_SERIAL=1 "$1" "$tool"
code=$?
[ $code -ne 42 ] || exit 0
[ $code -ne 9 ] || echo "========= Invalid __global__ write of size 4 bytes"
echo "========= ERROR SUMMARY: $((code == 9)) errors"
exit $code
END
chmod +x bin/compute-sanitizer

# program NAME LINE: one of the build; the line is given the tool as $1.
mkdir -p build/tests
program() {
  printf '#!/bin/sh\n%s\n' "$2" >"build/tests/$1"
  chmod +x "build/tests/$1"
}

# sanitize STATUS ARGUMENT...
sanitize() {
  local expected=$1 status=0
  shift
  PATH=$PWD/bin:$PATH "$script" --build build "$@" >out 2>err || status=$?
  [ "$status" -eq "$expected" ] || die "$*: exit status $status, not $expected: $(cat out err)"
}

says() { grep -Eq -- "$1" "$2" || die "$2 does not say '$1': $(cat "$2")"; }

sanitize 2
says "no tests that match" err
program conformance_good 'exit 0'
program conformance_stream 'exit 0'
program conformance_device_lost 'exit 1'
program conformance_check 'exit 1'
program operators_tanh 'exit 0'
program unit_tensor_operators 'exit 0'
program unit_graph_query 'exit 1'
sanitize 0
says '^clean 8, skipped 0, found 0, failed 0, timeout 0, unchecked 0: build/gpu-sanitized/summary.txt$' out
[ "$(wc -l <build/gpu-sanitized/summary.txt)" -eq 8 ] || die "not eight rows"
says '^serial 1, device cuda:0, require cuda$' build/gpu-sanitized/memcheck_conformance_good.log
says '^option -c 300$' build/gpu-sanitized/racecheck_conformance_good.log
says '^option -c 300$' build/gpu-sanitized/memcheck_conformance_stream.log
! grep -q -- '-c 300' build/gpu-sanitized/memcheck_conformance_good.log || die "all launches are looked at"
! grep -q -- '-c 300' build/gpu-sanitized/racecheck_operators_tanh.log || die "all launches are looked at"

# One of each result; with four at once none is lost.
# shellcheck disable=SC2016 # the program's
program conformance_races '[ $1 = memcheck ] || exit 9'
program conformance_wrong 'echo "[  FAILED  ] test_it"; exit 1'
program conformance_other 'exit 77'
program conformance_unseen 'exit 42'
JOBS=16 sanitize 1 --out all
says '^clean 9, skipped 2, found 1, failed 2, timeout 0, unchecked 2: all/summary.txt$' out
says '^found: racecheck conformance/races$' out
says '^========= Invalid __global__ write' out
says 'FAILED  \] test_it' out
sanitize 1 --only 'wrong' --tools memcheck --out one
says '^clean 0, skipped 0, found 0, failed 1,' out
sanitize 0 --only 'races' --tools memcheck --out one
program conformance_slow 'sleep 60'
sanitize 1 --only 'slow' --timeout 1 --out slow
says '^clean 0, skipped 0, found 0, failed 0, timeout 2, unchecked 0: slow/summary.txt$' out
PATH=/usr/bin:/bin "$script" --build build >out 2>err && die "there is no tool to run"
says 'compute-sanitizer is not on PATH' err

# A suite that holds streams comes to its end, one launch at a time.
tests=$(dirname "$tool")/../../tests
if [ -x "$tests/conformance_event" ]; then
  cp -s "$(realpath "$tests/conformance_event")" build/tests/conformance_real
  sanitize 0 --only real --tools memcheck --out real
  says '^clean 1,' out
  says 'SKIPPED.* test_an_event_completes_with_the_work_before_it' real/memcheck_conformance_real.log
fi
