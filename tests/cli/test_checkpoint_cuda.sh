#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The same on a CUDA device, here one without a GPU.
exec bash "$(dirname "$0")/test_checkpoint.sh" "$1" cuda:0
