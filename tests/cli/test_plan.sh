#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo plan: plans are plans, figures and files say the same, and each bad line is named (bad input).
source "$(dirname "$0")/support.sh" "$1"

cat >few.csv <<'END'
id,lower,upper,size
a,0,2,4096
b,1,3,1024
"c ""3""",2,4,8192
d,3,9,512
END

succeeds plan few.csv --json --offsets
json_holds '.buffers == 4' '.lower_bound == 9216' '.peak == 9216' '.ratio == 1' '.optimal' '.seconds >= 0' '.sum == 13824' \
  '(.method | length) > 0' '(.offsets | length) == 4' 'has("capacity") | not' 'has("given_peak") | not'
succeeds plan few.csv
for row in 'buffers +4' 'lower bound +9216 bytes' 'peak +9216 bytes' 'ratio +1.000000, proven optimal' \
  'without sharing +13824 bytes' 'time +[0-9.]+ s'; do
  grep -Eq "^$row" out || die "no row '$row' in: $(cat out)"
done

# What --output wrote is a plan of the same buffers; read again it is checked and compared.
succeeds plan few.csv --output solved.csv --json
[ "$(head -1 solved.csv)" = id,lower,upper,size,offset ] || die "--output wrote: $(cat solved.csv)"
diff <(cut -d, -f1-4 solved.csv) few.csv || die "--output changed the buffers"
succeeds plan solved.csv --json
json_holds '.given_peak == 9216' '.given_ratio == 1' '.peak == 9216'
succeeds plan solved.csv
grep -Eq '^given offsets +9216 bytes, ratio 1.000000$' out || die "no word on the given offsets: $(cat out)"

# Standard input, CR LF, a byte order mark, blanks, empty lines, other orders of columns, no line end at the end.
succeeds plan - --json <few.csv
json_holds '.file == "-"' '.peak == 9216'
printf '\xef\xbb\xbfsize , id,upper, lower\r\n 16,x, 2,1\r\n\r\n8,"y,",3,2' >odd.csv
succeeds plan odd.csv --json --output odd_solved.csv
json_holds '.buffers == 2' '.peak == 16'
[ "$(sed -n 3p odd_solved.csv)" = '"y,",2,3,8,0' ] || die "--output wrote: $(cat odd_solved.csv)"

# Times may be any numbers of 64 bits; nothing to plan is a plan; a buffer without bytes is no matter.
printf 'id,lower,upper,size\na,0,18446744073709551615,5\nb,18446744073709551614,18446744073709551615,7\n' >far.csv
succeeds plan far.csv --json --svg far.svg
json_holds '.peak == 12'
grep -q 'from 18446744073709551614 to 18446744073709551615' far.svg || die "the picture has other times"
printf 'id,lower,upper,size\n' >none.csv
succeeds plan none.csv --json --svg none.svg
json_holds '.buffers == 0' '.peak == 0' '.ratio == 1' '.optimal'
printf 'id,lower,upper,size\na,0,1,0\n' >zero.csv
succeeds plan zero.csv --json
json_holds '.buffers == 1' '.peak == 0' '.ratio == 1'

# The capacity: enough, below the bound. The results are there all the same.
succeeds plan few.csv --capacity 9216 --json
json_holds '.fits' '.capacity == 9216'
status=0
"$tool" plan few.csv --capacity 9215 --json >out 2>err || status=$?
[ "$status" -eq 1 ] || die "too small a capacity: exit status $status"
json_holds '.fits | not'
[ "$(wc -l <err)" -eq 1 ] || die "not one line: $(cat err)"
grep -q 'few.csv: 9216 bytes live at once, more than the capacity of 9215' err || die "too small a capacity: $(cat err)"
status=0
"$tool" plan few.csv --capacity 9215 >out 2>err || status=$?
[ "$status" -eq 1 ] && grep -q 'it does not fit' out || die "too small a capacity, for people: $status, $(cat out)"

# Random buffers: whatever the way of searching, the offsets are a plan, and a budget in steps repeats itself.
awk 'BEGIN { srand(7); print "id,lower,upper,size"
  for (i = 0; i < 300; i++) { l = int(rand() * 500); print "b" i "," l "," l + 1 + int(rand() * 40) "," 1 + int(rand() * 5000) } }' \
  >random.csv
for options in '--fast' '--budget-ms 20' '--steps 2000 --seed 3' '--steps 2000 --threads 1' '--gap 1.5'; do
  # shellcheck disable=SC2086
  succeeds plan random.csv $options --output random_solved.csv --json
  json_holds '.peak >= .lower_bound' '.ratio >= 1'
  cp out first
  succeeds plan random_solved.csv --fast --json
  [ "$(jq .given_peak out)" = "$(jq .peak first)" ] || die "$options: the file and the figures differ"
done
for options in '--steps 3' '--budget-ms 9' '--threads 1' '--seed 4'; do
  # shellcheck disable=SC2086
  fails 2 "^rondo plan: ${options%% *} is for the search, which --fast skips" plan random.csv --fast $options
done
printf '%s\n' id,lower,upper,size a,0,2,4096 b,0,2,1024 >both.csv
succeeds plan both.csv --fast
grep -Eq '^time .* found by stacking$' out || die "what live at the same times: $(cat out)"
for run in a b; do
  succeeds plan random.csv --steps 3000 --json --offsets
  jq -c '[.peak, .offsets]' out >"steps_$run"
done
cmp steps_a steps_b || die "a budget in steps gave two plans"

# The picture names each buffer, whatever it is called.
printf 'id,lower,upper,size\n<script>&,0,2,100\n"q""",1,3,50\n\xff,2,3,8\n' >names.csv
succeeds plan names.csv --svg names.svg --json
head -c 4 names.svg | grep -q '<svg' || die "no picture: $(head -c 100 names.svg)"
grep -q '&lt;script&gt;&amp;: 100 bytes at ' names.svg || die "a name is not escaped"
if grep -q '<script' names.svg; then die "a name became an element"; fi
grep -q ': 3 allocations, peak ' names.svg || die "not three allocations in: $(head -c 400 names.svg)"
printf 'id,lower,upper,size\na,0,2,100\n' >one.csv
succeeds plan one.csv --svg one.svg --json
grep -q ': 1 allocation, peak ' one.svg || die "not one allocation in: $(head -c 400 one.svg)"
[ "$(grep -c ' bytes at .* from ' names.svg)" -eq 3 ] || die "not three buffers in: $(cat names.svg)"

# Bad lines, each named.
bad() {
  printf "$2" >bad.csv
  fails 1 "bad[.]csv, line $1" plan bad.csv
  grep -Eq -- "$3" err || die "'$(cat err)' does not match '$3'"
}
head_line='id,lower,upper,size\n'
bad 1 'id,lower,upper\na,0,1\n' "no column 'size'"
bad 1 'id,lower,upper,size,colour\na,0,1,2,red\n' "unknown column 'colour'"
bad 1 'id,lower,upper,size,size\n' "'size' occurs twice"
bad 1 '0,0,1,2\n1,0,1,2\n' "unknown column '0'"
bad 2 "${head_line}a,0,1\n" '3 fields, where the first line names 4'
bad 2 "${head_line}a,0,1,2,3\n" '5 fields'
bad 3 "${head_line}a,0,1,2\nb,0,1,-2\n" "size is '-2', not a whole number from 0"
bad 2 "${head_line}a,-1,1,2\n" "lower is '-1'"
bad 2 "${head_line}a,0,x,2\n" "upper is 'x'"
bad 2 "${head_line}a,0,1,\n" "size is ''"
bad 2 "${head_line}a,0,1,1.5\n" "size is '1.5'"
bad 2 "${head_line}a,0,1,0x10\n" "size is '0x10'"
bad 2 "${head_line}a,0,1,18446744073709551616\n" "size is '18446744073709551616'"
bad 3 "${head_line}a,0,1,18446744073709551615\nb,5,6,1\n" 'add up to more than fits in 64 bits'
bad 2 "${head_line}a,3,3,2\n" 'lower is 3 and upper 3'
bad 2 "${head_line}a,4,3,2\n" 'lower is 4 and upper 3'
bad 4 "${head_line}a,0,1,2\nb,0,1,2\na,3,4,5\n" "id 'a' is already used in line 2"
bad 2 "${head_line},0,1,2\n" 'the id is empty'
bad 2 "${head_line}\"a,0,1,2\n" 'quoted field'
bad 2 "${head_line}\"a\"b,0,1,2\n" 'quoted field'
bad 2 "${head_line}a\0b,0,1,2\n" 'NUL'
bad 2 'id,lower,upper,size,offset\na,0,1,2,18446744073709551615\n' 'add up'
bad 3 'id,lower,upper,size,offset\na,0,2,10,0\nb,1,3,10,9\nc,5,6,1,0\n' "'b' overlaps 'a' of line 2"
bad 2 'id,lower,upper,size,offset\na,0,2,10,x\n' "offset is 'x'"
# What is quoted of a file is text on one line, whatever its bytes are; UTF-8 stays as it is.
bad 1 'id,lower,upper,size,\xff\033[2J\xc3\n' "unknown column '\\\\xff\\\\x1b\\[2J\\\\xc3'"
bad 2 "${head_line}a,0,1,\xc2\x9b1\n" "size is '\\\\xc2\\\\x9b1'"
bad 2 "${head_line}a,0,1,\xc3\xbc\n" "size is '$(printf '\xc3\xbc')'"
printf '' >empty.csv
fails 1 'empty.csv: the file is empty' plan empty.csv
printf '\n\n' >blank.csv
fails 1 'blank.csv: the file is empty' plan blank.csv
fails 1 'missing: No such file or directory' plan missing
fails 1 'Is a directory' plan .
fails 1 'no regular file' plan few.csv --svg .
fails 1 'cannot be written' plan few.csv --output nowhere/solved.csv
cp few.csv kept.csv
ln -s kept.csv link.csv
fails 1 'link.csv cannot be written: it is the FILE that is read' plan kept.csv --svg link.csv
cmp few.csv kept.csv || die "the file with the buffers was overwritten"
fails 1 'both cannot be written: it is the file of --svg' plan few.csv --svg both --output both

# A million lines are read and placed in the time that a test has.
awk 'BEGIN { print "id,lower,upper,size"
  for (i = 0; i < 1000000; i++) { s = (s * 1103515245 + 12345) % 2147483648
    print i "," i "," i + 1 + s % 64 "," 1 + s % 4096 } }' >million.csv
succeeds plan million.csv --fast --json
json_holds '.buffers == 1000000' '.peak >= .lower_bound'
