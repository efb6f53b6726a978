#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/comparison.py: the page is what its committed parts make; a GPU's commands are listed without one, and what PyTorch
# is needed for is skipped with a reason; the part of the CPU has the engines that were built, and names the others.
source "$(dirname "$0")/support.sh" "$1"

root=$here/../..
build=${tool%/tools/rondo/rondo}
command -v python3 >/dev/null || exit 77
export PYTHONDONTWRITEBYTECODE=1

parts=$root/bench/results/comparison
python3 "$root/bench/comparison.py" page --cpu "$parts-cpu.json" --gpu "$parts-gpu.json" \
  --networks "$parts-networks.json" "$parts-networks-gpu.json" "$parts-serving.json" "$parts-models-gpu.json" --out page.md
cmp page.md "$root/docs/comparison.md" || die "docs/comparison.md is not what bench/comparison.py page makes"
cmp pictures/comparison.svg "$root/docs/pictures/comparison.svg" || die "docs/pictures/comparison.svg is another"

"$root/tests/gpu/bench" --dry-run >out
for name in 'bench launch' 'rondo_bench change' 'bench memory' memory_vs_torch trees_vs_torch gpt_vs_torch; do
  grep -q "$name" out || die "tests/gpu/bench --dry-run does not run $name: $(cat out)"
done

mkdir modules
echo 'raise ImportError("not here")' >modules/torch.py
status=0
PYTHONPATH=$PWD/modules python3 "$root/bench/memory_vs_torch.py" --buffers none 2>err || status=$?
[ "$status" -eq 77 ] || die "memory_vs_torch.py without PyTorch: exit status $status: $(cat err)"
grep -q 'skipped: no PyTorch: not here' err || die "no reason: $(cat err)"

# Two programs stand in for MiniMalloc: one prints its times, the other finds nothing.
printf '#!/bin/sh\necho "Elapsed time 0.500s" >&2\n' >finds
printf '#!/bin/sh\nexit 1\n' >finds-nothing
chmod +x finds finds-nothing
printf 'id,lower,upper,size\na,0,2,3\nb,1,3,2\n' >two.csv
cpu=(python3 "$root/bench/comparison.py" cpu --build "${tool%/tools/rondo/rondo}" --only plans --lists two.csv --limit 1)
"${cpu[@]}" --out out --minimalloc ./finds >page.md
json_holds '.kind == "cpu"' '.hardware | test("processors? .*, [A-Za-z]+ [0-9.]+$")' '.date | length == 10' '.tables | length == 1' \
  '.tables[0].rows | length == 1 and .[0][0] == "two, into 5 bytes" and .[0][1] > 0 and .[0][2] == 500'
grep -q '^| two, into 5 bytes | .* | 500 | ' page.md || die "the part: $(cat page.md)"
! grep -q 'interrupted' out || die "the part has not ended: $(cat out)"
status=0
"${cpu[@]}" --out out --minimalloc ./finds-nothing >page.md 2>err || status=$?
[ "$status" -eq 77 ] || die "nothing to compare with: exit status $status"
status=0
"${cpu[@]}" --out out --peers none 2>err || status=$?
[ "$status" -eq 77 ] || die "without MiniMalloc: exit status $status"
grep -q 'omitted: MiniMalloc: there is no none/minimalloc/build/minimalloc (--help)' err ||
  die "without MiniMalloc: $(cat err)"

# The rows in which another engine is faster are named, each with a cause; the other rows are not.
cat >part.json <<'END'
{"kind": "cpu", "date": "2026-01-01", "commit": "0", "hardware": "none", "versions": {}, "commands": [], "missing": [],
 "tables": [{"title": "Changing a graph of 9 kernels", "text": "", "unit": "us", "columns": ["Rondo", "another"],
   "rows": [["making it", 2, 1], ["updating all of it", 1, 2], ["dropping it", 3, 1], ["losing it", 4, null]]}]}
END
python3 "$root/bench/comparison.py" show part.json | tr '\n' ' ' >page.md
rows=$(grep -Eo 'Rondo is behind in: .*' page.md | grep -Eo '(making it|updating all of it|dropping it|losing it): ' | tr -d '\n')
[ "$rows" = 'making it: dropping it: ' ] || die "rows in which Rondo is behind: '$rows' of: $(cat page.md)"
