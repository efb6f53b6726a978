#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a message must say: which limit was met, and what memory was missing for. And what it must not: nothing that comes
# from a file, the environment or a library acts on the terminal.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
small=(--context 4 --embedding 8 --hidden 16 --batch 4 --steps 2)

# Limits of the process. The memory of graphs on a CPU device is files without names.
printf 'id,lower,upper,size\na,0,2,3000000\nb,1,3,5000000\n' >buffers.csv
status=0
(ulimit -f 4 && exec "$tool" bench memory buffers.csv >out 2>err) || status=$?
[ "$status" -eq 1 ] || die "ulimit -f: exit status $status: $(cat err)"
grep -q 'limit on the size of files, which applies to the memory of CPU devices too: raise it (ulimit -f)' err ||
  die "ulimit -f: $(cat err)"
if grep -Eq '__asan_init|__tsan_init' "$tool"; then
  echo "a sanitizer takes more addresses than a limit would leave"
else
  status=0
  (ulimit -v 4000000 && exec "$tool" serve recommender --load --table-rows 10000000 >out 2>err) || status=$?
  [ "$status" -eq 1 ] || die "no memory for the tables: exit status $status: $(cat err)"
  grep -Eq "out of memory for the [0-9]+ values of 'tables'" err || die "no memory for the tables: $(cat err)"
  [ "$(wc -l <err)" -eq 1 ] || die "not one line: $(cat err)"
fi

# A file's name may be as long as the file system takes; what it does not take is found out before the work.
long=$(printf 'x%.0s' {1..255})
succeeds train text "${small[@]}" --save "$long" --checkpoint "${long:0:248}"
fails 1 'x cannot be written: .*ENAMETOOLONG' train text --steps 10000000 --save "x$long"

# clean FILE...: no control character but line ends, and what was given is still to be recognized.
clean() {
  for file in "$@"; do
    if LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]\|\xc2[\x80-\x9f]' "$file"; then die "control characters: $(cat -v "$file")"; fi
  done
}
env $'RONDO_\e]0;owned\aX=1' $'RONDO_CBLAS_LIBRARY=/nowhere/\e[2J\xc2\x9b1m.so' "$tool" devices >out 2>err
clean out err
grep -qF 'RONDO_\x1b]0;owned\x07X' err || die "the variable was not named: $(cat err)"
grep -qF '/nowhere/\x1b[2J\xc2\x9b1m.so' out || die "the library was not named: $(cat out)"
env $'RONDO_CBLAS_LIBRARY=/nowhere/\e[2J\xc2\x9b1m.so' "$tool" devices --json >out 2>err
clean out err
json_holds '[.libraries[].reason // "" | select(contains("/nowhere/\u001b[2J\u009b1m.so"))] | length == 1'
name=$'name\e[31m\xc2\x9b1m'
cp text "$name"
succeeds train "$name" "${small[@]}" --save "$name.model" --checkpoint "$name.checkpoint" --dump-graph step.json
clean out
grep -qF 'saved    name\x1b[31m\xc2\x9b1m.model' out || die "the model was not named: $(cat out)"
sed 's/"name": *"[a-z.]*"/"name":"n\\u001b[2Jn"/g' step.json >named.json
"$tool" check named.json >out 2>err || true
clean out err
