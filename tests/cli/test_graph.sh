#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo graph: dumps go in and come out the same (GX-7), and what is no dump is refused.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
for run in a b; do
  succeeds train text --steps 1 --batch 4 --hidden 8 --dump-graph $run.json --json
  kernels=$(jq .kernels out)
done

succeeds graph a.json
grep -Eq "^  kernel +$kernels\$" out || die "not $kernels kernels: $(cat out)"
for row in nodes edges roots depth fingerprint; do
  grep -Eq "^$row +[0-9a-f]+\$" out || die "no row '$row': $(cat out)"
done
fingerprint=$(awk '/^fingerprint/ { print $2 }' out)

succeeds graph a.json --fingerprint
[ "$(cat out)" = "$fingerprint" ] || die "--fingerprint printed: $(cat out)"
succeeds graph b.json --fingerprint
[ "$(cat out)" = "$fingerprint" ] || die "the same work has two fingerprints"

# Out and in again changes nothing; without addresses two runs are equal.
succeeds graph a.json --json
json_holds '.nodes | length > 0'
cp out again.json
cmp again.json a.json || die "reading and writing changed the dump"
succeeds graph - --json <a.json
cmp out a.json || die "standard input gave another dump"
for run in a b; do
  succeeds graph $run.json --json --no-addresses
  json_holds true
  cp out bare-$run.json
done
cmp bare-a.json bare-b.json || die "two runs of the same work differ without addresses"

succeeds graph a.json --dot
head -1 out | grep -q '^digraph' || die "no DOT: $(head -1 out)"
[ "$(tail -1 out)" = '}' ] || die "the DOT has no end"

fails 1 'missing: No such file' graph missing
fails 1 'Is a directory' graph .
printf '' >empty
fails 1 'empty' graph empty
fails 1 'text: .*line 1' graph text
head -c 300 a.json >shortened
fails 1 'shortened: .*line' graph shortened
printf '[1, 2]' >list
fails 1 'list' graph list
printf '{"nodes": []}' >other
fails 1 'other' graph other
