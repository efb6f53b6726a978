/* SPDX-License-Identifier: MIT
 * The benchmarks of `rondo bench`: the cost of launches, the memory inside graphs, the gain of recording, and
 * models in files. All others are in bench/.
 */
#ifndef RONDO_TOOL_TOOL_BENCHMARKS_H
#define RONDO_TOOL_TOOL_BENCHMARKS_H

#include "bench/benchmark.h"

extern const benchmark bench_launch, bench_memory, bench_gain;
extern const benchmark bench_model; /* only with RONDO_TOOL_ONNX */

#endif
