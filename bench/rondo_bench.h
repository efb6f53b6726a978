/* SPDX-License-Identifier: MIT
 * The benchmarks of the program rondo_bench; rondo_bench.c lists them.
 */
#ifndef RONDO_BENCH_RONDO_BENCH_H
#define RONDO_BENCH_RONDO_BENCH_H

#include "bench/benchmark.h"

extern const benchmark bench_attention, bench_capture, bench_change, bench_compile_time, bench_conv, bench_copies,
    bench_decode, bench_executor, bench_feed, bench_idle, bench_import, bench_lifetimes, bench_look_ups, bench_mlp,
    bench_models, bench_networks, bench_patch, bench_patterns, bench_plan, bench_plan_order, bench_products,
    bench_quantized, bench_recurrent, bench_replay, bench_step_memory, bench_training, bench_tree, bench_verify;

#endif
