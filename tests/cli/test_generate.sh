#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo generate (FW-9): what a trained model writes, recorded, eager and, where it has caches, without them,
# and files that are no model.
source "$(dirname "$0")/support.sh" "$1"
make_text >text
succeeds train text --steps 100 --batch 16 --context 4 --embedding 8 --hidden 32 --save model

succeeds generate model --length 60 --seed 5 --prompt abc
[ "$(head -c 3 out)" = abc ] || die "the prompt is not in front: $(cat out)"
[ "$(head -1 out | wc -c)" -eq 64 ] || die "not 3 + 60 bytes and a line end: $(cat out)"
tail -c +4 out | head -c 60 >written

succeeds generate model --length 60 --seed 5 --prompt abc --json
json_holds '.identical' '.length == 60' '.prompt == "abc"' '.kernels > 0' '.recorded.step_us > 0' \
  '.eager.step_us > 0' '.memory.planned >= .memory.lower_bound'
[ "$(jq -r .text out)" = "$(cat written)" ] || die "--json gave another text"
json_holds '.kind == "character"' '.caches == null' '.bytes_per_second.recorded > 0' '.recomputed == null'

# The seed decides, unless the temperature is 0.
succeeds generate model --length 200 --seed 6 --json
cp out other
succeeds generate model --length 200 --seed 7 --json
[ "$(jq .text out)" != "$(jq .text other)" ] || die "two seeds gave the same text"
succeeds generate model --length 200 --seed 6 --temperature 0 --json
cp out other
succeeds generate model --length 200 --seed 7 --temperature 0 --json
[ "$(jq .text out)" = "$(jq .text other)" ] || die "temperature 0 depends on the seed"

fails 1 "byte 2 of the prompt, 'X', does not occur" generate model --prompt aX
fails 1 'byte 1 of the prompt, 0xc3, does not occur' generate model --prompt $'\xc3\xa9'
fails 1 'nonsense' generate model --device nonsense
fails 1 'missing' generate missing
fails 1 '' generate .
fails 1 'text' generate text
printf '' >empty
fails 1 'empty' generate empty

# Cut off anywhere, a model is refused; so is one with bytes after its end.
succeeds train text --steps 1 --batch 1 --context 1 --embedding 1 --hidden 1 --save tiny
size=$(stat -c %s tiny)
for ((count = 0; count < size; count += count < 16 || count > size - 16 ? 1 : 23)); do
  head -c "$count" tiny >shortened
  fails 1 'shortened' generate shortened
done
{ cat tiny; printf 'more'; } >longer
fails 1 'longer' generate longer

# A byte that was changed is seen; a file without checksums, as other programs write it, is read.
damage() {
  sed "s/$1/$2/" tiny >damaged
  cmp -s tiny damaged && die "nothing to replace: $1"
  fails 1 "damaged: it was damaged: $3" generate damaged
}
damage '"context":"1"' '"context":"2"' 'its names, shapes or metadata do not have their checksum'
damage '"rondo.checksum"' '"rondo.checksun"' "its metadata have no 'rondo.checksum'"
{ head -c -1 tiny; printf 'x'; } >damaged
fails 1 "damaged: it was damaged: tensor 'output.weight' does not have its checksum" generate damaged
without_checksums() { sed -i -E 's/"rondo\.(weights|checksum)"/"other.\1"/g' "$1"; }
succeeds generate tiny --length 9 --seed 3
cp out written
without_checksums tiny
succeeds generate tiny --length 9 --seed 3
[ "$(head -1 out)" = "$(head -1 written)" ] || die "without checksums, another text"

# Metadata that lie or are not there. The replacements keep the header's length.
lie() {
  sed "s/$1/$2/" tiny >liar
  cmp -s tiny liar && die "nothing to replace: $1"
  fails 1 "liar: $3" generate liar
}
lie '"hidden":"1"' '"hidden":"2"' "tensor '(hidden.weight|hidden.bias|output.weight)' has the shape"
lie '"context":"1"' '"context":"0"' "the context in its metadata is '0', not a number from 1"
lie '"context":"1"' '"cantext":"1"' "this is not a model of rondo train: its metadata has no 'context'"
lie '"version":"1"' '"version":"2"' "its format has version '2'"
lie 'rondo-byte-model' 'rando-byte-model' "its format 'rando-byte-model' is unknown"
lie '"vocabulary":"20' '"vocabulary":"zz' 'the vocabulary in its metadata'
lie '"vocabulary":"2061' '"vocabulary":"6120' 'the vocabulary in its metadata'
lie '"opening":"..' '"opening":"00' 'the opening in its metadata'
lie '"output.bias"' '"output.bios"' "it has no tensor 'output.bias'"
lie '"F32"' '"I32"' "tensor '[a-z.]*' has type i32, not f32"

# A safetensors file that is not a model, and weights that are NaN.
printf '\x02\0\0\0\0\0\0\0{}' >foreign
fails 1 "foreign: this is not a model of rondo train: its metadata has no 'format'" generate foreign
{ head -c -8 tiny; printf '\xff\xff\xff\xff\xff\xff\xff\xff'; } >nan
fails 1 'nan: the scores of this model are NaN or infinite' generate nan

# A gpt, whose context is filled more than once: with caches and without, recorded and not, the text is the same.
succeeds train text --model gpt --context 40 --layers 2 --width 16 --heads 2 --batch 4 --steps 30 --save gpt
for prompt in '' a 'bcdef ghij' 'a text that is longer than what the model sees is cut'; do
  succeeds generate gpt --length 100 --prompt "$prompt" --json
  json_holds '.kind == "gpt"' '.identical' '.caches.identical' '.caches.largest_difference < 1e-4' \
    '.caches.prompt_lengths == [8, 16, 32, 40]' '.caches.prompt_runs + .caches.next_runs == 100' \
    '.caches.prompt_runs >= 3 and .caches.prompt_runs <= 6' '[.bytes_per_second[]] | length == 3 and all(. > 0)' \
    '.recomputed.step_us > 0' '.parameters == 27 * 16 + 40 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16 + 16 * 27'
  jq -j .text out >written
  succeeds generate gpt --length 100 --prompt "$prompt"
  [ "$(cat out)" = "$prompt$(cat written)" ] || die "--json gave another text after '$prompt'"
done
succeeds generate gpt --length 50 --temperature 0 --json
json_holds '.caches.identical'

# The shortest contexts, and files.
for context in 1 2; do
  succeeds train text --model gpt --context $context --layers 1 --width 8 --heads 2 --batch 2 --steps 2 --save tiny
  succeeds generate tiny --length 9 --json
  json_holds '.identical' '.caches.identical' ".caches.prompt_lengths == [$context]"
done
succeeds train text --model gpt --context 16 --layers 1 --width 8 --heads 2 --batch 2 --steps 2 --save tiny
without_checksums tiny
lie '"heads":"2"' '"heads":"3"' 'the sizes in its metadata are invalid: width 8 is not a multiple of 3 heads'
lie '"layers":"1"' '"layers":"2"' "it has no tensor 'block1.norm1.scale'"
lie '"width":"8"' '"width":"4"' "tensor 'tokens.embedding' has the shape"
lie '"layers":"1"' '"lajers":"1"' "this is not a model of rondo train: its metadata has no 'layers'"
size=$(stat -c %s tiny)
for ((count = 1; count < size; count += 997)); do
  head -c "$count" tiny >shortened
  fails 1 'shortened' generate shortened
done
header=$((8 + $(od -An -t u8 -N 8 tiny)))
{ head -c $header tiny; head -c $(($(stat -c %s tiny) - header)) /dev/zero | tr '\0' '\377'; } >nan
fails 1 'nan: the scores of this model are NaN or infinite' generate nan
