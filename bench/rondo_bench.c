/* SPDX-License-Identifier: MIT
 * The project's own benchmarks: rondo_bench BENCHMARK [OPTION]... Measurements for users on their machines (launches,
 * memory, the gain of recording) are in the tool, as `rondo bench`.
 */
#include "rondo_bench.h"

#include <stdio.h>
#include <unistd.h>

#include "common/tool.h"

static const benchmark *const list[] = {
    /* graphs */
    &bench_replay,
    &bench_change,
    &bench_patch,
    &bench_copies,
    &bench_decode,
    &bench_import,
    &bench_capture,
    &bench_verify,
    &bench_idle,
    /* trees */
    &bench_tree,
    &bench_mlp,
    /* programs */
    &bench_attention,
    &bench_conv,
    &bench_products,
    &bench_quantized,
    &bench_patterns,
    &bench_recurrent,
    &bench_executor,
    &bench_feed,
    &bench_networks,
#ifdef RONDO_TOOL_ONNX
    &bench_models,
#endif
    &bench_look_ups,
    &bench_training,
    &bench_compile_time,
    &bench_step_memory,
    /* memory plans */
    &bench_plan,
    &bench_plan_order,
    &bench_lifetimes,
};

/* Ends without the destructors of libraries, because the objects of a benchmark still exist. */
int main(int argc, char **argv) {
  tool_set_command("rondo_bench");
  rondo_log_set_sink(tool_log, NULL, RONDO_LOG_WARNING);
  const int result = benchmarks_run("rondo_bench", list, sizeof list / sizeof list[0], argc, argv);
  (void)fflush(NULL);
  _exit(result ? result : tool_check_output());
}
