#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sourced by the tests of scripts in bench/ that compare with PyTorch, after support.sh. Gives `run` for $script, and a
# folder `modules` for a fake PyTorch. Without PyTorch, the script skips with a reason.
command -v python3 >/dev/null || exit 77

# run STATUS ARGUMENT...: with the modules of the folder `modules`.
run() {
  local expected=$1 status=0
  shift
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/modules python3 "$script" "$@" >out 2>err || status=$?
  [ "$status" -eq "$expected" ] || die "$*: exit status $status, not $expected: $(cat err)"
}

mkdir modules
echo 'raise ImportError("not here")' >modules/torch.py
run 77 --program "$tool"
grep -q 'skipped: no PyTorch: not here' err || die "no reason: $(cat err)"
