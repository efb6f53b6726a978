/* SPDX-License-Identifier: MIT
 * rondo bench: finds the benchmark.
 */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct benchmark {
  const char *name;
  const char *full_name; /* what its messages begin with */
  int (*run)(int argc, char **argv);
  const char *summary;
} benchmark;

static const benchmark benchmarks[] = {
    {"launch", "rondo bench launch", bench_launch, "empty kernels in five shapes: by streams, as a graph, as a loop"},
    {"change", "rondo bench change", bench_change, "making an exec, updating it, patching a node and launching"},
    {"patch", "rondo bench patch", bench_patch, "launching with an input elsewhere: patching it or copying it"},
    {"conv", "rondo bench conv", bench_conv, "convolutions on CUDA: by cuDNN and by own kernels"},
    {"copies", "rondo bench copies", bench_copies, "copying inputs in front of a graph: queued, or by a kernel in it"},
    {"gain", "rondo bench gain", bench_gain, "what recording gains, predicted and measured"},
    {"tree", "rondo bench tree", bench_tree, "calls of recorded functions beside bare launches; memory of trees"},
    {"gpt", "rondo bench gpt", bench_gpt, "a training step of a transformer, recorded and kernel by kernel"},
    {"executor", "rondo bench executor", bench_executor, "runs that are not recorded: in a line and by an executor"},
    {"capture", "rondo bench capture", bench_capture, "capturing several models at once and one after the other"},
    {"memory", "rondo bench memory", bench_memory, "memory inside a graph: the bytes it holds, what launches cost"},
};

#define BENCHMARK_COUNT (sizeof benchmarks / sizeof benchmarks[0])

static int print_help(void) {
  puts(
      "Usage: rondo bench BENCHMARK [OPTION]...\n\nMeasures what launches, calls and changes cost and what memory "
      "graphs hold.\n");
  for (size_t i = 0; i < BENCHMARK_COUNT; i++) printf("  %-10s %s\n", benchmarks[i].name, benchmarks[i].summary);
  puts("\n'rondo bench BENCHMARK --help' explains one.");
  return TOOL_OK;
}

int command_bench(int argc, char **argv) {
  if (argc < 2) return tool_fail_usage("a benchmark is missing");
  if (options_ask_for_help(argv[1])) return print_help();
  for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
    if (strcmp(argv[1], benchmarks[i].name) != 0) continue;
    tool_set_command(benchmarks[i].full_name);
    return benchmarks[i].run(argc - 1, argv + 1);
  }
  return tool_fail_usage("there is no %s '%s'", argv[1][0] == '-' ? "option" : "benchmark", argv[1]);
}
