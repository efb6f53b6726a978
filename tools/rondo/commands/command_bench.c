/* SPDX-License-Identifier: MIT
 * rondo bench: the list of its benchmarks.
 */
#include "bench/tool_benchmarks.h"
#include "commands/commands.h"

int command_bench(int argc, char **argv) {
  static const benchmark *const list[] = {
#ifdef RONDO_TOOL_ONNX
      &bench_model,
#endif
      &bench_launch, &bench_gain, &bench_memory};
  return benchmarks_run("rondo bench", list, sizeof list / sizeof list[0], argc, argv);
}
