#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/models_vs_onnxruntime.py with programs in the place of rondo_bench and of onnxruntime: turns, first answers and
# memory are compared (ON-8), and without models it is skipped.
source "$(dirname "$0")/support.sh" "$1"

command -v python3 >/dev/null || exit 77
root=$here/../..

# run STATUS ARGUMENT...: with the modules of the folder `modules`.
run() {
  local expected=$1 status=0
  shift
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/modules python3 bench/models_vs_onnxruntime.py "$@" >out 2>err || status=$?
  [ "$status" -eq "$expected" ] || die "$*: exit status $status, not $expected: $(cat err)"
}

mkdir -p bench modules models/full/first models/light/second
cp "$root"/bench/{models_vs_onnxruntime,comparison,table,turns}.py bench/
touch models/{full/first,light/second}/model.onnx
echo '__version__ = "0.0"' | tee modules/onnx.py >modules/onnxruntime.py

# engine TIME CPU SECONDS BYTES: answers turns, and ends with these figures.
engine() {
  cat <<END_OF_ENGINE
import json, sys
print("ready", flush=True)
for line in sys.stdin:
    print(*["$1"] * int(line), flush=True)
print(json.dumps({"cpu_us": $2, "first_answer_seconds": $3, "first_answer_cpu_seconds": $3, "peak_bytes": $4}))
END_OF_ENGINE
}
engine 100.0 100 0.2 8000000 >bench/onnxruntime_turns.py
{ echo '#!/usr/bin/env python3' && engine 90.0 80 0.1 4000000; } >program
chmod +x program

run 0 --program ./program --models models --seconds 0.001 --rounds 2 --out part.json
cp out shown
grep -Eq '^first +batch 8 +2 threads .* ratio 0.90 \(met; minima 0.90, processor time 0.80\) +first answer 0.50 \(met; processor time 0.50\) +memory 0.50 \(met\)$' shown ||
  die "a row: $(cat shown)"
grep -q '^1 threads: geometric means of 3: time 0.90' shown || die "no means: $(cat shown)"
[ "$(wc -l <shown)" -eq 8 ] || die "not a model of two batches and one of one, on 1 and 2 threads: $(cat shown)"
cp part.json out
json_holds '.kind == "models"' '.versions.onnxruntime == "0.0"' '.tables[0].columns == ["Rondo", "onnxruntime"]' \
  '.tables[0].rows == [["first", 0.09, 0.1], ["second (light)", 0.09, 0.1]]' '.missing == []'
run 77 --program ./program --models nothing
