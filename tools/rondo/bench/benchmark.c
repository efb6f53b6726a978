/* SPDX-License-Identifier: MIT
 * Finds, prepares, runs and reports a benchmark.
 */
#define _GNU_SOURCE
#include "bench/benchmark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bare_driver.h"
#include "common/table.h"
#include "common/tool.h"

/* Options ---------------------------------------------------------------------------------------------------------- */

static void list_options(const benchmark *of, option_row rows[OPTIONS_MAX], size_t *out_count) {
  const bench_base *defaults = of->defaults;
  const char *seconds_help = of->seconds_help ? of->seconds_help : "about how long to measure";
  size_t count = 0;
  rows[count++] = (option_row)OPTION_ROW_DEVICE(bench_base, device_name);
  for (size_t i = 0; i < of->row_count; i++) rows[count++] = of->rows[i];
  if (defaults->seconds > 0) rows[count++] = (option_row)OPTION_ROW_SECONDS(bench_base, seconds_help);
  rows[count++] = (option_row)OPTION_ROW_JSON(bench_base);
  *out_count = count;
}

static int parse(const benchmark *of, const char *command, int argc, char **argv, bench_base *state) {
  option_row rows[OPTIONS_MAX];
  option_table table = {.command = command,
                        .operand = of->operand,
                        .operand_help = of->operand_help,
                        .reads_operand = of->operand != NULL,
                        .description = of->description,
                        .defaults = of->defaults,
                        .rows = rows};
  list_options(of, rows, &table.count);
  const int parsed = options_parse(&table, argc, argv, state, &state->operand);
  return parsed == OPTIONS_RUN && of->check && of->check(state) != TOOL_OK ? TOOL_USAGE : parsed;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static int open_device(const benchmark *of, bench_base *state) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)state->workers,
                                        .allocator = of->allocator};
  state->info.struct_size = sizeof state->info;
  if (of->why_cuda && !bare_is_cuda(state->device_name))
    return tool_fail("--device: '%s' is not a CUDA device: %s; name one, such as cuda:0", state->device_name,
                     of->why_cuda);
  if (rondo_device_open(state->device_name, &options, &state->device)) return tool_fail_status("--device");
  return rondo_device_get_info(state->device, &state->info) ? tool_fail_status("the device") : TOOL_OK;
}

static int report(const benchmark *of, bench_base *state) {
  json out;
  json_begin(&out);
  json_text(&out, "device", state->device_name);
  json_text(&out, "device_description", state->info.description);
  of->report(state, &out);
  return state->json ? json_print(&out) : table_print(&out);
}

static int run_steps(const benchmark *of, bench_base *state) {
  int result = open_device(of, state);
  if (result == TOOL_OK && of->prepare) result = of->prepare(state);
  if (result == TOOL_OK) result = of->measure(state);
  tool_clear_progress();
  if (result == TOOL_OK) result = report(of, state);
  if (!of->finish) return result;
  const int finished = of->finish(state);
  if (result == TOOL_OK) result = finished;
  return rondo_device_close(state->device) ? tool_fail_status("the device") : result;
}

/* Runs the benchmark's program with its output in a temporary file, and prints that output as tables. */
static int run_for_table(const benchmark *of, int argc, char **argv) {
  FILE *file = tmpfile();
  const int output = dup(STDOUT_FILENO);
  if (!file || output < 0 || dup2(fileno(file), STDOUT_FILENO) < 0)
    return tool_fail(
        "the output cannot be redirected to a temporary file: check the space in /tmp and the limit of open files");
  int result = of->program(argc, argv);
  fflush(stdout);
  const long bytes = lseek(STDOUT_FILENO, 0, SEEK_END);
  char *text = calloc((size_t)bytes + 1, 1);
  if (!text || pread(STDOUT_FILENO, text, (size_t)bytes, 0) != bytes)
    result = tool_fail("the output cannot be read back from the temporary file");
  dup2(output, STDOUT_FILENO);
  close(output);
  fclose(file);
  if (result == TOOL_OK) result = table_print_text(text);
  free(text);
  return result;
}

static int run_program(const benchmark *of, const char *command, int argc, char **argv) {
  const option_table help = {.command = command, .description = of->description};
  bool is_json = false;
  int kept = 1;
  for (int i = 1; i < argc; i++) {
    if (options_ask_for_help(argv[i])) return options_parse(&help, argc, argv, NULL, NULL);
    if (strcmp(argv[i], "--json") == 0)
      is_json = true;
    else
      argv[kept++] = argv[i];
  }
  return is_json ? of->program(kept, argv) : run_for_table(of, kept, argv);
}

static int run(const benchmark *of, const char *command, int argc, char **argv) {
  if (of->program) return run_program(of, command, argc, argv);
  bench_base *state = malloc(of->bytes);
  if (!state) return tool_fail_memory("the benchmark");
  memcpy(state, of->defaults, of->bytes);
  int result = parse(of, command, argc, argv, state);
  if (result == OPTIONS_RUN) result = run_steps(of, state);
  free(state);
  return result;
}

/* List of benchmarks ---------------------------------------------------------------------------------------------- */

static int print_help(const char *command, const benchmark *const *list, size_t count) {
  printf("Usage: %s BENCHMARK [OPTION]...\n\nThe benchmarks:\n\n", command);
  for (size_t i = 0; i < count; i++) printf("  %-12s %s\n", list[i]->name, list[i]->summary);
  printf("\n'%s BENCHMARK --help' describes one.\n", command);
  return tool_check_output();
}

int benchmarks_run(const char *command, const benchmark *const *list, size_t count, int argc, char **argv) {
  static char full_name[64];
  if (argc < 2) return tool_fail_usage("a benchmark is missing");
  if (options_ask_for_help(argv[1])) return print_help(command, list, count);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(argv[1], list[i]->name) != 0) continue;
    snprintf(full_name, sizeof full_name, "%s %s", command, list[i]->name);
    tool_set_command(full_name);
    return run(list[i], full_name, argc - 1, argv + 1);
  }
  return tool_fail_usage("there is no %s '%s'", argv[1][0] == '-' ? "option" : "benchmark", argv[1]);
}

/* Rounds ----------------------------------------------------------------------------------------------------------- */

rounds rounds_begin(double seconds, size_t fewest, size_t most) {
  return (rounds){.end = clock_ns() + (uint64_t)(seconds * 1e9), .fewest = fewest, .most = most};
}

bool rounds_next(rounds *of) {
  if (of->done >= of->most || (of->done >= of->fewest && clock_ns() >= of->end)) return false;
  of->done++;
  return true;
}

double bench_ratio(double a, double b) { return b > 0 ? a / b : 0; }
