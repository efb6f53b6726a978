/* SPDX-License-Identifier: MIT
 * The benchmarks of `rondo bench`: the cost of launches, the memory inside graphs, and the gain of recording. All
 * others are in bench/.
 */
#ifndef RONDO_TOOL_TOOL_BENCHMARKS_H
#define RONDO_TOOL_TOOL_BENCHMARKS_H

#include "bench/benchmark.h"

extern const benchmark bench_launch, bench_memory, bench_gain;

#endif
