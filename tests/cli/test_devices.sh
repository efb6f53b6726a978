#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rondo devices: the CPU device is always there.
source "$(dirname "$0")/support.sh" "$1"

succeeds devices
grep -Eq '^cpu:check +(.* finds mistakes|not available: .*)$' out || die "no checking device: $(cat out)"
grep -q '^cpu .* worker' out || die "no CPU device: $(cat out)"

succeeds devices --json
json_holds '.version | test("^[0-9]+[.][0-9]+[.][0-9]+$")' \
  '.devices[0] | .name == "cpu" and .available and .workers >= 1 and .processors >= 1 and .memory_bytes > 0 and
    .page_bytes >= 4096 and (.description | length > 0)' \
  'all(.devices[] | select(.available | not); .reason | length > 0 and (contains("\n") | not))'
json_holds '[.libraries[].name] == ["cuBLASLt", "cuDNN", "oneDNN", "oneDNN", "CBLAS"]' \
  'all(.libraries[]; (.available and .path != "") or (.reason | length > 0 and (contains("\n") | not)))'
# Debian 12's oneDNN moves the stack pointer: what is done about it is said.
case $(uname -m):$(dpkg-query -W -f '${Version}' libdnnl2 2>/dev/null) in
x86_64:2.*)
  json_holds '[.libraries[] | select(.name == "oneDNN" and .available)] |
    all(.note | contains("before 3.11.2") and contains("signals are blocked"))'
  ;;
esac
RONDO_LOG=error RONDO_CUDNN_LIBRARY=libnothing.so.9 RONDO_CUBLASLT_LIBRARY=none succeeds devices
grep -q '^cuDNN  *not available for convolutions and attention on CUDA devices: none of the libraries opens: libnothing.so.9: ' \
  out || die "no reason for there being no cuDNN: $(cat out)"
grep -q '^cuBLASLt .*: RONDO_CUBLASLT_LIBRARY=none turns it off$' out || die "no reason for there being no cuBLASLt: $(cat out)"
RONDO_CBLAS_LIBRARY=none succeeds devices
grep -q '^oneDNN .*: RONDO_CBLAS_LIBRARY is set, which is used for all products$' out || die "oneDNN next to CBLAS: $(cat out)"
grep -q '^CBLAS .*: RONDO_CBLAS_LIBRARY=none turns it off$' out || die "no reason for there being no CBLAS: $(cat out)"
unset RONDO_CBLAS_LIBRARY # of whoever runs this
RONDO_LOG=error RONDO_ONEDNN_LIBRARY=libc.so.6 succeeds devices
for purpose in 'large matrix products' convolutions; do
  grep -q "^oneDNN  *not available for $purpose on CPU devices: libc.so.6 has no dnnl_sgemm: oneDNN is needed$" out ||
    die "a oneDNN that is none: $(cat out)"
done
succeeds devices --operators
grep -Eq '^operator +f32 +f16 +bf16 +i32 +i64 +i8 +u8 +bool +f8_e4m3 +f8_e5m2 +gradient$' out || die "no header: $(cat out)"
grep -Eq '^add +(cpu, cuda +){8}(- +){2}yes$' out || die "no add: $(cat out)"
grep -Eq '^exp +(cpu, cuda +){3}(- +){7}yes$' out || die "no exp: $(cat out)"
grep -v '^stop_gradient ' out | grep -q '_gradient' && die "a gradient is listed: $(cat out)"
succeeds devices --operators --json
json_holds '.operators | map(select(.name == "less"))[0] | .types == ["f32", "f16", "bf16", "i32", "i64", "i8", "u8", "bool"] and
    .devices == ["cpu", "cuda"] and (.gradient | not)' \
  '.operators | map(.name) | length > 30 and length == (unique | length)'

succeeds devices --json
[ "$(jq '.devices | map(.name) | length == (unique | length)' out)" = true ] || die "a device is listed twice"
