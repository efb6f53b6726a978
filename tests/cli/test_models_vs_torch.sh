#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/models_vs_torch.py with modules that only look like PyTorch and NumPy, and with programs in the place of Rondo's
# and of torch_turns.py: exports, turns, times, memory and outputs are compared, and what fails is omitted.
source "$(dirname "$0")/support.sh" "$1"

mkdir bench
cp "$here"/../../bench/{models_vs_torch,comparison,table,turns}.py bench/
script=bench/models_vs_torch.py
source "$here/support_torch.sh"

cat >modules/torch.py <<'END'
__version__ = "0.0"
class cuda:
    is_available = staticmethod(lambda: True)
    get_device_name = staticmethod(lambda name: "a GPU")
END
cat >modules/numpy.py <<'END'
import math
float64 = None
class Array(list):
    shape = property(len)
    astype = lambda self, of: self
    max = lambda self: max(list(self))
    all = lambda self: all(list(self))
    __sub__ = lambda self, other: Array(a - b for a, b in zip(self, other))
    __abs__ = lambda self: Array(map(abs, self))
load = lambda path: Array(map(float, open(path).read().split()))
isfinite = lambda array: Array(map(math.isfinite, array))
END
echo '__version__ = "0.0"' | tee modules/{onnx,onnxscript,torchvision}.py >modules/transformers.py

# engine TIME NUMBERS RESULT: writes these numbers as an output, answers turns, and ends with the result. $folder is
# code that finds the folder of the output.
engine() {
  cat <<END_OF_ENGINE
import os, sys
arguments = dict(zip(sys.argv, sys.argv[1:]))
$folder
os.makedirs(folder, exist_ok=True)
with open(f"{folder}/logits.npy", "w") as file:
    file.write("$2")
print("ready", flush=True)
for line in sys.stdin:
    print(*["$1"] * int(line), flush=True)
print('$3')
END_OF_ENGINE
}
# torch_turns NUMBERS: cannot export in f16.
torch_turns() {
  folder='
network = "{--models}/{--size}/{--network}.{--type}".format(**arguments)
if "--write" in sys.argv:
    os.makedirs(f"{network}/batch_1") if "f16" not in network else sys.exit("no halves")
    sys.exit()
folder = f"{network}/batch_{arguments['"'--batch'"']}/torch"'
  engine 100.0 "$1" '{"peak_bytes": 8000000, "weight_bytes": 4000000}' >bench/torch_turns.py
}
torch_turns "1 -2 4"
folder='folder = arguments["--output"]'
memory='{"peak_bytes": 1, "memory": {"planned": 1000000, "states": 5000000}}'
{ echo '#!/usr/bin/env python3' && engine 90.0 "1 -2 4.001" "$memory"; } >program
chmod +x program

run 0 --program ./program --models models --names gpt2 --batches 1 --seconds 0.001 --rounds 2 --out part.json
grep -Eq '^gpt2, f32, batch of 1 .* ratio 0.90 \(met; minima 0.90\) +memory 6.0 of 8.0 MB, 0.75 \(missed\), beyond' out ||
  die "a row: $(cat out)"
grep -q 'beyond the weights 0.50 (met)  outputs differ by 2.5e-04$' out || die "no outputs: $(cat out)"
cp part.json out
json_holds '.kind == "gpu models"' '.hardware == "a GPU"' '.tables[0].rows == [["gpt2, f32, batch of 1", 0.09, 0.1]]' \
  '.tables[2].rows == [["gpt2, f32, batch of 1", 2, 4]]' '.missing == ["gpt2, f16: no halves"]'

torch_turns "1 -2 5"
run 1 --program ./program --models models --names gpt2 --types f32 --batches 1 --seconds 0.001 --rounds 2
grep -q 'omitted: gpt2, f32, batch of 1: outputs differ by 0.2 of the largest' err || die "no difference: $(cat err)"
echo 'raise SystemExit("no memory")' >bench/torch_turns.py
run 1 --program ./program --models models --names gpt2 --types f32 --batches 1 --seconds 0.001 --rounds 2
grep -q 'omitted: gpt2, f32, batch of 1: torch: no memory' err || die "no failure: $(cat err)"
