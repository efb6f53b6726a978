#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo run, rondo info, rondo bench model, rondo serve and rondo report (ON-6): models, NumPy's files and ONNX's
# tensors, what is not as expected, and bad input.
source "$(dirname "$0")/support.sh" "$1"
source "$here/support_onnx.sh"
if "$tool" info /dev/null 2>&1 | grep -q 'without rondo-onnx'; then exit 77; fi

make_layer layer.onnx
# x = [[1, 2], [3, 4]]; y = [[7.5, 0], [15.5, 2]]
x=0000803f000000400000404000008040
y=0000f040000000000000784100000040
npy x.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }" $x
npy fortran.npy "{\"shape\": (2L, 2), 'descr': '<f4', 'fortran_order': True}" 0000803f000040400000004000008040
npy double.npy "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }" 000000000000f03f0000000000000040
write_hex x.pb "$(tensor x 1 $x 2 2)"

# Information.
succeeds info layer.onnx --size batch=5 --json
json_holds '.model == "layer.onnx"' '.supported' '.nodes == 2' '.parameters == 6' '.weight_bytes == 24' '.opset == 17' \
  '.graph == "layer"' '.inputs == [{"name": "x", "type": "float", "dimensions": "[batch, 2]"}]' \
  '.operators == [{"operator": "Gemm", "nodes": 1}, {"operator": "Relu", "nodes": 1}]' '.unsupported == []' \
  '.sizes == [{"input": "x", "shape": "[5, 2]", "bytes": 40}]' '.memory.planned > 0'
succeeds info layer.onnx
succeeds info layer.onnx --json
json_holds '.patterns == [{"pattern": "activation", "replaced": 1}]'
succeeds info layer.onnx --without-patterns gelu,activation --json
json_holds '.patterns == []' '.supported'
succeeds run layer.onnx --without-patterns all --input x=x.npy --json
json_holds '.identical' '.outputs[0].first == "7.5, 0, 15.5, 2"'
fails 1 "there is no pattern 'odd'" run layer.onnx --without-patterns odd
fails 1 "there is no pattern 'odd'" bench model layer.onnx --without-patterns odd
succeeds info layer.onnx
for text in '^parameters +6' '^x +float +\[batch, 2\]' '^Gemm +1'; do
  grep -Eq "$text" out || die "no '$text' in: $(cat out)"
done

# Runs.
for file in x.npy x.pb fortran.npy; do
  succeeds run layer.onnx --input x=$file --output results --json
  json_holds '.identical' '.outputs | length == 1' '.outputs[0].name == "y"' '.outputs[0].shape == "[2, 2]"' \
    '.outputs[0].first == "7.5, 0, 15.5, 2"' '.outputs[0].most == 15.5' '.outputs[0].checked == false'
  [ "$(tail -c 16 results/y.npy | od -An -v -tx1 | tr -d ' \n')" = $y ] || die "other bytes in results/y.npy"
  [ $(($(wc -c <results/y.npy) % 64)) = 16 ] || die "the header of results/y.npy is not aligned"
done
succeeds run layer.onnx --input x=double.npy --json
json_holds '.outputs[0].first == "7.5, 0"'
succeeds run layer.onnx --input x=zeros --size batch=3 --json
json_holds '.outputs[0].shape == "[3, 2]"' '.outputs[0].most == 0.5' '.outputs[0].least == 0'
succeeds run layer.onnx --json
json_holds '.outputs[0].shape == "[1, 2]"' '.inputs[0].value == "random"'
succeeds run layer.onnx --device cpu:check --size batch=2
grep -Eq '^y +f32 +\[2, 2\]' out || die "no row of the output: $(cat out)"

# The size of an output depends on data: what is not used is cut off, if the value is not that of a file.
write_hex places.onnx "$(model "$(field 1 "$(node NonZero y x)")$(field 2 "$(hex places)")$(
  field 11 "$(value x 1 2 2)")$(field 12 "$(value y 7 2 n)")")"
succeeds run places.onnx --input x=zeros --json
json_holds '.outputs[0].shape == "[2, 0]"'
succeeds run places.onnx --input x=random --json
json_holds '.outputs[0].shape == "[2, 4]"' '.outputs[0].first == "0, 0, 1, 1, ..."'

# Checks: a folder of NumPy's files, one of ONNX's tensors, single files.
succeeds run layer.onnx --input x=results/y.npy --output again
mkdir tensors
cp x.pb tensors/input_0.pb
write_hex tensors/output_0.pb "$(tensor y 1 $y 2 2)"
succeeds run layer.onnx --check tensors --json
json_holds '.outputs[0].checked' '.outputs[0].difference == 0' '.inputs[0].shape == "[2, 2]"'
cp x.npy results/x.npy
succeeds run layer.onnx --check results --json
json_holds '.outputs[0].checked'
succeeds run layer.onnx --input x=x.npy --check y=results/y.npy --json
json_holds '.outputs[0].checked'
fails 1 "output 'y': 4 of 4 elements differ from x.npy; element 0 is 7.5, not 1" \
  run layer.onnx --input x=x.npy --check y=x.npy
fails 1 "output 'y' is f32 \[1, 2\]; in x.npy it is f32 \[2, 2\]" run layer.onnx --check y=x.npy
succeeds run layer.onnx --input x=x.npy --check y=x.npy --absolute 13
fails 1 "neither a folder nor NAME=FILE" run layer.onnx --check z=x.npy
mkdir empty
fails 1 "empty has no file for an output" run layer.onnx --check empty

# Sequences: a file of the whole one, files of elements, and how many there are.
write_hex items.onnx "$(model "$(field 1 "$(node Identity y x)")$(field 1 "$(node SequenceLength n x)")$(
  field 2 "$(hex items)")$(field 11 "$(sequence x 1 1)")$(field 12 "$(sequence y 1 1)")$(field 12 "$(value n 7)")")"
first=$(field 3 "$(tensor a 1 0000803f 1)") second=$(field 3 "$(tensor b 1 00000040 1)")
mkdir items
write_hex items/input_0.pb "$(number 2 1)$first$second"
cp items/input_0.pb items/output_0.pb
npy one.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" 0000803f
succeeds run items.onnx --check items --json
json_holds '.outputs | map(.name) == ["y[0]", "y[1]", "n"]' '.outputs[1].first == "2"' '.outputs[1].checked' \
  '.outputs[2].first == "2"' '.inputs[1].input == "x[1]"'
succeeds run items.onnx --input 'x[2]=one.npy' --input 'x[0]=zeros' --check 'y[2]=one.npy' --output items/out --json
json_holds '.outputs | map(.first)[2:] == ["1", "3"]' '.outputs | map(.checked) == [false, false, true, false]'
[ -f items/out/y_2_.npy ] || die "no items/out/y_2_.npy"
succeeds run items.onnx --check items --input 'x[0]=zeros' --absolute 2 --json
json_holds '.outputs | map(.first) == ["0", "2", "2"]' '.inputs | map(.value) == ["zeros", "a file of the folder"]'
succeeds run items.onnx --size 'x[]=0' --json
json_holds '.outputs | map(.first) == ["0"]'
succeeds info items.onnx --json
json_holds '.inputs == [{"name": "x", "type": "sequence(float)", "dimensions": "[1]"}]' '.sizes[0].input == "x[0]"'
succeeds bench model items.onnx --size 'x[]=2' --seconds 0.01 --json
succeeds run items.onnx --input x=one.npy --check y=one.npy --json
json_holds '.outputs[0].checked' '.outputs | length == 2'
fails 1 "output 'y' has 1 elements, and items/output_0.pb has more" run items.onnx --input x=one.npy --check y=items/output_0.pb
fails 1 "output 'y\[2\]': items/output_0.pb has no such element" \
  run items.onnx --input 'x[0]=one.npy' --input x[1]=zeros --input x[2]=zeros --check y=items/output_0.pb --absolute 9
fails 1 "the output has no such element" run items.onnx --check 'y[4]=one.npy'
fails 1 "give its elements" run items.onnx --input x=random
fails 1 "at most 65536 elements" run items.onnx --size 'x[]=100000'
fails 1 "at most 65536 elements" run items.onnx --input 'x[100000]=zeros'
fails 1 "no such input" run items.onnx --size 'x[]=1' --input 'x[1]=zeros'
fails 2 "the size is a whole number" run items.onnx --size 'x[]=two'

# An optional whose shape the model does not say.
write_hex optional.onnx "$(model "$(field 1 "$(node OptionalHasElement has y)")$(field 1 "$(node Identity z x)")$(
  field 2 "$(hex optional)")$(field 11 "$(optional y 1)")$(field 11 "$(value x 1 1)")$(field 12 "$(value has 9)")$(
  field 12 "$(value z 1 1)")")"
fails 1 "does not say which shape this optional has; give a file" run optional.onnx --input y=random
succeeds run optional.onnx --input y=one.npy --input x=one.npy --json
json_holds '.outputs | map(.first) == ["1", "1"]'

# Bad input.
fails 1 'missing.onnx' run missing.onnx
fails 1 'x.npy: ' info x.npy
fails 1 "no such input" run layer.onnx --input z=x.npy
fails 1 "no such dynamic dimension" run layer.onnx --size rows=2
fails 2 "the size is a whole number" run layer.onnx --size batch=two
fails 1 'names end in .npy' run layer.onnx --input x=layer.onnx
fails 1 'nothing.npy' run layer.onnx --input x=nothing.npy
fails 1 'nonsense' run layer.onnx --device nonsense
fails 2 'MODEL is missing' run
npy ints.npy "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1), }" 0100000000000000
fails 1 "input 'x': it has the type i64; the model needs f32" run layer.onnx --input x=ints.npy
npy flat.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }" $x
fails 1 "x" run layer.onnx --input x=flat.npy

# bad_npy PATTERN HEADER [HEX]: a file that is refused.
bad_npy() {
  npy bad.npy "$2" "${3:-$x}"
  fails 1 "bad.npy: .*$1" run layer.onnx --input x=bad.npy
}
bad_npy 'big-endian' "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }"
bad_npy "the type '<c8'" "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }"
bad_npy "the type ''" "{'descr': '', 'fortran_order': False, 'shape': (2, 2), }"
bad_npy 'structures' "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2), }"
bad_npy 'too few for its shape \[2, 3\]' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
bad_npy '16 bytes of elements; its shape takes 4' "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"
bad_npy 'too few' "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"
bad_npy 'more than 6 dimensions' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1), }"
bad_npy 'not that of a NumPy array' "{'descr': '<f4', 'fortran_order': False}"
bad_npy 'not that of a NumPy array' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)"
bad_npy 'not that of a NumPy array' "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 2), }"
printf 'text that is not an array' >bad.npy
fails 1 'bad.npy: it is not a NumPy file' run layer.onnx --input x=bad.npy
write_hex bad.npy 934e554d50590400160000007b7d
fails 1 'bad.npy: it has version 4' run layer.onnx --input x=bad.npy
write_hex bad.npy 934e554d50590100ff000000
fails 1 'bad.npy: it ends in its header' run layer.onnx --input x=bad.npy

# Integers of other types, if they fit: into the dimension of x, 2 rows.
write_hex rows.onnx "$(model "$(field 1 "$(node Gather y table ids)")$(field 2 "$(hex rows)")$(
  field 5 "$(tensor table 1 $x 2 2)")$(field 11 "$(value ids 6 n)")$(field 12 "$(value y 1 n 2)")")"
for type in '<i8 0100000000000000 0000000000000000' '<u8 0100000000000000 0000000000000000' '<i2 0100 0000' \
  '<u2 0100 0000' '<u4 01000000 00000000' '|u1 01 00'; do
  set -- $type
  npy ids.npy "{'descr': '$1', 'fortran_order': False, 'shape': (2,), }" $2$3
  succeeds run rows.onnx --input ids=ids.npy --json
  json_holds '.outputs[0].first == "3, 4, 1, 2"' '.outputs[0].shape == "[2, 2]"'
done
npy ids.npy "{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }" ffffffff
fails 1 "input 'ids': element 0 is 4294967295; the model needs i32" run rows.onnx --input ids=ids.npy
npy ids.npy "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }" ffffffffffffffff
fails 1 'ids.npy: element 0 is 18446744073709551615, which I64 does not hold' run rows.onnx --input ids=ids.npy
write_hex ids.pb "$(tensor ids 4 01000000 2)"
succeeds run rows.onnx --input ids=ids.pb --json
json_holds '.outputs[0].first == "3, 4, 1, 2"'

# A node that reads such a result: the model runs in parts, and 'info' says where it is cut.
write_hex parts.onnx "$(model "$(field 1 "$(node NonZero p x)")$(field 1 "$(node Neg n p)")$(field 1 "$(node Abs y n)")$(
  field 2 "$(hex parts)")$(field 11 "$(value x 1 batch 2)")$(field 12 "$(value y 7 2 n)")")"
succeeds info parts.onnx --json
json_holds '.supported' '.in_parts' '.unsupported == []' '.cuts | length == 1' '.cuts[0].node | contains("Neg")' \
  '.cuts[0].reason | contains("depends on data")'
succeeds run parts.onnx --output results --json
json_holds '.identical' '.parts == 2' '.waits == 2' '.outputs[0].shape == "[2, 2]"' \
  '.outputs[0].first == "0, 0, 0, 1"'
succeeds run parts.onnx --input x=zeros --device cpu:check --json
json_holds '.outputs[0].shape == "[2, 0]"'
succeeds run parts.onnx --check y=results/y.npy --json
json_holds '.outputs[0].checked'
succeeds bench model parts.onnx --seconds 0.05 --json
json_holds '.recorded.total_us > 0' '.parts == 2' '.eager == null'
fails 1 "parts.onnx: .*depends on data.*a runner runs the model in parts" serve parts.onnx --load --seconds 0.1

# Inputs of types that programs do not have are named, whatever their sizes.
write_hex wide.onnx "$(model "$(field 1 "$(node Identity y x)")$(field 2 "$(hex wide)")$(field 11 "$(value x 14 batch 2)")$(
  field 12 "$(value y 12 batch 2)")")"
succeeds info wide.onnx --json
json_holds '.unsupported[0].node == "input \u0027x\u0027"' '.unsupported[0].reason | contains("complex64")'
fails 1 "input 'x': .*'complex64'" run wide.onnx --size batch=3

# What is not supported: listed by info, named by run.
write_hex odd.onnx "$(model "$(field 1 "$(node NoSuchOperator y x)")$(field 2 "$(hex odd)")$(
  field 11 "$(value x 1 batch 2)")$(field 12 "$(value y 1 batch 2)")")"
succeeds info odd.onnx --json
json_holds '.supported == false' '.unsupported | length == 1' '.unsupported[0].node | contains("NoSuchOperator")' \
  '.memory == null'
fails 1 "odd.onnx: .*NoSuchOperator.*'rondo info' lists all" run odd.onnx
fails 1 "odd.onnx: .*NoSuchOperator" bench model odd.onnx

# The benchmark.
succeeds bench model layer.onnx --size batch=4 --seconds 0.05 --json
json_holds '.device == "cpu"' '.nodes == 2' '.eager.total_us > 0' '.recorded.total_us > 0' '.gain > 0' \
  '.recorded.runs_per_second > 0' '.memory.planned > 0' '.first_answer_seconds > 0' '.peak_process_bytes > 0'
succeeds bench model layer.onnx --seconds 0.05
grep -q '^recorded ' out || die "no row of recorded runs: $(cat out)"
fails 1 'no such input' bench model layer.onnx --input z=zeros
succeeds bench model layer.onnx --length batch --longest 6 --seconds 0.05 --json
json_holds '[.lengths[].length] == [6, 3, 1]' '.lengths | all(.eager_us > 0 and .recorded_us > 0 and .gain > 0)'
succeeds bench model layer.onnx --length batch --seconds 0.05
fails 1 'no such dynamic dimension' bench model layer.onnx --length words

# Serving: sizes up to 8 rows, answers as eager runs give, inputs from a file, and other choices of sizes beside them.
few=(--load --seconds 0.1 --requests 4 --sizes 2 --clients 2)
succeeds serve layer.onnx "${few[@]}" --json
json_holds '.model == "layer.onnx"' '.graph_rows | length >= 1 and length <= 2 and all(. >= 1)' '.answers.checked >= 1' \
  '.answers.identical >= 1' '.answers.largest_difference < 1e-3' '.state_bytes > 0' \
  '[.closed_recorded, .closed_eager, .closed_chosen, .open_recorded, .open_eager, .open_chosen]
    | all(.answered > 0 and .failed == 0 and .rows <= 8 * .answered)'
succeeds serve ./layer.onnx "${few[@]}" --input x=x.npy --rows batch --most 3 --regret --report served.html
for row in 'rows +[1-9][0-9, ]* of the graphs' 'closed, recorded' 'answers +[0-9]+ compared with eager runs' 'doubling +[1-3] '; do
  grep -Eq "^$row" out || die "no row '$row' in: $(cat out)"
done
grep -q '</html>' served.html || die 'the page has no end'
fails 1 "no input of the model has a dynamic dimension 'length'" serve layer.onnx --load --rows length
fails 1 'missing.onnx' serve missing.onnx --load
fails 1 'no such input' serve layer.onnx --load --input z=zeros
fails 1 'no such dynamic dimension' serve layer.onnx --load --size length=2
npy one.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }" 0000803f0000004000004040
fails 1 "input 'x': the file has 12 bytes" serve layer.onnx "${few[@]}" --input x=one.npy
fails 1 "odd.onnx: .*NoSuchOperator" serve odd.onnx --load
succeeds serve layer.onnx "${few[@]}" --least 1 --most 1
grep -q '^answers .*: all have the same bits$' out || die "answers are not all equal: $(cat out)"

# A row that depends on the others: the mean of all elements.
write_hex mixed.onnx "$(model "$(field 1 "$(node ReduceMean m x)")$(field 1 "$(node Sub y x m)")$(field 2 "$(hex mixed)")$(
  field 11 "$(value x 1 batch 2)")$(field 12 "$(value y 1 batch 2)")")"
fails 1 "model 'mixed.onnx' mixes the rows of a batch, so it cannot be served: output 'y' of a request of [1-7] row" \
  serve mixed.onnx "${few[@]}"

# The rows are the second dimension, also of the file.
write_hex second.onnx "$(model "$(field 1 "$(node Relu y x)")$(field 2 "$(hex second)")$(field 11 "$(value x 1 2 batch)")$(
  field 12 "$(value y 1 2 batch)")")"
succeeds serve second.onnx "${few[@]}" --rows batch --input x=x.npy --json
json_holds '.answers.checked >= 1' '.answers.identical == .answers.checked'
fails 1 'no input of the model has a dynamic first dimension' serve second.onnx --load

# Lengths: padded where the option says that it is safe, exact elsewhere. Padding changes what Softmax gives.
for name in Relu Softmax; do
  write_hex $name.onnx "$(model "$(field 1 "$(node $name y x)")$(field 2 "$(hex $name)")$(field 11 "$(value x 1 batch words)")$(
    field 12 "$(value y 1 batch words)")")"
done
texts=("${few[@]}" --length words --longest 3 --streams 1)
succeeds serve Relu.onnx "${texts[@]}" --causal --json
json_holds '.answers.checked >= 1' '.answers.largest_difference == 0' '.graph_lengths | max == 3' \
  '(.graph_lengths | length) == (.graph_rows | length)' '.closed_recorded | .answered > 0 and .failed == 0'
succeeds serve Relu.onnx "${texts[@]}" --mask x
grep -Eq '^rows +[1-9].* of length [1-9][0-9]*; [1-9].* of length 3: of the graphs$' out || die "no lengths in: $(cat out)"
succeeds serve Softmax.onnx "${texts[@]}" --json
json_holds '.answers.checked >= 1' '.answers.largest_difference < 1e-6' '.closed_recorded | .answered > 0 and .failed == 0'
fails 1 "differ from an eager run without padding of the length" serve Softmax.onnx "${few[@]}" --length words \
  --longest 30 --spread 0.1 --streams 1 --causal
succeeds serve Relu.onnx "${few[@]}" --length words --longest 2 --input x=x.npy
fails 1 "no input of the model has a dynamic dimension 'tokens'" serve Relu.onnx --load --length tokens
fails 1 "the model has no input 'z'" serve Relu.onnx --load --length words --mask z
fails 2 'name it with --length' serve Relu.onnx --load --causal
fails 2 'do not support lengths' serve Relu.onnx --load --length words --regret
fails 2 'are for models in files' serve dense --load --length words

# A size that nothing gives, and that does not fit.
write_hex wide.onnx "$(model "$(field 1 "$(node MatMul y x v)")$(field 2 "$(hex wide)")$(field 5 "$(tensor v 1 $x 2 2)")$(
  field 11 "$(value x 1 batch wide)")$(field 12 "$(value y 1 batch 2)")")"
for command in "run wide.onnx" "serve wide.onnx ${few[*]}"; do
  fails 1 "wide.onnx: .*; no --size and no file gives the dimensions 'wide': they have the size 1" $command
  succeeds $command --size wide=2
done
fails 2 '--soak requires dense or recommender' serve layer.onnx --load --soak 1
fails 2 '--look-ups requires recommender' serve layer.onnx --load --look-ups cpu
fails 2 'are for models in files' serve dense --load --size batch=2
write_hex fixed.onnx "$(model "$(field 1 "$(node Relu y x)")$(field 2 "$(hex fixed)")$(field 11 "$(value x 1 3 2)")$(
  field 12 "$(value y 1 3 2)")")"
fails 1 'export it with a dynamic batch size' serve fixed.onnx --load

# A page.
succeeds report layer.onnx --size batch=4 -o page.html --title 'A <layer>'
for text in '<td>activation</td><td>1</td>' 'A &lt;layer&gt;' '<td>\[batch, 2\]</td><td>\[4, 2\]</td>' '<td>Gemm</td><td>1</td>' 'operator set 17' '</html>'; do
  grep -q "$text" page.html || die "no '$text' in the page"
done
command -v xmllint >/dev/null && { xmllint --noout page.html || die 'the page is not well-formed'; }
fails 1 'no such dynamic dimension' report layer.onnx --size rows=4
fails 1 'odd.onnx: .*NoSuchOperator' report odd.onnx
fails 2 'are for one model' report x.npy --size batch=4
