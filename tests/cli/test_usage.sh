#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Help, version, and command lines that are wrong.
source "$(dirname "$0")/support.sh" "$1"

succeeds -h
succeeds --help
for command in train generate quantize bench devices graph check report serve session plan; do
  grep -q "^  $command " out || die "rondo --help does not name $command"
done
succeeds --version
grep -Eq '^rondo [0-9]+\.[0-9]+\.[0-9]+$' out || die "rondo --version printed: $(cat out)"

benches=('bench launch' 'bench gain' 'bench memory')

for command in train generate quantize bench "${benches[@]}" devices graph check report serve session plan; do
  # shellcheck disable=SC2086
  succeeds $command --help
  head -1 out | grep -Eq "^Usage: rondo $command " || die "rondo $command --help begins with: $(head -1 out)"
  ! grep -E '^.{81}' out || die "rondo $command --help has lines of more than 80 columns"
done

succeeds train --help
grep -q '^Usage: rondo train \[TEXT\] \[OPTION\]' out || die "TEXT may be left out, which --help does not say"
grep -q '^  TEXT .*any file' out && grep -q '^ *(default /usr/share/common-licenses/GPL-3)$' out ||
  die "--help does not name the default TEXT"
cp out long
for ask in -h --help; do
  succeeds train $ask
  cmp -s out long || die "rondo train $ask prints something else"
done

# Nothing asked for shows what there is to ask for.
status=0
"$tool" >out 2>err || status=$?
[ $status = 2 ] && [ ! -s out ] || die "rondo alone ends with $status"
cp err shown
succeeds --help
cmp -s out shown || die "rondo alone does not show the commands"
succeeds help
cmp -s out shown || die "rondo help prints something else than rondo --help"
for command in train "${benches[@]}" session; do
  # shellcheck disable=SC2086
  succeeds $command --help
  cp out long
  # shellcheck disable=SC2086
  succeeds help $command
  cmp -s out long || die "rondo help $command prints something else than rondo $command --help"
done
fails 2 "there is no command 'frobnicate'; see" help frobnicate
fails 2 "unexpected argument 'c'" help bench launch c

fails 2 "^rondo: there is no command 'trian'; the closest one is train; see 'rondo --help'$" trian
fails 2 "^rondo: there is no command 'serv'; the closest one is serve; see 'rondo --help'$" serv
fails 2 "^rondo: there is no command 'version'; the closest one is --version; see 'rondo --help'$" version
fails 2 "^rondo: there is no command 'frobnicate'; see 'rondo --help'$" frobnicate
fails 2 "^rondo: there is no command 'x'; see" x
fails 2 "^rondo: there is no command ''; see" ''
fails 2 "no option '--jsn'" --jsn
fails 2 'MODEL is missing' generate
fails 2 'MODEL is missing' quantize
fails 2 'FILE is missing' graph
fails 2 'FILE is missing' plan
fails 2 'FILE is missing' check
fails 2 'FILE is missing' report
fails 2 'a benchmark is missing' bench
fails 2 "no benchmark 'lunch'" bench lunch
fails 2 "unexpected argument 'b'" train a b
fails 2 "unexpected argument 'a'" devices a
fails 2 "no option '--stepz'.*rondo train --help" train a --stepz 3
fails 2 "no option '-s'" train a -s 3
fails 2 '--steps needs a value' train a --steps
fails 2 '--json=yes: this option takes no value' train a --json=yes
for bad in 0 -1 1.5 x '' 99999999999999999999999 ' 5'; do
  fails 2 "--steps takes a whole number from 1 to [0-9]+, not '$bad'" train a --steps "$bad"
done
fails 2 '--hidden takes a whole number from 1 to' train a --hidden 100000000
fails 2 '--batch takes a whole number from 1 to' train a --batch 0
fails 2 '--context takes a whole number from 1 to' train a --context 0
fails 2 '--embedding takes a whole number from 1 to' train a --embedding 0
fails 2 '--seed takes a whole number' train a --seed 18446744073709551616
for bad in 0 nan inf -1 1e39 x ''; do
  fails 2 '--learning-rate takes a number from' train a --learning-rate "$bad"
done
fails 2 '--length takes a whole number from 1 to' generate a --length 0
fails 2 '--length takes a whole number from 1 to' generate a --length 99999999999
fails 2 '--temperature takes a number from 0 to' generate a --temperature -0.1
fails 2 "--type is 'int3': use int8 or int4" quantize a --type int3
fails 2 '--group is 33: use a multiple of 32, or 0' quantize a --group 33
fails 2 "--activations is 'int4': use float or int8" quantize a --activations int4
fails 2 '--text is required: the loss before and after is measured on it' quantize a
fails 2 '--seconds takes a number from' bench launch --seconds 0
fails 2 'use only one of --dot, --json and --fingerprint' graph a --dot --json
fails 2 '--budget-ms takes a whole number from 1 to' plan a --budget-ms 0
fails 2 '--threads takes a whole number from 1 to 256' plan a --threads 257
fails 2 '--gap takes a number from 1 to' plan a --gap 0.9
fails 2 '--capacity takes a whole number' plan a --capacity -5
fails 2 '--offsets requires --json' plan a --offsets
