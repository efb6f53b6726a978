/* SPDX-License-Identifier: MIT
 * rondo report: reads the JSON dump of a graph, the results of trainings, or a model, and writes an HTML page about it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/graph_file.h"
#include "commands/training_result.h"
#include "common/file.h"
#include "common/options.h"
#include "common/tool.h"
#include "onnx/onnx_report.h"

typedef struct report_settings {
  const char *output, *title, *device;
  option_list inputs, sizes; /* of a model */
  bool no_addresses;
} report_settings;

static const report_settings defaults = {.device = "cpu"};

#define OFFSET(member) offsetof(report_settings, member)

static const option_row rows[] = {
    {"output", "FILE", OPTION_OUTPUT, OFFSET(output), 0, 0, "write the page to FILE instead of standard output"},
    {"title", "TEXT", OPTION_TEXT, OFFSET(title), 0, 0, "title of the page, instead of a usual one"},
    {"no-addresses", NULL, OPTION_FLAG, OFFSET(no_addresses), 0, 0,
     "omit addresses, so that two runs give the same page"},
    {"size", "NAME=N", OPTION_LIST, OFFSET(sizes), 0, 0,
     "the size of a dynamic dimension of a model, as for rondo run"},
    {"input", "NAME=VALUE", OPTION_LIST, OFFSET(inputs), 0, 0, "an input of a model, as for rondo run"},
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device for which a model is recorded"},
};

static const option_table table = {
    .command = "rondo report",
    .operand = "FILE",
    .repeats_operand = true,
    .reads_operand = true,
    .operand_help =
        "a dump, as rondo_graph_to_json or 'rondo train --dump-graph' writes it; a model in an ONNX file (.onnx); or "
        "up to 8 results, as 'rondo train --json' prints them; '-' is standard input",
    .description =
        "Writes one HTML page about a graph, which needs no other files: figures, mistakes, a drawing, the memory\n"
        "map (address against time), and the nodes with their parameters. 'rondo train --report' writes such a page\n"
        "for a training step, with the time of each node. Of a model, the page has its inputs, outputs and operators,\n"
        "and the graph that is recorded for the given sizes.\n\n"
        "Given results of trainings, the page compares them: curves of losses and validation losses, and a table\n"
        "of settings, figures and times.",
    OPTION_ROWS(rows, defaults),
    .letters = "o",
};

static int write_page(const char *path, const char *text) {
  if (path) return file_write(path, text);
  fputs(text, stdout);
  return tool_check_output();
}

static int report(const rondo_graph *graph, const char *path, const void *user) {
  const report_settings *settings = user;
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .no_addresses = settings->no_addresses,
                                        .title = settings->title};
  char *text = NULL;
  (void)path;
  if (rondo_graph_report(graph, &options, &text)) return tool_fail_status("the page");
  const int result = write_page(settings->output, text);
  rondo_text_free(text);
  return result;
}

/* Trainings ------------------------------------------------------------------------------------------------------- */

static int compare(const training_result *results, size_t count, const report_settings *settings) {
  char *text = training_results_compare(results, count, settings->title);
  const int result = text ? write_page(settings->output, text) : tool_fail_memory("the page");
  free(text);
  return result;
}

static int read_and_compare(const char *const *paths, const file_bytes *files, size_t count,
                            const report_settings *settings) {
  training_result results[OPERANDS_MAX] = {0};
  int result = TOOL_OK;
  for (size_t i = 0; i < count && result == TOOL_OK; i++)
    result = training_result_read(paths[i], &files[i], &results[i]);
  if (result == TOOL_OK) result = compare(results, count, settings);
  for (size_t i = 0; i < count; i++) training_result_destroy(&results[i]);
  return result;
}

/* Models ----------------------------------------------------------------------------------------------------------- */

static bool is_model(const char *path) {
  static const char end[] = ".onnx";
  const size_t length = strlen(path), tail = sizeof end - 1;
  return length > tail && strcmp(path + length - tail, end) == 0;
}

static int report_model(const char *path, const report_settings *settings) {
#ifdef RONDO_TOOL_ONNX
  const onnx_report_settings options = {.inputs = settings->inputs,
                                        .sizes = settings->sizes,
                                        .device = settings->device,
                                        .title = settings->title,
                                        .no_addresses = settings->no_addresses};
  char *text = NULL;
  int result = onnx_report_make(path, &options, &text);
  if (result == TOOL_OK) result = write_page(settings->output, text);
  rondo_text_free(text);
  return result;
#else
  (void)path, (void)settings;
  return tool_fail_without_onnx();
#endif
}

int command_report(int argc, char **argv) {
  report_settings settings = defaults;
  const char *paths[OPERANDS_MAX] = {NULL};
  file_bytes files[OPERANDS_MAX] = {0};
  size_t count = 0;
  int result = options_parse(&table, argc, argv, &settings, paths);
  if (result != OPTIONS_RUN) return result;
  if (!paths[1] && is_model(paths[0])) return report_model(paths[0], &settings);
  if (settings.inputs.count > 0 || settings.sizes.count > 0)
    return tool_fail_usage("--size and --input are for one model, in a file whose name ends in .onnx");
  do {
    result = file_read(paths[count], &files[count]);
  } while (result == TOOL_OK && ++count < OPERANDS_MAX && paths[count]);
  if (result == TOOL_OK)
    result = count > 1 || training_result_is(&files[0]) ? read_and_compare(paths, files, count, &settings)
                                                        : graph_file_use(paths[0], &files[0], &settings, report);
  for (size_t i = 0; i < count; i++) file_release(&files[i]);
  return result;
}
