#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo quantize (PR-9): the size and the loss of quantised models, text from them, and files that are wrong.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
succeeds train text --steps 100 --batch 16 --context 4 --embedding 8 --hidden 64 --compare 0 --save model
succeeds train text --steps 30 --model gpt --context 16 --layers 2 --width 64 --heads 2 --compare 0 --save gpt

# quantized KIND FILE OPTION...: makes FILE of KIND, which takes less space and has about the same loss.
quantized() {
  local from=$1 to=$2
  shift 2
  succeeds quantize "$from" --text text --save "$to" "$@" --json
  json_holds '.after.bytes < .before.bytes' '.loss_change | fabs < 0.2' '.labels > 0' \
    '(.after.loss - .before.loss - .loss_change) | fabs < 1e-4'
  succeeds generate "$to" --length 40 --json
  json_holds '.identical'
}

for kind in model gpt; do
  quantized "$kind" "$kind.8" --type int8 --group 32
  json_holds '(.text | length) == 40'
  quantized "$kind" "$kind.8row" --type int8 --group 0 --activations int8
  quantized "$kind" "$kind.4" --type int4 --group 32
  quantized "$kind" "$kind.4int8" --type int4 --group 64 --activations int8
done

# With 8 bits, the loss hardly changes, and a gpt takes less than a third of the bytes.
succeeds quantize gpt --text text --json
json_holds '.loss_change | fabs < 0.01' '.after.bytes < .before.bytes / 3' '.type == "int8"' '.group == 64'

# With caches and without, a quantised gpt computes about the same scores.
succeeds generate gpt.8 --length 100 --prompt abc --json
json_holds '.identical' '.caches.largest_difference < 0.05'

succeeds quantize model --text text --type int4
grep -Eq '^ +f32 +int4' out || die "no head: $(cat out)"
grep -Eq '^bytes +[0-9]+ +[0-9]+ +0\.[0-9]+$' out || die "no bytes: $(cat out)"
grep -Eq '^loss +[0-9.]+ +[0-9.]+ +[+-][0-9.]+$' out || die "no loss: $(cat out)"
grep -Eq '^over [0-9]+ bytes of text$' out || die "no text: $(cat out)"

fails 1 "model.8: it is quantised already \(int8\): use the model that it was made from" quantize model.8 --text text
fails 1 'missing' quantize missing --text text
fails 1 'missing' quantize model --text missing
printf 'abcdefgXh' >other
fails 1 'other: byte 8, 0x58, does not occur in the text that the model was trained on' quantize model --text other
printf 'abc' >short
fails 1 'short: 3 bytes are too few; a context of 4 needs at least 5' quantize model --text short

# Metadata that do not fit the tensors.
without_checksums() { sed -i -E 's/"rondo\.(weights|checksum)"/"other.\1"/g' "$1"; }
changed() {
  sed "s/$1/$2/" gpt.8 >changed
  cmp -s gpt.8 changed && die "nothing to replace: $1"
  without_checksums changed
  fails 1 "changed: $3" generate changed
}
changed '"group":"32"' '"group":"64"' \
  "tensor 'tokens.embedding.scales' has the shape \[27, 2\]; its metadata require \[27, 1\]"
changed '"group":"32"' '"group":"33"' "the group in its metadata is '33', not a multiple of 32"
changed '"quantization":"int8"' '"quantization":"int9"' "the quantization in its metadata is 'int9', not int8 or int4"
changed '"quantization":"int8"' '"quantization":"int4"' "tensor '.*' has type i8, not u8"
changed '"quantization":' '"quantisation":' "tensor '.*' has type i8, not f32"
changed '"activations":"float"' '"activations":"flout"' \
  "the activations in its metadata are 'flout', not float or int8"
