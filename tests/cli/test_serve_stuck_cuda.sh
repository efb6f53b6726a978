#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A soak on a device that hangs: the first request that is not answered in time ends it, with a word and an exit status,
# though neither the session nor the device can be waited for (SE-8).
source "$(dirname "$0")/support.sh" "$1"

command -v script >/dev/null || die 'there is no script(1), which shows what the tool says on a terminal'
if ! script -qefc true /dev/null </dev/null >/dev/null 2>&1; then
  echo "there is no terminal to be had (/dev/pts)"
  exit 77
fi
export RONDO_TEST_FAKE_CUDA_HANG=$work/hang

# Progress is shown on a terminal alone, and tells when the soak begins.
: >said
timeout 300 script -qefc "'$tool' serve dense --load --device cuda:0 --requests 4 --least 4 --most 16 --median 8 \
  --seconds 0.1 --sizes 2 --soak 30 --answer-seconds 1" said </dev/null >/dev/null 2>&1 &
soaking=$!
until grep -q 'soaking, ' said; do
  kill -0 "$soaking" 2>/dev/null || die "the soak did not begin: $(cat said)"
  sleep 0.05
done
touch hang
status=0
wait "$soaking" || status=$?
[ "$status" -eq 1 ] || die "the soak, stuck, ended with $status, not 1: $(cat said)"
grep -q 'rondo serve: a request was not answered in 1 s' said || die "nothing was said of it: $(cat said)"
