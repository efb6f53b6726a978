#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/networks_vs_torch.py with programs in the place of rondo_bench and of PyTorch's networks: the turns are compared in
# rounds, other losses end it, and what does not compile is omitted. rondo_bench networks answers turns, and knows the
# networks of bench/networks_torch.py.
source "$(dirname "$0")/support.sh" "$1"

root=$here/../..
script=$root/bench/networks_vs_torch.py
source "$here/support_torch.sh"

# The script beside a fake networks_torch.py.
mkdir bench
cp "$root"/bench/{networks_vs_torch,turns,comparison,table}.py bench/
script=bench/networks_vs_torch.py
echo '__version__ = "0.0"' | tee modules/torch.py >modules/safetensors.py
cat >bench/networks_torch.py <<'END_OF_TORCH'
import json, os, sys
NETWORKS = ["first", "second_bf16"]
arguments = " ".join(sys.argv)
def take_turns():
    if "--write" in arguments:
        open(sys.argv[sys.argv.index("--weights") + 1], "w").close()
        return
    if "--way compile" in arguments and "FAILS" in os.environ:
        sys.exit("it does not compile")
    print("ready", flush=True)
    for line in sys.stdin:
        print(*["200.0" if "eager" in arguments else "100.0"] * int(line), flush=True)
    print(json.dumps({"losses": [2.0, 1.0], "peak_bytes": 4000000 if "eager" in arguments else 8000000}))
if __name__ == "__main__":
    take_turns()
END_OF_TORCH
# rondo LOSS: the program, whose second loss is this one.
rondo() {
  cat >program <<END_OF_RONDO
#!/bin/sh
case "\$*" in
  "networks --network "*" --turns --json") ;;
  *) exit 3 ;;
esac
echo ready
while read -r steps; do yes 90.0 | head -n "\$steps" | tr '\n' ' ' && echo; done
echo '{"losses": [2.0, $1], "peak_bytes": 3000000}'
END_OF_RONDO
  chmod +x program
}
rondo 1.00001
run 0 --program ./program --seconds 0.001 --rounds 2 --weights weights --out part.json
cp out shown
grep -Eq '^first +1 threads .* ratio 0.90 of compile \(met; minima 0.90\) +memory 0.75 \(missed\)$' shown || die "a row: $(cat shown)"
[ "$(wc -l <shown)" -eq 4 ] || die "not two networks on 1 and 2 threads: $(cat shown)"
cp part.json out
json_holds '.kind == "networks"' '.versions.PyTorch == "0.0"' '[.tables[].title] | length == 3' \
  '.tables[0].columns == ["Rondo", "PyTorch, eager", "PyTorch, compiled"]' '.tables[0].rows[0] == ["first", 0.09, 0.2, 0.1]' \
  '.tables[2].rows[1] == ["second_bf16", 3, 4, 8]' '.details[0].losses.rondo == [2, 1.00001]' '.missing == []'
FAILS=1 run 0 --program ./program --seconds 0.001 --rounds 1 --threads 1 --networks first --weights weights --out part.json
cp part.json out
json_holds '.missing == ["first, compile: it does not compile"]' '.tables[0].rows[0] == ["first", 0.09, 0.2, null]' \
  '[.details[] | [.network, .threads, .better]] == [["first", 1, "eager"], ["first", 2, "compile"],
    ["second_bf16", 1, "compile"], ["second_bf16", 2, "compile"]]'
rondo 1.01
run 1 --program ./program --seconds 0.001 --rounds 1 --networks first --weights weights
grep -q 'first: the losses differ' err || die "no reason: $(cat err)"
run 0 --program ./program --seconds 0.001 --rounds 1 --networks second_bf16 --weights weights
rm -rf weights

# Rondo's own part.
names=$("$tool" networks --network '?' 2>&1 | sed 's/.*there are //; s/;.*//') || true
for name in $names; do
  grep -q "^    \"$name\": " "$root/bench/networks_torch.py" || die "networks_torch.py has no $name"
done
[ "$(wc -w <<<"$names")" -eq "$(grep -c '^    ".*": (lambda' "$root/bench/networks_torch.py")" ] || die "it has others, too"
printf '1\n2\n' | "$tool" networks --network unet --turns --losses 2 --json >turns
[ "$(sed -n '1p;2,3s/[0-9.]\+/N/gp' turns | tr '\n' '|')" = 'ready|N|N N|' ] || die "turns: $(cat turns)"
tail -1 turns >out
json_holds '.network == "unet"' '.steps == 3' '.losses | length == 2 and .[1] < .[0]' '.peak_bytes > .state_bytes'
