/* SPDX-License-Identifier: MIT
 * The benchmarks of `rondo bench`: what launches cost, what memory inside graphs holds, and what recording gains. All
 * others are in bench/.
 */
#ifndef RONDO_TOOL_TOOL_BENCHMARKS_H
#define RONDO_TOOL_TOOL_BENCHMARKS_H

#include "bench/benchmark.h"

extern const benchmark bench_launch, bench_memory, bench_gain;

#endif
