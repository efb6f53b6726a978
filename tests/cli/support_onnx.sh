# SPDX-License-Identifier: MIT
# Sourced by tests of the tool that need a model: writes ONNX files with the shell alone, as hexadecimal digits.

# hex TEXT: its bytes.
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

# varint NUMBER: up to 16383.
varint() {
  if [ "$1" -lt 128 ]; then printf %02x "$1"; else printf %02x%02x $(($1 % 128 + 128)) $(($1 / 128)); fi
}

# field NUMBER HEX: bytes, a text or a message. number NUMBER VALUE: a number.
field() { printf %s%s%s "$(varint $(($1 * 8 + 2)))" "$(varint $((${#2} / 2)))" "$2"; }
number() { printf %s%s "$(varint $(($1 * 8)))" "$(varint "$2")"; }

# node OPERATOR OUTPUT INPUT...: a node that is named after its output.
node() {
  local operator=$1 output=$2 input
  shift 2
  for input in "$@"; do field 1 "$(hex "$input")"; done
  field 2 "$(hex "$output")"
  field 3 "$(hex "$output")"
  field 4 "$(hex "$operator")"
}

# value NAME TYPE DIMENSION...: an input or output; a dimension that is no number is dynamic.
value() {
  local name=$1 type=$2 dims="" dim
  shift 2
  for dim in "$@"; do
    if [[ $dim =~ ^[0-9]+$ ]]; then dims+=$(field 1 "$(number 1 "$dim")"); else dims+=$(field 1 "$(field 2 "$(hex "$dim")")"); fi
  done
  field 1 "$(hex "$name")"
  field 2 "$(field 1 "$(number 1 "$type")$(field 2 "$dims")")"
}

# sequence NAME TYPE DIMENSION: an input or output that is a sequence of vectors.
sequence() {
  local element
  element=$(field 1 "$(number 1 "$2")$(field 2 "$(field 1 "$(number 1 "$3")")")")
  field 1 "$(hex "$1")"
  field 2 "$(field 4 "$(field 1 "$element")")"
}

# optional NAME TYPE: an input that is an optional tensor of an unknown shape.
optional() {
  field 1 "$(hex "$1")"
  field 2 "$(field 9 "$(field 1 "$(field 1 "$(number 1 "$2")")")")"
}

# tensor NAME TYPE HEX DIMENSION...: a tensor with elements.
tensor() {
  local name=$1 type=$2 data=$3 dim
  shift 3
  for dim in "$@"; do number 1 "$dim"; done
  number 2 "$type"
  field 8 "$(hex "$name")"
  field 9 "$data"
}

# model GRAPH: a model of operator set 17, from the fields of its graph.
model() { printf %s%s%s "$(number 1 8)" "$(field 7 "$1")" "$(field 8 "$(number 2 17)")"; }

# write_hex FILE HEX
write_hex() { printf '%b' "$(sed 's/../\\x&/g' <<<"$2")" >"$1"; }

# A layer: y = relu(x w + b), x [batch, 2]; with w = [[1, 2], [3, 4]] and b = [0.5, -20].
make_layer() {
  local w=0000803f000000400000404000008040 b=0000003f0000a0c1
  write_hex "$1" "$(model "$(field 1 "$(node Gemm sum x w b)")$(field 1 "$(node Relu y sum)")$(
    field 2 "$(hex layer)")$(field 5 "$(tensor w 1 $w 2 2)")$(field 5 "$(tensor b 1 $b 2)")$(
    field 11 "$(value x 1 batch 2)")$(field 12 "$(value y 1 batch 2)")")"
}

# npy FILE HEADER HEX: a file of NumPy.
npy() {
  write_hex "$1" "934e554d50590100$(printf %02x%02x $((${#2} % 256)) $((${#2} / 256)))$(hex "$2")$3"
}
